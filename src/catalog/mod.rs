//! Catalogs: which tables there are, and the atomic step from one state of a table to the next.
//!
//! Implements the spec sections "Optimistic Concurrency", "Metastore Tables" and "File System Tables" (Appendix on
//! `HadoopCatalog`'s layout). Invariant: a commit has four outcomes and says which: done; `Conflict` (another commit came
//! first, nothing changed); another error (nothing changed); `CommitUnknown` (nobody knows, keep every file).

mod filesystem;
mod ident;
mod memory;
mod metadata_file;
mod static_table;
mod versioned;

#[cfg(test)]
mod conformance;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::io::FileIo;
use crate::spec::{TableMetadata, TableMetadataBuilder, TableRequirement, TableUpdate};
use crate::{Error, ErrorKind, Result};

pub use filesystem::FilesystemCatalog;
pub use ident::TableIdent;
pub use memory::MemoryCatalog;
pub(crate) use metadata_file::metadata_dir;
pub use static_table::{StaticCatalog, static_table};

/// Context name of a [`Conflict`](ErrorKind::Conflict) that says only that the table has changed since it was loaded.
const STALE: &str = "stale";

/// A table's state and the file that holds it.
#[derive(Debug, Clone)]
pub struct LoadedTable {
    /// The state.
    pub metadata: Arc<TableMetadata>,
    /// Location of the metadata file it was read from.
    pub metadata_location: String,
}

/// A change to a table: what must hold of the state it was made from, and what changes.
#[derive(Debug, Clone)]
pub struct TableCommit {
    /// The table.
    pub ident: TableIdent,
    /// The state that the change was made from; the commit is a `Conflict` when it is no longer current.
    pub base: LoadedTable,
    /// What must hold of it.
    pub requirements: Vec<TableRequirement>,
    /// The changes, in order.
    pub updates: Vec<TableUpdate>,
}

impl TableCommit {
    /// The state after the change, at time `now_ms`, if the requirements hold.
    pub fn new_metadata(&self, now_ms: i64) -> Result<TableMetadata> {
        for requirement in &self.requirements {
            requirement.check(Some(&self.base.metadata))?;
        }
        let base_location = Some(self.base.metadata_location.as_str());
        let builder = TableMetadataBuilder::from((*self.base.metadata).clone(), base_location);
        builder.apply_all(self.updates.iter().cloned())?.build(now_ms)
    }
}

/// What [`Catalog::drop_table`] left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedTable {
    /// The table's location; its data files are still there.
    pub location: String,
    /// What was removed and what stays, for people.
    pub message: String,
}

/// A catalog of tables.
///
/// Errors common to all: `NotFound` for a table or namespace that does not exist, `AlreadyExists` for one that does,
/// `InvalidInput` for a name the catalog cannot hold, `Unsupported` for what it does not do.
#[async_trait]
pub trait Catalog: Debug + Send + Sync {
    /// The catalog's own name.
    fn name(&self) -> &str;

    /// The namespaces directly below `parent` (`None`: the root), as full paths, sorted.
    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>>;

    /// Makes a namespace.
    async fn create_namespace(&self, namespace: &[String], if_not_exists: bool) -> Result<()>;

    /// Removes an empty namespace; `InvalidInput` when it is not empty.
    async fn drop_namespace(&self, namespace: &[String]) -> Result<()>;

    /// Whether a namespace exists. The root always does.
    async fn namespace_exists(&self, namespace: &[String]) -> Result<bool>;

    /// The tables directly in a namespace, sorted.
    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>>;

    /// A table's current state.
    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable>;

    /// Makes a table with `metadata` as its first state. `metadata.location` says where.
    async fn create_table(&self, ident: &TableIdent, metadata: TableMetadata) -> Result<LoadedTable>;

    /// Whether the catalog could commit to a table in the state `loaded`; asked before a statement writes any file.
    ///
    /// # Errors
    /// `Unsupported` with the reason why not.
    fn check_writable(&self, ident: &TableIdent, loaded: &LoadedTable) -> Result<()>;

    /// Changes a table, in one atomic step.
    ///
    /// `Conflict` when `base` is not the current state (then [`is_stale`] holds: load again and retry) or a requirement does
    /// not hold; `CommitUnknown` when the outcome cannot be found out: delete nothing. After any other error nothing
    /// has changed.
    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable>;

    /// Removes a table and its metadata folder, never a data file.
    async fn drop_table(&self, ident: &TableIdent) -> Result<DroppedTable>;

    /// Gives a table another name.
    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()>;

    /// Where a table goes when nobody says where.
    fn default_location(&self, ident: &TableIdent) -> Result<String>;

    /// Whether a table may be created elsewhere than at its default location.
    fn allows_location(&self) -> bool;

    /// Access to the files of the catalog's tables.
    fn file_io(&self) -> &FileIo;
}

/// Whether a commit failed only because the table had changed since it was loaded: load it again and retry.
pub fn is_stale(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict && error.context(STALE).is_some()
}

fn stale(ident: &TableIdent, base: &LoadedTable) -> Error {
    Error::conflict(format!("table {ident} has changed since it was loaded"))
        .with_context(STALE, &base.metadata_location)
}

fn no_table(ident: &TableIdent) -> Error {
    Error::not_found(format!("there is no table {ident}"))
}

fn table_exists(ident: &TableIdent) -> Error {
    Error::already_exists(format!("table {ident} exists already"))
}

fn no_namespace(namespace: &[String]) -> Error {
    Error::not_found(format!("there is no namespace {}", ident::namespace_text(namespace)))
}

fn namespace_exists(namespace: &[String]) -> Error {
    Error::already_exists(format!("namespace {} exists already", ident::namespace_text(namespace)))
}

/// The message of a drop that left the data of a table at `location`.
fn dropped_message(ident: &TableIdent, location: &str) -> String {
    format!("dropped table {ident}: its metadata is gone, its data files stay in {location}")
}
