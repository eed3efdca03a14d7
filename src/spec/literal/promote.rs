//! Values of a column after its type was promoted.
//!
//! Implements the promotions of the spec section "Schema Evolution".

use super::Literal;
use crate::spec::PrimitiveType;
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY};

impl Literal {
    /// The same value under a type its own type may be promoted to, or the value itself when it is of that type already.
    ///
    /// int → long, float → double, decimal → wider decimal of the same scale (the unscaled value stays), date → timestamp and
    /// timestamp_ns (midnight). Besides, a plain int is taken as a date, since writers store `day` partition values as either,
    /// and bytes pass between binary and fixed of their length. `None` for anything else, and for a date outside the range of
    /// the timestamp type.
    pub fn promote_to(self, ty: &PrimitiveType) -> Option<Self> {
        use PrimitiveType as T;
        Some(match (self, ty) {
            (Self::Int(v), T::Long) => Self::Long(i64::from(v)),
            (Self::Int(v), T::Date) => Self::Date(v),
            (Self::Float(v), T::Double) => Self::Double(f64::from(v)),
            (Self::Date(v), T::Timestamp) => Self::Timestamp(i64::from(v).checked_mul(MICROS_PER_DAY)?),
            (Self::Date(v), T::TimestampNs) => Self::TimestampNs(i64::from(v).checked_mul(NANOS_PER_DAY)?),
            (Self::Fixed(v), T::Binary | T::Geometry(_) | T::Geography(..)) => Self::Binary(v),
            (Self::Binary(v), T::Fixed(length)) if v.len() as u64 == *length => Self::Fixed(v),
            (value, ty) if value.is_of(ty) => value,
            _ => return None,
        })
    }

    /// Whether the value is stored as values of `ty` are. Decimal scale and fixed length are the type's own affair.
    pub fn is_of(&self, ty: &PrimitiveType) -> bool {
        use PrimitiveType as T;
        matches!(
            (self, ty),
            (Self::Boolean(_), T::Boolean)
                | (Self::Int(_), T::Int)
                | (Self::Long(_), T::Long)
                | (Self::Float(_), T::Float)
                | (Self::Double(_), T::Double)
                | (Self::Decimal(_), T::Decimal { .. })
                | (Self::Date(_), T::Date)
                | (Self::Time(_), T::Time)
                | (Self::Timestamp(_), T::Timestamp)
                | (Self::Timestamptz(_), T::Timestamptz)
                | (Self::TimestampNs(_), T::TimestampNs)
                | (Self::TimestamptzNs(_), T::TimestamptzNs)
                | (Self::String(_), T::String)
                | (Self::Uuid(_), T::Uuid)
                | (Self::Fixed(_), T::Fixed(_))
                | (Self::Binary(_), T::Binary | T::Geometry(_) | T::Geography(..))
        )
    }
}
