//! One table without a catalog, by its folder or a metadata file: what `CREATE EXTERNAL TABLE` registers.
//!
//! It can be written to only where `metadata/` has the layout of [`versioned`](super::versioned), in which a commit needs no
//! one else. A table whose files are `<n>-<uuid>.metadata.json` has a catalog of its own that keeps the pointer; such a
//! table is read here at its highest number, and so is any older metadata file that is named.

use std::sync::Arc;

use async_trait::async_trait;

use super::metadata_file::pointer_version;
use super::versioned::{Found, VersionedTable, version_of_name};
use super::{Catalog, DroppedTable, LoadedTable, TableCommit, TableIdent, no_table};
use crate::env::Env;
use crate::io::{FileIo, absolute, join};
use crate::spec::TableMetadata;
use crate::{Error, ErrorKind, Result};

/// A catalog of one table.
#[derive(Debug)]
pub struct StaticCatalog {
    ident: TableIdent,
    location: String,
    io: FileIo,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Follows the table's versions, and commits new ones.
    Versioned(VersionedTable),
    /// The highest-numbered file of a folder that another catalog commits to.
    Pointed { metadata_dir: String },
    /// One metadata file.
    Pinned { file: String, reason: String },
}

/// The table at `location`, its folder or one of its metadata files, under the name `ident`.
///
/// `NotFound` when there is no metadata; `DataInvalid` when two files have the highest number, naming both.
pub async fn static_table(ident: TableIdent, location: &str, io: FileIo, env: Env) -> Result<Arc<StaticCatalog>> {
    let location = absolute(location)?;
    let catalog =
        |state| Arc::new(StaticCatalog { ident: ident.clone(), location: location.clone(), io: io.clone(), state });
    let versioned =
        |dir: &str| VersionedTable { ident: ident.clone(), dir: dir.to_string(), io: io.clone(), env: env.clone() };
    let name = location.rsplit('/').next().unwrap_or_default();
    if name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz") {
        let folder = location.strip_suffix(name).unwrap_or_default().trim_end_matches('/');
        let reason = match (version_of_name(name), folder.strip_suffix("/metadata")) {
            (Some(number), Some(dir)) => {
                let table = versioned(dir);
                match table.find().await? {
                    Found::Table(current, _) if current.number == number => {
                        return Ok(catalog(State::Versioned(table)));
                    }
                    Found::Table(current, _) => format!("{} is newer than {name}", current.name),
                    Found::Dropped(_) | Found::Nothing => return Err(no_metadata(&location)),
                }
            }
            (Some(_), None) => "its metadata file is not in a folder named metadata".to_string(),
            (None, _) => OTHERS_COMMIT.to_string(),
        };
        if !io.exists(&location).await? {
            return Err(no_metadata(&location));
        }
        return Ok(catalog(State::Pinned { file: location.clone(), reason }));
    }
    let table = versioned(&location);
    match table.find().await? {
        Found::Table(..) => Ok(catalog(State::Versioned(table))),
        Found::Dropped(_) => Err(no_metadata(&location)),
        Found::Nothing => {
            let metadata_dir = join(&location, "metadata");
            highest_pointed(&io, &metadata_dir).await?.ok_or_else(|| no_metadata(&location))?;
            Ok(catalog(State::Pointed { metadata_dir }))
        }
    }
}

const OTHERS_COMMIT: &str = "its metadata files are named <n>-<uuid>, so that the catalog it belongs to must commit";

fn no_metadata(location: &str) -> Error {
    Error::not_found(format!("there is no Iceberg table at {location}: no metadata file is there"))
}

/// The file `<n>-<uuid>.metadata.json` with the highest number.
async fn highest_pointed(io: &FileIo, dir: &str) -> Result<Option<String>> {
    let (_, files) = io.list_names(dir).await?;
    let numbered = files.iter().filter_map(|name| Some((pointer_version(name)?, name)));
    let Some(highest) = numbered.clone().map(|(number, _)| number).max() else { return Ok(None) };
    let mut names = numbered.filter(|(number, _)| *number == highest).map(|(_, name)| name);
    match (names.next(), names.next()) {
        (Some(a), Some(b)) => Err(Error::data_invalid(format!(
            "{dir} has two metadata files with the highest number, {a} and {b}: name the one to read as LOCATION"
        ))),
        (name, _) => Ok(name.map(|name| join(dir, name))),
    }
}

impl StaticCatalog {
    /// The name of the table.
    pub fn ident(&self) -> &TableIdent {
        &self.ident
    }

    /// The location it was registered with.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Why the table cannot be written to; `None` when it can.
    pub fn read_only_reason(&self) -> Option<&str> {
        match &self.state {
            State::Versioned(_) => None,
            State::Pointed { .. } => Some(OTHERS_COMMIT),
            State::Pinned { reason, .. } => Some(reason),
        }
    }

    fn read_only(&self) -> Error {
        let reason = self.read_only_reason().unwrap_or_default();
        Error::unsupported(format!("table {} at {} is read-only: {reason}", self.ident, self.location))
    }

    fn refuse(&self, what: &str) -> Error {
        Error::unsupported(format!("{what}: {} holds the one table {}", self.location, self.ident))
    }

    fn check(&self, ident: &TableIdent) -> Result<()> {
        if *ident == self.ident { Ok(()) } else { Err(no_table(ident)) }
    }
}

#[async_trait]
impl Catalog for StaticCatalog {
    fn name(&self) -> &str {
        &self.location
    }

    async fn list_namespaces(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>> {
        let parent = parent.unwrap_or_default();
        let below = self.ident.namespace.len() > parent.len() && self.ident.namespace.starts_with(parent);
        Ok(if below { vec![self.ident.namespace.split_at(parent.len() + 1).0.to_vec()] } else { Vec::new() })
    }

    async fn create_namespace(&self, _namespace: &[String], _if_not_exists: bool) -> Result<()> {
        Err(self.refuse("cannot create a namespace"))
    }

    async fn drop_namespace(&self, _namespace: &[String]) -> Result<()> {
        Err(self.refuse("cannot drop a namespace"))
    }

    async fn namespace_exists(&self, namespace: &[String]) -> Result<bool> {
        Ok(self.ident.namespace.starts_with(namespace))
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        Ok(if self.ident.namespace == namespace { vec![self.ident.clone()] } else { Vec::new() })
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<LoadedTable> {
        self.check(ident)?;
        let file = match &self.state {
            State::Versioned(table) => match table.find().await? {
                Found::Table(_, loaded) => return Ok(loaded),
                Found::Nothing | Found::Dropped(_) => return Err(no_metadata(&self.location)),
            },
            State::Pointed { metadata_dir } => {
                highest_pointed(&self.io, metadata_dir).await?.ok_or_else(|| no_metadata(&self.location))?
            }
            State::Pinned { file, .. } => file.clone(),
        };
        let bytes = match self.io.read(&file).await {
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(no_metadata(&self.location)),
            read => read?,
        };
        Ok(LoadedTable { metadata: TableMetadata::parse(&bytes, &file)?.into(), metadata_location: file })
    }

    async fn create_table(&self, _ident: &TableIdent, _metadata: TableMetadata) -> Result<LoadedTable> {
        Err(self.refuse("cannot create a table"))
    }

    fn check_writable(&self, ident: &TableIdent, loaded: &LoadedTable) -> Result<()> {
        self.check(ident)?;
        match &self.state {
            State::Versioned(table) => table.check_state(&loaded.metadata),
            State::Pointed { .. } | State::Pinned { .. } => Err(self.read_only()),
        }
    }

    async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        self.check(&commit.ident)?;
        match &self.state {
            State::Versioned(table) => table.commit(commit).await,
            State::Pointed { .. } | State::Pinned { .. } => Err(self.read_only()),
        }
    }

    async fn drop_table(&self, _ident: &TableIdent) -> Result<DroppedTable> {
        Err(self.refuse("cannot drop a table that was not created here"))
    }

    async fn rename_table(&self, _from: &TableIdent, _to: &TableIdent) -> Result<()> {
        Err(self.refuse("cannot rename a table"))
    }

    fn default_location(&self, _ident: &TableIdent) -> Result<String> {
        Err(self.refuse("cannot create a table"))
    }

    fn allows_location(&self) -> bool {
        false
    }

    fn file_io(&self) -> &FileIo {
        &self.io
    }
}

#[cfg(test)]
mod tests;
