//! Iceberg tables for DataFusion: catalog, schema and table providers, and the scan.
//!
//! Reading only: the writing hooks of `TableProvider` refuse, because DataFusion gives them less than the statement said.

mod as_is;
mod bridge;
mod catalog;
mod definition;
mod error;
mod guard;
mod memory;
mod metadata;
mod part;
mod partition_struct;
pub mod predicate;
pub mod scalar;
pub mod scan;
mod table;

pub(crate) use as_is::{as_is, as_is_argument, wrap_as_is};
pub use catalog::{IcebergCatalogProvider, IcebergSchemaProvider, namespace_of, schema_name};
pub use definition::table_definition;
pub use error::{from_datafusion, to_datafusion};
pub use guard::{FilterPushdownGuard, guard_filter_pushdown};
pub use metadata::{MetadataTable, MetadataTableProvider};
pub(crate) use part::table_part;
pub(crate) use scalar::to_literal;
pub use scan::{FILE_COLUMN, HiddenColumns, IcebergScan, IcebergSource, POSITION_COLUMN, ROW_ID_COLUMN};
pub use table::IcebergTableProvider;
