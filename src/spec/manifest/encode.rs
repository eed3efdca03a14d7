//! From manifest entries and manifest files to Avro containers.
//!
//! arrow-avro encodes the rows under the physical schema (see [`super::avro_type`]), whose bytes are those of the
//! logical one; the header carries the logical schema with field ids. Invariant: equal input gives equal bytes.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema as ArrowSchema};
use arrow_avro::schema::SCHEMA_METADATA_KEY;
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroBinaryFormat;

use super::layout::{avro_schema, manifest_entry_type, manifest_file_type};
use super::partition_value::partition_array;
use super::reader::FORMATS;
use super::{FieldSummary, ManifestContent, ManifestFile};
use crate::spec::avro::{AvroField, AvroType, Kind, physical_name, write_container};
use crate::spec::data_file::ColumnMap;
use crate::spec::{DataContent, DataFile, EntryStatus, FormatVersion, ManifestEntry, Schema, StructType};
use crate::{Error, Result};

/// Rows that are encoded at once.
const BATCH_ROWS: usize = 8192;
/// What v1's required and meaningless block size always is.
const BLOCK_SIZE_IN_BYTES: i64 = 64 * 1024 * 1024;

/// Keys of a container's header.
#[derive(Debug, Default)]
pub(super) struct Header(Vec<(&'static str, String)>);

impl Header {
    pub(super) fn push(&mut self, key: &'static str, value: String) {
        self.0.push((key, value));
    }
}

/// Encodes a manifest list.
pub(super) fn encode_manifest_list(
    version: FormatVersion,
    header: Header,
    manifests: &[ManifestFile],
) -> Result<Vec<u8>> {
    encode(version, header, &manifest_file_type(version), "manifest_file", manifests, &manifest_file_column)
}

/// Encodes a manifest.
pub(super) fn encode_manifest(
    version: FormatVersion,
    header: Header,
    partition_type: &StructType,
    entries: &[ManifestEntry],
) -> Result<Vec<u8>> {
    let row_type = manifest_entry_type(version, partition_type);
    encode(version, header, &row_type, "manifest_entry", entries, &|field, entries| {
        entry_column(field, entries, partition_type)
    })
}

/// Makes the column of one field from rows.
type ColumnOf<'a, T> = &'a dyn Fn(&AvroField, &[T]) -> Result<ArrayRef>;

fn encode<T>(
    version: FormatVersion,
    mut header: Header,
    row_type: &StructType,
    name: &str,
    rows: &[T],
    column: ColumnOf<'_, T>,
) -> Result<Vec<u8>> {
    let logical = avro_schema(row_type, name);
    let tree = AvroType::parse(&logical).map_err(|e| Error::invalid_input(format!("partition type: {e}")))?;
    header.push("format-version", version.number().to_string());
    header.push("avro.schema", logical.to_string());
    header.push(
        "iceberg.schema",
        Schema { schema_id: 0, fields: row_type.clone(), identifier_field_ids: vec![] }.to_json().to_string(),
    );
    let failed = |e: &dyn std::fmt::Display| Error::internal(format!("cannot encode Avro rows: {e}"));
    let fields = record_fields(&tree);
    let physical = tree.physical_json(&|_| true).to_string();
    let schema = ArrowSchema::new_with_metadata(fields, [(SCHEMA_METADATA_KEY.to_owned(), physical)].into());
    let mut encoder = WriterBuilder::new(schema).build_encoder::<AvroBinaryFormat>().map_err(|e| failed(&e))?;
    let schema = encoder.schema();
    let (mut data, mut ends) = (Vec::new(), Vec::with_capacity(rows.len()));
    for rows in rows.chunks(BATCH_ROWS) {
        let columns = tree.physical_fields().map(|(_, f)| column(f, rows)).collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|e| failed(&e))?;
        encoder.encode(&batch).map_err(|e| failed(&e))?;
        let encoded = encoder.flush();
        ends.extend(encoded.offsets().iter().skip(1).map(|end| data.len() + end));
        data.extend_from_slice(encoded.bytes());
    }
    let header: Vec<(&str, &str)> = header.0.iter().map(|(k, v)| (*k, v.as_str())).collect();
    write_container(&header, &data, &ends).map_err(|e| failed(&e))
}

/// The Arrow field of a record's field, named by position.
fn arrow_field(index: usize, avro: &AvroType) -> Field {
    Field::new(physical_name(index), arrow_type(avro), matches!(avro.kind, Kind::Union(_)))
}

fn arrow_type(avro: &AvroType) -> DataType {
    match &avro.non_null().kind {
        // The schemas written here have no other unions, and no enums and maps.
        Kind::Null | Kind::Union(_) | Kind::Enum(_) | Kind::Map(_) => DataType::Null,
        Kind::Boolean => DataType::Boolean,
        Kind::Int => DataType::Int32,
        Kind::Long => DataType::Int64,
        Kind::Float => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::Bytes => DataType::Binary,
        Kind::String => DataType::Utf8,
        Kind::Fixed(size) => DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)),
        Kind::Array(item) => DataType::List(item_field(item)),
        Kind::Record(_) => DataType::Struct(record_fields(avro)),
    }
}

fn item_field(item: &AvroType) -> Arc<Field> {
    Arc::new(Field::new("item", arrow_type(item), matches!(item.kind, Kind::Union(_))))
}

fn record_fields(avro: &AvroType) -> Fields {
    avro.physical_fields().map(|(i, f)| arrow_field(i, &f.field_type)).collect()
}

/// A column of records, all there.
fn record_array(avro: &AvroType, columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    StructArray::try_new(record_fields(avro), columns, None).map(|a| Arc::new(a) as ArrayRef).map_err(mismatch)
}

fn mismatch(error: arrow::error::ArrowError) -> Error {
    Error::internal("manifest columns do not match their schema").with_source(error)
}

/// A list column; a row of `None` is null. `items` are those of all rows one after the other.
fn list_array(
    avro: &AvroType,
    lengths: impl Iterator<Item = Option<usize>> + Clone,
    items: ArrayRef,
) -> Result<ArrayRef> {
    let Kind::Array(item) = &avro.non_null().kind else {
        return Err(Error::internal("a list column for a field that is no list"));
    };
    let nulls: NullBuffer = lengths.clone().map(|l| l.is_some()).collect();
    let offsets = OffsetBuffer::from_lengths(lengths.map(|l| l.unwrap_or(0)));
    ListArray::try_new(item_field(item), offsets, items, Some(nulls)).map(|a| Arc::new(a) as ArrayRef).map_err(mismatch)
}

/// Numbers for an int or long field.
fn longs(field: &AvroField, values: impl Iterator<Item = Result<Option<i64>>>) -> Result<ArrayRef> {
    let narrow = |value: Option<i64>| match value.map(i32::try_from) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => Err(Error::invalid_input(format!("{} exceeds 32 bits", field.name))),
    };
    Ok(match field.field_type.non_null().kind {
        Kind::Int => Arc::new(values.map(|v| v.and_then(narrow)).collect::<Result<Int32Array>>()?),
        _ => Arc::new(values.collect::<Result<Int64Array>>()?),
    })
}

/// A count or offset as Avro's signed long.
fn signed(field: &AvroField, value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::invalid_input(format!("{} {value} exceeds 63 bits", field.name)))
}

fn manifest_file_column(field: &AvroField, rows: &[ManifestFile]) -> Result<ArrayRef> {
    let longs_of = |value: &dyn Fn(&ManifestFile) -> Option<i64>| longs(field, rows.iter().map(|m| Ok(value(m))));
    let counts_of = |value: &dyn Fn(&ManifestFile) -> Option<u64>| {
        longs(field, rows.iter().map(|m| value(m).map(|v| signed(field, v)).transpose()))
    };
    match field.id {
        Some(500) => Ok(Arc::new(StringArray::from_iter_values(rows.iter().map(|m| &m.manifest_path)))),
        Some(501) => counts_of(&|m| Some(m.manifest_length)),
        Some(502) => longs_of(&|m| Some(m.partition_spec_id.into())),
        Some(517) => longs_of(&|m| Some(if m.content == ManifestContent::Data { 0 } else { 1 })),
        Some(515) => longs_of(&|m| m.sequence_number),
        Some(516) => longs_of(&|m| m.min_sequence_number),
        Some(503) => longs_of(&|m| Some(m.added_snapshot_id)),
        Some(504) => longs_of(&|m| m.added_files_count.map(Into::into)),
        Some(505) => longs_of(&|m| m.existing_files_count.map(Into::into)),
        Some(506) => longs_of(&|m| m.deleted_files_count.map(Into::into)),
        Some(512) => counts_of(&|m| m.added_rows_count),
        Some(513) => counts_of(&|m| m.existing_rows_count),
        Some(514) => counts_of(&|m| m.deleted_rows_count),
        Some(507) => {
            let summaries: Vec<&FieldSummary> = rows.iter().flat_map(|m| m.partitions.iter().flatten()).collect();
            let Kind::Array(item) = &field.field_type.non_null().kind else { return Err(unknown(field)) };
            let columns =
                item.physical_fields().map(|(_, f)| summary_column(f, &summaries)).collect::<Result<Vec<_>>>()?;
            let items = record_array(item, columns)?;
            list_array(&field.field_type, rows.iter().map(|m| m.partitions.as_ref().map(Vec::len)), items)
        }
        Some(519) => Ok(binaries(rows.iter().map(|m| m.key_metadata.as_deref()))),
        Some(520) => counts_of(&|m| m.first_row_id),
        _ => Err(unknown(field)),
    }
}

fn summary_column(field: &AvroField, rows: &[&FieldSummary]) -> Result<ArrayRef> {
    match field.id {
        Some(509) => Ok(Arc::new(rows.iter().map(|s| Some(s.contains_null)).collect::<BooleanArray>())),
        Some(518) => Ok(Arc::new(rows.iter().map(|s| s.contains_nan).collect::<BooleanArray>())),
        Some(510) => Ok(binaries(rows.iter().map(|s| s.lower_bound.as_deref()))),
        Some(511) => Ok(binaries(rows.iter().map(|s| s.upper_bound.as_deref()))),
        _ => Err(unknown(field)),
    }
}

fn binaries<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    Arc::new(values.collect::<BinaryArray>())
}

fn unknown(field: &AvroField) -> Error {
    Error::internal(format!("no column for the field {}", field.name))
}

fn entry_column(field: &AvroField, rows: &[ManifestEntry], partition_type: &StructType) -> Result<ArrayRef> {
    let longs_of = |value: &dyn Fn(&ManifestEntry) -> Option<i64>| longs(field, rows.iter().map(|e| Ok(value(e))));
    match field.id {
        Some(0) => longs_of(&|e| {
            Some(match e.status {
                EntryStatus::Existing => 0,
                EntryStatus::Added => 1,
                EntryStatus::Deleted => 2,
            })
        }),
        Some(1) => longs_of(&|e| e.snapshot_id),
        Some(3) => longs_of(&|e| e.sequence_number),
        Some(4) => longs_of(&|e| e.file_sequence_number),
        Some(2) => {
            let columns = field.field_type.physical_fields().map(|(_, f)| file_column(f, rows, partition_type));
            record_array(&field.field_type, columns.collect::<Result<Vec<_>>>()?)
        }
        _ => Err(unknown(field)),
    }
}

fn file_column(field: &AvroField, rows: &[ManifestEntry], partition_type: &StructType) -> Result<ArrayRef> {
    let files = || rows.iter().map(|e| &*e.data_file);
    let longs_of = |value: &dyn Fn(&DataFile) -> Option<i64>| longs(field, files().map(|f| Ok(value(f))));
    let counts_of = |value: &dyn Fn(&DataFile) -> Option<u64>| {
        longs(field, files().map(|f| value(f).map(|v| signed(field, v)).transpose()))
    };
    let count_maps = |value: fn(&DataFile) -> &ColumnMap<u64>| {
        map_array(field, files().map(value), |field, values| longs(field, values.map(|v| signed(field, *v).map(Some))))
    };
    let bound_maps = |value: fn(&DataFile) -> &ColumnMap<Box<[u8]>>| {
        map_array(field, files().map(value), |_, values| Ok(binaries(values.map(|v| Some(&**v)))))
    };
    match field.id {
        Some(134) => longs_of(&|f| {
            Some(match f.content {
                DataContent::Data => 0,
                DataContent::PositionDeletes => 1,
                DataContent::EqualityDeletes => 2,
            })
        }),
        Some(100) => Ok(Arc::new(StringArray::from_iter_values(files().map(|f| &f.file_path)))),
        Some(101) => {
            let name =
                |f: &DataFile| FORMATS.iter().find(|(format, _)| *format == f.file_format).map(|(_, name)| *name);
            Ok(Arc::new(files().map(name).collect::<StringArray>()))
        }
        Some(102) => {
            let columns = field.field_type.physical_fields().map(|(i, avro)| {
                let typed = partition_type.fields.get(i).ok_or_else(|| unknown(avro))?;
                partition_array(typed, files().map(move |f| f.partition.0.get(i).and_then(Option::as_ref)))
            });
            record_array(&field.field_type, columns.collect::<Result<Vec<_>>>()?)
        }
        Some(103) => counts_of(&|f| Some(f.record_count)),
        Some(104) => counts_of(&|f| Some(f.file_size_in_bytes)),
        Some(105) => longs_of(&|_| Some(BLOCK_SIZE_IN_BYTES)),
        Some(108) => count_maps(|f| &f.column_sizes),
        Some(109) => count_maps(|f| &f.value_counts),
        Some(110) => count_maps(|f| &f.null_value_counts),
        Some(137) => count_maps(|f| &f.nan_value_counts),
        Some(125) => bound_maps(|f| &f.lower_bounds),
        Some(128) => bound_maps(|f| &f.upper_bounds),
        Some(131) => Ok(binaries(files().map(|f| f.key_metadata.as_deref()))),
        Some(132) => {
            let items = Int64Array::from_iter_values(files().flat_map(|f| f.split_offsets.iter().copied()));
            list_array(&field.field_type, files().map(|f| some_length(f.split_offsets.len())), Arc::new(items))
        }
        Some(135) => {
            let items = Int32Array::from_iter_values(files().flat_map(|f| f.equality_ids.iter().copied()));
            list_array(&field.field_type, files().map(|f| some_length(f.equality_ids.len())), Arc::new(items))
        }
        Some(140) => longs_of(&|f| f.sort_order_id.map(Into::into)),
        // An added file takes its row id from the manifest; one it brings from elsewhere must not survive.
        Some(142) => longs(
            field,
            rows.iter().map(|e| {
                let kept = e.data_file.first_row_id.filter(|_| e.status != EntryStatus::Added);
                kept.map(|v| signed(field, v)).transpose()
            }),
        ),
        Some(143) => Ok(Arc::new(files().map(|f| f.referenced_data_file.as_deref()).collect::<StringArray>())),
        Some(144) => counts_of(&|f| f.content_offset),
        Some(145) => counts_of(&|f| f.content_size_in_bytes),
        _ => Err(unknown(field)),
    }
}

/// An empty list or map is written as null.
fn some_length(length: usize) -> Option<usize> {
    Some(length).filter(|l| *l > 0)
}

/// A column of maps: arrays of records of key and value.
fn map_array<'a, V: 'a>(
    field: &AvroField,
    maps: impl Iterator<Item = &'a ColumnMap<V>> + Clone,
    values: impl Fn(&AvroField, &mut dyn Iterator<Item = &'a V>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let Kind::Array(item) = &field.field_type.non_null().kind else { return Err(unknown(field)) };
    let [_, value_field] = item.fields() else { return Err(unknown(field)) };
    let keys = Int32Array::from_iter_values(maps.clone().flat_map(|m| m.iter().map(|(k, _)| k)));
    let values = values(value_field, &mut maps.clone().flat_map(|m| m.iter().map(|(_, v)| v)))?;
    let items = record_array(item, vec![Arc::new(keys), values])?;
    list_array(&field.field_type, maps.map(|m| some_length(m.len())), items)
}
