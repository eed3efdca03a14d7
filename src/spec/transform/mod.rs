//! Partition transforms.
//!
//! Implements the spec section "Partition Transforms" and "Appendix B: 32-bit Hash Requirements". Invariant: time transforms
//! floor the stored UTC value; no session time zone, no rounding toward zero.

mod murmur3;

use std::fmt;

pub(crate) use murmur3::hash as murmur3_hash;

use super::calendar::{MICROS_PER_DAY, NANOS_PER_DAY, civil_from_days, months_from_days};
use super::literal::{Literal, date_text, minimal_twos_complement, year_text};
use super::types::PrimitiveType;
use crate::{Error, Result};

/// How a partition value is made from a column's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// Murmur3 hash modulo this number (1..).
    Bucket(u32),
    /// Value rounded down to a multiple, or the first this-many code points or bytes (1..).
    Truncate(u32),
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01T00.
    Hour,
    /// Always null: a dropped field of a v1 spec.
    Void,
    /// A transform of a later specification, kept as written; never used for pruning, never written with.
    Unknown(String),
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Bucket(n) => write!(f, "bucket[{n}]"),
            Self::Truncate(width) => write!(f, "truncate[{width}]"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Day => f.write_str("day"),
            Self::Hour => f.write_str("hour"),
            Self::Void => f.write_str("void"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

impl Transform {
    /// Reads the spelling of metadata files. Names are taken in any case; a name that is not in this version of the
    /// specification gives [`Transform::Unknown`].
    ///
    /// # Errors
    /// [`DataInvalid`](crate::ErrorKind::DataInvalid) for `bucket` and `truncate` whose parameter is not in 1..=2147483647.
    pub fn parse(text: &str) -> Result<Self> {
        let parameter = |argument: &str| {
            argument.parse().ok().filter(|n| (1..=i32::MAX.unsigned_abs()).contains(n)).ok_or_else(|| {
                Error::data_invalid(format!("transform {text:?} needs a number from 1 to {} in brackets", i32::MAX))
            })
        };
        let lower = text.to_ascii_lowercase();
        let (name, argument) = match lower.split_once('[') {
            Some((name, rest)) => (name, rest.strip_suffix(']')),
            None => (lower.as_str(), None),
        };
        Ok(match (name, argument) {
            ("bucket", Some(n)) => Self::Bucket(parameter(n)?),
            ("truncate", Some(n)) => Self::Truncate(parameter(n)?),
            _ => match lower.as_str() {
                "identity" => Self::Identity,
                "year" => Self::Year,
                "month" => Self::Month,
                "day" => Self::Day,
                "hour" => Self::Hour,
                "void" => Self::Void,
                _ => Self::Unknown(text.to_owned()),
            },
        })
    }

    /// Type of the partition values made from a source column of type `source`; `None` when the transform does not take that
    /// type, or is [`Transform::Unknown`]. `day` gives date, as Java has it; in files it may be stored as int.
    pub fn result_type(&self, source: &PrimitiveType) -> Option<PrimitiveType> {
        use PrimitiveType as T;
        let timestamp = matches!(source, T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs);
        match self {
            Self::Identity => (!matches!(source, T::Geometry(_) | T::Geography(..))).then(|| source.clone()),
            Self::Bucket(_) => (timestamp
                || matches!(
                    source,
                    T::Int
                        | T::Long
                        | T::Decimal { .. }
                        | T::Date
                        | T::Time
                        | T::String
                        | T::Uuid
                        | T::Fixed(_)
                        | T::Binary
                ))
            .then_some(T::Int),
            Self::Truncate(_) => {
                matches!(source, T::Int | T::Long | T::Decimal { .. } | T::String | T::Binary).then(|| source.clone())
            }
            Self::Year | Self::Month => (timestamp || *source == T::Date).then_some(T::Int),
            Self::Day => (timestamp || *source == T::Date).then_some(T::Date),
            Self::Hour => timestamp.then_some(T::Int),
            Self::Void => Some(source.clone()),
            Self::Unknown(_) => None,
        }
    }

    /// The partition value of a non-null column value. Null in gives null out for every transform, so nulls do not come here;
    /// `Ok(None)` is null and comes only from [`Transform::Void`].
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for an unknown transform;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a value of a type the transform does not take, and for one whose
    /// partition value leaves the range of its type: `hour` of timestamps more than 2^31 hours (245,000 years) from 1970, and
    /// `truncate` of numbers less than one width above the smallest.
    ///
    /// # Deviation
    /// Java wraps around in both cases, which makes partitions that no reader's pruning can find; an error keeps the row out.
    pub fn apply(&self, value: &Literal) -> Result<Option<Literal>> {
        let result = match self {
            Self::Identity => Some(value.clone()),
            Self::Bucket(n) => bucket_hash(value).map(|hash| Literal::Int(bucket_of(hash, *n))),
            Self::Truncate(width) => truncate(value, *width),
            Self::Year => days_of(value).and_then(|days| int(civil_from_days(days).0 - 1970)),
            Self::Month => days_of(value).and_then(|days| int(months_from_days(days))),
            Self::Day => days_of(value).and_then(|days| i32::try_from(days).ok()).map(Literal::Date),
            Self::Hour => hours_of(value).and_then(int),
            Self::Void => return Ok(None),
            Self::Unknown(text) => {
                return Err(Error::unsupported(format!(
                    "partition transform {text:?} is not known to this version; rows cannot be written under a spec that has it"
                )));
            }
        };
        match result {
            Some(value) => Ok(Some(value)),
            None => Err(Error::invalid_input(format!(
                "partition transform {self} has no value for {value:?}: wrong type, or the result is out of range"
            ))),
        }
    }

    /// The partition value as folders and people spell it, before escaping: `null`, `2017` (year), `2017-12` (month),
    /// `2017-12-01` (day), `2017-12-01-10` (hour), else the value itself. `result_type` is that of
    /// [`Transform::result_type`]; it gives a decimal its scale.
    pub fn to_human(&self, value: Option<&Literal>, result_type: &PrimitiveType) -> String {
        let Some(value) = value else { return "null".into() };
        match (self, value) {
            (Self::Year, Literal::Int(years)) => year_text(1970 + i64::from(*years)),
            (Self::Month, Literal::Int(months)) => {
                let months = i64::from(*months);
                format!("{}-{:02}", year_text(1970 + months.div_euclid(12)), months.rem_euclid(12) + 1)
            }
            (Self::Day, Literal::Int(days)) => date_text(i64::from(*days)),
            (Self::Hour, Literal::Int(hours)) => {
                let hours = i64::from(*hours);
                format!("{}-{:02}", date_text(hours.div_euclid(24)), hours.rem_euclid(24))
            }
            _ => value.to_human(result_type),
        }
    }

    /// Whether a smaller value never has a greater partition value. Then a range of partition values is a range of values.
    pub fn is_order_preserving(&self) -> bool {
        match self {
            Self::Identity | Self::Truncate(_) | Self::Year | Self::Month | Self::Day | Self::Hour => true,
            Self::Bucket(_) | Self::Void | Self::Unknown(_) => false,
        }
    }
}

/// The 32-bit hash that `bucket` is made of; `None` for types that cannot be bucketed.
pub(crate) fn bucket_hash(value: &Literal) -> Option<i32> {
    let long = |v: i64| murmur3::hash(&v.to_le_bytes());
    Some(match value {
        Literal::Int(v) | Literal::Date(v) => long(i64::from(*v)),
        Literal::Long(v) | Literal::Time(v) | Literal::Timestamp(v) | Literal::Timestamptz(v) => long(*v),
        Literal::TimestampNs(v) | Literal::TimestamptzNs(v) => long(v.div_euclid(1000)),
        Literal::Decimal(v) => murmur3::hash(&minimal_twos_complement(*v)),
        Literal::String(v) => murmur3::hash(v.as_bytes()),
        Literal::Uuid(v) => murmur3::hash(v.as_bytes()),
        Literal::Fixed(v) | Literal::Binary(v) => murmur3::hash(v),
        Literal::Boolean(_) | Literal::Float(_) | Literal::Double(_) => return None,
    })
}

/// Bucket of a hash among `n` (1..=2147483647): the sign bit is dropped, not the sign.
pub(crate) fn bucket_of(hash: i32, n: u32) -> i32 {
    let n = i32::try_from(n).unwrap_or(i32::MAX).max(1);
    (hash & i32::MAX) % n
}

/// Values rounded down to a multiple of the width; text and bytes cut. `None` on overflow and for other types.
fn truncate(value: &Literal, width: u32) -> Option<Literal> {
    Some(match value {
        Literal::Int(v) => {
            let v = i64::from(*v);
            Literal::Int(i32::try_from(v - v.rem_euclid(i64::from(width))).ok()?)
        }
        Literal::Long(v) => Literal::Long(v.checked_sub(v.rem_euclid(i64::from(width)))?),
        Literal::Decimal(v) => Literal::Decimal(v.checked_sub(v.rem_euclid(i128::from(width)))?),
        Literal::String(v) => Literal::String(truncate_text(v, width).to_owned()),
        Literal::Binary(v) => Literal::Binary(v.iter().take(usize::try_from(width).ok()?).copied().collect()),
        _ => return None,
    })
}

/// The first `width` code points.
fn truncate_text(text: &str, width: u32) -> &str {
    let end = usize::try_from(width).ok().and_then(|w| text.char_indices().nth(w)).map_or(text.len(), |(i, _)| i);
    text.get(..end).unwrap_or(text)
}

/// Days since 1970-01-01 a date or timestamp lies in.
fn days_of(value: &Literal) -> Option<i64> {
    Some(match value {
        Literal::Date(v) => i64::from(*v),
        Literal::Timestamp(v) | Literal::Timestamptz(v) => v.div_euclid(MICROS_PER_DAY),
        Literal::TimestampNs(v) | Literal::TimestamptzNs(v) => v.div_euclid(NANOS_PER_DAY),
        _ => return None,
    })
}

/// Hours since 1970-01-01T00 a timestamp lies in.
fn hours_of(value: &Literal) -> Option<i64> {
    Some(match value {
        Literal::Timestamp(v) | Literal::Timestamptz(v) => v.div_euclid(MICROS_PER_DAY / 24),
        Literal::TimestampNs(v) | Literal::TimestamptzNs(v) => v.div_euclid(NANOS_PER_DAY / 24),
        _ => return None,
    })
}

fn int(value: i64) -> Option<Literal> {
    i32::try_from(value).ok().map(Literal::Int)
}

#[cfg(test)]
mod tests;
