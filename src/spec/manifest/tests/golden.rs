//! Every manifest list and manifest of the golden tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::*;
use crate::spec::avro::Container;
use crate::spec::manifest::{
    Columns, ManifestContent, ManifestReader, ManifestWriter, assign_list_inheritance, write_manifest_list,
};
use crate::spec::{
    ColumnMap, DataContent, DataFile, EntryStatus, FileFormat, FormatVersion, Literal, ManifestEntry, PartitionKey,
};

/// A manifest of a golden table, decoded.
struct Golden {
    table: String,
    metadata: Arc<TableMetadata>,
    manifest: ManifestFile,
    bytes: Vec<u8>,
    entries: Vec<ManifestEntry>,
}

/// Every manifest of every golden table, once each.
fn golden_manifests() -> &'static [Golden] {
    static ALL: OnceLock<Vec<Golden>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for table in catalogue() {
            let metadata = Arc::new(metadata(&table));
            for (_, manifests) in manifest_lists(&metadata) {
                for manifest in manifests {
                    if seen.insert(manifest.manifest_path.clone()) {
                        let bytes = read_location(&manifest.manifest_path);
                        let entries = ManifestReader::read(&bytes, &manifest, &metadata).unwrap();
                        let (table, metadata) = (table["table"].as_str().unwrap().to_owned(), metadata.clone());
                        all.push(Golden { table, metadata, manifest, bytes, entries });
                    }
                }
            }
        }
        all
    })
}

fn tally(entries: &[ManifestEntry], status: EntryStatus) -> (Option<u32>, Option<u64>) {
    let of_status: Vec<_> = entries.iter().filter(|e| e.status == status).collect();
    (Some(of_status.len() as u32), Some(of_status.iter().map(|e| e.data_file.record_count).sum()))
}

#[test]
fn every_manifest_agrees_with_its_list() {
    for Golden { table, metadata, manifest, bytes, entries } in golden_manifests() {
        assert_eq!(bytes.len() as u64, manifest.manifest_length, "{table}");
        assert_eq!(
            tally(entries, EntryStatus::Added),
            (manifest.added_files_count, manifest.added_rows_count),
            "{table} {}",
            manifest.manifest_path
        );
        assert_eq!(
            tally(entries, EntryStatus::Existing),
            (manifest.existing_files_count, manifest.existing_rows_count)
        );
        assert_eq!(tally(entries, EntryStatus::Deleted), (manifest.deleted_files_count, manifest.deleted_rows_count));
        let sequence_numbers = entries.iter().filter(|e| e.is_live()).map(|e| e.sequence_number.unwrap());
        assert_eq!(sequence_numbers.min().or(manifest.min_sequence_number), manifest.min_sequence_number, "{table}");
        for entry in entries {
            let file = &entry.data_file;
            let fields = metadata.spec_by_id(manifest.partition_spec_id).unwrap().fields.len();
            assert_eq!((file.spec_id, file.partition.0.len()), (manifest.partition_spec_id, fields));
            assert!(entry.sequence_number <= manifest.sequence_number && entry.file_sequence_number.is_some());
            assert_eq!(file.content == DataContent::Data, manifest.content == ManifestContent::Data);
            if metadata.format_version == FormatVersion::V3 && file.content == DataContent::Data && entry.is_live() {
                assert_eq!(file.first_row_id.is_some(), manifest.first_row_id.is_some(), "{table}");
            } else if file.content != DataContent::Data {
                assert_eq!(file.first_row_id, None);
            }
        }
    }
    assert!(golden_manifests().len() > 200);
}

#[test]
fn projected_entries_lack_only_metrics() {
    let mut with_metrics = 0;
    for Golden { table, metadata, manifest, bytes, entries } in golden_manifests() {
        let lean = ManifestReader::read_projected(bytes, manifest, metadata, Columns::NoMetrics).unwrap();
        assert_eq!(entries.len(), lean.len());
        for (all, lean) in entries.iter().cloned().zip(lean) {
            with_metrics += usize::from(!all.data_file.value_counts.is_empty());
            let mut file = (*all.data_file).clone();
            file.column_sizes = ColumnMap::default();
            file.value_counts = ColumnMap::default();
            file.null_value_counts = ColumnMap::default();
            file.nan_value_counts = ColumnMap::default();
            file.lower_bounds = ColumnMap::default();
            file.upper_bounds = ColumnMap::default();
            assert_eq!(ManifestEntry { data_file: file.into(), ..all }, lean, "{table}");
        }
    }
    assert!(with_metrics > 100);
}

#[test]
fn live_records_are_those_of_the_catalogue() {
    let mut checked = 0;
    for table in catalogue() {
        let metadata = metadata(&table);
        let rows: BTreeMap<i64, u64> = table["snapshots"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|s| Some((s["id"].as_i64()?, s["rows"].as_u64()?)))
            .collect();
        for (snapshot, manifests) in manifest_lists(&metadata) {
            let live: Vec<_> = manifests
                .iter()
                .flat_map(|m| ManifestReader::read(&read_location(&m.manifest_path), m, &metadata).unwrap())
                .filter(ManifestEntry::is_live)
                .collect();
            let records = |content| {
                let of_content = live.iter().filter(|e| e.data_file.content == content);
                of_content.map(|e| e.data_file.record_count).sum::<u64>()
            };
            let deletes: Vec<_> = live.iter().filter(|e| e.data_file.content != DataContent::Data).collect();
            // Vectors name each deleted row once, as long as no older position deletes stand beside them.
            let deleted = if deletes.iter().all(|e| e.data_file.is_deletion_vector()) {
                records(DataContent::PositionDeletes)
            } else {
                continue;
            };
            let Some(expected) = rows.get(&snapshot) else { continue };
            assert_eq!(records(DataContent::Data) - deleted, *expected, "{} {snapshot}", table["table"]);
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} snapshots");
}

#[test]
fn deletion_vector_entries_point_at_their_blobs() {
    let mut vectors = 0;
    for Golden { table, entries, .. } in golden_manifests() {
        for entry in entries {
            let file = &entry.data_file;
            if !file.is_deletion_vector() || !entry.is_live() {
                continue;
            }
            let puffin = read_location(&file.file_path);
            assert_eq!(puffin.len() as u64, file.file_size_in_bytes, "{table}");
            let start = file.content_offset.unwrap() as usize;
            let blob = &puffin[start..start + file.content_size_in_bytes.unwrap() as usize];
            crate::spec::DeletionVector::decode_checked(blob, file.record_count).unwrap();
            assert!(file.referenced_data_file.is_some());
            vectors += 1;
        }
    }
    assert!(vectors > 10);
}

#[test]
fn row_ids_after_an_upgrade() {
    let table = catalogue().into_iter().find(|t| t["table"] == "lineage_upgraded").unwrap();
    let metadata = metadata(&table);
    let lists = manifest_lists(&metadata);
    let first_ids = |index: usize| {
        let files = lists[index].1.iter().filter(|m| m.content == ManifestContent::Data);
        let ids = files.flat_map(|m| ManifestReader::read(&read_location(&m.manifest_path), m, &metadata).unwrap());
        ids.filter(ManifestEntry::is_live)
            .map(|e| (e.data_file.first_row_id, e.data_file.record_count))
            .collect::<Vec<_>>()
    };
    // Before the upgrade no file has row ids; after it the files take disjoint ranges.
    assert!(first_ids(0).iter().all(|(id, _)| id.is_none()));
    let mut ids = first_ids(lists.len() - 1);
    ids.sort();
    assert!(ids.iter().all(|(id, _)| id.is_some()));
    assert!(ids.is_sorted_by(|a, b| a.0.unwrap() + a.1 <= b.0.unwrap()), "{ids:?}");
}

#[test]
fn list_inheritance_is_that_of_other_engines() {
    let table = catalogue().into_iter().find(|t| t["table"] == "lineage_upgraded").unwrap();
    let metadata = metadata(&table);
    let mut checked = 0;
    for (snapshot, expected) in manifest_lists(&metadata) {
        let snapshot = metadata.snapshot_by_id(snapshot).unwrap();
        let Some(first_row_id) = snapshot.first_row_id else { continue };
        let mut manifests = expected.clone();
        for manifest in &mut manifests {
            if manifest.sequence_number == Some(snapshot.sequence_number) {
                manifest.sequence_number = None;
                manifest.min_sequence_number = manifest.min_sequence_number.filter(|s| *s < snapshot.sequence_number);
            }
            manifest.first_row_id = manifest.first_row_id.filter(|id| *id < first_row_id);
        }
        let assigned = assign_list_inheritance(&mut manifests, snapshot.sequence_number, Some(first_row_id));
        assert_eq!(manifests, expected);
        assert_eq!(Some(assigned), snapshot.added_rows);
        checked += 1;
    }
    assert_eq!(checked, 3);
}

/// Field id, name, type and nullability of every field of an Avro schema, nested ones included.
fn flatten(schema: &Value, into: &mut BTreeMap<i64, String>) {
    for field in schema["fields"].as_array().into_iter().flatten() {
        let (optional, field_type) = match &field["type"] {
            Value::Array(union) => (true, &union[1]),
            other => (false, other),
        };
        let mut shape = field_type.clone();
        let inner = if shape["type"] == "array" { shape["items"].take() } else { Value::Null };
        let record = if shape["type"] == "record" { shape["fields"].take() } else { Value::Null };
        flatten(&serde_json::json!({ "fields": record }), into);
        flatten(&inner, into);
        let inner = if inner.is_object() { inner["name"].clone() } else { inner };
        let text = format!("{} {optional} {:?} {shape} {inner}", field["name"], field.get("default"));
        into.insert(field["field-id"].as_i64().unwrap(), text);
    }
}

fn fields_of(bytes: &[u8]) -> BTreeMap<i64, String> {
    let mut fields = BTreeMap::new();
    flatten(&serde_json::from_str(Container::open(bytes).unwrap().get("avro.schema").unwrap()).unwrap(), &mut fields);
    fields
}

/// Header keys in order, and their JSON or text.
fn header(bytes: &[u8]) -> BTreeMap<String, Value> {
    let container = Container::open(bytes).unwrap();
    let value = |key| container.get(key).map(|v| serde_json::from_str(v).unwrap_or_else(|_| v.into())).unwrap();
    container.keys().map(|key| (key.to_owned(), value(key))).collect()
}

/// Removes what carries no meaning: comments.
fn without_docs(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("doc");
            object.values_mut().for_each(without_docs);
        }
        Value::Array(array) => array.iter_mut().for_each(without_docs),
        _ => {}
    }
}

#[test]
fn rewritten_manifests_look_like_the_original() {
    let mut rewritten = 0;
    for Golden { table, metadata, manifest, bytes, entries } in golden_manifests() {
        let container = Container::open(bytes).unwrap();
        let Some("1" | "2" | "3") = container.get("format-version") else { panic!("{table}") };
        // PyIceberg leaves out newer optional fields, and Java's own schema.
        if container.get("iceberg.schema").is_none() {
            continue;
        }
        let version = match container.get("format-version") {
            Some("1") => FormatVersion::V1,
            Some("2") => FormatVersion::V2,
            _ => FormatVersion::V3,
        };
        let spec = metadata.spec_by_id(manifest.partition_spec_id).unwrap();
        let schema_json: Value = serde_json::from_str(container.get("schema").unwrap()).unwrap();
        let schema = crate::spec::Schema::from_json(&schema_json).unwrap();
        let mut writer = ManifestWriter::new(
            version,
            spec,
            &spec.partition_type(metadata),
            &schema,
            manifest.content,
            manifest.added_snapshot_id,
        );
        entries.iter().cloned().for_each(|e| writer.add(e));
        let (ours, file) = writer.finish(&manifest.manifest_path).unwrap();

        assert_eq!(fields_of(&ours), fields_of(bytes), "{table}");
        let (mut ours_header, mut theirs) = (header(&ours), header(bytes));
        assert_eq!(ours_header.remove("schema-id"), Some(schema.schema_id.into()));
        for header in [&mut ours_header, &mut theirs] {
            header.remove("avro.schema");
            header.values_mut().for_each(without_docs);
        }
        assert_eq!(ours_header, theirs, "{table}");

        // The list entry is the original's once the list gives what it gives.
        let mut expected = manifest.clone();
        expected.manifest_length = ours.len() as u64;
        let mut file =
            ManifestFile { sequence_number: manifest.sequence_number, first_row_id: manifest.first_row_id, ..file };
        if entries.iter().all(|e| !e.is_live()) {
            file.min_sequence_number = manifest.min_sequence_number;
        }
        assert_eq!(file, expected, "{table}");
        let back = ManifestReader::read(&ours, &file, metadata).unwrap();
        assert_eq!(&back, entries, "{table}");
        rewritten += 1;
    }
    assert!(rewritten > 150, "only {rewritten}");
}

#[test]
fn rewritten_lists_look_like_the_original() {
    let mut rewritten = 0;
    for table in catalogue() {
        let metadata = metadata(&table);
        for (snapshot, manifests) in manifest_lists(&metadata) {
            let snapshot = metadata.snapshot_by_id(snapshot).unwrap();
            let ManifestSource::List(location) = &snapshot.manifests else { panic!() };
            let bytes = read_location(location);
            let container = Container::open(&bytes).unwrap();
            if container.get("iceberg.schema").is_none() {
                continue;
            }
            let version = match container.get("format-version") {
                Some("1") => FormatVersion::V1,
                Some("2") => FormatVersion::V2,
                _ => FormatVersion::V3,
            };
            let parent = container.get("parent-snapshot-id").and_then(|p| p.parse().ok());
            let ours = write_manifest_list(
                version,
                snapshot.snapshot_id,
                parent,
                snapshot.sequence_number,
                snapshot.first_row_id,
                &manifests,
            )
            .unwrap();
            assert_eq!(fields_of(&ours), fields_of(&bytes));
            let (mut ours_header, mut theirs) = (header(&ours), header(&bytes));
            for header in [&mut ours_header, &mut theirs] {
                header.values_mut().for_each(without_docs);
                header.remove("avro.schema");
            }
            assert_eq!(ours_header, theirs, "{}", table["table"]);
            assert_eq!(read_manifest_list(&ours, "ours").unwrap(), manifests);
            rewritten += 1;
        }
    }
    assert!(rewritten > 150, "only {rewritten}");
}

#[test]
fn partition_values_by_type() {
    let mut seen = BTreeSet::new();
    for Golden { entries, .. } in golden_manifests() {
        for entry in entries {
            for value in entry.data_file.partition.0.iter() {
                seen.insert(match value {
                    None => "null",
                    Some(Literal::Int(_)) => "int",
                    Some(Literal::Long(_)) => "long",
                    Some(Literal::Date(_)) => "date",
                    Some(Literal::Decimal(_)) => "decimal",
                    Some(Literal::String(_)) => "string",
                    other => panic!("{other:?}"),
                });
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), vec!["date", "decimal", "int", "long", "null", "string"]);
}

#[test]
fn entries_keep_what_engines_recorded() {
    let mut formats = BTreeSet::new();
    let mut equality = 0;
    for Golden { table, entries, .. } in golden_manifests() {
        for entry in entries {
            let file: &DataFile = &entry.data_file;
            formats.insert(format!("{:?}", file.file_format));
            if file.content == DataContent::EqualityDeletes {
                assert!(!file.equality_ids.is_empty(), "{table}");
                equality += 1;
            }
            if file.file_format == FileFormat::Parquet
                && file.content == DataContent::Data
                && !table.starts_with("import")
            {
                assert!(!file.split_offsets.is_empty() || table.contains("pyice"), "{table}");
            }
            let key = PartitionKey { spec_id: file.spec_id, tuple: file.partition.clone() };
            assert_eq!(file.partition_key(), key);
        }
    }
    assert_eq!(formats.into_iter().collect::<Vec<_>>(), vec!["Avro", "Orc", "Parquet", "Puffin"]);
    assert!(equality > 5);
}
