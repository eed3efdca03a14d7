//! Reading and writing manifest lists.

use arrow::array::Array;
use serde_json::Value;

use super::decode::{Rows, decode_rows, item_range};
use super::encode::{Header, encode_manifest_list};
use super::{FieldSummary, ManifestContent, ManifestFile};
use crate::spec::FormatVersion;
use crate::spec::avro::{AvroType, Container};
use crate::{Error, Result};

/// Reads a manifest list of any format version. `path` only names it in errors. Fields are found by field id, so legacy
/// names (`added_data_files_count`) do not matter; a v1 list's manifests have content data and sequence numbers 0.
///
/// # Errors
/// [`crate::ErrorKind::DataInvalid`] for a damaged file or one without a required field;
/// [`crate::ErrorKind::Unsupported`] for a codec we do not know.
pub fn read_manifest_list(bytes: &[u8], path: &str) -> Result<Vec<ManifestFile>> {
    read(bytes).map_err(|e| e.with_context("manifest list", path))
}

fn read(bytes: &[u8]) -> Result<Vec<ManifestFile>> {
    let container = Container::open(bytes)?;
    let row_type = row_type(&container)?;
    let mut manifests = Vec::new();
    decode_rows(container, &row_type, &|_| true, |rows| read_rows(&rows, &mut manifests))?;
    Ok(manifests)
}

/// The row type that a container's header gives.
pub(super) fn row_type(container: &Container<'_>) -> Result<std::sync::Arc<AvroType>> {
    let json = container.get("avro.schema").ok_or_else(|| Error::data_invalid("Avro header: no avro.schema"))?;
    let json: Value = serde_json::from_str(json)
        .map_err(|e| Error::data_invalid("Avro header: avro.schema is not JSON").with_source(e))?;
    AvroType::parse(&json).map_err(|e| Error::data_invalid(format!("Avro schema: {e}")))
}

fn read_rows(rows: &Rows<'_>, manifests: &mut Vec<ManifestFile>) -> Result<()> {
    let manifest_path = rows.texts(500, "manifest_path")?;
    let manifest_length = rows.longs(501, "manifest_length")?;
    let partition_spec_id = rows.longs(502, "partition_spec_id")?;
    let content = rows.longs(517, "content")?;
    let sequence_number = rows.longs(515, "sequence_number")?;
    let min_sequence_number = rows.longs(516, "min_sequence_number")?;
    let added_snapshot_id = rows.longs(503, "added_snapshot_id")?;
    let file_counts = [
        rows.longs(504, "added_files_count")?,
        rows.longs(505, "existing_files_count")?,
        rows.longs(506, "deleted_files_count")?,
    ];
    let row_counts = [
        rows.longs(512, "added_rows_count")?,
        rows.longs(513, "existing_rows_count")?,
        rows.longs(514, "deleted_rows_count")?,
    ];
    let partitions = rows.record_lists(507, "partitions")?;
    let key_metadata = rows.bytes(519, "key_metadata")?;
    let first_row_id = rows.longs(520, "first_row_id")?;
    let summaries = match &partitions {
        Some((_, rows)) => read_summaries(rows)?,
        None => Vec::new(),
    };
    for row in 0..rows.len() {
        // Java writes -1 for a count it does not know.
        let count = |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok());
        let file_count = |value: Option<i64>| value.and_then(|v| u32::try_from(v).ok());
        let [added_files_count, existing_files_count, deleted_files_count] =
            file_counts.each_ref().map(|c| file_count(c.get(row)));
        let [added_rows_count, existing_rows_count, deleted_rows_count] =
            row_counts.each_ref().map(|c| count(c.get(row)));
        manifests.push(ManifestFile {
            manifest_path: required(manifest_path.get(row), "manifest_path", row)?.to_owned(),
            manifest_length: number(manifest_length.get(row), "manifest_length", row)?,
            partition_spec_id: number(partition_spec_id.get(row), "partition_spec_id", row)?,
            content: match content.get(row).unwrap_or(0) {
                0 => ManifestContent::Data,
                1 => ManifestContent::Deletes,
                other => return Err(Error::data_invalid(format!("row {row}: content {other} is not 0 or 1"))),
            },
            sequence_number: Some(sequence_number.get(row).unwrap_or(0)),
            min_sequence_number: Some(min_sequence_number.get(row).unwrap_or(0)),
            added_snapshot_id: required(added_snapshot_id.get(row), "added_snapshot_id", row)?,
            added_files_count,
            existing_files_count,
            deleted_files_count,
            added_rows_count,
            existing_rows_count,
            deleted_rows_count,
            partitions: partitions.as_ref().and_then(|(list, _)| {
                let range = item_range(list, row);
                list.is_valid(row).then(|| summaries.get(range).unwrap_or_default().to_vec())
            }),
            key_metadata: key_metadata.get(row).map(Into::into),
            first_row_id: match first_row_id.get(row) {
                None => None,
                value => Some(number(value, "first_row_id", row)?),
            },
        });
    }
    Ok(())
}

fn read_summaries(rows: &Rows<'_>) -> Result<Vec<FieldSummary>> {
    let contains_null = rows.booleans(509, "contains_null")?;
    let contains_nan = rows.booleans(518, "contains_nan")?;
    let lower_bound = rows.bytes(510, "lower_bound")?;
    let upper_bound = rows.bytes(511, "upper_bound")?;
    let summary = |row| FieldSummary {
        // Absent is not known, and true is what keeps a manifest.
        contains_null: contains_null.get(row).unwrap_or(true),
        contains_nan: contains_nan.get(row),
        lower_bound: lower_bound.get(row).map(Into::into),
        upper_bound: upper_bound.get(row).map(Into::into),
    };
    Ok((0..rows.len()).map(summary).collect())
}

/// A value that the specification requires.
pub(super) fn required<T>(value: Option<T>, name: &str, row: usize) -> Result<T> {
    value.ok_or_else(|| Error::data_invalid(format!("row {row}: required field {name} is missing")))
}

/// A required number within the range of `T`.
pub(super) fn number<T: TryFrom<i64>>(value: Option<i64>, name: &str, row: usize) -> Result<T> {
    let value = required(value, name, row)?;
    T::try_from(value).map_err(|_| Error::data_invalid(format!("row {row}: {name} {value} is out of range")))
}

/// Writes the manifest list of a snapshot. `manifests` have their sequence numbers and row ids (see
/// [`assign_list_inheritance`]); `first_row_id` is the snapshot's own from v3 on, recorded in the header.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] for a manifest that the version cannot hold: delete manifests in v1, and from v2
/// on a manifest without sequence numbers or counts.
pub fn write_manifest_list(
    format_version: FormatVersion,
    snapshot_id: i64,
    parent_snapshot_id: Option<i64>,
    sequence_number: i64,
    first_row_id: Option<u64>,
    manifests: &[ManifestFile],
) -> Result<Vec<u8>> {
    let refuse = |manifest: &ManifestFile, what: &str| {
        Error::invalid_input(format!("manifest {} {what}", manifest.manifest_path))
    };
    for manifest in manifests {
        if format_version == FormatVersion::V1 {
            if manifest.content == ManifestContent::Deletes {
                return Err(refuse(manifest, "holds deletes, which a v1 table cannot have"));
            }
            continue;
        }
        if manifest.sequence_number.is_none() || manifest.min_sequence_number.is_none() {
            return Err(refuse(manifest, "has no sequence number yet"));
        }
        let files = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
        let rows = [manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count];
        if files.contains(&None) || rows.contains(&None) {
            return Err(refuse(manifest, "has unknown counts (added_rows_count and others): count its entries first"));
        }
    }
    let mut header = Header::default();
    header.push("snapshot-id", snapshot_id.to_string());
    header.push("parent-snapshot-id", parent_snapshot_id.map_or("null".into(), |id| id.to_string()));
    if format_version >= FormatVersion::V2 {
        header.push("sequence-number", sequence_number.to_string());
    }
    if format_version >= FormatVersion::V3 {
        header.push("first-row-id", first_row_id.map_or("null".into(), |id| id.to_string()));
    }
    encode_manifest_list(format_version, header, manifests)
}

/// Gives manifests that were just written their sequence numbers, and data manifests without one their first row id.
/// Returns the number of row ids taken, by which the table's next row id advances.
///
/// `sequence_number` is the commit's; `next_row_id` is the table's at this attempt, `None` before v3. A manifest
/// carried over keeps what it has. A manifest takes the rows of its added and existing files; one whose counts are
/// unknown (v1) takes no row ids.
pub fn assign_list_inheritance(manifests: &mut [ManifestFile], sequence_number: i64, next_row_id: Option<u64>) -> u64 {
    let mut assigned = 0u64;
    for manifest in manifests {
        manifest.sequence_number.get_or_insert(sequence_number);
        manifest.min_sequence_number.get_or_insert(sequence_number);
        let (Some(start), ManifestContent::Data, None) = (next_row_id, manifest.content, manifest.first_row_id) else {
            continue;
        };
        if let (Some(added), Some(existing)) = (manifest.added_rows_count, manifest.existing_rows_count) {
            manifest.first_row_id = Some(start.saturating_add(assigned));
            assigned = assigned.saturating_add(added).saturating_add(existing);
        }
    }
    assigned
}
