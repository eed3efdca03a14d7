//! What a writer tells the commit node, as record batches.
//!
//! One row a message. Columns: `kind` (0 added data files, 1 positions of rows that go, 2 of matched rows that stay, 3 rows
//! inserted, 4 updated), `file` (path of the data file the positions lie in; else empty), `spec_id`, `rows` (rows
//! written, matched or counted), `payload` (a manifest of the added files in Avro, a position bitmap, or empty). Only rows
//! that reach the commit node count.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray, UInt8Array, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::dml::logical::Operation;
use crate::error::{Error, Result};
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::manifest::{ManifestReader, ManifestWriter};
use crate::spec::{DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile, TableMetadata};

const ADDED_DATA: u8 = 0;
const POSITIONS: u8 = 1;
const KEPT: u8 = 2;
const INSERTED: u8 = 3;
const UPDATED: u8 = 4;

/// Schema of message batches.
pub(super) static MESSAGE_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("kind", DataType::UInt8, false),
        Field::new("file", DataType::Utf8, false),
        Field::new("spec_id", DataType::Int32, false),
        Field::new("rows", DataType::UInt64, false),
        Field::new("payload", DataType::Binary, false),
    ]))
});

/// What the writers of one statement did, gathered.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) added_data: Vec<DataFile>,
    /// Positions of the rows that go, by file.
    pub(super) matched: HashMap<String, PositionBitmap>,
    /// Positions of the rows that a source row matched and that stay as they are, by file.
    pub(super) kept: HashMap<String, PositionBitmap>,
    pub(super) counts: RowCounts,
    /// A file of which two writers have the same row.
    pub(super) twice: Option<String>,
}

/// Rows that a statement adds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowCounts {
    pub(super) inserted: u64,
    pub(super) updated: u64,
}

impl RowCounts {
    /// Counts the rows of a batch in.
    pub(super) fn add(&mut self, operations: &[Operation]) {
        for operation in operations {
            match operation {
                Operation::Insert => self.inserted += 1,
                Operation::Update => self.updated += 1,
                Operation::Delete | Operation::Keep => {}
            }
        }
    }
}

struct Row {
    kind: u8,
    file: String,
    spec_id: i32,
    rows: u64,
    payload: Vec<u8>,
}

impl Messages {
    /// Encodes the messages of one writer.
    pub(super) fn encode(&self, metadata: &TableMetadata) -> Result<RecordBatch> {
        let mut rows = Vec::new();
        for (kind, bitmaps) in [(POSITIONS, &self.matched), (KEPT, &self.kept)] {
            for (file, positions) in bitmaps {
                let payload = positions.encode()?;
                rows.push(Row { kind, file: file.clone(), spec_id: 0, rows: positions.len(), payload });
            }
        }
        for (kind, count) in [(INSERTED, self.counts.inserted), (UPDATED, self.counts.updated)] {
            if count > 0 {
                rows.push(Row { kind, file: String::new(), spec_id: 0, rows: count, payload: Vec::new() });
            }
        }
        let mut by_spec: HashMap<i32, Vec<&DataFile>> = HashMap::new();
        for file in &self.added_data {
            by_spec.entry(file.spec_id).or_default().push(file);
        }
        for (spec_id, files) in by_spec {
            let payload = encode_files(metadata, spec_id, &files)?;
            let count = files.iter().map(|file| file.record_count).sum();
            rows.push(Row { kind: ADDED_DATA, file: String::new(), spec_id, rows: count, payload });
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.kind))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.file))),
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.spec_id))),
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.rows))),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.payload))),
        ];
        RecordBatch::try_new(Arc::clone(&MESSAGE_SCHEMA), columns)
            .map_err(|error| Error::internal("cannot encode the messages of a writer").with_source(error))
    }

    /// Takes in one batch of messages. Positions of one file from several writers are united.
    pub(super) fn absorb(&mut self, batch: &RecordBatch, metadata: &TableMetadata) -> Result<()> {
        let malformed = || Error::internal("malformed message batch of a writer");
        let kinds = column::<UInt8Array>(batch, 0).ok_or_else(malformed)?;
        let files = column::<StringArray>(batch, 1).ok_or_else(malformed)?;
        let spec_ids = column::<Int32Array>(batch, 2).ok_or_else(malformed)?;
        let counts = column::<UInt64Array>(batch, 3).ok_or_else(malformed)?;
        let payloads = column::<BinaryArray>(batch, 4).ok_or_else(malformed)?;
        for row in 0..batch.num_rows() {
            match kinds.value(row) {
                ADDED_DATA => self.added_data.extend(decode_files(metadata, spec_ids.value(row), payloads.value(row))?),
                kind @ (POSITIONS | KEPT) => {
                    let positions = PositionBitmap::decode(payloads.value(row))?;
                    let bitmaps = if kind == KEPT { &mut self.kept } else { &mut self.matched };
                    let file = files.value(row);
                    match bitmaps.entry(file.to_string()) {
                        Entry::Occupied(mut entry) => {
                            let apart = entry.get().len() + positions.len();
                            entry.get_mut().union_with(&positions);
                            if entry.get().len() < apart {
                                self.twice = Some(file.to_string());
                            }
                        }
                        Entry::Vacant(entry) => _ = entry.insert(positions),
                    }
                }
                INSERTED => self.counts.inserted += counts.value(row),
                UPDATED => self.counts.updated += counts.value(row),
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }
}

impl Messages {
    /// A file that has a row which two writers or two operations were given.
    pub(super) fn row_twice(&self) -> Option<&str> {
        let meets = |(file, kept): &(&String, &PositionBitmap)| {
            self.matched.get(*file).is_some_and(|matched| {
                let mut both = (*kept).clone();
                both.union_with(matched);
                both.len() < kept.len() + matched.len()
            })
        };
        self.twice.as_deref().or_else(|| self.kept.iter().find(meets).map(|(file, _)| file.as_str()))
    }
}

fn column<T: Array + 'static>(batch: &RecordBatch, index: usize) -> Option<&T> {
    batch.columns().get(index)?.as_any().downcast_ref()
}

fn encode_files(metadata: &TableMetadata, spec_id: i32, files: &[&DataFile]) -> Result<Vec<u8>> {
    let spec = spec(metadata, spec_id)?;
    let partition_type = spec.partition_type(metadata);
    let schema = metadata.current_schema()?;
    let mut writer =
        ManifestWriter::new(metadata.format_version, spec, &partition_type, schema, ManifestContent::Data, 0);
    for file in files {
        writer.add(ManifestEntry {
            status: EntryStatus::Added,
            snapshot_id: None,
            sequence_number: None,
            file_sequence_number: None,
            data_file: Arc::new((*file).clone()),
        });
    }
    Ok(writer.finish("message")?.0)
}

fn decode_files(metadata: &TableMetadata, spec_id: i32, payload: &[u8]) -> Result<Vec<DataFile>> {
    let manifest = ManifestFile {
        manifest_path: "message".to_string(),
        manifest_length: payload.len() as u64,
        partition_spec_id: spec_id,
        content: ManifestContent::Data,
        sequence_number: None,
        min_sequence_number: None,
        added_snapshot_id: 0,
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        added_rows_count: None,
        existing_rows_count: None,
        deleted_rows_count: None,
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    };
    let entries = ManifestReader::read(payload, &manifest, metadata)?;
    Ok(entries.into_iter().map(|entry| Arc::unwrap_or_clone(entry.data_file)).collect())
}

fn spec(metadata: &TableMetadata, spec_id: i32) -> Result<&Arc<crate::spec::PartitionSpec>> {
    metadata
        .spec_by_id(spec_id)
        .ok_or_else(|| Error::data_invalid(format!("partition spec {spec_id} is not in the table metadata")))
}
