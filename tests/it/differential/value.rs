//! Values and column types of the model: plain Rust, with SQL's comparison of its own.

use std::cmp::Ordering;
use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use calve::spec::{ListType, Literal, NestedField, PrimitiveType, StructType, Type};
use chrono::DateTime;

/// Type of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Bool,
    Int,
    Long,
    Float,
    Double,
    Decimal(u8, u8),
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Text,
    Binary,
    Uuid,
    Struct(Vec<(&'static str, Kind)>),
    List(Box<Kind>),
}

/// A value. Whole numbers, dates and times are one variant, as both floats are.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
    Struct(Vec<Value>),
    List(Vec<Value>),
}

impl Value {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// SQL's order: `None` for a null on either side. NaN is above infinity and equal to itself; -0.0 equals 0.0.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => None,
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(match (a.is_nan(), b.is_nan()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if a == b => Ordering::Equal,
                (false, false) if a < b => Ordering::Less,
                (false, false) => Ordering::Greater,
            }),
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (a, b) => panic!("{a:?} and {b:?} do not compare"),
        }
    }

    /// Text that is equal exactly for the same value, bit for bit (all NaNs being one).
    pub(super) fn fingerprint(&self, out: &mut String) {
        match self {
            Self::Float(v) if v.is_nan() => out.push_str("NaN"),
            Self::Float(v) => write!(out, "{v:?}").unwrap(),
            Self::Struct(fields) | Self::List(fields) => {
                out.push('(');
                fields.iter().for_each(|field| field.fingerprint(out));
                out.push(')');
            }
            other => write!(out, "{other:?}").unwrap(),
        }
        out.push(' ');
    }

    /// A literal of exactly the type of `kind`.
    pub(super) fn sql(&self, kind: &Kind) -> String {
        if self.is_null() {
            return format!("arrow_cast(NULL, '{}')", kind.arrow());
        }
        let text = match (self, kind) {
            (Self::Bool(v), _) => return v.to_string().to_uppercase(),
            (Self::Text(v), _) => return quoted(v),
            (Self::Bytes(v), Kind::Binary) => return hex(v),
            (Self::Bytes(v), _) => return format!("arrow_cast({}, '{}')", hex(v), kind.arrow()),
            (Self::Struct(values), Kind::Struct(fields)) => {
                let parts =
                    fields.iter().zip(values).map(|((name, kind), value)| format!("'{name}', {}", value.sql(kind)));
                return format!("named_struct({})", parts.collect::<Vec<_>>().join(", "));
            }
            (Self::List(values), Kind::List(element)) if !values.is_empty() => {
                let parts: Vec<_> = values.iter().map(|v| v.sql(element)).collect();
                return format!("make_array({})", parts.join(", "));
            }
            (Self::List(_), _) => return format!("arrow_cast(make_array(), '{}')", kind.arrow()),
            (Self::Int(v), Kind::Date) => date_text(*v),
            (Self::Int(v), Kind::Time) => date_time(*v)[11..].to_string(),
            (Self::Int(v), Kind::Timestamp) => date_time(*v),
            (Self::Int(v), Kind::Timestamptz) => format!("{}Z", date_time(*v)),
            (Self::Int(v), _) => v.to_string(),
            (Self::Float(v), _) => format!("{v:?}"),
            (Self::Decimal(v), Kind::Decimal(_, scale)) => decimal_text(*v, *scale),
            (value, kind) => panic!("{value:?} is no {kind:?}"),
        };
        format!("arrow_cast({}, '{}')", quoted(&text), kind.arrow())
    }

    /// The value as the format's own.
    pub(super) fn literal(&self, kind: &Kind) -> Option<Literal> {
        let int = |v: i64| i32::try_from(v).expect("32 bits");
        Some(match (self, kind) {
            (Self::Null, _) => return None,
            (Self::Bool(v), _) => Literal::Boolean(*v),
            (Self::Int(v), Kind::Int) => Literal::Int(int(*v)),
            (Self::Int(v), Kind::Long) => Literal::Long(*v),
            (Self::Int(v), Kind::Date) => Literal::Date(int(*v)),
            (Self::Int(v), Kind::Time) => Literal::Time(*v),
            (Self::Int(v), Kind::Timestamp) => Literal::Timestamp(*v),
            (Self::Int(v), Kind::Timestamptz) => Literal::Timestamptz(*v),
            (Self::Float(v), Kind::Float) => Literal::Float(*v as f32),
            (Self::Float(v), _) => Literal::Double(*v),
            (Self::Decimal(v), _) => Literal::Decimal(*v),
            (Self::Text(v), _) => Literal::String(v.clone()),
            (Self::Bytes(v), Kind::Uuid) => Literal::Uuid(uuid::Uuid::from_slice(v).expect("16 bytes")),
            (Self::Bytes(v), _) => Literal::Binary(v.clone()),
            (value, kind) => panic!("{value:?} of {kind:?} is no primitive"),
        })
    }
}

impl Kind {
    pub(super) fn is_primitive(&self) -> bool {
        !matches!(self, Self::Struct(_) | Self::List(_))
    }

    /// The type with field ids counted on from `next`.
    pub(super) fn iceberg(&self, next: &mut i32) -> Type {
        Type::Primitive(match self {
            Self::Bool => PrimitiveType::Boolean,
            Self::Int => PrimitiveType::Int,
            Self::Long => PrimitiveType::Long,
            Self::Float => PrimitiveType::Float,
            Self::Double => PrimitiveType::Double,
            Self::Decimal(precision, scale) => PrimitiveType::Decimal { precision: *precision, scale: *scale },
            Self::Date => PrimitiveType::Date,
            Self::Time => PrimitiveType::Time,
            Self::Timestamp => PrimitiveType::Timestamp,
            Self::Timestamptz => PrimitiveType::Timestamptz,
            Self::Text => PrimitiveType::String,
            Self::Binary => PrimitiveType::Binary,
            Self::Uuid => PrimitiveType::Uuid,
            Self::Struct(fields) => {
                let fields = fields.iter().map(|(name, kind)| std::sync::Arc::new(field(next, name, kind))).collect();
                return Type::Struct(StructType { fields });
            }
            Self::List(element) => {
                return Type::List(Box::new(ListType {
                    element: std::sync::Arc::new(field(next, "element", element)),
                }));
            }
        })
    }

    /// Name of the type in DDL.
    pub(super) fn ddl(&self) -> String {
        match self {
            Self::Bool => "BOOLEAN".into(),
            Self::Int => "INT".into(),
            Self::Long => "BIGINT".into(),
            Self::Float => "FLOAT".into(),
            Self::Double => "DOUBLE".into(),
            Self::Decimal(precision, scale) => format!("DECIMAL({precision}, {scale})"),
            Self::Date => "DATE".into(),
            Self::Time => "TIME".into(),
            Self::Timestamp => "TIMESTAMP".into(),
            Self::Timestamptz => "TIMESTAMPTZ".into(),
            Self::Text => "STRING".into(),
            Self::Binary => "BINARY".into(),
            Self::Uuid => "UUID".into(),
            Self::Struct(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, kind)| format!("{name} {}", kind.ddl())).collect();
                format!("STRUCT<{}>", fields.join(", "))
            }
            Self::List(element) => format!("ARRAY<{}>", element.ddl()),
        }
    }

    fn arrow_type(&self) -> DataType {
        let mut ids = 0;
        calve::writer::arrow_type(&self.iceberg(&mut ids)).expect("an Arrow type")
    }

    /// The Arrow type as `arrow_cast` spells it.
    fn arrow(&self) -> String {
        match self {
            Self::Struct(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(name, kind)| format!("\"{name}\": {}", kind.arrow())).collect();
                format!("Struct({})", fields.join(", "))
            }
            Self::List(element) => format!("List({})", element.arrow()),
            Self::Timestamptz => "Timestamp(Microsecond, Some(\"UTC\"))".into(),
            Self::Timestamp => "Timestamp(Microsecond, None)".into(),
            Self::Time => "Time64(Microsecond)".into(),
            _ => self.arrow_type().to_string(),
        }
    }

    /// The values of an Arrow column.
    pub(super) fn decode(&self, array: &ArrayRef) -> Vec<Value> {
        let array = match self {
            Self::Struct(_) | Self::List(_) => array.clone(),
            _ => cast(array, &self.arrow_type()).expect("a cast that changes no value"),
        };
        let nested: Vec<Vec<Value>> = match self {
            Self::Struct(fields) => fields
                .iter()
                .map(|(name, kind)| kind.decode(array.as_struct().column_by_name(name).expect("a field")))
                .collect(),
            Self::List(element) => {
                let lists = array.as_list::<i32>();
                (0..lists.len())
                    .map(|i| if lists.is_null(i) { Vec::new() } else { element.decode(&lists.value(i)) })
                    .collect()
            }
            _ => Vec::new(),
        };
        let value = |i: usize| match self {
            _ if array.is_null(i) => Value::Null,
            Self::Bool => Value::Bool(array.as_boolean().value(i)),
            Self::Int => Value::Int(array.as_primitive::<Int32Type>().value(i).into()),
            Self::Long => Value::Int(array.as_primitive::<Int64Type>().value(i)),
            Self::Float => Value::Float(array.as_primitive::<Float32Type>().value(i).into()),
            Self::Double => Value::Float(array.as_primitive::<Float64Type>().value(i)),
            Self::Decimal(..) => Value::Decimal(array.as_primitive::<Decimal128Type>().value(i)),
            Self::Date => Value::Int(array.as_primitive::<Date32Type>().value(i).into()),
            Self::Time => Value::Int(array.as_primitive::<Time64MicrosecondType>().value(i)),
            Self::Timestamp | Self::Timestamptz => {
                Value::Int(array.as_primitive::<TimestampMicrosecondType>().value(i))
            }
            Self::Text => Value::Text(array.as_string::<i32>().value(i).to_string()),
            Self::Binary => Value::Bytes(array.as_binary::<i32>().value(i).to_vec()),
            Self::Uuid => Value::Bytes(array.as_fixed_size_binary().value(i).to_vec()),
            Self::Struct(_) => Value::Struct(nested.iter().map(|column| column[i].clone()).collect()),
            Self::List(_) => Value::List(nested[i].clone()),
        };
        (0..array.len()).map(value).collect()
    }
}

fn field(next: &mut i32, name: &str, kind: &Kind) -> NestedField {
    *next += 1;
    let id = *next;
    NestedField::new(id, name, false, kind.iceberg(next))
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("X'{digits}'")
}

fn date_time(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).expect("in range").format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

fn date_text(days: i64) -> String {
    date_time(days * 86_400_000_000)[..10].to_string()
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}
