//! Writing table metadata, strictly: every field the version requires, none that it does not know.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{FormatVersion, TableMetadata};
use crate::spec::json;
use crate::{Error, Result};

impl TableMetadata {
    /// The metadata file, uncompressed. Members are sorted by name, so equal metadata gives equal bytes.
    pub fn to_json_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.to_json()?).map_err(|e| Error::internal("cannot write table metadata").with_source(e))
    }

    /// The metadata file as one gzip member; such a file is to be named `….gz.metadata.json`.
    pub fn to_gzip_bytes(&self) -> Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder
            .write_all(&self.to_json_bytes()?)
            .and_then(|()| encoder.finish())
            .map_err(|e| Error::internal("cannot compress table metadata").with_source(e))
    }

    /// The metadata as JSON. Unknown fields that were read are written back.
    pub fn to_json(&self) -> Result<Value> {
        let version = self.format_version;
        let v1 = version == FormatVersion::V1;
        let v3 = version >= FormatVersion::V3;
        // Old Java versions need the field; the reference implementation writes -1 before v3 and null from there on.
        let no_snapshot = if v3 { Value::Null } else { json!(-1) };
        let snapshots: Vec<Value> = self.snapshots.iter().map(|s| s.to_json(version)).collect();
        let snapshot_log = self.snapshot_log.iter().map(|(ms, id)| json!({"timestamp-ms": ms, "snapshot-id": id}));
        let metadata_log =
            self.metadata_log.iter().map(|(ms, file)| json!({"timestamp-ms": ms, "metadata-file": file}));
        let refs = self.refs.iter().map(|(name, r)| (name.clone(), r.to_json())).collect();

        let mut object = self.extra.clone();
        object.extend(json::object([
            ("format-version", Some(json!(version.number()))),
            ("table-uuid", self.table_uuid.map(|uuid| json!(uuid.to_string()))),
            ("location", Some(json!(self.location))),
            ("last-sequence-number", (!v1).then(|| json!(self.last_sequence_number))),
            ("last-updated-ms", Some(json!(self.last_updated_ms))),
            ("last-column-id", Some(json!(self.last_column_id))),
            ("schema", if v1 { Some(self.current_schema()?.to_json()) } else { None }),
            ("current-schema-id", Some(json!(self.current_schema_id))),
            ("schemas", Some(self.schemas.iter().map(|s| s.to_json()).collect())),
            ("partition-spec", if v1 { Some(self.default_spec()?.fields_json()) } else { None }),
            ("default-spec-id", Some(json!(self.default_spec_id))),
            ("partition-specs", Some(self.partition_specs.iter().map(|s| s.to_json()).collect())),
            ("last-partition-id", Some(json!(self.last_partition_id))),
            ("default-sort-order-id", Some(json!(self.default_sort_order_id))),
            ("sort-orders", Some(self.sort_orders.iter().map(|o| o.to_json()).collect())),
            ("properties", Some(json::from_string_map(&self.properties))),
            ("current-snapshot-id", Some(self.current_snapshot_id.map_or(no_snapshot, |id| json!(id)))),
            ("next-row-id", v3.then(|| json!(self.next_row_id))),
            ("refs", Some(Value::Object(refs))),
            ("snapshots", Some(Value::Array(snapshots))),
            ("statistics", Some(json!(self.statistics))),
            ("partition-statistics", Some(json!(self.partition_statistics))),
            ("encryption-keys", (!self.encryption_keys.is_empty()).then(|| json!(self.encryption_keys))),
            ("snapshot-log", Some(snapshot_log.collect())),
            ("metadata-log", Some(metadata_log.collect())),
        ]));
        Ok(Value::Object(object))
    }
}
