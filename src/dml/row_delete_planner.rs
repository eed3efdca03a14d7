//! Decides, for one data file, how its deleted rows are recorded.
//!
//! Pure: a file, the positions that matched, the positions deleted before, and the mode give one [`Action`]. Sources: Java
//! `SparkPositionDeltaWrite`, `BaseDVFileWriter`, spec section "Deletion Vectors". Invariant: a file whose live rows all go
//! is dropped in every mode, never emptied.

use std::sync::Arc;

use crate::scan::{DeleteFile, FileScanTask};
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::{DeleteGranularity, RowLevelMode};
use crate::spec::{DataFile, FormatVersion};

/// The rows one delete takes out of one data file.
#[derive(Debug, Clone)]
pub struct RowDelete {
    /// The data file with the deletes that apply to it.
    pub task: FileScanTask,
    /// Positions matched, live rows only; iterates ascending. Empty when the file was dropped without being read.
    pub positions: PositionBitmap,
    /// Positions deleted before by any delete; `None` when there are none.
    pub existing: Option<Arc<PositionBitmap>>,
    /// Those of them that a vector or position delete files remove, and not equality deletes alone.
    pub positional: Option<Arc<PositionBitmap>>,
    /// Rows alive before this delete.
    pub live_rows: u64,
    /// Whether every live row goes.
    pub whole_file: bool,
    /// Delete files that address this file alone: they leave the table with the file, or are absorbed by its new vector.
    pub superseded: Vec<Arc<DeleteFile>>,
}

impl RowDelete {
    /// A delete of `matched` positions; those deleted before are not counted again.
    pub fn of_positions(
        task: FileScanTask,
        mut matched: PositionBitmap,
        existing: Option<Arc<PositionBitmap>>,
        positional: Option<Arc<PositionBitmap>>,
    ) -> Self {
        if let Some(existing) = &existing {
            matched.subtract(existing);
        }
        let live_rows = live_rows(&task.data_file, existing.as_deref());
        let superseded = task.superseded_deletes();
        let whole_file = !matched.is_empty() && matched.len() == live_rows;
        Self { task, positions: matched, existing, positional, live_rows, whole_file, superseded }
    }

    /// A delete of the whole file, decided without looking for rows that match.
    pub fn of_file(task: FileScanTask, existing: Option<Arc<PositionBitmap>>) -> Self {
        let live_rows = live_rows(&task.data_file, existing.as_deref());
        let superseded = task.superseded_deletes();
        let positions = PositionBitmap::default();
        Self { task, positions, existing, positional: None, live_rows, whole_file: true, superseded }
    }

    /// Rows that this delete removes.
    pub fn deleted_rows(&self) -> u64 {
        if self.whole_file { self.live_rows } else { self.positions.len() }
    }

    /// Every position deleted once this delete is committed: what a rewritten file must leave out.
    pub fn all_positions(&self) -> PositionBitmap {
        united(&self.positions, self.existing.as_deref())
    }

    /// The positions of the file's new vector. Equality deletes stay and go on applying, so theirs are not repeated.
    pub fn vector_positions(&self) -> PositionBitmap {
        united(&self.positions, self.positional.as_deref())
    }
}

fn united(positions: &PositionBitmap, others: Option<&PositionBitmap>) -> PositionBitmap {
    let mut all = positions.clone();
    if let Some(others) = others {
        all.union_with(others);
    }
    all
}

fn live_rows(file: &DataFile, existing: Option<&PositionBitmap>) -> u64 {
    file.record_count.saturating_sub(existing.map_or(0, PositionBitmap::len))
}

/// How the rows of one file are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing matched.
    Keep,
    /// Remove the file with its vectors and file-scoped deletes.
    Drop,
    /// Write one vector of all positions, old and new, in place of the superseded deletes.
    Vector,
    /// Add the new positions to a position delete file of the partition.
    PartitionPositions,
    /// Write a position delete file of this file alone, absorbing the superseded ones.
    FilePositions,
    /// Write the surviving rows again and remove the file.
    Rewrite,
}

/// Chooses the action for one file.
pub fn decide(
    delete: &RowDelete,
    mode: RowLevelMode,
    version: FormatVersion,
    granularity: DeleteGranularity,
) -> Action {
    if delete.whole_file {
        return Action::Drop;
    }
    if delete.positions.is_empty() {
        return Action::Keep;
    }
    match (mode, version, granularity) {
        (RowLevelMode::CopyOnWrite, _, _) => Action::Rewrite,
        (RowLevelMode::MergeOnRead, FormatVersion::V3, _) => Action::Vector,
        (RowLevelMode::MergeOnRead, _, DeleteGranularity::Partition) => Action::PartitionPositions,
        (RowLevelMode::MergeOnRead, _, DeleteGranularity::File) => Action::FilePositions,
    }
}

#[cfg(test)]
mod tests;
