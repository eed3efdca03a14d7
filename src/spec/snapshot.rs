//! Snapshots, their summaries, and named references to them.
//!
//! Implements the spec sections "Snapshots" and "Snapshot References". Invariant: summaries are informational; nothing
//! derives rows from them.

use std::collections::BTreeMap;

/// What a snapshot did, as its summary says. Order of declaration carries no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Only added data files.
    Append,
    /// Rewrote files without changing rows.
    Replace,
    /// Added and removed rows.
    Overwrite,
    /// Only removed rows.
    Delete,
}

/// One state of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Unique id, positive for our own.
    pub snapshot_id: i64,
    /// The snapshot it was made from; may name an expired one.
    pub parent_snapshot_id: Option<i64>,
    /// Order of commits; 0 in v1 tables.
    pub sequence_number: i64,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Where its manifests are listed.
    pub manifests: ManifestSource,
    /// What it did; `None` when an old writer left it out.
    pub operation: Option<Operation>,
    /// The other summary entries, `operation` excluded.
    pub summary: BTreeMap<String, String>,
    /// Schema current when it was made.
    pub schema_id: Option<i32>,
    /// v3: first row id given to rows it added.
    pub first_row_id: Option<u64>,
    /// v3: number of row ids it took.
    pub added_rows: Option<u64>,
    /// v3: key id for an encrypted manifest list.
    pub key_id: Option<String>,
    /// JSON fields this version does not know, kept on rewrite.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Where a snapshot's manifests are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestSource {
    /// Location of a manifest list.
    List(String),
    /// v1: the manifests' own locations.
    Inline(Vec<String>),
}

/// Branch or tag, with its retention. `None` takes the table's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefKind {
    /// A movable head.
    Branch {
        /// Snapshots to keep at least, > 0.
        min_snapshots_to_keep: Option<i32>,
        /// Age to keep snapshots for, ms.
        max_snapshot_age_ms: Option<i64>,
        /// Age to keep the ref itself for, ms; never applies to `main`.
        max_ref_age_ms: Option<i64>,
    },
    /// A fixed name.
    Tag {
        /// Age to keep the ref for, ms.
        max_ref_age_ms: Option<i64>,
    },
}

/// A named reference to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRef {
    /// The snapshot named.
    pub snapshot_id: i64,
    /// Branch or tag.
    pub kind: RefKind,
}

/// The branch that a table's current state is.
pub const MAIN_BRANCH: &str = "main";
