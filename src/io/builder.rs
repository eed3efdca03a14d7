//! Putting a [`FileIo`] together.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use super::location::{FILE_SCHEME, LocationMap};
use super::metrics::IoMetrics;
use super::{FileIo, Inner, IoCache, StoreEntry};
use crate::Result;

/// Builds a [`FileIo`]. The local file system is registered unless another store takes its place.
#[derive(Debug)]
pub struct FileIoBuilder {
    stores: BTreeMap<String, StoreEntry>,
    map: LocationMap,
    cache: IoCache,
    sync: bool,
}

impl Default for FileIoBuilder {
    fn default() -> Self {
        let builder = Self {
            stores: BTreeMap::new(),
            map: LocationMap::default(),
            cache: IoCache::default(),
            sync: !cfg!(any(test, feature = "testing")),
        };
        builder.with_local_store(Arc::new(LocalFileSystem::new()))
    }
}

impl FileIoBuilder {
    /// Sends locations of `scheme` to `store`. `scheme` alone (`memory`) takes every location of the scheme, its authority
    /// being the first path segment; with an authority (`s3://bucket`) it takes that bucket's only.
    #[must_use]
    pub fn with_store(mut self, scheme: &str, store: Arc<dyn ObjectStore>) -> Self {
        let authority_in_path = !scheme.contains("://");
        let key = scheme.trim_end_matches('/').to_ascii_lowercase();
        let key = if authority_in_path { key.trim_end_matches(':').to_string() } else { key };
        self.stores.insert(key, StoreEntry { store, local: false, authority_in_path });
        self
    }

    /// Sends local files to `store`, which must keep the properties of the local file system: a failed write is known to
    /// have failed. For wrappers that count or trace.
    #[must_use]
    pub fn with_local_store(mut self, store: Arc<dyn ObjectStore>) -> Self {
        let entry = StoreEntry { store, local: true, authority_in_path: false };
        self.stores.insert(FILE_SCHEME.to_string(), entry);
        self
    }

    /// Reads, writes, lists and deletes what is recorded below `from` at the same place below `to`. Prefixes match whole path
    /// segments and the longest one wins; each local prefix may be written `file:/x`, `file:///x` or `/x`.
    pub fn with_location_map(mut self, from: &str, to: &str) -> Result<Self> {
        self.map.add(from, to)?;
        Ok(self)
    }

    /// Whether a local file counts as written only once it is on the disk, so that what was committed outlives a power failure.
    /// True by default, but false with the feature `testing`, whose many small commits would take minutes longer.
    #[must_use]
    pub fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Replaces the caches.
    #[must_use]
    pub fn with_cache(mut self, cache: IoCache) -> Self {
        self.cache = cache;
        self
    }

    /// The finished `FileIo`.
    pub fn build(self) -> FileIo {
        let metrics = Arc::new(IoMetrics::default());
        FileIo(Arc::new(Inner { stores: self.stores, sync: self.sync, map: self.map, cache: self.cache, metrics }))
    }
}
