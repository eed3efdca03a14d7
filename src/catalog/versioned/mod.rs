//! One table in the layout of Java's `HadoopCatalog`: `metadata/v<N>.metadata.json` and `metadata/version-hint.text`.
//!
//! The current version is the highest `N`; versions have no gap between any existing one and the current one. Creating the file
//! of version N+1, if there is none, is the commit. The hint is a place to start looking from and may be old, wrong
//! or missing. A version may be plain (`v7.metadata.json`) or gzipped (`v7.gz.metadata.json`, written by old releases as
//! `v7.metadata.json.gz`), but not both.
//!
//! Invariant: of all who start from version N, one creates N+1. Since the name of N+1 depends on its compression, that is taken
//! from the properties *of version N*, which all of them have read, and version 1 is plain.
//!
//! # Deviation
//! Java takes the compression from the new version's own properties, so a change of the property there takes effect one
//! commit earlier.

mod drop;
mod write;

use bytes::Bytes;

use super::{LoadedTable, TableIdent, metadata_file};
use crate::env::Env;
use crate::io::{FileIo, join};
use crate::spec::TableMetadata;
use crate::spec::properties::METADATA_PATH;
use crate::{Error, ErrorKind, Result};

/// Name of the hint.
pub(super) const HINT: &str = "version-hint.text";
/// Versions looked for one by one above the hint before the folder is listed.
const MAX_PROBES: u64 = 16;
/// JSON key that marks the last version of a dropped table.
const TOMBSTONE_KEY: &str = "calve-dropped-table";
/// A larger file is no tombstone.
const TOMBSTONE_MAX_BYTES: u64 = 512;

/// A table in that layout.
#[derive(Debug, Clone)]
pub(super) struct VersionedTable {
    /// The name used in messages.
    pub(super) ident: TableIdent,
    /// The table's folder.
    pub(super) dir: String,
    pub(super) io: FileIo,
    pub(super) env: Env,
}

/// A version found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u64,
    /// File name within the metadata folder.
    pub(super) name: String,
    size: u64,
}

/// What is at the table's place.
#[derive(Debug)]
pub(super) enum Found {
    /// No version at all.
    Nothing,
    /// A table that is dropped, but whose files are not all gone.
    Dropped(Version),
    /// A table.
    Table(Version, LoadedTable),
}

/// The three spellings of version `number`: plain, gzipped, gzipped by old releases.
fn spellings(number: u64) -> [String; 3] {
    [format!("v{number}.metadata.json"), format!("v{number}.gz.metadata.json"), format!("v{number}.metadata.json.gz")]
}

/// The name version `number` is written under.
fn new_name(number: u64, gzip: bool) -> String {
    let [plain, gz, _] = spellings(number);
    if gzip { gz } else { plain }
}

/// The version that a file name stands for; `None` for other files.
pub(super) fn version_of_name(name: &str) -> Option<u64> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.split_once('.')?.0;
    let number: u64 = digits.parse().ok()?;
    spellings(number).iter().any(|s| s == name).then_some(number)
}

impl VersionedTable {
    pub(super) fn metadata_dir(&self) -> String {
        join(&self.dir, "metadata")
    }

    fn location_of(&self, name: &str) -> String {
        join(&self.metadata_dir(), name)
    }

    /// The current version.
    pub(super) async fn find_current(&self) -> Result<Option<Version>> {
        if let Some(hint) = self.read_hint().await {
            // Nearly always the hint is right: that takes one round trip.
            let (hinted, mut next) =
                futures::future::try_join(self.probe(hint), self.probe(hint.saturating_add(1))).await?;
            if let Some(mut current) = hinted {
                for _ in 0..MAX_PROBES {
                    let Some(found) = next else { return Ok(Some(current)) };
                    next = self.probe(found.number.saturating_add(1)).await?;
                    current = found;
                }
            }
        }
        let mut versions = self.list_versions().await?;
        let Some(last) = versions.pop() else { return Ok(None) };
        match versions.pop() {
            Some(other) if other.number == last.number => Err(self.twice(&last.name, &other.name)),
            _ => Ok(Some(last)),
        }
    }

    /// All versions, oldest first.
    async fn list_versions(&self) -> Result<Vec<Version>> {
        let dir = self.metadata_dir();
        let files = self.io.list_after(&dir, "v").await?;
        let mut versions: Vec<_> = files
            .into_iter()
            .filter_map(|f| {
                let name = f.location.strip_prefix(&dir)?.trim_start_matches('/').to_string();
                Some(Version { number: version_of_name(&name)?, name, size: f.size })
            })
            .collect();
        versions.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        Ok(versions)
    }

    /// Version `number`, if it exists.
    async fn probe(&self, number: u64) -> Result<Option<Version>> {
        let names = spellings(number);
        let sizes = names.each_ref().map(|name| {
            let location = self.location_of(name);
            async move {
                match self.io.size(&location).await {
                    Ok(size) => Ok(Some(size)),
                    Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
                    Err(e) => Err(e),
                }
            }
        });
        let sizes = futures::future::try_join_all(sizes).await?;
        let mut found = names.into_iter().zip(sizes).filter_map(|(name, size)| Some((name, size?)));
        let Some((name, size)) = found.next() else { return Ok(None) };
        match found.next() {
            Some((other, _)) => Err(self.twice(&name, &other)),
            None => Ok(Some(Version { number, name, size })),
        }
    }

    fn twice(&self, a: &str, b: &str) -> Error {
        Error::data_invalid(format!(
            "table {} has two files for one version, {a} and {b}: which one is its state cannot be told; remove the wrong one",
            self.ident
        ))
        .with_context("folder", self.metadata_dir())
    }

    async fn read_hint(&self) -> Option<u64> {
        let bytes = self.io.read(&self.location_of(HINT)).await.ok()?;
        std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
    }

    /// Sets the hint to `number` unless it is there already or further. Best effort.
    async fn write_hint(&self, number: u64) {
        if self.read_hint().await.is_none_or(|hint| hint < number) {
            let _ = self.io.write(&self.location_of(HINT), Bytes::from(number.to_string())).await;
        }
    }

    /// What is at the table's place now.
    pub(super) async fn find(&self) -> Result<Found> {
        // A version can vanish between being found and being read: its table was dropped, or a later commit removed it.
        for _ in 0..3 {
            let Some(version) = self.find_current().await? else { return Ok(Found::Nothing) };
            let location = self.location_of(&version.name);
            match self.io.read(&location).await {
                Ok(bytes) if is_tombstone(&bytes) => return Ok(Found::Dropped(version)),
                Ok(bytes) => {
                    let loaded = self.loaded(&bytes, &version.name)?;
                    return Ok(Found::Table(version, loaded));
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Err(Error::unavailable(format!("the metadata of table {} keeps vanishing while it is read", self.ident)))
    }

    /// Whether there is a table that is not dropped. Reads no metadata of a usual size.
    pub(super) async fn exists(&self) -> Result<bool> {
        let Some(version) = self.find_current().await? else { return Ok(false) };
        if version.size > TOMBSTONE_MAX_BYTES {
            return Ok(true);
        }
        match self.io.read(&self.location_of(&version.name)).await {
            Ok(bytes) => Ok(!is_tombstone(&bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn loaded(&self, bytes: &[u8], name: &str) -> Result<LoadedTable> {
        let location = self.location_of(name);
        let metadata = TableMetadata::parse(bytes, &location)?;
        // Logs are to name files in the table's own spelling when it leads to the same place.
        let own = join(&metadata_file::metadata_dir(&metadata), name);
        let metadata_location = if self.io.same_object(&own, &location).unwrap_or(false) { own } else { location };
        Ok(LoadedTable { metadata: metadata.into(), metadata_location })
    }

    /// Refuses states that this layout cannot hold.
    pub(super) fn check_state(&self, metadata: &TableMetadata) -> Result<()> {
        metadata_file::check_compression(metadata)?;
        if let Some(path) = metadata.properties.get(METADATA_PATH) {
            return Err(Error::unsupported(format!(
                "{} = {path}: the metadata of table {} stays in {}, where others look for its versions",
                METADATA_PATH,
                self.ident,
                self.metadata_dir()
            )));
        }
        if !self.io.same_object(&metadata.location, &self.dir)? {
            return Err(Error::unsupported(format!(
                "table {} says that it is at {} and is at {}: a table of this layout cannot be elsewhere; if it was \
                 copied or moved, map its recorded location to where it is",
                self.ident, metadata.location, self.dir
            )));
        }
        Ok(())
    }
}

fn is_tombstone(bytes: &[u8]) -> bool {
    bytes.len() as u64 <= TOMBSTONE_MAX_BYTES
        && serde_json::from_slice::<serde_json::Value>(bytes).is_ok_and(|v| v.get(TOMBSTONE_KEY).is_some())
}

#[cfg(test)]
mod tests;
