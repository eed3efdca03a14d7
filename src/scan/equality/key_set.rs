//! The equality delete files of one scope that have the same key columns, and their keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;
use tokio::sync::mpsc;

use super::columns::KeyColumn;
use super::key_table::{KeyTable, Share};
use super::{CONCURRENCY, Searched, Source, search};
use crate::scan::budget::MemoryBudget;
use crate::scan::file_columns::{OpenFile, Target};
use crate::scan::loads::Loads;
use crate::scan::spawn::spawned;
use crate::scan::task::DeleteFile;
use crate::spec::deletion_vector::DeletionVector;
use crate::{Error, Result};

/// Shares that keys are divided into at most. Each takes a pass over the delete files and the data files.
const MAX_SHARES: u64 = 1024;
/// Bytes a key is taken to need before any was seen.
const BYTES_PER_KEY: u64 = 32;
/// Delete files named in an error.
const NAMED_FILES: usize = 5;

/// Delete files with the same key columns.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// In ascending order of field id.
    pub(crate) columns: Vec<KeyColumn>,
    /// Indices of `files` in the scope.
    pub(crate) members: RoaringBitmap,
    files: Vec<Arc<DeleteFile>>,
    /// The data files in which the keys will be looked up; empty when that is not known.
    searched: Arc<[Searched]>,
    /// How many of them are left to do.
    left: AtomicUsize,
    table: Loads<(), Built>,
    shares: Loads<(), Arc<Positions>>,
}

/// Positions found, by data file path.
pub(crate) type Positions = HashMap<Arc<str>, DeletionVector>;

/// How the keys can be looked up.
#[derive(Debug, Clone)]
pub(crate) enum Built {
    /// In one table.
    Whole(Arc<KeyTable>),
    /// They do not fit in the budget: in so many shares, one after the other.
    Shares(u64),
}

/// Why keys did not become a table.
struct NotBuilt {
    error: Error,
    /// Memory that all keys would take, as far as that can be told; `None` when memory was not the reason.
    needed: Option<Needed>,
}

#[derive(Debug, Clone, Copy)]
struct Needed {
    all: u64,
    granted: u64,
}

impl KeySet {
    /// The key sets of the delete files at `held` in a scope.
    ///
    /// # Errors
    /// `DataInvalid`, naming the delete file, for key columns that no table can have.
    pub(crate) fn group(
        source: &Source,
        scope: &[Arc<DeleteFile>],
        held: &RoaringBitmap,
        searched: &[Searched],
    ) -> Result<Vec<Arc<Self>>> {
        let mut by_ids: BTreeMap<Vec<i32>, (RoaringBitmap, Vec<Arc<DeleteFile>>)> = BTreeMap::new();
        for index in held {
            let Some(delete) = scope.get(index as usize) else { continue };
            let mut ids = delete.file.equality_ids.clone();
            ids.sort_unstable();
            ids.dedup();
            let (members, files) = by_ids.entry(ids).or_default();
            members.insert(index);
            files.push(Arc::clone(delete));
        }
        let searched: Arc<[Searched]> = searched.into();
        let sets = by_ids.into_iter().map(|(ids, (members, files))| {
            let named = |e: Error| {
                let file = files.first().map_or("", |delete| &*delete.file.file_path);
                e.with_context("delete file", file).with_context("table", &*source.table)
            };
            let columns = ids.iter().map(|id| KeyColumn::new(&source.metadata, *id));
            let columns = columns.collect::<Result<Vec<_>>>().map_err(named)?;
            Ok(Arc::new(Self {
                columns,
                members,
                left: AtomicUsize::new(searched.len()),
                searched: Arc::clone(&searched),
                files,
                table: Loads::new(),
                shares: Loads::new(),
            }))
        });
        sets.collect()
    }

    /// What to read of a file to have its keys.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.columns.iter().map(|column| column.target.clone())
    }

    /// The keys in columns that were read for [`KeySet::targets`].
    ///
    /// # Errors
    /// `Internal` when they were not.
    pub(crate) fn keys(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        self.columns.iter().zip(columns).map(|(key, column)| key.values(column)).collect()
    }

    /// The table of all keys, or into how many shares they must be divided. Built once, whoever asks.
    ///
    /// # Errors
    /// Those of reading the delete files.
    pub(crate) async fn built(self: &Arc<Self>, source: &Source, budget: &Arc<dyn MemoryBudget>) -> Result<Built> {
        let start = || {
            let (own, source, budget) = (Arc::clone(self), source.clone(), Arc::clone(budget));
            async move {
                match own.build(&source, &budget, Share::ALL).await {
                    Ok(table) => Ok(Built::Whole(Arc::new(table))),
                    Err(NotBuilt { needed: Some(needed), error }) => match needed.shares() {
                        Some(shares) => Ok(Built::Shares(shares)),
                        None => Err(own.does_not_fit(&source, needed, error)),
                    },
                    Err(NotBuilt { error, needed: None }) => Err(error),
                }
            }
        };
        self.table.get((), start).await
    }

    /// The positions that the keys delete in the data files to be searched, or in this one if it is not known which they
    /// are, found share by share.
    ///
    /// # Errors
    /// `Unavailable` when no share fits in the budget; those of reading files.
    pub(crate) async fn by_shares(
        self: &Arc<Self>,
        source: &Source,
        budget: &Arc<dyn MemoryBudget>,
        shares: u64,
        only: &Searched,
    ) -> Result<Arc<Positions>> {
        let start = |searched: Arc<[Searched]>| {
            let (own, source, budget) = (Arc::clone(self), source.clone(), Arc::clone(budget));
            async move { own.pass_by_pass(&source, &budget, shares, &searched).await.map(Arc::new) }
        };
        if self.searched.is_empty() {
            return spawned(start(Arc::from([only.clone()]))).await;
        }
        self.shares.get((), || start(Arc::clone(&self.searched))).await
    }

    /// One of the data files to be searched is done; after the last one the keys are let go.
    pub(crate) fn searched_one(&self) {
        let before = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if before == Ok(1) {
            self.table.forget(&());
            self.shares.forget(&());
        }
    }

    async fn pass_by_pass(
        self: &Arc<Self>,
        source: &Source,
        budget: &Arc<dyn MemoryBudget>,
        mut of: u64,
        searched: &[Searched],
    ) -> Result<Positions> {
        let mut found = Positions::new();
        let mut number = 0;
        while number < of {
            let table = match self.build(source, budget, Share { number, of }).await {
                Ok(table) => Arc::new(table),
                Err(NotBuilt { needed: Some(needed), error }) => {
                    // Half the share, half the memory. What was found stays found.
                    of = of.saturating_mul(2);
                    if of > MAX_SHARES {
                        return Err(self.does_not_fit(source, needed, error));
                    }
                    number = 0;
                    continue;
                }
                Err(NotBuilt { error, needed: None }) => return Err(error),
            };
            for data in searched {
                let positions = search(source, data, vec![(Arc::clone(self), Arc::clone(&table))]).await?;
                if !positions.is_empty() {
                    found.entry(Arc::clone(&data.file.file_path)).or_default().union_with(&positions);
                }
            }
            number += 1;
        }
        Ok(found)
    }

    /// Reads the delete files, each once, and keeps a share of their keys.
    async fn build(
        self: &Arc<Self>,
        source: &Source,
        budget: &Arc<dyn MemoryBudget>,
        share: Share,
    ) -> Result<KeyTable, NotBuilt> {
        let plain = |error: Error| NotBuilt { error, needed: None };
        let types: Vec<DataType> = self.columns.iter().map(|column| column.data_type.clone()).collect();
        let mut table = KeyTable::new(&types, share, budget).map_err(plain)?;
        let (sender, mut receiver) = mpsc::channel::<(Vec<ArrayRef>, i64)>(CONCURRENCY);
        let reads = self.files.clone().into_iter().map(move |delete| {
            let (own, source, sender) = (Arc::clone(self), source.clone(), sender.clone());
            spawned(async move { own.read(&source, &delete, &sender).await })
        });
        let reads = stream::iter(reads).buffer_unordered(CONCURRENCY).map_err(|e| (e, false)).try_collect::<()>();
        let mut seen = 0u64;
        let inserts = async {
            while let Some((keys, sequence_number)) = receiver.recv().await {
                seen += keys.first().map_or(0, |column| column.len() as u64);
                table.insert(&keys, sequence_number).map_err(|e| (e, true))?;
            }
            Ok(())
        };
        match futures::try_join!(reads, inserts) {
            Ok(_) => Ok(table),
            Err((error, false)) => Err(plain(error)),
            Err((error, true)) => {
                let rows: u64 = self.files.iter().map(|delete| delete.file.record_count).sum();
                let granted = table.charged() as u64;
                // What was granted did not do for the rows seen, and growing would have doubled it.
                let per_row = (granted.saturating_mul(2) / seen.max(1)).max(1);
                let per_row = if granted == 0 { BYTES_PER_KEY } else { per_row };
                let all = per_row.saturating_mul(rows.max(seen)).saturating_mul(share.of);
                Err(NotBuilt { error, needed: Some(Needed { all, granted }) })
            }
        }
    }

    /// Reads the keys of one delete file.
    async fn read(
        &self,
        source: &Source,
        delete: &DeleteFile,
        sender: &mpsc::Sender<(Vec<ArrayRef>, i64)>,
    ) -> Result<()> {
        let named = |e: Error| e.with_context("equality delete file", &*delete.file.file_path);
        source.read.add(&delete.file);
        let targets: Arc<[Target]> = self.targets().collect();
        let file = OpenFile::open(&source.io, &source.metadata, &delete.file, targets).await.map_err(named)?;
        for (index, column) in self.columns.iter().enumerate() {
            if !file.has(index) {
                let id = column.target.path.last().copied().unwrap_or_default();
                return Err(named(Error::data_invalid(format!("the file lacks its key column, field {id}"))));
            }
        }
        for part in file.parts() {
            let mut batches = Vec::new();
            file.read(part, |_, _, arrays| {
                batches.push(self.keys(&arrays)?);
                Ok(())
            })
            .await
            .map_err(named)?;
            for keys in batches {
                if sender.send((keys, delete.sequence_number)).await.is_err() {
                    // The table could not grow: whoever builds it has the reason.
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn does_not_fit(&self, source: &Source, needed: Needed, error: Error) -> Error {
        let files = self.files.iter().take(NAMED_FILES).map(|delete| &*delete.file.file_path).collect::<Vec<_>>();
        let more = match self.files.len().saturating_sub(NAMED_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Error::unavailable(format!(
            "the keys of {} equality delete files need about {} bytes of memory and do not fit even in {MAX_SHARES} parts: \
             allow queries more memory, or compact the table",
            self.files.len(),
            needed.all
        ))
        .with_context("table", &*source.table)
        .with_context("delete files", format!("{}{more}", files.join(", ")))
        .with_source(error)
    }
}

impl Needed {
    /// Into how many shares to divide the keys; `None` when that is too many.
    fn shares(self) -> Option<u64> {
        let shares = (self.all / self.granted.max(1)).saturating_add(1).clamp(2, u64::MAX / 2).next_power_of_two();
        if self.granted == 0 { Some(MAX_SHARES) } else { Some(shares.min(MAX_SHARES)) }
    }
}
