//! A data file without some of its rows: the seam of copy-on-write and compaction.
//!
//! Survivors are read by position, never by a negated filter, and encoded like any new row, under the table's current
//! schema and spec. In a v3 table they keep their identity: `_row_id` and `_last_updated_sequence_number` become columns
//! of the new file (spec section "Row Lineage").

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Int64Type, Schema as ArrowSchema, SchemaRef};
use futures::StreamExt;
use futures::stream::BoxStream;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask, RowNumber};

use super::data_writer::{
    DataFileWriter, DataWriterOptions, LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID_FIELD_ID, lineage_fields,
};
use crate::columns::arrow_field;
use crate::columns::{AvroFile, FileColumns};
use crate::scan::footer::ParquetFile;
use crate::scan::{FileScanTask, avro_batches};
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::{DataFile, FileFormat, FormatVersion, NestedField};
use crate::table::Table;
use crate::{Error, Result};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Rows of one file in file order, with their schema.
pub struct SurvivingBatches {
    /// The table's current columns and, in a v3 table, `_row_id` and `_last_updated_sequence_number`.
    pub schema: SchemaRef,
    /// The rows; holds one decoded batch at a time.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl std::fmt::Debug for SurvivingBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurvivingBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Rows of the task's data file that are not in `deleted`, as rows of the table's current schema.
///
/// `deleted` must hold *every* deleted position, those deleted before included (see
/// [`DeleteLoader::deleted_positions`](crate::scan::DeleteLoader::deleted_positions)): nothing else is taken away.
///
/// # Errors
/// `Unsupported` as [`FileScanTask::check_readable`]; `DataInvalid` for a file that does not fit the table or has fewer
/// rows than `deleted` addresses; storage errors. The stream gives an error once and ends.
pub async fn surviving_batches(
    table: &Table,
    task: &FileScanTask,
    deleted: &DeletionVector,
) -> Result<SurvivingBatches> {
    task.check_readable(&table.ident.to_string())?;
    let metadata = &table.metadata;
    let file = &task.data_file;
    let lineage = metadata.format_version >= FormatVersion::V3;
    if file.file_format == FileFormat::Avro {
        return surviving_avro(table, task, deleted, lineage).await;
    }
    let parquet = ParquetFile::new(&table.io, file);
    // Types come from the Parquet schema alone: an embedded Arrow schema may spell them in other ways.
    let mut options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    if lineage {
        options = options.with_virtual_columns(vec![Arc::new(position_field())]).map_err(|e| parquet.error(e))?;
    }
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(parquet.clone(), options)
        .await
        .map_err(|e| parquet.error(e))?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let schema = Arc::clone(builder.schema());
    let columns = FileColumns::new(metadata, file, &schema)?;
    let plan = Plan::new(table, task, columns, &schema, lineage)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), plan.roots.iter().copied());
    let stream = builder
        .with_projection(mask)
        .with_row_selection(survivors(rows, deleted, file)?)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|e| parquet.error(e))?;
    let schema = Arc::clone(&plan.schema);
    let batches = stream.map(move |batch| {
        let batch = batch.map_err(|e| parquet.error(e))?;
        plan.batch(&batch)
    });
    // After an error nothing the decoder says can be trusted.
    let batches = batches.scan(false, |failed, batch| {
        let last = std::mem::replace(failed, batch.is_err());
        futures::future::ready((!last).then_some(batch))
    });
    Ok(SurvivingBatches { schema, batches: batches.boxed() })
}

/// The row's position in the file, which the reader gives behind the file's columns.
fn position_field() -> Field {
    Field::new("position", DataType::Int64, false).with_extension_type(RowNumber)
}

async fn surviving_avro(
    table: &Table,
    task: &FileScanTask,
    deleted: &DeletionVector,
    lineage: bool,
) -> Result<SurvivingBatches> {
    let file = &task.data_file;
    let named = |e: Error| e.with_context("file", &*file.file_path);
    let avro = AvroFile::open(table.io.read(&file.file_path).await?).map_err(named)?;
    let columns = FileColumns::new(&table.metadata, file, avro.schema())?;
    let mut fields = avro.schema().fields().to_vec();
    if lineage {
        fields.push(Arc::new(position_field()));
    }
    let plan = Plan::new(table, task, columns, &ArrowSchema::new(fields), lineage)?;
    let schema = Arc::clone(&plan.schema);
    let batches = avro_batches(avro, Arc::clone(&file.file_path), plan.roots.clone(), BATCH_ROWS);
    let deleted = deleted.clone();
    let mut first = 0;
    let batches = batches.map(move |batch| {
        let batch = batch?;
        let rows = first..first + batch.num_rows() as u64;
        first = rows.end;
        let batch = if lineage { with_positions(&batch, rows.clone())? } else { batch };
        let live: BooleanArray = rows.map(|row| Some(!deleted.contains(row))).collect();
        let live = filter_record_batch(&batch, &live);
        plan.batch(&live.map_err(|e| Error::internal("cannot leave out deleted rows").with_source(e))?)
    });
    Ok(SurvivingBatches { schema, batches: batches.boxed() })
}

fn with_positions(batch: &RecordBatch, rows: std::ops::Range<u64>) -> Result<RecordBatch> {
    let positions: Int64Array = rows.map(|row| i64::try_from(row).unwrap_or(i64::MAX)).collect();
    let mut fields = batch.schema_ref().fields().to_vec();
    fields.push(Arc::new(position_field()));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(positions));
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)
        .map_err(|e| Error::internal("cannot number the rows of a file").with_source(e))
}

/// Selects all rows but the deleted ones.
fn survivors(rows: u64, deleted: &DeletionVector, file: &DataFile) -> Result<RowSelection> {
    let invalid = || {
        Error::data_invalid(format!("a delete addresses a row beyond the file's {rows}"))
            .with_context("file", file.file_path.to_string())
    };
    let mut selectors = Vec::new();
    let mut next = 0;
    for range in deleted.to_row_ranges() {
        if range.end > rows {
            return Err(invalid());
        }
        let length = |n: u64| usize::try_from(n).map_err(|_| invalid());
        if range.start > next {
            selectors.push(RowSelector::select(length(range.start - next)?));
        }
        selectors.push(RowSelector::skip(length(range.end - range.start)?));
        next = range.end;
    }
    if rows > next {
        selectors.push(RowSelector::select(usize::try_from(rows - next).map_err(|_| invalid())?));
    }
    Ok(RowSelection::from(selectors))
}

/// How decoded batches become the table's.
struct Plan {
    schema: SchemaRef,
    columns: FileColumns,
    targets: Vec<Arc<NestedField>>,
    /// Index in the decoded batch of each target; `None` when the file lacks it.
    sources: Vec<Option<usize>>,
    /// Indices of the file's top-level columns to decode.
    roots: Vec<usize>,
    lineage: Option<Lineage>,
}

struct Lineage {
    row_id: Option<usize>,
    sequence_number: Option<usize>,
    first_row_id: Option<i64>,
    file_sequence_number: i64,
}

impl Plan {
    fn new(
        table: &Table,
        task: &FileScanTask,
        columns: FileColumns,
        file_schema: &ArrowSchema,
        lineage: bool,
    ) -> Result<Self> {
        let targets = table.metadata.current_schema()?.fields.fields.clone();
        let id_of = |f: &Field| columns.id_of(f, &[f.name()]);
        // The position column comes last, in the file's schema as in each batch.
        let file_columns = file_schema.fields().len().saturating_sub(usize::from(lineage));
        let ids: Vec<Option<i32>> = file_schema.fields().iter().take(file_columns).map(|f| id_of(f)).collect();
        let wanted = |id: i32| {
            targets.iter().any(|t| t.id == id)
                || lineage && (id == ROW_ID_FIELD_ID || id == LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID)
        };
        let roots: Vec<usize> = (0..ids.len()).filter(|i| ids.get(*i).copied().flatten().is_some_and(wanted)).collect();
        // Decoded columns come in file order, whatever the order asked for.
        let decoded = |id: i32| roots.iter().position(|root| ids.get(*root).copied().flatten() == Some(id));
        let sources = targets.iter().map(|t| decoded(t.id)).collect();
        let mut fields = targets.iter().map(|t| arrow_field(t)).collect::<Result<Vec<_>>>()?;
        if lineage {
            for field in lineage_fields() {
                fields.push(arrow_field(&field)?);
            }
        }
        let lineage = lineage.then(|| Lineage {
            row_id: decoded(ROW_ID_FIELD_ID),
            sequence_number: decoded(LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID),
            first_row_id: task.data_file.first_row_id.and_then(|id| i64::try_from(id).ok()),
            file_sequence_number: task.sequence_number,
        });
        Ok(Self { schema: Arc::new(ArrowSchema::new(fields)), columns, targets, sources, roots, lineage })
    }

    fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let schema = batch.schema_ref();
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for (target, source) in self.targets.iter().zip(&self.sources) {
            let source = source.and_then(|i| Some((batch.columns().get(i)?, schema.fields().get(i)?.as_ref())));
            arrays.push(self.columns.column(source, target, rows)?);
        }
        if let Some(lineage) = &self.lineage {
            let positions =
                batch.columns().last().ok_or_else(|| Error::internal("the reader gave no row positions"))?;
            let (row_id, sequence_number) = lineage.columns(batch, positions)?;
            arrays.extend([row_id, sequence_number]);
        }
        RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )
        .map_err(|e| Error::data_invalid("rows of the file do not fit the table").with_source(e))
    }
}

impl Lineage {
    /// What is stored wins; else the file's first row id plus the position, and the file's sequence number. A file from
    /// before the upgrade to v3 without a first row id gives its rows neither.
    fn columns(&self, batch: &RecordBatch, positions: &ArrayRef) -> Result<(ArrayRef, ArrayRef)> {
        let stored = |index: Option<usize>| index.and_then(|i| batch.columns().get(i));
        let Some(first) = self.first_row_id else {
            let or_null =
                |s: Option<&ArrayRef>| s.cloned().unwrap_or_else(|| new_null_array(&DataType::Int64, batch.num_rows()));
            return Ok((or_null(stored(self.row_id)), or_null(stored(self.sequence_number))));
        };
        let positions = positions
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::internal("row positions are not of type Int64"))?;
        let inherited = positions.unary::<_, Int64Type>(|p| first.saturating_add(p));
        let sequence = Int64Array::from_value(self.file_sequence_number, batch.num_rows());
        Ok((coalesce(stored(self.row_id), inherited)?, coalesce(stored(self.sequence_number), sequence)?))
    }
}

fn coalesce(stored: Option<&ArrayRef>, otherwise: Int64Array) -> Result<ArrayRef> {
    let Some(stored) = stored else { return Ok(Arc::new(otherwise)) };
    let stored = stored
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Error::data_invalid("a lineage column of the file is not of type long"))?;
    if stored.null_count() == 0 {
        return Ok(Arc::new(stored.clone()));
    }
    let values = stored.iter().zip(otherwise.iter()).map(|(stored, otherwise)| stored.or(otherwise));
    Ok(Arc::new(values.collect::<Int64Array>()))
}

/// Writer options for rows that were in `table` before: they carry their lineage where the table has any.
pub fn rewrite_options(table: &Table, partition: usize, task: u64) -> DataWriterOptions {
    let lineage = table.metadata.format_version >= FormatVersion::V3;
    DataWriterOptions { partition, task, lineage, ..DataWriterOptions::default() }
}

/// Rewrites the task's data file without the rows in `deleted` (every deleted position, as [`surviving_batches`] says).
/// No file when no row survives. The new files have the old one's sort order, since their rows keep its order.
///
/// `options` are from [`rewrite_options`]. Errors as [`surviving_batches`] and [`DataFileWriter::write`]; after one,
/// nothing is left behind.
pub async fn rewrite_file(
    table: &Table,
    task: &FileScanTask,
    deleted: &DeletionVector,
    mut options: DataWriterOptions,
) -> Result<Vec<DataFile>> {
    let order = task.data_file.sort_order_id.unwrap_or(0);
    options.sort_order_id = if table.metadata.sort_orders.iter().any(|o| o.order_id == order) { order } else { 0 };
    let mut writer = DataFileWriter::new(table, options)?;
    match rewrite_into(&mut writer, table, task, deleted).await {
        Ok(_) => writer.finish().await,
        Err(e) => {
            writer.abort().await;
            Err(e)
        }
    }
}

/// Adds the surviving rows of the task's data file to `writer`, which may take those of other files as well (then its
/// `sort_order_id` must be 0). How many rows survived. Errors as [`rewrite_file`]; the caller aborts the writer.
pub async fn rewrite_into(
    writer: &mut DataFileWriter,
    table: &Table,
    task: &FileScanTask,
    deleted: &DeletionVector,
) -> Result<u64> {
    let mut survivors = surviving_batches(table, task, deleted).await?;
    let mut rows = 0;
    while let Some(batch) = survivors.batches.next().await {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).await?;
    }
    Ok(rows)
}
