//! Caches of decoded files, bounded by bytes.
//!
//! Files of a table are immutable once written, so an entry never goes stale; it only falls out when newer ones need the
//! room. Invariant: a cache never holds more than its limit in the bytes its callers declare.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use parquet::file::metadata::ParquetMetaData;
use tokio::sync::OnceCell;

use crate::Result;
use crate::spec::{ManifestEntry, ManifestFile};

/// Default limit of the cache of manifest entries, in bytes.
pub const DEFAULT_MANIFEST_CACHE_BYTES: usize = 128 << 20;
/// Default limit of the cache of manifest lists, in bytes.
pub const DEFAULT_MANIFEST_LIST_CACHE_BYTES: usize = 32 << 20;
/// Default limit of the cache of Parquet footers, in bytes.
pub const DEFAULT_FOOTER_CACHE_BYTES: usize = 64 << 20;

/// The caches of one [`FileIo`](super::FileIo), shared by its clones.
#[derive(Debug)]
pub struct IoCache {
    /// Decoded manifests. The key must hold whatever the decoded entries depend on beside the file: its location, and
    /// in v3 the `first_row_id` that its manifest list gives it.
    pub manifests: ByteCache<Vec<ManifestEntry>>,
    /// Decoded manifest lists by location.
    pub manifest_lists: ByteCache<Vec<ManifestFile>>,
    /// Parquet footers by location.
    pub footers: ByteCache<ParquetMetaData>,
}

impl Default for IoCache {
    fn default() -> Self {
        Self {
            manifests: ByteCache::new(DEFAULT_MANIFEST_CACHE_BYTES),
            manifest_lists: ByteCache::new(DEFAULT_MANIFEST_LIST_CACHE_BYTES),
            footers: ByteCache::new(DEFAULT_FOOTER_CACHE_BYTES),
        }
    }
}

/// A least-recently-used cache bounded by the bytes its values take, which loads each key once at a time.
pub struct ByteCache<V> {
    limit: usize,
    state: Mutex<State<V>>,
}

struct State<V> {
    bytes: usize,
    tick: u64,
    entries: HashMap<String, Entry<V>>,
    /// Key by tick of last use, oldest first.
    by_age: BTreeMap<u64, String>,
    loading: HashMap<String, Arc<OnceCell<Arc<V>>>>,
}

struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
    tick: u64,
}

impl<V> fmt::Debug for ByteCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "ByteCache({} entries, {} of {} bytes)", state.entries.len(), state.bytes, self.limit)
    }
}

impl<V> ByteCache<V> {
    /// An empty cache of at most `limit` bytes; 0 keeps nothing.
    pub fn new(limit: usize) -> Self {
        let state =
            State { bytes: 0, tick: 0, entries: HashMap::new(), by_age: BTreeMap::new(), loading: HashMap::new() };
        Self { limit, state: Mutex::new(state) }
    }

    /// The value of `key`, if held.
    pub fn get(&self, key: &str) -> Option<Arc<V>> {
        self.state.lock().touch(key)
    }

    /// Keeps `value`, which takes about `bytes` bytes of memory. A value larger than the whole cache is not kept.
    pub fn put(&self, key: &str, value: Arc<V>, bytes: usize) {
        let mut state = self.state.lock();
        state.remove(key);
        let bytes = bytes.saturating_add(key.len());
        if bytes > self.limit {
            return;
        }
        while state.bytes + bytes > self.limit {
            let Some((_, oldest)) = state.by_age.pop_first() else { break };
            if let Some(entry) = state.entries.remove(&oldest) {
                state.bytes -= entry.bytes;
            }
        }
        state.tick += 1;
        let tick = state.tick;
        state.by_age.insert(tick, key.to_string());
        state.bytes += bytes;
        state.entries.insert(key.to_string(), Entry { value, bytes, tick });
    }

    /// The value of `key`, loaded by `load` (value and its size in bytes) when it is not held. Callers that ask for one key
    /// at the same time share one load; a failed load is not remembered.
    pub async fn get_or_load<F>(&self, key: &str, load: impl FnOnce() -> F) -> Result<Arc<V>>
    where
        F: Future<Output = Result<(V, usize)>>,
    {
        let cell = {
            let mut state = self.state.lock();
            if let Some(value) = state.touch(key) {
                return Ok(value);
            }
            Arc::clone(state.loading.entry(key.to_string()).or_default())
        };
        let loaded = cell
            .get_or_try_init(|| async {
                let (value, bytes) = load().await?;
                let value = Arc::new(value);
                self.put(key, Arc::clone(&value), bytes);
                Ok(value)
            })
            .await
            .cloned();
        let mut state = self.state.lock();
        // A cell without value stays while others wait on it: one of them loads next.
        let done = cell.initialized() || Arc::strong_count(&cell) <= 2;
        if done && state.loading.get(key).is_some_and(|c| Arc::ptr_eq(c, &cell)) {
            state.loading.remove(key);
        }
        loaded
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Drops every entry.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        state.bytes = 0;
        state.entries.clear();
        state.by_age.clear();
    }
}

impl<V> State<V> {
    fn touch(&mut self, key: &str) -> Option<Arc<V>> {
        self.tick += 1;
        let tick = self.tick;
        let entry = self.entries.get_mut(key)?;
        let key = self.by_age.remove(&entry.tick)?;
        entry.tick = tick;
        self.by_age.insert(tick, key);
        Some(Arc::clone(&entry.value))
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
            self.by_age.remove(&entry.tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Error;

    #[test]
    fn drops_the_least_recently_used_within_its_bytes() {
        let cache = ByteCache::new(30);
        cache.put("a", Arc::new(1), 9);
        cache.put("b", Arc::new(2), 9);
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        cache.put("c", Arc::new(3), 9);
        cache.put("d", Arc::new(4), 9);
        assert_eq!(cache.get("b"), None);
        assert_eq!(cache.get("a").as_deref(), Some(&1));
        assert_eq!(cache.bytes(), 30);
        cache.put("huge", Arc::new(5), 31);
        assert_eq!(cache.get("huge"), None);
        cache.put("a", Arc::new(6), 1);
        assert_eq!((cache.get("a").as_deref(), cache.bytes()), (Some(&6), 22));
        cache.clear();
        assert_eq!((cache.get("a"), cache.bytes()), (None, 0));
    }

    #[tokio::test]
    async fn loads_once_for_callers_at_the_same_time_and_forgets_failures() {
        let cache = ByteCache::new(1000);
        let loads = AtomicUsize::new(0);
        let load = || async {
            loads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok((7, 1))
        };
        let got = futures::future::join_all((0..8).map(|_| cache.get_or_load("k", load))).await;
        assert!(got.into_iter().all(|v| *v.unwrap() == 7));
        assert_eq!(loads.load(Ordering::SeqCst), 1);
        let failed = cache.get_or_load("bad", || async { Err(Error::unavailable("down")) }).await;
        assert!(failed.is_err());
        assert_eq!(*cache.get_or_load("bad", || async { Ok((8, 1)) }).await.unwrap(), 8);
        assert!(cache.state.lock().loading.is_empty());
    }
}
