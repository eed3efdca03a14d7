//! What statements leave behind: together with others, when steps fail, when processes die.

mod bad_input;
mod changes;
mod concurrency;
mod faults;
mod processes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use calve::Result;
use calve::catalog::{Catalog, FilesystemCatalog, MemoryCatalog, TableIdent};
use calve::env::Env;
use calve::io::FileIo;
use calve::maintenance::reachable_files;
use calve::session::Calve;
use calve::table::Table;
use calve::testing::FaultStore;
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::support::{run, session, text_rows};

const WAREHOUSE: &str = "s3://bucket/lake";

/// A catalog of either kind over an object store in memory that fails on demand.
struct World {
    objects: InMemory,
    faults: Arc<FaultStore>,
    catalog: Arc<dyn Catalog>,
    calve: Calve,
}

fn file_io(store: Arc<dyn ObjectStore>) -> FileIo {
    FileIo::builder().with_store("s3://bucket", store).build()
}

fn ident(name: &str) -> TableIdent {
    TableIdent { namespace: vec!["default".to_string()], name: name.to_string() }
}

impl World {
    /// A filesystem catalog over what `objects` holds.
    async fn filesystem(objects: &InMemory) -> Self {
        Self::new(objects, |io| Arc::new(FilesystemCatalog::new("lake", WAREHOUSE, io, Env::system()).unwrap())).await
    }

    /// A memory catalog over what `objects` holds, with the tables `names` of its filesystem catalog.
    async fn memory(objects: &InMemory, names: &[&str]) -> Self {
        let files = Self::filesystem(objects).await;
        let world =
            Self::new(objects, |io| Arc::new(MemoryCatalog::new("lake", WAREHOUSE, io, Env::system()).unwrap())).await;
        for name in names {
            let metadata = (*files.table(name).await.unwrap().metadata).clone();
            world.catalog.create_table(&ident(name), metadata).await.unwrap();
        }
        world
    }

    async fn new(objects: &InMemory, catalog: impl FnOnce(FileIo) -> Arc<dyn Catalog>) -> Self {
        // The fork keeps its contents to itself; clones of the handle share them.
        let objects = objects.fork();
        let faults = FaultStore::new(Arc::new(objects.clone()));
        let catalog = catalog(file_io(Arc::clone(&faults) as _));
        catalog.create_namespace(&["default".to_string()], true).await.unwrap();
        let config = SessionConfig::new().with_target_partitions(2);
        let calve = session(Arc::clone(&catalog), config);
        Self { objects, faults, catalog, calve }
    }

    async fn sql(&self, text: &str) -> Result<Vec<datafusion::arrow::array::RecordBatch>> {
        run(&self.calve, text).await
    }

    /// A table as someone sees it who has nothing cached; `None` when there is none.
    async fn table(&self, name: &str) -> Option<Table> {
        let mut table = Table::load(Arc::clone(&self.catalog), ident(name), Env::system()).await.ok()?;
        table.io = file_io(Arc::new(self.objects.clone()));
        Some(table)
    }

    /// The rows of `t`; `None` when there is no such table.
    async fn rows(&self) -> Option<Vec<String>> {
        self.table("t").await?;
        Some(text_rows(&self.sql("SELECT * FROM t").await.unwrap()))
    }

    /// Names of all objects.
    async fn objects(&self) -> BTreeSet<String> {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        all.into_iter().map(|object| format!("s3://bucket/{}", object.location)).collect()
    }

    /// Objects below the table that its metadata does not reach, and reached ones that are missing.
    async fn strays_and_missing(&self, name: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let Some(table) = self.table(name).await else { return Default::default() };
        let mut reached: BTreeSet<String> =
            reachable_files(&table).await.unwrap().into_deletion_order().into_iter().collect();
        reached.insert(format!("{}/metadata/version-hint.text", table.metadata.location));
        let objects = self.objects().await;
        let own = |path: &&String| path.starts_with(&format!("{}/", table.metadata.location));
        let there: BTreeSet<String> = objects.iter().filter(own).cloned().collect();
        let strays = there.difference(&reached).cloned().collect();
        let missing = reached.difference(&objects).filter(|path| !path.ends_with("version-hint.text"));
        (strays, missing.cloned().collect())
    }

    /// Waits until the objects are `expected`: what a dropped writer leaves goes in the background.
    async fn settle(&self, expected: &BTreeSet<String>) -> BTreeSet<String> {
        for _ in 0..100 {
            if self.objects().await == *expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.objects().await
    }
}
