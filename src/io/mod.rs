//! Reading, writing, listing and deleting files by their recorded location, over `object_store`.
//!
//! Implements the spec sections "File System Operations" (write once, in place reads, deletes) and C9 of the format's known
//! faults: locations are opaque, `file:/x`, `file:///x` and a bare path are one object, and nothing is percent-decoded.
//! Invariants: an object is visible whole or not at all; every operation goes through the location map; no error
//! message carries a credential.

mod builder;
mod cache;
mod directories;
mod location;
mod metrics;
mod store_error;
mod sync;
mod upload;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use crate::{Error, ErrorKind, Result};

pub use builder::FileIoBuilder;
pub use cache::{
    ByteCache, DEFAULT_FOOTER_CACHE_BYTES, DEFAULT_MANIFEST_CACHE_BYTES, DEFAULT_MANIFEST_LIST_CACHE_BYTES, IoCache,
};
pub use location::{absolute, join};
pub use metrics::{IoCounts, IoMetrics};
pub use upload::Upload;

use location::{FILE_SCHEME, LocationMap};
pub(crate) use store_error::AMBIGUOUS;

/// Deletes in flight at a time where the store has no batched request.
const DELETES_IN_FLIGHT: usize = 16;

/// A store and the part of a location that picks it.
#[derive(Debug, Clone)]
struct StoreEntry {
    store: Arc<dyn ObjectStore>,
    /// Whether it is the machine's own file system: folders exist by themselves, and a failed write is known to have failed.
    local: bool,
    /// Whether the authority of a location is the first segment of the path.
    authority_in_path: bool,
}

/// Access to files by location. Cheap to clone; clones share caches and counters.
#[derive(Clone)]
pub struct FileIo(Arc<Inner>);

struct Inner {
    stores: BTreeMap<String, StoreEntry>,
    /// Whether local files are forced to the disk.
    sync: bool,
    map: LocationMap,
    cache: IoCache,
    metrics: Arc<IoMetrics>,
}

impl fmt::Debug for FileIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileIo").field("schemes", &self.0.stores.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// A file found by [`FileIo::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its location below the folder listed, in the spelling the folder was given in.
    pub location: String,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch of its last change.
    pub modified_ms: i64,
}

/// Where a location leads.
#[derive(Debug, Clone)]
pub struct ResolvedLocation {
    /// The store that holds the object.
    pub store: Arc<dyn ObjectStore>,
    /// The object's path in it.
    pub path: Path,
    /// What names the store among others, without secrets: `file://`, `s3://bucket`.
    pub store_url: String,
    local: bool,
}

impl ResolvedLocation {
    /// Whether the store is the machine's own file system.
    pub fn is_local(&self) -> bool {
        self.local
    }
}

impl FileIo {
    /// Starts a `FileIo` that knows the local file system.
    pub fn builder() -> FileIoBuilder {
        FileIoBuilder::default()
    }

    /// A `FileIo` over local files only, without location maps.
    pub fn local() -> Self {
        Self::builder().build()
    }

    /// The store and path of `location`, after mapping. `Unsupported` when no store is registered for its scheme.
    pub fn resolve(&self, location: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let r = self.resolve_location(location)?;
        Ok((r.store, r.path))
    }

    /// As [`resolve`](Self::resolve), with the name of the store.
    pub fn resolve_location(&self, location: &str) -> Result<ResolvedLocation> {
        let given = location::split(location)?;
        // A relative path is what is recorded only by mistake, but what a person types.
        if given.scheme == FILE_SCHEME && !given.path.starts_with('/') {
            location::object_path(location, given.path, true)?;
            let full = absolute(location)?;
            return self.resolve_split(location, &full);
        }
        self.resolve_split(location, location)
    }

    fn resolve_split(&self, given: &str, location: &str) -> Result<ResolvedLocation> {
        let split = location::split(location)?;
        let mapped = self.0.map.apply(&split);
        let split = match &mapped {
            Some(mapped) => location::split(mapped)?,
            None => split,
        };
        let with_authority = format!("{}://{}", split.scheme, split.authority);
        let (store_url, entry) = match self.0.stores.get(&with_authority) {
            Some(entry) => (with_authority, entry),
            None => match self.0.stores.get(&split.scheme) {
                Some(entry) => (format!("{}://", split.scheme), entry),
                None => {
                    return Err(Error::unsupported(format!(
                        "no storage is registered for {}: locations, needed for {}",
                        split.scheme,
                        store_error::redact(given)
                    )));
                }
            },
        };
        let path = if entry.authority_in_path && !split.authority.is_empty() {
            location::object_path(given, &format!("{}{}", split.authority, split.path), entry.local)?
        } else {
            location::object_path(given, split.path, entry.local)?
        };
        Ok(ResolvedLocation { store: Arc::clone(&entry.store), path, store_url, local: entry.local })
    }

    /// Whether two locations name one object.
    pub fn same_object(&self, a: &str, b: &str) -> Result<bool> {
        let (a, b) = (self.resolve_location(a)?, self.resolve_location(b)?);
        Ok(a.store_url == b.store_url && a.path == b.path)
    }

    /// The bytes of a whole file.
    pub async fn read(&self, location: &str) -> Result<Bytes> {
        let r = self.resolve_location(location)?;
        let read = async { r.store.get(&r.path).await?.bytes().await };
        let bytes = read.await.map_err(|e| store_error::convert("read", location, e, r.local))?;
        self.0.metrics.read(bytes.len() as u64);
        Ok(bytes)
    }

    /// The bytes `range` of a file; an error when it is shorter.
    pub async fn read_range(&self, location: &str, range: Range<u64>) -> Result<Bytes> {
        let r = self.resolve_location(location)?;
        let want = range.end.saturating_sub(range.start);
        let got = r.store.get_range(&r.path, range.clone()).await;
        let bytes = match got {
            Ok(bytes) => bytes,
            Err(e) => return Err(unread(&r, location, range.end, e).await),
        };
        self.0.metrics.read(bytes.len() as u64);
        if bytes.len() as u64 != want {
            return Err(Error::data_invalid(format!(
                "{location} ends before byte {}: {} of {want} bytes are there",
                range.end,
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    /// The bytes of several ranges of a file, in their order; ranges close to each other are fetched with one request. An
    /// error when the file is shorter.
    pub async fn read_ranges(&self, location: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let r = self.resolve_location(location)?;
        let got = r.store.get_ranges(&r.path, ranges).await;
        let parts = match got {
            Ok(parts) => parts,
            Err(e) => {
                let end = ranges.iter().map(|range| range.end).max().unwrap_or_default();
                return Err(unread(&r, location, end, e).await);
            }
        };
        self.0.metrics.read(parts.iter().map(|part| part.len() as u64).sum());
        let whole = |(part, range): (&Bytes, &Range<u64>)| part.len() as u64 == range.end.saturating_sub(range.start);
        if parts.len() != ranges.len() || !parts.iter().zip(ranges).all(whole) {
            return Err(Error::data_invalid(format!(
                "{location} ends before the last byte of {} ranges",
                ranges.len()
            )));
        }
        Ok(parts)
    }

    /// Writes a file of a new, unique name. After an error it may exist all the same.
    pub async fn write(&self, location: &str, bytes: Bytes) -> Result<()> {
        let r = self.resolve_location(location)?;
        self.0.metrics.write(bytes.len() as u64);
        let put = r.store.put(&r.path, PutPayload::from_bytes(bytes)).await;
        put.map_err(|e| store_error::convert("write", location, e, r.local))?;
        self.settle(&r, location).await
    }

    /// Writes a file if there is none, in one atomic step: readers see the whole file or none, and of several callers one
    /// succeeds.
    ///
    /// `AlreadyExists` when there is one. An `Unavailable` error with the context `ambiguous` means that the file may have
    /// been written: read it back.
    pub async fn create(&self, location: &str, bytes: Bytes) -> Result<()> {
        let r = self.resolve_location(location)?;
        self.0.metrics.write(bytes.len() as u64);
        let put = r.store.put_opts(&r.path, PutPayload::from_bytes(bytes), PutMode::Create.into()).await;
        put.map(|_| ()).map_err(|e| {
            let ambiguous = store_error::is_ambiguous(&e, r.local);
            let e = match &e {
                // Some stores answer a failed condition as such.
                object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. } => {
                    return Error::already_exists(format!("file {location} exists already"));
                }
                _ => store_error::convert("create", location, e, r.local),
            };
            if ambiguous { e.with_context(store_error::AMBIGUOUS, "the file may have been written") } else { e }
        })?;
        let settled = self.settle(&r, location).await;
        settled.map_err(|e| e.with_context(store_error::AMBIGUOUS, "the file is written, if there is no power failure"))
    }

    /// Starts writing a large file of a new, unique name.
    pub async fn upload(&self, location: &str) -> Result<Upload> {
        let r = self.resolve_location(location)?;
        Ok(Upload::new(r, location.to_string(), self.0.sync, Arc::clone(&self.0.metrics)))
    }

    /// Whether a file exists.
    pub async fn exists(&self, location: &str) -> Result<bool> {
        match self.size(location).await {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A file's size in bytes.
    pub async fn size(&self, location: &str) -> Result<u64> {
        let r = self.resolve_location(location)?;
        self.0.metrics.head();
        let meta = r.store.head(&r.path).await.map_err(|e| store_error::convert("look at", location, e, r.local))?;
        Ok(meta.size)
    }

    /// All files below `dir`, at any depth, in no order. A folder that does not exist has none.
    pub async fn list(&self, dir: &str) -> Result<Vec<ListedFile>> {
        self.list_objects(dir, None).await
    }

    /// The files directly or deeper below `dir` whose path within it is greater than `after`, byte by byte.
    pub async fn list_after(&self, dir: &str, after: &str) -> Result<Vec<ListedFile>> {
        self.list_objects(dir, Some(after)).await
    }

    async fn list_objects(&self, dir: &str, after: Option<&str>) -> Result<Vec<ListedFile>> {
        let r = self.resolve_location(dir)?;
        self.0.metrics.list();
        let found = match after {
            Some(after) => {
                let offset = location::object_path(dir, &format!("{}/{after}", r.path), r.local)?;
                r.store.list_with_offset(Some(&r.path), &offset)
            }
            None => r.store.list(Some(&r.path)),
        };
        let objects = match found.try_collect::<Vec<ObjectMeta>>().await {
            Ok(objects) => objects,
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(e) => return Err(store_error::convert("list", dir, e, r.local)),
        };
        Ok(objects.into_iter().filter_map(|o| listed(dir, &r.path, o)).collect())
    }

    /// The names directly below `dir`: (folders, files), each sorted.
    pub async fn list_names(&self, dir: &str) -> Result<(Vec<String>, Vec<String>)> {
        let r = self.resolve_location(dir)?;
        self.0.metrics.list();
        let found = match r.store.list_with_delimiter(Some(&r.path)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(Default::default()),
            Err(e) => return Err(store_error::convert("list", dir, e, r.local)),
        };
        let name = |p: &Path| p.filename().map(str::to_string);
        let mut folders: Vec<_> = found.common_prefixes.iter().filter_map(name).collect();
        let mut files: Vec<_> = found.objects.iter().filter_map(|o| name(&o.location)).collect();
        folders.sort_unstable();
        files.sort_unstable();
        Ok((folders, files))
    }

    /// Deletes a file. One that does not exist counts as deleted.
    pub async fn delete(&self, location: &str) -> Result<()> {
        let r = self.resolve_location(location)?;
        self.0.metrics.delete(1);
        match r.store.delete(&r.path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(store_error::convert("delete", location, e, r.local)),
        }
    }

    /// Deletes many files, batched where the store can and several at a time; what became of each, in the order given.
    pub async fn delete_all(&self, locations: Vec<String>) -> Vec<(String, Result<()>)> {
        let mut batches: BTreeMap<String, (Arc<dyn ObjectStore>, HashSet<Path>)> = BTreeMap::new();
        let mut resolved = Vec::with_capacity(locations.len());
        for location in &locations {
            let r = self.resolve_location(location);
            if let Ok(r) = &r {
                let batch = batches.entry(r.store_url.clone());
                batch.or_insert_with(|| (Arc::clone(&r.store), HashSet::new())).1.insert(r.path.clone());
            }
            resolved.push(r.map(|r| (r.store_url, r.path)));
        }
        let mut gone = HashSet::new();
        for (url, (store, paths)) in batches {
            self.0.metrics.delete(paths.len() as u64);
            let paths: Vec<_> = paths.into_iter().map(Ok).collect();
            let mut done = store.delete_stream(stream::iter(paths).boxed());
            // The answers need not be in order, and an error does not say whose it is: those are asked for one by one.
            while let Some(answer) = done.next().await {
                if let Ok(path) = answer {
                    gone.insert((url.clone(), path));
                }
            }
        }
        let gone = &gone;
        stream::iter(locations.into_iter().zip(resolved))
            .map(|(location, resolved)| async move {
                let outcome = match resolved {
                    Ok(key) if gone.contains(&key) => Ok(()),
                    Ok(_) => self.delete(&location).await,
                    Err(e) => Err(e),
                };
                (location, outcome)
            })
            .buffered(DELETES_IN_FLIGHT)
            .collect()
            .await
    }

    /// The caches of decoded files.
    pub fn cache(&self) -> &IoCache {
        &self.0.cache
    }

    /// The request counters.
    pub fn metrics(&self) -> &IoMetrics {
        &self.0.metrics
    }
}

/// Why a range of a file could not be read: stores refuse one past the end in ways of their own.
async fn unread(r: &ResolvedLocation, location: &str, end: u64, error: object_store::Error) -> Error {
    let error = store_error::convert("read", location, error, r.local);
    if error.kind() != ErrorKind::Unavailable {
        return error;
    }
    match r.store.head(&r.path).await {
        Ok(meta) if meta.size < end => {
            Error::data_invalid(format!("{location} ends before byte {end}: it has {}", meta.size))
        }
        _ => error,
    }
}

/// The file `object` below `dir` (whose path is `prefix`), in the spelling of `dir`.
fn listed(dir: &str, prefix: &Path, object: ObjectMeta) -> Option<ListedFile> {
    let path = object.location.as_ref();
    let below =
        if prefix.as_ref().is_empty() { path } else { path.strip_prefix(prefix.as_ref())?.strip_prefix('/')? };
    Some(ListedFile {
        location: join(dir, below),
        size: object.size,
        modified_ms: object.last_modified.timestamp_millis(),
    })
}
