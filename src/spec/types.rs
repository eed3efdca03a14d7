//! Iceberg types: primitives, structs, lists, maps and variant.
//!
//! Implements the spec sections "Schemas and Data Types" and "Appendix C: JSON serialization, Schemas". Invariant: a type
//! prints as the spec spells it (`decimal(9, 2)`, `fixed[16]`), and every spelling another writer uses parses.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::literal::Literal;
use crate::{Error, Result};

/// A primitive type. Width and scale ranges as in the spec: decimal precision 1..=38, scale <= precision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    /// True or false.
    Boolean,
    /// 32-bit signed.
    Int,
    /// 64-bit signed.
    Long,
    /// 32-bit IEEE 754.
    Float,
    /// 64-bit IEEE 754.
    Double,
    /// Fixed-point; unscaled value in an i128.
    Decimal {
        /// Total digits, 1..=38.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since the epoch, without zone.
    Timestamp,
    /// Microseconds since the epoch, UTC.
    Timestamptz,
    /// Nanoseconds since the epoch, without zone (v3).
    TimestampNs,
    /// Nanoseconds since the epoch, UTC (v3).
    TimestamptzNs,
    /// UTF-8 text.
    String,
    /// 16 bytes, big-endian.
    Uuid,
    /// Exactly this many bytes.
    Fixed(u64),
    /// Any number of bytes.
    Binary,
    /// Always null (v3).
    Unknown,
    /// WKB geometry (v3); the coordinate reference system if not the default.
    Geometry(Option<String>),
    /// WKB geography (v3); coordinate reference system and edge algorithm if not the defaults.
    Geography(Option<String>, Option<String>),
}

/// Any Iceberg type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// A primitive.
    Primitive(PrimitiveType),
    /// Named fields.
    Struct(StructType),
    /// A list; the element is a field named `element`.
    List(Box<ListType>),
    /// A map; key and value are fields named `key` and `value`.
    Map(Box<MapType>),
    /// Semi-structured value (v3).
    Variant,
}

/// Fields of a struct, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StructType {
    /// The fields, shared so that schemas clone cheaply.
    pub fields: Vec<Arc<NestedField>>,
}

/// A list type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListType {
    /// The element, named `element`; `required` is `element-required`.
    pub element: Arc<NestedField>,
}

/// A map type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapType {
    /// The key, named `key`, always required.
    pub key: Arc<NestedField>,
    /// The value, named `value`; `required` is `value-required`.
    pub value: Arc<NestedField>,
}

/// A field of a schema, struct, list or map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NestedField {
    /// Field id, unique in the table for ever.
    pub id: i32,
    /// Name as written; names are case-sensitive in the format.
    pub name: String,
    /// Whether null is forbidden.
    pub required: bool,
    /// Type of the field.
    pub field_type: Type,
    /// Comment.
    pub doc: Option<String>,
    /// v3: the value rows of files without this field read as. `None` is null. Primitive types only.
    pub initial_default: Option<Literal>,
    /// v3: the value a writer stores where a row gives none. `None` is null. Primitive types only.
    pub write_default: Option<Literal>,
}

impl NestedField {
    /// A field without comment and defaults.
    pub fn new(id: i32, name: impl Into<String>, required: bool, field_type: impl Into<Type>) -> Self {
        Self {
            id,
            name: name.into(),
            required,
            field_type: field_type.into(),
            doc: None,
            initial_default: None,
            write_default: None,
        }
    }
}

impl From<PrimitiveType> for Type {
    fn from(value: PrimitiveType) -> Self {
        Self::Primitive(value)
    }
}

impl From<StructType> for Type {
    fn from(value: StructType) -> Self {
        Self::Struct(value)
    }
}

impl Type {
    /// The primitive inside, if this is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(p) => Some(p),
            _ => None,
        }
    }
}

impl StructType {
    /// The field with this id among the direct fields.
    pub fn field(&self, id: i32) -> Option<&Arc<NestedField>> {
        self.fields.iter().find(|f| f.id == id)
    }
}

/// Greatest precision of a decimal.
const MAX_DECIMAL_PRECISION: u8 = 38;

/// Coordinate reference system of a geometry or geography that names none.
const DEFAULT_CRS: &str = "OGC:CRS84";

impl PrimitiveType {
    /// Whether the format allows a column of this type to become `to` (spec section "Schema Evolution"), this type
    /// itself included. `date` to a timestamp and `unknown` to anything take format version 3.
    pub fn can_promote_to(&self, to: &Self) -> bool {
        match (self, to) {
            (a, b) if a == b => true,
            (Self::Int, Self::Long) | (Self::Float, Self::Double) => true,
            (Self::Date, Self::Timestamp | Self::TimestampNs) | (Self::Unknown, _) => true,
            (Self::Decimal { precision: p, scale: s }, Self::Decimal { precision, scale }) => {
                s == scale && p <= precision
            }
            _ => false,
        }
    }
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision}, {scale})"),
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::TimestampNs => "timestamp_ns",
            Self::TimestamptzNs => "timestamptz_ns",
            Self::String => "string",
            Self::Uuid => "uuid",
            Self::Fixed(length) => return write!(f, "fixed[{length}]"),
            Self::Binary => "binary",
            Self::Unknown => "unknown",
            Self::Geometry(None) => "geometry",
            Self::Geometry(Some(crs)) => return write!(f, "geometry({crs})"),
            Self::Geography(None, None) => "geography",
            Self::Geography(Some(crs), None) => return write!(f, "geography({crs})"),
            Self::Geography(crs, Some(algorithm)) => {
                return write!(f, "geography({}, {algorithm})", crs.as_deref().unwrap_or(DEFAULT_CRS));
            }
        })
    }
}

impl FromStr for PrimitiveType {
    type Err = Error;

    /// Reads any spelling of a primitive type: `decimal(9,2)`, `decimal(9, 2)`, `Fixed[16]`. `DataInvalid` otherwise.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || {
            let shown: String = text.chars().take(80).collect();
            Error::data_invalid(format!("{shown:?} is not a primitive type"))
        };
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        Ok(match lower.as_str() {
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "date" => Self::Date,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "timestamptz" => Self::Timestamptz,
            "timestamp_ns" => Self::TimestampNs,
            "timestamptz_ns" => Self::TimestamptzNs,
            "string" => Self::String,
            "uuid" => Self::Uuid,
            "binary" => Self::Binary,
            "unknown" => Self::Unknown,
            "geometry" => Self::Geometry(None),
            "geography" => Self::Geography(None, None),
            _ => {
                // A coordinate reference system keeps its case, so arguments come from the text as written.
                let open = lower.find(['(', '[']).ok_or_else(invalid)?;
                let close = if lower.as_bytes().get(open) == Some(&b'(') { ')' } else { ']' };
                let inner = trimmed.get(open + 1..).and_then(|t| t.strip_suffix(close)).ok_or_else(invalid)?;
                let args: Vec<&str> = inner.split(',').map(str::trim).collect();
                match (lower.get(..open).map(str::trim_end), close, args.as_slice()) {
                    (Some("decimal"), ')', [precision, scale]) => {
                        let precision: u8 = precision.parse().map_err(|_| invalid())?;
                        let scale: u8 = scale.parse().map_err(|_| invalid())?;
                        if precision == 0 || precision > MAX_DECIMAL_PRECISION || scale > precision {
                            return Err(Error::data_invalid(format!(
                                "decimal({precision}, {scale}): precision must be 1 to 38, scale at most the precision"
                            )));
                        }
                        Self::Decimal { precision, scale }
                    }
                    (Some("fixed"), ']', [length]) => {
                        let length: u64 = length.parse().map_err(|_| invalid())?;
                        if length > i32::MAX as u64 {
                            return Err(Error::data_invalid(format!("fixed[{length}]: longer than {}", i32::MAX)));
                        }
                        Self::Fixed(length)
                    }
                    (Some("geometry"), ')', [crs]) if !crs.is_empty() => Self::Geometry(Some(crs.to_string())),
                    (Some("geography"), ')', [crs]) if !crs.is_empty() => Self::Geography(Some(crs.to_string()), None),
                    (Some("geography"), ')', [crs, algorithm]) if !crs.is_empty() && !algorithm.is_empty() => {
                        Self::Geography(Some(crs.to_string()), Some(algorithm.to_string()))
                    }
                    _ => return Err(invalid()),
                }
            }
        })
    }
}

impl fmt::Display for Type {
    /// Primitives as the spec spells them; nested types as `struct<a: int, b: list<string>>`, for messages only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(p) => p.fmt(f),
            Self::Variant => f.write_str("variant"),
            Self::List(list) => write!(f, "list<{}>", list.element.field_type),
            Self::Map(map) => write!(f, "map<{}, {}>", map.key.field_type, map.value.field_type),
            Self::Struct(fields) => {
                f.write_str("struct<")?;
                for (i, field) in fields.fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{}: {}", field.name, field.field_type)?;
                }
                f.write_str(">")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn primitives_parse_back_from_their_text() {
        for text in [
            "boolean",
            "int",
            "long",
            "float",
            "double",
            "decimal(9, 2)",
            "decimal(38, 38)",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "timestamp_ns",
            "timestamptz_ns",
            "string",
            "uuid",
            "fixed[16]",
            "binary",
            "unknown",
            "geometry",
            "geometry(srid:4326)",
            "geography",
            "geography(OGC:CRS83)",
            "geography(OGC:CRS84, karney)",
        ] {
            let parsed: PrimitiveType = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn other_spellings_parse() {
        let decimal = PrimitiveType::Decimal { precision: 9, scale: 2 };
        for text in ["decimal(9,2)", "decimal( 9 , 2 )", "DECIMAL(9, 2)", "decimal (9,2)"] {
            assert_eq!(text.parse::<PrimitiveType>().unwrap(), decimal, "{text}");
        }
        assert_eq!("fixed[ 3 ]".parse::<PrimitiveType>().unwrap(), PrimitiveType::Fixed(3));
    }

    #[test]
    fn nonsense_is_data_invalid() {
        for text in [
            "",
            "integer",
            "decimal",
            "decimal()",
            "decimal(9)",
            "decimal(39, 2)",
            "decimal(0, 0)",
            "decimal(2, 9)",
            "decimal(9, 2]",
            "decimal[9,2]",
            "decimal(-1, 2)",
            "decimal(9, 2",
            "fixed[-1]",
            "fixed(16)",
            "fixed[99999999999]",
            "fixed[99999999999999999999999]",
            "geometry()",
            "geography(a,)",
            "é(",
            "ü[1]",
        ] {
            let e = text.parse::<PrimitiveType>().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::DataInvalid, "{text}");
        }
        let long = "é".repeat(1000);
        assert!(long.parse::<PrimitiveType>().is_err());
    }

    #[test]
    fn promotions_only_widen() {
        use PrimitiveType::*;
        let decimal = |precision, scale| Decimal { precision, scale };
        assert!(Int.can_promote_to(&Long) && !Long.can_promote_to(&Int));
        assert!(Float.can_promote_to(&Double) && !Double.can_promote_to(&Float));
        assert!(decimal(9, 2).can_promote_to(&decimal(18, 2)));
        assert!(!decimal(9, 2).can_promote_to(&decimal(8, 2)) && !decimal(9, 2).can_promote_to(&decimal(18, 3)));
        assert!(Date.can_promote_to(&Timestamp) && !Date.can_promote_to(&Timestamptz));
        assert!(!Int.can_promote_to(&String));
    }
}
