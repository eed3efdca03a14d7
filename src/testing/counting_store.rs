//! A store that counts what is asked of it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use parking_lot::Mutex;

/// Kinds of operations a [`CountingStore`] tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreOp {
    /// A write of a whole object.
    Put,
    /// A write in parts.
    PutMultipart,
    /// A read, whole or of one range.
    Get,
    /// A read of several ranges.
    GetRanges,
    /// A request for an object's size or existence.
    Head,
    /// The deletion of one object.
    Delete,
    /// A listing.
    List,
    /// A copy or rename, counted at its target.
    Copy,
}

/// An `ObjectStore` that passes everything to another one and counts the operations by kind and path.
#[derive(Debug)]
pub struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    counts: Arc<Mutex<BTreeMap<(StoreOp, String), u64>>>,
}

impl CountingStore {
    /// A store that has counted nothing yet.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self { inner, counts: Arc::default() })
    }

    /// Operations of one kind since the last reset.
    pub fn count(&self, op: StoreOp) -> u64 {
        self.counts.lock().iter().filter(|((o, _), _)| *o == op).map(|(_, n)| n).sum()
    }

    /// Operations since the last reset that touched a path which `matches`.
    pub fn count_where(&self, matches: impl Fn(StoreOp, &str) -> bool) -> u64 {
        self.counts.lock().iter().filter(|((op, path), _)| matches(*op, path)).map(|(_, n)| n).sum()
    }

    /// Every (kind, path, count) since the last reset, sorted.
    pub fn counts(&self) -> Vec<(StoreOp, String, u64)> {
        self.counts.lock().iter().map(|((op, path), n)| (*op, path.clone(), *n)).collect()
    }

    /// Forgets the counts.
    pub fn reset(&self) {
        self.counts.lock().clear();
    }

    fn add(&self, op: StoreOp, path: Option<&Path>) {
        let path = path.map(ToString::to_string).unwrap_or_default();
        *self.counts.lock().entry((op, path)).or_default() += 1;
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountingStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.add(StoreOp::Put, Some(path));
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.add(StoreOp::PutMultipart, Some(path));
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.add(if options.head { StoreOp::Head } else { StoreOp::Get }, Some(path));
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.add(StoreOp::GetRanges, Some(path));
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counts = Arc::clone(&self.counts);
        let counted = paths.inspect(move |path| {
            if let Ok(path) = path {
                *counts.lock().entry((StoreOp::Delete, path.to_string())).or_default() += 1;
            }
        });
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.add(StoreOp::List, prefix);
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.add(StoreOp::List, prefix);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.add(StoreOp::List, prefix);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.add(StoreOp::Copy, Some(to));
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.add(StoreOp::Copy, Some(to));
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn counts_by_kind_and_path() {
        let store = CountingStore::new(Arc::new(InMemory::new()));
        let path = Path::from("t/x");
        store.put(&path, "1".into()).await.unwrap();
        store.get(&path).await.unwrap();
        store.get_range(&path, 0..1).await.unwrap();
        store.head(&path).await.unwrap();
        store.delete(&path).await.unwrap();
        assert_eq!((store.count(StoreOp::Get), store.count(StoreOp::Head), store.count(StoreOp::Delete)), (2, 1, 1));
        assert_eq!(store.count_where(|op, p| op == StoreOp::Put && p.starts_with("t/")), 1);
        assert_eq!(store.counts().len(), 4);
        store.reset();
        assert_eq!(store.count(StoreOp::Get), 0);
    }
}
