//! Commits on small tables in memory, whose data files exist in manifests alone.

mod commits;
mod manifests;
mod row_ids;
mod rules;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::catalog::{Catalog, DroppedTable, FilesystemCatalog, LoadedTable, MemoryCatalog, TableCommit, TableIdent};
use crate::env::Env;
use crate::error::ErrorKind;
use crate::expr::{LeafOp, Predicate};
use crate::io::FileIo;
use crate::scan::live_files;
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::{DeleteGranularity, IsolationLevel};
use crate::spec::{
    EntryStatus, FileFormat, Literal, ManifestEntry, PartitionKey, PartitionTuple, TableMetadata, TableUpdate,
};
use crate::testing::{CountingStore, Fault, FaultStore};
use crate::writer::PositionDeleteWriter;

/// What a catalog does with the next commit.
enum Trick {
    /// Lets this run first.
    Before(BoxFuture<'static, ()>),
    /// Carries the commit out and loses the answer.
    LoseAnswer,
    /// Loses the request.
    LoseRequest,
}

/// A catalog that plays tricks with commits, one after the other, and then none.
struct TrickCatalog {
    inner: Arc<dyn Catalog>,
    tricks: Mutex<VecDeque<Trick>>,
}

impl std::fmt::Debug for TrickCatalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl Catalog for TrickCatalog {
    fn name(&self) -> &str {
        self.inner.name()
    }
    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>> {
        self.inner.list_namespaces(parent).await
    }
    async fn create_namespace(&self, ns: &[String], if_not_exists: bool) -> Result<()> {
        self.inner.create_namespace(ns, if_not_exists).await
    }
    async fn drop_namespace(&self, ns: &[String]) -> Result<()> {
        self.inner.drop_namespace(ns).await
    }
    async fn namespace_exists(&self, ns: &[String]) -> Result<bool> {
        self.inner.namespace_exists(ns).await
    }
    async fn list_tables(&self, ns: &[String]) -> Result<Vec<TableIdent>> {
        self.inner.list_tables(ns).await
    }
    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable> {
        self.inner.load_table(ident).await
    }
    async fn create_table(&self, ident: &TableIdent, metadata: TableMetadata) -> Result<LoadedTable> {
        self.inner.create_table(ident, metadata).await
    }
    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        let trick = self.tricks.lock().pop_front();
        match trick {
            None => self.inner.commit(commit).await,
            Some(Trick::Before(other)) => {
                other.await;
                self.inner.commit(commit).await
            }
            Some(Trick::LoseAnswer) => {
                self.inner.commit(commit).await?;
                Err(Error::commit_unknown("the answer is lost"))
            }
            Some(Trick::LoseRequest) => Err(Error::commit_unknown("the request is lost")),
        }
    }
    async fn drop_table(&self, ident: &TableIdent) -> Result<DroppedTable> {
        self.inner.drop_table(ident).await
    }
    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        self.inner.rename_table(from, to).await
    }
    fn default_location(&self, ident: &TableIdent) -> Result<String> {
        self.inner.default_location(ident)
    }
    fn allows_location(&self) -> bool {
        self.inner.allows_location()
    }
    fn file_io(&self) -> &FileIo {
        self.inner.file_io()
    }
    fn check_writable(&self, ident: &TableIdent, loaded: &LoadedTable) -> Result<()> {
        self.inner.check_writable(ident, loaded)
    }
}

/// A warehouse in memory with one table, `ns.t`.
struct Lake {
    store: Arc<FaultStore>,
    counts: Arc<CountingStore>,
    inner: Arc<dyn Catalog>,
    catalog: Arc<TrickCatalog>,
}

fn ident() -> TableIdent {
    TableIdent::new(["ns"], "t")
}

impl Lake {
    /// A table of `version`: columns 1 `id` long and 2 `p` int; spec 0 identity(p), the default, and spec 1 unpartitioned.
    async fn new(version: u8, properties: &[(&str, &str)]) -> Self {
        Self::with_catalog(version, properties, true).await
    }

    async fn with_catalog(version: u8, properties: &[(&str, &str)], filesystem: bool) -> Self {
        let store = FaultStore::new(Arc::new(InMemory::new()));
        let counts = CountingStore::new(Arc::clone(&store) as Arc<dyn ObjectStore>);
        let io = Self::io(&counts);
        let inner: Arc<dyn Catalog> = if filesystem {
            Arc::new(FilesystemCatalog::new("lake", "s3://bucket/w", io, Env::system()).unwrap())
        } else {
            Arc::new(MemoryCatalog::new("lake", "s3://bucket/w", io, Env::system()).unwrap())
        };
        let catalog = Arc::new(TrickCatalog { inner: Arc::clone(&inner), tricks: Mutex::default() });
        inner.create_namespace(&["ns".to_string()], true).await.unwrap();
        let lake = Self { store, counts, inner, catalog };
        lake.inner.create_table(&ident(), metadata(version, properties)).await.unwrap();
        lake
    }

    fn io(counts: &Arc<CountingStore>) -> FileIo {
        FileIo::builder().with_store("s3://bucket", Arc::clone(counts) as Arc<dyn ObjectStore>).build()
    }

    async fn table(&self) -> Table {
        Table::load(Arc::clone(&self.catalog) as Arc<dyn Catalog>, ident(), Env::system()).await.unwrap()
    }

    /// The table as another process sees it, with nothing cached and no tricks.
    async fn fresh(&self) -> Table {
        let io = Self::io(&self.counts);
        let catalog: Arc<dyn Catalog> = match self.inner.name() {
            "lake" if self.inner.allows_location() => Arc::clone(&self.inner),
            _ => Arc::new(FilesystemCatalog::new("lake", "s3://bucket/w", io, Env::system()).unwrap()),
        };
        Table::load(catalog, ident(), Env::system()).await.unwrap()
    }

    fn trick(&self, trick: Trick) {
        self.catalog.tricks.lock().push_back(trick);
    }

    /// Before the next commit reaches the catalog, commits what `other` makes of the table as it is then.
    async fn race(&self, other: impl FnOnce(&Table, &mut SnapshotUpdate) + Send + 'static) {
        let table = self.fresh().await;
        self.trick(Trick::Before(Box::pin(async move {
            let table = table.refresh().await.unwrap();
            let mut update = SnapshotUpdate::new(table.clone());
            other(&table, &mut update);
            update.commit().await.unwrap();
        })));
    }

    async fn change(&self, update: TableUpdate) {
        let base = self.inner.load_table(&ident()).await.unwrap();
        let commit = TableCommit { ident: ident(), base, requirements: Vec::new(), updates: vec![update] };
        self.inner.commit(commit).await.unwrap();
    }

    async fn commit(&self, fill: impl FnOnce(&mut SnapshotUpdate)) -> Table {
        let mut update = SnapshotUpdate::new(self.table().await);
        fill(&mut update);
        update.commit().await.unwrap()
    }

    /// Every object in the store.
    async fn objects(&self) -> BTreeSet<String> {
        let io = Self::io(&self.counts);
        io.list("s3://bucket/w").await.unwrap().into_iter().map(|file| file.location).collect()
    }

    /// Manifests and manifest lists in the store that no snapshot names, and those named that are not there.
    async fn strays(&self) -> BTreeSet<String> {
        let table = self.fresh().await;
        let mut named = BTreeSet::new();
        for snapshot in &table.metadata.snapshots {
            if let crate::spec::ManifestSource::List(list) = &snapshot.manifests {
                named.insert(list.clone());
            }
            let manifests = crate::scan::manifests_of(&table, snapshot).await.unwrap();
            named.extend(manifests.iter().map(|manifest| manifest.manifest_path.clone()));
        }
        let avro = |path: &String| path.ends_with(".avro");
        let there: BTreeSet<String> = self.objects().await.into_iter().filter(avro).collect();
        there.symmetric_difference(&named).cloned().collect()
    }
}

fn metadata(version: u8, properties: &[(&str, &str)]) -> TableMetadata {
    let mut all = BTreeMap::from([
        ("commit.retry.min-wait-ms", "1"),
        // Others that come in between must not wait long for the place in the queue of the commit they overtake.
        ("commit.retry.max-wait-ms", "5"),
        ("commit.status-check.num-retries", "1"),
        ("commit.status-check.min-wait-ms", "1"),
    ]);
    all.extend(properties.iter().copied());
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "type": "long", "required": false},
        {"id": 2, "name": "p", "type": "int", "required": false}]});
    let mut json = json!({
        "format-version": version, "table-uuid": Env::system().uuid().to_string(), "location": "s3://bucket/w/ns/t",
        "last-updated-ms": 1, "last-column-id": 2, "current-schema-id": 0, "schemas": [schema],
        "default-spec-id": 0, "last-partition-id": 1000,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "p", "transform": "identity"}]},
            {"spec-id": 1, "fields": []}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": all,
    });
    if version == 1 {
        json["schema"] = schema;
        json["partition-spec"] = json["partition-specs"][0]["fields"].clone();
    } else {
        json["last-sequence-number"] = json!(0);
    }
    if version == 3 {
        json["next-row-id"] = json!(0);
    }
    TableMetadata::parse(json.to_string().as_bytes(), "test").unwrap()
}

fn partition(p: i32) -> PartitionKey {
    PartitionKey { spec_id: 0, tuple: PartitionTuple([Some(Literal::Int(p))].into_iter().collect()) }
}

fn path(name: &str) -> String {
    format!("s3://bucket/w/ns/t/data/{name}")
}

/// A data file of ten rows with ids from `first` in partition `p`.
fn data(name: &str, p: i32, first: i64) -> DataFile {
    let mut file = DataFile::new(DataContent::Data, path(name), FileFormat::Parquet, partition(p));
    (file.record_count, file.file_size_in_bytes) = (10, 1000);
    file.value_counts.insert(1, 10);
    file.null_value_counts.insert(1, 0);
    file.lower_bounds.insert(1, Literal::Long(first).to_bytes().into());
    file.upper_bounds.insert(1, Literal::Long(first + 9).to_bytes().into());
    file
}

/// Adds a data file of each name, all in partition 1.
fn add_all(update: &mut SnapshotUpdate, names: &[&str]) {
    names.iter().for_each(|name| update.add_data(data(name, 1, 0)));
}

/// A vector over the first row of a data file.
fn vector(puffin: &str, of: &DataFile) -> DataFile {
    let mut file = DataFile::new(DataContent::PositionDeletes, path(puffin), FileFormat::Puffin, of.partition_key());
    (file.record_count, file.file_size_in_bytes) = (1, 100);
    file.referenced_data_file = Some(of.file_path.clone());
    (file.content_offset, file.content_size_in_bytes) = (Some(4), Some(40));
    file
}

fn equality_delete(name: &str, p: i32) -> DataFile {
    let mut file = DataFile::new(DataContent::EqualityDeletes, path(name), FileFormat::Parquet, partition(p));
    (file.record_count, file.file_size_in_bytes) = (1, 100);
    file.equality_ids = vec![1];
    file
}

/// Writes deletes of the first row of each data file, as the granularity groups them.
async fn position_deletes(table: &Table, of: &[&DataFile], granularity: DeleteGranularity) -> Vec<DataFile> {
    let mut writer = PositionDeleteWriter::new(table, 0, 0, Some(granularity)).unwrap();
    for file in of {
        writer.add(&file.file_path, &file.partition_key(), &PositionBitmap::from_positions([0]));
    }
    writer.finish().await.unwrap()
}

/// Live entries of the current snapshot by path, vectors by path and offset.
async fn live(table: &Table) -> BTreeMap<String, ManifestEntry> {
    let entries = live_files(table, None).await.unwrap();
    let key = |e: &ManifestEntry| match e.data_file.content_offset {
        Some(offset) => format!("{}@{offset}", e.data_file.file_path),
        None => e.data_file.file_path.to_string(),
    };
    let by_path: BTreeMap<_, _> = entries.iter().map(|e| (key(e), e.clone())).collect();
    assert_eq!(by_path.len(), entries.len(), "a file is live twice");
    by_path
}

/// Names of live files.
async fn names(table: &Table) -> Vec<String> {
    live(table).await.into_keys().map(|path| path.rsplit('/').next().unwrap().to_string()).collect()
}

async fn entry(table: &Table, name: &str) -> ManifestEntry {
    live(table).await.remove(&path(name)).unwrap_or_else(|| panic!("{name} is not live"))
}

async fn file(table: &Table, name: &str) -> Arc<DataFile> {
    entry(table, name).await.data_file
}
