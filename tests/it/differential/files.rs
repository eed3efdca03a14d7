//! Reads data and delete files by themselves, through none of the scan's code.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use calve::spec::{DataFile, DeletionVector, ManifestEntry, Schema, puffin};
use calve::writer::FIELD_ID_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::predicate::Row;
use super::random::Column;
use super::value::{Kind, Value};

/// Reserved field ids of the lineage columns.
const ROW_ID: i32 = 2_147_483_540;
const LAST_UPDATED: i32 = 2_147_483_539;

/// Where a location lies on this machine.
pub(super) fn local(location: &str) -> &str {
    location.strip_prefix("file:").map_or(location, |path| path.strip_prefix("//").unwrap_or(path))
}

pub(super) fn read(location: &str) -> Bytes {
    fs::read(local(location)).unwrap_or_else(|e| panic!("{location}: {e}")).into()
}

fn read_parquet(location: &str) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(read(location)).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    concat_batches(&schema, &batches).unwrap()
}

/// A data file's rows, deleted ones included.
pub(super) struct FileRows {
    pub(super) rows: Vec<Row>,
    /// Row id and last-updated sequence number as stored, or null.
    row_ids: Option<Vec<Value>>,
    last_updated: Option<Vec<Value>>,
}

impl FileRows {
    pub(super) fn read(file: &DataFile, schema: &Schema, columns: &[Column]) -> Self {
        let batch = read_parquet(&file.file_path);
        let column = |id: i32| -> Option<ArrayRef> {
            let schema = batch.schema();
            let at = schema.fields().iter().position(|f| f.metadata().get(FIELD_ID_KEY) == Some(&id.to_string()))?;
            Some(batch.column(at).clone())
        };
        let decoded: Vec<Vec<Value>> = columns
            .iter()
            .map(|c| {
                let id = schema.field_by_name(&c.name).unwrap().id;
                c.kind.decode(&column(id).unwrap_or_else(|| panic!("{}: no column {id}", file.file_path)))
            })
            .collect();
        let rows = (0..batch.num_rows()).map(|i| decoded.iter().map(|column| column[i].clone()).collect()).collect();
        let lineage = |id| column(id).map(|array| Kind::Long.decode(&array));
        Self { rows, row_ids: lineage(ROW_ID), last_updated: lineage(LAST_UPDATED) }
    }

    /// Row id and last-updated sequence number of a row, if it has any.
    pub(super) fn lineage(&self, entry: &ManifestEntry, position: usize) -> Option<(i64, i64)> {
        let stored = |column: &Option<Vec<Value>>| match column.as_ref().map(|values| &values[position]) {
            Some(Value::Int(v)) => Some(*v),
            _ => None,
        };
        let first = entry.data_file.first_row_id?;
        let id = stored(&self.row_ids).unwrap_or(first as i64 + position as i64);
        Some((id, stored(&self.last_updated).or(entry.sequence_number)?))
    }
}

/// The positions that the live delete files take out of each data file, with what the format demands of them checked.
pub(super) struct Deletes {
    vectors: HashMap<String, (ManifestEntry, DeletionVector)>,
    positions: HashMap<String, Vec<(ManifestEntry, Vec<u64>)>>,
}

impl Deletes {
    pub(super) fn read(entries: &[ManifestEntry]) -> Self {
        let mut deletes = Self { vectors: HashMap::new(), positions: HashMap::new() };
        for entry in entries {
            if entry.data_file.is_deletion_vector() {
                deletes.add_vector(entry);
            } else {
                deletes.add_positions(entry);
            }
        }
        deletes
    }

    fn add_vector(&mut self, entry: &ManifestEntry) {
        let file = &entry.data_file;
        let bytes = read(&file.file_path);
        let (offset, length) = (file.content_offset.unwrap(), file.content_size_in_bytes.unwrap());
        let blob = &bytes[offset as usize..(offset + length) as usize];
        let vector = DeletionVector::decode(blob).unwrap();
        let target = file.referenced_data_file.as_deref().expect("a vector names its data file").to_string();
        assert_eq!(vector.len(), file.record_count, "cardinality of the vector of {target}");
        assert!(!vector.is_empty(), "an empty vector of {target}");
        let footer = puffin::read_footer(&bytes).unwrap();
        let in_footer = footer.blobs.iter().find(|blob| blob.offset == offset).expect("a blob at the entry's offset");
        assert_eq!(in_footer.length, length);
        assert_eq!(in_footer.properties.get(puffin::REFERENCED_DATA_FILE), Some(&target));
        assert_eq!(in_footer.properties.get(puffin::CARDINALITY), Some(&file.record_count.to_string()));
        assert!(self.vectors.insert(target.clone(), (entry.clone(), vector)).is_none(), "two vectors of {target}");
    }

    fn add_positions(&mut self, entry: &ManifestEntry) {
        let file = &entry.data_file;
        let batch = read_parquet(&file.file_path);
        assert_eq!(batch.num_rows() as u64, file.record_count, "rows of {}", file.file_path);
        let paths = Kind::Text.decode(batch.column_by_name("file_path").expect("file_path"));
        let positions = batch.column_by_name("pos").expect("pos").as_primitive::<Int64Type>().clone();
        let mut rows: Vec<(String, u64)> = Vec::new();
        for (path, position) in paths.into_iter().zip(positions.values()) {
            let Value::Text(path) = path else { panic!("a position without path") };
            rows.push((path, *position as u64));
        }
        assert!(rows.is_sorted_by(|a, b| a < b), "{} is not sorted, or names a row twice", file.file_path);
        let mut by_path: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        rows.into_iter().for_each(|(path, position)| by_path.entry(path).or_default().push(position));
        if let Some(only) = &file.referenced_data_file {
            assert!(by_path.keys().eq([only.as_ref()]), "{} addresses more than {only}", file.file_path);
        }
        for (path, positions) in by_path {
            self.positions.entry(path).or_default().push((entry.clone(), positions));
        }
    }

    /// Every vector addresses one of `data_files`.
    pub(super) fn check_targets(&self, data_files: &HashMap<String, ManifestEntry>) {
        for target in self.vectors.keys() {
            assert!(data_files.contains_key(target), "a vector of {target}, which is not in the table");
        }
    }

    /// Positions deleted in a data file.
    pub(super) fn of(&self, entry: &ManifestEntry) -> DeletionVector {
        let file = &entry.data_file;
        let mut deleted = DeletionVector::new();
        let check = |delete: &ManifestEntry| {
            let same = delete.data_file.partition_key() == file.partition_key();
            assert!(same, "{} is in another partition than {}", delete.data_file.file_path, file.file_path);
            delete.sequence_number.unwrap() >= entry.sequence_number.unwrap()
        };
        let path = file.file_path.as_ref();
        // A vector stands for all position deletes of its data file.
        if let Some((delete, vector)) = self.vectors.get(path) {
            assert!(check(delete), "the vector of {path} is older than the file");
            deleted.union_with(vector);
        } else {
            for (delete, positions) in self.positions.get(path).into_iter().flatten() {
                assert!(check(delete), "a position delete of {path} is older than the file");
                deleted.union_with(&DeletionVector::from_positions(positions.iter().copied()));
            }
        }
        assert!(deleted.max().is_none_or(|max| max < file.record_count), "a position beyond the end of {path}");
        deleted
    }
}
