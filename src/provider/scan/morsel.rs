//! Opening one file: its deletes first, then the Parquet reader over the rows that are left.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::ScanContext;
use super::adapter::{FieldIdAdapterFactory, FileLineage};
use super::avro::{AvroMorsel, OneMorsel, constants_of};
use super::file::ScanFile;
use super::late_filter::LateFilter;
use super::metrics::FileState;
use crate::Error;
use crate::columns::AvroFile;
use crate::provider::error::from_datafusion;
use crate::scan::FileScanTask;
use crate::spec::FileFormat;
use crate::spec::deletion_vector::DeletionVector;

/// Makes the planners of one partition's files.
pub(crate) struct ScanMorselizer {
    opener: Arc<Opener>,
}

struct Opener {
    inner: Arc<dyn FileSource>,
    context: Arc<ScanContext>,
    store: Arc<dyn ObjectStore>,
    /// The scan's settings without its files, for they are copied for every file.
    config: FileScanConfig,
    partition: usize,
    batch_rows: usize,
    late_filter: Option<LateFilter>,
}

impl ScanMorselizer {
    pub(crate) fn new(
        inner: Arc<dyn FileSource>,
        context: Arc<ScanContext>,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
        batch_rows: usize,
    ) -> Self {
        let without_files = FileScanConfigBuilder::new(config.object_store_url.clone(), Arc::clone(&inner))
            .with_limit(config.limit)
            .with_preserve_order(config.preserve_order)
            .with_batch_size(config.batch_size)
            .build();
        let late_filter = LateFilter::of(inner.as_ref(), &context.schema);
        let config = without_files;
        Self { opener: Arc::new(Opener { inner, context, store, config, partition, batch_rows, late_filter }) }
    }
}

impl fmt::Debug for ScanMorselizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanMorselizer").field("partition", &self.opener.partition).finish_non_exhaustive()
    }
}

impl Morselizer for ScanMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let Some(scan_file) = file.extension::<ScanFile>() else {
            return internal_err!("file {} of the scan has no task", file.path());
        };
        let (task, state) = (Arc::clone(&scan_file.task), scan_file.state.clone());
        Ok(Box::new(ChooseFirst { opener: Arc::clone(&self.opener), file, task, state }))
    }
}

impl Opener {
    fn adapter(&self, task: &FileScanTask) -> FieldIdAdapterFactory {
        FieldIdAdapterFactory {
            columns: Arc::clone(&self.context.columns),
            constants: self.context.identity_constants(task),
            lineage: FileLineage {
                first_row_id: task.data_file.first_row_id.and_then(|id| i64::try_from(id).ok()),
                sequence_number: task.sequence_number,
            },
            location: Arc::clone(&task.data_file.file_path),
        }
    }

    async fn deleted(&self, task: &FileScanTask) -> Result<Option<Arc<DeletionVector>>> {
        let deletes = &self.context.deletes;
        let deleted = deletes.deleted_positions(task).await?;
        self.context.files.delete_files_read(deletes.files_read());
        Ok(deleted)
    }

    fn open(&self, file: PartitionedFile, task: &FileScanTask) -> Result<Box<dyn MorselPlanner>> {
        let adapter = Arc::new(self.adapter(task));
        let config = FileScanConfigBuilder::from(self.config.clone()).with_expr_adapter(Some(adapter)).build();
        let planner =
            self.inner.create_morselizer(Arc::clone(&self.store), &config, self.partition)?.plan_file(file)?;
        Ok(Box::new(Named { inner: planner, location: Arc::clone(&task.data_file.file_path) }))
    }
}

/// Leaves the file out if a filter that came up meanwhile allows it, before anything is read for it.
struct ChooseFirst {
    opener: Arc<Opener>,
    file: PartitionedFile,
    task: Arc<FileScanTask>,
    state: FileState,
}

impl fmt::Debug for ChooseFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChooseFirst").field("file", &self.task.data_file.file_path).finish_non_exhaustive()
    }
}

impl MorselPlanner for ChooseFirst {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { opener, file, task, state } = *self;
        if let Some(filter) = &opener.late_filter
            && filter.leaves_out(&task.data_file, &constants_of(opener.inner.table_schema(), &file))?
        {
            opener.context.files.pruned(&state);
            return Ok(None);
        }
        let planner: Box<dyn MorselPlanner> = if task.data_file.file_format == FileFormat::Avro {
            Box::new(AvroPlanner { opener, file, task, state })
        } else if task.deletes.is_empty() {
            opener.context.files.read(&state);
            opener.open(file, &task)?
        } else {
            Box::new(DeletesFirst { opener, file, task, state })
        };
        planner.plan()
    }
}

/// Loads the positions deleted before the file is opened.
struct DeletesFirst {
    opener: Arc<Opener>,
    file: PartitionedFile,
    task: Arc<FileScanTask>,
    state: FileState,
}

impl fmt::Debug for DeletesFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeletesFirst").field("file", &self.task.data_file.file_path).finish_non_exhaustive()
    }
}

impl MorselPlanner for DeletesFirst {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let Self { opener, mut file, task, state } = *self;
            let deleted = opener.deleted(&task).await?;
            if let Some(deleted) = deleted {
                let rows = task.data_file.record_count;
                let selection =
                    live_rows(&deleted, rows).map_err(|e| e.with_context("file", &*task.data_file.file_path))?;
                if selection.row_count() == 0 {
                    return Ok(Box::new(NoRows) as _);
                }
                file = file.with_extension(ParquetRowSelection::new(selection));
            }
            opener.context.files.read(&state);
            opener.open(file, &task)
        })))
    }
}

/// Loads the positions deleted and then an Avro file, whole.
struct AvroPlanner {
    opener: Arc<Opener>,
    file: PartitionedFile,
    task: Arc<FileScanTask>,
    state: FileState,
}

impl fmt::Debug for AvroPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AvroPlanner").field("file", &self.task.data_file.file_path).finish_non_exhaustive()
    }
}

impl MorselPlanner for AvroPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        // Of a file that was split between partitions, the one with the first part reads all.
        if self.file.range.as_ref().is_some_and(|range| range.start > 0) {
            return Ok(None);
        }
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let Self { opener, file, task, state } = *self;
            let deleted = opener.deleted(&task).await?;
            opener.context.files.read(&state);
            let location = Arc::clone(&task.data_file.file_path);
            let bytes = opener.context.table.io.read(&location).await?;
            let avro = AvroFile::open(bytes).map_err(|e| e.with_context("file", &*location))?;
            let adapter = opener.adapter(&task);
            let source = opener.inner.as_ref();
            let morsel = AvroMorsel::new(avro, &file, location, deleted, opener.batch_rows, source, &adapter)?;
            Ok(Box::new(OneMorsel(morsel)) as _)
        })))
    }
}

/// A file of which every row is deleted.
#[derive(Debug)]
struct NoRows;

impl MorselPlanner for NoRows {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(None)
    }
}

/// Reads one file and names it in errors.
#[derive(Debug)]
struct Named<T> {
    inner: T,
    location: Arc<str>,
}

impl<T> Named<T> {
    fn with<U>(&self, inner: U) -> Named<U> {
        Named { inner, location: Arc::clone(&self.location) }
    }
}

impl MorselPlanner for Named<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let named = self.with(());
        let Some(mut plan) = self.inner.plan().map_err(|e| in_file(e, &named.location))? else {
            return Ok(None);
        };
        let morsels = plan.take_morsels().into_iter().map(|m| Box::new(named.with(m)) as _).collect();
        let planners = plan.take_ready_planners().into_iter().map(|p| Box::new(named.with(p)) as _).collect();
        let pending = plan.take_pending_planner();
        let mut plan = MorselPlan::new().with_morsels(morsels).with_planners(planners);
        if let Some(pending) = pending {
            plan.set_pending_planner(async move {
                let next = pending.await.map_err(|e| in_file(e, &named.location))?;
                Ok(Box::new(named.with(next)) as _)
            });
        }
        Ok(Some(plan))
    }
}

impl Morsel for Named<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let location = self.location;
        self.inner.into_stream().map_err(move |e| in_file(e, &location)).boxed()
    }
}

/// An error of the Parquet reader as an error about the file; others, as those of expressions, are not the file's fault.
fn in_file(e: DataFusionError, location: &str) -> DataFusionError {
    let of_reader = match &e {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(inner, _) => matches!(inner.as_ref(), ArrowError::ParquetError(_)),
        _ => false,
    };
    if !of_reader {
        return e;
    }
    if let Some(error) = of_filter(&e.to_string()) {
        return error.into();
    }
    match from_datafusion(e) {
        own if own.context("file").is_some() => own.into(),
        other => {
            Error::data_invalid("the data file cannot be read").with_context("file", location).with_source(other).into()
        }
    }
}

/// The error of a condition that the reader evaluates. The reader keeps of it nothing but text, in Rust's spelling of values.
fn of_filter(text: &str) -> Option<Error> {
    let (_, cause) = text.split_once("Error evaluating filter predicate: ")?;
    let cause = cause.replace("DivideByZero", "Divide by zero");
    Some(Error::invalid_input(format!("the condition cannot be evaluated: {cause}")))
}

/// The rows of a file of `rows` rows that are not deleted. Positions past the end address no row.
fn live_rows(deleted: &DeletionVector, rows: u64) -> crate::Result<RowSelection> {
    let length =
        |n: u64| usize::try_from(n).map_err(|_| Error::unsupported(format!("a file of {rows} rows on this machine")));
    let mut selectors = Vec::new();
    let mut next = 0;
    for range in deleted.to_row_ranges() {
        if range.start >= rows {
            break;
        }
        let end = range.end.min(rows);
        if range.start > next {
            selectors.push(RowSelector::select(length(range.start - next)?));
        }
        selectors.push(RowSelector::skip(length(end - range.start)?));
        next = end;
    }
    if next < rows {
        selectors.push(RowSelector::select(length(rows - next)?));
    }
    Ok(RowSelection::from(selectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(deleted: &[u64], rows: u64) -> Vec<(bool, usize)> {
        let selection = live_rows(&DeletionVector::from_positions(deleted.iter().copied()), rows).unwrap();
        selection.iter().map(|s| (s.skip, s.row_count)).collect()
    }

    #[test]
    fn selections_cover_the_file_exactly() {
        assert_eq!(selected(&[], 3), [(false, 3)]);
        assert_eq!(selected(&[0], 3), [(true, 1), (false, 2)]);
        assert_eq!(selected(&[1, 2, 5], 7), [(false, 1), (true, 2), (false, 2), (true, 1), (false, 1)]);
        assert_eq!(selected(&[2, 3, 4], 3), [(false, 2), (true, 1)]);
        assert_eq!(selected(&[9], 3), [(false, 3)]);
        assert_eq!(selected(&[0, 1, 2], 3), [(true, 3)]);
    }
}
