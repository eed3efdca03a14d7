//! Data files of a table: rows in, files with all their metrics out.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::file::metadata::KeyValue;

use super::cast::cast_to_table;
use super::created::{CreatedFiles, FileNames};
use super::fanout::{PartitionFanout, PartitionIndex};
use super::metrics::leaf_modes;
use super::parquet_file::{FileLayout, ParquetFileWriter};
use crate::spec::{
    DataContent, DataFile, FileFormat, FormatVersion, NestedField, PartitionKey, PartitionSpec, PartitionTuple,
    PrimitiveType, Schema, StructType,
};
use crate::table::Table;
use crate::{Error, Result};

/// Field id of `_row_id` (v3): the identity of a row over rewrites.
pub const ROW_ID_FIELD_ID: i32 = 2_147_483_540;
/// Field id of `_last_updated_sequence_number` (v3): the commit that last changed a row.
pub const LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID: i32 = 2_147_483_539;
/// Name of the column with id [`ROW_ID_FIELD_ID`].
pub const ROW_ID: &str = "_row_id";
/// Name of the column with id [`LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID`].
pub const LAST_UPDATED_SEQUENCE_NUMBER: &str = "_last_updated_sequence_number";

/// How a [`DataFileWriter`] writes. The default suits an INSERT.
#[derive(Debug, Clone)]
pub struct DataWriterOptions {
    /// Number of the input partition, for file names.
    pub partition: usize,
    /// Number of the task, for file names.
    pub task: u64,
    /// Whether batches carry `_row_id` and `_last_updated_sequence_number` (nullable Int64) after the table's columns,
    /// to be stored. Only in a v3 table, and only for rows that were in it before.
    pub lineage: bool,
    /// Sort order the rows come in, per partition; 0 is none.
    pub sort_order_id: i32,
    /// Spec to write under; `None` is the table's default.
    pub spec_id: Option<i32>,
    /// Bytes to end a file at; `None` is the table's `write.target-file-size-bytes`.
    pub target_file_size: Option<u64>,
    /// Bytes of encoded rows held for all open files; above it the largest row group is ended early.
    pub memory_limit: usize,
    /// Files open at a time; above it the file not written to for longest is ended.
    pub max_open_files: usize,
}

impl Default for DataWriterOptions {
    fn default() -> Self {
        Self {
            partition: 0,
            task: 0,
            lineage: false,
            sort_order_id: 0,
            spec_id: None,
            target_file_size: None,
            memory_limit: 256 << 20,
            max_open_files: 512,
        }
    }
}

/// Writes rows of a table's current schema to new data files, one or more a partition.
///
/// Every file is finished and described when [`finish`](Self::finish) returns; until then nothing belongs to the caller.
/// When the writer fails, is aborted or dropped, the files it made are deleted again, best effort.
pub struct DataFileWriter {
    table: Table,
    spec: Arc<PartitionSpec>,
    partition_type: StructType,
    layout: Arc<FileLayout>,
    options: DataWriterOptions,
    target: u64,
    /// `None` when unpartitioned.
    fanout: Option<PartitionFanout>,
    names: FileNames,
    created: CreatedFiles,
    open: HashMap<PartitionIndex, OpenFile>,
    clock: u64,
    finished: Vec<DataFile>,
}

struct OpenFile {
    writer: ParquetFileWriter,
    file: DataFile,
    memory: usize,
    last_used: u64,
}

impl DataFileWriter {
    /// A writer for `table` as it stands.
    ///
    /// # Errors
    /// `Unsupported` for a table whose properties ask for what this version does not write, `InvalidInput` for lineage
    /// before v3 and for a spec that cannot be written.
    pub fn new(table: &Table, options: DataWriterOptions) -> Result<Self> {
        let metadata = &table.metadata;
        let properties = table.properties()?;
        properties.check_writable()?;
        if options.lineage && metadata.format_version < FormatVersion::V3 {
            return Err(Error::invalid_input("row lineage needs a format version 3 table"));
        }
        let schema = metadata.current_schema()?;
        let spec = match options.spec_id {
            None => metadata.default_spec()?,
            Some(id) => metadata
                .spec_by_id(id)
                .ok_or_else(|| Error::invalid_input(format!("the table has no partition spec {id}")))?,
        };
        let layout = data_layout(table, schema, options.lineage)?;
        let fanout = if spec.fields.is_empty() { None } else { Some(PartitionFanout::new(spec, schema)?) };
        let partition_type = spec.partition_type(metadata);
        Ok(Self {
            spec: Arc::clone(spec),
            partition_type,
            layout: Arc::new(layout),
            target: options.target_file_size.unwrap_or(properties.target_file_size_bytes).max(1),
            fanout,
            names: FileNames::new(options.partition, options.task, table.env.uuid()),
            created: CreatedFiles::new(table.io.clone()),
            open: HashMap::new(),
            clock: 0,
            finished: Vec::new(),
            table: table.clone(),
            options,
        })
    }

    /// Schema of the batches: the table's columns, and the two lineage columns where asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.layout.batch_schema
    }

    /// Bytes held in memory: rows gathered for their partitions and row groups being made.
    pub fn memory(&self) -> usize {
        self.fanout.as_ref().map_or(0, PartitionFanout::memory) + self.open.values().map(|f| f.memory).sum::<usize>()
    }

    /// Files being written.
    pub fn open_files(&self) -> usize {
        self.open.len()
    }

    /// Adds rows, cast to the table's types where needed.
    ///
    /// # Errors
    /// As [`cast_to_table`]; a partition value out of range; storage errors. After an error the writer is of no use.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = cast_to_table(batch, &self.layout.batch_schema)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        match &mut self.fanout {
            None => self.append(0, &batch).await,
            Some(fanout) => match fanout.gather(batch) {
                true => self.share().await,
                false => Ok(()),
            },
        }
    }

    async fn share(&mut self) -> Result<()> {
        let Some(fanout) = &mut self.fanout else { return Ok(()) };
        for (partition, batches) in fanout.share()? {
            for batch in batches {
                self.append(partition, &batch).await?;
            }
        }
        Ok(())
    }

    /// Adds rows of one partition, ending its file whenever it is full.
    async fn append(&mut self, partition: PartitionIndex, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            let open = self.open_file(partition).await?;
            let rows = open.rows_until_check().min(batch.num_rows() - start);
            open.file.writer.write(&batch.slice(start, rows)).await?;
            open.file.memory = open.file.writer.memory();
            let full = open.file.writer.size_estimate() >= open.target;
            start += rows;
            if full {
                self.close(partition).await?;
            }
        }
        self.keep_within_memory().await
    }

    async fn open_file(&mut self, partition: PartitionIndex) -> Result<Opened<'_>> {
        self.clock += 1;
        if !self.open.contains_key(&partition) {
            if self.open.len() >= self.options.max_open_files.max(1) {
                let oldest = self.open.iter().min_by_key(|(_, f)| f.last_used).map(|(p, _)| *p);
                if let Some(oldest) = oldest {
                    self.close(oldest).await?;
                }
            }
            let file = self.start(partition).await?;
            self.open.insert(partition, file);
        }
        let file =
            self.open.get_mut(&partition).ok_or_else(|| Error::internal("a file was lost while being written"))?;
        file.last_used = self.clock;
        Ok(Opened { file, target: self.target })
    }

    async fn start(&mut self, partition: PartitionIndex) -> Result<OpenFile> {
        let tuple = self.fanout.as_ref().map_or_else(PartitionTuple::default, |f| f.tuple(partition));
        let path = self.spec.partition_path(&tuple, &self.partition_type);
        let location = self.table.new_data_location(&path, &self.names.data())?;
        let key = PartitionKey { spec_id: self.spec.spec_id, tuple };
        let mut file = DataFile::new(DataContent::Data, location.as_str(), FileFormat::Parquet, key);
        file.sort_order_id = Some(self.options.sort_order_id);
        let writer = ParquetFileWriter::create(&self.table.io, location, &self.layout).await?;
        Ok(OpenFile { writer, file, memory: 0, last_used: self.clock })
    }

    async fn close(&mut self, partition: PartitionIndex) -> Result<()> {
        let Some(open) = self.open.remove(&partition) else { return Ok(()) };
        let OpenFile { writer, mut file, .. } = open;
        self.created.add(writer.location());
        writer.finish(&mut file).await?;
        self.finished.push(file);
        Ok(())
    }

    async fn keep_within_memory(&mut self) -> Result<()> {
        loop {
            let total: usize = self.open.values().map(|f| f.memory).sum();
            if total <= self.options.memory_limit {
                return Ok(());
            }
            let Some(largest) = self.open.values_mut().max_by_key(|f| f.memory) else { return Ok(()) };
            largest.writer.flush().await?;
            largest.memory = 0;
        }
    }

    /// Ends all files. They are the caller's from here on: to be committed, or deleted. After an error none is left.
    pub async fn finish(mut self) -> Result<Vec<DataFile>> {
        match self.close_all().await {
            Ok(()) => {
                self.created.release();
                Ok(self.finished)
            }
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    async fn close_all(&mut self) -> Result<()> {
        self.share().await?;
        let mut open: Vec<PartitionIndex> = self.open.keys().copied().collect();
        open.sort_unstable();
        for partition in open {
            self.close(partition).await?;
        }
        Ok(())
    }

    /// Gives up: deletes the files made so far. What cannot be deleted is left for orphan removal.
    pub async fn abort(self) {
        drop(self.open);
        self.created.delete().await;
    }
}

struct Opened<'a> {
    file: &'a mut OpenFile,
    target: u64,
}

impl Opened<'_> {
    fn rows_until_check(&self) -> usize {
        self.file.writer.rows_until_check(self.target)
    }
}

/// The layout of a table's data files, with the lineage columns if asked for.
fn data_layout(table: &Table, schema: &Schema, lineage: bool) -> Result<FileLayout> {
    let properties = table.properties()?;
    let (mut fields, mut parquet) = (schema.fields.fields.clone(), properties.parquet.clone());
    if lineage {
        fields.extend(lineage_fields());
        // No two rows have the same id: a dictionary of them would be hashed for nothing.
        parquet.dict_encoding_enabled.entry(ROW_ID.to_owned()).or_insert(false);
    }
    let key_values = vec![KeyValue::new("iceberg.schema".to_owned(), schema.to_json().to_string())];
    let modes = |leaves: &[_]| leaf_modes(&properties.metrics, schema, &table.metadata, leaves);
    FileLayout::new(fields, &parquet, modes, key_values)
}

/// The two lineage columns, both optional.
pub(crate) fn lineage_fields() -> [Arc<NestedField>; 2] {
    [(ROW_ID_FIELD_ID, ROW_ID), (LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, LAST_UPDATED_SEQUENCE_NUMBER)]
        .map(|(id, name)| Arc::new(NestedField::new(id, name, false, PrimitiveType::Long)))
}
