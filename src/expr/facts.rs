//! What is known about one column's values in a set of rows.
//!
//! Invariant: facts may say less than is true, never more. "May" flags err towards true, bounds outwards.

use std::cmp::Ordering;

use uuid::Uuid;

use crate::spec::transform::bucket_of;
use crate::spec::{DataFile, FieldSummary, Literal, PrimitiveType};

/// Text and bytes are cut to this many code points or bytes by default. A bound at least this long may be a cut value.
const DEFAULT_BOUND_LENGTH: usize = 16;

/// Knowledge about the values of one column. *Ordinary* values are neither null nor NaN.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Some row may be null.
    pub(super) may_null: bool,
    /// Some row may be NaN.
    pub(super) may_nan: bool,
    /// Some row may be ordinary.
    pub(super) may_ordinary: bool,
    /// No ordinary value is less.
    pub(super) lower: Option<Literal>,
    /// No ordinary value is greater.
    pub(super) upper: Option<Upper>,
    /// Every ordinary value equals this one.
    pub(super) constant: Option<Literal>,
    /// Every ordinary value lies in each of these.
    pub(super) buckets: Vec<BucketRange>,
}

/// An upper bound.
#[derive(Debug, Clone)]
pub(super) enum Upper {
    /// Values are at most this.
    Value(Literal),
    /// Values are less than this string or these bytes, or begin with them.
    Prefix(Literal),
}

/// Values whose bucket among `n` is in `low..=high`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketRange {
    pub(super) n: u32,
    pub(super) low: i32,
    pub(super) high: i32,
}

impl BucketRange {
    /// Whether a value with this hash cannot be among them.
    pub(super) fn excludes(&self, hash: i32) -> bool {
        !(self.low..=self.high).contains(&bucket_of(hash, self.n))
    }
}

impl Facts {
    /// Nothing known of a column of this type.
    pub(super) fn unknown(ty: &PrimitiveType) -> Self {
        Self {
            may_null: true,
            may_nan: is_float(ty),
            may_ordinary: true,
            lower: None,
            upper: None,
            constant: None,
            buckets: Vec::new(),
        }
    }

    /// Every row holds this value, or null.
    pub(super) fn of_value(value: Option<&Literal>) -> Self {
        let ordinary = value.filter(|v| !v.is_nan());
        Self {
            may_null: value.is_none(),
            may_nan: value.is_some_and(Literal::is_nan),
            may_ordinary: ordinary.is_some(),
            lower: ordinary.cloned(),
            upper: ordinary.cloned().map(Upper::Value),
            constant: ordinary.cloned(),
            buckets: Vec::new(),
        }
    }

    /// What a manifest's summary says of its partition values, which are of type `ty`.
    ///
    /// Missing bounds are taken as unknown, though the spec has them mean "all null or NaN": a writer that leaves them out would
    /// lose rows, and little is won.
    pub(super) fn of_summary(summary: &FieldSummary, ty: &PrimitiveType) -> Self {
        let mut facts = Self::unknown(ty);
        facts.may_null = summary.contains_null;
        facts.may_nan &= summary.contains_nan != Some(false);
        facts.set_bounds(ty, summary.lower_bound.as_deref(), summary.upper_bound.as_deref());
        facts
    }

    /// What a data file's metrics say of a top-level column.
    ///
    /// Counts that are missing, or contradict each other, say nothing: then nulls and NaNs are possible, also in a required
    /// column. A column without any metrics may be missing from the file, or just not be counted; nothing is concluded.
    pub(super) fn of_metrics(file: &DataFile, field_id: i32, ty: &PrimitiveType) -> Self {
        let mut facts = Self::unknown(ty);
        facts.set_file_bounds(file, field_id, ty);
        let rows = file.record_count;
        let values = file.value_counts.get(field_id);
        let nulls = file.null_value_counts.get(field_id).copied();
        let nans = if is_float(ty) { file.nan_value_counts.get(field_id).copied() } else { Some(0) };
        let others = rows.checked_sub(nulls.unwrap_or(0)).and_then(|left| left.checked_sub(nans.unwrap_or(0)));
        let contradiction =
            values.is_some_and(|values| *values != rows) || others.is_none() || others == Some(0) && facts.is_bounded();
        if contradiction {
            return facts;
        }
        // "There is none of this kind" needs its own count; "there is nothing else" the count of all values, too.
        let nothing_else = values.is_some() && others == Some(0);
        facts.may_null = nulls != Some(0);
        facts.may_nan &= nans != Some(0) && !(nothing_else && nulls == Some(rows));
        facts.may_ordinary = !nothing_else;
        facts
    }

    /// What a data file's bounds say of a column inside structs. Counts of nested columns are not to be trusted, as writers
    /// differ on what a null parent counts as.
    pub(super) fn of_nested_bounds(file: &DataFile, field_id: i32, ty: &PrimitiveType) -> Self {
        let mut facts = Self::unknown(ty);
        facts.set_file_bounds(file, field_id, ty);
        facts
    }

    fn set_file_bounds(&mut self, file: &DataFile, field_id: i32, ty: &PrimitiveType) {
        let (lower, upper) = (file.lower_bounds.get(field_id), file.upper_bounds.get(field_id));
        self.set_bounds(ty, lower.map(|v| &**v), upper.map(|v| &**v));
    }

    fn set_bounds(&mut self, ty: &PrimitiveType, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        if matches!(ty, PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) | PrimitiveType::Unknown) {
            return;
        }
        // A bound that does not decode is no bound.
        let decode = |bound: &[u8]| Literal::from_bytes(ty, bound).ok();
        let (lower, upper) = (lower.and_then(decode), upper.and_then(decode));
        if [&lower, &upper].into_iter().flatten().any(Literal::is_nan) {
            // Written where NaN was not left out of the comparison; then the other bound means nothing either.
            return;
        }
        let order = lower.as_ref().zip(upper.as_ref()).and_then(|(l, u)| l.compare(u));
        if order == Some(Ordering::Greater) {
            return;
        }
        if order == Some(Ordering::Equal) && lower.as_ref().is_some_and(is_surely_whole) {
            self.constant = lower.clone();
        }
        let equal = order == Some(Ordering::Equal);
        self.lower = lower.map(|v| if equal { v } else { widen_uuid(v, 0) });
        self.upper = upper.map(|v| Upper::Value(if equal { v } else { widen_uuid(v, u64::MAX) }));
    }

    fn is_bounded(&self) -> bool {
        self.lower.is_some() || self.upper.is_some()
    }

    /// What both say. Nothing, when they contradict each other.
    pub(super) fn intersect(self, other: Self, ty: &PrimitiveType) -> Self {
        if !self.may_ordinary && other.is_bounded() || !other.may_ordinary && self.is_bounded() {
            return Self::unknown(ty);
        }
        let mut both = Self {
            may_null: self.may_null && other.may_null,
            may_nan: self.may_nan && other.may_nan,
            may_ordinary: self.may_ordinary && other.may_ordinary,
            lower: pick(self.lower, other.lower, |a, b| a.compare(b).is_some_and(Ordering::is_ge)),
            upper: pick(self.upper, other.upper, Upper::is_tighter_than),
            constant: self.constant.or(other.constant),
            buckets: self.buckets,
        };
        both.buckets.extend(other.buckets);
        let empty = !(both.may_null || both.may_nan || both.may_ordinary);
        let inverted = both.lower.as_ref().is_some_and(|lower| both.all_lt(lower))
            || both.constant.as_ref().is_some_and(|c| both.all_lt(c) || both.all_gt(c));
        if empty || inverted { Self::unknown(ty) } else { both }
    }

    /// Every ordinary value is less than `v`.
    pub(super) fn all_lt(&self, v: &Literal) -> bool {
        match &self.upper {
            Some(Upper::Value(upper)) => upper.compare(v) == Some(Ordering::Less),
            Some(Upper::Prefix(prefix)) => prefix.compare(v) == Some(Ordering::Less) && !starts_with(v, prefix),
            None => false,
        }
    }

    /// Every ordinary value is at most `v`.
    pub(super) fn all_le(&self, v: &Literal) -> bool {
        match &self.upper {
            Some(Upper::Value(upper)) => upper.compare(v).is_some_and(Ordering::is_le),
            _ => self.all_lt(v),
        }
    }

    /// Every ordinary value is greater than `v`.
    pub(super) fn all_gt(&self, v: &Literal) -> bool {
        self.lower.as_ref().is_some_and(|lower| lower.compare(v) == Some(Ordering::Greater))
    }

    /// Every ordinary value is at least `v`.
    pub(super) fn all_ge(&self, v: &Literal) -> bool {
        self.lower.as_ref().is_some_and(|lower| lower.compare(v).is_some_and(Ordering::is_ge))
    }

    /// Every ordinary value equals `v`.
    pub(super) fn all_eq(&self, v: &Literal) -> bool {
        let equals = |c: &Literal| c.compare(v) == Some(Ordering::Equal);
        if self.constant.as_ref().is_some_and(equals) {
            return true;
        }
        // Bounds from two sources may meet. Those of text and bytes may be cut, and prove nothing by meeting.
        match (&self.lower, &self.upper) {
            (Some(lower), Some(Upper::Value(upper))) => !is_cut_in_bounds(v) && equals(lower) && equals(upper),
            _ => false,
        }
    }

    /// No ordinary value equals `v`, which hashes to `hash` if it can be bucketed.
    pub(super) fn none_eq(&self, v: &Literal, hash: Option<i32>) -> bool {
        self.all_lt(v)
            || self.all_gt(v)
            || hash.is_some_and(|hash| self.buckets.iter().any(|bucket| bucket.excludes(hash)))
    }
}

impl Upper {
    fn is_tighter_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a.compare(b).is_some_and(Ordering::is_le),
            // Below or within everything that begins with b.
            (Self::Value(a) | Self::Prefix(a), Self::Prefix(b)) => {
                a.compare(b).is_some_and(Ordering::is_le) || starts_with(a, b)
            }
            (Self::Prefix(a), Self::Value(b)) => a.compare(b) == Some(Ordering::Less) && !starts_with(b, a),
        }
    }
}

/// The tighter of two bounds, of which either may be missing.
fn pick<T>(a: Option<T>, b: Option<T>, is_tighter: impl Fn(&T, &T) -> bool) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if is_tighter(&a, &b) { a } else { b }),
        (a, b) => a.or(b),
    }
}

pub(super) fn is_float(ty: &PrimitiveType) -> bool {
    matches!(ty, PrimitiveType::Float | PrimitiveType::Double)
}

/// Whether `v`, text or bytes, begins with `prefix`.
pub(super) fn starts_with(v: &Literal, prefix: &Literal) -> bool {
    match (v, prefix) {
        (Literal::String(v), Literal::String(prefix)) => v.starts_with(prefix.as_str()),
        (Literal::Binary(v), Literal::Binary(prefix)) | (Literal::Fixed(v), Literal::Fixed(prefix)) => {
            v.starts_with(prefix)
        }
        _ => false,
    }
}

fn is_cut_in_bounds(v: &Literal) -> bool {
    matches!(v, Literal::String(_) | Literal::Binary(_) | Literal::Fixed(_))
}

/// Whether a bound is a whole value even if the writer cuts bounds and does not round the upper one up.
fn is_surely_whole(v: &Literal) -> bool {
    match v {
        Literal::String(v) => v.chars().count() < DEFAULT_BOUND_LENGTH,
        Literal::Binary(v) | Literal::Fixed(v) => v.len() < DEFAULT_BOUND_LENGTH,
        _ => true,
    }
}

/// A uuid bound with its second half made least or greatest; anything else as it is.
///
/// Java orders uuids as two signed numbers, the spec by bytes. Bounds in Java's order that differ in the sign of their first half
/// are inverted in ours and dropped; of those that do not, the first half is a bound in both orders, the second not.
fn widen_uuid(v: Literal, second_half: u64) -> Literal {
    match v {
        Literal::Uuid(v) => Literal::Uuid(Uuid::from_u64_pair(v.as_u64_pair().0, second_half)),
        other => other,
    }
}
