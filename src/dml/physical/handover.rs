//! Finished files on their way from the writers to the commit.
//!
//! Writer and commit node of one plan share a [`Handover`]. Invariant: every file offered is either taken by the commit or
//! deleted, whoever fails or is dropped first; messages in flight between them do not matter.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::io::FileIo;
use crate::spec::DataFile;

/// The files of one statement that writers have finished and no commit has taken yet.
#[derive(Debug, Clone)]
pub(super) struct Handover(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    io: FileIo,
    /// `None` once the commit was given up.
    pending: Mutex<Option<Vec<String>>>,
}

impl Handover {
    pub(super) fn new(io: FileIo) -> Self {
        Self(Arc::new(Inner { io, pending: Mutex::new(Some(Vec::new())) }))
    }

    /// Offers files a writer has finished. When the statement is over already they are deleted.
    pub(super) async fn offer(&self, files: &[DataFile]) -> Result<()> {
        let paths = files.iter().map(|file| file.file_path.to_string());
        let refused: Vec<String> = match &mut *self.0.pending.lock() {
            Some(pending) => {
                pending.extend(paths);
                return Ok(());
            }
            None => paths.collect(),
        };
        self.0.io.delete_all(refused).await;
        Err(Error::internal("a writer ended after its statement"))
    }

    /// What the commit node holds while it waits for the writers.
    pub(super) fn receive(&self) -> Receiver {
        Receiver { handover: self.clone() }
    }
}

impl Inner {
    fn delete(&self, paths: Vec<String>) {
        if let (false, Ok(runtime)) = (paths.is_empty(), tokio::runtime::Handle::try_current()) {
            let io = self.io.clone();
            runtime.spawn(async move { io.delete_all(paths).await });
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let pending = self.pending.get_mut().take().unwrap_or_default();
        self.delete(pending);
    }
}

/// The receiving end: dropped before it took the files, it deletes them and refuses later ones.
#[derive(Debug)]
pub(super) struct Receiver {
    handover: Handover,
}

impl Receiver {
    /// Takes over the files offered; they are the caller's from here on. All writers must have ended.
    pub(super) fn take(self) {
        self.handover.0.pending.lock().take();
    }

    /// Deletes the files offered.
    pub(super) async fn abort(self) {
        let pending = self.handover.0.pending.lock().take().unwrap_or_default();
        self.handover.0.io.delete_all(pending).await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let pending = self.handover.0.pending.lock().take().unwrap_or_default();
        self.handover.0.delete(pending);
    }
}
