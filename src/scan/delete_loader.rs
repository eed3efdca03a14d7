//! Loading the deleted positions of data files.
//!
//! Invariants: within one loader each delete file is read once and each vector's blob is fetched once, however many
//! callers ask at a time, while a failure is not remembered; positions are clipped to the rows the data file has, so
//! that row counts computed from them hold.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::position_deletes::{PositionsByPath, read_position_deletes};
use super::spawn::spawned;
use super::task::{DeleteFile, FILE_PATH_ID, FileScanTask};
use crate::io::FileIo;
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::{DataFile, FileFormat};
use crate::{Error, Result};

/// Delete files of one data file read at a time.
const CONCURRENCY: usize = 8;

/// Loads deletion vectors and position delete files for the tasks of a scan. Share one between the scan's partitions.
#[derive(Debug)]
pub struct DeleteLoader {
    io: FileIo,
    /// The data files whose positions are kept; `None` keeps all.
    wanted: Option<Arc<HashSet<Arc<str>>>>,
    vectors: Loads<(Arc<str>, u64), Arc<DeletionVector>>,
    files: Loads<Arc<str>, Arc<PositionsByPath>>,
}

/// Values loaded once a key. Callers of one key share one load and its failure; a later caller tries again.
///
/// Each load is a task of its own and every caller drives it, so a caller that is no longer polled holds up nobody.
struct Loads<K, V>(Mutex<HashMap<K, Load<V>>>);

type Load<V> = Shared<BoxFuture<'static, Result<V, Arc<Error>>>>;

impl<K: Eq + Hash, V: Clone + Send + Sync + 'static> Loads<K, V> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    async fn get<F>(&self, key: K, start: impl FnOnce() -> F) -> Result<V>
    where
        F: Future<Output = Result<V>> + Send + 'static,
    {
        let load = {
            let mut loads = self.0.lock();
            match loads.get(&key) {
                Some(load) if !matches!(load.peek(), Some(Err(_))) => load.clone(),
                _ => {
                    let load = spawned(start()).map(|result| result.map_err(Arc::new)).boxed().shared();
                    loads.insert(key, load.clone());
                    load
                }
            }
        };
        load.await.map_err(|e| e.duplicate())
    }
}

impl<K, V> fmt::Debug for Loads<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loads({})", self.0.lock().len())
    }
}

impl DeleteLoader {
    /// A loader for any data file of the table.
    pub fn new(io: &FileIo) -> Self {
        Self { io: io.clone(), wanted: None, vectors: Loads::new(), files: Loads::new() }
    }

    /// A loader for the data files of `tasks` alone: of a delete file over many data files it keeps only their positions.
    pub fn for_tasks<'a>(io: &FileIo, tasks: impl IntoIterator<Item = &'a FileScanTask>) -> Self {
        let wanted = tasks.into_iter().map(|task| Arc::clone(&task.data_file.file_path)).collect();
        Self { wanted: Some(Arc::new(wanted)), ..Self::new(io) }
    }

    /// The deleted positions of a task's file by its vector or position delete files, `None` when there are none.
    ///
    /// Positions at or past the file's record count are left out. Equality deletes are not looked at: ask
    /// [`FileScanTask::check_readable`] first.
    ///
    /// # Errors
    /// `DataInvalid` for a broken vector or delete file, `Unsupported` for a delete file that is not Parquet, storage
    /// errors; `Internal` for a data file that is none of the loader's.
    pub async fn deleted_positions(&self, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        if task.deletes.vector.is_none() && task.deletes.positions.is_empty() {
            return Ok(None);
        }
        let path = &task.data_file.file_path;
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(path)) {
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
        let rows = task.data_file.record_count;
        if all.max().is_some_and(|max| max >= rows) {
            all = Arc::new(DeletionVector::from_positions(all.iter().take_while(|position| *position < rows)));
        }
        Ok((!all.is_empty()).then_some(all))
    }

    /// Number of rows of a task's file that its vector or position delete files leave.
    ///
    /// # Errors
    /// As [`DeleteLoader::deleted_positions`].
    pub async fn live_row_count(&self, task: &FileScanTask) -> Result<u64> {
        let deleted = self.deleted_positions(task).await?.map_or(0, |deleted| deleted.len());
        Ok(task.data_file.record_count.saturating_sub(deleted))
    }

    async fn vector(&self, delete: &DeleteFile) -> Result<Arc<DeletionVector>> {
        let file = &delete.file;
        let broken = |message: &str| Error::data_invalid(message).with_context("deletion vector", &*file.file_path);
        let (Some(offset), Some(size)) = (file.content_offset, file.content_size_in_bytes) else {
            return Err(broken("deletion vector without content_offset and content_size_in_bytes"));
        };
        let Some(end) = offset.checked_add(size) else { return Err(broken("deletion vector whose range overflows")) };
        let start = || {
            let (io, file) = (self.io.clone(), Arc::clone(file));
            async move {
                // Only the range is read: some writers store the blob without the Puffin container around it.
                let bytes = io.read_range(&file.file_path, offset..end).await?;
                let vector = DeletionVector::decode_checked(&bytes, file.record_count).map_err(|e| {
                    e.with_context("deletion vector", &*file.file_path).with_context("offset", offset.to_string())
                })?;
                Ok(Arc::new(vector))
            }
        };
        self.vectors.get((Arc::clone(&file.file_path), offset), start).await
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
        if file.file_format != FileFormat::Parquet {
            return Err(Error::unsupported("position delete files that are not Parquet")
                .with_context("delete file", &*file.file_path));
        }
        let start = || {
            let (io, file, wanted) = (self.io.clone(), Arc::clone(file), self.wanted.clone());
            async move { Ok(Arc::new(read_position_deletes(&io, &file, wanted.as_deref()).await?)) }
        };
        self.files.get(Arc::clone(&file.file_path), start).await
    }
}

/// Whether a position delete file may hold positions of `path`, by its bounds of `file_path`: the lower one is at most
/// the smallest path, even truncated; the upper one, unless it is a prefix of the path, at least the greatest.
fn may_hold(file: &DataFile, path: &str) -> bool {
    let path = path.as_bytes();
    let below = file.lower_bounds.get(FILE_PATH_ID).is_some_and(|lower| path < &**lower);
    let above = file.upper_bounds.get(FILE_PATH_ID).is_some_and(|upper| path > &**upper && !path.starts_with(upper));
    !below && !above
}
