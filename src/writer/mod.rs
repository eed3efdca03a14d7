//! Writing data and delete files.
//!
//! Implements the spec's "Appendix A: Format-specific Requirements, Parquet" and the metrics of "Data File Fields". Rows
//! come in as Arrow batches of the table's schema and leave as files plus the [`DataFile`](crate::spec::DataFile)
//! descriptions a commit needs. Invariant: a file that was not handed to the caller is deleted again, best effort, when
//! its writer fails, is aborted or is dropped.

mod arrow_from;
mod arrow_to;
mod cast;

pub use arrow_from::{iceberg_type_from_arrow, schema_from_arrow};
pub use arrow_to::{FIELD_ID_KEY, arrow_field, arrow_schema, arrow_type};
pub use cast::cast_to_table;
