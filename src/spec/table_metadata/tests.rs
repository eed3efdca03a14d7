//! Metadata files of other engines read and survive; broken ones are refused with the place named.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::*;
use crate::ErrorKind;
use crate::spec::TableProperties;
use crate::spec::snapshot::{MAIN_BRANCH, ManifestSource};
use crate::spec::{Literal, PartitionTuple, PrimitiveType, StructType};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

/// Every metadata file of the golden tables: name, bytes.
fn golden_files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for table in std::fs::read_dir(golden()).unwrap() {
        let Ok(dir) = std::fs::read_dir(table.unwrap().path().join("metadata")) else { continue };
        for file in dir {
            let path = file.unwrap().path();
            if path.to_str().unwrap().ends_with(".metadata.json") {
                files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    files
}

fn golden_json(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(golden().join(file)).unwrap()).unwrap()
}

/// What a rewrite may add: the fields another writer left out, and an explicit 0 or -1.
fn canonical(mut value: Value) -> Value {
    let version = value["format-version"].as_i64().unwrap();
    if version >= 2 {
        for snapshot in value["snapshots"].as_array_mut().unwrap() {
            let object = snapshot.as_object_mut().unwrap();
            object.entry("sequence-number").or_insert(json!(0));
        }
    }
    let none = if version >= 3 { Value::Null } else { json!(-1) };
    value.as_object_mut().unwrap().entry("current-snapshot-id").or_insert(none);
    value
}

#[test]
fn every_golden_file_survives() {
    let files = golden_files();
    assert_eq!(files.len(), 374);
    for (name, bytes) in files {
        let metadata = TableMetadata::parse(&bytes, &name).unwrap();
        let mut plain = bytes.clone();
        if bytes[0] != b'{' {
            plain.clear();
            GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        }
        let original = canonical(serde_json::from_slice(&plain).unwrap());
        assert_eq!(metadata.to_json().unwrap(), original, "{name}");
        let again = TableMetadata::parse(&metadata.to_gzip_bytes().unwrap(), &name).unwrap();
        assert_eq!(again, metadata, "{name}");
        assert_eq!(metadata.to_json_bytes().unwrap(), again.to_json_bytes().unwrap());
        TableProperties::from_map(&metadata.properties).unwrap();

        metadata.current_schema().unwrap();
        metadata.default_spec().unwrap();
        for spec in &metadata.partition_specs {
            let types = spec.partition_type(&metadata);
            assert_eq!(types.fields.len(), spec.fields.len());
            for field in &types.fields {
                assert_ne!(field.field_type, PrimitiveType::Unknown.into(), "{name}: {}", field.name);
            }
        }
        if let Some(current) = metadata.current_snapshot() {
            assert_eq!(metadata.snapshot_for_ref(MAIN_BRANCH).unwrap().snapshot_id, current.snapshot_id);
            assert!(metadata.ancestors_of(current.snapshot_id).count() >= 1);
        }
    }
}

/// Every partition folder of the golden tables is the path of some tuple; here the ones whose values are in the name.
#[test]
fn partition_paths_are_those_of_other_writers() {
    let metadata = parse(&golden_json("p_v3_identity/metadata/v1.metadata.json")).unwrap();
    let spec = metadata.default_spec().unwrap();
    let types = spec.partition_type(&metadata);
    for (value, folder) in [
        (Some("with space"), "s=with+space"),
        (Some("ünï/çødé ✓"), "s=%C3%BCn%C3%AF%2F%C3%A7%C3%B8d%C3%A9+%E2%9C%93"),
        (Some(""), "s="),
        (Some("hash#tag?q"), "s=hash%23tag%3Fq"),
        (None, "s=null"),
        (Some("plus+and&"), "s=plus%2Band%26"),
        (Some("dot."), "s=dot."),
        (Some("k=v"), "s=k%3Dv"),
        (Some("per%cent"), "s=per%25cent"),
        (Some("a/b"), "s=a%2Fb"),
    ] {
        let tuple = PartitionTuple([value.map(|v| Literal::String(v.to_string()))].into());
        assert_eq!(spec.partition_path(&tuple, &types), folder);
        assert!(golden().join("p_v3_identity/data").join(folder).is_dir(), "{folder}");
    }
    assert_eq!(PartitionSpec::unpartitioned().partition_path(&PartitionTuple::default(), &StructType::default()), "");

    let metadata = parse(&golden_json("v1_part/metadata/v3.metadata.json")).unwrap();
    let spec = metadata.default_spec().unwrap();
    assert!(!spec.is_unpartitioned());
    let tuple = PartitionTuple([None, Some(Literal::Date(19_722))].into());
    assert_eq!(spec.partition_path(&tuple, &spec.partition_type(&metadata)), "s=null/ts_day=2023-12-31");
}

fn v2() -> Value {
    json!({
        "format-version": 2, "table-uuid": "23c2e1f2-19cb-4846-9a32-4b9a457c9f8e", "location": "file:///t/",
        "last-sequence-number": 2, "last-updated-ms": 10, "last-column-id": 2,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "a", "required": false, "type": "int"},
                {"id": 2, "name": "b", "required": false, "type": "string"}]},
            {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "a", "required": false, "type": "long"}]}],
        "current-schema-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "b", "transform": "identity"}]},
            {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1001, "name": "a", "transform": "identity"}]}],
        "default-spec-id": 1, "last-partition-id": 1001,
        "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
        "current-snapshot-id": 2,
        "snapshots": [
            {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 5, "manifest-list": "a",
             "summary": {"operation": "append"}, "schema-id": 0},
            {"snapshot-id": 2, "sequence-number": 2, "parent-snapshot-id": 1, "timestamp-ms": 6, "manifest-list": "b",
             "summary": {"operation": "append"}, "schema-id": 1}],
        "later-field": [1, {"x": null}],
    })
}

fn parse(value: &Value) -> Result<TableMetadata> {
    TableMetadata::parse(value.to_string().as_bytes(), "s3://b/v1.metadata.json")
}

#[test]
fn what_may_be_missing_is_filled_in() {
    let metadata = parse(&v2()).unwrap();
    assert_eq!(metadata.refs[MAIN_BRANCH], SnapshotRef::branch(2));
    assert_eq!(metadata.location, "file:///t");
    assert!(metadata.snapshot_log.is_empty() && metadata.properties.is_empty());
    assert_eq!(metadata.to_json().unwrap()["later-field"], json!([1, {"x": null}]));
    assert_eq!(metadata.next_sequence_number(), 3);
    assert_eq!(metadata.schema_of_snapshot(&metadata.snapshots[0]).unwrap().schema_id, 0);
    let ids: Vec<i64> = metadata.ancestors_of(2).map(|s| s.snapshot_id).collect();
    assert_eq!(ids, [2, 1]);
    assert!(metadata.is_ancestor_of(1, 2) && !metadata.is_ancestor_of(2, 1));

    for none in [json!(-1), Value::Null] {
        let mut value = v2();
        value["current-snapshot-id"] = none;
        let metadata = parse(&value).unwrap();
        assert_eq!((metadata.current_snapshot_id, metadata.refs.len()), (None, 0));
        assert_eq!(metadata.to_json().unwrap()["current-snapshot-id"], json!(-1));
    }
    let mut value = v2();
    value.as_object_mut().unwrap().remove("last-partition-id");
    value["last-column-id"] = json!(1);
    let metadata = parse(&value).unwrap();
    assert_eq!((metadata.last_partition_id, metadata.last_column_id), (1001, 2));
}

#[test]
fn partition_types_come_from_any_schema() {
    let metadata = parse(&v2()).unwrap();
    let field_type =
        |spec: usize| metadata.partition_specs[spec].partition_type(&metadata).fields[0].field_type.clone();
    assert_eq!(field_type(0), PrimitiveType::String.into());
    assert_eq!(field_type(1), PrimitiveType::Long.into());
    let mut value = v2();
    value["partition-specs"][0]["fields"][0]["source-id"] = json!(77);
    value["partition-specs"][1]["fields"][0]["transform"] = json!("zorder[3]");
    let metadata = parse(&value).unwrap();
    let field_type =
        |spec: usize| metadata.partition_specs[spec].partition_type(&metadata).fields[0].field_type.clone();
    assert_eq!(field_type(0), PrimitiveType::Unknown.into());
    assert_eq!(field_type(1), PrimitiveType::String.into());
    assert_eq!(metadata.to_json().unwrap()["partition-specs"][1]["fields"][0]["transform"], json!("zorder[3]"));
}

#[test]
fn ancestors_end_on_a_cycle() {
    let mut value = v2();
    value["snapshots"][0]["parent-snapshot-id"] = json!(2);
    assert_eq!(parse(&value).unwrap().ancestors_of(2).count(), 2);
}

#[test]
fn old_v1_tables_read() {
    let value = json!({
        "format-version": 1, "location": "/t", "last-updated-ms": 10, "last-column-id": 2,
        "schema": {"type": "struct", "fields": [
            {"id": 1, "name": "a", "required": false, "type": "int"},
            {"id": 2, "name": "b", "required": false, "type": "string"}]},
        "partition-spec": [
            {"source-id": 2, "name": "b", "transform": "identity"},
            {"source-id": 1, "name": "a_bucket", "transform": "bucket[4]"}],
        "current-snapshot-id": 1,
        "snapshots": [{"snapshot-id": 1, "timestamp-ms": 5, "manifests": ["m1"]}],
    });
    let metadata = parse(&value).unwrap();
    assert_eq!(metadata.table_uuid, None);
    assert_eq!((metadata.current_schema_id, metadata.default_spec_id, metadata.last_partition_id), (0, 0, 1001));
    let spec = metadata.default_spec().unwrap();
    assert_eq!(spec.fields.iter().map(|f| f.field_id).collect::<Vec<_>>(), [1000, 1001]);
    let snapshot = metadata.current_snapshot().unwrap();
    assert_eq!(snapshot.manifests, ManifestSource::Inline(vec!["m1".to_string()]));
    assert_eq!(metadata.next_sequence_number(), 0);

    let written = metadata.to_json().unwrap();
    let object = written.as_object().unwrap();
    assert!(!object.contains_key("last-sequence-number") && !object.contains_key("next-row-id"));
    assert!(!object.contains_key("table-uuid"));
    assert_eq!(written["schema"], written["schemas"][0]);
    assert_eq!(written["partition-spec"], written["partition-specs"][0]["fields"]);
    assert_eq!(parse(&written).unwrap(), metadata);
}

#[test]
fn broken_files_are_data_invalid_and_name_path_and_field() {
    let cases: [(&str, Value, &str); 22] = [
        ("/format-version", json!("2"), "format-version"),
        ("/format-version", json!(0), "format-version"),
        ("/table-uuid", json!("xyz"), "table-uuid"),
        ("/table-uuid", Value::Null, "table-uuid"),
        ("/location", json!(3), "location"),
        ("/last-sequence-number", json!(1), "last-sequence-number"),
        ("/last-sequence-number", Value::Null, "last-sequence-number"),
        ("/last-sequence-number", json!(-1), "last-sequence-number"),
        ("/last-column-id", json!(4294967296i64), "last-column-id"),
        ("/current-schema-id", json!(9), "current-schema-id"),
        ("/default-spec-id", json!(9), "default-spec-id"),
        ("/default-sort-order-id", json!(9), "default-sort-order-id"),
        ("/current-snapshot-id", json!(9), "current-snapshot-id"),
        ("/schemas/1/schema-id", json!(0), "schemas"),
        ("/schemas/0/fields/1/id", json!(1), "schemas[0]"),
        ("/schemas/0/fields/1/type", json!("text"), "schemas[0].fields[1].type"),
        ("/partition-specs/0/fields/0/field-id", json!(1e20), "partition-specs[0].fields[0].field-id"),
        ("/partition-specs/0/fields/0/transform", json!(7), "partition-specs[0].fields[0].transform"),
        ("/partition-specs/1/spec-id", json!(0), "partition-specs"),
        ("/snapshots/1/snapshot-id", json!(1), "snapshots"),
        ("/snapshots/0/timestamp-ms", json!(true), "snapshots[0].timestamp-ms"),
        ("/snapshots", json!({}), "snapshots"),
    ];
    for (pointer, replacement, wanted) in cases {
        let mut value = v2();
        *value.pointer_mut(pointer).unwrap() = replacement.clone();
        let e = parse(&value).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::DataInvalid, "{pointer} {replacement}: {e}");
        assert!(e.message().contains(wanted), "{pointer} {replacement}: {e}");
        assert_eq!(e.context("path"), Some("s3://b/v1.metadata.json"));
    }
    let mut later = v2();
    later["format-version"] = json!(4);
    assert_eq!(parse(&later).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut other_main = v2();
    other_main["refs"] = json!({"main": {"snapshot-id": 1, "type": "branch"}});
    assert!(parse(&other_main).unwrap_err().message().contains("branch main"));
}

#[test]
fn broken_bytes_never_panic() {
    let whole = v2().to_string().into_bytes();
    for length in 0..whole.len() {
        let e = TableMetadata::parse(&whole[..length], "p").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::DataInvalid);
    }
    let metadata = parse(&v2()).unwrap();
    let gzip = metadata.to_gzip_bytes().unwrap();
    for length in 0..gzip.len() {
        assert_eq!(TableMetadata::parse(&gzip[..length], "p").unwrap_err().kind(), ErrorKind::DataInvalid);
    }
    for bomb in ["[".repeat(100_000), r#"{"format-version":"#.repeat(100_000), "[{\"schema\":".repeat(50_000)] {
        assert_eq!(TableMetadata::parse(bomb.as_bytes(), "p").unwrap_err().kind(), ErrorKind::DataInvalid);
    }
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let _ = TableMetadata::parse(&bytes, "p");
    }
}

#[test]
fn times_never_go_back() {
    let mut metadata = parse(&v2()).unwrap();
    assert_eq!((metadata.next_timestamp_ms(5), metadata.next_timestamp_ms(11)), (10, 11));
    metadata.snapshot_log.push((12, 2));
    assert_eq!(metadata.next_timestamp_ms(5), 12);
}
