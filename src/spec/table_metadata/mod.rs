//! Table metadata: the JSON file that is a table's state.
//!
//! Implements the spec sections "Table Metadata" and "Appendix C: JSON serialization". Invariants: parsing is lenient (missing
//! optional fields, unknown fields), writing is strict per version; unknown JSON fields survive a rewrite; every change
//! goes through the builder.

mod builder;
#[cfg(test)]
mod builder_tests;
#[cfg(test)]
mod golden_tests;
mod parse;
mod rules;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

pub use builder::{NewTable, TableMetadataBuilder};

use super::partition::PartitionSpec;
use super::schema::Schema;
use super::snapshot::{Snapshot, SnapshotRef};
use super::sort::SortOrder;
use super::types::NestedField;
use crate::{Error, Result};

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

impl FormatVersion {
    /// The version as a number.
    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// The version of this number; `Unsupported` for a later one, `DataInvalid` for none.
    pub fn from_number(number: i64) -> Result<Self> {
        match number {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            3 => Ok(Self::V3),
            n if n > 3 => Err(Error::unsupported(format!("format version {n}; this version reads 1 to 3"))),
            n => Err(Error::data_invalid(format!("{n} is not a format version"))),
        }
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl TableMetadata {
    /// The current schema. An error only if the struct was put together by hand.
    pub fn current_schema(&self) -> Result<&Arc<Schema>> {
        let id = self.current_schema_id;
        self.schema_by_id(id)
            .ok_or_else(|| Error::data_invalid(format!("current-schema-id {id} is not among the schemas")))
    }

    /// The schema with this id.
    pub fn schema_by_id(&self, id: i32) -> Option<&Arc<Schema>> {
        self.schemas.iter().find(|s| s.schema_id == id)
    }

    /// The schema to read a snapshot with under time travel: the one it was made under, else the current one.
    pub fn schema_of_snapshot(&self, snapshot: &Snapshot) -> Result<&Arc<Schema>> {
        match snapshot.schema_id.and_then(|id| self.schema_by_id(id)) {
            Some(schema) => Ok(schema),
            None => self.current_schema(),
        }
    }

    /// A field by id: of the current schema, else of the newest schema that has it.
    pub fn field_of_any_schema(&self, field_id: i32) -> Option<&Arc<NestedField>> {
        let current = self.schema_by_id(self.current_schema_id).and_then(|s| s.field_by_id(field_id));
        current.or_else(|| {
            let having = self.schemas.iter().filter_map(|s| Some((s.schema_id, s.field_by_id(field_id)?)));
            having.max_by_key(|(id, _)| *id).map(|(_, field)| field)
        })
    }

    /// The spec new files are written under. An error only if the struct was put together by hand.
    pub fn default_spec(&self) -> Result<&Arc<PartitionSpec>> {
        let id = self.default_spec_id;
        self.spec_by_id(id).ok_or_else(|| Error::data_invalid(format!("default-spec-id {id} is not among the specs")))
    }

    /// The partition spec with this id.
    pub fn spec_by_id(&self, id: i32) -> Option<&Arc<PartitionSpec>> {
        self.partition_specs.iter().find(|s| s.spec_id == id)
    }

    /// The order new files are sorted by; `None` only if the struct was put together by hand.
    pub fn default_sort_order(&self) -> Option<&Arc<SortOrder>> {
        self.sort_order_by_id(self.default_sort_order_id)
    }

    /// The sort order with this id.
    pub fn sort_order_by_id(&self, id: i32) -> Option<&Arc<SortOrder>> {
        self.sort_orders.iter().find(|o| o.order_id == id)
    }

    /// The snapshot with this id.
    pub fn snapshot_by_id(&self, id: i64) -> Option<&Arc<Snapshot>> {
        self.snapshots.iter().find(|s| s.snapshot_id == id)
    }

    /// Head of `main`; `None` for a table without data.
    pub fn current_snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.snapshot_by_id(self.current_snapshot_id?)
    }

    /// Snapshot a branch or tag names.
    pub fn snapshot_for_ref(&self, name: &str) -> Option<&Arc<Snapshot>> {
        self.snapshot_by_id(self.refs.get(name)?.snapshot_id)
    }

    /// The snapshot and its ancestors, newest first, up to the first that is unknown or has no parent. Ends on a cycle.
    pub fn ancestors_of(&self, snapshot_id: i64) -> impl Iterator<Item = &Arc<Snapshot>> {
        let mut rest: HashMap<i64, &Arc<Snapshot>> = self.snapshots.iter().map(|s| (s.snapshot_id, s)).collect();
        let mut next = Some(snapshot_id);
        std::iter::from_fn(move || {
            let snapshot = rest.remove(&next?)?;
            next = snapshot.parent_snapshot_id;
            Some(snapshot)
        })
    }

    /// Whether `ancestor` is `descendant` or one of its ancestors.
    pub fn is_ancestor_of(&self, ancestor: i64, descendant: i64) -> bool {
        self.ancestors_of(descendant).any(|s| s.snapshot_id == ancestor)
    }

    /// Sequence number the next snapshot takes: 0 in v1.
    pub fn next_sequence_number(&self) -> i64 {
        match self.format_version {
            FormatVersion::V1 => 0,
            _ => self.last_sequence_number.saturating_add(1),
        }
    }

    /// `now_ms`, or the time of the last change when the clock is behind it: timestamps of a table never go back, and
    /// other readers refuse a table where they do.
    pub fn next_timestamp_ms(&self, now_ms: i64) -> i64 {
        let logged = self.snapshot_log.last().map_or(i64::MIN, |(ms, _)| *ms);
        now_ms.max(self.last_updated_ms).max(logged)
    }
}
