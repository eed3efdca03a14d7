//! Batches of an Avro file as a stream.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::mpsc;

use crate::columns::AvroFile;
use crate::{Error, Result};

/// Batches decoded ahead of whoever reads them.
const AHEAD: usize = 2;

enum Decoded {
    Rows(RecordBatch),
    End(Result<()>),
}

/// The columns at `wanted` (positions in the file's schema, ascending), in file order, decoded on a thread of the
/// runtime's own for such work. `location` is for messages. After an error the stream ends.
pub(crate) fn avro_batches(
    file: AvroFile,
    location: Arc<str>,
    wanted: Vec<usize>,
    batch_rows: usize,
) -> BoxStream<'static, Result<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let begin = move || {
        tokio::task::spawn_blocking(move || {
            let decoded = file.read(&wanted, batch_rows.max(1), |batch| {
                // Nobody listens any more: the rest is not wanted.
                let sent = sender.blocking_send(Decoded::Rows(batch)).is_ok();
                Ok(if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            });
            let end = decoded.map_err(|e| e.with_context("file", &*location));
            let _ = sender.blocking_send(Decoded::End(end));
        });
    };
    let state = (Some(begin), Some(receiver));
    futures::stream::unfold(state, |(begin, receiver)| async move {
        let mut receiver = receiver?;
        if let Some(begin) = begin {
            begin();
        }
        match receiver.recv().await {
            Some(Decoded::Rows(batch)) => Some((Ok(batch), (None, Some(receiver)))),
            Some(Decoded::End(Ok(()))) => None,
            Some(Decoded::End(Err(e))) => Some((Err(e), (None, None))),
            // Without its last word the thread did not come to the end of the file.
            None => Some((Err(Error::internal("decoding an Avro file was interrupted")), (None, None))),
        }
    })
    .boxed()
}
