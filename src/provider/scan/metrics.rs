//! What a scan says of its files under `EXPLAIN ANALYZE`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, MetricType};

use crate::scan::{FileScanTask, ScanPlanMetrics, delete_files_of};

/// Data files and delete files: all live ones of the snapshot, those left out, those read. Left out are data files of
/// which planning or a filter that came up during execution proved that no row matches, and the delete files that apply
/// to none of the data files that planning left; files that a limit spared are neither left out nor read.
#[derive(Debug)]
pub(crate) struct ScanMetrics {
    data_files_pruned: Gauge,
    data_files_read: Count,
    delete_files_read: Gauge,
}

/// What became of a file, for its splits share its fate.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileState(Arc<AtomicU8>);

const PRUNED: u8 = 1;
const READ: u8 = 2;

impl ScanMetrics {
    /// Registers the metrics with `set`.
    pub(crate) fn new<'a>(
        set: &ExecutionPlanMetricsSet,
        plan: &ScanPlanMetrics,
        tasks: impl IntoIterator<Item = &'a FileScanTask>,
    ) -> Self {
        let counter = |name| MetricBuilder::new(set).with_type(MetricType::Summary).global_counter(name);
        let gauge = |name| MetricBuilder::new(set).with_type(MetricType::Summary).global_gauge(name);
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        counter("data_files_total").add(number(plan.data_files_total));
        let data_files_pruned = gauge("data_files_pruned");
        data_files_pruned.set(number(plan.data_files_pruned));
        let data_files_read = counter("data_files_read");
        counter("delete_files_total").add(number(plan.delete_files_total));
        let needed = delete_files_of(tasks);
        counter("delete_files_pruned").add(number(plan.delete_files_total.saturating_sub(needed)));
        Self { data_files_pruned, data_files_read, delete_files_read: gauge("delete_files_read") }
    }

    /// A split of the file was left out.
    pub(crate) fn pruned(&self, file: &FileState) {
        if file.0.compare_exchange(0, PRUNED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.data_files_pruned.add(1);
        }
    }

    /// A split of the file is read.
    pub(crate) fn read(&self, file: &FileState) {
        match file.0.swap(READ, Ordering::AcqRel) {
            READ => return,
            PRUNED => self.data_files_pruned.sub(1),
            _ => {}
        }
        self.data_files_read.add(1);
    }

    /// So many delete files were read up to now.
    pub(crate) fn delete_files_read(&self, files: usize) {
        self.delete_files_read.set_max(files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(set: &ExecutionPlanMetricsSet, name: &str) -> usize {
        set.clone_inner().sum_by_name(name).map_or(0, |v| v.as_usize())
    }

    #[test]
    fn a_file_of_several_splits_counts_once_and_as_read_if_one_is() {
        let set = ExecutionPlanMetricsSet::new();
        let plan = ScanPlanMetrics { data_files_total: 5, data_files_pruned: 1, ..Default::default() };
        let metrics = ScanMetrics::new(&set, &plan, []);
        let (a, b) = (FileState::default(), FileState::default());
        metrics.pruned(&a);
        metrics.pruned(&a.clone());
        assert_eq!((value(&set, "data_files_pruned"), value(&set, "data_files_read")), (2, 0));
        metrics.read(&a);
        metrics.pruned(&a);
        metrics.read(&b);
        metrics.read(&b);
        assert_eq!((value(&set, "data_files_pruned"), value(&set, "data_files_read")), (1, 2));
        assert_eq!(value(&set, "data_files_total"), 5);
    }
}
