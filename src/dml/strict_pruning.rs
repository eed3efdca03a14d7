//! Splits the files of a scan by what the condition says of them: none, all, or some of the rows.
//!
//! Pure. Files whose every row provably matches are dropped without being read, files without a match are pruned, the rest
//! is scanned. Source: Java `StrictMetricsEvaluator`, `Projections.strict`; the evaluator in [`crate::expr`].

use std::sync::Arc;

use crate::expr::{Coverage, FileEvaluator, Predicate};
use crate::scan::FileScanTask;
use crate::spec::TableMetadata;

/// The files of a scan, split.
#[derive(Debug, Default)]
pub struct Split {
    /// Every row matches.
    pub dropped: Vec<Arc<FileScanTask>>,
    /// Rows may match.
    pub scanned: Vec<Arc<FileScanTask>>,
    /// Files where no row matches.
    pub pruned: u64,
}

/// Splits `tasks` by `predicate`. With `strict` off no file counts as covered whole, so all that may match are scanned.
pub fn split(tasks: Vec<Arc<FileScanTask>>, predicate: &Predicate, metadata: &TableMetadata, strict: bool) -> Split {
    let evaluator = FileEvaluator::new(predicate, metadata);
    let mut split = Split::default();
    for task in tasks {
        match evaluator.evaluate(&task.data_file) {
            Coverage::None => split.pruned += 1,
            Coverage::All if strict => split.dropped.push(task),
            Coverage::All | Coverage::Some => split.scanned.push(task),
        }
    }
    split
}
