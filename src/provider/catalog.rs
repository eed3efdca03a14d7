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
use super::part::table_part;
use super::table::IcebergTableProvider;
use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::table::Table;
use crate::{Error, ErrorKind};

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
/// `t$rows` is the table `t` with its hidden columns (`_file`, `_pos`, …) behind its own; `t$snapshot_id_<id>`,
/// `t$branch_<name>`, `t$tag_<name>` and `t$at_timestamp_<ms>` are other versions of it; and `t$snapshot_id_<id>$rows` is
/// both. None of these is listed.
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

    /// The table `name`, or a part or version of one as in `t$rows`; `None` when there is none.
    ///
    /// # Errors
    /// `NotFound` when the namespace does not exist or the suffix behind `$` is none that the table has.
    pub async fn load(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.load_table(name).await? {
            return Ok(Some(Arc::new(IcebergTableProvider::new(table)?)));
        }
        for (at, _) in name.rmatch_indices('$') {
            let (Some(base), Some(suffix)) = (name.get(..at), name.get(at + 1..)) else { continue };
            if let Some(table) = self.load_table(base).await? {
                return table_part(table, suffix).map(Some);
            }
        }
        if self.catalog.namespace_exists(&self.namespace).await? {
            return Ok(None);
        }
        let name = schema_name(&self.namespace).unwrap_or_default();
        Err(Error::not_found(format!("there is no namespace {name} in catalog {}", self.catalog.name())))
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
        Ok(self.load(name).await?)
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
