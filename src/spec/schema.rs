//! Table schemas.
//!
//! Implements the spec section "Schemas". Invariant: field ids are unique within a schema; columns are resolved by id, and
//! by name only where a user typed one.

use super::types::StructType;

/// One version of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Id among the table's schemas; 0 in a v1 table that gives none.
    pub schema_id: i32,
    /// The columns, in order.
    pub fields: StructType,
    /// Field ids of the row identifier, in the order of the metadata; informational.
    pub identifier_field_ids: Vec<i32>,
}
