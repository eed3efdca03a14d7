//! Counts of the requests a [`FileIo`](super::FileIo) made.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters shared by the clones of one `FileIo`. Requests made on a store taken out by `resolve` are not counted here.
#[derive(Debug, Default)]
pub struct IoMetrics {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
}

/// The counters of [`IoMetrics`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Whole or ranged reads.
    pub reads: u64,
    /// Bytes those returned.
    pub read_bytes: u64,
    /// Objects written, or attempted to be.
    pub writes: u64,
    /// Bytes sent with them.
    pub written_bytes: u64,
    /// Requests for an object's existence or size.
    pub heads: u64,
    /// Listings.
    pub lists: u64,
    /// Objects deleted, or attempted to be.
    pub deletes: u64,
}

impl IoMetrics {
    /// The counts so far.
    pub fn counts(&self) -> IoCounts {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        IoCounts {
            reads: get(&self.reads),
            read_bytes: get(&self.read_bytes),
            writes: get(&self.writes),
            written_bytes: get(&self.written_bytes),
            heads: get(&self.heads),
            lists: get(&self.lists),
            deletes: get(&self.deletes),
        }
    }

    pub(crate) fn read(&self, bytes: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn head(&self) {
        self.heads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn delete(&self, objects: u64) {
        self.deletes.fetch_add(objects, Ordering::Relaxed);
    }
}
