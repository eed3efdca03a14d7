//! Partition values between Avro's physical columns and literals.
//!
//! Implements the Avro column of "Appendix A: Avro" for the types a partition may have. A stored value is read as the
//! type that the spec now gives its field, so one written before its column was promoted comes out promoted.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryBuilder, Float32Array, Float64Array,
    Int32Array, Int64Array, StringArray,
};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use uuid::Uuid;

use super::decode::{Bytes, Longs};
use crate::spec::{Literal, NestedField, PrimitiveType, Type};
use crate::{Error, Result};

/// The column of one partition field.
#[derive(Debug)]
pub(super) struct PartitionColumn<'a> {
    field: &'a NestedField,
    value_type: &'a PrimitiveType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Boolean(BooleanArray),
    Number(Longs),
    Float(Float32Array),
    Double(Float64Array),
    Text(StringArray),
    Bytes(Bytes),
    Null,
}

impl<'a> PartitionColumn<'a> {
    pub(super) fn new(column: &ArrayRef, field: &'a NestedField) -> Result<Self> {
        let value_type = primitive(field).map_err(Error::data_invalid)?;
        let values = match column.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Boolean(column.as_boolean().clone()),
            DataType::Float32 => Values::Float(column.as_primitive::<Float32Type>().clone()),
            DataType::Float64 => Values::Double(column.as_primitive::<Float64Type>().clone()),
            DataType::Utf8 => Values::Text(column.as_string::<i32>().clone()),
            DataType::Binary | DataType::FixedSizeBinary(_) => Values::Bytes(Bytes::new(Some(column), &field.name)?),
            _ => Values::Number(Longs::new(Some(column), &field.name)?),
        };
        Ok(Self { field, value_type, values })
    }

    /// The value of a row; `None` is null.
    pub(super) fn get(&self, row: usize) -> Result<Option<Literal>> {
        let stored = match &self.values {
            Values::Null => None,
            Values::Boolean(a) => a.is_valid(row).then(|| Some(Literal::Boolean(a.value(row)))),
            Values::Float(a) => a.is_valid(row).then(|| Some(Literal::Float(a.value(row)))),
            Values::Double(a) => a.is_valid(row).then(|| Some(Literal::Double(a.value(row)))),
            Values::Text(a) => a.is_valid(row).then(|| self.text(a.value(row))),
            Values::Bytes(a) => a.get(row).map(|v| self.bytes(v)),
            Values::Number(Longs::Long(a)) => a.is_valid(row).then(|| self.long(a.value(row))),
            Values::Number(Longs::Int(a)) => a.is_valid(row).then(|| self.int(a.value(row))),
            Values::Number(Longs::Absent) => None,
        };
        let Some(stored) = stored else { return Ok(None) };
        let value = match self.value_type {
            PrimitiveType::Unknown => stored,
            value_type => stored.and_then(|v| v.promote_to(value_type)),
        };
        value.map(Some).ok_or_else(|| {
            Error::data_invalid(format!(
                "row {row}: the value of partition field {} is not of type {:?}",
                self.field.name, self.value_type
            ))
        })
    }

    fn int(&self, value: i32) -> Option<Literal> {
        Some(match self.value_type {
            PrimitiveType::Date | PrimitiveType::Timestamp | PrimitiveType::TimestampNs => Literal::Date(value),
            _ => Literal::Int(value),
        })
    }

    fn long(&self, value: i64) -> Option<Literal> {
        Some(match self.value_type {
            PrimitiveType::Time => Literal::Time(value),
            PrimitiveType::Timestamp => Literal::Timestamp(value),
            PrimitiveType::Timestamptz => Literal::Timestamptz(value),
            PrimitiveType::TimestampNs => Literal::TimestampNs(value),
            PrimitiveType::TimestamptzNs => Literal::TimestamptzNs(value),
            PrimitiveType::Int | PrimitiveType::Date => return self.int(i32::try_from(value).ok()?),
            _ => Literal::Long(value),
        })
    }

    fn text(&self, value: &str) -> Option<Literal> {
        match self.value_type {
            PrimitiveType::Uuid => Uuid::try_parse(value).ok().map(Literal::Uuid),
            _ => Some(Literal::String(value.to_owned())),
        }
    }

    fn bytes(&self, value: &[u8]) -> Option<Literal> {
        match self.value_type {
            PrimitiveType::Decimal { .. } => decimal_from_bytes(value).map(Literal::Decimal),
            PrimitiveType::Uuid => Uuid::from_slice(value).ok().map(Literal::Uuid),
            PrimitiveType::String => String::from_utf8(value.to_vec()).ok().map(Literal::String),
            _ => Some(Literal::Binary(value.to_vec())),
        }
    }
}

/// The primitive type of a partition field.
fn primitive(field: &NestedField) -> Result<&PrimitiveType, String> {
    match &field.field_type {
        Type::Primitive(primitive) => Ok(primitive),
        _ => Err(format!("partition field {} is not of a primitive type", field.name)),
    }
}

/// Big-endian two's complement of 1 to 16 bytes, or of more where the further ones only repeat the sign.
fn decimal_from_bytes(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let fill = if negative { 0xff } else { 0 };
    let (sign, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut buffer = [fill; 16];
    buffer.get_mut(16 - low.len()..)?.copy_from_slice(low);
    let value = i128::from_be_bytes(buffer);
    (sign.iter().all(|b| *b == fill) && (value < 0) == negative).then_some(value)
}

/// Bytes that the unscaled value of a decimal of this precision takes in a fixed: the fewest that hold 10^precision -
/// 1.
pub(super) fn decimal_bytes(precision: u8) -> usize {
    let max = 10u128.saturating_pow(u32::from(precision)) - 1;
    (1..16).find(|n| max < 1 << (8 * n - 1)).unwrap_or(16)
}

/// The physical column of one partition field's values.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] for a value that is not of the field's type.
pub(super) fn partition_array<'a>(
    field: &NestedField,
    values: impl Iterator<Item = Option<&'a Literal>> + Clone,
) -> Result<ArrayRef> {
    let value_type = primitive(field).map_err(Error::invalid_input)?;
    let refuse = |value: &Literal| {
        Error::invalid_input(format!("value {value:?} of partition field {} is not of type {value_type:?}", field.name))
    };
    if let Some(other) = values.clone().flatten().find(|v| !v.is_of(value_type)) {
        return Err(refuse(other));
    }
    use Literal as L;
    macro_rules! collect {
        ($array:ty, $pattern:pat => $value:expr) => {
            Arc::new(
                values.map(|v| v.and_then(|v| if let $pattern = v { Some($value) } else { None })).collect::<$array>(),
            )
        };
    }
    Ok(match value_type {
        PrimitiveType::Boolean => collect!(BooleanArray, L::Boolean(v) => *v),
        PrimitiveType::Int | PrimitiveType::Date => collect!(Int32Array, L::Int(v) | L::Date(v) => *v),
        PrimitiveType::Float => collect!(Float32Array, L::Float(v) => *v),
        PrimitiveType::Double => collect!(Float64Array, L::Double(v) => *v),
        PrimitiveType::String => collect!(StringArray, L::String(v) => v.as_str()),
        PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => {
            collect!(BinaryArray, L::Binary(v) => v.as_slice())
        }
        PrimitiveType::Long
        | PrimitiveType::Time
        | PrimitiveType::Timestamp
        | PrimitiveType::Timestamptz
        | PrimitiveType::TimestampNs
        | PrimitiveType::TimestamptzNs => collect!(
            Int64Array,
            L::Long(v) | L::Time(v) | L::Timestamp(v) | L::Timestamptz(v) | L::TimestampNs(v) | L::TimestamptzNs(v) => *v
        ),
        // A type whose values are all null has no column.
        PrimitiveType::Unknown => return Err(Error::internal("a column of unknown type")),
        PrimitiveType::Uuid => fixed_array(values, 16, refuse)?,
        PrimitiveType::Decimal { precision, .. } => fixed_array(values, decimal_bytes(*precision), refuse)?,
        PrimitiveType::Fixed(length) => {
            let length = usize::try_from(*length).map_err(|_| Error::unsupported("fixed type of such a length"))?;
            fixed_array(values, length, refuse)?
        }
    })
}

/// A column of fixed length.
fn fixed_array<'a>(
    values: impl Iterator<Item = Option<&'a Literal>>,
    length: usize,
    refuse: impl Fn(&Literal) -> Error,
) -> Result<ArrayRef> {
    let size = i32::try_from(length).map_err(|_| Error::unsupported("fixed type of such a length"))?;
    let mut builder = FixedSizeBinaryBuilder::new(size);
    for value in values {
        let Some(value) = value else {
            builder.append_null();
            continue;
        };
        let appended = match value {
            Literal::Uuid(v) => builder.append_value(v.as_bytes()),
            Literal::Fixed(v) => builder.append_value(v),
            Literal::Decimal(v) => {
                let bytes = v.to_be_bytes();
                let low = bytes.get(16 - length.min(16)..).unwrap_or_default();
                // What is cut off must be sign only.
                if decimal_from_bytes(low) != Some(*v) {
                    return Err(refuse(value));
                }
                builder.append_value(low)
            }
            _ => return Err(refuse(value)),
        };
        appended.map_err(|_| refuse(value))?;
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_widths_are_those_of_other_writers() {
        let widths: Vec<usize> = [1, 2, 3, 4, 6, 7, 9, 10, 18, 19, 38].into_iter().map(decimal_bytes).collect();
        assert_eq!(widths, vec![1, 1, 2, 2, 3, 4, 4, 5, 8, 9, 16]);
    }

    #[test]
    fn decimals_of_any_width() {
        assert_eq!(decimal_from_bytes(&[0xff]), Some(-1));
        assert_eq!(decimal_from_bytes(&[0, 0x80]), Some(128));
        assert_eq!(decimal_from_bytes(&[0xff; 20]), Some(-1));
        assert_eq!(decimal_from_bytes(&[1; 20]), None);
        assert_eq!(decimal_from_bytes(&[&[0][..], &[0xff; 16]].concat()), None);
        assert_eq!(decimal_from_bytes(&[]), None);
    }

    #[test]
    fn values_come_out_promoted() {
        let get = |array: ArrayRef, ty| {
            let field = NestedField::new(1000, "p", false, Type::Primitive(ty));
            PartitionColumn::new(&array, &field).unwrap().get(0)
        };
        let int = || Arc::new(Int32Array::from(vec![3])) as ArrayRef;
        assert_eq!(get(int(), PrimitiveType::Long).unwrap(), Some(Literal::Long(3)));
        assert_eq!(get(int(), PrimitiveType::Date).unwrap(), Some(Literal::Date(3)));
        assert_eq!(get(int(), PrimitiveType::Timestamp).unwrap(), Some(Literal::Timestamp(3 * 86_400_000_000)));
        assert_eq!(get(int(), PrimitiveType::Unknown).unwrap(), Some(Literal::Int(3)));
        assert!(get(int(), PrimitiveType::String).is_err());
        let float = Arc::new(Float32Array::from(vec![1.5])) as ArrayRef;
        assert_eq!(get(float, PrimitiveType::Double).unwrap(), Some(Literal::Double(1.5)));
        let bytes = Arc::new(BinaryArray::from_vec(vec![&[0xfe]])) as ArrayRef;
        let decimal = PrimitiveType::Decimal { precision: 30, scale: 2 };
        assert_eq!(get(bytes, decimal).unwrap(), Some(Literal::Decimal(-2)));
    }

    #[test]
    fn refuses_values_of_other_types() {
        let field = |ty| NestedField::new(1000, "p", false, Type::Primitive(ty));
        let of = |ty, literal: Literal| partition_array(&field(ty), [Some(&literal)].into_iter());
        assert!(of(PrimitiveType::Int, Literal::Long(1)).is_err());
        assert!(of(PrimitiveType::Fixed(2), Literal::Fixed(vec![1])).is_err());
        assert!(of(PrimitiveType::Decimal { precision: 2, scale: 0 }, Literal::Decimal(128)).is_err());
        assert!(of(PrimitiveType::Decimal { precision: 2, scale: 0 }, Literal::Decimal(-99)).is_ok());
    }
}
