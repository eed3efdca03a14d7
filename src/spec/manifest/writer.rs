//! Writing manifests.

use super::encode::{Header, encode_manifest};
use super::{FieldSummary, ManifestContent, ManifestFile};
use crate::spec::data_file::{DataContent, EntryStatus, ManifestEntry};
use crate::spec::{FormatVersion, Literal, PartitionSpec, Schema, StructType};
use crate::{Error, Result};

/// Collects entries of one spec and content, and writes them as one manifest.
#[derive(Debug)]
pub struct ManifestWriter {
    format_version: FormatVersion,
    spec: PartitionSpec,
    partition_type: StructType,
    schema_id: i32,
    schema: String,
    content: ManifestContent,
    snapshot_id: i64,
    entries: Vec<ManifestEntry>,
}

impl ManifestWriter {
    /// A manifest without entries. `partition_type` is `spec`'s, field for field; `schema` is recorded in the header;
    /// `snapshot_id` is that of the snapshot that adds the manifest.
    pub fn new(
        format_version: FormatVersion,
        spec: &PartitionSpec,
        partition_type: &StructType,
        schema: &Schema,
        content: ManifestContent,
        snapshot_id: i64,
    ) -> Self {
        Self {
            format_version,
            spec: spec.clone(),
            partition_type: partition_type.clone(),
            schema_id: schema.schema_id,
            schema: schema.to_json().to_string(),
            content,
            snapshot_id,
            entries: Vec::new(),
        }
    }

    /// Adds an entry: status, snapshot id and sequence numbers are written as given, null where `None`. An added file's
    /// first row id is not written, since it takes one from the manifest.
    pub fn add(&mut self, entry: ManifestEntry) {
        self.entries.push(entry);
    }

    /// Number of entries so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The file's bytes, and its entry for the manifest list: counts, summaries and length filled in. Its sequence
    /// number, first row id, and the smallest sequence number when no live entry has an explicit one, stay open for
    /// [`super::assign_list_inheritance`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for an entry that does not belong into the manifest (spec, content, format
    /// version), misses a sequence number it cannot inherit, or has a value that does not fit its field.
    pub fn finish(self, path: &str) -> Result<(Vec<u8>, ManifestFile)> {
        let snapshot_id = self.snapshot_id;
        self.finish_inner(path)
            .map_err(|e| e.with_context("manifest", path).with_context("snapshot", snapshot_id.to_string()))
    }

    fn finish_inner(self, path: &str) -> Result<(Vec<u8>, ManifestFile)> {
        if self.format_version == FormatVersion::V1 && self.content == ManifestContent::Deletes {
            return Err(Error::invalid_input("a v1 table cannot have delete files"));
        }
        for entry in &self.entries {
            self.check(entry).map_err(|what| {
                Error::invalid_input(format!("manifest entry of {}: {what}", entry.data_file.file_path))
            })?;
        }
        let mut header = Header::default();
        header.push("schema", self.schema.clone());
        header.push("schema-id", self.schema_id.to_string());
        header.push("partition-spec", self.spec.fields_json().to_string());
        header.push("partition-spec-id", self.spec.spec_id.to_string());
        if self.format_version >= FormatVersion::V2 {
            let content = if self.content == ManifestContent::Data { "data" } else { "deletes" };
            header.push("content", content.to_owned());
        }
        let bytes = encode_manifest(self.format_version, header, &self.partition_type, &self.entries)?;
        let length = bytes.len() as u64;
        Ok((bytes, self.manifest_file(path, length)?))
    }

    /// Says what is wrong with an entry.
    fn check(&self, entry: &ManifestEntry) -> Result<(), String> {
        let file = &entry.data_file;
        let is_data = file.content == DataContent::Data;
        if is_data != (self.content == ManifestContent::Data) {
            return Err(format!("{:?} in a manifest of {:?}", file.content, self.content));
        }
        if file.spec_id != self.spec.spec_id {
            return Err(format!("is of partition spec {}, the manifest of {}", file.spec_id, self.spec.spec_id));
        }
        if file.partition.0.len() != self.partition_type.fields.len() {
            return Err(format!(
                "{} partition values for {} fields",
                file.partition.0.len(),
                self.partition_type.fields.len()
            ));
        }
        if self.format_version >= FormatVersion::V2
            && entry.status != EntryStatus::Added
            && entry.sequence_number.is_none()
        {
            return Err("has no sequence number and is not added".into());
        }
        if file.is_deletion_vector() {
            if self.format_version < FormatVersion::V3 {
                return Err("a deletion vector needs format version 3".into());
            }
            if file.referenced_data_file.is_none()
                || file.content_offset.is_none()
                || file.content_size_in_bytes.is_none()
            {
                return Err("a deletion vector without referenced data file, offset or size".into());
            }
        }
        Ok(())
    }

    fn manifest_file(&self, path: &str, manifest_length: u64) -> Result<ManifestFile> {
        let (mut files, mut rows) = ([0u32; 3], [0u64; 3]);
        for entry in &self.entries {
            let slot = match entry.status {
                EntryStatus::Added => 0,
                EntryStatus::Existing => 1,
                EntryStatus::Deleted => 2,
            };
            files[slot] = files[slot].saturating_add(1);
            rows[slot] = rows[slot].saturating_add(entry.data_file.record_count);
        }
        let min_sequence_number = match self.format_version {
            FormatVersion::V1 => Some(0),
            _ => self.entries.iter().filter(|e| e.is_live()).filter_map(|e| e.sequence_number).min(),
        };
        let [added_files_count, existing_files_count, deleted_files_count] = files.map(Some);
        let [added_rows_count, existing_rows_count, deleted_rows_count] = rows.map(Some);
        Ok(ManifestFile {
            manifest_path: path.to_owned(),
            manifest_length,
            partition_spec_id: self.spec.spec_id,
            content: self.content,
            sequence_number: (self.format_version == FormatVersion::V1).then_some(0),
            min_sequence_number,
            added_snapshot_id: self.snapshot_id,
            added_files_count,
            existing_files_count,
            deleted_files_count,
            added_rows_count,
            existing_rows_count,
            deleted_rows_count,
            partitions: Some((0..self.partition_type.fields.len()).map(|i| self.summary(i)).collect()),
            key_metadata: None,
            first_row_id: None,
        })
    }

    /// Summary of one partition field over all entries, deleted ones included.
    fn summary(&self, index: usize) -> FieldSummary {
        let mut summary =
            FieldSummary { contains_null: false, contains_nan: Some(false), lower_bound: None, upper_bound: None };
        let (mut lower, mut upper): (Option<&Literal>, Option<&Literal>) = (None, None);
        for entry in &self.entries {
            match entry.data_file.partition.0.get(index).and_then(Option::as_ref) {
                None => summary.contains_null = true,
                Some(value) if value.is_nan() => summary.contains_nan = Some(true),
                Some(value) => {
                    if lower.is_none_or(|l| value.compare(l).is_some_and(|o| o.is_lt())) {
                        lower = Some(value);
                    }
                    if upper.is_none_or(|u| value.compare(u).is_some_and(|o| o.is_gt())) {
                        upper = Some(value);
                    }
                }
            }
        }
        summary.lower_bound = lower.map(|v| zero_as(v, -0.0).to_bytes().into());
        summary.upper_bound = upper.map(|v| zero_as(v, 0.0).to_bytes().into());
        summary
    }
}

/// A float zero with the sign of `zero`: others order -0.0 before 0.0, so a bound must take in both.
fn zero_as(value: &Literal, zero: f64) -> Literal {
    match value {
        Literal::Float(0.0) => Literal::Float(zero as f32),
        Literal::Double(0.0) => Literal::Double(zero),
        other => other.clone(),
    }
}
