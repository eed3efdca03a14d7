//! A store that fails on demand.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use parking_lot::Mutex;

/// At which side of the wire an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request is never sent: the store does not change.
    BeforeSending,
    /// The request is carried out and the answer is lost.
    AfterApplying,
}

#[derive(Debug, Clone, Copy, Default)]
enum Plan {
    #[default]
    Never,
    Nth(u64, Fault),
    From(u64, Fault),
    Random {
        seed: u64,
        state: u64,
        per_mille: u64,
    },
}

/// An `ObjectStore` that passes everything to another one, counts the operations, and fails those it is told to.
///
/// Operations are counted from 0 in the order they start: each put, part, completion, get, head, ranges, list, copy and
/// rename is one, and so is each single deletion. A failed operation answers with a generic error that names the
/// operation, its number and, for random faults, the seed.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn ObjectStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    plan: Plan,
    operations: u64,
    fired: Vec<String>,
    /// What to do before an operation of that number.
    interruption: Option<(u64, Interruption)>,
}

type Interruption = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} after {} operations", self.plan, self.operations)
    }
}

impl FaultStore {
    /// A store that fails nothing yet.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self { inner, state: Arc::default() })
    }

    /// Fails operation number `n`, counted from now, and no other.
    pub fn fail_nth(&self, n: u64, fault: Fault) {
        self.arm(Plan::Nth(n, fault));
    }

    /// Fails operation number `n`, counted from now, by `fault`, and sends no later one: what a process leaves behind that
    /// dies there.
    pub fn fail_from(&self, n: u64, fault: Fault) {
        self.arm(Plan::From(n, fault));
    }

    /// Fails `per_mille` of a thousand operations, at either side, as `seed` decides.
    pub fn fail_randomly(&self, seed: u64, per_mille: u64) {
        self.arm(Plan::Random { seed, state: seed, per_mille });
    }

    /// Fails nothing, but lets `interruption` run to its end before operation number `n`, counted from now, is sent: what another
    /// writer does in just that moment. Its own operations go on being counted.
    pub fn interrupt<F>(&self, n: u64, interruption: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let interruption: Interruption = Box::new(|| Box::pin(interruption()));
        *self.state.lock() = State { interruption: Some((n, interruption)), ..State::default() };
    }

    /// Whether the interruption of the last [`interrupt`](Self::interrupt) has begun.
    pub fn interrupted(&self) -> bool {
        self.state.lock().interruption.is_none()
    }

    /// Fails nothing any more, and counts anew.
    pub fn disarm(&self) {
        self.arm(Plan::Never);
    }

    /// Operations since the last call that armed or disarmed.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// The faults since the last call that armed or disarmed, as their errors tell them.
    pub fn fired(&self) -> Vec<String> {
        self.state.lock().fired.clone()
    }

    fn arm(&self, plan: Plan) {
        *self.state.lock() = State { plan, ..State::default() };
    }
}

impl State {
    /// Counts one operation; its fault, if it is to fail.
    fn next(&mut self, what: impl FnOnce() -> String) -> Option<(Fault, object_store::Error)> {
        let n = self.operations;
        self.operations += 1;
        let (fault, seed) = match &mut self.plan {
            Plan::Nth(at, fault) if *at == n => (*fault, None),
            Plan::From(at, fault) if *at == n => (*fault, None),
            Plan::From(at, _) if *at < n => (Fault::BeforeSending, None),
            Plan::Random { seed, state, per_mille } => {
                let draw = split_mix(state);
                if draw % 1000 >= *per_mille {
                    return None;
                }
                let fault = if draw & (1 << 40) == 0 { Fault::BeforeSending } else { Fault::AfterApplying };
                (fault, Some(*seed))
            }
            _ => return None,
        };
        let seed = seed.map(|s| format!(", seed {s}")).unwrap_or_default();
        let message = format!("injected fault {fault:?} at operation {n}: {}{seed}", what());
        self.fired.push(message.clone());
        Some((fault, object_store::Error::Generic { store: "FaultStore", source: message.into() }))
    }
}

/// SplitMix64, so that a seed gives the same faults everywhere.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

async fn run<T>(
    state: &Mutex<State>,
    what: &str,
    path: Option<&Path>,
    operation: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (fault, interruption) = {
        let mut state = state.lock();
        let now = state.operations;
        let interruption = state.interruption.take_if(|(n, _)| *n == now);
        (state.next(|| format!("{what} {}", path.map(Path::as_ref).unwrap_or_default())), interruption)
    };
    if let Some((_, interruption)) = interruption {
        interruption().await;
    }
    match fault {
        None => operation.await,
        Some((Fault::BeforeSending, e)) => Err(e),
        Some((Fault::AfterApplying, e)) => {
            operation.await?;
            Err(e)
        }
    }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        run(&self.state, "put", Some(path), self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(path, options);
        let inner = run(&self.state, "start upload", Some(path), inner).await?;
        Ok(Box::new(FaultUpload { inner, path: path.clone(), state: Arc::clone(&self.state) }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let what = if options.head { "head" } else { "get" };
        run(&self.state, what, Some(path), self.inner.get_opts(path, options)).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        run(&self.state, "get ranges of", Some(path), self.inner.get_ranges(path, ranges)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, state) = (Arc::clone(&self.inner), Arc::clone(&self.state));
        let delete = move |path: Result<Path>| {
            let (inner, state) = (Arc::clone(&inner), Arc::clone(&state));
            async move {
                let path = path?;
                let mut one = inner.delete_stream(stream::iter([Ok(path.clone())]).boxed());
                run(&state, "delete", Some(&path), async { one.next().await.unwrap_or(Ok(path.clone())) }).await
            }
        };
        paths.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let owned = prefix.cloned();
        self.list_or_fail(prefix, move |store| store.list(owned.as_ref()))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let (owned, offset) = (prefix.cloned(), offset.clone());
        self.list_or_fail(prefix, move |store| store.list_with_offset(owned.as_ref(), &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        run(&self.state, "list", prefix, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        run(&self.state, "copy to", Some(to), self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        run(&self.state, "rename to", Some(to), self.inner.rename_opts(from, to, options)).await
    }
}

impl FaultStore {
    fn list_or_fail(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, state, prefix) = (Arc::clone(&self.inner), Arc::clone(&self.state), prefix.cloned());
        let listing = async move {
            match run(&state, "list", prefix.as_ref(), async { Ok(list(&inner)) }).await {
                Ok(found) => found,
                Err(e) => stream::iter([Err(e)]).boxed(),
            }
        };
        stream::once(listing).flatten().boxed()
    }
}

#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    path: Path,
    state: Arc<Mutex<State>>,
}

#[async_trait]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, state, path) = (self.inner.put_part(data), Arc::clone(&self.state), self.path.clone());
        Box::pin(async move { run(&state, "put part of", Some(&path), part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        run(&self.state, "complete upload of", Some(&self.path), self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        run(&self.state, "abort upload of", Some(&self.path), self.inner.abort()).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn fails_the_nth_operation_at_the_side_asked_for() {
        let store = FaultStore::new(Arc::new(InMemory::new()));
        let path = Path::from("x");
        store.fail_nth(1, Fault::AfterApplying);
        assert!(store.head(&path).await.is_err());
        let e = store.put(&path, "1".into()).await.unwrap_err().to_string();
        assert!(e.contains("AfterApplying at operation 1: put x"), "{e}");
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "1");
        store.fail_nth(0, Fault::BeforeSending);
        assert!(store.delete(&path).await.is_err());
        assert!(store.head(&path).await.is_ok());
        assert_eq!((store.operations(), store.fired().len()), (2, 1));
        store.fail_from(1, Fault::AfterApplying);
        store.head(&path).await.unwrap();
        assert!(store.delete(&path).await.is_err());
        assert!(store.head(&path).await.unwrap_err().to_string().contains("injected"));
        store.disarm();
        assert!(matches!(store.head(&path).await, Err(object_store::Error::NotFound { .. })));
    }

    #[tokio::test]
    async fn a_seed_gives_the_same_faults_again() {
        let run = |seed| async move {
            let store = FaultStore::new(Arc::new(InMemory::new()));
            store.fail_randomly(seed, 300);
            for i in 0..100 {
                let _ = store.put(&Path::from(format!("{i}")), "1".into()).await;
            }
            store.fired()
        };
        let first = run(7).await;
        assert!(first.len() > 10 && first.len() < 60, "{}", first.len());
        assert!(first[0].contains("seed 7"));
        assert_eq!(first, run(7).await);
        assert_ne!(first, run(8).await);
    }
}
