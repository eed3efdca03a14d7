//! Random values of every type, values near others, and the bounds writers make of them.

use fastrand::Rng;
use uuid::Uuid;

use crate::spec::{Literal, PrimitiveType as T};

/// The types of columns.
pub(super) const TYPES: [T; 17] = [
    T::Boolean,
    T::Int,
    T::Int,
    T::Long,
    T::Float,
    T::Double,
    T::Double,
    T::Decimal { precision: 9, scale: 2 },
    T::Date,
    T::Time,
    T::Timestamp,
    T::Timestamptz,
    T::TimestampNs,
    T::String,
    T::String,
    T::Uuid,
    T::Binary,
];

const DAY: i64 = 86_400_000_000;

/// Small numbers, numbers around 1970's units, and the ends of the range.
fn number(rng: &mut Rng, min: i64, max: i64, unit: i64) -> i64 {
    let v = match rng.u8(..10) {
        0..=4 => rng.i64(-20..20),
        5..=6 => rng.i64(-3..3).saturating_mul(unit).saturating_add(rng.i64(-1..2)),
        7 => rng.i64(-30_000..30_000).saturating_mul(unit),
        8 => *rng.choice(&[min, min + 1, max - 1, max]).unwrap_or(&0),
        _ => rng.i64(min..=max),
    };
    v.clamp(min, max)
}

fn float(rng: &mut Rng) -> f64 {
    match rng.u8(..9) {
        0 => f64::NAN,
        1 => 0.0,
        2 => -0.0,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        5 => rng.f64(),
        _ => f64::from(rng.i8(-4..5)),
    }
}

fn text(rng: &mut Rng) -> String {
    const LETTERS: [char; 8] = ['a', 'b', 'c', 'é', '\u{7ff}', '\u{d7ff}', '\u{1F600}', char::MAX];
    let length = *rng.choice(&[0, 1, 2, 3, 4, 7, 15, 16, 17, 40]).unwrap_or(&0);
    let letters = if rng.bool() { 3 } else { LETTERS.len() };
    (0..length).map(|_| LETTERS[rng.usize(..letters)]).collect()
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    let length = *rng.choice(&[0, 1, 2, 3, 4, 15, 16, 17, 30]).unwrap_or(&0);
    (0..length).map(|_| *rng.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap_or(&0)).collect()
}

/// A value of a type.
pub(super) fn random_value(rng: &mut Rng, ty: &T) -> Literal {
    let (int_min, int_max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    match ty {
        T::Boolean => Literal::Boolean(rng.bool()),
        T::Int => Literal::Int(number(rng, int_min, int_max, 10) as i32),
        T::Long => Literal::Long(number(rng, i64::MIN, i64::MAX, 10)),
        T::Float => Literal::Float(float(rng) as f32),
        T::Double => Literal::Double(float(rng)),
        T::Decimal { .. } => Literal::Decimal(number(rng, -999_999_999, 999_999_999, 50).into()),
        // Within what a timestamp holds, which the column may be promoted to.
        T::Date => Literal::Date(number(rng, -100_000_000, 100_000_000, 31) as i32),
        T::Time => Literal::Time(number(rng, 0, DAY - 1, 3_600_000_000)),
        // Within the years that hours of an int reach.
        T::Timestamp => Literal::Timestamp(number(rng, -DAY * 80_000_000, DAY * 80_000_000, DAY)),
        T::Timestamptz => Literal::Timestamptz(number(rng, -DAY * 80_000_000, DAY * 80_000_000, DAY)),
        T::TimestampNs => Literal::TimestampNs(number(rng, i64::MIN + 1, i64::MAX, DAY * 1000)),
        T::Uuid => {
            let half = |rng: &mut Rng| *rng.choice(&[0, 1, 0x7000 << 48, 0x8000 << 48, u64::MAX]).unwrap_or(&0);
            Literal::Uuid(Uuid::from_u64_pair(half(rng), half(rng)))
        }
        T::Binary => Literal::Binary(bytes(rng)),
        _ => Literal::String(text(rng)),
    }
}

/// A value a little above or below, or one that begins alike.
pub(super) fn near(rng: &mut Rng, v: &Literal) -> Literal {
    let step = *rng.choice(&[-10i64, -1, 0, 1, 1, 2, 10]).unwrap_or(&1);
    let long = |v: i64| v.checked_add(step).unwrap_or(v);
    match v {
        Literal::Boolean(v) => Literal::Boolean(!v),
        Literal::Int(v) => Literal::Int(v.checked_add(step as i32).unwrap_or(*v)),
        Literal::Long(v) => Literal::Long(long(*v)),
        Literal::Float(v) => Literal::Float(v + step as f32),
        Literal::Double(v) => Literal::Double(v + step as f64 / 2.0),
        Literal::Decimal(v) => Literal::Decimal(v + i128::from(step)),
        Literal::Date(v) => Literal::Date(v.checked_add(step as i32).filter(|v| *v > i32::MIN).unwrap_or(*v)),
        Literal::Time(v) => Literal::Time(long(*v).clamp(0, DAY - 1)),
        Literal::Timestamp(v) => Literal::Timestamp(long(*v)),
        Literal::Timestamptz(v) => Literal::Timestamptz(long(*v)),
        Literal::TimestampNs(v) => Literal::TimestampNs(long(*v).max(i64::MIN + 1)),
        Literal::TimestamptzNs(v) => Literal::TimestamptzNs(long(*v)),
        Literal::String(v) => {
            let keep: String = v.chars().take(rng.usize(..v.chars().count() + 1)).collect();
            Literal::String(if rng.bool() { keep } else { keep + &text(rng) })
        }
        Literal::Binary(v) => {
            let mut keep = v[..rng.usize(..v.len() + 1)].to_vec();
            if rng.bool() {
                keep.extend(bytes(rng));
            }
            Literal::Binary(keep)
        }
        Literal::Uuid(v) => Literal::Uuid(Uuid::from_u128(v.as_u128().wrapping_add(step as u128))),
        Literal::Fixed(v) => Literal::Fixed(v.clone()),
    }
}

/// A lower bound: the first `width` code points or bytes.
pub(super) fn cut_down(v: &Literal, width: usize) -> Literal {
    match v {
        Literal::String(v) => Literal::String(v.chars().take(width).collect()),
        Literal::Binary(v) => Literal::Binary(v.iter().take(width).copied().collect()),
        other => other.clone(),
    }
}

/// An upper bound: cut, and then the last code point or byte that can be made one greater is. `None` when none can.
pub(super) fn cut_up(v: &Literal, width: usize) -> Option<Literal> {
    match v {
        Literal::String(v) if v.chars().count() > width => {
            let mut kept: Vec<char> = v.chars().take(width).collect();
            while let Some(last) = kept.pop() {
                let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
                if let Some(next) = next {
                    kept.push(next);
                    return Some(Literal::String(kept.into_iter().collect()));
                }
            }
            None
        }
        Literal::Binary(v) if v.len() > width => {
            let mut kept = v[..width].to_vec();
            while let Some(last) = kept.pop() {
                if let Some(next) = last.checked_add(1) {
                    kept.push(next);
                    return Some(Literal::Binary(kept));
                }
            }
            None
        }
        other => Some(other.clone()),
    }
}
