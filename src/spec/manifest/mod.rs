//! Manifest lists and manifests: the Avro files between a snapshot and its data files.
//!
//! Implements the spec sections "Manifests", "Manifest Lists" and "Sequence Number Inheritance". Invariant: a manifest
//! holds entries of one partition spec and of one content, data or deletes.

mod decode;
mod encode;
mod layout;
mod list;
mod partition_value;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use list::{assign_list_inheritance, read_manifest_list, write_manifest_list};
pub use reader::{Columns, ManifestReader};
pub use writer::ManifestWriter;

/// What a manifest's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManifestContent {
    /// Data files (0).
    Data,
    /// Delete files (1).
    Deletes,
}

/// Range of one partition field over a manifest's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSummary {
    /// Whether any tuple has null here.
    pub contains_null: bool,
    /// Whether any tuple has NaN here; `None` unknown.
    pub contains_nan: Option<bool>,
    /// Smallest non-null, non-NaN value, single-value binary; `None` when there is none.
    pub lower_bound: Option<Box<[u8]>>,
    /// Greatest non-null, non-NaN value, single-value binary; `None` when there is none.
    pub upper_bound: Option<Box<[u8]>>,
}

/// One manifest, as a manifest list names it. Counts are `None` only where a v1 list left them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Location as recorded.
    pub manifest_path: String,
    /// Size in bytes.
    pub manifest_length: u64,
    /// Spec of all its entries.
    pub partition_spec_id: i32,
    /// Data or deletes.
    pub content: ManifestContent,
    /// Sequence number of the commit that added it; 0 in v1; `None` until the list is written.
    pub sequence_number: Option<i64>,
    /// Smallest data sequence number of its live entries; 0 in v1; `None` until the list is written.
    pub min_sequence_number: Option<i64>,
    /// Snapshot that added it.
    pub added_snapshot_id: i64,
    /// Entries with status added.
    pub added_files_count: Option<u32>,
    /// Entries with status existing.
    pub existing_files_count: Option<u32>,
    /// Entries with status deleted.
    pub deleted_files_count: Option<u32>,
    /// Rows of added files.
    pub added_rows_count: Option<u64>,
    /// Rows of existing files.
    pub existing_rows_count: Option<u64>,
    /// Rows of deleted files.
    pub deleted_rows_count: Option<u64>,
    /// One summary a field of the spec; `None` when the list gives none.
    pub partitions: Option<Vec<FieldSummary>>,
    /// Encryption key metadata; a manifest that has any cannot be read.
    pub key_metadata: Option<Box<[u8]>>,
    /// v3: row id the first added row of a data manifest takes.
    pub first_row_id: Option<u64>,
}

impl ManifestFile {
    /// Whether it may hold live entries (unknown counts count as "may").
    pub fn has_live_files(&self) -> bool {
        self.added_files_count != Some(0) || self.existing_files_count != Some(0)
    }
}
