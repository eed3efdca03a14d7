//! Position delete files and deletion vectors, read back by the scan layer.

use std::collections::HashMap;

use super::*;
use crate::ErrorKind;
use crate::scan::{DeleteFile, DeleteFileIndex, DeleteLoader, FILE_PATH_ID, FileScanTask, POS_ID};
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::properties::DeleteGranularity;
use crate::spec::puffin::read_footer;
use crate::spec::{DataContent, FileFormat, Literal, PartitionKey, PartitionTuple};
use crate::writer::{DeletionVectorWriter, PositionDeleteWriter};

fn test_table(version: FormatVersion, properties: &[(&str, &str)]) -> TestTable {
    let fields = vec![NestedField::new(1, "k", false, PrimitiveType::Int)];
    TestTable::new(version, fields, &[("k", Transform::Identity)], properties)
}

fn key(k: i32) -> PartitionKey {
    PartitionKey { spec_id: 0, tuple: PartitionTuple(Arc::new([Some(Literal::Int(k))])) }
}

/// Paths with their positions, in partition `k`.
fn targets(k: i32) -> Vec<(Arc<str>, DeletionVector)> {
    let vector = |n: u64| DeletionVector::from_positions((0..n * 100).filter(|p| p % (n + 2) == 1));
    (1..4).rev().map(|n| (format!("file:/t/data/k_0={k}/f{n}.parquet").into(), vector(n))).collect()
}

async fn deleted(test: &TestTable, deletes: &[DataFile], path: &Arc<str>, k: i32) -> Option<DeletionVector> {
    let entries = deletes.iter().map(|f| DeleteFile { file: Arc::new(f.clone()), sequence_number: 2 });
    let index = DeleteFileIndex::new(entries, &test.table.metadata).unwrap();
    let mut file = DataFile::new(DataContent::Data, path.clone(), FileFormat::Parquet, key(k));
    file.record_count = 1 << 41;
    let deletes = index.for_data_file(&file, 1).unwrap();
    let task = FileScanTask { data_file: Arc::new(file), sequence_number: 1, deletes };
    let loaded = DeleteLoader::new(&test.table).deleted_positions(&task).await.unwrap();
    loaded.map(|v| (*v).clone())
}

#[tokio::test]
async fn partition_granularity_is_one_file_a_partition() {
    let test = test_table(FormatVersion::V2, &[]);
    let mut writer = PositionDeleteWriter::new(&test.table, 1, 2, None).unwrap();
    for k in [5, 4] {
        for (path, vector) in targets(k) {
            writer.add(&path, &key(k), &vector);
        }
    }
    // Once more, and nothing: neither makes a row.
    writer.add(&targets(5)[0].0, &key(5), &targets(5)[0].1);
    writer.add(&"file:/none".into(), &key(6), &DeletionVector::new());
    let files = writer.finish().await.unwrap();
    assert_eq!(files.iter().map(|f| f.partition_key()).collect::<Vec<_>>(), [key(5), key(4)]);
    for (file, k) in files.iter().zip([5, 4]) {
        let name = file.file_path.rsplit('/').next().unwrap();
        assert!(name.starts_with("00001-2-") && name.ends_with("-deletes.parquet"), "{name}");
        assert!(file.file_path.contains(&format!("/data/k_0={k}/")));
        assert_eq!((file.content, file.sort_order_id), (DataContent::PositionDeletes, None));
        assert_eq!(file.record_count, targets(k).iter().map(|(_, v)| v.len()).sum::<u64>());
        // Several data files: sizes and nothing else.
        assert_eq!(file.column_sizes.iter().map(|(id, _)| id).collect::<Vec<_>>(), [POS_ID, FILE_PATH_ID]);
        assert!(file.lower_bounds.is_empty() && file.upper_bounds.is_empty() && file.value_counts.is_empty());
        assert!(file.null_value_counts.is_empty() && file.nan_value_counts.is_empty());
        let rows = read_all(&test.table, file).await;
        let paths = rows.column(0).clone();
        let pairs = arrow::compute::SortColumn { values: paths, options: None };
        let positions = arrow::compute::SortColumn { values: rows.column(1).clone(), options: None };
        let sorted = arrow::compute::lexsort_to_indices(&[pairs, positions], None).unwrap();
        assert!(sorted.values().iter().enumerate().all(|(i, v)| i as u32 == *v), "sorted by path, then position");
        let footer = ParquetFile::new(&test.table.io, file).footer().await.unwrap();
        let dictionaries = footer.row_group(0).columns().iter().map(|c| c.dictionary_page_offset().is_some());
        assert_eq!(dictionaries.collect::<Vec<_>>(), [true, false], "paths repeat, positions do not");
        let pairs = footer.file_metadata().key_value_metadata().unwrap().clone();
        assert_eq!((pairs[0].key.as_str(), pairs[0].value.as_deref()), ("delete-type", Some("position")));
        for (path, vector) in targets(k) {
            assert_eq!(deleted(&test, &files, &path, k).await, Some(vector));
        }
    }
}

#[tokio::test]
async fn file_granularity_and_rolling() {
    for (granularity, target, at_least) in [("file", "67108864", 3), ("partition", "1500", 4)] {
        let properties = [("write.delete.granularity", granularity), ("write.delete.target-file-size-bytes", target)];
        let test = test_table(FormatVersion::V2, &properties);
        let mut writer = PositionDeleteWriter::new(&test.table, 0, 0, None).unwrap();
        let mut want: HashMap<Arc<str>, DeletionVector> = targets(1).into_iter().collect();
        let long: Arc<str> = "file:/t/data/k_0=1/long.parquet".into();
        let mut rng = fastrand::Rng::with_seed(2);
        let many = DeletionVector::from_positions((0..9000u64).map(|_| rng.u64(0..1 << 40)));
        if granularity == "partition" {
            want.insert(long.clone(), many);
        }
        for (path, vector) in &want {
            writer.add(path, &key(1), vector);
        }
        let files = writer.finish().await.unwrap();
        assert!(files.len() >= at_least, "{granularity}: {}", files.len());
        for (path, vector) in &want {
            assert_eq!(deleted(&test, &files, path, 1).await.as_ref(), Some(vector));
        }
        if granularity == "file" {
            for file in &files {
                let path = std::str::from_utf8(file.lower_bounds.get(FILE_PATH_ID).unwrap()).unwrap();
                assert_eq!(file.lower_bounds.get(FILE_PATH_ID), file.upper_bounds.get(FILE_PATH_ID));
                let vector = &want[path];
                let bound = |b: &ColumnMapBytes| i64::from_le_bytes(b.get(POS_ID).unwrap()[..].try_into().unwrap());
                assert_eq!(bound(&file.lower_bounds) as u64, vector.iter().next().unwrap());
                assert_eq!(bound(&file.upper_bounds) as u64, vector.max().unwrap());
                assert_eq!(file.referenced_data_file, None);
            }
        }
    }
}

type ColumnMapBytes = crate::spec::ColumnMap<Box<[u8]>>;

#[tokio::test]
async fn one_puffin_file_holds_many_vectors() {
    let test = test_table(FormatVersion::V3, &[]);
    let mut writer = DeletionVectorWriter::new(&test.table, 0, 9).unwrap();
    for k in [5, 4] {
        for (path, vector) in targets(k) {
            writer.add(&path, &key(k), &vector).await.unwrap();
        }
    }
    let twice = writer.add(&targets(5)[0].0, &key(5), &targets(5)[0].1).await;
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(writer.add(&"file:/x".into(), &key(1), &DeletionVector::new()).await.is_err());
    let files = writer.finish().await.unwrap();
    assert_eq!(files.len(), 6);
    let bytes = test.table.io.read(&files[0].file_path).await.unwrap();
    let footer = read_footer(&bytes).unwrap();
    for (file, blob) in files.iter().zip(&footer.blobs) {
        assert_eq!(file.file_path, files[0].file_path);
        assert!(file.file_path.ends_with("-00001-deletes.puffin") && file.is_deletion_vector());
        assert_eq!(file.file_size_in_bytes, bytes.len() as u64);
        assert_eq!((file.content_offset, file.content_size_in_bytes), (Some(blob.offset), Some(blob.length)));
        assert_eq!(file.referenced_data_file.as_deref(), Some(blob.properties["referenced-data-file"].as_str()));
        assert_eq!(file.record_count.to_string(), blob.properties["cardinality"]);
        assert!(file.column_sizes.is_empty() && file.lower_bounds.is_empty());
    }
    for k in [5, 4] {
        for (path, vector) in targets(k) {
            assert_eq!(deleted(&test, &files, &path, k).await, Some(vector));
        }
    }
}

#[tokio::test]
async fn puffin_files_roll() {
    let test = test_table(FormatVersion::V3, &[("write.delete.target-file-size-bytes", "300")]);
    let mut writer = DeletionVectorWriter::new(&test.table, 0, 0).unwrap();
    for (path, vector) in targets(1) {
        writer.add(&path, &key(1), &vector).await.unwrap();
    }
    let files = writer.finish().await.unwrap();
    let paths: std::collections::HashSet<_> = files.iter().map(|f| f.file_path.clone()).collect();
    assert!(paths.len() > 1 && files.len() == 3);
    for (path, vector) in targets(1) {
        assert_eq!(deleted(&test, &files, &path, 1).await, Some(vector));
    }
    let mut writer = DeletionVectorWriter::new(&test.table, 0, 0).unwrap();
    writer.add(&targets(2)[0].0, &key(2), &targets(2)[0].1).await.unwrap();
    let before = test.files().len();
    writer.abort().await;
    assert!(test.files().len() <= before);
}

#[test]
fn each_version_has_its_own_kind_of_delete() {
    for (version, positions, vectors) in
        [(FormatVersion::V1, false, false), (FormatVersion::V2, true, false), (FormatVersion::V3, false, true)]
    {
        let test = test_table(version, &[]);
        let granularity = Some(DeleteGranularity::File);
        assert_eq!(PositionDeleteWriter::new(&test.table, 0, 0, granularity).is_ok(), positions);
        assert_eq!(DeletionVectorWriter::new(&test.table, 0, 0).is_ok(), vectors);
    }
}
