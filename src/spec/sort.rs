//! Sort orders.
//!
//! Implements the spec section "Sorting".

use super::transform::Transform;

/// Ascending or descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortDirection {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Where nulls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullOrder {
    /// Nulls before values.
    First,
    /// Nulls after values.
    Last,
}

/// One key of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortField {
    /// Transform applied before comparing.
    pub transform: Transform,
    /// Field id of the source column.
    pub source_id: i32,
    /// Direction.
    pub direction: SortDirection,
    /// Null placement.
    pub null_order: NullOrder,
}

/// A sort order; id 0 is always the unsorted order with no fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortOrder {
    /// Id among the table's sort orders.
    pub order_id: i32,
    /// Keys, most significant first.
    pub fields: Vec<SortField>,
}
