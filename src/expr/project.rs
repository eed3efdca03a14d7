//! Facts about a source column, from facts about its partition values.
//!
//! Invariant: of every value whose partition value agrees with the given facts, the result is true. So one projection serves
//! both ways: a test that all values in the range pass, or none, is what strict and inclusive projection of the test say.

use super::facts::{BucketRange, Facts, Upper};
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY, days_of_month_start};
use crate::spec::{Literal, PrimitiveType, Transform};

/// What partition values `p` under `transform` say about their source column, whose type now is `source`. `None` when the
/// transform says nothing: void, unknown, or not defined for the type.
///
/// Null is the partition value of null and of nothing else, under every transform that is used.
pub(super) fn source_facts(transform: &Transform, source: &PrimitiveType, p: &Facts) -> Option<Facts> {
    transform.result_type(source)?;
    if *transform == Transform::Identity {
        // The value may have been written before the column was promoted.
        let today = |v: &Literal| v.clone().promote_to(source);
        return Some(Facts {
            lower: p.lower.as_ref().and_then(today),
            upper: match &p.upper {
                Some(Upper::Value(v)) => today(v).map(Upper::Value),
                _ => None,
            },
            constant: p.constant.as_ref().and_then(today),
            ..p.clone()
        });
    }
    let mut facts = Facts {
        may_null: p.may_null,
        may_nan: false,
        may_ordinary: p.may_ordinary,
        lower: None,
        upper: None,
        constant: None,
        buckets: Vec::new(),
    };
    let high = match &p.upper {
        Some(Upper::Value(v)) => Some(v),
        _ => None,
    };
    let low = p.lower.as_ref();
    match transform {
        Transform::Bucket(n) => {
            if let (Some(Literal::Int(low)), Some(Literal::Int(high))) = (low, high) {
                facts.buckets.push(BucketRange { n: *n, low: *low, high: *high });
            }
        }
        Transform::Truncate(width) => match source {
            PrimitiveType::String | PrimitiveType::Binary => cut_text(&mut facts, *width, low, high),
            _ => rounded_number(&mut facts, *width, source, low, high),
        },
        Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            facts.lower = low.and_then(|v| {
                let p = time_unit(v)?;
                // Java up to 0.10 rounded values before 1970 towards zero, so that a value of the unit before may lie here.
                // Days of dates were never rounded.
                let exact = *source == PrimitiveType::Date && *transform == Transform::Day;
                unit_start(transform, source, if p <= 0 && !exact { p - 1 } else { p }, 0)
            });
            facts.upper = high.and_then(|v| unit_start(transform, source, time_unit(v)? + 1, -1)).map(Upper::Value);
        }
        Transform::Identity | Transform::Void | Transform::Unknown(_) => return None,
    }
    Some(facts)
}

/// Values cut to `width` code points or bytes.
///
/// A partition value that is shorter than the width in bytes is whole, in whatever units the writer counted.
fn cut_text(facts: &mut Facts, width: u32, low: Option<&Literal>, high: Option<&Literal>) {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    let lengths = |v: &Literal| match v {
        Literal::String(v) => Some((v.len(), v.chars().count())),
        Literal::Binary(v) => Some((v.len(), v.len())),
        _ => None,
    };
    let fits = |v: &&Literal| lengths(v).is_some_and(|(_, units)| units <= width);
    let (low, high) = (low.filter(fits), high.filter(fits));
    facts.lower = low.cloned();
    let Some(high) = high else { return };
    if lengths(high).is_some_and(|(bytes, _)| bytes < width) {
        facts.upper = Some(Upper::Value(high.clone()));
        if low == Some(high) {
            facts.constant = Some(high.clone());
        }
    } else {
        facts.upper = Some(Upper::Prefix(high.clone()));
    }
}

/// Numbers rounded down to a multiple of `width`.
///
/// Java wraps around where that leaves the type's range, so that the smallest values may lie in one of the greatest partitions: of
/// int, and of a long that was an int when the row was written.
fn rounded_number(
    facts: &mut Facts,
    width: u32,
    source: &PrimitiveType,
    low: Option<&Literal>,
    high: Option<&Literal>,
) {
    let wide = i128::from(width);
    let number = |v: &Literal| match (source, v) {
        (PrimitiveType::Int | PrimitiveType::Long, Literal::Int(v)) => Some(i128::from(*v)),
        (PrimitiveType::Long, Literal::Long(v)) => Some(i128::from(*v)),
        (PrimitiveType::Decimal { .. }, Literal::Decimal(v)) => Some(*v),
        _ => None,
    };
    let literal = |v: i128| match source {
        PrimitiveType::Int => i32::try_from(v).ok().map(Literal::Int),
        PrimitiveType::Long => i64::try_from(v).ok().map(Literal::Long),
        _ => Some(Literal::Decimal(v)),
    };
    let (Some(low), Some(high)) = (low.and_then(number), high.and_then(number)) else { return };
    let wraps_at = |max: i128| low <= max && high > max - wide;
    let (int_max, long_max) = (i128::from(i32::MAX), i128::from(i64::MAX));
    facts.upper = high.checked_add(wide - 1).and_then(literal).map(Upper::Value);
    let lower = match source {
        // Java's intermediate sum overflows as well.
        PrimitiveType::Int | PrimitiveType::Long if width > 1 << 30 => {
            facts.upper = None;
            None
        }
        PrimitiveType::Int => (!wraps_at(int_max)).then_some(low),
        PrimitiveType::Long if wraps_at(long_max) => None,
        PrimitiveType::Long if wraps_at(int_max) => Some(low.min(i128::from(i32::MIN))),
        _ => Some(low),
    };
    facts.lower = lower.and_then(literal);
}

/// The number of a time partition; days are written as date or as int.
fn time_unit(v: &Literal) -> Option<i64> {
    match v {
        Literal::Int(v) | Literal::Date(v) => Some(i64::from(*v)),
        _ => None,
    }
}

/// The first value of time unit `p`, moved by `offset` ticks of the type; `None` outside the type's range, where there is no bound.
fn unit_start(transform: &Transform, source: &PrimitiveType, p: i64, offset: i128) -> Option<Literal> {
    let days = match transform {
        Transform::Year => days_of_month_start(p * 12),
        Transform::Month => days_of_month_start(p),
        Transform::Day | Transform::Hour => p,
        _ => return None,
    };
    let per_day = match source {
        PrimitiveType::Date => 1,
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => MICROS_PER_DAY,
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => NANOS_PER_DAY,
        _ => return None,
    };
    let ticks = i128::from(if *transform == Transform::Hour { per_day / 24 } else { per_day });
    let value = i128::from(days) * ticks + offset;
    let long = i64::try_from(value);
    match source {
        PrimitiveType::Date => i32::try_from(value).ok().map(Literal::Date),
        PrimitiveType::Timestamp => long.ok().map(Literal::Timestamp),
        PrimitiveType::Timestamptz => long.ok().map(Literal::Timestamptz),
        PrimitiveType::TimestampNs => long.ok().map(Literal::TimestampNs),
        _ => long.ok().map(Literal::TimestamptzNs),
    }
}
