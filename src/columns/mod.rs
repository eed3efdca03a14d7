//! Columns of files as columns of the table, in Arrow.
//!
//! What types of the format are in Arrow, and how a column that an old file holds under another name, type or place
//! becomes the table's (spec section "Column Projection"). No I/O. Invariant: columns are matched by field id, at every
//! level.

mod arrow_to;
mod avro;
mod evolve;
mod primitive;

pub(crate) use arrow_to::UTC;
pub(crate) use arrow_to::VARIANT_PARTS;
pub use arrow_to::{FIELD_ID_KEY, arrow_field, arrow_schema, arrow_type};
pub(crate) use avro::AvroFile;
pub(crate) use evolve::FileColumns;
pub(crate) use primitive::{cast_primitive, checked, plain};
