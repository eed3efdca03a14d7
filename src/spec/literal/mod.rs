//! Values of primitive types.
//!
//! A [`Literal`] is a value of one primitive type: a partition value, a default, a bound or a predicate operand. The type
//! it is read under is always at hand, so a decimal holds only its unscaled value. Invariant: equality and hash are by
//! bits (NaN equals NaN, -0.0 differs from 0.0); ordering for pruning lives in [`Literal::compare`].

mod binary;
mod json;
mod promote;
mod text;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use uuid::Uuid;

pub(crate) use binary::minimal_twos_complement;
pub(crate) use text::{date_text, year_text};

/// A non-null value of a primitive type.
#[derive(Debug, Clone)]
pub enum Literal {
    /// boolean
    Boolean(bool),
    /// int
    Int(i32),
    /// long
    Long(i64),
    /// float
    Float(f32),
    /// double
    Double(f64),
    /// decimal: the unscaled value; scale is the type's
    Decimal(i128),
    /// date: days since 1970-01-01
    Date(i32),
    /// time: microseconds since midnight
    Time(i64),
    /// timestamp: microseconds since the epoch, no zone
    Timestamp(i64),
    /// timestamptz: microseconds since the epoch, UTC
    Timestamptz(i64),
    /// timestamp_ns: nanoseconds since the epoch, no zone
    TimestampNs(i64),
    /// timestamptz_ns: nanoseconds since the epoch, UTC
    TimestamptzNs(i64),
    /// string
    String(String),
    /// uuid
    Uuid(Uuid),
    /// fixed
    Fixed(Vec<u8>),
    /// binary, and geometry or geography as WKB
    Binary(Vec<u8>),
}

impl Literal {
    /// Orders two values of the same variant as the spec orders bounds: numbers by value, floats with -0.0 = 0.0 and NaN
    /// above infinity (equal to itself), strings by UTF-8 bytes, uuid and bytes unsigned lexicographically.
    /// `None` when the variants differ.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        use Literal::*;
        Some(match (self, other) {
            (Boolean(a), Boolean(b)) => a.cmp(b),
            (Int(a), Int(b)) | (Date(a), Date(b)) => a.cmp(b),
            (Long(a), Long(b))
            | (Time(a), Time(b))
            | (Timestamp(a), Timestamp(b))
            | (Timestamptz(a), Timestamptz(b))
            | (TimestampNs(a), TimestampNs(b))
            | (TimestamptzNs(a), TimestamptzNs(b)) => a.cmp(b),
            (Float(a), Float(b)) => compare_f64(f64::from(*a), f64::from(*b)),
            (Double(a), Double(b)) => compare_f64(*a, *b),
            (Decimal(a), Decimal(b)) => a.cmp(b),
            (String(a), String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Uuid(a), Uuid(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Fixed(a), Fixed(b)) | (Binary(a), Binary(b)) => a.cmp(b),
            _ => return None,
        })
    }

    /// Whether this is a float or double NaN.
    pub fn is_nan(&self) -> bool {
        match self {
            Self::Float(v) => v.is_nan(),
            Self::Double(v) => v.is_nan(),
            _ => false,
        }
    }
}

fn compare_f64(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        use Literal::*;
        match (self, other) {
            (Boolean(a), Boolean(b)) => a == b,
            (Int(a), Int(b)) | (Date(a), Date(b)) => a == b,
            (Long(a), Long(b))
            | (Time(a), Time(b))
            | (Timestamp(a), Timestamp(b))
            | (Timestamptz(a), Timestamptz(b))
            | (TimestampNs(a), TimestampNs(b))
            | (TimestamptzNs(a), TimestamptzNs(b)) => a == b,
            (Float(a), Float(b)) => canonical_f32(*a) == canonical_f32(*b),
            (Double(a), Double(b)) => canonical_f64(*a) == canonical_f64(*b),
            (Decimal(a), Decimal(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (Fixed(a), Fixed(b)) | (Binary(a), Binary(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        use Literal::*;
        std::mem::discriminant(self).hash(state);
        match self {
            Boolean(v) => v.hash(state),
            Int(v) | Date(v) => v.hash(state),
            Long(v) | Time(v) | Timestamp(v) | Timestamptz(v) | TimestampNs(v) | TimestamptzNs(v) => v.hash(state),
            Float(v) => canonical_f32(*v).hash(state),
            Double(v) => canonical_f64(*v).hash(state),
            Decimal(v) => v.hash(state),
            String(v) => v.hash(state),
            Uuid(v) => v.hash(state),
            Fixed(v) | Binary(v) => v.hash(state),
        }
    }
}

/// Bits of a float with every NaN folded into one.
fn canonical_f32(v: f32) -> u32 {
    if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() }
}

/// Bits of a double with every NaN folded into one.
fn canonical_f64(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }
}

#[cfg(test)]
mod tests;
