//! Whole files: rolling, settings, lineage columns, cleaning up.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::basic::{Compression, LogicalType};

use super::*;
use crate::ErrorKind;
use crate::writer::{DataFileWriter, DataWriterOptions};

fn long(id: i32, name: &str) -> NestedField {
    NestedField::new(id, name, false, PrimitiveType::Long)
}

fn numbers(schema: &arrow::datatypes::SchemaRef, rows: std::ops::Range<i64>) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    RecordBatch::try_new(schema.clone(), vec![values; schema.fields().len()]).unwrap()
}

#[tokio::test]
async fn files_roll_at_the_target_size() {
    let test = TestTable::new(FormatVersion::V2, vec![long(1, "n")], &[], &[("write.target-file-size-bytes", "30000")]);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions { task: 3, ..Default::default() }).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut want = Vec::new();
    for _ in 0..4 {
        let values: Vec<i64> = (0..10_000).map(|_| rng.i64(..)).collect();
        want.extend(values.clone());
        let batch = RecordBatch::try_new(writer.schema().clone(), vec![Arc::new(Int64Array::from(values))]).unwrap();
        writer.write(&batch).await.unwrap();
    }
    let files = writer.finish().await.unwrap();
    assert!(files.len() >= 8, "{}", files.len());
    let mut got = Vec::new();
    for (i, file) in files.iter().enumerate() {
        assert!(file.file_size_in_bytes < 60_000, "{}", file.file_size_in_bytes);
        assert!(
            file.file_path.ends_with(&format!("-0-{:05}.parquet", i + 1)) && file.file_path.contains("/data/00000-3-")
        );
        got.extend(read_all(&test.table, file).await.column(0).as_primitive::<Int64Type>().values().to_vec());
    }
    assert_eq!(got, want);
}

#[tokio::test]
async fn no_rows_make_no_file() {
    let test = TestTable::new(FormatVersion::V2, vec![long(1, "n")], &[("n", Transform::Bucket(3))], &[]);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    let empty = numbers(writer.schema(), 0..0);
    writer.write(&empty).await.unwrap();
    assert_eq!(writer.finish().await.unwrap(), Vec::new());
    assert_eq!(test.files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn settings_reach_the_file() {
    let fields = vec![
        NestedField::new(1, "u", true, PrimitiveType::Uuid),
        NestedField::new(2, "d", false, PrimitiveType::Decimal { precision: 20, scale: 3 }),
        NestedField::new(3, "empty", false, PrimitiveType::Unknown),
    ];
    let properties = [
        ("write.parquet.compression-codec", "snappy"),
        ("write.parquet.bloom-filter-enabled.column.u", "true"),
        ("write.parquet.dict-encoding-enabled.column.d", "false"),
    ];
    let test = TestTable::new(FormatVersion::V3, fields.clone(), &[], &properties);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    let u = fixed(100, 16, &mut |n| std::iter::repeat_with(|| rng.u8(..)).take(n).collect());
    let d = random_column(&mut rng, fields[1].field_type.as_primitive().unwrap(), 100);
    let batch = RecordBatch::try_new(
        writer.schema().clone(),
        vec![u, d, new_null_array(&arrow::datatypes::DataType::Null, 100)],
    );
    writer.write(&batch.unwrap()).await.unwrap();
    let file = writer.finish().await.unwrap().remove(0);
    let footer = ParquetFile::new(&test.table.io, &file).footer().await.unwrap();
    let schema = footer.file_metadata().schema_descr();
    assert_eq!(schema.num_columns(), 2, "a column of type unknown is left out");
    assert_eq!(schema.column(0).logical_type_ref(), Some(&LogicalType::Uuid));
    assert_eq!((schema.column(1).type_length(), schema.column(1).type_precision()), (9, 20));
    assert_eq!(schema.column(0).max_def_level(), 0, "required");
    let columns = footer.row_group(0).columns();
    assert_eq!(columns[0].compression(), Compression::SNAPPY);
    assert!(columns[0].bloom_filter_offset().is_some() && columns[1].bloom_filter_offset().is_none());
    assert!(columns[1].dictionary_page_offset().is_none());
    assert!(columns.iter().all(|c| c.column_index_offset().is_some() && c.offset_index_offset().is_some()));
    let keys: Vec<_> = footer.file_metadata().key_value_metadata().unwrap().iter().map(|k| k.key.as_str()).collect();
    assert_eq!(keys, ["iceberg.schema"]);

    let bad = TestTable::new(FormatVersion::V2, vec![long(1, "n")], &[], &[("write.parquet.compression-level", "99")]);
    let error = DataFileWriter::new(&bad.table, DataWriterOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn lineage_columns_are_stored_under_their_ids() {
    let options = || DataWriterOptions { lineage: true, ..Default::default() };
    let test = TestTable::new(FormatVersion::V3, vec![long(1, "n")], &[], &[]);
    let mut writer = DataFileWriter::new(&test.table, options()).unwrap();
    let batch = numbers(writer.schema(), 5..8);
    writer.write(&batch).await.unwrap();
    let file = writer.finish().await.unwrap().remove(0);
    let read = read_all(&test.table, &file).await;
    let ids: Vec<_> = read.schema().fields().iter().map(|f| f.metadata()["PARQUET:field_id"].clone()).collect();
    assert_eq!(ids, ["1", "2147483540", "2147483539"]);
    assert_eq!(read.column(1).as_primitive::<Int64Type>().values(), &[5, 6, 7]);
    assert!(file.lower_bounds.get(2_147_483_540).is_none());

    let old = TestTable::new(FormatVersion::V2, vec![long(1, "n")], &[], &[]);
    assert_eq!(DataFileWriter::new(&old.table, options()).err().unwrap().kind(), ErrorKind::InvalidInput);
}

async fn until_empty(test: &TestTable) {
    for _ in 0..200 {
        if test.files().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("left behind: {:?}", test.files());
}

#[tokio::test]
async fn what_is_not_handed_over_is_deleted() {
    let properties = [("write.target-file-size-bytes", "2000")];
    for abort in [true, false] {
        let test = TestTable::new(FormatVersion::V2, vec![long(1, "n")], &[], &properties);
        let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
        let batch = numbers(writer.schema(), 0..9000);
        writer.write(&batch).await.unwrap();
        assert!(!test.files().is_empty());
        if abort {
            writer.abort().await;
            assert!(test.files().is_empty());
        } else {
            drop(writer);
            until_empty(&test).await;
        }
    }
}

#[tokio::test]
async fn a_null_in_a_required_column_names_it() {
    let test = TestTable::new(FormatVersion::V2, vec![NestedField::new(1, "n", true, PrimitiveType::Long)], &[], &[]);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    let schema =
        arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new("x", arrow::datatypes::DataType::Int64, true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(vec![Some(1), None]))]).unwrap();
    let error = writer.write(&batch).await.unwrap_err();
    assert_eq!((error.kind(), error.context("column")), (ErrorKind::InvalidInput, Some("n")));
    drop(writer);
    until_empty(&test).await;
}

#[tokio::test]
async fn storage_failures_leave_nothing() {
    use crate::testing::{Fault, FaultStore};
    for (fail_at, fault) in (0..4).flat_map(|n| [(n, Fault::BeforeSending), (n, Fault::AfterApplying)]) {
        let faults = FaultStore::new(Arc::new(object_store::local::LocalFileSystem::new()));
        let io = FileIo::builder().with_local_store(faults.clone()).build();
        let properties = [("write.target-file-size-bytes", "2000")];
        let test = TestTable::with_io(io, FormatVersion::V2, vec![long(1, "n")], &[], &properties);
        faults.fail_nth(fail_at, fault);
        let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
        let batch = numbers(writer.schema(), 0..9000);
        let result = match writer.write(&batch).await {
            Ok(()) => writer.finish().await.map(|_| ()),
            Err(e) => {
                drop(writer);
                Err(e)
            }
        };
        assert!(result.is_err(), "operation {fail_at}, {fault:?}");
        until_empty(&test).await;
    }
}

/// Writers run inside operators of a multi-threaded engine.
#[test]
fn writers_and_their_work_can_move_between_threads() {
    fn send<T: Send>(_: &T) {}
    let test = TestTable::new(FormatVersion::V3, vec![long(1, "n")], &[], &[]);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    send(&writer);
    let batch = numbers(writer.schema(), 0..1);
    send(&writer.write(&batch));
    send(&writer.finish());
    let file = DataFile::new(
        crate::spec::DataContent::Data,
        "x",
        crate::spec::FileFormat::Parquet,
        crate::spec::PartitionKey { spec_id: 0, tuple: Default::default() },
    );
    let task = crate::scan::FileScanTask { data_file: Arc::new(file), sequence_number: 1, deletes: Default::default() };
    let none = crate::spec::deletion_vector::DeletionVector::new();
    send(&crate::writer::rewrite_file(&test.table, &task, &none, DataWriterOptions::default()));
}
