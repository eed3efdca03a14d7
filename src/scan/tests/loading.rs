use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use futures::FutureExt;
use futures::future::join_all;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::super::footer::ParquetFile;
use super::super::{DeleteFile, DeleteLoader, FileDeletes, FileScanTask};
use super::*;
use crate::ErrorKind;
use crate::scan::task::FILE_PATH_ID;
use crate::spec::ColumnMap;
use crate::spec::deletion_vector::DeletionVector;
use crate::testing::{Fault, StoreOp};

use DataContent::{Data, PositionDeletes};

const A: &str = "memory:/t/data/a.parquet";
const B: &str = "memory:/t/data/b.parquet";

/// A Parquet file of the given columns: name, field id, values.
pub(super) fn parquet(columns: Vec<(&str, Option<i32>, ArrayRef)>, row_group: usize) -> Vec<u8> {
    parquet_with(columns, WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build())
}

fn parquet_with(columns: Vec<(&str, Option<i32>, ArrayRef)>, properties: WriterProperties) -> Vec<u8> {
    let field = |name: &str, id: Option<i32>, array: &ArrayRef| {
        let id = id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_string(), id.to_string()));
        Field::new(name, array.data_type().clone(), true).with_metadata(id.into_iter().collect())
    };
    let schema = Schema::new(columns.iter().map(|(name, id, array)| field(name, *id, array)).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(schema), arrays).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn paths(rows: &[(&str, i64)]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(|(path, _)| *path)))
}

fn positions(rows: &[(&str, i64)]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, pos)| *pos)))
}

fn delete_rows(rows: &[(&str, i64)]) -> Vec<u8> {
    parquet(vec![("file_path", Some(2_147_483_546), paths(rows)), ("pos", Some(2_147_483_545), positions(rows))], 3)
}

async fn store(fixture: &Fixture, name: &str, bytes: Vec<u8>) -> DataFile {
    let path = format!("memory:/t/{name}");
    let size = bytes.len() as u64;
    fixture.io.write(&path, bytes.into()).await.unwrap();
    DataFile { file_size_in_bytes: size, ..file(PositionDeletes, &path, key(0, [])) }
}

fn task(path: &str, record_count: u64, deletes: &[&DataFile]) -> FileScanTask {
    let delete = |file: &&DataFile| Arc::new(DeleteFile { file: Arc::new((*file).clone()), sequence_number: 2 });
    let (vectors, others): (Vec<_>, Vec<_>) = deletes.iter().map(delete).partition(|d| d.file.is_deletion_vector());
    let deletes =
        FileDeletes { vector: vectors.into_iter().next(), positions: others.into(), ..FileDeletes::default() };
    let data_file = Arc::new(DataFile { record_count, ..file(Data, path, key(0, [])) });
    FileScanTask { data_file, sequence_number: 1, deletes }
}

async fn deleted(loader: &DeleteLoader, task: &FileScanTask) -> Vec<u64> {
    loader.deleted_positions(task).await.unwrap().map_or(vec![], |vector| vector.iter().collect())
}

async fn error(loader: &DeleteLoader, task: &FileScanTask, kind: ErrorKind, parts: &[&str]) {
    let e = loader.deleted_positions(task).await.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for part in parts {
        assert!(e.to_string().contains(part), "{part}: {e}");
    }
}

#[tokio::test]
async fn without_deletes_nothing_is_read() {
    let fixture = Fixture::new();
    let loader = fixture.loader();
    assert!(loader.deleted_positions(&task(A, 10, &[])).await.unwrap().is_none());
    assert_eq!(loader.live_row_count(&task(A, 10, &[])).await.unwrap(), 10);
    assert_eq!(fixture.counts.count_where(|_, _| true), 0);
}

/// ch#105888, velox#9856: several delete files, over several data files, of several row groups.
#[tokio::test]
async fn position_delete_files_are_united_by_path() {
    let fixture = Fixture::new();
    let rows = [(A, 0), (A, 1), (A, 5), (A, 7), (B, 1), (B, 2), (B, 9), (A, 9)];
    let one = store(&fixture, "one", delete_rows(&rows)).await;
    let two = store(&fixture, "two", delete_rows(&[(A, 1), (A, 2), ("other", 3)])).await;
    let tasks = [task(A, 10, &[&one, &two]), task(B, 10, &[&one, &two]), task("clean", 10, &[&one, &two])];
    for loader in [fixture.loader(), fixture.loader().for_tasks(&tasks).unwrap()] {
        assert_eq!(deleted(&loader, &tasks[0]).await, [0, 1, 2, 5, 7, 9]);
        assert_eq!(deleted(&loader, &tasks[1]).await, [1, 2, 9]);
        assert_eq!(deleted(&loader, &tasks[2]).await, [0; 0]);
        assert_eq!(loader.live_row_count(&tasks[0]).await.unwrap(), 4);
        assert_eq!(loader.live_row_count(&tasks[2]).await.unwrap(), 10);
    }
    let loader = fixture.loader().for_tasks(&tasks).unwrap();
    error(&loader, &task("other", 10, &[&two]), ErrorKind::Internal, &["other"]).await;
}

/// Dictionaries of several row groups, one that is given up on the way, none, newer encodings, bytes that are not said to be
/// text; more rows than a batch, and not sorted by path.
#[tokio::test]
async fn paths_are_told_apart_however_they_are_encoded() {
    let fixture = Fixture::new();
    let path = |i: i64| match i / 7 % 3 {
        0 => A.to_owned(),
        1 => B.to_owned(),
        _ => format!("memory:/t/data/{i}.parquet"),
    };
    let rows: Vec<(String, i64)> = (0..40_000).map(|i| (path(i), i)).collect();
    let rows: Vec<(&str, i64)> = rows.iter().map(|(path, pos)| (path.as_str(), *pos)).collect();
    let want = |path: &str| rows.iter().filter(|(p, _)| *p == path).map(|(_, pos)| *pos as u64).collect::<Vec<_>>();
    let binary: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows.iter().map(|(path, _)| path)));
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    let forms = [
        ("dictionary", paths(&rows), WriterProperties::builder().set_max_row_group_row_count(Some(9_000))),
        ("spilled", paths(&rows), WriterProperties::builder().set_dictionary_page_size_limit(20_000)),
        ("plain", paths(&rows), plain()),
        ("delta", paths(&rows), plain().set_writer_version(WriterVersion::PARQUET_2_0)),
        ("binary", binary, WriterProperties::builder()),
    ];
    for (form, paths, properties) in forms {
        let columns = vec![("file_path", Some(2_147_483_546), paths), ("pos", Some(2_147_483_545), positions(&rows))];
        let deletes = store(&fixture, form, parquet_with(columns, properties.build())).await;
        let loader = fixture.loader();
        for path in [A, B] {
            assert_eq!(deleted(&loader, &task(path, 50_000, &[&deletes])).await, want(path), "{form} {path}");
        }
    }
}

#[tokio::test]
async fn positions_past_the_end_of_the_file_are_left_out() {
    let fixture = Fixture::new();
    let one = store(&fixture, "one", delete_rows(&[(A, 8), (A, 9), (A, 10), (A, 1 << 40)])).await;
    let loader = fixture.loader();
    assert_eq!(deleted(&loader, &task(A, 10, &[&one])).await, [8, 9]);
    let loader = fixture.loader();
    assert!(loader.deleted_positions(&task(A, 8, &[&one])).await.unwrap().is_none());
    let loader = fixture.loader();
    assert_eq!(loader.live_row_count(&task(A, 10, &[&one])).await.unwrap(), 8);
}

#[tokio::test]
async fn columns_are_found_by_field_id_and_by_name_only_without_ids() {
    let fixture = Fixture::new();
    let rows = [(A, 3), (A, 4)];
    let decoy = || -> ArrayRef { Arc::new(Int64Array::from(vec![0, 0])) };
    let renamed = parquet(
        vec![
            ("pos", Some(1), decoy()),
            ("p", Some(2_147_483_545), positions(&rows)),
            ("f", Some(2_147_483_546), paths(&rows)),
        ],
        10,
    );
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![3, 4]));
    let unnumbered = parquet(vec![("pos", None, narrow), ("x", None, decoy()), ("file_path", None, paths(&rows))], 10);
    for (name, bytes) in [("renamed", renamed), ("unnumbered", unnumbered)] {
        let deletes = store(&fixture, name, bytes).await;
        assert_eq!(deleted(&fixture.loader(), &task(A, 10, &[&deletes])).await, [3, 4], "{name}");
    }
    let other_ids = parquet(vec![("file_path", Some(1), paths(&rows)), ("pos", Some(2), positions(&rows))], 10);
    let deletes = store(&fixture, "other-ids", other_ids).await;
    let loader = fixture.loader();
    error(&loader, &task(A, 10, &[&deletes]), ErrorKind::DataInvalid, &["file_path", "other-ids"]).await;
}

#[tokio::test]
async fn broken_position_delete_files_are_errors_that_name_them() {
    let fixture = Fixture::new();
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let two = [(A, 1), (A, 2)];
    let null = parquet(vec![("file_path", None, paths(&two)), ("pos", None, nulls)], 10);
    let no_path: ArrayRef = Arc::new(StringArray::from(vec![Some(A), None]));
    let no_path = parquet(vec![("file_path", None, no_path), ("pos", None, positions(&two))], 10);
    let text = parquet(vec![("file_path", None, paths(&two)), ("pos", None, paths(&two))], 10);
    let cut = {
        let bytes = delete_rows(&two);
        bytes[..bytes.len() - 5].to_vec()
    };
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("null", null, &["null in column pos"]),
        ("no-path", no_path, &["null in column file_path"]),
        ("negative", delete_rows(&[(A, -1)]), &["negative position"]),
        ("text", text, &["pos"]),
        ("cut", cut, &[]),
        ("empty", vec![], &[]),
        ("garbage", b"no parquet at all, but long enough to have a footer".to_vec(), &[]),
    ];
    for (name, bytes, parts) in cases {
        let deletes = store(&fixture, name, bytes).await;
        let loader = fixture.loader();
        error(&loader, &task(A, 10, &[&deletes]), ErrorKind::DataInvalid, &[parts, &[name]].concat()).await;
    }
    let deletes = store(&fixture, "deletes.avro", vec![]).await;
    let avro = DataFile { file_format: FileFormat::Avro, ..deletes.clone() };
    error(&fixture.loader(), &task(A, 10, &[&avro]), ErrorKind::DataInvalid, &["Avro", "deletes.avro"]).await;
    let orc = DataFile { file_format: FileFormat::Orc, ..deletes };
    error(&fixture.loader(), &task(A, 10, &[&orc]), ErrorKind::Unsupported, &["ORC", "deletes.avro"]).await;
}

#[tokio::test]
async fn delete_files_whose_bounds_exclude_the_path_are_not_read() {
    let fixture = Fixture::new();
    let bound = |path: &str| ColumnMap::from_iter([(FILE_PATH_ID, path.as_bytes().into())]);
    let with = |name: &str, lower: &str, upper: &str| DataFile {
        lower_bounds: bound(lower),
        upper_bounds: bound(upper),
        ..file(PositionDeletes, &format!("memory:/t/missing-{name}"), key(0, []))
    };
    let loader = fixture.loader();
    let (below, above) = (with("below", "memory:/a", "memory:/t/data/a"), with("above", B, "z"));
    assert!(loader.deleted_positions(&task(B, 10, &[&below])).await.unwrap().is_none());
    assert!(loader.deleted_positions(&task(A, 10, &[&above])).await.unwrap().is_none());
    assert_eq!(fixture.counts.count_where(|_, _| true), 0);
    // An upper bound cut short without being incremented may still cover the path.
    error(&loader, &task(A, 10, &[&below]), ErrorKind::NotFound, &["missing-below"]).await;
}

async fn puffin(fixture: &Fixture, name: &str, vectors: &[(&str, DeletionVector)], lead: &[u8]) -> Vec<DataFile> {
    let (mut bytes, mut files) = (lead.to_vec(), Vec::new());
    for (path, vector) in vectors {
        let blob = vector.encode().unwrap();
        files.push(DataFile {
            file_format: FileFormat::Puffin,
            record_count: vector.len(),
            referenced_data_file: Some((*path).into()),
            content_offset: Some(bytes.len() as u64),
            content_size_in_bytes: Some(blob.len() as u64),
            ..file(PositionDeletes, &format!("memory:/t/{name}"), key(0, []))
        });
        bytes.extend(blob);
    }
    store(fixture, name, bytes).await;
    files
}

#[tokio::test]
async fn vectors_are_read_by_range_without_their_container() {
    let fixture = Fixture::new();
    let big = (1u64 << 33) + 5;
    let vectors = [(A, DeletionVector::from_positions([1, 3, big])), (B, DeletionVector::from_positions(0..1000))];
    // duck#1248: a bare blob as the whole file, offset 0.
    for lead in [&b"PFA1"[..], b""] {
        let name = format!("dv-{}.puffin", lead.len());
        let files = puffin(&fixture, &name, &vectors, lead).await;
        fixture.counts.reset();
        let loader = fixture.loader();
        assert_eq!(deleted(&loader, &task(A, big + 1, &[&files[0]])).await, [1, 3, big]);
        assert_eq!(loader.live_row_count(&task(B, 1500, &[&files[1]])).await.unwrap(), 500);
        assert_eq!((fixture.counts.count(StoreOp::Get), fixture.counts.count_where(|_, _| true)), (2, 2));
    }
}

#[tokio::test]
async fn broken_vectors_are_errors_that_name_them() {
    let fixture = Fixture::new();
    let good = puffin(&fixture, "dv.puffin", &[(A, DeletionVector::from_positions([1, 3]))], b"PFA1").await.remove(0);
    let size = good.content_size_in_bytes.unwrap();
    let broken = |change: &dyn Fn(&mut DataFile)| {
        let mut file = good.clone();
        change(&mut file);
        file
    };
    let cases: Vec<(&str, DataFile)> = vec![
        ("cardinality", broken(&|f| f.record_count = 3)),
        ("offset", broken(&|f| f.content_offset = Some(3))),
        ("short", broken(&|f| f.content_size_in_bytes = Some(size - 1))),
        ("tiny", broken(&|f| f.content_size_in_bytes = Some(2))),
        ("no offset", broken(&|f| f.content_offset = None)),
        ("no size", broken(&|f| f.content_size_in_bytes = None)),
        ("overflow", broken(&|f| f.content_offset = Some(u64::MAX))),
    ];
    for (name, file) in cases {
        let loader = fixture.loader();
        let e = loader.deleted_positions(&task(A, 10, &[&file])).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::DataInvalid, "{name}: {e}");
        assert!(e.to_string().contains("dv.puffin"), "{name}: {e}");
    }
}

/// rust#1937, #2696, #2859: callers at the same time share one fetch, and none of them hangs.
#[tokio::test]
async fn each_delete_file_is_fetched_once() {
    let fixture = Fixture::new();
    let shared = store(&fixture, "shared", delete_rows(&[(A, 1), (B, 2)])).await;
    let files = puffin(&fixture, "dv", &[("memory:/v", DeletionVector::from_positions([4]))], b"PFA1").await;
    fixture.counts.reset();
    let tasks: Vec<_> = (0..20)
        .flat_map(|_| [task(A, 10, &[&shared]), task(B, 10, &[&shared]), task("memory:/v", 10, &[&files[0]])])
        .collect();
    let loader = fixture.loader();
    let found = join_all(tasks.iter().map(|task| deleted(&loader, task))).await;
    assert_eq!(found[..3], [vec![1], vec![2], vec![4]]);
    assert_eq!(found[57..], [vec![1], vec![2], vec![4]]);
    // One request for the vector; for the delete file its tail, which has the footer, and its pages.
    assert_eq!(fixture.counts.count_where(|_, path| path.ends_with("dv")), 1);
    let reads = fixture.counts.count_where(|op, path| path.ends_with("shared") && op != StoreOp::Head);
    assert!(reads <= 2, "{:?}", fixture.counts.counts());
    assert_eq!(fixture.counts.count(StoreOp::Head), 0);
    assert_eq!(deleted(&loader, &tasks[0]).await, [1]);
    assert_eq!(fixture.counts.count_where(|_, path| path.ends_with("dv")), 1);
}

#[tokio::test]
async fn a_failure_is_shared_but_not_remembered() {
    let fixture = Fixture::new();
    let shared = store(&fixture, "shared", delete_rows(&[(A, 1), (B, 2)])).await;
    let (a, b) = (task(A, 10, &[&shared]), task(B, 10, &[&shared]));
    let loader = fixture.loader();
    fixture.faults.fail_nth(0, Fault::BeforeSending);
    let (first, second) = futures::join!(loader.deleted_positions(&a), loader.deleted_positions(&b));
    assert_eq!(first.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(deleted(&loader, &a).await, [1]);
    assert_eq!(deleted(&loader, &b).await, [2]);
}

/// A caller that started a load and is not polled any more (a buffered stream whose consumer waits) holds up nobody.
#[tokio::test]
async fn a_caller_that_is_not_polled_holds_up_nobody() {
    let fixture = Fixture::new();
    let shared = store(&fixture, "shared", delete_rows(&[(A, 1), (B, 2)])).await;
    let (a, b) = (task(A, 10, &[&shared]), task(B, 10, &[&shared]));
    let loader = fixture.loader();
    let mut stuck = Box::pin(loader.deleted_positions(&a));
    assert!((&mut stuck).now_or_never().is_none());
    let other = tokio::time::timeout(std::time::Duration::from_secs(20), deleted(&loader, &b)).await;
    assert_eq!(other.unwrap(), [2]);
    drop(stuck);
    assert_eq!(deleted(&loader, &a).await, [1]);
}

#[tokio::test]
async fn a_footer_takes_one_request_and_is_cached() {
    let fixture = Fixture::new();
    let rows: Vec<(&str, i64)> = (0..5000).map(|n| (A, n)).collect();
    let bytes = parquet(vec![("pos", Some(1), positions(&rows))], 1000);
    let file = store(&fixture, "data.parquet", bytes).await;
    fixture.counts.reset();
    let parquet = ParquetFile::new(&fixture.io, &file);
    let footer = parquet.footer().await.unwrap();
    assert_eq!((footer.num_row_groups(), footer.file_metadata().num_rows()), (5, 5000));
    assert!(footer.offset_index().is_some());
    parquet.footer().await.unwrap();
    assert_eq!(fixture.counts.count_where(|_, _| true), 1);
    // A size that is not the file's.
    let wrong = DataFile { file_path: file.file_path.clone(), file_size_in_bytes: file.file_size_in_bytes + 9, ..file };
    fixture.io.cache().footers.clear();
    let e = ParquetFile::new(&fixture.io, &wrong).footer().await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DataInvalid);
    assert!(e.to_string().contains("data.parquet"), "{e}");
}
