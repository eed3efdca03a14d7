//! Conflict rules: what other commits since the start snapshot make a statement's commit invalid.
//!
//! Implements semantics of Java's `MergingSnapshotProducer` validations, one function a rule, over [`Changes`], the added
//! and removed files of every snapshot between start and head. All rules are pure but the one on position delete files of
//! several data files, which reads them: what lies in the same partition need not concern the same file.
//!
//! # Deviation
//! Stricter than Java: vectors are compared by data file path alone, never through a filter, and a file removed whole is
//! validated as a rewritten one, but for equality deletes, which take rows and leave none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Coverage, FileEvaluator, PartitionSet, Predicate};
use crate::scan::{DeleteFile, DeleteFileIndex, DeleteLoader, FileScanTask, position_delete_target};
use crate::spec::properties::IsolationLevel;
use crate::spec::{DataFile, Operation};
use crate::table::Table;

use super::Removal;
use super::history::Changes;

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
    reject_removed_data: bool,
    referenced: HashSet<Arc<str>>,
    referenced_may_be_deleted: bool,
    partitions: Option<Arc<PartitionSet>>,
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
            reject_removed_data: false,
            referenced: HashSet::new(),
            referenced_may_be_deleted: true,
            partitions: None,
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

    /// Adds that under serializable isolation no data file may have been removed that may hold rows which match the filter:
    /// the statement added rows because it found none like them among the rows it read, or added none because it did.
    ///
    /// # Deviation
    /// Java does not look at removed files, so that an insert-only MERGE may leave out a row for one that is gone.
    #[must_use]
    pub fn for_absent_rows(mut self) -> Self {
        self.reject_removed_data = self.reject_added_data;
        self
    }

    /// Rules of an overwrite of the rows that match `scope`: no data that may match may have been added.
    ///
    /// # Deviation
    /// Java looks for conflicts of an overwrite only when asked to, and else removes what matches at the time of the commit,
    /// rows of others included that the statement never saw.
    pub fn for_overwrite(start_snapshot_id: Option<i64>, scope: Predicate) -> Self {
        Self::for_delete(start_snapshot_id, IsolationLevel::Serializable, scope)
    }

    /// Rules of an overwrite of whole partitions: as [`for_overwrite`](Self::for_overwrite), for files in them.
    pub fn for_partition_overwrite(start_snapshot_id: Option<i64>, partitions: Arc<PartitionSet>) -> Self {
        let scope = partitions.predicate().clone();
        Self { partitions: Some(partitions), ..Self::for_overwrite(start_snapshot_id, scope) }
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

/// Applies every rule of `validation`; the first breach is a [`Conflict`](crate::ErrorKind::Conflict) error.
///
/// Returns the referenced data files that a concurrent DELETE removed: deletes for them have nothing left to do.
pub(super) async fn validate(
    validation: &Validation,
    changes: &Changes,
    table: &Table,
    removed: &HashMap<Arc<str>, (Arc<DataFile>, Removal)>,
) -> Result<HashSet<Arc<str>>> {
    let filter = FileEvaluator::new(&validation.conflict_filter, &table.metadata);
    if validation.reject_added_data {
        no_added_data(changes, &filter, validation.partitions.as_deref())?;
    }
    if validation.reject_new_deletes {
        no_new_deletes(changes, &filter)?;
    }
    if validation.reject_removed_data {
        no_removed_data(changes, &filter)?;
    }
    no_new_targeted_deletes(changes, removed)?;
    no_new_vectors(changes, &validation.referenced)?;
    let gone = referenced_exist(changes, &validation.referenced, validation.referenced_may_be_deleted)?;
    no_new_untargeted_deletes(validation.start_snapshot_id, changes, table, removed).await?;
    Ok(gone)
}

fn no_added_data(changes: &Changes, filter: &FileEvaluator, partitions: Option<&PartitionSet>) -> Result<()> {
    for (operation, entry) in &changes.added_data {
        if matches!(operation, Operation::Append | Operation::Overwrite)
            && filter.evaluate(&entry.data_file) != Coverage::None
            && partitions.is_none_or(|set| set.coverage(&entry.data_file) != Coverage::None)
        {
            return Err(conflict(
                "another commit added a data file that may hold matching rows",
                &entry.data_file.file_path,
            ));
        }
    }
    Ok(())
}

fn no_removed_data(changes: &Changes, filter: &FileEvaluator) -> Result<()> {
    for (operation, entry) in &changes.deleted_data {
        if matches!(operation, Operation::Delete | Operation::Overwrite)
            && filter.evaluate(&entry.data_file) != Coverage::None
        {
            return Err(conflict(
                "another commit removed a data file that may have held matching rows",
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

/// Deletes that name the data file they are for, compared by path alone.
fn no_new_targeted_deletes(changes: &Changes, removed: &HashMap<Arc<str>, (Arc<DataFile>, Removal)>) -> Result<()> {
    for (_, entry) in &changes.added_deletes {
        if let Some(path) = position_delete_target(&entry.data_file)
            && removed.contains_key(path)
        {
            return Err(rows_deleted(path));
        }
    }
    Ok(())
}

/// Deletes that may be for any data file of their partition: position deletes are read, equality deletes count, but for a
/// file whose rows go anyway, wherever they may apply.
async fn no_new_untargeted_deletes(
    start_snapshot_id: Option<i64>,
    changes: &Changes,
    table: &Table,
    removed: &HashMap<Arc<str>, (Arc<DataFile>, Removal)>,
) -> Result<()> {
    let untargeted = changes.added_deletes.iter().map(|(_, entry)| entry).filter(|entry| {
        !entry.data_file.is_deletion_vector()
            && position_delete_target(&entry.data_file).is_none_or(|path| !removed.contains_key(path))
    });
    let deletes: Vec<DeleteFile> = untargeted
        .map(|entry| DeleteFile {
            file: Arc::clone(&entry.data_file),
            sequence_number: entry.sequence_number.unwrap_or(i64::MAX),
        })
        .collect();
    if deletes.is_empty() || removed.is_empty() {
        return Ok(());
    }
    let metadata = &table.metadata;
    let start = start_snapshot_id.and_then(|id| metadata.snapshot_by_id(id)).map_or(0, |start| start.sequence_number);
    let index = DeleteFileIndex::new(deletes, metadata)?;
    let mut tasks = Vec::new();
    for (file, removal) in removed.values() {
        let deletes = index.for_data_file(file, start)?;
        if *removal == Removal::Rewritten && !deletes.equality.is_empty() {
            return Err(rows_deleted(&file.file_path));
        }
        if !deletes.positions.is_empty() {
            tasks.push(FileScanTask { data_file: Arc::clone(file), sequence_number: start, deletes });
        }
    }
    let loader = DeleteLoader::new(table).for_tasks(&tasks)?;
    for task in &tasks {
        match loader.positional_deletes(task).await {
            Ok(None) => {}
            Ok(Some(_)) => return Err(rows_deleted(&task.data_file.file_path)),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            // What cannot be read (removed since, or in a format we do not read) may have deleted anything.
            Err(error) => return Err(rows_deleted(&task.data_file.file_path).with_source(error)),
        }
    }
    Ok(())
}

fn rows_deleted(path: &str) -> Error {
    conflict("another commit deleted rows of a data file that this statement removes", path)
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
