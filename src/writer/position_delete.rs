//! Position delete files (v2).
//!
//! Implements the spec section "Position Delete Files". Invariants: a file holds deletes of one partition under one spec,
//! the one of the data files it addresses; its rows ascend by path, then position, without duplicates; its description
//! has bounds exactly when it addresses a single data file, and then they are whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use parquet::file::metadata::KeyValue;

use super::created::{CreatedFiles, FileNames};
use super::parquet_file::{FileLayout, MAX_CHUNK_ROWS, ParquetFileWriter};
use crate::scan::{FILE_PATH_ID, POS_ID};
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::properties::{DeleteGranularity, MetricsMode};
use crate::spec::{
    ColumnMap, DataContent, DataFile, FileFormat, FormatVersion, NestedField, PartitionKey, PrimitiveType,
};
use crate::table::Table;
use crate::{Error, Result};

/// Writes position delete files for a v2 table. Memory holds the position sets until [`finish`](Self::finish).
pub struct PositionDeleteWriter {
    table: Table,
    granularity: DeleteGranularity,
    target: u64,
    layout: Arc<FileLayout>,
    rows: SchemaRef,
    names: FileNames,
    created: CreatedFiles,
    /// In the order the partitions were met.
    partitions: Vec<(PartitionKey, BTreeMap<Arc<str>, DeletionVector>)>,
    by_key: HashMap<PartitionKey, usize>,
    finished: Vec<DataFile>,
}

impl PositionDeleteWriter {
    /// A writer for `table`; `partition` and `task` go into file names. `granularity` `None` is the table's
    /// `write.delete.granularity`.
    ///
    /// # Errors
    /// `Unsupported` for a table that is not of format version 2: v1 has no row-level deletes, v3 deletion vectors instead.
    pub fn new(table: &Table, partition: usize, task: u64, granularity: Option<DeleteGranularity>) -> Result<Self> {
        if table.metadata.format_version != FormatVersion::V2 {
            return Err(Error::unsupported("position delete files are written to format version 2 tables only"));
        }
        let properties = table.properties()?;
        properties.check_writable()?;
        properties.check_position_deletes_writable()?;
        let fields = [(FILE_PATH_ID, "file_path", PrimitiveType::String), (POS_ID, "pos", PrimitiveType::Long)]
            .map(|(id, name, primitive)| Arc::new(NestedField::new(id, name, true, primitive)));
        let mut parquet = properties.delete_parquet.clone();
        // Positions hardly repeat: a dictionary of them would only be hashed and then be written besides.
        parquet.dict_encoding_enabled.entry("pos".to_owned()).or_insert(false);
        let layout = FileLayout::new(
            fields.to_vec(),
            &parquet,
            |leaves| vec![MetricsMode::Full; leaves.len()],
            vec![KeyValue::new("delete-type".to_owned(), "position".to_owned())],
        )?;
        Ok(Self {
            granularity: granularity.unwrap_or(properties.delete_granularity),
            target: properties.delete_target_file_size_bytes,
            layout: Arc::new(layout),
            rows: rows_schema(),
            names: FileNames::new(partition, task, table.env.uuid()),
            created: CreatedFiles::new(table.io.clone()),
            partitions: Vec::new(),
            by_key: HashMap::new(),
            finished: Vec::new(),
            table: table.clone(),
        })
    }

    /// Deletes `positions` of the data file at `path`, which lies in `partition`. Positions given twice count once.
    pub fn add(&mut self, path: &Arc<str>, partition: &PartitionKey, positions: &DeletionVector) {
        if positions.is_empty() {
            return;
        }
        let index = *self.by_key.entry(partition.clone()).or_insert_with(|| {
            self.partitions.push((partition.clone(), BTreeMap::new()));
            self.partitions.len() - 1
        });
        if let Some((_, files)) = self.partitions.get_mut(index) {
            files.entry(Arc::clone(path)).or_default().union_with(positions);
        }
    }

    /// Writes the files. They are the caller's from here on. On an error what was written is deleted, best effort.
    pub async fn finish(mut self) -> Result<Vec<DataFile>> {
        match self.write_all().await {
            Ok(()) => {
                self.created.release();
                Ok(self.finished)
            }
            Err(error) => {
                self.created.delete().await;
                Err(error)
            }
        }
    }

    async fn write_all(&mut self) -> Result<()> {
        for (key, files) in std::mem::take(&mut self.partitions) {
            match self.granularity {
                DeleteGranularity::Partition => self.write(&key, files).await?,
                DeleteGranularity::File => {
                    for (path, positions) in files {
                        self.write(&key, BTreeMap::from([(path, positions)])).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes deletes of one partition, as many files as the target size asks for.
    async fn write(&mut self, key: &PartitionKey, files: BTreeMap<Arc<str>, DeletionVector>) -> Result<()> {
        let mut open: Option<Open> = None;
        for (path, positions) in files {
            let mut positions = positions.iter().peekable();
            while positions.peek().is_some() {
                let mut current = match open.take() {
                    Some(open) => open,
                    None => self.start(key).await?,
                };
                let rows = current.writer.rows_until_check(self.target).min(MAX_CHUNK_ROWS);
                let chunk = positions
                    .by_ref()
                    .take(rows)
                    .map(|p| i64::try_from(p).map_err(|_| Error::internal(format!("row position {p} is out of range"))))
                    .collect::<Result<Vec<i64>>>()?;
                current.writer.write(&self.batch(&path, chunk)?).await?;
                if current.last_path.as_ref() != Some(&path) {
                    current.paths += 1;
                    current.last_path = Some(Arc::clone(&path));
                }
                if current.writer.size_estimate() >= self.target {
                    self.close(current).await?;
                } else {
                    open = Some(current);
                }
            }
        }
        match open {
            Some(open) => self.close(open).await,
            None => Ok(()),
        }
    }

    fn batch(&self, path: &Arc<str>, positions: Vec<i64>) -> Result<RecordBatch> {
        let keys = Int32Array::from(vec![0; positions.len()]);
        let paths = DictionaryArray::try_new(keys, Arc::new(StringArray::from_iter_values([path])));
        let columns = paths.map(|paths| vec![Arc::new(paths) as _, Arc::new(Int64Array::from(positions)) as _]);
        columns
            .and_then(|columns| RecordBatch::try_new(Arc::clone(&self.rows), columns))
            .map_err(|e| Error::internal("cannot build position deletes").with_source(e))
    }

    async fn start(&mut self, key: &PartitionKey) -> Result<Open> {
        let metadata = &self.table.metadata;
        let spec = metadata
            .spec_by_id(key.spec_id)
            .ok_or_else(|| Error::data_invalid(format!("the table has no partition spec {}", key.spec_id)))?;
        let path = spec.partition_path(&key.tuple, &spec.partition_type(metadata));
        let location = self.table.new_data_location(&path, &self.names.deletes("parquet"))?;
        let file = DataFile::new(DataContent::PositionDeletes, location.as_str(), FileFormat::Parquet, key.clone());
        let writer = ParquetFileWriter::create(&self.table.io, location, &self.layout).await?;
        Ok(Open { writer, file, paths: 0, last_path: None })
    }

    async fn close(&mut self, open: Open) -> Result<()> {
        let Open { writer, mut file, paths, .. } = open;
        self.created.add(writer.location());
        writer.finish(&mut file).await?;
        file.value_counts = ColumnMap::default();
        file.null_value_counts = ColumnMap::default();
        file.nan_value_counts = ColumnMap::default();
        if paths > 1 {
            file.lower_bounds = ColumnMap::default();
            file.upper_bounds = ColumnMap::default();
        }
        self.finished.push(file);
        Ok(())
    }
}

/// Rows on their way to the file: a path stands there once for all of its rows.
fn rows_schema() -> SchemaRef {
    let path = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(ArrowSchema::new(vec![Field::new("file_path", path, false), Field::new("pos", DataType::Int64, false)]))
}

struct Open {
    writer: ParquetFileWriter,
    file: DataFile,
    /// Data files addressed.
    paths: usize,
    last_path: Option<Arc<str>>,
}
