//! Work on tasks of its own, so that it goes on while its caller does something else, and on several cores.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::{Error, Result};

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `work` as a task of the tokio runtime, from the first poll on; dropping the future ends it.
///
/// # Errors
/// Those of `work`; `Internal` outside a runtime, or when `work` panics.
pub(crate) async fn spawned<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let runtime = Handle::try_current().map_err(|e| Error::internal("scans need a tokio runtime").with_source(e))?;
    let mut task = AbortOnDrop(runtime.spawn(work));
    match (&mut task.0).await {
        Ok(result) => result,
        Err(e) => Err(Error::internal("a task of a scan did not finish").with_source(e)),
    }
}
