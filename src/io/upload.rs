//! A file written in pieces, visible only once it is finished.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};

use super::metrics::IoMetrics;
use super::{ResolvedLocation, store_error, sync};
use crate::{Error, Result};

/// Bytes gathered before an upload goes in parts. Every part but the last has this size.
const PART_BYTES: usize = 8 << 20;
/// Parts in flight at a time.
const PARTS_IN_FLIGHT: usize = 4;

/// An object being written. Small ones go up as one request, large ones in parts, several at a time.
///
/// Nothing is visible at the location before [`finish`](Self::finish). Dropping an unfinished upload, or
/// [`abort`](Self::abort), gives up the parts sent so far. When `finish` fails the object may exist all the same: whoever
/// cleans up must delete the location.
#[derive(Debug)]
pub struct Upload {
    to: ResolvedLocation,
    location: String,
    /// Whether a local file is forced to the disk.
    sync: bool,
    metrics: Arc<IoMetrics>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    total: u64,
    parts: Option<WriteMultipart>,
}

impl Upload {
    pub(super) fn new(to: ResolvedLocation, location: String, sync: bool, metrics: Arc<IoMetrics>) -> Self {
        Self { to, location, sync, metrics, pending: Vec::new(), pending_bytes: 0, total: 0, parts: None }
    }

    /// The location written to.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Bytes taken so far.
    pub fn bytes_written(&self) -> u64 {
        self.total
    }

    /// Appends `bytes`. Waits while too many parts are in flight.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.total += bytes.len() as u64;
        if let Some(parts) = &mut self.parts {
            let sent = async {
                parts.wait_for_capacity(PARTS_IN_FLIGHT).await?;
                parts.put(bytes);
                Ok(())
            };
            return sent.await.map_err(|e| self.failed(e));
        }
        self.pending_bytes += bytes.len();
        self.pending.push(bytes);
        if self.pending_bytes < PART_BYTES {
            return Ok(());
        }
        let upload = self.to.store.put_multipart(&self.to.path).await.map_err(|e| self.failed(e))?;
        let mut parts = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        self.pending_bytes = 0;
        for bytes in std::mem::take(&mut self.pending) {
            parts.put(bytes);
        }
        self.parts = Some(parts);
        Ok(())
    }

    /// Makes the object visible; its size in bytes.
    pub async fn finish(mut self) -> Result<u64> {
        self.metrics.write(self.total);
        match self.parts.take() {
            Some(parts) => parts.finish().await.map_err(|e| self.failed(e))?,
            None => {
                let payload = PutPayload::from_iter(std::mem::take(&mut self.pending));
                self.to.store.put(&self.to.path, payload).await.map_err(|e| self.failed(e))?
            }
        };
        if self.sync {
            sync::settle(&self.to, &self.location).await?;
        }
        Ok(self.total)
    }

    /// Gives the upload up.
    pub async fn abort(mut self) -> Result<()> {
        match self.parts.take() {
            Some(parts) => parts.abort().await.map_err(|e| self.failed(e)),
            None => Ok(()),
        }
    }

    fn failed(&self, error: object_store::Error) -> Error {
        store_error::convert("write", &self.location, error, self.to.local)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Local stores remove their staged file themselves; a remote store keeps (and bills) parts until told.
        if let (Some(parts), Ok(runtime)) = (self.parts.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = parts.abort().await;
            });
        }
    }
}
