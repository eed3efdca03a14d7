//! The file source of a table scan: DataFusion's Parquet source with deletes, field ids and a gate for filters.
//!
//! Invariant: no predicate on a floating-point, nested or reader-made column reaches the Parquet source, neither a static
//! nor a dynamic one. Its statistics leave NaN out and its bloom filters tell -0.0 from 0.0, so it would prune rows that
//! match; and a nested predicate that it accepts at planning it may drop without a word when it opens a file.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, not_impl_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{
    EquivalenceProperties, PhysicalExpr, PhysicalSortExpr, conjunction, split_conjunction,
};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::morsel::Morselizer;
use object_store::ObjectStore;

use super::ScanContext;
use super::morsel::ScanMorselizer;
use super::reshape::field_id;
use crate::scan::{FileScanTask, delete_files_of};
use crate::writer::{LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID_FIELD_ID};

/// Rows of a batch, unless the session says.
const DEFAULT_BATCH_ROWS: usize = 8192;

/// Reads the live rows of an Iceberg table's data files.
#[derive(Clone)]
pub struct IcebergSource {
    inner: Arc<dyn FileSource>,
    context: Arc<ScanContext>,
    tasks: Arc<[Arc<FileScanTask>]>,
    open_to_filters: bool,
    /// Rows of a batch.
    batch_rows: usize,
}

impl fmt::Debug for IcebergSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergSource")
            .field("table", &self.context.table.ident)
            .field("snapshot", &self.context.snapshot_id)
            .field("files", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl IcebergSource {
    pub(crate) fn new(parquet: ParquetSource, context: Arc<ScanContext>, tasks: Arc<[Arc<FileScanTask>]>) -> Self {
        Self { inner: Arc::new(parquet), context, tasks, open_to_filters: false, batch_rows: DEFAULT_BATCH_ROWS }
    }

    /// The table, snapshot and columns scanned.
    pub(crate) fn context(&self) -> &Arc<ScanContext> {
        &self.context
    }

    /// The files read, each once.
    pub(crate) fn tasks(&self) -> &Arc<[Arc<FileScanTask>]> {
        &self.tasks
    }

    pub(crate) fn with_tasks(&self, tasks: Arc<[Arc<FileScanTask>]>) -> Self {
        Self { tasks, ..self.clone() }
    }

    /// Whether the scan takes filters from the physical plan above it. It does not by itself: DataFusion finds the column
    /// of a filter above a join by name alone, so it may hand over a filter that is another table's. The filters that the
    /// logical plan gave to the scan, whose columns are qualified, are in it already.
    pub(crate) fn open_to_filters(&self) -> bool {
        self.open_to_filters
    }

    pub(crate) fn with_open_to_filters(&self, open: bool) -> Self {
        Self { open_to_filters: open, ..self.clone() }
    }

    fn wrap(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, ..self.clone() })
    }

    fn takes(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        prunes_safely(filter, self.inner.table_schema())
    }
}

/// Whether DataFusion's Parquet source evaluates and prunes by `filter` rightly: only flat columns that are stored and
/// are not floating-point. Those of row lineage may be made from positions, which no filter of the reader sees.
pub(crate) fn prunes_safely(filter: &Arc<dyn PhysicalExpr>, schema: &TableSchema) -> bool {
    let stored: &Schema = schema.schema_without_virtual_columns();
    collect_columns(filter).iter().all(|column| {
        stored
            .fields()
            .get(column.index())
            .is_some_and(|field| field.name() == column.name() && is_safe(field.data_type()) && !is_lineage(field))
    })
}

fn is_lineage(field: &Field) -> bool {
    matches!(field_id(field), Some(ROW_ID_FIELD_ID | LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID))
}

fn is_safe(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_safe(value),
        other => !other.is_nested() && !other.is_floating() && !other.is_null(),
    }
}

/// The conjunction of those `filters` that [`prunes_safely`].
pub(crate) fn safe_conjunction(
    filters: impl IntoIterator<Item = Arc<dyn PhysicalExpr>>,
    schema: &TableSchema,
) -> Option<Arc<dyn PhysicalExpr>> {
    let safe: Vec<_> = filters.into_iter().filter(|f| prunes_safely(f, schema)).collect();
    (!safe.is_empty()).then(|| conjunction(safe))
}

/// The Parquet source with each conjunct of its predicate once: a filter comes by the logical plan, and by the physical one.
fn without_repeats(source: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
    let (Some(parquet), Some(filter)) = (source.downcast_ref::<ParquetSource>(), source.filter()) else {
        return source;
    };
    let mut conjuncts: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    for conjunct in split_conjunction(&filter) {
        if !conjuncts.contains(conjunct) {
            conjuncts.push(Arc::clone(conjunct));
        }
    }
    Arc::new(parquet.with_predicate(conjunction(conjuncts)))
}

impl FileSource for IcebergSource {
    fn create_file_opener(
        &self,
        _object_store: Arc<dyn ObjectStore>,
        _base_config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        not_impl_err!("an Iceberg scan opens files through its morselizer")
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(ScanMorselizer::new(
            Arc::clone(&self.inner),
            Arc::clone(&self.context),
            object_store,
            base_config,
            partition,
            self.batch_rows,
        )))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: self.inner.with_batch_size(batch_size), batch_rows: batch_size, ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        "iceberg"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", self.context.table.ident)?;
                writeln!(f, "files pruned={}", self.context.metrics.data_files_pruned)?;
            }
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let metrics = &self.context.metrics;
                write!(f, ", table={}, snapshot=", self.context.table.ident)?;
                match self.context.snapshot_id {
                    Some(id) => write!(f, "{id}")?,
                    None => f.write_str("none")?,
                }
                write!(f, ", files={} of {}", self.tasks.len(), metrics.data_files_total)?;
                write!(f, ", pruned={}", metrics.data_files_pruned)?;
                let deletes = delete_files_of(self.tasks.iter().map(Arc::as_ref));
                write!(f, ", delete_files={deletes} of {}", metrics.delete_files_total)?;
            }
        }
        self.inner.fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let taken: Vec<bool> = filters.iter().map(|f| self.open_to_filters && self.takes(f)).collect();
        let refused = || FilterPushdownPropagation::with_parent_pushdown_result(vec![PushedDown::No; taken.len()]);
        if !taken.contains(&true) {
            return Ok(refused());
        }
        let passed_on = filters.into_iter().zip(&taken).filter(|(_, take)| **take).map(|(f, _)| f).collect();
        let answer = self.inner.try_pushdown_filters(passed_on, config)?;
        let mut answers = answer.filters.into_iter();
        let filters =
            taken.iter().map(|take| if *take { answers.next().unwrap_or(PushedDown::No) } else { PushedDown::No });
        let mut result = FilterPushdownPropagation::with_parent_pushdown_result(filters.collect());
        result.updated_node = answer.updated_node.map(|inner| self.wrap(without_repeats(inner)));
        Ok(result)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        eq_properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.inner.try_pushdown_sort(order, eq_properties)?.map(|inner| self.wrap(inner)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let inner = self.inner.try_pushdown_projection(projection)?;
        Ok(inner.map(|inner| self.wrap(inner)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

/// The source inside a scan's settings, if it is ours.
pub(crate) fn source_of(config: &FileScanConfig) -> Option<&IcebergSource> {
    let source: &dyn Any = config.file_source().as_ref();
    source.downcast_ref()
}
