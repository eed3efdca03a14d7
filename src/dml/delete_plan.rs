//! A delete, planned: the rows of each file that go, to look at and then to commit.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Expr;
use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, ErrorKind, Result};
use crate::expr::Predicate;
use crate::scan::{DeleteLoader, FileDeletes, FileScanTask, spawned};
use crate::spec::FormatVersion;
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::{DeleteGranularity, IsolationLevel, RowLevelMode};
use crate::table::Table;
use crate::transaction::{Removal, SnapshotUpdate, Validation};
use crate::writer::{CreatedFiles, DeletionVectorWriter, PositionDeleteWriter, rewrite_file, rewrite_options};

use super::physical;
use super::row_delete_planner::{Action, RowDelete, decide};

/// Files rewritten or delete files loaded at a time.
const CONCURRENCY: usize = 4;

/// The rows that one DELETE takes out of a table, file by file, before anything is written.
#[derive(Debug)]
pub struct DeletePlan {
    table: Table,
    start_snapshot_id: Option<i64>,
    filter: Predicate,
    mode: RowLevelMode,
    isolation: IsolationLevel,
    granularity: DeleteGranularity,
    deletes: Vec<RowDelete>,
}

impl DeletePlan {
    /// A plan of `deletes` on `table` as it is pinned, that conflicts with rows `filter` may match. Deletes of no row are
    /// left out; files without a live row go along with a delete of other rows, but are no reason for a snapshot.
    pub(crate) fn new(table: Table, filter: Predicate, mode: RowLevelMode, deletes: Vec<RowDelete>) -> Result<Self> {
        let properties = table.properties()?;
        let start_snapshot_id = table.metadata.current_snapshot_id;
        let takes_rows = deletes.iter().any(|delete| delete.deleted_rows() > 0);
        let changes = |delete: &RowDelete| takes_rows && (delete.whole_file || !delete.positions.is_empty());
        let deletes = deletes.into_iter().filter(changes).collect();
        Ok(Self {
            start_snapshot_id,
            filter,
            mode,
            isolation: properties.delete_isolation,
            granularity: properties.delete_granularity,
            table,
            deletes,
        })
    }

    /// The rows that go, one entry a data file.
    pub fn deletes(&self) -> &[RowDelete] {
        &self.deletes
    }

    /// Live rows that go.
    pub fn deleted_rows(&self) -> u64 {
        self.deletes.iter().map(RowDelete::deleted_rows).sum()
    }

    /// Whether nothing matched.
    pub fn is_empty(&self) -> bool {
        self.deletes.is_empty()
    }

    /// How deleted rows of files that stay are recorded.
    pub fn mode(&self) -> RowLevelMode {
        self.mode
    }

    /// How the rows of one file will be taken out.
    pub fn action(&self, delete: &RowDelete) -> Action {
        decide(delete, self.mode, self.table.metadata.format_version, self.granularity)
    }

    /// Writes the delete files or rewritten data files and returns the snapshot to commit. Files written are deleted again
    /// if this fails; after success they belong to the returned update.
    ///
    /// # Errors
    /// `InvalidInput` when nothing matched: there is no snapshot to make.
    pub async fn prepare(&self) -> Result<SnapshotUpdate> {
        if self.deletes.is_empty() {
            return Err(Error::invalid_input("the delete matches no row, so there is nothing to commit")
                .with_context("table", self.table.ident.to_string()));
        }
        let mut update = SnapshotUpdate::new(self.table.clone());
        match self.write(&mut update).await {
            Ok(referenced) => {
                let validation = Validation::for_delete(self.start_snapshot_id, self.isolation, self.filter.clone());
                Ok(update.validate(validation.referencing(referenced)))
            }
            Err(error) => {
                update.discard().await;
                Err(error)
            }
        }
    }

    /// Prepares and commits. Returns the table with the delete done.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare) and [`SnapshotUpdate::commit`].
    pub async fn commit(&self) -> Result<Table> {
        self.prepare().await?.commit().await
    }

    /// Prepares and commits. Returns the number of rows that this delete removed: not those of files that a concurrent
    /// DELETE took away in between.
    pub(crate) async fn commit_counted(&self) -> Result<u64> {
        let committed = self.prepare().await?.commit_counted().await?;
        let own = self.deletes.iter().filter(|delete| !committed.gone.contains(&delete.task.data_file.file_path));
        Ok(own.map(RowDelete::deleted_rows).sum())
    }

    async fn write(&self, update: &mut SnapshotUpdate) -> Result<Vec<Arc<str>>> {
        let mut by_action: HashMap<Action, Vec<&RowDelete>> = HashMap::new();
        for delete in &self.deletes {
            by_action.entry(self.action(delete)).or_default().push(delete);
        }
        let mut referenced = Vec::new();
        for (action, deletes) in by_action {
            match action {
                Action::Keep => {}
                Action::Drop => deletes.iter().for_each(|delete| remove_file(update, delete, Removal::Whole)),
                Action::Rewrite => {
                    self.rewrite(update, &deletes).await?;
                    deletes.iter().for_each(|delete| remove_file(update, delete, Removal::Rewritten));
                }
                Action::Vector => {
                    let mut writer = DeletionVectorWriter::new(&self.table, 0, 0)?;
                    for delete in &deletes {
                        let file = &delete.task.data_file;
                        writer.add(&file.file_path, &file.partition_key(), &delete.vector_positions()).await?;
                    }
                    writer.finish().await?.into_iter().for_each(|file| update.add_delete(file));
                }
                Action::PartitionPositions | Action::FilePositions => {
                    let mut writer = PositionDeleteWriter::new(&self.table, 0, 0, Some(self.granularity))?;
                    for delete in &deletes {
                        let file = &delete.task.data_file;
                        let positions = self.positions_to_write(action, delete).await?;
                        writer.add(&file.file_path, &file.partition_key(), &positions);
                    }
                    writer.finish().await?.into_iter().for_each(|file| update.add_delete(file));
                }
            }
            if matches!(action, Action::Vector | Action::PartitionPositions | Action::FilePositions) {
                referenced.extend(deletes.iter().map(|delete| delete.task.data_file.file_path.clone()));
            }
            if matches!(action, Action::Vector | Action::FilePositions) {
                for superseded in deletes.iter().flat_map(|delete| &delete.superseded) {
                    update.remove_delete(superseded.file.clone());
                }
            }
        }
        Ok(referenced)
    }

    /// New positions, and with file granularity those of the delete files absorbed.
    async fn positions_to_write(&self, action: Action, delete: &RowDelete) -> Result<PositionBitmap> {
        let mut positions = delete.positions.clone();
        if action == Action::FilePositions && !delete.superseded.is_empty() {
            let absorbed = FileScanTask {
                deletes: FileDeletes { positions: delete.superseded.clone().into(), ..FileDeletes::default() },
                ..delete.task.clone()
            };
            let loader = DeleteLoader::new(&self.table);
            if let Some(absorbed) = loader.deleted_positions(&absorbed).await? {
                positions.union_with(&absorbed);
            }
        }
        Ok(positions)
    }

    async fn rewrite(&self, update: &mut SnapshotUpdate, deletes: &[&RowDelete]) -> Result<()> {
        let rewrites: Vec<(FileScanTask, PositionBitmap)> =
            deletes.iter().map(|delete| (delete.task.clone(), delete.all_positions())).collect();
        let mut results = futures::stream::iter(rewrites.into_iter().enumerate())
            .map(|(index, (task, deleted))| {
                let table = self.table.clone();
                // A task of its own, so that files are decoded and encoded on several cores.
                spawned(async move {
                    let options = rewrite_options(&table, index, 0);
                    let files = rewrite_file(&table, &task, &deleted, options).await?;
                    let mut created = CreatedFiles::new(table.io.clone());
                    files.iter().for_each(|file| created.add(&file.file_path));
                    Ok((files, created))
                })
            })
            .buffer_unordered(CONCURRENCY);
        let mut first_error = None;
        while let Some(result) = results.next().await {
            match result {
                Ok((files, created)) => {
                    files.into_iter().for_each(|file| update.add_data(file));
                    created.release();
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

fn remove_file(update: &mut SnapshotUpdate, delete: &RowDelete, removal: Removal) {
    update.remove_data(delete.task.data_file.clone(), removal);
    for superseded in &delete.superseded {
        update.remove_delete(superseded.file.clone());
    }
}

/// Plans `DELETE FROM table WHERE condition` without SQL. Nothing is written.
///
/// `table` is read at its current snapshot; `condition` names the table's columns unqualified, `None` matches every row.
/// The session must have been built with [`session::install`](crate::session::install).
///
/// # Errors
/// `InvalidInput` when the condition is not boolean or names an unknown column; `Unsupported` when a file of the table
/// cannot be read.
pub async fn plan_delete(state: &SessionState, table: &Table, condition: Option<Expr>) -> Result<DeletePlan> {
    physical::plan_delete(state, table, condition).await
}

/// The mode a DELETE on `table` uses: the session option `calve.delete_mode` if set, else the table property
/// `write.delete.mode`, else copy-on-write.
///
/// # Errors
/// `Unsupported` for merge-on-read on a format version 1 table.
pub fn effective_delete_mode(table: &Table, options: &ConfigOptions) -> Result<RowLevelMode> {
    let mode = match physical::session_delete_mode(options)? {
        Some(mode) => mode,
        None => table.properties()?.delete_mode,
    };
    if mode == RowLevelMode::MergeOnRead && table.metadata.format_version == FormatVersion::V1 {
        return Err(Error::unsupported(
            "merge-on-read needs format version 2; set 'format-version' = '2' on the table, or delete copy-on-write",
        )
        .with_context("table", table.ident.to_string()));
    }
    Ok(mode)
}

/// Positions of a file's live rows, ascending.
///
/// # Errors
/// `Unsupported` when the file or its deletes are in a format that is not read; those of
/// [`DeleteLoader::deleted_positions`].
pub async fn live_positions(table: &Table, task: &FileScanTask) -> Result<PositionBitmap> {
    task.check_readable(&table.ident.to_string())?;
    let loader = DeleteLoader::new(table);
    let mut live = PositionBitmap::new();
    live.insert_range(0..task.data_file.record_count);
    if let Some(deleted) = loader.deleted_positions(task).await? {
        live.subtract(&deleted);
    }
    Ok(live)
}

/// Deletes of whole files: each one's old deletes are read, and of the data file the key columns of equality deletes.
pub(crate) async fn whole_file_deletes(loader: &DeleteLoader, tasks: &[Arc<FileScanTask>]) -> Result<Vec<RowDelete>> {
    futures::stream::iter(tasks.iter().cloned())
        .map(|task| async move {
            let existing = loader.deleted_positions(&task).await?;
            Ok(RowDelete::of_file((*task).clone(), existing))
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await
}

/// Deletes of the positions found by a scan, in the order of its `tasks`. `loader` is the scan's, which has the old deletes
/// of every file that it opened.
pub(crate) async fn position_deletes(
    loader: &DeleteLoader,
    tasks: &[Arc<FileScanTask>],
    mut matched: HashMap<String, PositionBitmap>,
) -> Result<Vec<RowDelete>> {
    let touched = tasks.iter().filter_map(|task| Some((Arc::clone(task), matched.remove(&*task.data_file.file_path)?)));
    let touched: Vec<_> = touched.collect();
    if let Some(path) = matched.into_keys().next() {
        return Err(Error::new(ErrorKind::Internal, "a matched row lies in a file that was not scanned")
            .with_context("file", path));
    }
    futures::stream::iter(touched)
        .map(|(task, positions)| async move {
            let existing = loader.deleted_positions(&task).await?;
            let positional = match task.deletes.equality.is_empty() {
                true => existing.clone(),
                false => loader.positional_deletes(&task).await?,
            };
            Ok(RowDelete::of_positions((*task).clone(), positions, existing, positional))
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await
}
