//! One suite of tests that every catalog passes, over stores that keep and stores that fail.

mod faults;
mod namespaces;
mod processes;
mod races;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use tempfile::TempDir;

use super::*;
use crate::env::Env;
use crate::testing::FaultStore;

/// Opens a catalog.
type Open = Box<dyn Fn() -> Arc<dyn Catalog> + Send + Sync>;

/// A catalog under test, and what it stands on.
pub(super) struct Subject {
    pub(super) what: &'static str,
    pub(super) catalog: Arc<dyn Catalog>,
    /// Everything the catalog does to its store goes through this one.
    pub(super) store: Arc<FaultStore>,
    /// The catalog as another process would open it; the same one where that is not possible.
    pub(super) reopen: Open,
    pub(super) warehouse: String,
    _dir: Option<TempDir>,
}

pub(super) const KINDS: [&str; 4] = [
    "filesystem on local files",
    "filesystem on an object store",
    "memory on local files",
    "memory on an object store",
];

/// A fresh, empty catalog of a kind, with the namespace `ns`.
pub(super) async fn subject(what: &'static str) -> Subject {
    let local = what.ends_with("local files");
    let dir = local.then(|| tempfile::tempdir().unwrap());
    let inner: Arc<dyn ObjectStore> = if local { Arc::new(LocalFileSystem::new()) } else { Arc::new(InMemory::new()) };
    let store = FaultStore::new(inner);
    let (io, warehouse) = match &dir {
        Some(dir) => {
            let path = dir.path().canonicalize().unwrap().join("ware house");
            let io = FileIo::builder().with_local_store(Arc::<FaultStore>::clone(&store)).build();
            (io, format!("file://{}", path.display()))
        }
        None => {
            let io = FileIo::builder().with_store("s3://bucket", Arc::<FaultStore>::clone(&store)).build();
            (io, "s3://bucket/ware house".to_string())
        }
    };
    let (catalog, reopen): (Arc<dyn Catalog>, Open) = if what.starts_with("filesystem") {
        let w = warehouse.clone();
        let open = move || -> Arc<dyn Catalog> {
            Arc::new(FilesystemCatalog::new("lake", &w, io.clone(), Env::system()).unwrap())
        };
        (open(), Box::new(open))
    } else {
        let catalog: Arc<dyn Catalog> = Arc::new(MemoryCatalog::new("lake", &warehouse, io, Env::system()).unwrap());
        (Arc::clone(&catalog), Box::new(move || Arc::clone(&catalog)))
    };
    catalog.create_namespace(&["ns".to_string()], false).await.unwrap();
    Subject { what, catalog, store, reopen, warehouse, _dir: dir }
}

pub(super) fn ident(name: &str) -> TableIdent {
    TableIdent::new(["ns"], name)
}

/// The first state of a table at `location`.
pub(super) fn metadata_at(location: &str, properties: &[(&str, &str)]) -> TableMetadata {
    let properties: BTreeMap<_, _> = properties.iter().copied().collect();
    let json = serde_json::json!({
        "format-version": 2,
        "table-uuid": Env::system().uuid().to_string(),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000_i64,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "required": false, "type": "long"}]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": properties,
    });
    TableMetadata::parse(json.to_string().as_bytes(), location).unwrap()
}

pub(super) async fn create(
    catalog: &dyn Catalog,
    ident: &TableIdent,
    properties: &[(&str, &str)],
) -> Result<LoadedTable> {
    let location = catalog.default_location(ident)?;
    catalog.create_table(ident, metadata_at(&location, properties)).await
}

/// A commit on `base` that sets one property.
pub(super) fn setting(ident: &TableIdent, base: &LoadedTable, key: &str, value: &str) -> TableCommit {
    let updates = [(key.to_string(), value.to_string())].into();
    TableCommit {
        ident: ident.clone(),
        base: base.clone(),
        requirements: Vec::new(),
        updates: vec![TableUpdate::SetProperties { updates }],
    }
}

/// Commits until nobody else comes first.
pub(super) async fn set_with_retries(catalog: &dyn Catalog, ident: &TableIdent, key: &str) -> Result<LoadedTable> {
    loop {
        let base = catalog.load_table(ident).await?;
        match catalog.commit(setting(ident, &base, key, "1")).await {
            Err(e) if is_stale(&e) => {}
            other => return other,
        }
    }
}
