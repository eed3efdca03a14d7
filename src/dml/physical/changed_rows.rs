//! The rows of an UPDATE or MERGE: positions of those that go, data files of those that come.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Int8Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::Count;
use futures::StreamExt;

use super::addresses::Addresses;
use super::message::Messages;
use crate::dml::logical::Operation;
use crate::error::Error;
use crate::spec::FormatVersion;
use crate::table::Table;
use crate::writer::{DataFileWriter, DataWriterOptions, cast_to_table};

/// Columns before those of the table: file, position, operation, row id.
const LEADING: usize = 4;

/// How the rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeOptions {
    /// Whether a row of the target that is there twice is an error.
    pub(super) one_match: bool,
    /// Whether old rows may live on in new ones, which then carry their ids.
    pub(super) updates: bool,
}

/// Writes the changes of one input partition. What it wrote is removed again when it fails.
pub(super) async fn write_changes(
    table: &Table,
    partition: usize,
    options: ChangeOptions,
    mut input: SendableRecordBatchStream,
    rows: &Count,
) -> Result<Messages> {
    let lineage = options.updates && table.metadata.format_version >= FormatVersion::V3;
    let writer_options = DataWriterOptions { partition, lineage, ..DataWriterOptions::default() };
    let mut writer = DataFileWriter::new(table, writer_options)?;
    let mut changes = Changes { options, lineage, schema: Arc::clone(writer.schema()), messages: Messages::default() };
    let written = async {
        while let Some(batch) = input.next().await {
            let batch = batch?;
            rows.add(batch.num_rows());
            if let Some(new_rows) = changes.take(&batch)? {
                writer.write(&new_rows).await?;
            }
        }
        Ok::<_, DataFusionError>(())
    }
    .await;
    match written {
        Ok(()) => {
            let mut messages = changes.messages;
            messages.added_data = writer.finish().await?;
            Ok(messages)
        }
        Err(error) => {
            writer.abort().await;
            Err(error)
        }
    }
}

struct Changes {
    options: ChangeOptions,
    lineage: bool,
    /// What the writer takes.
    schema: SchemaRef,
    messages: Messages,
}

impl Changes {
    /// Notes the rows that go and returns those that come.
    fn take(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        let [files, positions, operations, ..] = batch.columns() else {
            return internal_err!("changed rows have no address");
        };
        let Some(operations) = operations.as_any().downcast_ref::<Int8Array>() else {
            return internal_err!("operations of changed rows are not Int8");
        };
        let operations = operations.iter().map(|code| code.and_then(Operation::of));
        let operations: Option<Vec<Operation>> = operations.collect();
        let operations = operations.ok_or_else(|| internal_datafusion_err!("a changed row has no operation"))?;
        self.note_removed(files, positions, &operations)?;
        self.messages.counts.add(&operations);
        self.new_rows(batch, &operations)
    }

    fn note_removed(&mut self, files: &ArrayRef, positions: &ArrayRef, operations: &[Operation]) -> Result<()> {
        let addresses = Addresses::new(files, positions)?;
        for (path, run) in addresses.runs() {
            let Some(path) = path else {
                // Only rows that are new have no address.
                match operations.get(run).unwrap_or_default().iter().all(|operation| *operation == Operation::Insert) {
                    true => continue,
                    false => return internal_err!("a row to change has no address"),
                }
            };
            for (row, operation) in run.clone().zip(operations.get(run).unwrap_or_default()) {
                let bitmaps = match operation {
                    Operation::Delete | Operation::Update => &mut self.messages.matched,
                    Operation::Keep => &mut self.messages.kept,
                    Operation::Insert => return internal_err!("a new row has an address"),
                };
                let bitmap = match bitmaps.get_mut(path) {
                    Some(bitmap) => bitmap,
                    None => bitmaps.entry(path.to_string()).or_default(),
                };
                if !bitmap.insert(addresses.position(row)?) && self.options.one_match {
                    return Err(two_matches(path).into());
                }
            }
        }
        Ok(())
    }

    /// The rows that come, as the writer takes them.
    fn new_rows(&self, batch: &RecordBatch, operations: &[Operation]) -> Result<Option<RecordBatch>> {
        let coming = operations.iter().filter(|operation| operation.adds()).count();
        if coming == 0 {
            return Ok(None);
        }
        let batch = if coming == operations.len() {
            batch.clone()
        } else {
            let mask: BooleanArray = operations.iter().map(|operation| Some(operation.adds())).collect();
            filter_record_batch(batch, &mask)?
        };
        let mut columns: Vec<ArrayRef> = batch.columns().iter().skip(LEADING).cloned().collect();
        if self.lineage {
            let ids = batch.columns().get(LEADING - 1).cloned();
            columns.push(ids.ok_or_else(|| internal_datafusion_err!("changed rows have no row id"))?);
            // Null: the commit that writes the row is the last that changed it.
            columns.push(new_null_array(&DataType::Int64, batch.num_rows()));
        }
        let names = self.schema.fields().iter().map(|field| field.name());
        let fields: Fields =
            names.zip(&columns).map(|(name, c)| Field::new(name, c.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        Ok(Some(cast_to_table(&rows, &self.schema)?))
    }
}

/// The error of a statement that does not say which of two rows a row of the target becomes.
pub(super) fn two_matches(path: &str) -> Error {
    Error::invalid_input(
        "a row of the target matches more than one row of the source, so what becomes of it is left to chance; make the join \
         columns unique in the source",
    )
    .with_context("file", path.to_owned())
}
