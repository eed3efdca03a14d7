//! Vectorised transforms and the fan-out against one value at a time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Int64Type, Schema as ArrowSchema};

use super::*;
use crate::ErrorKind;
use crate::spec::{Literal, StructType};
use crate::writer::fanout::PartitionFanout;
use crate::writer::transform::{literal_at, transform_column};
use crate::writer::{DataFileWriter, DataWriterOptions};

fn transforms() -> Vec<Transform> {
    let mut all = vec![Transform::Identity, Transform::Void, Transform::Year, Transform::Month, Transform::Day];
    all.push(Transform::Hour);
    for n in [1, 3, 16, 1000] {
        all.extend([Transform::Bucket(n), Transform::Truncate(n)]);
    }
    all
}

#[test]
fn columns_transform_as_values_do() {
    let mut rng = fastrand::Rng::with_seed(11);
    for field in all_primitives() {
        let primitive = field.field_type.as_primitive().unwrap();
        for transform in transforms() {
            let Some(result) = transform.result_type(primitive) else {
                let array = random_column(&mut rng, primitive, 3);
                assert!(transform_column(&transform, primitive, &array).is_err(), "{transform} {primitive}");
                continue;
            };
            for _ in 0..5 {
                let array = random_column(&mut rng, primitive, 200);
                let transformed = transform_column(&transform, primitive, &array).unwrap();
                assert_eq!(transformed.data_type(), &arrow_type(&Type::Primitive(result.clone())).unwrap());
                for row in 0..array.len() {
                    let value = literal_at(&array, row, primitive).unwrap();
                    let want = value.as_ref().and_then(|v| transform.apply(v).unwrap());
                    assert_eq!(literal_at(&transformed, row, &result).unwrap(), want, "{transform} of {value:?}");
                }
            }
        }
    }
}

#[test]
fn overflow_is_an_error_and_nulls_do_not_overflow() {
    let far = TimestampMicrosecondArray::from(vec![i64::MAX]);
    let error = transform_column(&Transform::Hour, &PrimitiveType::Timestamp, &(Arc::new(far) as ArrayRef));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    let low: ArrayRef = Arc::new(Int32Array::from(vec![i32::MIN]));
    assert!(transform_column(&Transform::Truncate(1000), &PrimitiveType::Int, &low).is_err());
    let hidden = low.to_data().into_builder().nulls(Some(NullBuffer::from(vec![false]))).build().unwrap();
    assert!(transform_column(&Transform::Truncate(1000), &PrimitiveType::Int, &make_array(hidden)).is_ok());
    let unknown = Transform::Unknown("zorder[2]".into());
    let error = transform_column(&unknown, &PrimitiveType::Int, &low).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn every_row_lands_in_its_partition_once_and_in_order() {
    let mut rng = fastrand::Rng::with_seed(5);
    let inner = StructType { fields: vec![Arc::new(NestedField::new(3, "x", false, PrimitiveType::Int))] };
    let fields = vec![
        NestedField::new(1, "n", false, PrimitiveType::Long),
        NestedField::new(2, "s", false, inner),
        NestedField::new(4, "f", false, PrimitiveType::Double),
    ];
    let schema = Schema::new(0, fields);
    let field =
        |id, source_id, transform| PartitionField { source_id, field_id: id, name: format!("p{id}"), transform };
    let spec = PartitionSpec {
        spec_id: 0,
        fields: vec![
            field(1000, 3, Transform::Bucket(4)),
            field(1001, 4, Transform::Identity),
            field(1002, 1, Transform::Void),
        ],
    };
    let arrow = arrow_schema(&schema).unwrap();
    for clustered in [false, true] {
        let mut fanout = PartitionFanout::new(&spec, &schema).unwrap();
        let mut next = 0i64;
        let mut batches = Vec::new();
        for _ in 0..20 {
            let rows = rng.usize(0..700);
            let n: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| next + i)));
            next += rows as i64;
            let x: ArrayRef = Arc::new(
                (0..rows).map(|i| Some(if clustered { i as i32 / 300 } else { rng.i32(0..9) })).collect::<Int32Array>(),
            );
            let nulls = NullBuffer::from((0..rows).map(|_| clustered || rng.u8(0..4) > 0).collect::<Vec<_>>());
            let arrow::datatypes::DataType::Struct(inner) = arrow.field(1).data_type() else { panic!() };
            let s: ArrayRef = Arc::new(StructArray::new(inner.clone(), vec![x], Some(nulls)));
            let values = if clustered { vec![1.0] } else { vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.5] };
            let f: ArrayRef = Arc::new((0..rows).map(|_| rng.choice(&values).copied()).collect::<Float64Array>());
            batches.push(RecordBatch::try_new(arrow.clone(), vec![n, s, f]).unwrap());
            fanout.gather(batches.last().unwrap().clone());
        }
        let all = arrow::compute::concat_batches(&arrow, &batches).unwrap();
        let mut want: HashMap<(Option<Literal>, Option<Literal>), Vec<i64>> = HashMap::new();
        for row in 0..all.num_rows() {
            let s = all.column(1).as_struct();
            let x = if s.is_null(row) { None } else { literal_at(s.column(0), row, &PrimitiveType::Int).unwrap() };
            let bucket = x.and_then(|x| Transform::Bucket(4).apply(&x).unwrap());
            let f = literal_at(all.column(2), row, &PrimitiveType::Double).unwrap();
            want.entry((bucket, f)).or_default().push(row as i64);
        }
        let mut got = HashMap::new();
        for (partition, share) in fanout.share().unwrap() {
            let tuple = fanout.tuple(partition);
            assert_eq!(tuple.0[2], None);
            let rows: Vec<i64> =
                share.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
            assert!(got.insert((tuple.0[0].clone(), tuple.0[1].clone()), rows).is_none(), "one share a partition");
        }
        // NaNs of any sign are one partition, the zeros are two.
        assert_eq!(got, want);
        assert_eq!(fanout.memory(), 0);
    }
}

#[tokio::test]
async fn files_lie_in_form_encoded_folders() {
    let fields = vec![NestedField::new(1, "k", false, PrimitiveType::String)];
    let test = TestTable::new(FormatVersion::V2, fields, &[("k", Transform::Identity)], &[]);
    let mut writer =
        DataFileWriter::new(&test.table, DataWriterOptions { partition: 7, ..Default::default() }).unwrap();
    let values = [Some("a/b"), Some("with space"), Some(""), None, Some("é%#?="), Some("a/b")];
    let batch = RecordBatch::try_new(writer.schema().clone(), vec![Arc::new(StringArray::from_iter(values))]).unwrap();
    writer.write(&batch).await.unwrap();
    let files = writer.finish().await.unwrap();
    let folders: Vec<&str> = files.iter().map(|f| f.file_path.rsplit('/').nth(1).unwrap()).collect();
    assert_eq!(folders, ["k_0=a%2Fb", "k_0=with+space", "k_0=", "k_0=null", "k_0=%C3%A9%25%23%3F%3D"]);
    assert_eq!(files.iter().map(|f| f.record_count).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
    assert_eq!(files[3].partition.0.as_ref(), [None]);
    let name = files[1].file_path.rsplit('/').next().unwrap();
    assert!(name.starts_with("00007-0-") && name.ends_with("-0-00002.parquet"), "{name}");
    for file in &files {
        assert_eq!(read_all(&test.table, file).await.num_rows() as u64, file.record_count);
        assert_eq!(test.table.io.size(&file.file_path).await.unwrap(), file.file_size_in_bytes);
    }
}

#[tokio::test]
async fn many_partitions_keep_within_files_and_memory() {
    let fields = vec![
        NestedField::new(1, "k", false, PrimitiveType::Int),
        NestedField::new(2, "v", false, PrimitiveType::Binary),
    ];
    let test = TestTable::new(FormatVersion::V2, fields, &[("k", Transform::Identity)], &[]);
    let options = DataWriterOptions { memory_limit: 1 << 20, max_open_files: 10, ..Default::default() };
    let mut writer = DataFileWriter::new(&test.table, options).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let mut rows = 0;
    for _ in 0..30 {
        let keys = Int32Array::from_iter_values((0..4096).map(|_| rng.i32(0..40)));
        let values = BinaryArray::from_iter_values(
            (0..4096).map(|_| std::iter::repeat_with(|| rng.u8(..)).take(200).collect::<Vec<_>>()),
        );
        let batch = RecordBatch::try_new(writer.schema().clone(), vec![Arc::new(keys), Arc::new(values)]).unwrap();
        writer.write(&batch).await.unwrap();
        rows += 4096;
        assert!(writer.open_files() <= 10);
        assert!(writer.memory() <= (1 << 20) + (32 << 20), "{}", writer.memory());
    }
    let files = writer.finish().await.unwrap();
    assert_eq!(files.iter().map(|f| f.record_count).sum::<u64>(), rows);
    for file in &files {
        let batch = read_all(&test.table, file).await;
        let Some(Literal::Int(k)) = file.partition.0[0] else { panic!() };
        assert!(batch.column(0).as_primitive::<arrow::datatypes::Int32Type>().values().iter().all(|v| *v == k));
    }
}

#[test]
fn specs_that_cannot_be_written() {
    let schema = Schema::new(0, vec![NestedField::new(1, "f", false, PrimitiveType::Float)]);
    let spec = |source_id, transform| PartitionSpec {
        spec_id: 0,
        fields: vec![PartitionField { source_id, field_id: 1000, name: "p".into(), transform }],
    };
    let kind = |s| PartitionFanout::new(&s, &schema).err().map(|e| e.kind());
    assert_eq!(kind(spec(1, Transform::Bucket(4))), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(spec(9, Transform::Identity)), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(spec(1, Transform::Unknown("z".into()))), Some(ErrorKind::Unsupported));
    // A dropped column's field of a v1 spec.
    let mut fanout = PartitionFanout::new(&spec(9, Transform::Void), &schema).unwrap();
    let arrow = Arc::new(ArrowSchema::new(arrow_schema(&schema).unwrap().fields().clone()));
    fanout.gather(RecordBatch::try_new(arrow, vec![Arc::new(Float32Array::from(vec![1.0]))]).unwrap());
    let shares = fanout.share().unwrap();
    assert_eq!((shares.len(), fanout.tuple(0).0.as_ref()), (1, [None].as_slice()));
}
