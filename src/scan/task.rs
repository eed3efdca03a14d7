//! What a scan is made of: data files with the delete files that apply to them.
//!
//! Invariant: a [`FileDeletes`] holds a deletion vector or position delete files, never both; planning memory is
//! proportional to data files plus delete files, because tasks share their delete lists.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::spec::{DataContent, DataFile, FileFormat};
use crate::{Error, Result};

/// Field id of `file_path` in position delete files.
pub(crate) const FILE_PATH_ID: i32 = 2_147_483_546;
/// Field id of `pos` in position delete files.
pub(crate) const POS_ID: i32 = 2_147_483_545;

/// A live delete file with its data sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteFile {
    /// The file: a deletion vector, a position delete file or an equality delete file.
    pub file: Arc<DataFile>,
    /// Data sequence number of its manifest entry; 0 in v1.
    pub sequence_number: i64,
}

impl DeleteFile {
    /// Whether it deletes rows of the data file `data_file_path` alone, by a deletion vector or as a position delete file
    /// with a single target. Such a file is superseded as soon as a new vector or delete file absorbs its positions.
    pub fn is_file_scoped(&self, data_file_path: &str) -> bool {
        position_delete_target(&self.file) == Some(data_file_path)
    }
}

/// The one data file that a deletion vector or position delete file addresses, `None` when it may address several.
///
/// Known from `referenced_data_file`, or from bounds of `file_path` that are equal. The latter may be a truncated prefix
/// of several paths if a writer truncated without incrementing; it is a target only of a data file of exactly that path.
pub fn position_delete_target(file: &DataFile) -> Option<&str> {
    if file.content != DataContent::PositionDeletes {
        return None;
    }
    if let Some(path) = &file.referenced_data_file {
        return Some(path);
    }
    let lower = file.lower_bounds.get(FILE_PATH_ID)?;
    let upper = file.upper_bounds.get(FILE_PATH_ID)?;
    if lower == upper { std::str::from_utf8(lower).ok() } else { None }
}

/// Delete files in ascending order of data sequence number within a scope (path, partition or table).
///
/// Cheap to clone: lists of tasks in one scope are tails of one shared list.
#[derive(Clone, Default)]
pub struct DeleteList(Vec<Tail>);

#[derive(Clone)]
struct Tail {
    files: Arc<[Arc<DeleteFile>]>,
    start: usize,
    /// Offsets from `start` that were proven irrelevant.
    skipped: Option<RoaringBitmap>,
}

impl DeleteList {
    /// Adds the files from `start` on, which are all relevant.
    pub(crate) fn push_tail(&mut self, files: &Arc<[Arc<DeleteFile>]>, start: usize) {
        if start < files.len() {
            self.0.push(Tail { files: Arc::clone(files), start, skipped: None });
        }
    }

    /// Adds the files from `start` on, less those whose index makes `relevant` false.
    pub(crate) fn push_filtered(
        &mut self,
        files: &Arc<[Arc<DeleteFile>]>,
        start: usize,
        relevant: impl Fn(usize) -> bool,
    ) {
        let count = files.len().saturating_sub(start);
        let skipped: RoaringBitmap =
            (0u32..).zip(start..files.len()).filter(|(_, index)| !relevant(*index)).map(|(offset, _)| offset).collect();
        if skipped.len() < count as u64 {
            let skipped = (!skipped.is_empty()).then_some(skipped);
            self.0.push(Tail { files: Arc::clone(files), start, skipped });
        }
    }

    /// The shared lists of which this one holds tails, and for each the indices it holds.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (&Arc<[Arc<DeleteFile>]>, RoaringBitmap)> {
        self.0.iter().map(|tail| {
            let index = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let mut held = RoaringBitmap::new();
            held.insert_range(index(tail.start)..index(tail.files.len()));
            for offset in tail.skipped.iter().flatten() {
                held.remove(offset.saturating_add(index(tail.start)));
            }
            (&tail.files, held)
        })
    }

    /// The files.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<DeleteFile>> {
        self.0.iter().flat_map(|tail| {
            (0u32..)
                .zip(tail.files.get(tail.start..).unwrap_or_default())
                .filter(|(offset, _)| !tail.skipped.as_ref().is_some_and(|s| s.contains(*offset)))
                .map(|(_, file)| file)
        })
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.iter().count()
    }
}

impl From<Vec<Arc<DeleteFile>>> for DeleteList {
    /// A list of its own, in the order given.
    fn from(files: Vec<Arc<DeleteFile>>) -> Self {
        let mut list = Self::default();
        list.push_tail(&files.into(), 0);
        list
    }
}

impl fmt::Debug for DeleteList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|d| &*d.file.file_path)).finish()
    }
}

/// The deletes that apply to one data file.
#[derive(Debug, Clone, Default)]
pub struct FileDeletes {
    /// Its deletion vector; when there is one, no position delete file applies.
    pub vector: Option<Arc<DeleteFile>>,
    /// Position delete files, each of which may hold rows of other data files too.
    pub positions: DeleteList,
    /// Equality delete files.
    pub equality: DeleteList,
}

impl FileDeletes {
    /// Whether no row can be deleted.
    pub fn is_empty(&self) -> bool {
        self.vector.is_none() && self.positions.is_empty() && self.equality.is_empty()
    }

    /// The vector or position delete files, then the equality delete files.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<DeleteFile>> {
        self.vector.iter().chain(self.positions.iter()).chain(self.equality.iter())
    }
}

/// One data file to read, with its deletes.
#[derive(Debug, Clone)]
pub struct FileScanTask {
    /// The data file.
    pub data_file: Arc<DataFile>,
    /// Data sequence number of its manifest entry; 0 in v1.
    pub sequence_number: i64,
    /// The deletes that apply to it.
    pub deletes: FileDeletes,
}

impl FileScanTask {
    /// The delete files that deleted rows of this file alone: its old vector and its single-target position delete files.
    ///
    /// They are removed in the commit which adds a vector (or a file-scoped delete file) that absorbs their positions.
    /// Delete files of several data files are not among them, for other files may need them.
    pub fn superseded_deletes(&self) -> Vec<Arc<DeleteFile>> {
        let path = &*self.data_file.file_path;
        let positional = self.deletes.vector.iter().chain(self.deletes.positions.iter());
        positional.filter(|delete| delete.is_file_scoped(path)).cloned().collect()
    }

    /// Fails when reading the live rows of this file takes something this version does not do. `table` is the name to
    /// print.
    ///
    /// # Errors
    /// `Unsupported`, naming table, file and format: data or delete files in ORC, encrypted files.
    pub fn check_readable(&self, table: &str) -> Result<()> {
        let unsupported = |message: String, path: &str| {
            Err(Error::unsupported(message).with_context("table", table).with_context("file", path))
        };
        let files = std::iter::once(&self.data_file).chain(self.deletes.iter().map(|delete| &delete.file));
        for file in files {
            let what = match file.content {
                DataContent::Data => "data files",
                DataContent::PositionDeletes => "position delete files",
                DataContent::EqualityDeletes => "equality delete files",
            };
            let rows = matches!(file.file_format, FileFormat::Parquet | FileFormat::Avro);
            if !rows && !file.is_deletion_vector() {
                return unsupported(format!("reading {what} in format {}", file.file_format.name()), &file.file_path);
            }
            if file.key_metadata.is_some() {
                return unsupported(format!("reading encrypted {what}"), &file.file_path);
            }
        }
        Ok(())
    }
}

/// How many delete files apply to some of these tasks, a vector counting as one.
pub(crate) fn delete_files_of<'a>(tasks: impl IntoIterator<Item = &'a FileScanTask>) -> u64 {
    let mut vectors = 0;
    // By address of the shared lists.
    let mut files: HashMap<*const Arc<DeleteFile>, RoaringBitmap> = HashMap::new();
    for task in tasks {
        vectors += u64::from(task.deletes.vector.is_some());
        for (list, held) in task.deletes.positions.shares().chain(task.deletes.equality.shares()) {
            *files.entry(list.as_ptr()).or_default() |= held;
        }
    }
    vectors + files.values().map(RoaringBitmap::len).sum::<u64>()
}

/// The files of one scan.
#[derive(Debug, Clone, Default)]
pub struct ScanPlan {
    /// The snapshot scanned; `None` for a table without one.
    pub snapshot_id: Option<i64>,
    /// The data files of which some row may match, in manifest order.
    pub tasks: Vec<FileScanTask>,
    /// What planning met.
    pub metrics: ScanPlanMetrics,
}

/// What planning a scan met. Files of manifests that were not opened count by the manifest list's counts, where it has
/// them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanPlanMetrics {
    /// Manifests of the snapshot, data and deletes.
    pub manifests_total: u64,
    /// Manifests opened (or found in the cache).
    pub manifests_read: u64,
    /// Live data files.
    pub data_files_total: u64,
    /// Live data files left out because no row can match.
    pub data_files_pruned: u64,
    /// Live delete files, a vector counting as one.
    pub delete_files_total: u64,
    /// Live delete files left out because they lie in partitions of which no row can match.
    pub delete_files_pruned: u64,
}
