//! One Parquet file, encoded as rows come and streamed to storage row group by row group.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::SchemaDescriptor;

use super::metrics::{NanCounter, record};
use super::parquet_schema::{Leaf, parquet_schema, writer_properties};
use crate::columns::arrow_field;
use crate::io::{FileIo, Upload};
use crate::spec::properties::{MetricsMode, ParquetProperties};
use crate::spec::{DataFile, NestedField, PrimitiveType, Type};
use crate::{Error, Result};

/// Greatest number of rows encoded between two looks at a file's size.
pub(crate) const MAX_CHUNK_ROWS: usize = 8192;
/// Least number of rows between two looks, as in Java.
const MIN_CHUNK_ROWS: usize = 1000;
/// Target size from which the first look comes only after [`MAX_CHUNK_ROWS`].
const LARGE_TARGET_BYTES: u64 = 16 << 20;

/// What all files of one writer share.
#[derive(Debug)]
pub(crate) struct FileLayout {
    fields: Vec<Arc<NestedField>>,
    /// Columns of the batches that are stored.
    stored: Vec<usize>,
    /// Schema of the batches the caller writes.
    pub(crate) batch_schema: SchemaRef,
    file_schema: SchemaRef,
    descriptor: SchemaDescriptor,
    leaves: Vec<Leaf>,
    modes: Vec<MetricsMode>,
    properties: WriterProperties,
}

impl FileLayout {
    /// Files of these columns. `modes` gives each leaf's metrics mode. Columns of type unknown hold nothing but nulls and
    /// are left out of the file, as Java does, unless there is no other column.
    pub(crate) fn new(
        fields: Vec<Arc<NestedField>>,
        parquet: &ParquetProperties,
        modes: impl FnOnce(&[Leaf]) -> Vec<MetricsMode>,
        key_values: Vec<KeyValue>,
    ) -> Result<Self> {
        let unknown = |f: &NestedField| f.field_type == Type::Primitive(PrimitiveType::Unknown);
        let mut stored: Vec<usize> = (0..fields.len()).collect();
        if !fields.iter().all(|f| unknown(f)) {
            stored.retain(|i| fields.get(*i).is_some_and(|f| !unknown(f)));
        }
        let arrow_fields = fields.iter().map(|f| arrow_field(f)).collect::<Result<Vec<_>>>()?;
        let batch_schema: SchemaRef = Arc::new(ArrowSchema::new(arrow_fields));
        let file_schema = batch_schema
            .project(&stored)
            .map_err(|e| Error::internal("cannot choose the columns of a file").with_source(e))?;
        let stored_fields: Vec<_> = stored.iter().filter_map(|i| fields.get(*i).cloned()).collect();
        let (descriptor, leaves) = parquet_schema(&stored_fields)?;
        let modes = modes(&leaves);
        let properties = writer_properties(parquet, &leaves, &modes, key_values)?;
        Ok(Self {
            fields: stored_fields,
            stored,
            batch_schema,
            file_schema: Arc::new(file_schema),
            descriptor,
            leaves,
            modes,
            properties,
        })
    }
}

/// Encoded bytes on their way from the encoder to the upload.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock()).into()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file being written. Dropping it gives the upload up.
pub(crate) struct ParquetFileWriter {
    layout: Arc<FileLayout>,
    location: String,
    encoder: ArrowWriter<Sink>,
    sink: Sink,
    upload: Upload,
    nans: NanCounter,
    rows: u64,
}

impl ParquetFileWriter {
    /// Starts the file at `location`.
    pub(crate) async fn create(io: &FileIo, location: String, layout: &Arc<FileLayout>) -> Result<Self> {
        let sink = Sink::default();
        let options = ArrowWriterOptions::new()
            .with_properties(layout.properties.clone())
            .with_parquet_schema(layout.descriptor.clone())
            .with_skip_arrow_metadata(true);
        let encoder = ArrowWriter::try_new_with_options(sink.clone(), Arc::clone(&layout.file_schema), options)
            .map_err(|e| encode_error(e, &location))?;
        let upload = io.upload(&location).await?;
        let nans = NanCounter::new(layout.fields.iter().map(|f| (f.id, &f.field_type)));
        Ok(Self { layout: Arc::clone(layout), location, encoder, sink, upload, nans, rows: 0 })
    }

    /// Where it goes.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// Bytes held in memory for the row group being made.
    pub(crate) fn memory(&self) -> usize {
        self.encoder.memory_size()
    }

    /// Rows that may be written before the size should be looked at again, if the file is to end near `target` bytes.
    pub(crate) fn rows_until_check(&self, target: u64) -> usize {
        let most =
            usize::try_from(target.saturating_sub(self.size_estimate()) / self.row_estimate()).unwrap_or(usize::MAX);
        match self.rows {
            0 if target < LARGE_TARGET_BYTES => MIN_CHUNK_ROWS,
            0 => MAX_CHUNK_ROWS,
            _ => most.clamp(MIN_CHUNK_ROWS, MAX_CHUNK_ROWS),
        }
    }

    fn row_estimate(&self) -> u64 {
        self.size_estimate().checked_div(self.rows).unwrap_or(0).max(1)
    }

    /// Bytes the file has, with the row group being made as large as it would be now.
    pub(crate) fn size_estimate(&self) -> u64 {
        (self.encoder.bytes_written() + self.encoder.in_progress_size()) as u64
    }

    /// Appends rows of the layout's batch schema.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let stored;
        let batch = if self.layout.stored.len() == batch.num_columns() {
            batch
        } else {
            stored = batch
                .project(&self.layout.stored)
                .map_err(|e| Error::internal("a batch lacks columns of its file").with_source(e))?;
            &stored
        };
        self.nans.update(batch.columns());
        self.encoder.write(batch).map_err(|e| encode_error(e, &self.location))?;
        self.rows += batch.num_rows() as u64;
        self.drain().await
    }

    /// Ends the row group, so that its memory is given back.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.encoder.flush().map_err(|e| encode_error(e, &self.location))?;
        self.drain().await
    }

    async fn drain(&mut self) -> Result<()> {
        if self.sink.is_empty() {
            return Ok(());
        }
        self.upload.write(self.sink.take()).await
    }

    /// Ends the file and writes what is known of it into `file`: size, rows, metrics, split offsets.
    pub(crate) async fn finish(self, file: &mut DataFile) -> Result<()> {
        let Self { layout, location, encoder, sink, mut upload, nans, .. } = self;
        let footer = encoder.close().map_err(|e| encode_error(e, &location))?;
        upload.write(sink.take()).await?;
        file.file_size_in_bytes = upload.finish().await?;
        record(file, &footer, &layout.leaves, &layout.modes, &nans);
        Ok(())
    }
}

fn encode_error(e: ParquetError, location: &str) -> Error {
    Error::internal("cannot encode rows as Parquet").with_context("path", location.to_owned()).with_source(e)
}
