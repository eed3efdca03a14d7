//! Writing data and delete files.
//!
//! Implements the spec's "Appendix A: Format-specific Requirements, Parquet" and the metrics of "Data File Fields". Rows
//! come in as Arrow batches of the table's schema and leave as files plus the [`DataFile`](crate::spec::DataFile)
//! descriptions a commit needs. Invariant: a file that was not handed to the caller is deleted again, best effort, when
//! its writer fails, is aborted or is dropped.

mod arrow_from;
mod cast;
mod created;
mod data_writer;
mod fanout;
mod metrics;
mod parquet_file;
mod parquet_schema;
mod position_delete;
mod rewrite;
mod transform;
mod vector_writer;

pub use crate::columns::{FIELD_ID_KEY, arrow_field, arrow_schema, arrow_type};
pub use arrow_from::{iceberg_type_from_arrow, schema_from_arrow};
pub use cast::cast_to_table;
pub(crate) use created::CreatedFiles;
pub use data_writer::{
    DataFileWriter, DataWriterOptions, LAST_UPDATED_SEQUENCE_NUMBER, LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID,
    ROW_ID_FIELD_ID,
};
pub use position_delete::PositionDeleteWriter;
pub use rewrite::{SurvivingBatches, rewrite_file, rewrite_into, rewrite_options, surviving_batches};
pub use vector_writer::DeletionVectorWriter;

#[cfg(test)]
mod tests;
