//! A delete, planned: the rows of each file that go, to look at and then to commit.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Expr;
use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, ErrorKind, Result};
use crate::expr::Predicate;
use crate::scan::{DeleteLoader, FileScanTask, plan_scan};
use crate::spec::FormatVersion;
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::{IsolationLevel, RowLevelMode};
use crate::table::Table;
use crate::transaction::{Removal, SnapshotUpdate, Validation};

use super::physical;
use super::row_delete_planner::{Action, RowDelete};
use super::row_removal::RowRemoval;

/// Files whose deletes are loaded at a time.
const CONCURRENCY: usize = 4;

/// The rows that one DELETE takes out of a table, file by file, before anything is written.
#[derive(Debug)]
pub struct DeletePlan {
    filter: Predicate,
    isolation: IsolationLevel,
    removal: RowRemoval,
}

impl DeletePlan {
    /// A plan of `deletes` on `table` as it is pinned, that conflicts with rows `filter` may match. Deletes of no row are
    /// left out; files without a live row go along with a delete of other rows, but are no reason for a snapshot.
    pub(crate) fn new(table: Table, filter: Predicate, mode: RowLevelMode, deletes: Vec<RowDelete>) -> Result<Self> {
        let isolation = table.properties()?.delete_isolation;
        Ok(Self { filter, isolation, removal: RowRemoval::new(table, mode, deletes)? })
    }

    /// The rows that go, one entry a data file.
    pub fn deletes(&self) -> &[RowDelete] {
        self.removal.deletes()
    }

    /// Live rows that go.
    pub fn deleted_rows(&self) -> u64 {
        self.removal.deleted_rows()
    }

    /// Whether nothing matched.
    pub fn is_empty(&self) -> bool {
        self.deletes().is_empty()
    }

    /// How deleted rows of files that stay are recorded.
    pub fn mode(&self) -> RowLevelMode {
        self.removal.mode()
    }

    /// How the rows of one file will be taken out.
    pub fn action(&self, delete: &RowDelete) -> Action {
        self.removal.action(delete)
    }

    /// Writes the delete files or rewritten data files and returns the snapshot to commit. Files written are deleted again
    /// if this fails; after success they belong to the returned update.
    ///
    /// # Errors
    /// `InvalidInput` when nothing matched: there is no snapshot to make.
    pub async fn prepare(&self) -> Result<SnapshotUpdate> {
        let table = self.removal.table();
        if self.is_empty() {
            return Err(Error::invalid_input("the delete matches no row, so there is nothing to commit")
                .with_context("table", table.ident.to_string()));
        }
        let mut update = SnapshotUpdate::new(table.clone());
        match self.removal.write(&mut update, Removal::Whole).await {
            Ok(referenced) => {
                let start = table.metadata.current_snapshot_id;
                let validation = Validation::for_delete(start, self.isolation, self.filter.clone());
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

    /// Prepares and commits. Returns the number of rows that this delete removed: not those that a concurrent DELETE took away
    /// in between.
    pub(crate) async fn commit_counted(&self) -> Result<u64> {
        let update = self.prepare().await?;
        let snapshot_id = update.snapshot_id();
        let committed = update.commit_counted().await?;
        let own = self.deletes().iter().filter(|delete| !committed.gone.contains(&delete.task.data_file.file_path));
        let rows: u64 = own.map(RowDelete::deleted_rows).sum();
        // The commit is done: rows that cannot be looked up any more are counted by both.
        let taken = self.rows_taken_before(&committed.table, snapshot_id).await.unwrap_or(0);
        Ok(rows.saturating_sub(taken))
    }

    /// Rows of this delete that position delete files of other commits had taken when snapshot `snapshot_id` of `table` was
    /// made of it. Other kinds of deletes on one file conflict.
    async fn rows_taken_before(&self, table: &Table, snapshot_id: i64) -> Result<u64> {
        let parent = table.metadata.snapshot_by_id(snapshot_id).and_then(|snapshot| snapshot.parent_snapshot_id);
        let added_positions =
            |delete: &&RowDelete| matches!(self.action(delete), Action::PartitionPositions | Action::FilePositions);
        let deletes: HashMap<&str, &RowDelete> = self
            .deletes()
            .iter()
            .filter(added_positions)
            .map(|delete| (&*delete.task.data_file.file_path, delete))
            .collect();
        if deletes.is_empty() || parent == self.removal.table().metadata.current_snapshot_id {
            return Ok(0);
        }
        let loader = DeleteLoader::new(table);
        let mut taken = 0;
        for task in plan_scan(table, parent, &self.filter).await?.tasks {
            if let Some(delete) = deletes.get(&*task.data_file.file_path)
                && let Some(deleted) = loader.positional_deletes(&task).await?
            {
                let mut left = delete.positions.clone();
                left.subtract(&deleted);
                taken += delete.positions.len() - left.len();
            }
        }
        Ok(taken)
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

/// A statement that changes rows, each with a mode of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLevelCommand {
    /// DELETE.
    Delete,
    /// UPDATE.
    Update,
    /// MERGE.
    Merge,
}

/// The mode a statement on `table` uses: the session option (`calve.delete_mode`, `calve.update_mode`, `calve.merge_mode`) if
/// set, else the table property (`write.delete.mode`, …), else copy-on-write.
///
/// # Errors
/// `Unsupported` for merge-on-read on a format version 1 table, or where the table wants delete files that are not written;
/// `InvalidInput` when the session option is no mode.
pub fn effective_mode(command: RowLevelCommand, table: &Table, options: &ConfigOptions) -> Result<RowLevelMode> {
    let mode = match physical::session_mode(command, options)? {
        Some(mode) => mode,
        None => {
            let properties = table.properties()?;
            match command {
                RowLevelCommand::Delete => properties.delete_mode,
                RowLevelCommand::Update => properties.update_mode,
                RowLevelCommand::Merge => properties.merge_mode,
            }
        }
    };
    if mode == RowLevelMode::MergeOnRead && table.metadata.format_version == FormatVersion::V2 {
        table.properties()?.check_position_deletes_writable()?;
    }
    if mode == RowLevelMode::MergeOnRead && table.metadata.format_version == FormatVersion::V1 {
        return Err(Error::unsupported(
            "merge-on-read needs format version 2; set 'format-version' = '2' on the table, or use copy-on-write",
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
