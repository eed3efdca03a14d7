//! JSON single-value serialization: column defaults.
//!
//! Implements the spec section "Appendix D: Single-value serialization, JSON single-value serialization". Invariant: what is
//! written reads back as the same value; what other writers leave out (seconds, fractions, the spelling of UTC) is accepted.

use serde_json::Value;
use uuid::Uuid;

use super::Literal;
use super::text::{
    date_text, decimal_text, parse_date, parse_decimal, parse_time, parse_timestamp, scale_of, split_micros,
    split_nanos, strip_utc, time_text,
};
use crate::spec::PrimitiveType;
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY};
use crate::{Error, Result};

impl Literal {
    /// The value as JSON. `ty` gives a decimal its scale.
    ///
    /// # Deviation
    /// NaN and the infinities, which JSON and the spec have no form for, are written as the strings `NaN`, `Infinity` and
    /// `-Infinity`, as Java does.
    pub fn to_json(&self, ty: &PrimitiveType) -> Value {
        let float = |v: f64, text: String| serde_json::Number::from_f64(v).map_or(Value::String(text), Value::Number);
        match self {
            Self::Boolean(v) => Value::Bool(*v),
            Self::Int(v) => Value::from(*v),
            Self::Long(v) => Value::from(*v),
            // The shortest text of the f32 read as f64, so that 0.1 stays 0.1.
            Self::Float(v) => float(v.to_string().parse().unwrap_or(f64::from(*v)), self.to_human(ty)),
            Self::Double(v) => float(*v, self.to_human(ty)),
            Self::Decimal(v) => Value::String(decimal_text(*v, scale_of(ty))),
            Self::Date(v) => Value::String(date_text(i64::from(*v))),
            Self::Time(v) => Value::String(time_text(v.saturating_mul(1000), 6)),
            Self::Timestamp(v) => Value::String(timestamp_text(split_micros(*v), 6, "")),
            Self::Timestamptz(v) => Value::String(timestamp_text(split_micros(*v), 6, "+00:00")),
            Self::TimestampNs(v) => Value::String(timestamp_text(split_nanos(*v), 9, "")),
            Self::TimestamptzNs(v) => Value::String(timestamp_text(split_nanos(*v), 9, "+00:00")),
            Self::String(v) => Value::String(v.clone()),
            Self::Uuid(v) => Value::String(v.to_string()),
            Self::Fixed(v) | Self::Binary(v) => Value::String(v.iter().map(|b| format!("{b:02x}")).collect()),
        }
    }

    /// Reads a JSON value of type `ty`. JSON null is no value: callers take it as "no default" before they come here.
    ///
    /// # Errors
    /// [`DataInvalid`](crate::ErrorKind::DataInvalid) when the value is not of that type or out of its range.
    pub fn from_json(ty: &PrimitiveType, value: &Value) -> Result<Self> {
        decode(ty, value).ok_or_else(|| Error::data_invalid(format!("JSON value {value} is no value of type {ty}")))
    }
}

fn timestamp_text((days, nanos): (i64, i64), digits: u32, zone: &str) -> String {
    format!("{}T{}{zone}", date_text(days), time_text(nanos, digits))
}

fn decode(ty: &PrimitiveType, value: &Value) -> Option<Literal> {
    use PrimitiveType as T;
    Some(match ty {
        T::Boolean => Literal::Boolean(value.as_bool()?),
        T::Int => Literal::Int(i32::try_from(value.as_i64()?).ok()?),
        T::Long => Literal::Long(value.as_i64()?),
        T::Float => Literal::Float(match value.as_str() {
            Some(text) => non_finite(text)? as f32,
            // Through the text, so that it is rounded once.
            None => value.as_number()?.to_string().parse().ok().filter(|v: &f32| v.is_finite())?,
        }),
        T::Double => Literal::Double(match value.as_str() {
            Some(text) => non_finite(text)?,
            None => value.as_f64()?,
        }),
        T::Decimal { precision, scale } => {
            let number;
            let text = match value {
                Value::Number(n) => {
                    number = n.to_string();
                    &number
                }
                other => other.as_str()?,
            };
            Literal::Decimal(parse_decimal(text, *precision, *scale)?)
        }
        T::Date => Literal::Date(i32::try_from(parse_date(value.as_str()?)?).ok()?),
        T::Time => Literal::Time(whole_micros(parse_time(value.as_str()?)?)?),
        T::Timestamp => Literal::Timestamp(micros(parse_timestamp(value.as_str()?)?)?),
        T::Timestamptz => Literal::Timestamptz(micros(parse_timestamp(strip_utc(value.as_str()?)?)?)?),
        T::TimestampNs => Literal::TimestampNs(nanos(parse_timestamp(value.as_str()?)?)?),
        T::TimestamptzNs => Literal::TimestamptzNs(nanos(parse_timestamp(strip_utc(value.as_str()?)?)?)?),
        T::String => Literal::String(value.as_str()?.to_owned()),
        T::Uuid => Literal::Uuid(Uuid::try_parse(value.as_str()?).ok()?),
        T::Fixed(length) => Literal::Fixed(hex(value.as_str()?).filter(|b| b.len() as u64 == *length)?),
        T::Binary => Literal::Binary(hex(value.as_str()?)?),
        // The spec gives these no default but null.
        T::Unknown | T::Geometry(_) | T::Geography(..) => return None,
    })
}

fn non_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Nanoseconds as microseconds, if nothing is lost.
fn whole_micros(nanos: i64) -> Option<i64> {
    (nanos % 1000 == 0).then_some(nanos / 1000)
}

/// Checked `days * unit + rest`, by way of 128 bits: the product alone may leave the range just below zero.
fn combine(days: i64, unit: i64, rest: i64) -> Option<i64> {
    i64::try_from(i128::from(days) * i128::from(unit) + i128::from(rest)).ok()
}

fn micros((days, nanos): (i64, i64)) -> Option<i64> {
    combine(days, MICROS_PER_DAY, whole_micros(nanos)?)
}

fn nanos((days, nanos): (i64, i64)) -> Option<i64> {
    combine(days, NANOS_PER_DAY, nanos)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
