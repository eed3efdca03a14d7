//! Single-value binary serialization: bounds in manifests, partition summaries.
//!
//! Implements the spec section "Appendix D: Single-value serialization, Binary single-value serialization". Invariant: what is
//! written is the one form of the spec; what is read is any width an older type of the column may have left behind.
//!
//! | type | bytes |
//! |---|---|
//! | boolean | 1: 00 false, else true |
//! | int, date | 4, little-endian |
//! | long, time, timestamps | 8, little-endian |
//! | float, double | 4, 8, little-endian |
//! | decimal | unscaled value, two's complement, big-endian, as few bytes as hold it |
//! | string | UTF-8 |
//! | uuid | 16, big-endian |
//! | fixed, binary | as they are |

use uuid::Uuid;

use super::Literal;
use crate::spec::PrimitiveType;
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY};
use crate::{Error, Result};

impl Literal {
    /// The value in single-value binary form.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Boolean(v) => vec![u8::from(*v)],
            Self::Int(v) | Self::Date(v) => v.to_le_bytes().to_vec(),
            Self::Long(v)
            | Self::Time(v)
            | Self::Timestamp(v)
            | Self::Timestamptz(v)
            | Self::TimestampNs(v)
            | Self::TimestamptzNs(v) => v.to_le_bytes().to_vec(),
            Self::Float(v) => v.to_le_bytes().to_vec(),
            Self::Double(v) => v.to_le_bytes().to_vec(),
            Self::Decimal(v) => minimal_twos_complement(*v),
            Self::String(v) => v.as_bytes().to_vec(),
            Self::Uuid(v) => v.as_bytes().to_vec(),
            Self::Fixed(v) | Self::Binary(v) => v.clone(),
        }
    }

    /// Reads single-value binary of a column whose type now is `ty`.
    ///
    /// A value written before the column was promoted has the old type's width and is promoted: 4 bytes for long
    /// (from int) and for double (from float), 4 bytes for timestamp and timestamp_ns (from date). Decimals of any width up
    /// to what fits 16 bytes are read. Bytes of a fixed may be fewer than its length, since bounds are truncated.
    ///
    /// # Errors
    /// [`DataInvalid`](crate::ErrorKind::DataInvalid) for any other width, bytes that are not UTF-8, or a date outside the range of
    /// the timestamp type it was promoted to. Callers for whom a bound is only a hint take an error as "no bound".
    pub fn from_bytes(ty: &PrimitiveType, bytes: &[u8]) -> Result<Self> {
        decode(ty, bytes).ok_or_else(|| {
            Error::data_invalid(format!("{} bytes are no single-value binary of type {ty}", bytes.len()))
        })
    }
}

fn decode(ty: &PrimitiveType, bytes: &[u8]) -> Option<Literal> {
    let int = || bytes.try_into().ok().map(i32::from_le_bytes);
    let long = || bytes.try_into().ok().map(i64::from_le_bytes);
    let float = || bytes.try_into().ok().map(f32::from_le_bytes);
    let double = || bytes.try_into().ok().map(f64::from_le_bytes);
    Some(match ty {
        PrimitiveType::Boolean => match bytes {
            [b] => Literal::Boolean(*b != 0),
            _ => return None,
        },
        PrimitiveType::Int => Literal::Int(int()?),
        PrimitiveType::Long => Literal::Long(long().or_else(|| int().map(i64::from))?),
        PrimitiveType::Float => Literal::Float(float()?),
        PrimitiveType::Double => Literal::Double(double().or_else(|| float().map(f64::from))?),
        PrimitiveType::Decimal { .. } => Literal::Decimal(read_twos_complement(bytes)?),
        PrimitiveType::Date => Literal::Date(int()?),
        PrimitiveType::Time => Literal::Time(long()?),
        PrimitiveType::Timestamp => {
            Literal::Timestamp(long().or_else(|| i64::from(int()?).checked_mul(MICROS_PER_DAY))?)
        }
        PrimitiveType::Timestamptz => Literal::Timestamptz(long()?),
        PrimitiveType::TimestampNs => {
            Literal::TimestampNs(long().or_else(|| i64::from(int()?).checked_mul(NANOS_PER_DAY))?)
        }
        PrimitiveType::TimestamptzNs => Literal::TimestamptzNs(long()?),
        PrimitiveType::String => Literal::String(std::str::from_utf8(bytes).ok()?.to_owned()),
        PrimitiveType::Uuid => Literal::Uuid(Uuid::from_slice(bytes).ok()?),
        PrimitiveType::Fixed(length) if bytes.len() as u64 <= *length => Literal::Fixed(bytes.to_vec()),
        PrimitiveType::Fixed(_) | PrimitiveType::Unknown => return None,
        PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => {
            Literal::Binary(bytes.to_vec())
        }
    })
}

/// Big-endian two's complement without redundant leading sign bytes; at least one byte. The bytes decimals are hashed by, too.
pub(crate) fn minimal_twos_complement(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign: u8 = if value < 0 { 0xff } else { 0 };
    // A leading sign byte is redundant when the byte after it starts with the same sign bit.
    let redundant = bytes.windows(2).take_while(|w| w[0] == sign && (w[1] ^ sign) & 0x80 == 0).count();
    bytes.get(redundant..).unwrap_or_default().to_vec()
}

/// Reads big-endian two's complement of 1 byte or more; `None` when it does not fit 16 bytes.
fn read_twos_complement(bytes: &[u8]) -> Option<i128> {
    let sign: u8 = if *bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let (extension, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    if extension.iter().any(|b| *b != sign) || digits.first()? & 0x80 != sign & 0x80 {
        return None;
    }
    let mut out = [sign; 16];
    out.get_mut(16 - digits.len()..)?.copy_from_slice(digits);
    Some(i128::from_be_bytes(out))
}
