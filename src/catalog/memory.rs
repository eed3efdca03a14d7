//! A catalog whose pointers to metadata files live in memory; the files themselves are written as any catalog's.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::ident::{check_folder_name, namespace_text};
use super::metadata_file::{
    check_compression, delete_expired, encode, expired_files, metadata_dir, own_logged_files, pointer_name,
    pointer_version, wants_gzip,
};
use super::{
    Catalog, DroppedTable, LoadedTable, TableCommit, TableIdent, dropped_message, namespace_exists, no_namespace,
    no_table, stale, table_exists,
};
use crate::env::Env;
use crate::io::{FileIo, absolute, join};
use crate::spec::TableMetadata;
use crate::{Error, Result};

/// A catalog that ends with its process. A commit writes `<n>-<uuid>.metadata.json` and then swaps the pointer, if it is still the
/// one that the commit started from.
#[derive(Debug)]
pub struct MemoryCatalog {
    name: String,
    warehouse: String,
    io: FileIo,
    env: Env,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    namespaces: BTreeSet<Vec<String>>,
    tables: BTreeMap<TableIdent, LoadedTable>,
}

impl MemoryCatalog {
    /// An empty catalog whose tables go below `warehouse` unless they say otherwise.
    pub fn new(name: impl Into<String>, warehouse: &str, io: FileIo, env: Env) -> Result<Self> {
        let warehouse = absolute(warehouse)?;
        io.resolve(&warehouse)?;
        Ok(Self { name: name.into(), warehouse, io, env, state: Mutex::default() })
    }

    /// Writes `metadata` under a fresh name; what a load of it gives.
    async fn write(&self, number: u64, metadata: &TableMetadata) -> Result<LoadedTable> {
        check_compression(metadata)?;
        let gzip = wants_gzip(metadata);
        let bytes = encode(metadata, gzip)?;
        let location = join(&metadata_dir(metadata), &pointer_name(number, self.env.uuid(), gzip));
        if let Err(e) = self.io.write(&location, bytes.clone()).await {
            // It may be there all the same; nothing points to it.
            let _ = self.io.delete(&location).await;
            return Err(e);
        }
        Ok(LoadedTable { metadata: TableMetadata::parse(&bytes, &location)?.into(), metadata_location: location })
    }
}

impl State {
    fn require_namespace(&self, namespace: &[String]) -> Result<()> {
        if self.has_namespace(namespace) { Ok(()) } else { Err(no_namespace(namespace)) }
    }

    fn has_namespace(&self, namespace: &[String]) -> bool {
        namespace.is_empty() || self.namespaces.contains(namespace)
    }

    fn table(&self, ident: &TableIdent) -> Result<&LoadedTable> {
        self.tables.get(ident).ok_or_else(|| no_table(ident))
    }
}

#[async_trait]
impl Catalog for MemoryCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>> {
        let parent = parent.unwrap_or_default();
        let state = self.state.lock();
        state.require_namespace(parent)?;
        let below = |n: &&Vec<String>| n.len() == parent.len() + 1 && n.starts_with(parent);
        Ok(state.namespaces.iter().filter(below).cloned().collect())
    }

    async fn create_namespace(&self, namespace: &[String], if_not_exists: bool) -> Result<()> {
        for part in namespace {
            check_folder_name(part)?;
        }
        let mut state = self.state.lock();
        if state.has_namespace(namespace) {
            return if if_not_exists { Ok(()) } else { Err(namespace_exists(namespace)) };
        }
        // Those above come into being with it, as folders do.
        for depth in 1..=namespace.len() {
            state.namespaces.insert(namespace.split_at(depth).0.to_vec());
        }
        Ok(())
    }

    async fn drop_namespace(&self, namespace: &[String]) -> Result<()> {
        if namespace.is_empty() {
            return Err(Error::invalid_input("the root namespace cannot be dropped"));
        }
        let mut state = self.state.lock();
        state.require_namespace(namespace)?;
        let table = state.tables.keys().find(|t| t.namespace.starts_with(namespace)).map(|t| format!("table {t}"));
        let child = state.namespaces.iter().find(|n| n.len() > namespace.len() && n.starts_with(namespace));
        if let Some(what) = table.or_else(|| child.map(|n| format!("namespace {}", namespace_text(n)))) {
            let name = namespace_text(namespace);
            return Err(Error::invalid_input(format!("namespace {name} is not empty: it holds {what}")));
        }
        state.namespaces.remove(namespace);
        Ok(())
    }

    async fn namespace_exists(&self, namespace: &[String]) -> Result<bool> {
        Ok(self.state.lock().has_namespace(namespace))
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        let state = self.state.lock();
        state.require_namespace(namespace)?;
        Ok(state.tables.keys().filter(|t| t.namespace == namespace).cloned().collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable> {
        self.state.lock().table(ident).cloned()
    }

    async fn create_table(&self, ident: &TableIdent, metadata: TableMetadata) -> Result<LoadedTable> {
        check_folder_name(&ident.name)?;
        let check = |state: &State| {
            state.require_namespace(&ident.namespace)?;
            if state.tables.contains_key(ident) { Err(table_exists(ident)) } else { Ok(()) }
        };
        check(&self.state.lock())?;
        let loaded = self.write(0, &metadata).await?;
        let taken = {
            let mut state = self.state.lock();
            let free = check(&state);
            if free.is_ok() {
                state.tables.insert(ident.clone(), loaded.clone());
            }
            free.err()
        };
        if let Some(e) = taken {
            let _ = self.io.delete(&loaded.metadata_location).await;
            return Err(e);
        }
        Ok(loaded)
    }

    fn check_writable(&self, _ident: &TableIdent, loaded: &LoadedTable) -> Result<()> {
        super::metadata_file::check_compression(&loaded.metadata)
    }

    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        let (ident, base) = (&commit.ident, &commit.base);
        let check = |state: &State| {
            let current = state.table(ident)?;
            if current.metadata_location == base.metadata_location { Ok(()) } else { Err(stale(ident, base)) }
        };
        check(&self.state.lock())?;
        let metadata = commit.new_metadata(self.env.now_ms())?;
        let base_name = base.metadata_location.rsplit('/').next().unwrap_or_default();
        let number = pointer_version(base_name).unwrap_or_default().saturating_add(1);
        let loaded = self.write(number, &metadata).await?;
        let lost = {
            let mut state = self.state.lock();
            let current = check(&state);
            if current.is_ok() {
                state.tables.insert(ident.clone(), loaded.clone());
            }
            current.err()
        };
        if let Some(e) = lost {
            let _ = self.io.delete(&loaded.metadata_location).await;
            return Err(e);
        }
        delete_expired(&self.io, &expired_files(&self.io, &base.metadata, &loaded.metadata)).await;
        Ok(loaded)
    }

    async fn drop_table(&self, ident: &TableIdent) -> Result<DroppedTable> {
        let before = self.load_table(ident).await?;
        // Listed before the table is gone: what another one of its name writes from then on is not among them.
        let listed = self.io.list(&metadata_dir(&before.metadata)).await;
        let (loaded, others) = {
            let mut state = self.state.lock();
            let loaded = state.tables.remove(ident).ok_or_else(|| no_table(ident))?;
            (loaded, state.tables.values().map(|t| metadata_dir(&t.metadata)).collect::<Vec<_>>())
        };
        let location = loaded.metadata.location.clone();
        let dir = metadata_dir(&loaded.metadata);
        let mut files = own_logged_files(&self.io, &loaded.metadata);
        files.push(loaded.metadata_location.clone());
        // In a folder that the table's name does not give, or that another table shares, only the log's own files go.
        let same = |other: &str| self.io.same_object(&dir, other).unwrap_or(false);
        let own = same(&join(&self.default_location(ident)?, "metadata")) && !others.iter().any(|d| same(d));
        if let (true, Ok(listed)) = (own && dir == metadata_dir(&before.metadata), listed) {
            files.extend(listed.into_iter().map(|f| f.location));
        }
        let mut message = dropped_message(ident, &location);
        let left = self.io.delete_all(files).await.into_iter().find_map(|(_, outcome)| outcome.err());
        if let Some(e) = left {
            message = format!("{message}; some files stay in {dir}: {e}");
        }
        self.io.prune_empty_dirs(&location).await;
        Ok(DroppedTable { location, message })
    }

    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        check_folder_name(&to.name)?;
        let mut state = self.state.lock();
        let table = state.table(from)?.clone();
        state.require_namespace(&to.namespace)?;
        if state.tables.contains_key(to) {
            return Err(table_exists(to));
        }
        state.tables.remove(from);
        state.tables.insert(to.clone(), table);
        Ok(())
    }

    fn default_location(&self, ident: &TableIdent) -> Result<String> {
        let mut location = self.warehouse.clone();
        for part in ident.namespace.iter().chain([&ident.name]) {
            check_folder_name(part)?;
            location = join(&location, part);
        }
        Ok(location)
    }

    fn allows_location(&self) -> bool {
        true
    }

    fn file_io(&self) -> &FileIo {
        &self.io
    }
}
