//! A catalog that is a folder: `<warehouse>/<namespace>/…/<table>/metadata/v<N>.metadata.json`, as Java's `HadoopCatalog`.
//!
//! A folder with versions in its `metadata` folder is a table; any other one is a namespace, unless all it holds is what a dropped
//! table left (`data` or `metadata`). Tables cannot be elsewhere than at their name, nor take another name.

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::ident::{check_folder_name, namespace_text};
use super::versioned::{Found, VersionedTable};
use super::{Catalog, DroppedTable, LoadedTable, TableCommit, TableIdent, namespace_exists, no_namespace, no_table};
use crate::env::Env;
use crate::io::{FileIo, absolute, join};
use crate::spec::TableMetadata;
use crate::{Error, ErrorKind, Result};

/// Folders looked into at a time.
const FOLDERS_IN_FLIGHT: usize = 16;

/// A catalog of the tables below one folder.
#[derive(Debug, Clone)]
pub struct FilesystemCatalog {
    name: String,
    warehouse: String,
    io: FileIo,
    env: Env,
}

impl FilesystemCatalog {
    /// The catalog of the tables below `warehouse`, a location or a path, which need not exist yet.
    pub fn new(name: impl Into<String>, warehouse: &str, io: FileIo, env: Env) -> Result<Self> {
        let warehouse = absolute(warehouse)?;
        io.resolve(&warehouse)?;
        Ok(Self { name: name.into(), warehouse, io, env })
    }

    /// The folder of the catalog.
    pub fn warehouse(&self) -> &str {
        &self.warehouse
    }

    fn namespace_dir(&self, namespace: &[String]) -> Result<String> {
        let mut dir = self.warehouse.clone();
        for part in namespace {
            check_folder_name(part)?;
            dir = join(&dir, part);
        }
        Ok(dir)
    }

    fn table(&self, ident: &TableIdent) -> Result<VersionedTable> {
        check_folder_name(&ident.name)?;
        let dir = join(&self.namespace_dir(&ident.namespace)?, &ident.name);
        Ok(VersionedTable { ident: ident.clone(), dir, io: self.io.clone(), env: self.env.clone() })
    }

    fn child(&self, namespace: &[String], name: &str) -> Result<VersionedTable> {
        self.table(&TableIdent::new(namespace, name))
    }

    /// Whether the folder of a namespace is one: not a table's, nor what a dropped table left.
    async fn is_namespace(&self, namespace: &[String]) -> Result<bool> {
        let Some((name, parent)) = namespace.split_last() else { return Ok(true) };
        let table = self.child(parent, name)?;
        if !self.io.dir_exists(&table.dir).await? || table.exists().await? {
            return Ok(false);
        }
        let (folders, _) = self.io.list_names(&table.dir).await?;
        for folder in ["data", "metadata"] {
            if folders.iter().any(|f| f == folder) {
                let others = folders.iter().any(|f| f != "data" && f != "metadata" && !f.starts_with('.'));
                return Ok(others || self.child(namespace, folder)?.exists().await?);
            }
        }
        Ok(true)
    }

    /// The names of the folders of a namespace that could be tables or namespaces.
    async fn folder_names(&self, namespace: &[String]) -> Result<Vec<String>> {
        let (mut folders, _) = self.io.list_names(&self.namespace_dir(namespace)?).await?;
        folders.retain(|f| check_folder_name(f).is_ok());
        Ok(folders)
    }

    async fn tables_in(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        let found = stream::iter(self.folder_names(namespace).await?)
            .map(|name| async move {
                let table = self.child(namespace, &name)?;
                Ok::<_, Error>(table.exists().await?.then_some(table.ident))
            })
            .buffered(FOLDERS_IN_FLIGHT)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn namespaces_in(&self, namespace: &[String]) -> Result<Vec<Vec<String>>> {
        let found = stream::iter(self.folder_names(namespace).await?)
            .map(|name| async move {
                let mut child = namespace.to_vec();
                child.push(name);
                Ok::<_, Error>(self.is_namespace(&child).await?.then_some(child))
            })
            .buffered(FOLDERS_IN_FLIGHT)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn require_namespace(&self, namespace: &[String]) -> Result<()> {
        if self.is_namespace(namespace).await? { Ok(()) } else { Err(no_namespace(namespace)) }
    }
}

#[async_trait]
impl Catalog for FilesystemCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>> {
        let parent = parent.unwrap_or_default();
        self.require_namespace(parent).await?;
        self.namespaces_in(parent).await
    }

    async fn create_namespace(&self, namespace: &[String], if_not_exists: bool) -> Result<()> {
        let Some((name, parent)) = namespace.split_last() else {
            return if if_not_exists { Ok(()) } else { Err(namespace_exists(namespace)) };
        };
        for depth in 1..namespace.len() {
            let (above, _) = namespace.split_at(depth);
            if let Some((name, parent)) = above.split_last()
                && self.child(parent, name)?.exists().await?
            {
                return Err(Error::invalid_input(format!("{} is a table", namespace_text(above))));
            }
        }
        let table = self.child(parent, name)?;
        if table.exists().await? {
            return Err(Error::already_exists(format!("{} is a table", namespace_text(namespace))));
        }
        if self.is_namespace(namespace).await? {
            return if if_not_exists { Ok(()) } else { Err(namespace_exists(namespace)) };
        }
        if self.io.dir_exists(&table.dir).await? {
            return Err(Error::already_exists(format!(
                "{} still holds files of a dropped table: remove them or take another name",
                table.dir
            )));
        }
        self.io.create_dir(&table.dir).await
    }

    async fn drop_namespace(&self, namespace: &[String]) -> Result<()> {
        if namespace.is_empty() {
            return Err(Error::invalid_input("the root namespace cannot be dropped"));
        }
        self.require_namespace(namespace).await?;
        let not_empty = |what: String| {
            Error::invalid_input(format!("namespace {} is not empty: it holds {what}", namespace_text(namespace)))
        };
        if let Some(table) = self.tables_in(namespace).await?.first() {
            return Err(not_empty(format!("table {table}")));
        }
        if let Some(child) = self.namespaces_in(namespace).await?.first() {
            return Err(not_empty(format!("namespace {}", namespace_text(child))));
        }
        let dir = self.namespace_dir(namespace)?;
        match self.io.remove_dir(&dir).await {
            Err(e) if e.kind() == ErrorKind::InvalidInput => {
                Err(not_empty(format!("files of dropped tables, or others, in {dir}")))
            }
            other => other,
        }
    }

    async fn namespace_exists(&self, namespace: &[String]) -> Result<bool> {
        self.is_namespace(namespace).await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        self.require_namespace(namespace).await?;
        self.tables_in(namespace).await
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable> {
        match self.table(ident)?.find().await? {
            Found::Table(_, loaded) => Ok(loaded),
            Found::Nothing | Found::Dropped(_) => Err(no_table(ident)),
        }
    }

    async fn create_table(&self, ident: &TableIdent, metadata: TableMetadata) -> Result<LoadedTable> {
        let table = self.table(ident)?;
        self.require_namespace(&ident.namespace).await?;
        let mut as_namespace = ident.namespace.clone();
        as_namespace.push(ident.name.clone());
        if let Some(inner) = self.tables_in(&as_namespace).await?.first() {
            return Err(Error::already_exists(format!("{ident} is a namespace, with table {inner}")));
        }
        table.create(metadata).await
    }

    fn check_writable(&self, ident: &TableIdent, loaded: &LoadedTable) -> Result<()> {
        self.table(ident)?.check_state(&loaded.metadata)
    }

    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        self.table(&commit.ident)?.commit(commit).await
    }

    async fn drop_table(&self, ident: &TableIdent) -> Result<DroppedTable> {
        self.table(ident)?.drop_table().await
    }

    async fn rename_table(&self, from: &TableIdent, _to: &TableIdent) -> Result<()> {
        Err(Error::unsupported(format!(
            "cannot rename {from}: in a filesystem catalog a table's name is its folder, which no store can rename in one step"
        )))
    }

    fn default_location(&self, ident: &TableIdent) -> Result<String> {
        Ok(self.table(ident)?.dir)
    }

    fn allows_location(&self) -> bool {
        false
    }

    fn file_io(&self) -> &FileIo {
        &self.io
    }
}
