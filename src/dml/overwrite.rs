//! INSERT OVERWRITE: new rows in the place of old ones, in one snapshot.
//!
//! Sources: Java `BaseOverwriteFiles`, `BaseReplacePartitions`. Files whose every row goes leave by metadata; of others the
//! surviving rows are written again, whatever the table's modes say. Which files go is settled against the snapshot that
//! the statement read: data that another commit puts into the same place in the meantime is a conflict.

use std::sync::Arc;

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Expr;

use crate::error::{Error, Result};
use crate::expr::{Coverage, FileEvaluator, PartitionSet, Predicate};
use crate::scan::{FileScanTask, plan_scan};
use crate::spec::properties::RowLevelMode;
use crate::spec::{DataFile, PartitionTuple};
use crate::table::Table;
use crate::transaction::{Removal, SnapshotUpdate, UpdateKind, Validation};

use super::RowDelete;
use super::physical;
use super::row_removal::RowRemoval;

/// Summary key of a snapshot that replaces whole partitions, as Java writes it.
const REPLACE_PARTITIONS: &str = "replace-partitions";

/// An overwrite of every row of the table as it is pinned.
pub(crate) async fn replace_table(table: &Table, added: Vec<DataFile>) -> Result<SnapshotUpdate> {
    let mut update = overwrite(table, added);
    match plan_scan(table, None, &Predicate::AlwaysTrue).await {
        Ok(plan) => {
            plan.tasks.iter().for_each(|task| remove_file(&mut update, task));
            let start = table.metadata.current_snapshot_id;
            Ok(update.validate(Validation::for_overwrite(start, Predicate::AlwaysTrue)))
        }
        Err(error) => {
            update.discard().await;
            Err(error)
        }
    }
}

/// An overwrite of the rows that `filter` selects: `whole` files and those that `found` finds.
pub(crate) async fn replace_rows(
    table: &Table,
    filter: Predicate,
    whole: Vec<RowDelete>,
    found: impl Future<Output = Result<Vec<RowDelete>>>,
    added: Vec<DataFile>,
) -> Result<SnapshotUpdate> {
    let mut update = overwrite(table, added);
    let written = async {
        let mut deletes = found.await?;
        deletes.extend(whole);
        let removal = RowRemoval::new(table.clone(), RowLevelMode::CopyOnWrite, deletes)?;
        removal.write(&mut update, Removal::Whole).await
    };
    match written.await {
        // Copy-on-write makes no delete that could refer to a file.
        Ok(_) => Ok(update.validate(Validation::for_overwrite(table.metadata.current_snapshot_id, filter))),
        Err(error) => {
            update.discard().await;
            Err(error)
        }
    }
}

/// An overwrite of the partitions that `added` lies in. No data file is opened.
pub(crate) async fn replace_partitions(table: &Table, added: Vec<DataFile>) -> Result<SnapshotUpdate> {
    let tuples: Vec<_> = added.iter().map(|file| (file.spec_id, file.partition.clone())).collect();
    let mut update = overwrite(table, added).property(REPLACE_PARTITIONS, "true");
    match find_partitions(table, tuples, &mut update).await {
        Ok(partitions) => {
            let start = table.metadata.current_snapshot_id;
            Ok(update.validate(Validation::for_partition_overwrite(start, partitions)))
        }
        Err(error) => {
            update.discard().await;
            Err(error)
        }
    }
}

async fn find_partitions(
    table: &Table,
    tuples: Vec<(i32, PartitionTuple)>,
    update: &mut SnapshotUpdate,
) -> Result<Arc<PartitionSet>> {
    let metadata = &table.metadata;
    let spec = metadata.default_spec()?;
    if tuples.iter().any(|(spec_id, _)| *spec_id != spec.spec_id) {
        return Err(Error::invalid_input(format!(
            "files that replace partitions must be written under the table's default partition spec, {}",
            spec.spec_id
        ))
        .with_context("table", table.ident.to_string()));
    }
    let tuples = tuples.into_iter().map(|(_, tuple)| tuple);
    let partitions = Arc::new(PartitionSet::new(Arc::clone(spec), tuples, metadata));
    for task in plan_scan(table, None, partitions.predicate()).await?.tasks {
        match partitions.coverage(&task.data_file) {
            Coverage::None => {}
            Coverage::All => remove_file(update, &task),
            Coverage::Some => {
                return Err(Error::unsupported(format!(
                    "a file that was written under partition spec {} may hold rows both of the partitions to replace and \
                     of others; overwrite by a condition, or rewrite the table's data files under its present spec first",
                    task.data_file.spec_id
                ))
                .with_context("table", table.ident.to_string())
                .with_context("file", &*task.data_file.file_path));
            }
        }
    }
    Ok(partitions)
}

fn overwrite(table: &Table, added: Vec<DataFile>) -> SnapshotUpdate {
    let mut update = SnapshotUpdate::new(table.clone()).kind(UpdateKind::Overwrite);
    added.into_iter().for_each(|file| update.add_data(file));
    update
}

fn remove_file(update: &mut SnapshotUpdate, task: &FileScanTask) {
    update.remove_data(Arc::clone(&task.data_file), Removal::Whole);
    for superseded in task.superseded_deletes() {
        update.remove_delete(Arc::clone(&superseded.file));
    }
}

/// The snapshot that puts the data files `added` in the place of the rows that `condition` selects, `None` for all.
///
/// `table` is read at its current snapshot; `condition` names the table's columns unqualified. The files belong to the
/// returned update, as do those it has written, and are deleted if this fails. The session must have been built with
/// [`session::install`](crate::session::install).
///
/// # Errors
/// `InvalidInput` when the condition is not one of the table's, or when metadata does not prove that all rows of an added
/// file satisfy it; `Unsupported` when a file of the table cannot be read.
pub async fn prepare_overwrite(
    state: &SessionState,
    table: &Table,
    condition: Option<Expr>,
    added: Vec<DataFile>,
) -> Result<SnapshotUpdate> {
    let Some(condition) = condition else { return replace_table(table, added).await };
    let (filter, deletes) = match physical::find_rows(state, table, Some(condition)).await {
        Ok(found) => found,
        Err(error) => {
            overwrite(table, added).discard().await;
            return Err(error);
        }
    };
    let evaluator = FileEvaluator::new(&filter, &table.metadata);
    if let Some(outside) = added.iter().find(|file| evaluator.evaluate(file) != Coverage::All) {
        let error = Error::invalid_input(
            "a file may hold rows that do not satisfy the condition, so the next overwrite by it would not replace them",
        )
        .with_context("file", &*outside.file_path);
        overwrite(table, added).discard().await;
        return Err(error);
    }
    replace_rows(table, filter, Vec::new(), std::future::ready(Ok(deletes)), added).await
}

/// The snapshot that puts the data files `added` in the place of all rows of the partitions they lie in. Without a file it
/// changes nothing.
///
/// The files belong to the returned update, and are deleted if this fails.
///
/// # Errors
/// `InvalidInput` for a file of another partition spec than the default one; `Unsupported` when a file of an older spec may
/// hold rows of those partitions and of others.
pub async fn prepare_dynamic_partition_overwrite(table: &Table, added: Vec<DataFile>) -> Result<SnapshotUpdate> {
    replace_partitions(table, added).await
}
