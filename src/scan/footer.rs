//! Parquet files of a table, read by range.
//!
//! Invariant: the size comes from the manifest, so no request asks for it; one request for the file's tail usually
//! gives the footer and the page indexes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use crate::io::FileIo;
use crate::spec::DataFile;
use crate::{Error, Result};

/// Smallest part of a file's tail to ask for.
const MIN_TAIL: u64 = 64 * 1024;
/// Greatest part of a file's tail to ask for at first; what is missing is asked for once its size is known.
const MAX_TAIL: u64 = 1024 * 1024;

/// A Parquet file of known size, opened through a [`FileIo`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ParquetFile {
    io: FileIo,
    location: Arc<str>,
    size: u64,
}

impl ParquetFile {
    /// The data or delete file `file`, whose size the manifest gives. Opens nothing.
    pub fn new(io: &FileIo, file: &DataFile) -> Self {
        Self { io: io.clone(), location: Arc::clone(&file.file_path), size: file.file_size_in_bytes }
    }

    /// The footer and, where the file has them, the page indexes; from the cache of the [`FileIo`] if it is there.
    ///
    /// # Errors
    /// `DataInvalid`, naming the file, when it is no Parquet file of the size recorded; storage errors.
    pub async fn footer(&self) -> Result<Arc<ParquetMetaData>> {
        let footers = &self.io.cache().footers;
        if let Some(footer) = footers.get(&self.location) {
            return Ok(footer);
        }
        // Two callers may both load it: neither waits for one that nobody polls.
        let footer = self.load().await.map_err(|e| self.error(e))?;
        footers.put(&self.location, Arc::clone(&footer), footer.memory_size());
        Ok(footer)
    }

    /// Turns an error of the Parquet reader into ours, naming the file. An error of storage below it keeps its kind.
    pub fn error(&self, error: ParquetError) -> Error {
        match error {
            ParquetError::External(source) => match source.downcast::<Error>() {
                Ok(error) => *error,
                Err(source) => Error::data_invalid("reading Parquet file")
                    .with_context("file", &*self.location)
                    .with_source(source),
            },
            other => {
                Error::data_invalid("reading Parquet file").with_context("file", &*self.location).with_source(other)
            }
        }
    }

    async fn load(&self) -> Result<Arc<ParquetMetaData>, ParquetError> {
        let tail = (MIN_TAIL + self.size / 512).min(MAX_TAIL).min(self.size);
        let mut reader = ParquetMetaDataReader::new()
            .with_prefetch_hint(usize::try_from(tail).ok())
            .with_page_index_policy(PageIndexPolicy::Optional);
        let mut file = self.clone();
        reader.try_load(&mut file, self.size).await?;
        reader.finish().map(Arc::new)
    }
}

impl AsyncFileReader for ParquetFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let bytes = self.io.read_range(&self.location, range).await;
            bytes.map_err(|e| ParquetError::External(Box::new(e)))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            let bytes = self.io.read_ranges(&self.location, &ranges).await;
            bytes.map_err(|e| ParquetError::External(Box::new(e)))
        }
        .boxed()
    }

    /// Serves the cached footer; the page indexes are loaded with it, whatever `options` ask for.
    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move { self.footer().await.map_err(|e| ParquetError::External(Box::new(e))) }.boxed()
    }
}
