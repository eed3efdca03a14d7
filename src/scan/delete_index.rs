//! Which delete files apply to which data file.
//!
//! Implements the spec section "Scan Planning" (delete file rules) as the Java reference implementation reads it.
//! Invariants: a delete made under one partition spec never reaches a file of another, but for equality deletes of an
//! unpartitioned spec, which reach all; a data file's own sequence number decides, never commit order; lists are shared,
//! so that the index and all tasks together stay proportional to the number of files.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::equality_pruning::{EqualityPruner, KeyRanges};
use super::task::{DeleteFile, FileDeletes, position_delete_target};
use crate::spec::{DataContent, DataFile, FileFormat, PartitionKey, TableMetadata};
use crate::{Error, Result};

/// Delete files ascending by data sequence number.
type Group = Arc<[Arc<DeleteFile>]>;

/// The live delete files of a snapshot, ready to be asked for each data file.
#[derive(Debug)]
pub struct DeleteFileIndex {
    vectors: HashMap<Arc<str>, Arc<DeleteFile>>,
    /// Position delete files with a single target, by target.
    by_path: HashMap<Arc<str>, Group>,
    /// Lengths of those targets that were taken from bounds, which may be truncated paths.
    bound_lengths: BTreeSet<usize>,
    by_partition: HashMap<PartitionKey, PartitionDeletes>,
    global_equality: EqualityGroup,
    pruner: EqualityPruner,
}

#[derive(Debug)]
struct PartitionDeletes {
    positions: Group,
    equality: EqualityGroup,
}

#[derive(Debug)]
struct EqualityGroup {
    files: Group,
    /// Key ranges of `files`, by the same index.
    ranges: Vec<KeyRanges>,
}

#[derive(Default)]
struct Scope {
    positions: Vec<Arc<DeleteFile>>,
    equality: Vec<Arc<DeleteFile>>,
}

impl DeleteFileIndex {
    /// Indexes the live delete files of one snapshot.
    ///
    /// # Errors
    /// `DataInvalid` for a file that is no delete file, a vector without its target, an equality delete file without key
    /// columns, or two vectors for one data file.
    pub fn new(deletes: impl IntoIterator<Item = DeleteFile>, metadata: &TableMetadata) -> Result<Self> {
        let unpartitioned: HashSet<i32> =
            metadata.partition_specs.iter().filter(|spec| spec.is_unpartitioned()).map(|spec| spec.spec_id).collect();
        let mut vectors: HashMap<Arc<str>, Arc<DeleteFile>> = HashMap::new();
        let mut by_path: HashMap<Arc<str>, Vec<Arc<DeleteFile>>> = HashMap::new();
        let mut bound_lengths = BTreeSet::new();
        let mut scopes: HashMap<PartitionKey, Scope> = HashMap::new();
        let mut global = Vec::new();
        for delete in deletes {
            let delete = Arc::new(delete);
            let file = &delete.file;
            match (file.content, file.file_format) {
                (DataContent::PositionDeletes, FileFormat::Puffin) => {
                    let Some(target) = &file.referenced_data_file else {
                        return Err(invalid("deletion vector without referenced_data_file", file));
                    };
                    match vectors.entry(Arc::clone(target)) {
                        Entry::Vacant(slot) => slot.insert(Arc::clone(&delete)),
                        Entry::Occupied(other) => {
                            return Err(invalid("two deletion vectors for one data file", file)
                                .with_context("data file", &**target)
                                .with_context("other vector", &*other.get().file.file_path));
                        }
                    };
                }
                (DataContent::PositionDeletes, _) => match position_delete_target(file) {
                    Some(target) => {
                        if file.referenced_data_file.is_none() {
                            bound_lengths.insert(target.len());
                        }
                        match by_path.get_mut(target) {
                            Some(files) => files.push(delete),
                            None => drop(by_path.insert(target.into(), vec![Arc::clone(&delete)])),
                        }
                    }
                    None => scopes.entry(file.partition_key()).or_default().positions.push(delete),
                },
                (DataContent::EqualityDeletes, FileFormat::Puffin) => {
                    return Err(invalid("equality delete file in format Puffin", file));
                }
                (DataContent::EqualityDeletes, _) if file.equality_ids.is_empty() => {
                    return Err(invalid("equality delete file without equality_ids", file));
                }
                (DataContent::EqualityDeletes, _) if unpartitioned.contains(&file.spec_id) => global.push(delete),
                (DataContent::EqualityDeletes, _) => {
                    scopes.entry(file.partition_key()).or_default().equality.push(delete);
                }
                (DataContent::Data, _) => return Err(invalid("data file in a delete manifest", file)),
            }
        }
        let keys = scopes.values().flat_map(|scope| &scope.equality).chain(&global);
        let pruner = EqualityPruner::new(keys.flat_map(|delete| delete.file.equality_ids.iter().copied()), metadata);
        Ok(Self {
            vectors,
            by_path: by_path.into_iter().map(|(path, files)| (path, sorted(files))).collect(),
            bound_lengths,
            by_partition: scopes
                .into_iter()
                .map(|(key, scope)| {
                    let equality = EqualityGroup::new(scope.equality, &pruner);
                    (key, PartitionDeletes { positions: sorted(scope.positions), equality })
                })
                .collect(),
            global_equality: EqualityGroup::new(global, &pruner),
            pruner,
        })
    }

    /// Whether there is no delete at all.
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
            && self.by_path.is_empty()
            && self.by_partition.is_empty()
            && self.global_equality.files.is_empty()
    }

    /// The deletes that apply to a data file with data sequence number `sequence_number`.
    ///
    /// # Errors
    /// `DataInvalid` when the file's vector is older than the file, or was made under another spec or partition.
    pub fn for_data_file(&self, file: &DataFile, sequence_number: i64) -> Result<FileDeletes> {
        let mut deletes = FileDeletes { vector: self.vector_of(file, sequence_number)?, ..FileDeletes::default() };
        let key = file.partition_key();
        let partition = self.by_partition.get(&key);
        if deletes.vector.is_none() {
            self.add_single_target(file, sequence_number, &mut deletes);
            if let Some(partition) = partition {
                let from = partition.positions.partition_point(|delete| delete.sequence_number < sequence_number);
                deletes.positions.push_tail(&partition.positions, from);
            }
        }
        let groups = [Some(&self.global_equality), partition.map(|partition| &partition.equality)];
        let mut ranges = None;
        for group in groups.into_iter().flatten() {
            let from = group.files.partition_point(|delete| delete.sequence_number <= sequence_number);
            if from < group.files.len() {
                let ranges = ranges.get_or_insert_with(|| self.pruner.data_ranges(file));
                deletes.equality.push_filtered(&group.files, from, |index| {
                    group.ranges.get(index).is_none_or(|keys| keys.may_match(ranges))
                });
            }
        }
        Ok(deletes)
    }

    fn vector_of(&self, file: &DataFile, sequence_number: i64) -> Result<Option<Arc<DeleteFile>>> {
        let Some(vector) = self.vectors.get(&file.file_path) else { return Ok(None) };
        let broken = |message: &str| Err(invalid(message, &vector.file).with_context("data file", &*file.file_path));
        if vector.sequence_number < sequence_number {
            return broken("deletion vector with a sequence number smaller than its data file's");
        }
        if !same_partition(&vector.file, file) {
            return broken("deletion vector in another partition than its data file");
        }
        Ok(Some(Arc::clone(vector)))
    }

    fn add_single_target(&self, file: &DataFile, sequence_number: i64, deletes: &mut FileDeletes) {
        let mut add = |target: &str, bounds_only: bool| {
            if let Some(group) = self.by_path.get(target) {
                let from = group.partition_point(|delete| delete.sequence_number < sequence_number);
                deletes.positions.push_filtered(group, from, |index| {
                    group.get(index).is_some_and(|delete| {
                        same_partition(&delete.file, file)
                            && !(bounds_only && delete.file.referenced_data_file.is_some())
                    })
                });
            }
        };
        add(&file.file_path, false);
        // Equal bounds that are a proper prefix of this path may be its truncation: the file's content decides.
        for &length in self.bound_lengths.range(..file.file_path.len()) {
            if let Some(prefix) = file.file_path.get(..length) {
                add(prefix, true);
            }
        }
    }
}

impl EqualityGroup {
    fn new(files: Vec<Arc<DeleteFile>>, pruner: &EqualityPruner) -> Self {
        let files = sorted(files);
        let ranges = files.iter().map(|delete| pruner.delete_ranges(&delete.file)).collect();
        Self { files, ranges }
    }
}

fn sorted(mut files: Vec<Arc<DeleteFile>>) -> Group {
    files.sort_by_key(|delete| delete.sequence_number);
    files.into()
}

fn same_partition(a: &DataFile, b: &DataFile) -> bool {
    a.spec_id == b.spec_id && a.partition == b.partition
}

fn invalid(message: &str, file: &DataFile) -> Error {
    Error::data_invalid(message).with_context("delete file", &*file.file_path)
}

#[cfg(test)]
mod tests;
