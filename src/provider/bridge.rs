//! Calls of the asynchronous catalog from DataFusion's synchronous listing methods.

use std::future::Future;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use crate::{Error, Result};

/// Runs `future` to its end on behalf of a synchronous caller, on whatever thread that is.
///
/// On a multi-threaded runtime the other tasks move to other threads meanwhile. On a current-thread runtime, and outside
/// of any, the future runs on a thread and a runtime of its own, because the caller's cannot make progress while it waits.
pub(crate) fn block_on<F>(future: F) -> Result<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    if let Ok(handle) = Handle::try_current()
        && handle.runtime_flavor() == RuntimeFlavor::MultiThread
    {
        return Ok(tokio::task::block_in_place(|| handle.block_on(future)));
    }
    let run = || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::unavailable("cannot start a runtime to ask the catalog").with_source(e))?;
        Ok(runtime.block_on(future))
    };
    let died = || Error::internal("the thread that asks the catalog died");
    std::thread::scope(|scope| scope.spawn(run).join().map_err(|_| died())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer() -> i32 {
        tokio::task::yield_now().await;
        42
    }

    #[test]
    fn answers_outside_of_a_runtime() {
        assert_eq!(block_on(answer()).unwrap(), 42);
    }

    #[tokio::test]
    async fn answers_inside_a_current_thread_runtime() {
        assert_eq!(block_on(answer()).unwrap(), 42);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn answers_inside_a_multi_threaded_runtime() {
        assert_eq!(block_on(answer()).unwrap(), 42);
    }
}
