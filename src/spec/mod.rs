//! The Iceberg table format, pure: no async, no I/O, no DataFusion; arrow only inside the Avro codec.
//!
//! Everything here turns bytes into values and back, or computes on values. Source: the Iceberg table specification,
//! versions 1 to 3; where it is silent, the Java reference implementation.

pub(crate) mod avro;
pub(crate) mod calendar;
pub mod data_file;
pub mod deletion_vector;
pub(crate) mod json;
pub mod literal;
pub mod manifest;
pub mod name_mapping;
pub mod partition;
pub mod properties;
pub mod puffin;
pub mod requirement;
pub mod schema;
mod schema_json;
pub mod snapshot;
pub mod sort;
pub mod summary;
pub mod table_metadata;
pub mod transform;
pub mod types;
pub mod update;

pub use data_file::{ColumnMap, DataContent, DataFile, EntryStatus, FileFormat, ManifestEntry};
pub use deletion_vector::{DeletionVector, PositionBitmap};
pub use literal::Literal;
pub use manifest::{Columns, FieldSummary, ManifestContent, ManifestFile, ManifestReader, ManifestWriter};
pub use name_mapping::{MappedField, NameMapping};
pub use partition::{PartitionField, PartitionKey, PartitionSpec, PartitionTuple};
pub use properties::TableProperties;
pub use requirement::TableRequirement;
pub use schema::Schema;
pub use snapshot::{MAIN_BRANCH, ManifestSource, Operation, RefKind, Snapshot, SnapshotRef};
pub use sort::{NullOrder, SortDirection, SortField, SortOrder};
pub use summary::SnapshotSummaryBuilder;
pub use table_metadata::{FormatVersion, NewTable, TableMetadata, TableMetadataBuilder};
pub use transform::Transform;
pub use types::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};
pub use update::{LAST_ADDED, TableUpdate};
