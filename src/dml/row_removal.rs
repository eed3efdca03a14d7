//! Takes rows out of data files: delete files, rewritten files and removed files, written into a snapshot update.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;

use super::row_delete_planner::{Action, RowDelete, decide};
use crate::error::Result;
use crate::scan::{DeleteLoader, FileDeletes, FileScanTask, spawned};
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::{DeleteGranularity, RowLevelMode};
use crate::table::Table;
use crate::transaction::{Removal, SnapshotUpdate};
use crate::writer::{CreatedFiles, DeletionVectorWriter, PositionDeleteWriter, rewrite_file, rewrite_options};

/// Files rewritten at a time.
const CONCURRENCY: usize = 4;

/// The rows that one statement takes out of a table, one entry a data file, and how that is recorded.
#[derive(Debug)]
pub(crate) struct RowRemoval {
    table: Table,
    mode: RowLevelMode,
    granularity: DeleteGranularity,
    deletes: Vec<RowDelete>,
}

impl RowRemoval {
    /// Deletes of no row are left out; files without a live row go along with others, but are no reason for a snapshot.
    pub(crate) fn new(table: Table, mode: RowLevelMode, deletes: Vec<RowDelete>) -> Result<Self> {
        let granularity = table.properties()?.delete_granularity;
        let takes_rows = deletes.iter().any(|delete| delete.deleted_rows() > 0);
        let removes = |delete: &RowDelete| takes_rows && (delete.whole_file || !delete.positions.is_empty());
        let deletes = deletes.into_iter().filter(removes).collect();
        Ok(Self { table, mode, granularity, deletes })
    }

    /// One entry a data file.
    pub(crate) fn deletes(&self) -> &[RowDelete] {
        &self.deletes
    }

    /// How deleted rows of files that stay are recorded.
    pub(crate) fn mode(&self) -> RowLevelMode {
        self.mode
    }

    /// The table as it was read.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Live rows that go.
    pub(crate) fn deleted_rows(&self) -> u64 {
        self.deletes.iter().map(RowDelete::deleted_rows).sum()
    }

    /// How the rows of one file will be taken out.
    pub(crate) fn action(&self, delete: &RowDelete) -> Action {
        decide(delete, self.mode, self.table.metadata.format_version, self.granularity)
    }

    /// Writes delete files or rewritten data files into `update`. Files whose rows all go are removed as `dropped` says.
    ///
    /// Returns the data files that the new deletes address. After an error the files named in `update` are still its own.
    pub(crate) async fn write(&self, update: &mut SnapshotUpdate, dropped: Removal) -> Result<Vec<Arc<str>>> {
        let mut by_action: HashMap<Action, Vec<&RowDelete>> = HashMap::new();
        for delete in &self.deletes {
            by_action.entry(self.action(delete)).or_default().push(delete);
        }
        let mut referenced = Vec::new();
        for (action, deletes) in by_action {
            match action {
                Action::Keep => {}
                Action::Drop => deletes.iter().for_each(|delete| remove_file(update, delete, dropped)),
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
