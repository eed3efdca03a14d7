//! A session over a warehouse folder, and the state of a table put back after a statement.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt64Type};
use calve::catalog::{Catalog, FilesystemCatalog, TableIdent};
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, install};
use calve::spec::{DataContent, DataFile, FileFormat, PartitionKey, PartitionTuple};
use calve::table::Table;
use calve::testing::CountingStore;
use calve::transaction::SnapshotUpdate;
use datafusion::catalog::TableProvider;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};

use crate::measure::{Clock, Run};

/// Catalog `lake`, namespace `default`.
pub struct Lake {
    folder: PathBuf,
    calve: Calve,
    catalog: Arc<dyn Catalog>,
}

impl Lake {
    pub async fn open(folder: &Path, store: Option<Arc<CountingStore>>) -> Self {
        fs::create_dir_all(folder).expect("the data folder");
        let mut io = FileIo::builder();
        if let Some(store) = store {
            io = io.with_local_store(store);
        }
        let warehouse = folder.to_str().expect("a path");
        let catalog = FilesystemCatalog::new("lake", warehouse, io.build(), Env::system()).expect("a catalog");
        catalog.create_namespace(&["default".to_string()], true).await.expect("the namespace");
        let config = SessionConfig::new().with_default_catalog_and_schema("lake", "default");
        let state = install(SessionStateBuilder::new().with_default_features().with_config(config)).build();
        let context = SessionContext::new_with_state(state);
        let memory = datafusion::catalog::MemoryCatalogProvider::new();
        let public = Arc::new(datafusion::catalog::MemorySchemaProvider::new());
        datafusion::catalog::CatalogProvider::register_schema(&memory, "public", public).expect("a schema");
        context.register_catalog("datafusion", Arc::new(memory));
        let calve = Calve::new(context).expect("a session");
        let catalog: Arc<dyn Catalog> = Arc::new(catalog);
        calve.register_catalog("lake", Arc::clone(&catalog));
        Self { folder: folder.to_path_buf(), calve, catalog }
    }

    pub fn register(&self, name: &str, table: Arc<dyn TableProvider>) {
        let name = format!("datafusion.public.{name}");
        let context = self.calve.context();
        context.deregister_table(name.as_str()).expect("a memory schema");
        context.register_table(name.as_str(), table).expect("a memory schema");
    }

    pub fn table_dir(&self, table: &str) -> PathBuf {
        self.folder.join("default").join(table)
    }

    pub async fn run(&self, sql: &str) -> Vec<RecordBatch> {
        let frame = self.calve.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    /// Runs a statement; the first number it yields.
    pub async fn count(&self, sql: &str) -> u64 {
        first_number(&self.run(sql).await)
    }

    /// Runs a statement; the first number it yields, and how long it took.
    pub async fn timed(&self, sql: &str) -> (u64, Run) {
        let clock = Clock::start();
        let batches = self.run(sql).await;
        let run = clock.stop();
        (first_number(&batches), run)
    }
}

impl Lake {
    /// Commits an equality delete file of the long column `field_id` with the keys in the batches' first column; how many.
    pub async fn delete_keys(&self, table: &str, field_id: i32, keys: &[RecordBatch]) -> u64 {
        let ident = TableIdent { namespace: vec!["default".to_string()], name: table.to_string() };
        let table = Table::load(Arc::clone(&self.catalog), ident, Env::system()).await.expect("the table");
        let location = table.new_data_location("", "deleted-keys.parquet").expect("a location");
        let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_string(), field_id.to_string())]);
        let schema = Arc::new(Schema::new(vec![Field::new("key", DataType::Int64, true).with_metadata(id)]));
        let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), None).expect("a writer");
        for batch in keys {
            let column = Arc::clone(batch.column(0));
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("keys")).expect("memory");
        }
        let bytes = writer.into_inner().expect("memory");
        let partition = PartitionKey { spec_id: table.metadata.default_spec_id, tuple: PartitionTuple::default() };
        let mut file = DataFile::new(DataContent::EqualityDeletes, location.as_str(), FileFormat::Parquet, partition);
        file.file_size_in_bytes = bytes.len() as u64;
        file.record_count = keys.iter().map(|batch| batch.num_rows() as u64).sum();
        file.equality_ids = vec![field_id];
        let count = file.record_count;
        table.io.write(&location, bytes.into()).await.expect("the delete file");
        let mut update = SnapshotUpdate::new(table);
        update.add_delete(file);
        update.commit().await.expect("a commit");
        count
    }
}

fn first_number(batches: &[RecordBatch]) -> u64 {
    let column = batches[0].column(0);
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(0),
        _ => u64::try_from(column.as_primitive::<Int64Type>().value(0)).expect("a count"),
    }
}

/// The metadata folder and the names of the data files of a table at one moment.
pub struct SavedState {
    table: PathBuf,
    metadata: Vec<(PathBuf, Vec<u8>)>,
    data: HashSet<PathBuf>,
}

impl SavedState {
    pub fn save(table: &Path) -> Self {
        let metadata = files(&table.join("metadata")).into_iter().map(|path| {
            let bytes = fs::read(&path).expect("a metadata file");
            (path, bytes)
        });
        Self { table: table.to_path_buf(), metadata: metadata.collect(), data: files(&table.join("data")) }
    }

    pub fn restore(self) {
        for path in files(&self.table.join("metadata")) {
            fs::remove_file(path).expect("a metadata file");
        }
        for (path, bytes) in &self.metadata {
            fs::write(path, bytes).expect("the metadata folder");
        }
        for path in files(&self.table.join("data")).difference(&self.data) {
            fs::remove_file(path).expect("a data file");
        }
    }
}

fn files(folder: &Path) -> HashSet<PathBuf> {
    let mut found = HashSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a folder entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}
