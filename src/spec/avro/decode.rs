//! From an Avro container to Arrow columns.
//!
//! Blocks are unpacked and checked row by row, then handed to arrow-avro under a physical schema (see
//! [`super::avro_type`]). Invariant: whatever the bytes, the result is batches or an error, never a panic.

use std::io::{BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::StructArray;
use arrow_avro::reader::ReaderBuilder;
use arrow_avro::schema::AvroSchema;

use super::avro_type::{AvroField, AvroType};
use super::container::Container;
use super::varint::write_long;
use crate::{Error, Result};

/// Decodes every row of the container and passes the batches on. Fields that `keep` refuses are not decoded.
///
/// A batch has at most `batch_rows` rows; its columns are called by [`physical_name`].
pub(crate) fn decode_batches(
    container: Container<'_>,
    row_type: &Arc<AvroType>,
    batch_rows: usize,
    keep: &dyn Fn(&AvroField) -> bool,
    mut each: impl FnMut(StructArray) -> Result<()>,
) -> Result<()> {
    if row_type.min_bytes() == 0 || row_type.fields().is_empty() {
        return Err(Error::data_invalid("Avro schema: rows are not records"));
    }
    let all = row_type.physical_json(&|_| true).to_string();
    let kept = row_type.physical_json(keep).to_string();
    let mut frames = Frames::new(container, row_type.clone(), &all);
    let mut builder = ReaderBuilder::new().with_batch_size(batch_rows);
    if kept != all {
        builder = builder.with_reader_schema(AvroSchema::new(kept));
    }
    // The rows were checked, so arrow-avro should find no fault with them. A panic there must still not reach the
    // caller, who reads a file that anybody may have damaged.
    let panicked = || Error::data_invalid("Avro rows cannot be decoded: the decoder panicked");
    let built = catch_unwind(AssertUnwindSafe(|| builder.build(&mut frames))).map_err(|_| panicked())?;
    let mut reader = match built {
        Ok(reader) => reader,
        Err(e) => return Err(frames.failure(e)),
    };
    loop {
        let next = catch_unwind(AssertUnwindSafe(|| reader.next())).map_err(|_| panicked())?;
        match next {
            None => return Ok(()),
            Some(Ok(batch)) => each(batch.into())?,
            Some(Err(e)) => {
                drop(reader);
                return Err(frames.failure(e));
            }
        }
    }
}

/// The container as arrow-avro reads it: a header of the physical schema, then checked and unpacked blocks.
struct Frames<'a> {
    container: Container<'a>,
    row_type: Arc<AvroType>,
    buffer: Vec<u8>,
    position: usize,
    error: Option<Error>,
}

/// Sync marker of the frames; nobody looks at it.
const FRAME_SYNC: [u8; 16] = [0; 16];

impl<'a> Frames<'a> {
    fn new(container: Container<'a>, row_type: Arc<AvroType>, schema: &str) -> Self {
        let mut buffer = b"Obj\x01".to_vec();
        write_long(&mut buffer, 1);
        for text in ["avro.schema", schema] {
            write_long(&mut buffer, text.len() as i64);
            buffer.extend_from_slice(text.as_bytes());
        }
        write_long(&mut buffer, 0);
        buffer.extend_from_slice(&FRAME_SYNC);
        Self { container, row_type, buffer, position: 0, error: None }
    }

    /// Our own error if reading stopped for one, else arrow-avro's.
    fn failure(self, error: arrow::error::ArrowError) -> Error {
        self.error.unwrap_or_else(|| Error::data_invalid("Avro rows cannot be decoded").with_source(error))
    }

    /// Fills the buffer with the next block; leaves it empty at the end.
    fn advance(&mut self) -> Result<()> {
        self.buffer.clear();
        self.position = 0;
        while let Some(block) = self.container.next_block()? {
            let mut data = &block.data[..];
            if block.rows > (data.len() / self.row_type.min_bytes().max(1)) as u64 {
                return Err(Error::data_invalid(format!("Avro block: {} rows exceed the data", block.rows)));
            }
            for row in 0..block.rows {
                self.row_type
                    .skip(&mut data)
                    .map_err(|e| Error::data_invalid(format!("Avro block, row {row}: {e}")))?;
            }
            if !data.is_empty() {
                return Err(Error::data_invalid(format!("Avro block: {} bytes after the last row", data.len())));
            }
            if block.rows > 0 {
                write_long(&mut self.buffer, block.rows as i64);
                write_long(&mut self.buffer, block.data.len() as i64);
                self.buffer.extend_from_slice(&block.data);
                self.buffer.extend_from_slice(&FRAME_SYNC);
                break;
            }
        }
        Ok(())
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let mut available = self.fill_buf()?;
        let read = available.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Frames<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.position >= self.buffer.len()
            && let Err(e) = self.advance()
        {
            self.error = Some(e);
            return Err(std::io::Error::other("invalid Avro block"));
        }
        Ok(self.buffer.get(self.position..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.position.saturating_add(amount).min(self.buffer.len());
    }
}
