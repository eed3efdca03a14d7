//! Text of values: what a person, a partition folder or JSON reads, and the parsers of the JSON forms.
//!
//! Implements the text forms of the spec section "Appendix D: Single-value serialization, JSON single-value serialization" and the
//! partition value text that the Java implementation puts into paths.

use std::fmt::Write as _;

use super::Literal;
use crate::spec::PrimitiveType;
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY, civil_from_days, days_from_civil, days_in_month};

impl Literal {
    /// The value as partition folders and people spell it, before any escaping: dates and times in ISO 8601 with trailing
    /// zero units left out (zoned timestamps in UTC with `Z`), decimals with the full scale of `ty`, bytes in base64, floats as
    /// Java prints them.
    pub fn to_human(&self, ty: &PrimitiveType) -> String {
        match self {
            Self::Boolean(v) => v.to_string(),
            Self::Int(v) => v.to_string(),
            Self::Long(v) => v.to_string(),
            Self::Float(v) => float_text(f64::from(*v), format!("{v:?}"), format!("{v:e}")),
            Self::Double(v) => float_text(*v, format!("{v:?}"), format!("{v:e}")),
            Self::Decimal(v) => decimal_text(*v, scale_of(ty)),
            Self::Date(v) => date_text(i64::from(*v)),
            Self::Time(v) => trimmed_time(v.saturating_mul(1000)),
            Self::Timestamp(v) => {
                let (days, nanos) = split_micros(*v);
                format!("{}T{}", date_text(days), trimmed_time(nanos))
            }
            Self::Timestamptz(v) => {
                let (days, nanos) = split_micros(*v);
                format!("{}T{}Z", date_text(days), trimmed_time(nanos))
            }
            Self::TimestampNs(v) => {
                let (days, nanos) = split_nanos(*v);
                format!("{}T{}", date_text(days), trimmed_time(nanos))
            }
            Self::TimestamptzNs(v) => {
                let (days, nanos) = split_nanos(*v);
                format!("{}T{}Z", date_text(days), trimmed_time(nanos))
            }
            Self::String(v) => v.clone(),
            Self::Uuid(v) => v.to_string(),
            Self::Fixed(v) | Self::Binary(v) => base64(v),
        }
    }
}

/// Scale of a decimal type; 0 for others.
pub(super) fn scale_of(ty: &PrimitiveType) -> u32 {
    match ty {
        PrimitiveType::Decimal { scale, .. } => u32::from(*scale),
        _ => 0,
    }
}

/// Days and nanoseconds of the day of a timestamp in microseconds.
pub(super) fn split_micros(micros: i64) -> (i64, i64) {
    (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY) * 1000)
}

/// Days and nanoseconds of the day of a timestamp in nanoseconds.
pub(super) fn split_nanos(nanos: i64) -> (i64, i64) {
    (nanos.div_euclid(NANOS_PER_DAY), nanos.rem_euclid(NANOS_PER_DAY))
}

/// ISO date of a day counted from 1970-01-01; years beyond 9999 take a sign.
pub(crate) fn date_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{}-{month:02}-{day:02}", year_text(year))
}

/// ISO year: four digits, a sign for years before 0 and beyond 9999.
pub(crate) fn year_text(year: i64) -> String {
    match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    }
}

/// `HH:MM:SS` with this many digits of a second; `nanos` since midnight.
pub(super) fn time_text(nanos: i64, digits: u32) -> String {
    let seconds = nanos.div_euclid(1_000_000_000);
    let mut out = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = nanos.rem_euclid(1_000_000_000) / 10_i64.pow(9_u32.saturating_sub(digits));
    if digits > 0 {
        // Writing to a String cannot fail.
        let _ = write!(out, ".{fraction:0width$}", width = digits as usize);
    }
    out
}

/// `HH:MM`, and only as much of `:SS.fffffffff` as is not zero, in groups of three digits.
fn trimmed_time(nanos: i64) -> String {
    let digits = match nanos {
        n if n % 60_000_000_000 == 0 => return time_text(n, 0).chars().take(5).collect(),
        n if n % 1_000_000_000 == 0 => 0,
        n if n % 1_000_000 == 0 => 3,
        n if n % 1000 == 0 => 6,
        _ => 9,
    };
    time_text(nanos, digits)
}

/// Unscaled value with its point set; keeps trailing zeros.
pub(super) fn decimal_text(unscaled: i128, scale: u32) -> String {
    let scale = scale as usize;
    let mut digits = unscaled.unsigned_abs().to_string();
    if scale > 0 {
        if digits.len() <= scale {
            digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
        }
        digits.insert(digits.len() - scale, '.');
    }
    if unscaled < 0 { format!("-{digits}") } else { digits }
}

/// Reads a decimal of at most `precision` digits, exactly: a plain or exponent form whose value has `scale` digits after
/// the point, or fewer.
pub(super) fn parse_decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, mantissa.get(1..)?),
        b'+' => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i128::from(b - b'0'))?;
    }
    let shift = i32::from(scale).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if shift >= 0 && value != 0 {
        value = value.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?;
    } else if value != 0 {
        let divisor = 10_i128.checked_pow(shift.unsigned_abs())?;
        if value % divisor != 0 {
            return None;
        }
        value /= divisor;
    }
    if value >= 10_i128.checked_pow(u32::from(precision))? {
        return None;
    }
    Some(if negative { -value } else { value })
}

/// Days since 1970-01-01 of an ISO date.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let mut parts = digits.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(4..=7).contains(&year.len()) || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (year, month, day) = (digits_value(year)?, digits_value(month)?, digits_value(day)?);
    let year = if negative { -year } else { year };
    (day >= 1 && day <= days_in_month(year, month)).then(|| days_from_civil(year, month, day))
}

/// Nanoseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.f` with up to nine digits.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let (hour, minute) = (two_digits(parts.next()?)?, two_digits(parts.next()?)?);
    let second = parts.next().map_or(Some(0), two_digits)?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = if fraction.is_empty() {
        0
    } else {
        digits_value(fraction)? * 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?)
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

/// Days and nanoseconds of the day of `date T time`.
pub(super) fn parse_timestamp(text: &str) -> Option<(i64, i64)> {
    let (date, time) = text.split_once(['T', ' '])?;
    Some((parse_date(date)?, parse_time(time)?))
}

/// Cuts the zone off a timestamp; `None` unless it says UTC.
pub(super) fn strip_utc(text: &str) -> Option<&str> {
    ["Z", "+00:00", "-00:00"].iter().find_map(|zone| text.strip_suffix(zone))
}

/// Value of a run of ASCII digits short enough for an i64.
fn digits_value(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn two_digits(text: &str) -> Option<i64> {
    if text.len() == 2 { digits_value(text) } else { None }
}

/// A float as Java prints it: `plain` between 1e-3 and 1e7, else `scientific` with a capital E and a point.
fn float_text(value: f64, plain: String, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return plain;
    }
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => format!("{mantissa}E{exponent}"),
        Some((mantissa, exponent)) => format!("{mantissa}.0E{exponent}"),
        None => scientific,
    }
}

/// Base64 of RFC 4648 section 4, padded.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |acc, b| acc << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
