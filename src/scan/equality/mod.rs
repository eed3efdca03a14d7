//! Rows deleted by equality deletes, as positions in their data files.
//!
//! Implements the spec section "Equality Delete Files": a row is deleted when the key columns of the file equal a deleted
//! key that has a greater data sequence number, in the scope that the delete index found. The key columns of a data file are
//! read once and looked up in hash tables; what comes out are positions, so that whatever else is read of the file, by
//! whatever filter and in whatever order, loses exactly those rows. Invariant: one table holds each key set of each
//! scope, for all data files; tables are charged to a budget, and keys that do not fit in it are looked up share by
//! share.

mod columns;
mod key_set;
mod key_table;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use roaring::RoaringBitmap;

use self::key_set::{Built, KeySet};
use self::key_table::KeyTable;
use super::budget::MemoryBudget;
use super::delete_loader::FilesRead;
use super::file_columns::{OpenFile, Target};
use super::loads::Loads;
use super::spawn::spawned;
use super::task::{DeleteFile, FileScanTask};
use crate::Result;
use crate::io::FileIo;
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::{DataFile, TableMetadata};

/// Parts of a data file, or delete files, read at a time.
const CONCURRENCY: usize = 4;

/// Delete files of one scope, ascending by sequence number; shared by all tasks they apply to.
type Scope = Arc<[Arc<DeleteFile>]>;

/// Finds the rows that equality deletes remove. Serves the tasks of one scan plan.
#[derive(Debug)]
pub(crate) struct EqualityDeletes {
    source: Source,
    budget: Arc<dyn MemoryBudget>,
    /// By address of the scope, which the value keeps alive.
    scopes: Mutex<HashMap<usize, Arc<ScopeKeys>>>,
    /// By data file path.
    positions: Loads<Arc<str>, Option<Arc<DeletionVector>>>,
}

/// What reading files takes.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) io: FileIo,
    pub(crate) metadata: Arc<TableMetadata>,
    /// The table's name, for messages.
    pub(crate) table: Arc<str>,
    pub(crate) read: Arc<FilesRead>,
}

/// The key sets of one scope.
#[derive(Debug)]
struct ScopeKeys {
    /// Keeps the address.
    _scope: Scope,
    sets: Vec<Arc<KeySet>>,
}

/// A data file in which to look for keys.
#[derive(Debug, Clone)]
pub(crate) struct Searched {
    pub(crate) file: Arc<DataFile>,
    pub(crate) sequence_number: i64,
}

impl From<&FileScanTask> for Searched {
    fn from(task: &FileScanTask) -> Self {
        Self { file: Arc::clone(&task.data_file), sequence_number: task.sequence_number }
    }
}

impl EqualityDeletes {
    pub(crate) fn new(source: Source, budget: Arc<dyn MemoryBudget>) -> Self {
        Self { source, budget, scopes: Mutex::default(), positions: Loads::new() }
    }

    /// For these tasks alone: keys are read only of the delete files that one of them needs, and let go when all of them
    /// are done.
    ///
    /// # Errors
    /// As [`KeySet::group`].
    pub(crate) fn expect<'a>(&self, tasks: impl IntoIterator<Item = &'a FileScanTask>) -> Result<()> {
        let mut needed: HashMap<usize, (Scope, RoaringBitmap, Vec<Searched>)> = HashMap::new();
        for task in tasks {
            for (scope, held) in task.deletes.equality.shares() {
                let entry = needed.entry(address(scope));
                let (_, all, searched) = entry.or_insert_with(|| (Arc::clone(scope), RoaringBitmap::new(), Vec::new()));
                *all |= held;
                searched.push(Searched::from(task));
            }
        }
        let mut scopes = self.scopes.lock();
        for (address, (scope, held, searched)) in needed {
            let sets = KeySet::group(&self.source, &scope, &held, &searched)?;
            scopes.insert(address, Arc::new(ScopeKeys { _scope: scope, sets }));
        }
        Ok(())
    }

    /// Positions in the task's file that equality deletes remove; `None` when there are none. Positions that another kind
    /// of delete removes may be among them.
    ///
    /// # Errors
    /// `DataInvalid` for a damaged file or a delete file without its key columns, `Unavailable` when the keys do not fit
    /// in the budget by any means, `Unsupported` for a format that is not read; storage errors.
    pub(crate) async fn positions(self: &Arc<Self>, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        if task.deletes.equality.is_empty() {
            return Ok(None);
        }
        let start = || {
            let (own, task) = (Arc::clone(self), task.clone());
            async move { own.find(&task).await }
        };
        self.positions.get(Arc::clone(&task.data_file.file_path), start).await
    }

    async fn find(&self, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        let searched = Searched::from(task);
        let mut found = DeletionVector::new();
        let mut whole = Vec::new();
        let sets = self.sets(task)?;
        for set in &sets {
            match set.built(&self.source, &self.budget).await? {
                Built::Whole(table) => whole.push((Arc::clone(set), table)),
                Built::Shares(shares) => {
                    let positions = set.by_shares(&self.source, &self.budget, shares, &searched).await?;
                    if let Some(positions) = positions.get(&searched.file.file_path) {
                        found.union_with(positions);
                    }
                }
            }
        }
        if !whole.is_empty() {
            found.union_with(&search(&self.source, &searched, whole).await?);
        }
        sets.iter().for_each(|set| set.searched_one());
        Ok((!found.is_empty()).then(|| Arc::new(found)))
    }

    /// The key sets that some delete file of the task has.
    fn sets(&self, task: &FileScanTask) -> Result<Vec<Arc<KeySet>>> {
        let mut sets = Vec::new();
        for (scope, held) in task.deletes.equality.shares() {
            let keys = self.keys_of(scope)?;
            sets.extend(keys.sets.iter().filter(|set| !set.members.is_disjoint(&held)).cloned());
        }
        Ok(sets)
    }

    fn keys_of(&self, scope: &Scope) -> Result<Arc<ScopeKeys>> {
        Ok(match self.scopes.lock().entry(address(scope)) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(new) => {
                let all: RoaringBitmap = (0u32..).take(scope.len()).collect();
                let sets = KeySet::group(&self.source, scope, &all, &[])?;
                Arc::clone(new.insert(Arc::new(ScopeKeys { _scope: Arc::clone(scope), sets })))
            }
        })
    }
}

fn address(scope: &Scope) -> usize {
    Arc::as_ptr(scope).cast::<()>() as usize
}

/// Positions of the file's rows that have a key in one of the tables, deleted after the file was added.
pub(crate) async fn search(
    source: &Source,
    searched: &Searched,
    tables: Vec<(Arc<KeySet>, Arc<KeyTable>)>,
) -> Result<DeletionVector> {
    let targets: Arc<[Target]> = tables.iter().flat_map(|(set, _)| set.targets()).collect();
    let file = OpenFile::open(&source.io, &source.metadata, &searched.file, targets).await?;
    let (file, tables) = (Arc::new(file), Arc::new(tables));
    let sequence_number = searched.sequence_number;
    let parts = file.parts().into_iter().map(|part| {
        let (file, tables) = (Arc::clone(&file), Arc::clone(&tables));
        // A task each, so that parts are decoded on several cores.
        spawned(async move {
            let mut found = DeletionVector::new();
            file.read(part, |first, _, arrays| {
                let mut rest = arrays.as_slice();
                for (set, table) in tables.iter() {
                    let keys;
                    (keys, rest) = rest.split_at_checked(set.columns.len()).unwrap_or((rest, &[]));
                    table.find(&set.keys(keys)?, sequence_number, |row| {
                        found.insert(first + row as u64);
                    })?;
                }
                Ok(())
            })
            .await?;
            Ok(found)
        })
    });
    let parts: Vec<_> = parts.collect();
    let found = stream::iter(parts).buffer_unordered(CONCURRENCY);
    let union = |mut all: DeletionVector, part: DeletionVector| {
        all.union_with(&part);
        std::future::ready(Ok(all))
    };
    found.try_fold(DeletionVector::new(), union).await
}
