//! Which files a predicate can, cannot or must match, from metadata alone.
//!
//! Implements the spec section "Scan Planning" and, for whole-file deletes, its strict counterpart. Invariant: an answer is given
//! only where it is proven for SQL's three-valued logic and DataFusion's order of floats (NaN greatest, -0.0 = 0.0): of
//! [`Coverage::All`] every row matches, of [`Coverage::None`] none does; everything else is [`Coverage::Some`].
//!
//! There is one evaluator for pruning ("may any row match?") and for whole-file deletes ("does every row match?").
//! Partition values are turned into ranges of the source column, file metrics are ranges already; both are intersected into
//! the facts about one column, and each leaf is decided on those facts.

mod evaluator;
mod facts;
mod leaf;
mod partition_set;
mod predicate;
mod project;

pub use evaluator::FileEvaluator;
pub use partition_set::PartitionSet;
pub use predicate::{LeafOp, Predicate};

/// How much of a set of rows a predicate is true for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// Proven: true for no row.
    None,
    /// Anything; what is answered when nothing is proven.
    Some,
    /// Proven: true for every row, so that none is null or false.
    All,
}

impl Coverage {
    /// Coverage of a conjunction.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, Self::All) => Self::All,
            _ => Self::Some,
        }
    }

    /// Coverage of a disjunction.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, Self::None) => Self::None,
            _ => Self::Some,
        }
    }

    /// Coverage of the opposite test, for rows where exactly one of the two is true.
    fn opposite(self) -> Self {
        match self {
            Self::None => Self::All,
            Self::Some => Self::Some,
            Self::All => Self::None,
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
