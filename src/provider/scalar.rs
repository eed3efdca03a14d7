//! Values of the format as DataFusion scalars, and back.

use datafusion::common::ScalarValue;

use crate::spec::{Literal, PrimitiveType};

/// `literal` in the Arrow type of `ty` (as `writer::arrow_schema` has it); null for `None`. `None` when the literal is not
/// of the type or the type has no values.
pub fn to_scalar(literal: Option<&Literal>, ty: &PrimitiveType) -> Option<ScalarValue> {
    let Some(literal) = literal else {
        return null_of(ty);
    };
    let utc = || Some("UTC".into());
    Some(match (literal, ty) {
        (Literal::Boolean(v), PrimitiveType::Boolean) => ScalarValue::Boolean(Some(*v)),
        (Literal::Int(v), PrimitiveType::Int) => ScalarValue::Int32(Some(*v)),
        (Literal::Long(v), PrimitiveType::Long) => ScalarValue::Int64(Some(*v)),
        (Literal::Float(v), PrimitiveType::Float) => ScalarValue::Float32(Some(*v)),
        (Literal::Double(v), PrimitiveType::Double) => ScalarValue::Float64(Some(*v)),
        (Literal::Decimal(v), PrimitiveType::Decimal { precision, scale }) => {
            ScalarValue::Decimal128(Some(*v), *precision, i8::try_from(*scale).ok()?)
        }
        (Literal::Date(v), PrimitiveType::Date) => ScalarValue::Date32(Some(*v)),
        (Literal::Time(v), PrimitiveType::Time) => ScalarValue::Time64Microsecond(Some(*v)),
        (Literal::Timestamp(v), PrimitiveType::Timestamp) => ScalarValue::TimestampMicrosecond(Some(*v), None),
        (Literal::Timestamptz(v), PrimitiveType::Timestamptz) => ScalarValue::TimestampMicrosecond(Some(*v), utc()),
        (Literal::TimestampNs(v), PrimitiveType::TimestampNs) => ScalarValue::TimestampNanosecond(Some(*v), None),
        (Literal::TimestamptzNs(v), PrimitiveType::TimestamptzNs) => ScalarValue::TimestampNanosecond(Some(*v), utc()),
        (Literal::String(v), PrimitiveType::String) => ScalarValue::Utf8(Some(v.clone())),
        (Literal::Uuid(v), PrimitiveType::Uuid) => ScalarValue::FixedSizeBinary(16, Some(v.as_bytes().to_vec())),
        (Literal::Fixed(v), PrimitiveType::Fixed(length)) if v.len() as u64 == *length => {
            ScalarValue::FixedSizeBinary(i32::try_from(*length).ok()?, Some(v.clone()))
        }
        (Literal::Binary(v), PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..)) => {
            ScalarValue::Binary(Some(v.clone()))
        }
        _ => return None,
    })
}

fn null_of(ty: &PrimitiveType) -> Option<ScalarValue> {
    let utc = || Some("UTC".into());
    Some(match ty {
        PrimitiveType::Boolean => ScalarValue::Boolean(None),
        PrimitiveType::Int => ScalarValue::Int32(None),
        PrimitiveType::Long => ScalarValue::Int64(None),
        PrimitiveType::Float => ScalarValue::Float32(None),
        PrimitiveType::Double => ScalarValue::Float64(None),
        PrimitiveType::Decimal { precision, scale } => {
            ScalarValue::Decimal128(None, *precision, i8::try_from(*scale).ok()?)
        }
        PrimitiveType::Date => ScalarValue::Date32(None),
        PrimitiveType::Time => ScalarValue::Time64Microsecond(None),
        PrimitiveType::Timestamp => ScalarValue::TimestampMicrosecond(None, None),
        PrimitiveType::Timestamptz => ScalarValue::TimestampMicrosecond(None, utc()),
        PrimitiveType::TimestampNs => ScalarValue::TimestampNanosecond(None, None),
        PrimitiveType::TimestamptzNs => ScalarValue::TimestampNanosecond(None, utc()),
        PrimitiveType::String => ScalarValue::Utf8(None),
        PrimitiveType::Uuid => ScalarValue::FixedSizeBinary(16, None),
        PrimitiveType::Fixed(length) => ScalarValue::FixedSizeBinary(i32::try_from(*length).ok()?, None),
        PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => ScalarValue::Binary(None),
        PrimitiveType::Unknown => ScalarValue::Null,
    })
}

/// `scalar` as a literal of exactly `ty`, only where the value is the same: integers within range, decimals without
/// losing digits, timestamps of another unit only without remainder. `None` for null and for everything else.
pub fn to_literal(scalar: &ScalarValue, ty: &PrimitiveType) -> Option<Literal> {
    if scalar.is_null() {
        return None;
    }
    Some(match ty {
        PrimitiveType::Boolean => match scalar {
            ScalarValue::Boolean(Some(v)) => Literal::Boolean(*v),
            _ => return None,
        },
        PrimitiveType::Int => Literal::Int(integer(scalar)?.try_into().ok()?),
        PrimitiveType::Long => Literal::Long(integer(scalar)?.try_into().ok()?),
        PrimitiveType::Float => match scalar {
            ScalarValue::Float32(Some(v)) => Literal::Float(*v),
            ScalarValue::Float64(Some(v)) if v.is_nan() => Literal::Float(f32::NAN),
            ScalarValue::Float64(Some(v)) if f64::from(*v as f32) == *v => Literal::Float(*v as f32),
            _ => return None,
        },
        PrimitiveType::Double => match scalar {
            ScalarValue::Float64(Some(v)) => Literal::Double(*v),
            ScalarValue::Float32(Some(v)) => Literal::Double(f64::from(*v)),
            _ => return None,
        },
        PrimitiveType::Decimal { precision, scale } => Literal::Decimal(decimal(scalar, *precision, *scale)?),
        PrimitiveType::Date => match scalar {
            ScalarValue::Date32(Some(v)) => Literal::Date(*v),
            _ => match timestamp(scalar)? {
                // A date beside a timestamp is its midnight.
                (nanos, None) if nanos.rem_euclid(NANOS_PER_DAY) == 0 => {
                    Literal::Date((nanos / NANOS_PER_DAY).try_into().ok()?)
                }
                _ => return None,
            },
        },
        PrimitiveType::Time => match scalar {
            ScalarValue::Time64Microsecond(Some(v)) => Literal::Time(*v),
            ScalarValue::Time64Nanosecond(Some(v)) if v % 1000 == 0 => Literal::Time(v / 1000),
            ScalarValue::Time32Millisecond(Some(v)) => Literal::Time(i64::from(*v) * 1000),
            ScalarValue::Time32Second(Some(v)) => Literal::Time(i64::from(*v) * 1_000_000),
            _ => return None,
        },
        PrimitiveType::Timestamp => Literal::Timestamp(micros(timestamp(scalar)?, false)?),
        PrimitiveType::Timestamptz => Literal::Timestamptz(micros(timestamp(scalar)?, true)?),
        PrimitiveType::TimestampNs => Literal::TimestampNs(nanos(timestamp(scalar)?, false)?),
        PrimitiveType::TimestamptzNs => Literal::TimestamptzNs(nanos(timestamp(scalar)?, true)?),
        PrimitiveType::String => Literal::String(scalar.try_as_str()??.to_owned()),
        PrimitiveType::Uuid => Literal::Uuid(uuid::Uuid::from_slice(bytes(scalar)?).ok()?),
        PrimitiveType::Fixed(length) => {
            let value = bytes(scalar)?;
            if value.len() as u64 != *length {
                return None;
            }
            Literal::Fixed(value.to_vec())
        }
        PrimitiveType::Binary => Literal::Binary(bytes(scalar)?.to_vec()),
        PrimitiveType::Unknown | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => return None,
    })
}

const NANOS_PER_DAY: i128 = 86_400_000_000_000;

fn integer(scalar: &ScalarValue) -> Option<i128> {
    Some(match scalar {
        ScalarValue::Int8(Some(v)) => i128::from(*v),
        ScalarValue::Int16(Some(v)) => i128::from(*v),
        ScalarValue::Int32(Some(v)) => i128::from(*v),
        ScalarValue::Int64(Some(v)) => i128::from(*v),
        ScalarValue::UInt8(Some(v)) => i128::from(*v),
        ScalarValue::UInt16(Some(v)) => i128::from(*v),
        ScalarValue::UInt32(Some(v)) => i128::from(*v),
        ScalarValue::UInt64(Some(v)) => i128::from(*v),
        // A whole number of another type, beside which the column was widened.
        ScalarValue::Float64(Some(v)) if v.trunc() == *v && v.abs() < 9_007_199_254_740_992.0 => *v as i128,
        ScalarValue::Float32(Some(v)) if v.trunc() == *v && v.abs() < 16_777_216.0 => *v as i128,
        ScalarValue::Decimal128(Some(v), _, scale) => rescale(*v, *scale, 0)?,
        _ => return None,
    })
}

fn decimal(scalar: &ScalarValue, precision: u8, scale: u8) -> Option<i128> {
    let to_scale = i8::try_from(scale).ok()?;
    let value = match scalar {
        ScalarValue::Decimal128(Some(v), _, from_scale) => rescale(*v, *from_scale, to_scale)?,
        ScalarValue::Float32(_) | ScalarValue::Float64(_) => return None,
        other => rescale(integer(other)?, 0, to_scale)?,
    };
    let limit = 10i128.checked_pow(u32::from(precision))?;
    (value.checked_abs()? < limit).then_some(value)
}

/// An unscaled value at another scale, if no digit is lost.
fn rescale(value: i128, from: i8, to: i8) -> Option<i128> {
    let shift = i32::from(to) - i32::from(from);
    let factor = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 { value.checked_mul(factor) } else { (value % factor == 0).then(|| value / factor) }
}

/// Nanoseconds since the epoch, and the zone.
fn timestamp(scalar: &ScalarValue) -> Option<(i128, Option<&str>)> {
    let (value, factor, zone) = match scalar {
        ScalarValue::TimestampSecond(Some(v), z) => (*v, 1_000_000_000, z),
        ScalarValue::TimestampMillisecond(Some(v), z) => (*v, 1_000_000, z),
        ScalarValue::TimestampMicrosecond(Some(v), z) => (*v, 1_000, z),
        ScalarValue::TimestampNanosecond(Some(v), z) => (*v, 1, z),
        ScalarValue::Date32(Some(v)) => return Some((i128::from(*v) * NANOS_PER_DAY, None)),
        _ => return None,
    };
    Some((i128::from(value) * factor, zone.as_deref()))
}

fn micros((nanos, zone): (i128, Option<&str>), zoned: bool) -> Option<i64> {
    (zone.is_some() == zoned && nanos.rem_euclid(1000) == 0).then(|| i64::try_from(nanos / 1000).ok())?
}

fn nanos((nanos, zone): (i128, Option<&str>), zoned: bool) -> Option<i64> {
    (zone.is_some() == zoned).then(|| i64::try_from(nanos).ok())?
}

fn bytes(scalar: &ScalarValue) -> Option<&[u8]> {
    match scalar {
        ScalarValue::Binary(Some(v))
        | ScalarValue::LargeBinary(Some(v))
        | ScalarValue::BinaryView(Some(v))
        | ScalarValue::FixedSizeBinary(_, Some(v)) => Some(v),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_their_value_or_are_refused() {
        let int = PrimitiveType::Int;
        assert_eq!(to_literal(&ScalarValue::Int64(Some(7)), &int), Some(Literal::Int(7)));
        assert_eq!(to_literal(&ScalarValue::Int64(Some(1 << 40)), &int), None);
        assert_eq!(to_literal(&ScalarValue::Float64(Some(1.5)), &int), None);
        assert_eq!(to_literal(&ScalarValue::Float64(Some(2.0)), &int), Some(Literal::Int(2)));
        let dec = PrimitiveType::Decimal { precision: 5, scale: 2 };
        assert_eq!(to_literal(&ScalarValue::Decimal128(Some(15), 3, 1), &dec), Some(Literal::Decimal(150)));
        assert_eq!(to_literal(&ScalarValue::Decimal128(Some(1234), 4, 3), &dec), None);
        assert_eq!(to_literal(&ScalarValue::Int64(Some(1000)), &dec), None);
        let ts = PrimitiveType::Timestamp;
        assert_eq!(to_literal(&ScalarValue::TimestampNanosecond(Some(-1000), None), &ts), Some(Literal::Timestamp(-1)));
        assert_eq!(to_literal(&ScalarValue::TimestampNanosecond(Some(-1), None), &ts), None);
        assert_eq!(to_literal(&ScalarValue::TimestampNanosecond(Some(0), Some("UTC".into())), &ts), None);
        let f = PrimitiveType::Float;
        assert_eq!(to_literal(&ScalarValue::Float64(Some(0.1)), &f), None);
        assert_eq!(to_literal(&ScalarValue::Float64(Some(0.5)), &f), Some(Literal::Float(0.5)));
    }

    #[test]
    fn scalars_have_the_type_asked_for() {
        assert_eq!(to_scalar(Some(&Literal::Int(1)), &PrimitiveType::Long), None);
        assert_eq!(to_scalar(Some(&Literal::Int(1)), &PrimitiveType::Int), Some(ScalarValue::Int32(Some(1))));
        assert_eq!(to_scalar(None, &PrimitiveType::Uuid), Some(ScalarValue::FixedSizeBinary(16, None)));
    }
}
