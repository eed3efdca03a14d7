//! What is written is read back, for every version and type; inheritance; what the writer refuses.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::spec::manifest::{
    Columns, FieldSummary, ManifestContent, ManifestReader, ManifestWriter, assign_list_inheritance,
    write_manifest_list,
};
use crate::spec::{
    DataContent, DataFile, EntryStatus, FileFormat, FormatVersion, Literal, ManifestEntry, PartitionSpec,
    PartitionTuple, PrimitiveType, Type,
};

/// Every type a partition may have, with the version that has it and a name that Avro does not allow here and there.
const TYPES: [(&str, &str); 22] = [
    ("boolean", "flag"),
    ("int", "we ird"),
    ("long", "9l"),
    ("float", "f"),
    ("double", "größe"),
    ("date", "d"),
    ("time", "t.x"),
    ("timestamp", "ts"),
    ("timestamptz", "tz"),
    ("string", "s-1"),
    ("uuid", "u"),
    ("uuid", "u2"),
    ("fixed[5]", "fx"),
    ("fixed[5]", "fx2"),
    ("binary", "b"),
    ("decimal(1, 0)", "d1"),
    ("decimal(9, 2)", "d9"),
    ("decimal(18, 3)", "d18"),
    ("decimal(38, 10)", "d38"),
    ("decimal(9, 2)", "d9b"),
    ("timestamp_ns", "tn"),
    ("timestamptz_ns", "tzn"),
];

/// Types before v3.
fn types(version: FormatVersion) -> &'static [(&'static str, &'static str)] {
    if version == FormatVersion::V3 { &TYPES } else { &TYPES[..20] }
}

/// Metadata of a table with a column of every type and one spec of all of them, plus what `change` makes of it.
fn table(version: FormatVersion, change: impl FnOnce(&mut serde_json::Value)) -> TableMetadata {
    let columns: Vec<_> = types(version)
        .iter()
        .enumerate()
        .map(|(i, (t, name))| json!({"id": i + 1, "name": name, "required": false, "type": t}))
        .collect();
    let fields: Vec<_> = types(version)
        .iter()
        .enumerate()
        .map(|(i, (_, name))| json!({"source-id": i + 1, "field-id": 1000 + i, "name": name, "transform": "identity"}))
        .collect();
    let mut metadata = json!({
        "format-version": version.number(), "table-uuid": "00000000-0000-4000-8000-000000000000", "location": "file:/t",
        "last-sequence-number": 5, "last-updated-ms": 1, "last-column-id": 100, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "default-spec-id": 3, "partition-specs": [{"spec-id": 3, "fields": fields}], "last-partition-id": 1100,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
        "schema": {"type": "struct", "schema-id": 0, "fields": columns}, "partition-spec": fields, "next-row-id": 0
    });
    change(&mut metadata);
    TableMetadata::parse(&serde_json::to_vec(&metadata).unwrap(), "t").unwrap()
}

fn literal(rng: &mut fastrand::Rng, ty: &PrimitiveType) -> Literal {
    let long = |rng: &mut fastrand::Rng| [0, -1, i64::MIN, i64::MAX, rng.i64(..), rng.i64(-100..100)][rng.usize(0..6)];
    let bytes = |rng: &mut fastrand::Rng, n: usize| std::iter::repeat_with(|| rng.u8(..)).take(n).collect::<Vec<u8>>();
    match ty {
        PrimitiveType::Boolean => Literal::Boolean(rng.bool()),
        PrimitiveType::Int => Literal::Int([i32::MIN, i32::MAX, 0, rng.i32(..)][rng.usize(0..4)]),
        PrimitiveType::Long => Literal::Long(long(rng)),
        PrimitiveType::Float => Literal::Float([f32::NAN, -0.0, 0.0, f32::INFINITY, rng.f32()][rng.usize(0..5)]),
        PrimitiveType::Double => Literal::Double([f64::NAN, -0.0, 0.0, f64::MIN, rng.f64()][rng.usize(0..5)]),
        PrimitiveType::Date => Literal::Date(rng.i32(-1_000_000..1_000_000)),
        PrimitiveType::Time => Literal::Time(rng.i64(0..86_400_000_000)),
        PrimitiveType::Timestamp => Literal::Timestamp(long(rng)),
        PrimitiveType::Timestamptz => Literal::Timestamptz(long(rng)),
        PrimitiveType::TimestampNs => Literal::TimestampNs(long(rng)),
        PrimitiveType::TimestamptzNs => Literal::TimestamptzNs(long(rng)),
        PrimitiveType::String => Literal::String(["", "a/b c", "ß😀", "\0"][rng.usize(0..4)].into()),
        PrimitiveType::Uuid => Literal::Uuid(uuid::Uuid::from_u128(rng.u128(..))),
        PrimitiveType::Fixed(n) => Literal::Fixed(bytes(rng, *n as usize)),
        PrimitiveType::Decimal { precision, .. } => {
            let max = 10i128.pow((*precision).into()) - 1;
            Literal::Decimal([max, -max, 0, -1, rng.i128(-max..=max)][rng.usize(0..5)])
        }
        _ => {
            let n = rng.usize(0..9);
            Literal::Binary(bytes(rng, n))
        }
    }
}

/// A random file of the table's only spec.
fn file(rng: &mut fastrand::Rng, metadata: &TableMetadata, content: DataContent) -> DataFile {
    let spec = metadata.default_spec().unwrap();
    let types = spec.partition_type(metadata);
    let tuple = types.fields.iter().map(|f| {
        let Type::Primitive(ty) = &f.field_type else { panic!() };
        rng.bool().then(|| literal(rng, ty))
    });
    let key = crate::spec::PartitionKey { spec_id: spec.spec_id, tuple: PartitionTuple(tuple.collect()) };
    let mut file = DataFile::new(content, format!("file:/t/ü {}.parquet", rng.u32(..)), FileFormat::Parquet, key);
    file.record_count = rng.u64(0..1000);
    file.file_size_in_bytes = rng.u64(0..=i64::MAX as u64);
    if rng.bool() {
        file.column_sizes = (0..rng.i32(0..5)).map(|i| (i, rng.u64(0..1 << 40))).collect();
        file.value_counts = (0..rng.i32(0..5)).map(|i| (i, rng.u64(0..1 << 40))).collect();
        file.null_value_counts = [(7, 0)].into_iter().collect();
        file.nan_value_counts = [(2_147_483_546, 3)].into_iter().collect();
        file.lower_bounds = (0..rng.i32(0..5)).map(|i| (i, vec![i as u8; i as usize].into())).collect();
        file.upper_bounds = [(1, Box::from([0xffu8]))].into_iter().collect();
        file.key_metadata = Some(Box::from([1, 2]));
        file.split_offsets = vec![4, 1 << 40];
        file.sort_order_id = Some(rng.i32(0..3));
    }
    match content {
        DataContent::Data => {}
        DataContent::EqualityDeletes => file.equality_ids = vec![3, 1],
        DataContent::PositionDeletes => file.referenced_data_file = Some("file:/t/x.parquet".into()),
    }
    if content == DataContent::PositionDeletes && metadata.format_version == FormatVersion::V3 {
        file.file_format = FileFormat::Puffin;
        file.content_offset = Some(rng.u64(4..1 << 40));
        file.content_size_in_bytes = Some(40);
    }
    file
}

fn writer(metadata: &TableMetadata, content: ManifestContent) -> ManifestWriter {
    let spec = metadata.default_spec().unwrap();
    let partition_type = spec.partition_type(metadata);
    let schema = metadata.current_schema().unwrap();
    ManifestWriter::new(metadata.format_version, spec, &partition_type, schema, content, 77)
}

fn entry(status: EntryStatus, sequence_number: Option<i64>, file: DataFile) -> ManifestEntry {
    let snapshot_id = Some(if status == EntryStatus::Existing { 70 } else { 77 });
    ManifestEntry {
        status,
        snapshot_id,
        sequence_number,
        file_sequence_number: sequence_number,
        data_file: Arc::new(file),
    }
}

#[test]
fn random_entries_of_every_type_and_version() {
    let mut rng = fastrand::Rng::with_seed(42);
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let metadata = table(version, |_| {});
        for round in 0..12 {
            let content = match round % 3 {
                1 if version > FormatVersion::V1 => DataContent::PositionDeletes,
                2 if version > FormatVersion::V1 => DataContent::EqualityDeletes,
                _ => DataContent::Data,
            };
            let kind = if content == DataContent::Data { ManifestContent::Data } else { ManifestContent::Deletes };
            let mut writer = writer(&metadata, kind);
            let mut entries = Vec::new();
            for _ in 0..rng.usize(1..40) {
                let status = [EntryStatus::Added, EntryStatus::Existing, EntryStatus::Deleted][rng.usize(0..3)];
                let sequence_number = if version == FormatVersion::V1 { 0 } else { rng.i64(1..9) };
                let mut file = file(&mut rng, &metadata, content);
                if version == FormatVersion::V3 && content == DataContent::Data && status != EntryStatus::Added {
                    file.first_row_id = Some(rng.u64(0..1 << 50));
                }
                entries.push(entry(status, Some(sequence_number), file));
            }
            entries.iter().cloned().for_each(|e| writer.add(e));
            let (bytes, mut manifest) = writer.finish("file:/t/m.avro").unwrap();
            let given = std::slice::from_mut(&mut manifest);
            let next_row_id = (version == FormatVersion::V3).then_some(1000);
            let rows = assign_list_inheritance(given, if version == FormatVersion::V1 { 0 } else { 9 }, next_row_id);
            let live = entries.iter().filter(|e| e.is_live());
            let live_rows: u64 = live.clone().map(|e| e.data_file.record_count).sum();
            assert_eq!(rows, if manifest.first_row_id.is_some() { live_rows } else { 0 });

            let list = write_manifest_list(version, 77, None, 9, next_row_id, std::slice::from_ref(&manifest)).unwrap();
            assert_eq!(read_manifest_list(&list, "l").unwrap(), vec![manifest.clone()]);

            let back = ManifestReader::read(&bytes, &manifest, &metadata).unwrap();
            let mut next = manifest.first_row_id;
            for (back, entry) in back.iter().zip(&entries) {
                let mut file = (*entry.data_file).clone();
                if file.first_row_id.is_none() && entry.is_live() && next.is_some() {
                    file.first_row_id = next;
                    next = next.map(|n| n + file.record_count);
                }
                assert_eq!(*back, ManifestEntry { data_file: Arc::new(file), ..entry.clone() });
            }
            assert_eq!(back.len(), entries.len());
            // Equal input, equal bytes.
            let mut again = super::round_trip::writer(&metadata, kind);
            entries.into_iter().for_each(|e| again.add(e));
            assert_eq!(again.finish("file:/t/m.avro").unwrap().0, bytes);
        }
    }
}

#[test]
fn many_entries_span_batches_and_blocks() {
    let metadata = table(FormatVersion::V2, |_| {});
    let mut rng = fastrand::Rng::with_seed(1);
    let mut writer = writer(&metadata, ManifestContent::Data);
    let file = file(&mut rng, &metadata, DataContent::Data);
    for i in 0..9_000 {
        let file = DataFile { record_count: i, ..file.clone() };
        writer.add(entry(EntryStatus::Added, None, file));
    }
    let (bytes, manifest) = writer.finish("m").unwrap();
    let manifest = ManifestFile { sequence_number: Some(8), ..manifest };
    for columns in [Columns::All, Columns::NoMetrics] {
        let back = ManifestReader::read_projected(&bytes, &manifest, &metadata, columns).unwrap();
        assert!(back.iter().map(|e| e.data_file.record_count).eq(0..9_000));
        assert!(back.iter().all(|e| e.data_file.partition == file.partition && e.sequence_number == Some(8)));
        // One tuple is shared by the files of one partition.
        assert!(Arc::ptr_eq(&back[0].data_file.partition.0, &back[8_999].data_file.partition.0));
    }
}

#[test]
fn entries_inherit_as_the_specification_says() {
    let metadata = table(FormatVersion::V3, |_| {});
    let mut rng = fastrand::Rng::with_seed(3);
    let mut writer = writer(&metadata, ManifestContent::Data);
    let mut of = |status, sequence_number, first_row_id, record_count| {
        let file = file(&mut rng, &metadata, DataContent::Data);
        writer.add(ManifestEntry {
            snapshot_id: None,
            ..entry(status, sequence_number, DataFile { first_row_id, record_count, ..file })
        });
    };
    of(EntryStatus::Added, None, Some(999), 10);
    of(EntryStatus::Deleted, Some(2), None, 5);
    of(EntryStatus::Existing, Some(0), Some(3), 7);
    of(EntryStatus::Existing, Some(1), None, 4);
    of(EntryStatus::Added, Some(4), None, 1);
    let (bytes, manifest) = writer.finish("m").unwrap();
    // An existing file of sequence number 0 is the oldest: 0 is a number, not an absence.
    assert_eq!((manifest.min_sequence_number, manifest.sequence_number), (Some(0), None));
    assert_eq!((manifest.added_rows_count, manifest.existing_rows_count), (Some(11), Some(11)));
    let mut manifests = [manifest.clone(), manifest];
    manifests[1].content = ManifestContent::Deletes;
    assert_eq!(assign_list_inheritance(&mut manifests, 6, Some(100)), 22);
    assert_eq!(manifests[1].first_row_id, None);
    let read = |manifest: &ManifestFile| {
        let entries = ManifestReader::read(&bytes, manifest, &metadata).unwrap();
        entries.iter().map(|e| (e.sequence_number, e.snapshot_id, e.data_file.first_row_id)).collect::<Vec<_>>()
    };
    let seen = Some(77);
    assert_eq!(
        read(&manifests[0]),
        vec![
            (Some(6), seen, Some(100)),
            (Some(2), seen, None),
            (Some(0), seen, Some(3)),
            (Some(1), seen, Some(110)),
            (Some(4), seen, Some(114)),
        ]
    );
    // Without a first row id in the list no file has one, whatever is stored.
    let before_upgrade = ManifestFile { first_row_id: None, ..manifests[0].clone() };
    assert!(read(&before_upgrade).iter().all(|(_, _, id)| id.is_none()));
    // Only added entries may leave the sequence number to the manifest, unless it is of a v1 table.
    let bytes_of = |sequence_number: Option<i64>| {
        let v1 = table(FormatVersion::V1, |_| {});
        let mut rng = fastrand::Rng::with_seed(3);
        let mut writer = super::round_trip::writer(&v1, ManifestContent::Data);
        writer.add(entry(EntryStatus::Existing, None, file(&mut rng, &v1, DataContent::Data)));
        let (bytes, manifest) = writer.finish("m").unwrap();
        ManifestReader::read(&bytes, &ManifestFile { sequence_number, ..manifest }, &v1)
    };
    assert_eq!(bytes_of(Some(0)).unwrap()[0].sequence_number, Some(0));
    assert!(bytes_of(Some(4)).unwrap_err().to_string().contains("sequence number"));
}

#[test]
fn partition_fields_match_by_id() {
    // The spec's fields in reverse, one of them void since, one from a column that only an old schema has.
    let metadata = table(FormatVersion::V2, |_| {});
    let mut rng = fastrand::Rng::with_seed(5);
    let mut writer = writer(&metadata, ManifestContent::Data);
    let mut written = file(&mut rng, &metadata, DataContent::Data);
    written.partition = PartitionTuple(
        written
            .partition
            .0
            .iter()
            .zip(&metadata.default_spec().unwrap().partition_type(&metadata).fields)
            .map(|(v, f)| {
                let Type::Primitive(ty) = &f.field_type else { panic!() };
                Some(v.clone().unwrap_or_else(|| literal(&mut rng, ty)))
            })
            .collect(),
    );
    writer.add(entry(EntryStatus::Added, None, written.clone()));
    let (bytes, manifest) = writer.finish("m").unwrap();
    let changed = table(FormatVersion::V2, |json| {
        let fields = json["partition-specs"][0]["fields"].as_array_mut().unwrap();
        fields.reverse();
        for field in fields.iter_mut() {
            field["name"] = json!(format!("renamed {}", field["field-id"]));
            if field["field-id"] == 1002 {
                field["transform"] = json!("void");
            }
        }
        let mut schema = json["schemas"][0].clone();
        schema["schema-id"] = json!(1);
        schema["fields"].as_array_mut().unwrap().truncate(3);
        json["schemas"].as_array_mut().unwrap().push(schema);
        json["current-schema-id"] = json!(1);
    });
    let back = ManifestReader::read(&bytes, &manifest, &changed).unwrap();
    let mut expected: Vec<_> = written.partition.0.iter().cloned().collect();
    expected[2] = None;
    expected.reverse();
    assert_eq!(back[0].data_file.partition.0[..], expected[..]);
    // A field that is in the spec and not in the manifest is an error, not a null.
    let more = table(FormatVersion::V2, |json| {
        json["partition-specs"][0]["fields"][0]["field-id"] = json!(1099);
    });
    assert!(ManifestReader::read(&bytes, &manifest, &more).unwrap_err().to_string().contains("1099"));
}

#[test]
fn day_partitions_are_int_or_date() {
    let day = |json: &mut serde_json::Value| {
        json["partition-specs"] = json!([{"spec-id": 3, "fields": [
            {"source-id": 8, "field-id": 1000, "name": "ts_day", "transform": "day"}]}]);
    };
    let metadata = table(FormatVersion::V2, day);
    let spec = metadata.default_spec().unwrap();
    let mut partition_type = spec.partition_type(&metadata);
    for (ty, value) in [(PrimitiveType::Int, Literal::Int(-3)), (PrimitiveType::Date, Literal::Date(-3))] {
        Arc::make_mut(&mut partition_type.fields[0]).field_type = ty.into();
        let mut written = file(&mut fastrand::Rng::with_seed(5), &metadata, DataContent::Data);
        written.partition = PartitionTuple([Some(value)].into());
        let schema = metadata.current_schema().unwrap();
        let mut writer =
            ManifestWriter::new(FormatVersion::V2, spec, &partition_type, schema, ManifestContent::Data, 77);
        writer.add(entry(EntryStatus::Added, None, written));
        let (bytes, manifest) = writer.finish("m").unwrap();
        let back = ManifestReader::read(&bytes, &manifest, &metadata).unwrap();
        assert_eq!(back[0].data_file.partition.0[..], [Some(Literal::Date(-3))]);
    }
}

#[test]
fn specs_without_values_and_unknown_types() {
    for fields in [
        json!([]),
        json!([{"source-id": 1, "field-id": 1000, "name": "v", "transform": "void"}]),
        json!([{"source-id": 99, "field-id": 1000, "name": "gone", "transform": "identity"}]),
    ] {
        let width = fields.as_array().unwrap().len();
        let metadata = table(FormatVersion::V3, |json| {
            json["partition-specs"] = json!([{"spec-id": 3, "fields": fields}]);
        });
        let mut written = file(&mut fastrand::Rng::with_seed(5), &metadata, DataContent::Data);
        written.partition = PartitionTuple(vec![None; width].into());
        let mut writer = writer(&metadata, ManifestContent::Data);
        writer.add(entry(EntryStatus::Added, None, written.clone()));
        let (bytes, manifest) = writer.finish("m").unwrap();
        assert_eq!(manifest.partitions.as_ref().unwrap().len(), width);
        let back = ManifestReader::read(&bytes, &manifest, &metadata).unwrap();
        assert_eq!(back[0].data_file, Arc::new(written));
    }
}

#[test]
fn summaries_bound_values_without_null_and_nan() {
    let doubles = |json: &mut serde_json::Value| {
        json["partition-specs"] = json!([{"spec-id": 3, "fields": [
            {"source-id": 5, "field-id": 1000, "name": "x", "transform": "identity"}]}]);
    };
    let metadata = table(FormatVersion::V2, doubles);
    let summary = |values: &[Option<f64>]| {
        let mut writer = writer(&metadata, ManifestContent::Data);
        for value in values {
            let mut file = file(&mut fastrand::Rng::with_seed(5), &metadata, DataContent::Data);
            file.partition = PartitionTuple([value.map(Literal::Double)].into());
            writer.add(entry(EntryStatus::Deleted, Some(1), file));
        }
        writer.finish("m").unwrap().1.partitions.unwrap().remove(0)
    };
    let bytes = |v: f64| Some(Box::from(v.to_le_bytes()));
    let expected = |null, nan, lower, upper| FieldSummary {
        contains_null: null,
        contains_nan: Some(nan),
        lower_bound: lower,
        upper_bound: upper,
    };
    assert_eq!(summary(&[Some(3.0), None, Some(-1.0)]), expected(true, false, bytes(-1.0), bytes(3.0)));
    assert_eq!(summary(&[Some(f64::NAN)]), expected(false, true, None, None));
    // Zeroes of either sign are equal to us and not to others.
    assert_eq!(summary(&[Some(0.0), Some(-0.0)]), expected(false, false, bytes(-0.0), bytes(0.0)));
    assert_eq!(summary(&[]), expected(false, false, None, None));
}

#[test]
fn the_writer_refuses_what_does_not_belong() {
    let rng = || fastrand::Rng::with_seed(5);
    let refused = |version, content, change: &dyn Fn(&mut ManifestEntry)| {
        let metadata = table(version, |_| {});
        let kind = if content == DataContent::Data { ManifestContent::Data } else { ManifestContent::Deletes };
        let mut writer = writer(&metadata, kind);
        let mut entry = entry(EntryStatus::Existing, Some(1), file(&mut rng(), &metadata, content));
        change(&mut entry);
        writer.add(entry);
        let error = writer.finish("file:/t/m.avro").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
        error.to_string()
    };
    let file_of =
        |entry: &mut ManifestEntry, change: &dyn Fn(&mut DataFile)| change(Arc::make_mut(&mut entry.data_file));
    let (v1, v2, v3) = (FormatVersion::V1, FormatVersion::V2, FormatVersion::V3);
    let (data, positions) = (DataContent::Data, DataContent::PositionDeletes);
    assert!(refused(v2, data, &|e| e.sequence_number = None).contains("sequence number"));
    assert!(refused(v2, data, &|e| file_of(e, &|f| f.content = positions)).contains("PositionDeletes"));
    assert!(refused(v2, data, &|e| file_of(e, &|f| f.spec_id = 4)).contains("spec 4"));
    assert!(refused(v2, data, &|e| file_of(e, &|f| f.partition = PartitionTuple::default())).contains("values"));
    assert!(refused(v2, data, &|e| file_of(e, &|f| f.record_count = u64::MAX)).contains("record_count"));
    assert!(refused(v2, positions, &|e| file_of(e, &|f| f.file_format = FileFormat::Puffin)).contains("version 3"));
    assert!(refused(v3, positions, &|e| file_of(e, &|f| f.content_offset = None)).contains("offset"));
    assert!(refused(v1, positions, &|_| {}).contains("v1"));
    let wrong_type = |f: &mut DataFile| {
        let mut values: Vec<_> = f.partition.0.iter().cloned().collect();
        values[0] = Some(Literal::Long(1));
        f.partition = PartitionTuple(values.into());
    };
    assert!(refused(v2, data, &|e| file_of(e, &wrong_type)).contains("flag"));
}

#[test]
fn lists_refuse_what_the_version_cannot_hold() {
    let metadata = table(FormatVersion::V2, |_| {});
    let (_, manifest) = writer(&metadata, ManifestContent::Deletes).finish("file:/t/m.avro").unwrap();
    let write = |version, manifest: &ManifestFile| {
        let written = write_manifest_list(version, 1, Some(2), 3, None, std::slice::from_ref(manifest));
        written.map_err(|e| e.to_string())
    };
    assert!(write(FormatVersion::V2, &manifest).unwrap_err().contains("sequence number"));
    let mut given = [manifest];
    assert_eq!(assign_list_inheritance(&mut given, 3, Some(0)), 0);
    assert!(write(FormatVersion::V1, &given[0]).unwrap_err().contains("v1"));
    write(FormatVersion::V2, &given[0]).unwrap();
    // A manifest of a v1 list without counts cannot go into a v2 list as it is.
    given[0].added_rows_count = None;
    assert!(write(FormatVersion::V2, &given[0]).unwrap_err().contains("added_rows_count"));
}

#[test]
fn the_partition_spec_in_the_header_is_a_bare_array() {
    let metadata = table(FormatVersion::V2, |_| {});
    let (bytes, _) = writer(&metadata, ManifestContent::Data).finish("m").unwrap();
    let container = crate::spec::avro::Container::open(&bytes).unwrap();
    let fields: serde_json::Value = serde_json::from_str(container.get("partition-spec").unwrap()).unwrap();
    assert_eq!(PartitionSpec::from_fields_json(3, &fields).unwrap(), **metadata.default_spec().unwrap());
    assert_eq!(container.get("partition-spec-id"), Some("3"));
    assert_eq!((container.get("content"), container.get("schema-id")), (Some("data"), Some("0")));
    assert_eq!((container.get("format-version"), container.get("avro.codec")), (Some("2"), Some("deflate")));
}
