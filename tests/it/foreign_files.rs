//! Files as other writers write them: without field ids, in other types, damaged.

use std::sync::Arc;

use calve::spec::{FormatVersion, NestedField, PartitionSpec, PrimitiveType, StructType, Type};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, TimeUnit};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;

use crate::handmade::{Lake, column, error, query, settings};

fn with_id(id: i32, name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true).with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into())
}

fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

async fn one_column(field: NestedField, file: Field, array: ArrayRef) -> Lake {
    let lake = Lake::new().await;
    lake.create("t", vec![field]).await;
    lake.append_parquet("t", &batch(vec![(file, array)]), WriterProperties::default()).await;
    lake
}

#[tokio::test]
async fn columns_without_ids_are_taken_by_position() {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "a", PrimitiveType::Long), column(2, "b", PrimitiveType::String)]).await;
    let rows = batch(vec![
        (Field::new("b", DataType::Int64, true), Arc::new(Int64Array::from(vec![1, 2])) as _),
        (Field::new("x", DataType::Utf8, true), Arc::new(StringArray::from(vec!["p", "q"])) as _),
        (Field::new("y", DataType::Utf8, true), Arc::new(StringArray::from(vec!["r", "s"])) as _),
    ]);
    lake.append_parquet("t", &rows, WriterProperties::default()).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        assert_eq!(query(&ctx, "SELECT * FROM t").await, ["1|p", "2|q"]);
        assert_eq!(query(&ctx, "SELECT a, _pos FROM t$rows WHERE b = 'q'").await, ["2|1"]);
    }
}

#[tokio::test]
async fn a_name_mapping_gives_ids_by_name() {
    let lake = Lake::new().await;
    let mapping = r#"[{"field-id": 1, "names": ["a", "old_a"]}, {"field-id": 2, "names": ["b"]}]"#;
    lake.create_with(
        "t",
        FormatVersion::V2,
        vec![column(1, "a", PrimitiveType::Long), column(2, "b", PrimitiveType::String)],
        PartitionSpec::unpartitioned(),
        &[("schema.name-mapping.default", mapping)],
    )
    .await;
    let rows = batch(vec![
        (Field::new("stray", DataType::Utf8, true), Arc::new(StringArray::from(vec!["z"])) as _),
        (Field::new("old_a", DataType::Int32, true), Arc::new(Int32Array::from(vec![7])) as _),
    ]);
    lake.append_parquet("t", &rows, WriterProperties::default()).await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT * FROM t").await, ["7|"]);
    assert_eq!(query(&ctx, "SELECT a FROM t WHERE b IS NULL AND a = 7").await, ["7"]);
}

#[tokio::test]
async fn nested_columns_without_ids_and_mapping_are_refused() {
    let inner = StructType { fields: vec![Arc::new(column(2, "x", PrimitiveType::Int))] };
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
    let array = StructArray::try_new(fields.clone(), vec![Arc::new(Int32Array::from(vec![1]))], None).unwrap();
    let file = Field::new("s", DataType::Struct(fields), true);
    let lake = one_column(NestedField::new(1, "s", false, inner), file, Arc::new(array)).await;
    let e = error(&lake.session(|_| {}), "SELECT * FROM t").await;
    assert!(e.contains("unsupported") && e.contains("schema.name-mapping.default") && e.contains(".parquet"), "{e}");
}

#[tokio::test]
async fn other_representations_of_a_type_are_read() {
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let dictionary: DictionaryArray<Int32Type> = ["x", "y"].into_iter().collect();
    let dictionary_type = dictionary.data_type().clone();
    let cases: Vec<(PrimitiveType, DataType, ArrayRef, &str, [&str; 2])> = vec![
        (PrimitiveType::Long, DataType::Int32, Arc::new(Int32Array::from(vec![1, 2])), "c = 2", ["1", "2"]),
        (PrimitiveType::Int, DataType::Int16, Arc::new(Int16Array::from(vec![1, 2])), "c = 2", ["1", "2"]),
        (
            PrimitiveType::Double,
            DataType::Float32,
            Arc::new(Float32Array::from(vec![0.5, 1.5])),
            "c > 1",
            ["0.5", "1.5"],
        ),
        (
            PrimitiveType::Decimal { precision: 12, scale: 2 },
            DataType::Decimal128(5, 2),
            Arc::new(Decimal128Array::from(vec![150, 250]).with_precision_and_scale(5, 2).unwrap()),
            "c = 2.5",
            ["1.50", "2.50"],
        ),
        (
            PrimitiveType::String,
            DataType::LargeUtf8,
            Arc::new(LargeStringArray::from(vec!["x", "y"])),
            "c = 'y'",
            ["x", "y"],
        ),
        (PrimitiveType::String, dictionary_type, Arc::new(dictionary), "c = 'y'", ["x", "y"]),
        (
            PrimitiveType::String,
            DataType::Binary,
            Arc::new(BinaryArray::from(vec![&b"x"[..], b"y"])),
            "c = 'y'",
            ["x", "y"],
        ),
        (
            PrimitiveType::Timestamptz,
            utc(TimeUnit::Millisecond),
            Arc::new(TimestampMillisecondArray::from(vec![0, 1500]).with_timezone("UTC")),
            "c > TIMESTAMP '1970-01-01T00:00:01Z'",
            ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500Z"],
        ),
        (
            PrimitiveType::Timestamptz,
            DataType::Timestamp(TimeUnit::Microsecond, None),
            Arc::new(TimestampMicrosecondArray::from(vec![0, 1])),
            "c > TIMESTAMP '1970-01-01T00:00:00Z'",
            ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"],
        ),
        (
            PrimitiveType::Timestamp,
            utc(TimeUnit::Microsecond),
            Arc::new(TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("UTC")),
            "c > TIMESTAMP '1970-01-01T00:00:00'",
            ["1970-01-01T00:00:00", "1970-01-01T00:00:00.000001"],
        ),
    ];
    for (ty, file_type, array, filter, wanted) in cases {
        let what = format!("{file_type} as {ty}");
        let lake = one_column(column(1, "c", ty), with_id(1, "other", file_type), array).await;
        for pushdown in [false, true] {
            let ctx = lake.session(|o| o.execution.parquet.pushdown_filters = pushdown);
            let mut sorted = wanted.to_vec();
            sorted.sort_unstable();
            assert_eq!(query(&ctx, "SELECT c FROM t").await, sorted, "{what}");
            assert_eq!(query(&ctx, &format!("SELECT c FROM t WHERE {filter}")).await, [wanted[1]], "{what}");
        }
    }
}

#[tokio::test]
async fn types_that_are_no_promotion_are_an_error_that_names_file_and_column() {
    for (ty, array) in [
        (PrimitiveType::Int, Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        (PrimitiveType::Long, Arc::new(StringArray::from(vec!["1"])) as ArrayRef),
        (PrimitiveType::Date, Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (PrimitiveType::Timestamp, Arc::new(TimestampNanosecondArray::from(vec![1])) as ArrayRef),
    ] {
        let file = with_id(1, "c", array.data_type().clone());
        let lake = one_column(column(1, "c", ty.clone()), file, array).await;
        let ctx = lake.session(|_| {});
        let e = error(&ctx, "SELECT c FROM t").await;
        for part in ["invalid data", "column c", "cannot be read as", ".parquet"] {
            assert!(e.contains(part), "{ty}: {e}");
        }
        assert_eq!(query(&ctx, "SELECT count(*) FROM t").await, ["1"], "{ty}");
    }
}

#[tokio::test]
async fn required_columns_that_a_file_lacks_are_an_error() {
    let lake = Lake::new().await;
    let required = NestedField::new(2, "must", true, Type::Primitive(PrimitiveType::Long));
    lake.create("t", vec![column(1, "a", PrimitiveType::Long), required]).await;
    let rows = batch(vec![(with_id(1, "a", DataType::Int64), Arc::new(Int64Array::from(vec![1])) as _)]);
    lake.append_parquet("t", &rows, WriterProperties::default()).await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT a FROM t").await, ["1"]);
    let e = error(&ctx, "SELECT must FROM t").await;
    for part in ["invalid data", "required column must", "field id 2", ".parquet"] {
        assert!(e.contains(part), "{e}");
    }
}

#[tokio::test]
async fn nested_fields_go_by_id() {
    let entry = StructType { fields: vec![Arc::new(column(7, "p", PrimitiveType::Long))] };
    let list = calve::spec::ListType { element: Arc::new(NestedField::new(6, "element", false, entry)) };
    let table = StructType {
        fields: vec![
            Arc::new(column(2, "new", PrimitiveType::String)),
            Arc::new(column(3, "b", PrimitiveType::Long)),
            Arc::new(column(4, "renamed", PrimitiveType::Int)),
            Arc::new(NestedField::new(5, "l", false, Type::List(Box::new(list)))),
        ],
    };
    let element = Fields::from(vec![with_id(7, "q", DataType::Int32), with_id(9, "gone", DataType::Utf8)]);
    let element_rows = StructArray::try_new(
        element.clone(),
        vec![Arc::new(Int32Array::from(vec![5, 6, 7])), Arc::new(StringArray::from(vec!["x", "y", "z"]))],
        None,
    )
    .unwrap();
    let item = Arc::new(with_id(6, "item", DataType::Struct(element)));
    let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths([2, 0, 1]);
    let nulls = Some(vec![true, false, true].into());
    let lists = ListArray::try_new(Arc::clone(&item), offsets, Arc::new(element_rows), nulls).unwrap();
    // In the file, "b" is the name of another field.
    let children = Fields::from(vec![
        with_id(4, "b", DataType::Int32),
        with_id(3, "c", DataType::Int32),
        with_id(5, "l", DataType::List(item)),
    ]);
    let structs = StructArray::try_new(
        children.clone(),
        vec![
            Arc::new(Int32Array::from(vec![Some(1), Some(2), None])),
            Arc::new(Int32Array::from(vec![10, 20, 30])),
            Arc::new(lists),
        ],
        Some(vec![true, true, false].into()),
    )
    .unwrap();
    let file = with_id(1, "s", DataType::Struct(children));
    let lake = one_column(NestedField::new(1, "s", false, table), file, Arc::new(structs)).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        let all = query(&ctx, "SELECT s['new'], s['b'], s['renamed'], s['l'] FROM t").await;
        assert_eq!(all, ["|10|1|[{p: 5}, {p: 6}]", "|20|2|", "|||"], "{setting:?}");
        assert_eq!(query(&ctx, "SELECT s['renamed'] FROM t WHERE s['b'] = 20").await, ["2"], "{setting:?}");
        assert_eq!(query(&ctx, "SELECT count(*) FROM t WHERE s IS NULL").await, ["1"], "{setting:?}");
        assert_eq!(query(&ctx, "SELECT s['b'] FROM t WHERE s['l'][1]['p'] = 5").await, ["10"], "{setting:?}");
        assert_eq!(query(&ctx, "SELECT s['b'] FROM t WHERE s['new'] = 'x'").await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn int96_timestamps_reach_beyond_the_nanosecond_range() {
    let schema = parse_message_type("message m { optional int96 z = 1; optional int96 n = 2; }").unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    // 9999-12-31T00:00:01 and 0001-01-01T00:00:00: Julian day, nanoseconds of the day.
    let value = |julian: u32, nanos: u64| {
        let mut value = Int96::new();
        value.set_data((nanos & 0xffff_ffff) as u32, (nanos >> 32) as u32, julian);
        value
    };
    let values = [value(5_373_484, 1_000_000_000), value(1_721_426, 0)];
    while let Some(mut column) = group.next_column().unwrap() {
        column.typed::<Int96Type>().write_batch(&values, Some(&[1, 1]), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "z", PrimitiveType::Timestamptz), column(2, "n", PrimitiveType::Timestamp)]).await;
    lake.append_bytes("t", bytes, 2).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        assert_eq!(
            query(&ctx, "SELECT z, n FROM t").await,
            ["0001-01-01T00:00:00Z|0001-01-01T00:00:00", "9999-12-31T00:00:01Z|9999-12-31T00:00:01"]
        );
        assert_eq!(query(&ctx, "SELECT count(*) FROM t WHERE z > TIMESTAMP '2000-01-01T00:00:00Z'").await, ["1"]);
    }
}

#[tokio::test]
async fn damaged_files_are_errors_that_name_the_file() {
    let rows = batch(vec![(with_id(1, "a", DataType::Int64), Arc::new(Int64Array::from_iter_values(0..1000)) as _)]);
    let whole = {
        let mut bytes = Vec::new();
        let mut writer = datafusion::parquet::arrow::ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        bytes
    };
    let footer = |mut bytes: Vec<u8>| {
        let n = bytes.len();
        bytes[n - 30..n - 8].fill(0xff);
        bytes
    };
    let pages = |mut bytes: Vec<u8>| {
        bytes[4..60].fill(0xff);
        bytes
    };
    let length = |mut bytes: Vec<u8>| {
        let n = bytes.len();
        bytes[n - 8..n - 4].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes
    };
    for (what, bytes) in [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("no magic", whole[..whole.len() - 1].to_vec()),
        ("empty", Vec::new()),
        ("footer", footer(whole.clone())),
        ("footer length", length(whole.clone())),
        ("pages", pages(whole.clone())),
        ("text", b"this is no Parquet file at all".to_vec()),
    ] {
        let lake = Lake::new().await;
        lake.create("t", vec![column(1, "a", PrimitiveType::Long)]).await;
        lake.append_bytes("t", bytes, 1000).await;
        let e = error(&lake.session(|_| {}), "SELECT sum(a) FROM t").await;
        assert!(e.contains(".parquet"), "{what}: {e}");
    }
}

#[tokio::test]
async fn a_wrong_record_count_is_an_error_once_rows_are_deleted() {
    let rows = batch(vec![(with_id(1, "a", DataType::Int64), Arc::new(Int64Array::from_iter_values(0..10)) as _)]);
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "a", PrimitiveType::Long)]).await;
    let mut bytes = Vec::new();
    let mut writer = datafusion::parquet::arrow::ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    lake.append_bytes("t", bytes, 11).await;
    lake.delete("t", |_| vec![3]).await;
    let e = error(&lake.session(|_| {}), "SELECT a FROM t").await;
    assert!(e.contains("11") && e.contains("10"), "{e}");
}

#[tokio::test]
async fn variants_are_read_as_they_are_stored_and_shredded_ones_refused_by_column() {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "id", PrimitiveType::Long), NestedField::new(2, "v", false, Type::Variant)]).await;
    let ids = |from: i64| Arc::new(Int64Array::from_iter_values(from..from + 3)) as ArrayRef;
    let metadata: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x01\x00\x00"; 3]));
    let value: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x0c\x07"), Some(b"\x00"), None]));
    let part = |name: &str, nullable: bool| Arc::new(Field::new(name, DataType::Binary, nullable));
    let parts = Fields::from(vec![part("metadata", false), part("value", true)]);
    let nulls = Some(vec![true, true, false].into());
    let plain = StructArray::new(parts.clone(), vec![Arc::clone(&metadata), Arc::clone(&value)], nulls.clone());
    let rows = |from: i64, variants: StructArray| {
        let field = with_id(2, "v", variants.data_type().clone());
        batch(vec![(with_id(1, "id", DataType::Int64), ids(from)), (field, Arc::new(variants) as _)])
    };
    lake.append_parquet("t", &rows(0, plain), WriterProperties::default()).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        let sql = "SELECT id, v['metadata'], v['value'] FROM t";
        assert_eq!(query(&ctx, sql).await, ["0|010000|0c07", "1|010000|00", "2||"]);
        assert_eq!(query(&ctx, "SELECT id FROM t WHERE v IS NULL").await, ["2"]);
        assert_eq!(query(&ctx, "SELECT id FROM t WHERE v['value'] = X'00'").await, ["1"]);
    }

    let typed: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let parts: Vec<_> =
        parts.iter().cloned().chain([Arc::new(Field::new("typed_value", DataType::Int64, true))]).collect();
    let shredded = StructArray::new(parts.into(), vec![metadata, value, typed], nulls);
    lake.append_parquet("t", &rows(3, shredded), WriterProperties::default()).await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT count(id) FROM t WHERE id > 1").await, ["4"]);
    let error = error(&ctx, "SELECT v FROM t").await;
    for part in ["column v", "shredded variant", "typed_value", ".parquet"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn geometries_are_read_as_bytes_and_unknown_columns_as_nulls() {
    let lake = Lake::new().await;
    let columns = vec![
        column(1, "id", PrimitiveType::Long),
        column(2, "g", PrimitiveType::Geometry(None)),
        column(3, "u", PrimitiveType::Unknown),
    ];
    lake.create("t", columns).await;
    let rows = batch(vec![
        (with_id(1, "id", DataType::Int64), Arc::new(Int64Array::from(vec![0, 1])) as _),
        (with_id(2, "g", DataType::Binary), Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x01\x02"), None])) as _),
    ]);
    lake.append_parquet("t", &rows, WriterProperties::default()).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        assert_eq!(query(&ctx, "SELECT * FROM t").await, ["0|0102|", "1||"]);
        assert_eq!(query(&ctx, "SELECT id FROM t WHERE g = X'0102'").await, ["0"]);
        assert_eq!(query(&ctx, "SELECT id FROM t WHERE u IS NULL AND g IS NULL").await, ["1"]);
        assert_eq!(query(&ctx, "SELECT count(u), count(*) FROM t WHERE u IS NOT NULL").await, ["0|0"]);
    }
}
