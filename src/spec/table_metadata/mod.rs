//! Table metadata: the JSON file that is a table's state.
//!
//! Implements the spec sections "Table Metadata" and "Appendix C: JSON serialization". Invariants: parsing is lenient (missing
//! optional fields, unknown fields), writing is strict per version; unknown JSON fields survive a rewrite; every change
//! goes through the builder.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::partition::PartitionSpec;
use super::schema::Schema;
use super::snapshot::{Snapshot, SnapshotRef};
use super::sort::SortOrder;

/// Format version of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatVersion {
    /// Analytic tables without row-level deletes.
    V1,
    /// Row-level deletes.
    V2,
    /// Deletion vectors, defaults, row lineage.
    V3,
}

/// A table's state. Ids refer within the struct; the builder keeps them consistent.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMetadata {
    /// Format version.
    pub format_version: FormatVersion,
    /// Identity of the table; absent in old v1 tables.
    pub table_uuid: Option<Uuid>,
    /// Base location, without trailing slash.
    pub location: String,
    /// Highest sequence number given out; 0 in v1.
    pub last_sequence_number: i64,
    /// Milliseconds since the epoch of the last change.
    pub last_updated_ms: i64,
    /// Highest field id given out.
    pub last_column_id: i32,
    /// All schemas, in file order.
    pub schemas: Vec<Arc<Schema>>,
    /// Id of the current schema.
    pub current_schema_id: i32,
    /// All partition specs, in file order.
    pub partition_specs: Vec<Arc<PartitionSpec>>,
    /// Id of the spec new files are written under.
    pub default_spec_id: i32,
    /// Highest partition field id given out (999 when none).
    pub last_partition_id: i32,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
    /// Head of `main`; `None` when the table has no snapshot (-1, null and missing read alike).
    pub current_snapshot_id: Option<i64>,
    /// All known snapshots, in file order.
    pub snapshots: Vec<Arc<Snapshot>>,
    /// Changes of the current snapshot: (ms, snapshot id), oldest first.
    pub snapshot_log: Vec<(i64, i64)>,
    /// Earlier metadata files: (ms, location), oldest first.
    pub metadata_log: Vec<(i64, String)>,
    /// All sort orders.
    pub sort_orders: Vec<Arc<SortOrder>>,
    /// Order new files are sorted by.
    pub default_sort_order_id: i32,
    /// Branches and tags; holds `main` whenever there is a current snapshot.
    pub refs: HashMap<String, SnapshotRef>,
    /// Table statistics files, verbatim.
    pub statistics: Vec<serde_json::Value>,
    /// Partition statistics files, verbatim.
    pub partition_statistics: Vec<serde_json::Value>,
    /// v3: first row id not given out.
    pub next_row_id: u64,
    /// v3: encryption keys, verbatim.
    pub encryption_keys: Vec<serde_json::Value>,
    /// JSON fields this version does not know, kept on rewrite.
    pub extra: serde_json::Map<String, serde_json::Value>,
}
