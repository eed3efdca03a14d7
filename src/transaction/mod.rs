//! Commits: one snapshot or none, by optimistic concurrency.
//!
//! A [`SnapshotUpdate`] collects the files that come and go; [`SnapshotUpdate::commit`] and, for
//! changes without a snapshot, [`commit_metadata`] are the only retry loops of the crate.
//! Each attempt refreshes the table, validates against *all* history since the statement's start snapshot, writes a new
//! manifest list and asks the catalog to swap. New manifests and filtered copies are reused between attempts; sequence
//! numbers, row ids, totals and the parent are not. Sources: Java `SnapshotProducer`, `MergingSnapshotProducer`,
//! `BaseRowDelta`, `BaseOverwriteFiles`; spec section "Optimistic Concurrency".
//!
//! A commit has four outcomes: committed; stale, so refresh, validate and try again; invalid, so fail and delete our own
//! new files; unknown, so keep every file and name the snapshot id to look for. Invariant: after an unknown outcome nothing
//! is deleted and nothing is tried again.

mod commit;
mod history;
mod manifests;
mod metadata;
mod queue;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::scan::position_delete_target;
use crate::spec::{DataContent, DataFile, FormatVersion, MAIN_BRANCH, Operation};
use crate::table::Table;

pub use metadata::commit_metadata;
pub use validate::Validation;

/// Summary key under which every commit records its own id, so that a retried commit recognises itself.
pub const OPERATION_ID: &str = "calve.operation-id";

/// Why a data file leaves the table, which decides how its removal is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// All its rows go.
    Whole,
    /// Its surviving rows are written again in the same commit.
    Rewritten,
}

/// How the operation of the snapshot is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateKind {
    /// From what changes: only data added is `append`, only rows removed is `delete`, else `overwrite`.
    RowDelta,
    /// Rows replaced wholesale: `overwrite`, but `delete` when no data is added.
    Overwrite,
    /// Rows unchanged, files rewritten: always `replace`.
    Replace,
}

/// The files one snapshot adds and removes, and what must hold for it to be valid.
///
/// Build it, then [`commit`](Self::commit) it once. Nothing is written before the commit. The files named as added belong
/// to the update: on failure other than [`ErrorKind::CommitUnknown`](crate::ErrorKind::CommitUnknown), and when the update
/// is dropped without a commit, they are deleted again.
#[derive(Debug)]
pub struct SnapshotUpdate {
    table: Table,
    branch: String,
    kind: UpdateKind,
    snapshot_id: i64,
    commit_id: Uuid,
    added_data: Vec<DataFile>,
    added_deletes: Vec<DataFile>,
    data_sequence_number: Option<i64>,
    removed_data: HashMap<Arc<str>, (Arc<DataFile>, Removal)>,
    removed_deletes: HashMap<DeleteIdentity, Arc<DataFile>>,
    validation: Option<Validation>,
    properties: BTreeMap<String, String>,
    /// Whether the added files go when the update is dropped.
    owns_files: bool,
}

impl Drop for SnapshotUpdate {
    fn drop(&mut self) {
        if !self.owns_files {
            return;
        }
        let paths: Vec<String> = self.added_paths().into_iter().map(str::to_string).collect();
        if let (false, Ok(runtime)) = (paths.is_empty(), tokio::runtime::Handle::try_current()) {
            let io = self.table.io.clone();
            runtime.spawn(async move { io.delete_all(paths).await });
        }
    }
}

/// What tells one delete file from another: its path, and for a vector the blob within the Puffin file.
pub(crate) type DeleteIdentity = (Arc<str>, Option<u64>);

pub(crate) fn delete_identity(file: &DataFile) -> DeleteIdentity {
    (file.file_path.clone(), file.content_offset)
}

impl SnapshotUpdate {
    /// An update of `table` on its `main` branch.
    pub fn new(table: Table) -> Self {
        let env = table.env.clone();
        Self {
            table,
            branch: MAIN_BRANCH.to_string(),
            kind: UpdateKind::RowDelta,
            snapshot_id: env.snapshot_id(),
            commit_id: env.uuid(),
            added_data: Vec::new(),
            added_deletes: Vec::new(),
            data_sequence_number: None,
            removed_data: HashMap::new(),
            removed_deletes: HashMap::new(),
            validation: None,
            properties: BTreeMap::new(),
            owns_files: true,
        }
    }

    /// Commits to this branch instead of `main`; it must exist.
    #[must_use]
    pub fn branch(mut self, name: impl Into<String>) -> Self {
        self.branch = name.into();
        self
    }

    /// How the operation is named.
    #[must_use]
    pub fn kind(mut self, kind: UpdateKind) -> Self {
        self.kind = kind;
        self
    }

    /// Gives added data files this data sequence number instead of the commit's (compaction).
    #[must_use]
    pub fn data_sequence_number(mut self, sequence_number: i64) -> Self {
        self.data_sequence_number = Some(sequence_number);
        self
    }

    /// What must hold since the statement read the table. Without it nothing is validated but that removed files are live.
    #[must_use]
    pub fn validate(mut self, validation: Validation) -> Self {
        self.validation = Some(validation);
        self
    }

    /// Adds a pair to the snapshot's summary.
    #[must_use]
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(key.into(), value.into());
        self
    }

    /// Adds a data file. A `first_row_id` it carries is dropped: the commit gives row ids.
    pub fn add_data(&mut self, mut file: DataFile) {
        file.first_row_id = None;
        self.added_data.push(file);
    }

    /// Adds a position delete file, deletion vector or equality delete file.
    pub fn add_delete(&mut self, file: DataFile) {
        self.added_deletes.push(file);
    }

    /// Removes a data file, and with it every deletion vector that addresses it.
    pub fn remove_data(&mut self, file: Arc<DataFile>, removal: Removal) {
        self.removed_data.insert(file.file_path.clone(), (file, removal));
    }

    /// Removes a delete file or deletion vector.
    pub fn remove_delete(&mut self, file: Arc<DataFile>) {
        self.removed_deletes.insert(delete_identity(&file), file);
    }

    /// Id of the snapshot this update becomes.
    pub fn snapshot_id(&self) -> i64 {
        self.snapshot_id
    }

    /// The table as it was when the update was made.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Data files added.
    pub fn added_data(&self) -> &[DataFile] {
        &self.added_data
    }

    /// Delete files and vectors added.
    pub fn added_deletes(&self) -> &[DataFile] {
        &self.added_deletes
    }

    /// Data files removed, in no order.
    pub fn removed_data(&self) -> impl Iterator<Item = (&Arc<DataFile>, Removal)> {
        self.removed_data.values().map(|(file, removal)| (file, *removal))
    }

    /// Delete files and vectors removed, in no order.
    pub fn removed_deletes(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.removed_deletes.values()
    }

    /// Whether the update changes nothing, so that committing it would make an empty snapshot.
    pub fn is_empty(&self) -> bool {
        self.added_data.is_empty()
            && self.added_deletes.is_empty()
            && self.removed_data.is_empty()
            && self.removed_deletes.is_empty()
    }

    /// What the snapshot's summary will call it.
    pub fn operation(&self) -> Operation {
        match self.kind {
            UpdateKind::Replace => Operation::Replace,
            UpdateKind::Overwrite if self.added_data.is_empty() => Operation::Delete,
            UpdateKind::Overwrite => Operation::Overwrite,
            UpdateKind::RowDelta => {
                let removes = !self.added_deletes.is_empty() || !self.removed_data.is_empty();
                match (self.added_data.is_empty(), removes) {
                    (false, false) => Operation::Append,
                    (true, _) => Operation::Delete,
                    (false, true) => Operation::Overwrite,
                }
            }
        }
    }

    /// Paths of the added files, each once: one Puffin file holds many vectors.
    fn added_paths(&self) -> HashSet<&str> {
        self.added_data.iter().chain(&self.added_deletes).map(|file| &*file.file_path).collect()
    }

    /// Refuses what the format version cannot hold, and updates that contradict themselves.
    fn check(&self, version: FormatVersion) -> Result<()> {
        if version == FormatVersion::V1 && !self.added_deletes.is_empty() {
            return Err(Error::unsupported(
                "format version 1 has no delete files; set 'format-version' = '2' or use copy-on-write",
            ));
        }
        let mut vectors = HashSet::new();
        for file in &self.added_deletes {
            if file.is_deletion_vector() {
                if version < FormatVersion::V3 {
                    return Err(Error::conflict("deletion vectors need format version 3; run the statement again"));
                }
                let Some(referenced) = &file.referenced_data_file else {
                    return Err(Error::internal("a deletion vector without referenced data file")
                        .with_context("path", &*file.file_path));
                };
                if !vectors.insert(referenced.clone()) {
                    return Err(
                        Error::internal("two deletion vectors for one data file").with_context("path", &**referenced)
                    );
                }
            } else if file.content == DataContent::PositionDeletes && version >= FormatVersion::V3 {
                return Err(Error::conflict(
                    "the table was upgraded to format version 3, which takes deletion vectors instead of position delete files; run the statement again",
                ));
            }
            if let Some(referenced) = position_delete_target(file)
                && self.removed_data.contains_key(referenced)
            {
                return Err(Error::internal("a data file is removed and gets deletes in one commit")
                    .with_context("path", referenced));
            }
        }
        let mut paths = HashSet::new();
        for file in &self.added_data {
            if !paths.insert(&file.file_path) || self.removed_data.contains_key(&file.file_path) {
                return Err(
                    Error::invalid_input("the same data file is added twice").with_context("path", &*file.file_path)
                );
            }
        }
        Ok(())
    }
}
