//! One test of one column, decided on facts.

use std::cmp::Ordering;

use super::Coverage;
use super::facts::{Facts, Upper};
use super::predicate::LeafOp;
use crate::spec::transform::bucket_hash;
use crate::spec::{Literal, PrimitiveType};

/// A test made ready for many evaluations: literals of the column's type, lists sorted, hashes at hand.
#[derive(Debug)]
pub(super) struct Test {
    op: LeafOp,
    /// Hash of each literal of the test, in order; `None` where the type cannot be bucketed.
    hashes: Vec<Option<i32>>,
}

impl Test {
    /// The test over a column of type `ty`; `None` when a literal is not of that type.
    pub(super) fn new(op: &LeafOp, ty: &PrimitiveType) -> Option<Self> {
        let one = |v: &Literal| v.clone().promote_to(ty);
        let list = |values: &[Literal]| {
            let mut values = values.iter().map(one).collect::<Option<Vec<_>>>()?;
            values.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
            Some(values)
        };
        let op = match op {
            LeafOp::Lt(v) => LeafOp::Lt(one(v)?),
            LeafOp::LtEq(v) => LeafOp::LtEq(one(v)?),
            LeafOp::Gt(v) => LeafOp::Gt(one(v)?),
            LeafOp::GtEq(v) => LeafOp::GtEq(one(v)?),
            LeafOp::Eq(v) => LeafOp::Eq(one(v)?),
            LeafOp::NotEq(v) => LeafOp::NotEq(one(v)?),
            LeafOp::In(values) => LeafOp::In(list(values)?),
            LeafOp::NotIn(values) => LeafOp::NotIn(list(values)?),
            LeafOp::StartsWith(_) | LeafOp::NotStartsWith(_) if *ty != PrimitiveType::String => return None,
            other => other.clone(),
        };
        let hashes = match &op {
            LeafOp::Eq(v) | LeafOp::NotEq(v) => vec![bucket_hash(v)],
            LeafOp::In(values) | LeafOp::NotIn(values) => values.iter().map(bucket_hash).collect(),
            _ => Vec::new(),
        };
        Some(Self { op, hashes })
    }

    /// How many of the rows the facts are about pass.
    ///
    /// Nulls, NaNs and ordinary values are asked separately; a test is constant over the first two.
    pub(super) fn coverage(&self, facts: &Facts) -> Coverage {
        let constant = |passes: bool| if passes { Coverage::All } else { Coverage::None };
        let kinds = [
            facts.may_null.then(|| constant(self.op == LeafOp::IsNull)),
            facts.may_nan.then(|| constant(self.passes_nan())),
            facts.may_ordinary.then(|| self.ordinary(facts)),
        ];
        kinds
            .into_iter()
            .flatten()
            .reduce(|a, b| if a == b { a } else { Coverage::Some })
            // No row of any kind: the facts contradict themselves.
            .unwrap_or(Coverage::Some)
    }

    /// Whether NaN passes: it is above every other value, and equal to itself.
    fn passes_nan(&self) -> bool {
        match &self.op {
            LeafOp::IsNull | LeafOp::NotNan | LeafOp::Lt(_) => false,
            LeafOp::NotNull | LeafOp::IsNan | LeafOp::GtEq(_) => true,
            LeafOp::LtEq(v) | LeafOp::Eq(v) => v.is_nan(),
            LeafOp::Gt(v) | LeafOp::NotEq(v) => !v.is_nan(),
            LeafOp::In(values) => values.iter().any(Literal::is_nan),
            LeafOp::NotIn(values) => !values.iter().any(Literal::is_nan),
            LeafOp::StartsWith(_) | LeafOp::NotStartsWith(_) => false,
        }
    }

    fn ordinary(&self, facts: &Facts) -> Coverage {
        let decide = |all: bool, none: bool| match (all, none) {
            (true, false) => Coverage::All,
            (false, true) => Coverage::None,
            _ => Coverage::Some,
        };
        match &self.op {
            LeafOp::IsNull | LeafOp::IsNan => Coverage::None,
            LeafOp::NotNull | LeafOp::NotNan => Coverage::All,
            LeafOp::Lt(v) | LeafOp::LtEq(v) if v.is_nan() => Coverage::All,
            LeafOp::Gt(v) | LeafOp::GtEq(v) if v.is_nan() => Coverage::None,
            LeafOp::Lt(v) => decide(facts.all_lt(v), facts.all_ge(v)),
            LeafOp::LtEq(v) => decide(facts.all_le(v), facts.all_gt(v)),
            LeafOp::Gt(v) => decide(facts.all_gt(v), facts.all_le(v)),
            LeafOp::GtEq(v) => decide(facts.all_ge(v), facts.all_lt(v)),
            LeafOp::Eq(v) => self.equal(v, facts),
            LeafOp::NotEq(v) => self.equal(v, facts).opposite(),
            LeafOp::In(values) => self.among(values, facts),
            LeafOp::NotIn(values) => self.among(values, facts).opposite(),
            LeafOp::StartsWith(prefix) => prefixed(prefix, facts),
            LeafOp::NotStartsWith(prefix) => prefixed(prefix, facts).opposite(),
        }
    }

    fn equal(&self, v: &Literal, facts: &Facts) -> Coverage {
        if v.is_nan() || facts.none_eq(v, self.hashes.first().copied().flatten()) {
            Coverage::None
        } else if facts.all_eq(v) {
            Coverage::All
        } else {
            Coverage::Some
        }
    }

    fn among(&self, values: &[Literal], facts: &Facts) -> Coverage {
        let start = values.partition_point(|v| facts.all_gt(v));
        let mut possible = values
            .iter()
            .zip(&self.hashes)
            .skip(start)
            .take_while(|(v, _)| !facts.all_lt(v) && !v.is_nan())
            .filter(|(v, hash)| !facts.none_eq(v, **hash))
            .map(|(v, _)| v)
            .peekable();
        if possible.peek().is_none() {
            Coverage::None
        } else if possible.any(|v| facts.all_eq(v) && !is_float_zero(v)) {
            Coverage::All
        } else {
            Coverage::Some
        }
    }
}

/// Whether DataFusion tells the value apart from an equal one in a list: it does so with -0.0 and 0.0 in lists of four or more
/// (but not in `=`), so a list with a zero proves nothing about zeros.
fn is_float_zero(v: &Literal) -> bool {
    match v {
        Literal::Float(v) => *v == 0.0,
        Literal::Double(v) => *v == 0.0,
        _ => false,
    }
}

/// Strings that begin with `prefix` are one range, from `prefix` itself on.
fn prefixed(prefix: &str, facts: &Facts) -> Coverage {
    if prefix.is_empty() {
        return Coverage::All;
    }
    let lower = match &facts.lower {
        Some(Literal::String(v)) => Some(v.as_str()),
        _ => None,
    };
    let upper = match &facts.upper {
        Some(Upper::Value(Literal::String(v)) | Upper::Prefix(Literal::String(v))) => Some(v.as_str()),
        _ => None,
    };
    let above = lower.is_some_and(|v| v > prefix && !v.starts_with(prefix));
    if above || facts.all_lt(&Literal::String(prefix.to_owned())) {
        return Coverage::None;
    }
    let from = lower.is_some_and(|v| v >= prefix);
    if from && upper.is_some_and(|v| v.starts_with(prefix)) { Coverage::All } else { Coverage::Some }
}
