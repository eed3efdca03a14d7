//! The files of a scan as DataFusion's partitioned files.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::ScanContext;
use super::metrics::FileState;
use super::statistics::{file_statistics, known_deleted};
use crate::provider::scalar::to_scalar;
use crate::scan::FileScanTask;
use crate::spec::{PartitionSpec, Schema, Transform};

/// Rides on a [`PartitionedFile`]: the task it reads.
#[derive(Debug)]
pub(crate) struct ScanFile {
    pub(crate) task: Arc<FileScanTask>,
    pub(crate) state: FileState,
}

/// Statistics of single files put files in a good order for TopK; past this many values they would cost more memory than they
/// save.
const MAX_FILE_STATISTICS: usize = 1 << 20;

impl ScanContext {
    /// The tasks as partitioned files.
    pub(crate) fn partitioned_files(&self, tasks: &[Arc<FileScanTask>]) -> Result<Vec<PartitionedFile>> {
        let columns = self.table_schema.table_schema().fields().len();
        let with_statistics = tasks.len().saturating_mul(columns) <= MAX_FILE_STATISTICS;
        tasks.iter().map(|task| self.partitioned_file(task, columns, with_statistics)).collect()
    }

    fn partitioned_file(
        &self,
        task: &Arc<FileScanTask>,
        columns: usize,
        with_statistics: bool,
    ) -> Result<PartitionedFile> {
        let file = &task.data_file;
        let mut partitioned = PartitionedFile::new_from_meta(ObjectMeta {
            location: self.object_path(&file.file_path),
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: file.file_size_in_bytes,
            e_tag: None,
            version: None,
        });
        if let Some(row_address) = &self.row_address {
            let spec = self.spec(file.spec_id);
            partitioned.partition_values = row_address.constants(file, spec.as_deref())?;
        }
        if with_statistics {
            let mut statistics = file_statistics(task, &self.schema);
            statistics.column_statistics.resize(columns, ColumnStatistics::new_unknown());
            partitioned.statistics = Some(Arc::new(statistics));
        }
        Ok(partitioned.with_extension(ScanFile { task: Arc::clone(task), state: FileState::default() }))
    }

    /// Where the file lies in its store, for display; reading goes by the recorded location.
    fn object_path(&self, location: &str) -> Path {
        match self.table.io.resolve(location) {
            Ok((_, path)) => path,
            Err(_) => Path::from(location),
        }
    }

    fn spec(&self, spec_id: i32) -> Option<Arc<PartitionSpec>> {
        self.table.metadata.partition_specs.iter().find(|s| s.spec_id == spec_id).cloned()
    }

    /// Statistics of the whole scan, for every column: row counts exact only when no file has deletes.
    pub(crate) fn statistics(&self, tasks: &[Arc<FileScanTask>]) -> Statistics {
        let columns = self.table_schema.table_schema().fields().len();
        let mut total: Option<Statistics> = None;
        let mut deleted = 0usize;
        for task in tasks {
            deleted = deleted.saturating_add(known_deleted(task));
            let file = file_statistics(task, &self.schema);
            total = Some(match total {
                None => file,
                Some(total) => merge(total, file),
            });
        }
        let mut total = total.unwrap_or_else(|| Statistics { num_rows: Precision::Exact(0), ..Statistics::default() });
        if let Precision::Inexact(rows) = total.num_rows {
            total.num_rows = Precision::Inexact(rows.saturating_sub(deleted));
        }
        total.column_statistics.resize(columns, ColumnStatistics::new_unknown());
        total
    }

    /// What columns that the file lacks read as by its identity partition values, by source field id.
    pub(crate) fn identity_constants(&self, task: &FileScanTask) -> HashMap<i32, ScalarValue> {
        let Some(spec) = self.spec(task.data_file.spec_id) else {
            return HashMap::new();
        };
        identity_constants(&spec, task, &self.schema)
    }
}

fn identity_constants(spec: &PartitionSpec, task: &FileScanTask, schema: &Schema) -> HashMap<i32, ScalarValue> {
    let mut constants = HashMap::new();
    for (field, value) in spec.fields.iter().zip(task.data_file.partition.0.iter()) {
        if field.transform != Transform::Identity {
            continue;
        }
        let Some(ty) = schema.field_by_id(field.source_id).and_then(|f| f.field_type.as_primitive().cloned()) else {
            continue;
        };
        let promoted = match value {
            Some(literal) => match literal.clone().promote_to(&ty) {
                Some(literal) => Some(literal),
                None => continue,
            },
            None => None,
        };
        if let Some(scalar) = to_scalar(promoted.as_ref(), &ty) {
            constants.insert(field.source_id, scalar);
        }
    }
    constants
}

fn merge(a: Statistics, b: Statistics) -> Statistics {
    let columns = a.column_statistics.iter().zip(&b.column_statistics).map(|(a, b)| ColumnStatistics {
        null_count: a.null_count.add(&b.null_count),
        min_value: a.min_value.min(&b.min_value),
        max_value: a.max_value.max(&b.max_value),
        ..ColumnStatistics::new_unknown()
    });
    Statistics {
        num_rows: a.num_rows.add(&b.num_rows),
        total_byte_size: a.total_byte_size.add(&b.total_byte_size),
        column_statistics: columns.collect(),
    }
}
