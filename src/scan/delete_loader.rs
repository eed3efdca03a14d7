//! Loading the deleted positions of data files.
//!
//! Invariants: within one loader each delete file is read once and each vector's blob is fetched once, however many
//! callers ask at a time, while a failure is not remembered; positions are clipped to the rows the data file has, so
//! that row counts computed from them hold.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::budget::{MemoryBudget, Unlimited};
use super::equality::{EqualityDeletes, Source};
use super::loads::Loads;
use super::position_deletes::{PositionsByPath, read_position_deletes};
use super::task::{DeleteFile, FILE_PATH_ID, FileScanTask};
use crate::io::FileIo;
use crate::spec::DataFile;
use crate::spec::deletion_vector::DeletionVector;
use crate::table::Table;
use crate::{Error, Result};

/// Delete files of one data file read at a time.
const CONCURRENCY: usize = 8;

/// Loads the deletes that apply to the tasks of a scan plan. Share one between the scan's partitions.
#[derive(Debug)]
pub struct DeleteLoader {
    io: FileIo,
    /// The data files whose positions are kept; `None` keeps all.
    wanted: Option<Arc<HashSet<Arc<str>>>>,
    vectors: Loads<(Arc<str>, u64), Arc<DeletionVector>>,
    files: Loads<Arc<str>, Arc<PositionsByPath>>,
    equality: Arc<EqualityDeletes>,
    read: Arc<FilesRead>,
}

/// Which delete files were read, and vectors by their offset.
#[derive(Debug, Default)]
pub(crate) struct FilesRead(Mutex<HashSet<(Arc<str>, u64)>>);

impl FilesRead {
    pub(crate) fn add(&self, file: &DataFile) {
        self.0.lock().insert((Arc::clone(&file.file_path), file.content_offset.unwrap_or(0)));
    }
}

impl DeleteLoader {
    /// A loader for any data file of the table.
    pub fn new(table: &Table) -> Self {
        Self::with_budget(table, Arc::new(Unlimited))
    }

    /// A loader for any data file of the table, whose keys of equality deletes must fit in `budget`.
    pub fn with_budget(table: &Table, budget: Arc<dyn MemoryBudget>) -> Self {
        let read = Arc::<FilesRead>::default();
        let source = Source {
            io: table.io.clone(),
            metadata: Arc::clone(&table.metadata),
            table: table.ident.to_string().into(),
            read: Arc::clone(&read),
        };
        Self {
            io: table.io.clone(),
            wanted: None,
            vectors: Loads::new(),
            files: Loads::new(),
            equality: Arc::new(EqualityDeletes::new(source, budget)),
            read,
        }
    }

    /// How many delete files were read up to now, a vector counting as one.
    pub fn files_read(&self) -> usize {
        self.read.0.lock().len()
    }

    /// The same loader for the data files of `tasks` alone: of a delete file over many data files it keeps only what they
    /// need, and only until they are done.
    ///
    /// # Errors
    /// `DataInvalid` for an equality delete on a column that cannot be a key.
    pub fn for_tasks<'a>(mut self, tasks: impl IntoIterator<Item = &'a FileScanTask> + Clone) -> Result<Self> {
        self.equality.expect(tasks.clone())?;
        self.wanted = Some(Arc::new(tasks.into_iter().map(|task| Arc::clone(&task.data_file.file_path)).collect()));
        Ok(self)
    }

    /// The positions of a task's file that any delete removes, `None` when there are none.
    ///
    /// Positions at or past the file's record count are left out. To know those removed by equality deletes, the key
    /// columns of the data file are read.
    ///
    /// # Errors
    /// `DataInvalid` for a broken vector or delete file, `Unsupported` for a delete file in a format that is not read,
    /// `Unavailable` when the keys of equality deletes do not fit in memory; storage errors; `Internal` for a data file
    /// that is none of the loader's.
    pub async fn deleted_positions(&self, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        let positional = self.positional_deletes(task).await?;
        if task.deletes.equality.is_empty()
            || positional.as_ref().is_some_and(|deleted| deleted.len() == task.data_file.record_count)
        {
            return Ok(positional);
        }
        let equality = self.equality.positions(task).await?;
        let equality = equality.and_then(|deleted| clipped(deleted, task.data_file.record_count));
        Ok(match (positional, equality) {
            (Some(mut all), Some(more)) => {
                Arc::make_mut(&mut all).union_with(&more);
                Some(all)
            }
            (some, None) | (None, some) => some,
        })
    }

    /// The positions of a task's file that its vector or position delete files remove, `None` when there are none: what a
    /// new vector or a file of its own position deletes has to repeat. Equality deletes are not looked at.
    ///
    /// # Errors
    /// As [`DeleteLoader::deleted_positions`].
    pub async fn positional_deletes(&self, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        let path = &task.data_file.file_path;
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(path)) && !task.deletes.is_empty() {
            return Err(Error::internal("deletes of a file outside the scan").with_context("file", &**path));
        }
        let mut found = match &task.deletes.vector {
            Some(vector) => vec![self.vector(vector).await?],
            None => self.positions(task).await?,
        };
        let Some(mut all) = found.pop() else { return Ok(None) };
        for other in found {
            Arc::make_mut(&mut all).union_with(&other);
        }
        Ok(clipped(all, task.data_file.record_count))
    }

    /// Number of rows of a task's file that its deletes leave.
    ///
    /// # Errors
    /// As [`DeleteLoader::deleted_positions`].
    pub async fn live_row_count(&self, task: &FileScanTask) -> Result<u64> {
        let deleted = self.deleted_positions(task).await?.map_or(0, |deleted| deleted.len());
        Ok(task.data_file.record_count.saturating_sub(deleted))
    }

    async fn vector(&self, delete: &DeleteFile) -> Result<Arc<DeletionVector>> {
        let file = &delete.file;
        let start = || {
            let (io, file) = (self.io.clone(), Arc::clone(file));
            self.read.add(&file);
            async move { Ok(Arc::new(read_vector(&io, &file).await?)) }
        };
        self.vectors.get((Arc::clone(&file.file_path), file.content_offset.unwrap_or(0)), start).await
    }

    async fn positions(&self, task: &FileScanTask) -> Result<Vec<Arc<DeletionVector>>> {
        let path = &task.data_file.file_path;
        let relevant = task.deletes.positions.iter().filter(|delete| may_hold(&delete.file, path));
        let loads: Vec<_> = relevant.map(|delete| self.file(&delete.file)).collect();
        let files = stream::iter(loads).buffer_unordered(CONCURRENCY);
        let found = files.map_ok(|positions| positions.get(path).map(Arc::clone));
        found.try_filter_map(|vector| std::future::ready(Ok(vector))).try_collect().await
    }

    async fn file(&self, file: &Arc<DataFile>) -> Result<Arc<PositionsByPath>> {
        let start = || {
            let (io, file, wanted) = (self.io.clone(), Arc::clone(file), self.wanted.clone());
            self.read.add(&file);
            async move { Ok(Arc::new(read_position_deletes(&io, &file, wanted.as_deref()).await?)) }
        };
        self.files.get(Arc::clone(&file.file_path), start).await
    }
}

async fn read_vector(io: &FileIo, file: &DataFile) -> Result<DeletionVector> {
    let broken = |message: &str| Error::data_invalid(message).with_context("deletion vector", &*file.file_path);
    let (Some(offset), Some(size)) = (file.content_offset, file.content_size_in_bytes) else {
        return Err(broken("deletion vector without content_offset and content_size_in_bytes"));
    };
    let Some(end) = offset.checked_add(size) else { return Err(broken("deletion vector whose range overflows")) };
    // Only the range is read: some writers store the blob without the Puffin container around it.
    let bytes = io.read_range(&file.file_path, offset..end).await?;
    DeletionVector::decode_checked(&bytes, file.record_count)
        .map_err(|e| e.with_context("deletion vector", &*file.file_path).with_context("offset", offset.to_string()))
}

/// All positions that a position delete file or a vector holds, by data file, in the order of their paths.
///
/// # Errors
/// `DataInvalid` for a broken file, `Unsupported` for one in a format that is not read or an encrypted one; storage errors.
pub(crate) async fn positions_in(io: &FileIo, file: &DataFile) -> Result<Vec<(Arc<str>, Arc<DeletionVector>)>> {
    if file.key_metadata.is_some() {
        return Err(Error::unsupported("reading encrypted delete files").with_context("file", &*file.file_path));
    }
    if file.is_deletion_vector() {
        let target = file.referenced_data_file.clone().ok_or_else(|| {
            Error::data_invalid("deletion vector without referenced_data_file")
                .with_context("deletion vector", &*file.file_path)
        })?;
        return Ok(vec![(target, Arc::new(read_vector(io, file).await?))]);
    }
    let mut positions: Vec<_> = read_position_deletes(io, file, None).await?.into_iter().collect();
    positions.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(positions)
}

/// The positions below `rows`; `None` when there are none.
fn clipped(mut positions: Arc<DeletionVector>, rows: u64) -> Option<Arc<DeletionVector>> {
    if positions.max().is_some_and(|max| max >= rows) {
        let below = positions.iter().take_while(|position| *position < rows);
        positions = Arc::new(DeletionVector::from_positions(below));
    }
    (!positions.is_empty()).then_some(positions)
}

/// Whether a position delete file may hold positions of `path`, by its bounds of `file_path`: the lower one is at most
/// the smallest path, even truncated; the upper one, unless it is a prefix of the path, at least the greatest.
fn may_hold(file: &DataFile, path: &str) -> bool {
    let path = path.as_bytes();
    let below = file.lower_bounds.get(FILE_PATH_ID).is_some_and(|lower| path < &**lower);
    let above = file.upper_bounds.get(FILE_PATH_ID).is_some_and(|upper| path > &**upper && !path.starts_with(upper));
    !below && !above
}
