//! The scan of one snapshot: a `DataSourceExec` over Parquet files whose source is [`IcebergSource`].
//!
//! Planning chooses the files ([`crate::scan::plan_scan`]); deletes and footers are loaded when a file is opened, each once
//! however many partitions share the file.

mod adapter;
mod avro;
mod file;
mod late_filter;
mod metrics;
mod morsel;
mod reader;
mod reshape;
pub(crate) mod row_address;
mod source;
mod statistics;

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Fields, Schema as ArrowSchema, SchemaRef};
use datafusion::common::config::{ConfigOptions, TableParquetOptions};
use datafusion::common::{Result, exec_err};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use uuid::Uuid;

use self::adapter::TableColumns;
use self::metrics::ScanMetrics;
use self::reader::FileIoReaderFactory;
use self::reshape::{field_id, without_nested_ids};
use self::row_address::RowAddress;
pub use self::row_address::{
    FILE, FILE_COLUMN, HiddenColumns, PARTITION, POS, POSITION_COLUMN, ROW_ID_COLUMN, SPEC_ID,
};
pub use self::source::IcebergSource;
use self::source::{safe_conjunction, source_of};
use super::scalar::to_scalar;
use crate::Error;
use crate::scan::{DeleteLoader, FileScanTask, MemoryBudget, ScanPlan, ScanPlanMetrics};
use crate::spec::name_mapping::NameMapping;
use crate::spec::{NestedField, Schema, Type};
use crate::table::Table;
use crate::writer;

/// Table property with the name mapping.
const NAME_MAPPING: &str = "schema.name-mapping.default";

/// The hidden columns in the order users see them.
const DISPLAY_ORDER: [&str; 9] = [
    FILE,
    POS,
    SPEC_ID,
    PARTITION,
    writer::ROW_ID,
    writer::LAST_UPDATED_SEQUENCE_NUMBER,
    FILE_COLUMN,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
];

/// What all partitions and files of a scan share.
pub(crate) struct ScanContext {
    pub(crate) table: Table,
    pub(crate) snapshot_id: Option<i64>,
    /// The schema read.
    pub(crate) schema: Arc<Schema>,
    /// File columns, then per-file constants, then reader-made columns.
    pub(crate) table_schema: TableSchema,
    pub(crate) row_address: Option<RowAddress>,
    /// The token of the writing statement whose target this scan is.
    pub(crate) target: Option<Uuid>,
    pub(crate) columns: Arc<TableColumns>,
    pub(crate) deletes: Arc<DeleteLoader>,
    pub(crate) metrics: ScanPlanMetrics,
    pub(crate) files: ScanMetrics,
}

/// The columns that a scan of a table offers.
#[derive(Debug)]
pub(crate) struct ScanColumns {
    pub(crate) schema: Arc<Schema>,
    pub(crate) table_schema: TableSchema,
    /// The own columns with field ids at every level; those of `table_schema` have theirs at the top alone.
    pub(crate) fields: Fields,
    pub(crate) row_address: Option<RowAddress>,
    pub(crate) hidden: HiddenColumns,
}

impl ScanColumns {
    /// The columns of `schema`, and the hidden ones asked for.
    pub(crate) fn new(table: &Table, schema: Arc<Schema>, hidden: HiddenColumns) -> crate::Result<Self> {
        let with_ids = writer::arrow_schema(&schema)?;
        let arrow = Arc::new(ArrowSchema::new(with_ids.fields().iter().map(without_nested_ids).collect::<Fields>()));
        let row_address = match hidden == HiddenColumns::default() {
            true => None,
            false => Some(RowAddress::new(&table.metadata, arrow.fields(), hidden)?),
        };
        let stored = row_address.iter().flat_map(RowAddress::stored_fields);
        let file_fields: Fields = arrow.fields().iter().cloned().chain(stored).collect();
        let mut builder = TableSchema::builder(Arc::new(ArrowSchema::new(file_fields)));
        if let Some(row_address) = &row_address {
            builder = builder
                .with_table_partition_cols(row_address.constant_fields())
                .with_virtual_columns(row_address.virtual_fields());
        }
        Ok(Self { schema, table_schema: builder.build(), fields: with_ids.fields().clone(), row_address, hidden })
    }

    /// All columns, in the order of [`ScanColumns::table_schema`].
    pub(crate) fn arrow_schema(&self) -> &SchemaRef {
        self.table_schema.table_schema()
    }

    /// Positions in [`ScanColumns::arrow_schema`] in the order users see: own columns, `_file`, `_pos`, the other hidden
    /// columns. (DataFusion wants those that a file may store first and those that the reader makes last.)
    pub(crate) fn display_order(&self) -> Vec<usize> {
        let own = self.schema.fields.fields.len();
        let fields = self.arrow_schema().fields();
        let mut hidden: Vec<usize> = (own..fields.len()).collect();
        let rank = |i: &usize| {
            let name = fields.get(*i).map(|f| f.name().as_str());
            DISPLAY_ORDER.iter().position(|n| Some(*n) == name)
        };
        hidden.sort_by_key(rank);
        (0..own).chain(hidden).collect()
    }
}

/// What a scan leaves out of what its files hold.
#[derive(Default)]
pub(crate) struct ScanRequest<'a> {
    /// Columns to put out, by position in [`ScanColumns::arrow_schema`]; all when `None`.
    pub(crate) projection: Option<&'a [usize]>,
    /// Conditions that rows must meet to matter; rows that do not may come out all the same.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Rows that are enough, when there are no filters.
    pub(crate) limit: Option<usize>,
}

/// The physical plan that reads `plan`'s files. The keys of equality deletes must fit in `budget`.
///
/// # Errors
/// `Unsupported` when a file or one of its deletes cannot be read yet.
pub(crate) fn scan_plan(
    table: &Table,
    columns: &ScanColumns,
    plan: ScanPlan,
    request: ScanRequest<'_>,
    options: &ConfigOptions,
    budget: Arc<dyn MemoryBudget>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let name = table.ident.to_string();
    for task in &plan.tasks {
        task.check_readable(&name)?;
    }
    let name_mapping = table
        .metadata
        .properties
        .get(NAME_MAPPING)
        .map(|json| NameMapping::parse(json))
        .transpose()
        .map_err(|e| e.with_context("property", NAME_MAPPING).with_context("table", &*name))?;
    let tasks: Arc<[Arc<FileScanTask>]> = plan.tasks.into_iter().map(Arc::new).collect();
    let mut parquet = ParquetSource::new(columns.table_schema.clone())
        .with_table_parquet_options(parquet_options(options))
        .with_parquet_file_reader_factory(Arc::new(FileIoReaderFactory { io: table.io.clone() }));
    let context = Arc::new(ScanContext {
        table: table.clone(),
        snapshot_id: plan.snapshot_id,
        schema: Arc::clone(&columns.schema),
        table_schema: columns.table_schema.clone(),
        row_address: columns.row_address.clone(),
        target: columns.hidden.target,
        columns: Arc::new(TableColumns {
            fields: columns.fields.iter().filter_map(|f| Some((field_id(f)?, Arc::clone(f)))).collect(),
            defaults: initial_defaults(&columns.schema),
            name_mapping,
        }),
        deletes: Arc::new(DeleteLoader::with_budget(table, budget).for_tasks(tasks.iter().map(Arc::as_ref))?),
        metrics: plan.metrics,
        files: ScanMetrics::new(parquet.metrics(), &plan.metrics, tasks.iter().map(Arc::as_ref)),
    });

    let conjuncts = request.filters.iter().flat_map(split_conjunction).map(Arc::clone);
    if let Some(predicate) = safe_conjunction(conjuncts, &columns.table_schema) {
        parquet = parquet.with_predicate(predicate);
    }
    let groups = file_groups(context.partitioned_files(&tasks)?, options.execution.target_partitions);
    let statistics = context.statistics(&tasks);
    let source: Arc<dyn FileSource> = Arc::new(IcebergSource::new(parquet, context, tasks));
    let source = match request.projection {
        None => source,
        Some(indices) => {
            let projection = ProjectionExprs::from_indices(indices, columns.arrow_schema());
            match source.try_pushdown_projection(&projection)? {
                Some(projected) => projected,
                None => return exec_err!("the scan of {name} took no projection"),
            }
        }
    };
    // The reader goes by the task on each file, so the store named here only has to exist.
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups(groups)
        .with_statistics(statistics)
        .with_limit(request.limit)
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

fn parquet_options(options: &ConfigOptions) -> TableParquetOptions {
    let mut parquet = TableParquetOptions { global: options.execution.parquet.clone(), ..Default::default() };
    // INT96 timestamps are instants; as nanoseconds they would not reach beyond 1677..2262.
    parquet.global.coerce_int96 = Some("us".to_owned());
    parquet.global.coerce_int96_tz = Some("UTC".to_owned());
    parquet
}

/// Files in at most `partitions` groups of about equal size; one group without files when there are none.
fn file_groups(files: Vec<datafusion::datasource::listing::PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    let count = partitions.min(files.len()).max(1);
    let mut groups: Vec<(u64, Vec<_>)> = (0..count).map(|_| (0, Vec::new())).collect();
    for file in files {
        if let Some((size, group)) = groups.iter_mut().min_by_key(|(size, _)| *size) {
            *size += file.object_meta.size.max(1);
            group.push(file);
        }
    }
    groups.into_iter().map(|(_, files)| FileGroup::new(files)).collect()
}

/// Initial defaults of all fields of `schema`, nested ones too.
fn initial_defaults(schema: &Schema) -> reshape::Defaults {
    fn collect(field: &NestedField, into: &mut reshape::Defaults) {
        match &field.field_type {
            Type::Primitive(ty) => {
                if let Some(default) = field.initial_default.as_ref().and_then(|l| to_scalar(Some(l), ty)) {
                    into.insert(field.id, default);
                }
            }
            Type::Struct(s) => s.fields.iter().for_each(|f| collect(f, into)),
            Type::List(l) => collect(&l.element, into),
            Type::Map(m) => {
                collect(&m.key, into);
                collect(&m.value, into);
            }
            Type::Variant => {}
        }
    }
    let mut defaults = reshape::Defaults::new();
    schema.fields.fields.iter().for_each(|f| collect(f, &mut defaults));
    defaults
}

/// The scan of an Iceberg table inside a physical plan.
#[derive(Debug, Clone, Copy)]
pub struct IcebergScan<'a> {
    config: &'a FileScanConfig,
    source: &'a IcebergSource,
}

impl<'a> IcebergScan<'a> {
    /// The scan, if `plan` is one.
    pub fn of(plan: &'a dyn ExecutionPlan) -> Option<Self> {
        let exec = (plan as &dyn Any).downcast_ref::<DataSourceExec>()?;
        let config = (exec.data_source().as_ref() as &dyn Any).downcast_ref::<FileScanConfig>()?;
        Some(Self { config, source: source_of(config)? })
    }

    /// The table, as it was loaded for this scan.
    pub fn table(&self) -> &'a Table {
        &self.source.context().table
    }

    /// The snapshot read; `None` when the table has none.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.source.context().snapshot_id
    }

    /// The schema read, hidden columns excluded.
    pub fn schema(&self) -> &'a Arc<Schema> {
        &self.source.context().schema
    }

    /// Whether the scan offers the hidden columns.
    pub fn has_row_address(&self) -> bool {
        self.source.context().row_address.is_some()
    }

    /// The token of the writing statement whose target this scan is; `None` for a scan that only reads.
    pub fn target(&self) -> Option<Uuid> {
        self.source.context().target
    }

    /// The files read, each once, in manifest order.
    pub fn tasks(&self) -> &'a [Arc<FileScanTask>] {
        self.source.tasks()
    }

    /// Loads the deletes of this scan's files, each once.
    pub fn deletes(&self) -> &'a Arc<DeleteLoader> {
        &self.source.context().deletes
    }

    /// What planning met.
    pub fn metrics(&self) -> ScanPlanMetrics {
        self.source.context().metrics
    }

    /// Whether the scan takes filters from operators above it (see
    /// [`guard_filter_pushdown`](crate::provider::guard_filter_pushdown)).
    pub(crate) fn open_to_filters(&self) -> bool {
        self.source.open_to_filters()
    }

    pub(crate) fn with_open_to_filters(&self, open: bool) -> Arc<dyn ExecutionPlan> {
        let mut config = self.config.clone();
        config.file_source = Arc::new(self.source.with_open_to_filters(open));
        DataSourceExec::from_data_source(config)
    }

    /// The same scan (projection, filters, partitions, limit) of only those files for which `keep` says so.
    ///
    /// The number of partitions stays, so the plan above stays valid.
    pub fn retain(&self, mut keep: impl FnMut(&FileScanTask) -> bool) -> Arc<dyn ExecutionPlan> {
        let tasks: Arc<[Arc<FileScanTask>]> = self.source.tasks().iter().filter(|t| keep(t)).cloned().collect();
        let kept: HashSet<&str> = tasks.iter().map(|t| &*t.data_file.file_path).collect();
        let groups = self.config.file_groups.iter().map(|group| {
            let files = group.files().iter().filter(|f| {
                f.extension::<file::ScanFile>().is_some_and(|s| kept.contains(&*s.task.data_file.file_path))
            });
            FileGroup::new(files.cloned().collect())
        });
        let config = FileScanConfigBuilder::from(self.config.clone())
            .with_file_groups(groups.collect())
            .with_statistics(self.source.context().statistics(&tasks))
            .with_source(Arc::new(self.source.with_tasks(Arc::clone(&tasks))))
            .build();
        DataSourceExec::from_data_source(config)
    }

    /// As [`IcebergScan::retain`], for a subset of [`IcebergScan::tasks`] chosen elsewhere.
    ///
    /// # Errors
    /// `InvalidInput` when a file is not part of this scan.
    pub fn with_tasks(&self, tasks: &[Arc<FileScanTask>]) -> crate::Result<Arc<dyn ExecutionPlan>> {
        let known: HashSet<&str> = self.tasks().iter().map(|t| &*t.data_file.file_path).collect();
        if let Some(other) = tasks.iter().find(|t| !known.contains(&*t.data_file.file_path)) {
            return Err(Error::invalid_input("the file is not part of the scan")
                .with_context("file", &*other.data_file.file_path));
        }
        let wanted: HashSet<&str> = tasks.iter().map(|t| &*t.data_file.file_path).collect();
        Ok(self.retain(|task| wanted.contains(&*task.data_file.file_path)))
    }
}
