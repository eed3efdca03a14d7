//! A lake in a temporary folder, with tables written by this crate or by plain Parquet writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use calve::catalog::{Catalog, FilesystemCatalog, TableIdent};
use calve::env::Env;
use calve::expr::Predicate;
use calve::io::FileIo;
use calve::provider::{IcebergCatalogProvider, IcebergTableProvider, guard_filter_pushdown};
use calve::scan::plan_scan;
use calve::spec::deletion_vector::DeletionVector;
use calve::spec::{
    DataContent, DataFile, FileFormat, FormatVersion, NestedField, NewTable, PartitionKey, PartitionSpec,
    PartitionTuple, PrimitiveType, Schema, SortOrder, TableMetadataBuilder,
};
use calve::table::Table;
use calve::testing::CountingStore;
use calve::transaction::SnapshotUpdate;
use calve::writer::{DataFileWriter, DataWriterOptions, DeletionVectorWriter, PositionDeleteWriter, arrow_schema};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::local::LocalFileSystem;

/// A filesystem catalog `lake` in a folder of its own; its namespace `db` is there.
pub struct Lake {
    pub catalog: Arc<dyn Catalog>,
    pub store: Arc<CountingStore>,
    pub io: FileIo,
    _dir: tempfile::TempDir,
}

impl Lake {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let store = CountingStore::new(Arc::new(LocalFileSystem::new()));
        let io = FileIo::builder().with_local_store(Arc::clone(&store) as _).build();
        let warehouse = dir.path().to_str().expect("UTF-8");
        let catalog = FilesystemCatalog::new("lake", warehouse, io.clone(), Env::system()).expect("a catalog");
        catalog.create_namespace(&["db".to_owned()], true).await.expect("a namespace");
        Self { catalog: Arc::new(catalog), store, io, _dir: dir }
    }

    /// A session whose default schema is `lake.db`, with the guard of filter pushdown.
    pub fn session(&self, configure: impl FnOnce(&mut ConfigOptions)) -> SessionContext {
        self.session_with(true, configure)
    }

    /// As [`Lake::session`], with the guard only if asked for.
    pub fn session_with(&self, guard: bool, configure: impl FnOnce(&mut ConfigOptions)) -> SessionContext {
        let mut config =
            SessionConfig::new().with_information_schema(true).with_default_catalog_and_schema("lake", "db");
        config.options_mut().catalog.create_default_catalog_and_schema = false;
        configure(config.options_mut());
        let mut state = SessionStateBuilder::new().with_config(config).with_default_features();
        if guard {
            state = state.with_physical_optimizer_rules(guard_filter_pushdown(PhysicalOptimizer::new().rules));
        }
        let ctx = SessionContext::new_with_state(state.build());
        let provider = IcebergCatalogProvider::new(Arc::clone(&self.catalog), Env::system());
        ctx.register_catalog("lake", Arc::new(provider));
        ctx
    }

    pub async fn create(&self, name: &str, columns: Vec<NestedField>) -> Table {
        self.create_with(name, FormatVersion::V3, columns, PartitionSpec::unpartitioned(), &[]).await
    }

    pub async fn create_with(
        &self,
        name: &str,
        format_version: FormatVersion,
        columns: Vec<NestedField>,
        spec: PartitionSpec,
        properties: &[(&str, &str)],
    ) -> Table {
        let ident = TableIdent::new(["db"], name);
        let env = Env::system();
        let metadata = TableMetadataBuilder::new_table(NewTable {
            uuid: env.uuid(),
            location: self.catalog.default_location(&ident).expect("a location"),
            format_version,
            schema: Schema::new(0, columns),
            spec,
            sort_order: SortOrder::unsorted(),
            properties: properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
        })
        .and_then(|b| b.build(env.now_ms()))
        .expect("metadata");
        let loaded = self.catalog.create_table(&ident, metadata).await.expect("a table");
        Table::new(Arc::clone(&self.catalog), ident, loaded, env)
    }

    pub async fn table(&self, name: &str) -> Table {
        let ident = TableIdent::new(["db"], name);
        Table::load(Arc::clone(&self.catalog), ident, Env::system()).await.expect("a table")
    }

    /// Appends the rows by this crate's own writer, one file for each batch (and partition).
    pub async fn append(&self, name: &str, batches: &[RecordBatch]) {
        let table = self.table(name).await;
        let mut update = SnapshotUpdate::new(table.clone());
        for batch in batches {
            let mut writer = DataFileWriter::new(&table, DataWriterOptions::default()).expect("a writer");
            writer.write(batch).await.expect("written");
            writer.finish().await.expect("finished").into_iter().for_each(|file| update.add_data(file));
        }
        update.commit().await.expect("committed");
    }

    /// Appends one file of an unpartitioned table as another writer would write it, without metrics.
    pub async fn append_parquet(&self, name: &str, batch: &RecordBatch, properties: WriterProperties) {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
        writer.write(batch).expect("written");
        writer.close().expect("closed");
        self.append_bytes(name, bytes, batch.num_rows() as u64).await;
    }

    /// Appends these bytes as a data file that is said to hold `record_count` rows.
    pub async fn append_bytes(&self, name: &str, bytes: Vec<u8>, record_count: u64) {
        let table = self.table(name).await;
        let file_name = format!("{}.parquet", Env::system().uuid());
        let location = table.new_data_location("", &file_name).expect("a location");
        let key = PartitionKey { spec_id: 0, tuple: PartitionTuple::default() };
        let mut file = DataFile::new(DataContent::Data, location.as_str(), FileFormat::Parquet, key);
        file.record_count = record_count;
        file.file_size_in_bytes = bytes.len() as u64;
        self.io.write(&location, bytes.into()).await.expect("stored");
        let mut update = SnapshotUpdate::new(table);
        update.add_data(file);
        update.commit().await.expect("committed");
    }

    /// Deletes the rows at the positions that `positions` gives for each live data file.
    pub async fn delete(&self, name: &str, positions: impl Fn(&DataFile) -> Vec<u64>) {
        let table = self.table(name).await;
        let tasks = plan_scan(&table, None, &Predicate::AlwaysTrue).await.expect("files").tasks;
        let mut update = SnapshotUpdate::new(table.clone());
        let chosen =
            tasks.iter().map(|task| (&task.data_file, DeletionVector::from_positions(positions(&task.data_file))));
        let chosen: Vec<_> = chosen.filter(|(_, deleted)| !deleted.is_empty()).collect();
        let deletes = if table.metadata.format_version >= FormatVersion::V3 {
            let mut writer = DeletionVectorWriter::new(&table, 0, 0).expect("a writer");
            for (file, deleted) in &chosen {
                writer.add(&file.file_path, &file.partition_key(), deleted).await.expect("written");
            }
            writer.finish().await.expect("finished")
        } else {
            let mut writer = PositionDeleteWriter::new(&table, 0, 0, None).expect("a writer");
            for (file, deleted) in &chosen {
                writer.add(&file.file_path, &file.partition_key(), deleted);
            }
            writer.finish().await.expect("finished")
        };
        deletes.into_iter().for_each(|file| update.add_delete(file));
        update.commit().await.expect("committed");
    }

    pub async fn provider(&self, name: &str) -> IcebergTableProvider {
        IcebergTableProvider::new(self.table(name).await).expect("a provider")
    }
}

/// An optional column.
pub fn column(id: i32, name: &str, ty: PrimitiveType) -> NestedField {
    NestedField::new(id, name, false, ty)
}

/// Rows with field ids counted from 1.
pub fn rows(columns: &[(&str, PrimitiveType, ArrayRef)]) -> RecordBatch {
    let fields = (1..).zip(columns).map(|(id, (name, ty, _))| column(id, name, ty.clone())).collect();
    let schema = arrow_schema(&Schema::new(0, fields)).expect("a schema");
    RecordBatch::try_new(schema, columns.iter().map(|(_, _, array)| Arc::clone(array)).collect()).expect("rows")
}

pub async fn batches(ctx: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = ctx.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The rows as lines of text, sorted; cells apart by `|`.
pub async fn query(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let batches = batches(ctx, sql).await;
    let text = pretty_format_batches(&batches).expect("a table").to_string();
    let cells = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join("|");
    let mut lines: Vec<String> = text.lines().filter(|l| l.starts_with('|')).skip(1).map(cells).collect();
    lines.sort();
    lines
}

/// The plan that `EXPLAIN` prints.
pub async fn explain(ctx: &SessionContext, sql: &str) -> String {
    pretty_format_batches(&batches(ctx, &format!("EXPLAIN {sql}")).await).expect("a table").to_string()
}

/// The error of a statement, at planning or at execution.
pub async fn error(ctx: &SessionContext, sql: &str) -> String {
    match ctx.sql(sql).await {
        Err(e) => e.to_string(),
        Ok(frame) => match frame.collect().await {
            Err(e) => e.to_string(),
            Ok(rows) => panic!("{sql} succeeded: {}", pretty_format_batches(&rows).expect("a table")),
        },
    }
}

/// Every combination of the settings of a scan that must not matter.
pub fn settings() -> impl Iterator<Item = Setting> {
    let both = [false, true];
    both.into_iter().flat_map(move |pushdown| {
        both.into_iter().flat_map(move |page_index| {
            [1, 4].into_iter().flat_map(move |partitions| {
                [1, 8192].into_iter().map(move |batch_size| Setting { pushdown, page_index, partitions, batch_size })
            })
        })
    })
}

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub pushdown: bool,
    pub page_index: bool,
    pub partitions: usize,
    pub batch_size: usize,
}

impl Setting {
    pub fn apply(self, options: &mut ConfigOptions) {
        options.execution.parquet.pushdown_filters = self.pushdown;
        options.execution.parquet.enable_page_index = self.page_index;
        options.execution.target_partitions = self.partitions;
        options.set("datafusion.execution.batch_size", &self.batch_size.to_string()).expect("a size");
        // Splits even the smallest file.
        options.optimizer.repartition_file_min_size = 1;
    }
}
