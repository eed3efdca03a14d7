//! Partition specs and partition tuples.
//!
//! Implements the spec section "Partitioning". Invariant: a tuple is only ever read under the spec that made it, and its
//! values stand in that spec's field order.

use std::sync::Arc;

use super::literal::Literal;
use super::transform::Transform;

/// One field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionField {
    /// Field id of the source column.
    pub source_id: i32,
    /// Partition field id, from 1000, unique in the table.
    pub field_id: i32,
    /// Name of the partition field.
    pub name: String,
    /// Transform of the source value.
    pub transform: Transform,
}

/// How a table's files are partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionSpec {
    /// Id among the table's specs.
    pub spec_id: i32,
    /// The fields, in order; empty when unpartitioned.
    pub fields: Vec<PartitionField>,
}

/// Partition values in the field order of a spec; `None` is null. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PartitionTuple(pub Arc<[Option<Literal>]>);

/// A spec id with a tuple of that spec: the identity of one partition of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// The spec that made the tuple.
    pub spec_id: i32,
    /// The values.
    pub tuple: PartitionTuple,
}
