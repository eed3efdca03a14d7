//! Parquet readers over [`FileIo`](crate::io::FileIo).
//!
//! Invariant: a file whose size the manifest knows is never asked for it, and a footer is fetched once.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::file::ScanFile;
use crate::Error;
use crate::io::FileIo;

/// Bytes read from the end of a file at first, when its footer's size is unknown.
const FOOTER_PREFETCH: usize = 64 * 1024;

/// Opens files by the location of their task.
#[derive(Debug)]
pub(crate) struct FileIoReaderFactory {
    pub(crate) io: FileIo,
}

impl ParquetFileReaderFactory for FileIoReaderFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let Some(scan_file) = file.extension::<ScanFile>() else {
            return internal_err!("file {} of the scan has no task", file.path());
        };
        Ok(Box::new(FileIoReader {
            io: self.io.clone(),
            location: Arc::clone(&scan_file.task.data_file.file_path),
            size: scan_file.task.data_file.file_size_in_bytes,
            prefetch: metadata_size_hint.unwrap_or(FOOTER_PREFETCH),
            metrics: ParquetFileMetrics::new(partition_index, file.path().as_ref(), metrics),
        }))
    }
}

#[derive(Clone)]
struct FileIoReader {
    io: FileIo,
    location: Arc<str>,
    size: u64,
    prefetch: usize,
    metrics: ParquetFileMetrics,
}

impl FileIoReader {
    fn error(&self, e: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
        ParquetError::External(Box::new(
            Error::unavailable("cannot read data file").with_context("file", &*self.location).with_source(e),
        ))
    }
}

/// Our own error as it was; any other is the file's fault.
fn footer_error(location: &str, e: ParquetError) -> Error {
    match e {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => {
                Error::unavailable("cannot read the footer").with_context("file", location).with_source(other)
            }
        },
        e => Error::data_invalid("the Parquet footer cannot be read").with_context("file", location).with_source(e),
    }
}

impl AsyncFileReader for FileIoReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            self.metrics.bytes_scanned.add(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
            self.io.read_range(&self.location, range).await.map_err(|e| ParquetError::External(Box::new(e)))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let total: u64 = ranges.iter().map(|r| r.end - r.start).sum();
            self.metrics.bytes_scanned.add(usize::try_from(total).unwrap_or(usize::MAX));
            let (store, path) = self.io.resolve(&self.location).map_err(|e| ParquetError::External(Box::new(e)))?;
            // The store joins ranges that lie close together into one request.
            store.get_ranges(&path, &ranges).await.map_err(|e| self.error(e))
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let policy = options.map_or(PageIndexPolicy::Skip, ArrowReaderOptions::column_index_policy);
            let (io, mut fetch) = (self.io.clone(), self.clone());
            let load = || async move {
                let (size, prefetch, location) = (fetch.size, fetch.prefetch, Arc::clone(&fetch.location));
                let reader =
                    ParquetMetaDataReader::new().with_page_index_policy(policy).with_prefetch_hint(Some(prefetch));
                let loaded = reader.load_and_finish(&mut fetch, size).await;
                let metadata = loaded.map_err(|e| footer_error(&location, e))?;
                let bytes = metadata.memory_size();
                Ok((metadata, bytes))
            };
            let footer = io.cache().footers.get_or_load(&self.location, load).await;
            footer.map_err(|e| ParquetError::External(Box::new(e)))
        }
        .boxed()
    }
}
