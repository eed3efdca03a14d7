//! Reading manifests.

use std::sync::Arc;

use arrow::array::Array;
use serde_json::Value;

use super::decode::{Bytes, LongLists, Longs, Maps, Rows, Texts, decode_rows};
use super::list::{number, required, row_type};
use super::partition_value::PartitionColumn;
use super::{ManifestContent, ManifestFile};
use crate::spec::avro::{AvroField, AvroType, Container};
use crate::spec::data_file::{ColumnMap, DataContent, DataFile, EntryStatus, FileFormat, ManifestEntry};
use crate::spec::partition::{PartitionKey, PartitionSpec, PartitionTuple};
use crate::spec::{Literal, StructType, TableMetadata, Transform};
use crate::{Error, Result};

/// Which columns of a manifest to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Columns {
    /// All.
    All,
    /// All but the six maps of column metrics, which come out empty.
    NoMetrics,
}

/// Field ids and names of the column metrics.
const METRICS: [(i32, &str); 6] = [
    (108, "column_sizes"),
    (109, "value_counts"),
    (110, "null_value_counts"),
    (137, "nan_value_counts"),
    (125, "lower_bounds"),
    (128, "upper_bounds"),
];

/// Fields of old versions that say nothing: block size, ordinal, sort columns, distinct counts.
const IGNORED: [i32; 4] = [105, 106, 107, 111];

/// Reads manifests.
#[derive(Debug)]
pub struct ManifestReader;

impl ManifestReader {
    /// Reads every entry of a manifest, deleted ones included, with inheritance applied.
    ///
    /// # Errors
    /// As [`Self::read_projected`].
    pub fn read(bytes: &[u8], manifest: &ManifestFile, metadata: &TableMetadata) -> Result<Vec<ManifestEntry>> {
        Self::read_projected(bytes, manifest, metadata, Columns::All)
    }

    /// [`Self::read`] of some columns.
    ///
    /// Entries come in file order, with what the specification lets them inherit from the manifest: snapshot id,
    /// sequence numbers (added entries, and all where the manifest's is 0) and first row id (live entries of data
    /// manifests that have one; without one, none has, whatever is stored). Tuples are in the field order of the
    /// manifest's spec, their values of the spec's partition type; a void field is null.
    ///
    /// # Errors
    /// [`crate::ErrorKind::DataInvalid`] for a damaged file or one that breaks the specification;
    /// [`crate::ErrorKind::Unsupported`] for an encrypted one.
    pub fn read_projected(
        bytes: &[u8],
        manifest: &ManifestFile,
        metadata: &TableMetadata,
        columns: Columns,
    ) -> Result<Vec<ManifestEntry>> {
        read(bytes, manifest, metadata, columns)
            .map_err(|e| e.with_context("manifest", manifest.manifest_path.as_str()))
    }

    /// What a manifest list would say of a v1 manifest that only the snapshot itself names: its spec, from the file's
    /// header (0 when that is silent); sequence numbers 0; no counts and summaries.
    ///
    /// # Errors
    /// [`crate::ErrorKind::DataInvalid`] for a damaged header.
    pub fn describe(bytes: &[u8], path: &str, snapshot_id: i64) -> Result<ManifestFile> {
        let spec_id = || match Container::open(bytes)?.get("partition-spec-id") {
            None => Ok(0),
            Some(id) => id.parse().map_err(|_| Error::data_invalid(format!("partition-spec-id {id} is no number"))),
        };
        Ok(ManifestFile {
            manifest_path: path.to_string(),
            manifest_length: bytes.len() as u64,
            partition_spec_id: spec_id().map_err(|e: Error| e.with_context("manifest", path))?,
            content: ManifestContent::Data,
            sequence_number: Some(0),
            min_sequence_number: Some(0),
            added_snapshot_id: snapshot_id,
            added_files_count: None,
            existing_files_count: None,
            deleted_files_count: None,
            added_rows_count: None,
            existing_rows_count: None,
            deleted_rows_count: None,
            partitions: None,
            key_metadata: None,
            first_row_id: None,
        })
    }
}

fn read(
    bytes: &[u8],
    manifest: &ManifestFile,
    metadata: &TableMetadata,
    columns: Columns,
) -> Result<Vec<ManifestEntry>> {
    if manifest.key_metadata.is_some() {
        return Err(Error::unsupported("encrypted manifest"));
    }
    // Cut behind a whole block, a file looks like a shorter one.
    if (bytes.len() as u64) < manifest.manifest_length {
        let length = manifest.manifest_length;
        return Err(Error::data_invalid(format!("the file has {} of {length} bytes", bytes.len())));
    }
    let spec = metadata
        .spec_by_id(manifest.partition_spec_id)
        .ok_or_else(|| Error::data_invalid(format!("partition spec {} does not exist", manifest.partition_spec_id)))?;
    let partition_type = spec.partition_type(metadata);
    let container = Container::open(bytes)?;
    let row_type = row_type(&container)?;
    let mut decoder = EntryDecoder {
        manifest,
        spec,
        partition_type: &partition_type,
        partition_indexes: partition_indexes(&container, &row_type, spec)?,
        next_row_id: manifest.first_row_id.filter(|_| manifest.content == ManifestContent::Data),
        last_tuple: PartitionTuple::default(),
        entries: Vec::new(),
    };
    let keep = |field: &AvroField| match field.id {
        Some(id) => !(IGNORED.contains(&id) || columns == Columns::NoMetrics && METRICS.iter().any(|(m, _)| *m == id)),
        None => !(columns == Columns::NoMetrics && METRICS.iter().any(|(_, name)| *name == field.name)),
    };
    decode_rows(container, &row_type, &keep, |rows| decoder.decode(&rows))?;
    Ok(decoder.entries)
}

/// For each field of the spec, where it stands in the manifest's partition record: found by partition field id, which
/// the Avro schema gives, or else the header's spec by name. `None` for a void field.
fn partition_indexes(
    container: &Container<'_>,
    row_type: &AvroType,
    spec: &PartitionSpec,
) -> Result<Vec<Option<usize>>> {
    let nested = |fields: &'_ [AvroField], id: i32, name: &str| {
        fields.iter().position(|f| f.id == Some(id) || f.id.is_none() && f.name == name)
    };
    let entry = row_type.fields();
    let file = nested(entry, 2, "data_file").and_then(|i| entry.get(i)).map_or(&[][..], |f| f.field_type.fields());
    let partition = nested(file, 102, "partition").and_then(|i| file.get(i));
    let partition = partition.map_or(&[][..], |f| f.field_type.fields());
    let header: Option<Value> = container.get("partition-spec").and_then(|json| serde_json::from_str(json).ok());
    let header_id = |field: &AvroField| {
        let fields = header.as_ref().and_then(|h| h.as_array().or_else(|| h.get("fields")?.as_array()))?;
        let named = |f: &&Value| {
            let name = f.get("name").and_then(Value::as_str).unwrap_or_default();
            name == field.name || super::layout::avro_name(name) == field.name
        };
        fields.iter().find(named)?.get("field-id")?.as_i64().and_then(|id| i32::try_from(id).ok())
    };
    let ids: Vec<Option<i32>> = partition.iter().map(|f| f.id.or_else(|| header_id(f))).collect();
    let mut indexes = Vec::with_capacity(spec.fields.len());
    for field in &spec.fields {
        let index = ids.iter().position(|id| *id == Some(field.field_id));
        if index.is_none() && field.transform != Transform::Void {
            return Err(Error::data_invalid(format!(
                "partition field {} ({}) of spec {} is missing",
                field.name, field.field_id, spec.spec_id
            )));
        }
        let has_values = |i: &usize| partition.get(*i).is_some_and(|f| !f.field_type.is_void());
        indexes.push(index.filter(|_| field.transform != Transform::Void).filter(has_values));
    }
    Ok(indexes)
}

/// State of decoding one manifest.
struct EntryDecoder<'a> {
    manifest: &'a ManifestFile,
    spec: &'a PartitionSpec,
    partition_type: &'a StructType,
    partition_indexes: Vec<Option<usize>>,
    /// Row id of the next file that has none; `None` when the manifest gives none.
    next_row_id: Option<u64>,
    last_tuple: PartitionTuple,
    entries: Vec<ManifestEntry>,
}

impl<'a> EntryDecoder<'a> {
    fn decode(&mut self, rows: &Rows<'_>) -> Result<()> {
        let entry = EntryColumns::new(rows)?;
        let file_rows = rows.record(2, "data_file")?;
        let file = FileColumns::new(&file_rows)?;
        let partition = self.partition_columns(&file_rows)?;
        self.entries.reserve(rows.len());
        for row in 0..rows.len() {
            if file_rows.array.is_null(row) {
                return Err(Error::data_invalid(format!("row {row}: required field data_file is missing")));
            }
            let status = match entry.status.get(row) {
                Some(0) => EntryStatus::Existing,
                Some(1) => EntryStatus::Added,
                Some(2) => EntryStatus::Deleted,
                other => return Err(Error::data_invalid(format!("row {row}: status {other:?} is not 0, 1 or 2"))),
            };
            let tuple = self.tuple(&partition, row)?;
            let key = PartitionKey { spec_id: self.spec.spec_id, tuple };
            let mut data_file = file.get(row, key, self.manifest.content)?;
            self.inherit_row_id(status, &mut data_file);
            let sequence_number = self.inherited(status, entry.sequence_number.get(row));
            if sequence_number.is_none() && status == EntryStatus::Existing && self.manifest.sequence_number.is_some() {
                return Err(Error::data_invalid(format!("row {row}: an existing entry has no sequence number")));
            }
            self.entries.push(ManifestEntry {
                status,
                snapshot_id: Some(entry.snapshot_id.get(row).unwrap_or(self.manifest.added_snapshot_id)),
                sequence_number,
                file_sequence_number: self.inherited(status, entry.file_sequence_number.get(row)),
                data_file: Arc::new(data_file),
            });
        }
        Ok(())
    }

    /// Only added entries inherit a sequence number; where the manifest is of a v1 table, all have 0.
    fn inherited(&self, status: EntryStatus, stored: Option<i64>) -> Option<i64> {
        let inherit = status == EntryStatus::Added || self.manifest.sequence_number == Some(0);
        stored.or_else(|| self.manifest.sequence_number.filter(|_| inherit))
    }

    /// Deleted files neither get a row id nor use any up.
    fn inherit_row_id(&mut self, status: EntryStatus, file: &mut DataFile) {
        match &mut self.next_row_id {
            None => file.first_row_id = None,
            Some(next) if file.first_row_id.is_none() && status != EntryStatus::Deleted => {
                file.first_row_id = Some(*next);
                *next = next.saturating_add(file.record_count);
            }
            Some(_) => {}
        }
    }

    fn partition_columns(&self, file: &Rows<'_>) -> Result<Vec<Option<PartitionColumn<'a>>>> {
        if self.partition_indexes.iter().all(Option::is_none) {
            return Ok(self.partition_indexes.iter().map(|_| None).collect());
        }
        let partition = file.record(102, "partition")?;
        let typed = self.partition_indexes.iter().zip(&self.partition_type.fields);
        typed
            .map(|(index, field)| match index.and_then(|i| partition.column(i)) {
                Some(column) => PartitionColumn::new(column, field).map(Some),
                None => Ok(None),
            })
            .collect()
    }

    /// Files of one partition stand together mostly, so they share the tuple.
    fn tuple(&mut self, columns: &[Option<PartitionColumn<'_>>], row: usize) -> Result<PartitionTuple> {
        let mut values: Vec<Option<Literal>> = Vec::with_capacity(columns.len());
        for column in columns {
            values.push(match column {
                Some(column) => column.get(row)?,
                None => None,
            });
        }
        if *self.last_tuple.0 != values[..] {
            self.last_tuple = PartitionTuple(values.into());
        }
        Ok(self.last_tuple.clone())
    }
}

struct EntryColumns {
    status: Longs,
    snapshot_id: Longs,
    sequence_number: Longs,
    file_sequence_number: Longs,
}

impl EntryColumns {
    fn new(rows: &Rows<'_>) -> Result<Self> {
        Ok(Self {
            status: rows.longs(0, "status")?,
            snapshot_id: rows.longs(1, "snapshot_id")?,
            sequence_number: rows.longs(3, "sequence_number")?,
            file_sequence_number: rows.longs(4, "file_sequence_number")?,
        })
    }
}

struct FileColumns {
    content: Longs,
    file_path: Texts,
    file_format: Texts,
    record_count: Longs,
    file_size_in_bytes: Longs,
    column_sizes: Maps<Longs>,
    value_counts: Maps<Longs>,
    null_value_counts: Maps<Longs>,
    nan_value_counts: Maps<Longs>,
    lower_bounds: Maps<Bytes>,
    upper_bounds: Maps<Bytes>,
    key_metadata: Bytes,
    split_offsets: LongLists,
    equality_ids: LongLists,
    sort_order_id: Longs,
    first_row_id: Longs,
    referenced_data_file: Texts,
    content_offset: Longs,
    content_size_in_bytes: Longs,
}

impl FileColumns {
    fn new(rows: &Rows<'_>) -> Result<Self> {
        let counts = |id, name| rows.maps(id, name, |column| Longs::new(Some(column), "value"));
        let bounds = |id, name| rows.maps(id, name, |column| Bytes::new(Some(column), "value"));
        Ok(Self {
            content: rows.longs(134, "content")?,
            file_path: rows.texts(100, "file_path")?,
            file_format: rows.texts(101, "file_format")?,
            record_count: rows.longs(103, "record_count")?,
            file_size_in_bytes: rows.longs(104, "file_size_in_bytes")?,
            column_sizes: counts(108, "column_sizes")?,
            value_counts: counts(109, "value_counts")?,
            null_value_counts: counts(110, "null_value_counts")?,
            nan_value_counts: counts(137, "nan_value_counts")?,
            lower_bounds: bounds(125, "lower_bounds")?,
            upper_bounds: bounds(128, "upper_bounds")?,
            key_metadata: rows.bytes(131, "key_metadata")?,
            split_offsets: rows.lists(132, "split_offsets")?,
            equality_ids: rows.lists(135, "equality_ids")?,
            sort_order_id: rows.longs(140, "sort_order_id")?,
            first_row_id: rows.longs(142, "first_row_id")?,
            referenced_data_file: rows.texts(143, "referenced_data_file")?,
            content_offset: rows.longs(144, "content_offset")?,
            content_size_in_bytes: rows.longs(145, "content_size_in_bytes")?,
        })
    }

    fn get(&self, row: usize, partition: PartitionKey, manifest: ManifestContent) -> Result<DataFile> {
        let content = match (self.content.get(row).unwrap_or(0), manifest) {
            (0, ManifestContent::Data) => DataContent::Data,
            (1, ManifestContent::Deletes) => DataContent::PositionDeletes,
            (2, ManifestContent::Deletes) => DataContent::EqualityDeletes,
            (other, _) => {
                return Err(Error::data_invalid(format!(
                    "row {row}: content {other} does not belong into a manifest of {manifest:?}"
                )));
            }
        };
        let format = required(self.file_format.get(row), "file_format", row)?;
        let file_format = FORMATS
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(format))
            .map(|(format, _)| *format)
            .ok_or_else(|| Error::data_invalid(format!("row {row}: unknown file_format {format:?}")))?;
        let path = required(self.file_path.get(row), "file_path", row)?;
        let optional = |column: &Longs, name| match column.get(row) {
            None => Ok(None),
            value => number(value, name, row).map(Some),
        };
        let mut file = DataFile::new(content, path, file_format, partition);
        file.record_count = number(self.record_count.get(row), "record_count", row)?;
        file.file_size_in_bytes = number(self.file_size_in_bytes.get(row), "file_size_in_bytes", row)?;
        file.column_sizes = counts(&self.column_sizes, row);
        file.value_counts = counts(&self.value_counts, row);
        file.null_value_counts = counts(&self.null_value_counts, row);
        file.nan_value_counts = counts(&self.nan_value_counts, row);
        file.lower_bounds = bounds(&self.lower_bounds, row);
        file.upper_bounds = bounds(&self.upper_bounds, row);
        file.key_metadata = self.key_metadata.get(row).map(Into::into);
        file.split_offsets = self.split_offsets.get(row).collect();
        for id in self.equality_ids.get(row) {
            file.equality_ids.push(number(Some(id), "equality_ids", row)?);
        }
        file.sort_order_id = optional(&self.sort_order_id, "sort_order_id")?
            .map(|id: u64| i32::try_from(id))
            .transpose()
            .map_err(|_| Error::data_invalid(format!("row {row}: sort_order_id is out of range")))?;
        file.first_row_id = optional(&self.first_row_id, "first_row_id")?;
        file.referenced_data_file = self.referenced_data_file.get(row).map(Into::into);
        file.content_offset = optional(&self.content_offset, "content_offset")?;
        file.content_size_in_bytes = optional(&self.content_size_in_bytes, "content_size_in_bytes")?;
        Ok(file)
    }
}

/// Formats by the name that manifests give them, in any case.
pub(super) const FORMATS: [(FileFormat, &str); 4] = [
    (FileFormat::Parquet, "PARQUET"),
    (FileFormat::Avro, "AVRO"),
    (FileFormat::Orc, "ORC"),
    (FileFormat::Puffin, "PUFFIN"),
];

/// A map of counts. A negative one says that the writer did not count.
fn counts(maps: &Maps<Longs>, row: usize) -> ColumnMap<u64> {
    maps.get(row, |values, i| u64::try_from(values.get(i)?).ok())
}

fn bounds(maps: &Maps<Bytes>, row: usize) -> ColumnMap<Box<[u8]>> {
    maps.get(row, |values, i| values.get(i).map(Into::into))
}
