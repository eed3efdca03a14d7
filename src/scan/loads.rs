//! Values that many callers ask for and that are loaded once.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use super::spawn::spawned;
use crate::{Error, Result};

/// Values loaded once a key. Callers of one key share one load and its failure; a later caller tries again.
///
/// Each load is a task of its own and every caller drives it, so a caller that is no longer polled holds up nobody.
pub(crate) struct Loads<K, V>(Mutex<HashMap<K, Load<V>>>);

type Load<V> = Shared<BoxFuture<'static, Result<V, Arc<Error>>>>;

impl<K: Eq + Hash, V: Clone + Send + Sync + 'static> Loads<K, V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// The value of `key`; `start` begins its load if none is under way or done.
    ///
    /// # Errors
    /// Those of the load.
    pub(crate) async fn get<F>(&self, key: K, start: impl FnOnce() -> F) -> Result<V>
    where
        F: Future<Output = Result<V>> + Send + 'static,
    {
        let load = {
            let mut loads = self.0.lock();
            match loads.get(&key) {
                Some(load) if !matches!(load.peek(), Some(Err(_))) => load.clone(),
                _ => {
                    let load = spawned(start()).map(|result| result.map_err(Arc::new)).boxed().shared();
                    loads.insert(key, load.clone());
                    load
                }
            }
        };
        load.await.map_err(|e| e.duplicate())
    }

    /// Lets go of a value, or of a load that nobody waits for.
    pub(crate) fn forget(&self, key: &K) {
        self.0.lock().remove(key);
    }
}

impl<K, V> fmt::Debug for Loads<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loads({})", self.0.lock().len())
    }
}
