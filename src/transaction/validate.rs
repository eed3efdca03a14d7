//! Conflict rules: what other commits since the start snapshot make a statement's commit invalid.
//!
//! Implements semantics of Java's `MergingSnapshotProducer` validations, one pure function a rule, over [`Changes`], the
//! added and removed files of every snapshot between start and head. Deviations from Java are stricter: vectors are
//! compared by data file path alone, never through a filter, and a file removed whole is validated as a rewritten one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expr::{Coverage, FileEvaluator, Predicate};
use crate::spec::properties::IsolationLevel;
use crate::spec::{DataContent, DataFile, ManifestEntry, Operation, TableMetadata};

use super::Removal;

/// What must not have happened since a statement read the table.
///
/// Data files that the update removes are always validated once a validation is set: no position delete or vector may have
/// been added for them since, and for rewritten ones no equality delete that could apply.
#[derive(Debug, Clone)]
pub struct Validation {
    start_snapshot_id: Option<i64>,
    conflict_filter: Predicate,
    reject_added_data: bool,
    reject_new_deletes: bool,
    referenced: HashSet<Arc<str>>,
    referenced_may_be_deleted: bool,
}

impl Validation {
    /// Rules of a DELETE: under serializable isolation no data that may match `conflict_filter` may have been added; a data
    /// file that new deletes address may have been removed by another DELETE, by nothing else.
    ///
    /// `start_snapshot_id` is the snapshot the statement read, `None` when the table had none.
    pub fn for_delete(start_snapshot_id: Option<i64>, isolation: IsolationLevel, conflict_filter: Predicate) -> Self {
        Self {
            start_snapshot_id,
            conflict_filter,
            reject_added_data: isolation == IsolationLevel::Serializable,
            reject_new_deletes: false,
            referenced: HashSet::new(),
            referenced_may_be_deleted: true,
        }
    }

    /// Rules of an UPDATE or MERGE: as for DELETE, and no delete that may match the filter may have been added, and every
    /// data file that new deletes address must still be there.
    pub fn for_update(start_snapshot_id: Option<i64>, isolation: IsolationLevel, conflict_filter: Predicate) -> Self {
        Self {
            reject_new_deletes: true,
            referenced_may_be_deleted: false,
            ..Self::for_delete(start_snapshot_id, isolation, conflict_filter)
        }
    }

    /// Names data files that the update's new deletes address.
    #[must_use]
    pub fn referencing(mut self, paths: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.referenced.extend(paths);
        self
    }

    /// The snapshot the statement read.
    pub fn start_snapshot_id(&self) -> Option<i64> {
        self.start_snapshot_id
    }
}

/// A file that a commit since start added or removed, with that commit's operation.
pub(crate) type Change = (Operation, Arc<ManifestEntry>);

/// Everything that commits since the start snapshot did.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) added_data: Vec<Change>,
    pub(crate) deleted_data: Vec<Change>,
    pub(crate) added_deletes: Vec<Change>,
}

/// Applies every rule of `validation`; the first breach is a [`Conflict`](crate::ErrorKind::Conflict) error.
///
/// Returns the referenced data files that a concurrent DELETE removed: deletes for them have nothing left to do.
pub(crate) fn validate(
    validation: &Validation,
    changes: &Changes,
    metadata: &TableMetadata,
    removed: &HashMap<Arc<str>, (Arc<DataFile>, Removal)>,
) -> Result<HashSet<Arc<str>>> {
    let filter = FileEvaluator::new(&validation.conflict_filter, metadata);
    if validation.reject_added_data {
        no_added_data(changes, &filter)?;
    }
    if validation.reject_new_deletes {
        no_new_deletes(changes, &filter)?;
    }
    no_new_deletes_for_removed(changes, removed, metadata)?;
    no_new_vectors(changes, &validation.referenced)?;
    referenced_exist(changes, &validation.referenced, validation.referenced_may_be_deleted)
}

fn no_added_data(changes: &Changes, filter: &FileEvaluator) -> Result<()> {
    for (operation, entry) in &changes.added_data {
        if matches!(operation, Operation::Append | Operation::Overwrite)
            && filter.evaluate(&entry.data_file) != Coverage::None
        {
            return Err(conflict(
                "another commit added a data file that may hold matching rows",
                &entry.data_file.file_path,
            ));
        }
    }
    Ok(())
}

fn no_new_deletes(changes: &Changes, filter: &FileEvaluator) -> Result<()> {
    for (_, entry) in &changes.added_deletes {
        // Metrics of position deletes describe paths, not rows: only the partition can tell.
        if filter.evaluate_partition(&entry.data_file.partition_key()) != Coverage::None {
            return Err(conflict("another commit deleted rows that may match", &entry.data_file.file_path));
        }
    }
    Ok(())
}

fn no_new_deletes_for_removed(
    changes: &Changes,
    removed: &HashMap<Arc<str>, (Arc<DataFile>, Removal)>,
    metadata: &TableMetadata,
) -> Result<()> {
    if removed.is_empty() || changes.added_deletes.is_empty() {
        return Ok(());
    }
    for (_, entry) in &changes.added_deletes {
        let delete = &entry.data_file;
        let hit = match delete.content {
            DataContent::Data => None,
            DataContent::PositionDeletes => match crate::scan::position_delete_target(delete) {
                Some(path) => removed.get(path).map(|(file, _)| file),
                // Its rows name their files; without reading them any file of the partition may be meant.
                None => {
                    removed.values().map(|(file, _)| file).find(|file| file.partition_key() == delete.partition_key())
                }
            },
            DataContent::EqualityDeletes => {
                let global = metadata.spec_by_id(delete.spec_id).is_none_or(|spec| spec.is_unpartitioned());
                removed
                    .values()
                    .filter(|(_, removal)| *removal == Removal::Rewritten)
                    .map(|(file, _)| file)
                    .find(|file| global || file.partition_key() == delete.partition_key())
            }
        };
        if let Some(file) = hit {
            return Err(conflict(
                "another commit deleted rows of a data file that this statement removes",
                &file.file_path,
            ));
        }
    }
    Ok(())
}

fn no_new_vectors(changes: &Changes, referenced: &HashSet<Arc<str>>) -> Result<()> {
    for (_, entry) in &changes.added_deletes {
        if entry.data_file.is_deletion_vector()
            && let Some(path) = &entry.data_file.referenced_data_file
            && referenced.contains(path)
        {
            return Err(conflict("another commit wrote a deletion vector for the same data file", path));
        }
    }
    Ok(())
}

fn referenced_exist(
    changes: &Changes,
    referenced: &HashSet<Arc<str>>,
    may_be_deleted: bool,
) -> Result<HashSet<Arc<str>>> {
    let mut gone = HashSet::new();
    for (operation, entry) in &changes.deleted_data {
        let path = &entry.data_file.file_path;
        if referenced.contains(path) {
            if !may_be_deleted || *operation != Operation::Delete {
                return Err(conflict("another commit removed a data file that this statement deletes rows from", path));
            }
            gone.insert(path.clone());
        }
    }
    Ok(gone)
}

fn conflict(what: &str, path: &str) -> Error {
    Error::conflict(format!("{what}; run the statement again")).with_context("file", path)
}
