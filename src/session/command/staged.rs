//! A table that does not exist yet, as a catalog of one table.
//!
//! `CREATE TABLE … AS` appends to it like to any table; the first commit creates it, snapshot included, in one step. Invariant: the
//! catalog behind sees one `create_table` or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use crate::catalog::{Catalog, DroppedTable, LoadedTable, TableCommit, TableIdent};
use crate::env::Env;
use crate::io::FileIo;
use crate::spec::TableMetadata;
use crate::spec::table_metadata::TableMetadataBuilder;
use crate::table::Table;
use crate::{Error, Result};

/// The catalog of a table to be created.
#[derive(Debug)]
pub(crate) struct StagedTable {
    catalog: Arc<dyn Catalog>,
    ident: TableIdent,
    first: Arc<TableMetadata>,
    env: Env,
    created: AtomicBool,
}

impl StagedTable {
    /// Stages the table `ident` of `catalog` with `first` as its state before any commit.
    pub(crate) fn new(catalog: Arc<dyn Catalog>, ident: TableIdent, first: TableMetadata, env: Env) -> Arc<Self> {
        Arc::new(Self { catalog, ident, first: Arc::new(first), env, created: AtomicBool::new(false) })
    }

    /// The table's name.
    pub(crate) fn ident(&self) -> &TableIdent {
        &self.ident
    }

    /// The table, to be appended to.
    pub(crate) fn table(self: &Arc<Self>) -> Table {
        Table::new(Arc::clone(self) as _, self.ident.clone(), self.staged(), self.env.clone())
    }

    /// Creates the table without a snapshot, unless a commit has created it.
    pub(crate) async fn create_if_not_committed(&self) -> Result<()> {
        if !self.created.load(Ordering::Acquire) {
            self.create((*self.first).clone()).await?;
        }
        Ok(())
    }

    async fn create(&self, metadata: TableMetadata) -> Result<LoadedTable> {
        let loaded = self.catalog.create_table(&self.ident, metadata).await?;
        self.created.store(true, Ordering::Release);
        Ok(loaded)
    }

    fn staged(&self) -> LoadedTable {
        LoadedTable { metadata: Arc::clone(&self.first), metadata_location: String::new() }
    }

    fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(Error::unsupported(format!("{what}: table {} is not created yet", self.ident)))
    }
}

#[async_trait]
impl Catalog for StagedTable {
    fn name(&self) -> &str {
        self.catalog.name()
    }

    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>> {
        self.catalog.list_namespaces(parent).await
    }

    async fn create_namespace(&self, _namespace: &[String], _if_not_exists: bool) -> Result<()> {
        self.unsupported("creating a namespace")
    }

    async fn drop_namespace(&self, _namespace: &[String]) -> Result<()> {
        self.unsupported("dropping a namespace")
    }

    async fn namespace_exists(&self, namespace: &[String]) -> Result<bool> {
        self.catalog.namespace_exists(namespace).await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        self.catalog.list_tables(namespace).await
    }

    /// The staged state, until the table is created.
    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable> {
        if *ident == self.ident && !self.created.load(Ordering::Acquire) {
            return Ok(self.staged());
        }
        self.catalog.load_table(ident).await
    }

    async fn create_table(&self, _ident: &TableIdent, _metadata: TableMetadata) -> Result<LoadedTable> {
        self.unsupported("creating a table")
    }

    /// Creates the table in the state after the commit. `AlreadyExists` when another writer was first.
    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        if commit.ident != self.ident || self.created.load(Ordering::Acquire) {
            return self.catalog.commit(commit).await;
        }
        for requirement in &commit.requirements {
            requirement.check(Some(&self.first))?;
        }
        let mut builder = TableMetadataBuilder::from((*self.first).clone(), None);
        for update in commit.updates {
            builder = builder.apply(update)?;
        }
        self.create(builder.build(self.env.now_ms())?).await
    }

    async fn drop_table(&self, _ident: &TableIdent) -> Result<DroppedTable> {
        self.unsupported("dropping a table")
    }

    async fn rename_table(&self, _from: &TableIdent, _to: &TableIdent) -> Result<()> {
        self.unsupported("renaming a table")
    }

    fn default_location(&self, ident: &TableIdent) -> Result<String> {
        self.catalog.default_location(ident)
    }

    fn allows_location(&self) -> bool {
        self.catalog.allows_location()
    }

    fn file_io(&self) -> &FileIo {
        self.catalog.file_io()
    }
}
