//! A [`Catalog`] as DataFusion's catalog and schemas.
//!
//! Names are asked for when they are listed, tables loaded when they are named: a statement always sees the newest state.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::TableType;

use super::bridge::block_on;
use super::table::IcebergTableProvider;
use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::table::Table;
use crate::{Error, ErrorKind};

/// Suffix of the name of a table with its hidden columns.
const ROWS: &str = "rows";

/// The namespaces of a catalog as schemas. A nested namespace `a`, `b` is the schema `a.b`, which a statement has to quote.
pub struct IcebergCatalogProvider {
    catalog: Arc<dyn Catalog>,
    env: Env,
}

impl IcebergCatalogProvider {
    /// The schemas and tables of `catalog`.
    pub fn new(catalog: Arc<dyn Catalog>, env: Env) -> Self {
        Self { catalog, env }
    }

    /// The catalog behind it.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.catalog
    }

    /// Clock and ids that its tables use.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The namespaces of all levels, as schema names, sorted.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn list_schemas(&self) -> crate::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut open: Vec<Option<Vec<String>>> = vec![None];
        while let Some(parent) = open.pop() {
            for namespace in self.catalog.list_namespaces(parent.as_deref()).await? {
                names.extend(schema_name(&namespace));
                open.push(Some(namespace));
            }
        }
        names.sort();
        Ok(names)
    }
}

impl fmt::Debug for IcebergCatalogProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergCatalogProvider").field("catalog", &self.catalog.name()).finish_non_exhaustive()
    }
}

impl CatalogProvider for IcebergCatalogProvider {
    /// Empty when the catalog does not answer, for this method cannot fail.
    fn schema_names(&self) -> Vec<String> {
        block_on(self.list_schemas()).and_then(|names| names).unwrap_or_default()
    }

    /// Any namespace, without asking whether it exists; its tables are not found if it does not.
    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == "information_schema" {
            return None;
        }
        let namespace = namespace_of(name).ok()?;
        Some(Arc::new(IcebergSchemaProvider::new(Arc::clone(&self.catalog), namespace, self.env.clone())))
    }
}

/// The tables of one namespace.
///
/// `t$rows` is the table `t` with the hidden columns `_file`, `_pos`, `_spec_id` and `_partition` behind its own.
pub struct IcebergSchemaProvider {
    catalog: Arc<dyn Catalog>,
    namespace: Vec<String>,
    env: Env,
}

impl IcebergSchemaProvider {
    /// The tables of `namespace` in `catalog`.
    pub fn new(catalog: Arc<dyn Catalog>, namespace: Vec<String>, env: Env) -> Self {
        Self { catalog, namespace, env }
    }

    /// The catalog behind it.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.catalog
    }

    /// The namespace.
    pub fn namespace(&self) -> &[String] {
        &self.namespace
    }

    /// Clock and ids that its tables use.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The table `name`, or `t$rows`; `None` when there is none.
    ///
    /// # Errors
    /// `NotFound` when the namespace does not exist or a suffix behind `$` is none that is known.
    pub async fn load(&self, name: &str) -> crate::Result<Option<IcebergTableProvider>> {
        if let Some(table) = self.load_table(name).await? {
            return IcebergTableProvider::new(table).map(Some);
        }
        let Some((base, suffix)) = name.rsplit_once('$') else {
            return self.nothing().await;
        };
        let Some(table) = self.load_table(base).await? else {
            return self.nothing().await;
        };
        if suffix != ROWS {
            return Err(Error::not_found(format!("table {} has no ${suffix}", table.ident)));
        }
        IcebergTableProvider::new(table)?.with_row_address().map(Some)
    }

    async fn load_table(&self, name: &str) -> crate::Result<Option<Table>> {
        if name.is_empty() {
            return Ok(None);
        }
        let ident = TableIdent { namespace: self.namespace.clone(), name: name.to_owned() };
        match Table::load(Arc::clone(&self.catalog), ident, self.env.clone()).await {
            Ok(table) => Ok(Some(table)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn nothing(&self) -> crate::Result<Option<IcebergTableProvider>> {
        if self.catalog.namespace_exists(&self.namespace).await? {
            return Ok(None);
        }
        let name = schema_name(&self.namespace).unwrap_or_default();
        Err(Error::not_found(format!("there is no namespace {name} in catalog {}", self.catalog.name())))
    }
}

impl fmt::Debug for IcebergSchemaProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergSchemaProvider")
            .field("catalog", &self.catalog.name())
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for IcebergSchemaProvider {
    /// Empty when the catalog does not answer, for this method cannot fail.
    fn table_names(&self) -> Vec<String> {
        let listed = block_on(self.catalog.list_tables(&self.namespace)).and_then(|tables| tables);
        listed.unwrap_or_default().into_iter().map(|ident| ident.name).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.load(name).await?.map(|table| Arc::new(table) as _))
    }

    /// Without loading the table: listings ask for every one.
    async fn table_type(&self, _name: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        matches!(block_on(self.load(name)), Ok(Ok(Some(_))))
    }
}

/// The schema name of a namespace: its parts joined by dots, parts with a dot or a quote in double quotes. `None` for the
/// root.
pub fn schema_name(namespace: &[String]) -> Option<String> {
    let (last, parents) = namespace.split_last()?;
    Some(TableIdent { namespace: parents.to_vec(), name: last.clone() }.to_string())
}

/// The namespace that a schema name means.
///
/// # Errors
/// `InvalidInput` for an empty part or an open quote.
pub fn namespace_of(schema_name: &str) -> crate::Result<Vec<String>> {
    let TableIdent { mut namespace, name } = TableIdent::parse(schema_name)?;
    namespace.push(name);
    Ok(namespace)
}
