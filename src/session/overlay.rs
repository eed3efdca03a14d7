//! An Iceberg catalog with what a session adds to it: external tables and views, and files named by their path.
//!
//! What is registered here lives as long as the session and hides nothing: DataFusion refuses a name that is taken.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider, UrlTableFactory};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use parking_lot::RwLock;

use super::views::newest_view;
use crate::provider::{IcebergCatalogProvider, IcebergTableProvider, table_part};

/// Tables of the session, by schema and name.
type LocalTables = Arc<RwLock<HashMap<(String, String), Arc<dyn TableProvider>>>>;

/// A catalog of Iceberg tables and of the session's own tables.
#[derive(Debug)]
pub(crate) struct SessionCatalog {
    inner: IcebergCatalogProvider,
    local: LocalTables,
    files: Option<Arc<dyn UrlTableFactory>>,
}

impl SessionCatalog {
    /// `files` makes tables of names that are paths or URLs.
    pub(crate) fn new(inner: IcebergCatalogProvider, files: Option<Arc<dyn UrlTableFactory>>) -> Self {
        Self { inner, local: LocalTables::default(), files }
    }

    /// Whether the session itself has a table of that name.
    pub(crate) fn is_local(&self, schema: &str, table: &str) -> bool {
        self.local.read().contains_key(&(schema.to_owned(), table.to_owned()))
    }
}

impl CatalogProvider for SessionCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.inner.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let inner = self.inner.schema(name)?;
        let (local, files) = (Arc::clone(&self.local), self.files.clone());
        Some(Arc::new(SessionSchema { inner, name: name.to_owned(), local, files }))
    }
}

/// One schema of a [`SessionCatalog`].
#[derive(Debug)]
struct SessionSchema {
    inner: Arc<dyn SchemaProvider>,
    name: String,
    local: LocalTables,
    files: Option<Arc<dyn UrlTableFactory>>,
}

impl SessionSchema {
    fn key(&self, table: &str) -> (String, String) {
        (self.name.clone(), table.to_owned())
    }

    fn local(&self, table: &str) -> Option<Arc<dyn TableProvider>> {
        self.local.read().get(&self.key(table)).cloned()
    }
}

#[async_trait]
impl SchemaProvider for SessionSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.inner.table_names();
        names.extend(
            self.local.read().keys().filter(|(schema, _)| *schema == self.name).map(|(_, table)| table.clone()),
        );
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.local(name) {
            return newest(table).await.map(Some);
        }
        for (at, _) in name.rmatch_indices('$') {
            let (Some(base), Some(suffix)) = (name.get(..at), name.get(at + 1..)) else { continue };
            let Some(local) = self.local(base) else { continue };
            if let Some(iceberg) = local.downcast_ref::<IcebergTableProvider>() {
                return Ok(Some(table_part(iceberg.table().refresh().await?, suffix)?));
            }
        }
        match &self.files {
            Some(files) if is_path(without_reference(name)) => files.try_new(name).await,
            _ => self.inner.table(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.local(name) {
            Some(table) => Ok(Some(table.table_type())),
            None => self.inner.table_type(name).await,
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.local.write().insert(self.key(&name), table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.local.write().remove(&self.key(name)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.local(name).is_some() || !is_path(without_reference(name)) && self.inner.table_exist(name)
    }
}

/// An external Iceberg table in its newest state, or a view over such states, so that a statement sees what the one before
/// it wrote; other tables as they are.
async fn newest(table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    if let Some(view) = table.downcast_ref::<ViewTable>() {
        return Ok(newest_view(view).await?.map_or(Arc::clone(&table), |view| Arc::new(view)));
    }
    let Some(iceberg) = table.downcast_ref::<IcebergTableProvider>() else { return Ok(table) };
    Ok(Arc::new(IcebergTableProvider::new(iceberg.table().refresh().await?)?))
}

/// A name without the branch or tag behind it, whose name may look like a path.
fn without_reference(name: &str) -> &str {
    let reference = ["$branch_", "$tag_"].iter().filter_map(|prefix| name.find(prefix)).min();
    reference.and_then(|at| name.get(..at)).unwrap_or(name)
}

/// Whether a table name can only be a path: it has a separator, or ends like a data file.
fn is_path(name: &str) -> bool {
    let ends = [".parquet", ".csv", ".json", ".ndjson", ".jsonl", ".arrow", ".avro", ".gz", ".zst"];
    name.contains('/') || name.contains('\\') || ends.iter().any(|end| name.to_ascii_lowercase().ends_with(end))
}
