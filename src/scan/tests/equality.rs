//! Equality deletes against made files: each rule by itself, and all of them against brute force.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, StringArray, StructArray};
use arrow::datatypes::{Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::loading::parquet;
use super::*;
use crate::scan::{DeleteFile, DeleteFileIndex, FileScanTask, MemoryBudget};
use crate::spec::deletion_vector::DeletionVector;
use crate::testing::StoreOp;
use crate::{Error, ErrorKind};

use DataContent::{Data, EqualityDeletes};

/// Current columns: 1 a long (once int, called old), 2 b string, 3 c double, 4 t struct of 5 n int and 8 m int, 6 e int with
/// initial default 7, 9 l list of 10. Dropped: 7 gone string. Specs: 0 unpartitioned, 1 identity(b).
fn evolved() -> TableMetadata {
    let field =
        |id: i32, name: &str, ty: serde_json::Value| json!({"id": id, "name": name, "type": ty, "required": false});
    let n = json!({"type": "struct", "fields": [field(5, "n", json!("int")), field(8, "m", json!("int"))]});
    let list = json!({"type": "list", "element-id": 10, "element": "int", "element-required": false});
    let mut e = field(6, "e", json!("int"));
    e["initial-default"] = json!(7);
    let json = json!({
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "memory:/t",
        "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 10, "current-schema-id": 1, "next-row-id": 0,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [
                field(1, "old", json!("int")), field(2, "b", json!("string")), field(7, "gone", json!("string"))]},
            {"type": "struct", "schema-id": 1, "fields": [
                field(1, "a", json!("long")), field(2, "b", json!("string")), field(3, "c", json!("double")),
                field(4, "t", n), e, field(9, "l", list)]}],
        "default-spec-id": 0, "last-partition-id": 1000,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "b", "transform": "identity"}]}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "snapshots": []
    });
    TableMetadata::parse(json.to_string().as_bytes(), "test").unwrap()
}

/// A budget of so many bytes.
#[derive(Debug)]
struct Limited {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Limited {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }
}

impl MemoryBudget for Limited {
    fn try_grow(&self, bytes: usize) -> crate::Result<()> {
        let used = self.used.load(Ordering::SeqCst) + bytes;
        if used > self.limit {
            return Err(Error::unavailable("out of memory"));
        }
        self.used.store(used, Ordering::SeqCst);
        self.peak.fetch_max(used, Ordering::SeqCst);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        assert!(self.used.fetch_sub(bytes, Ordering::SeqCst) >= bytes, "more given back than taken");
    }
}

struct World {
    fixture: Fixture,
    table: Table,
    deletes: Vec<(DataFile, i64)>,
    files: usize,
}

type Column = (&'static str, Option<i32>, ArrayRef);

impl World {
    fn new() -> Self {
        let fixture = Fixture::new();
        let table = table(evolved(), &fixture.io);
        Self { fixture, table, deletes: Vec::new(), files: 0 }
    }

    async fn store(&mut self, content: DataContent, columns: Vec<Column>, row_group: usize) -> DataFile {
        self.files += 1;
        let path = format!("memory:/t/{content:?}-{}.parquet", self.files);
        let rows = columns[0].2.len() as u64;
        // Arrow's writer recurses once a row group.
        let row_group = if rows > 200 { 1000 } else { row_group };
        let bytes = parquet(columns, row_group);
        let size = bytes.len() as u64;
        self.fixture.io.write(&path, bytes.into()).await.unwrap();
        DataFile { record_count: rows, file_size_in_bytes: size, ..file(content, &path, key(0, [])) }
    }

    async fn delete(&mut self, ids: &[i32], sequence_number: i64, columns: Vec<Column>) {
        let mut file = self.store(EqualityDeletes, columns, 3).await;
        file.equality_ids = ids.to_vec();
        self.deletes.push((file, sequence_number));
    }

    async fn data(&mut self, sequence_number: i64, columns: Vec<Column>) -> FileScanTask {
        let file = self.store(Data, columns, 4).await;
        self.task(file, sequence_number)
    }

    /// The file's task under the deletes added so far.
    fn task(&self, file: DataFile, sequence_number: i64) -> FileScanTask {
        let deletes = self.deletes.iter().cloned();
        let deletes = deletes.map(|(file, sequence_number)| DeleteFile { file: Arc::new(file), sequence_number });
        let index = DeleteFileIndex::new(deletes, &self.table.metadata).unwrap();
        let deletes = index.for_data_file(&file, sequence_number).unwrap();
        FileScanTask { data_file: Arc::new(file), sequence_number, deletes }
    }

    async fn deleted(&self, task: &FileScanTask) -> Vec<u64> {
        positions(&DeleteLoader::new(&self.table), task).await
    }

    async fn error(&self, task: &FileScanTask) -> Error {
        DeleteLoader::new(&self.table).deleted_positions(task).await.unwrap_err()
    }
}

async fn positions(loader: &DeleteLoader, task: &FileScanTask) -> Vec<u64> {
    loader.deleted_positions(task).await.unwrap().map_or(vec![], |deleted| deleted.iter().collect())
}

fn longs<const N: usize>(values: [Option<i64>; N]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn ints<const N: usize>(values: [Option<i32>; N]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn texts<const N: usize>(values: [Option<&str>; N]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A struct with these children: name, field id, values.
fn record(children: Vec<(&str, i32, ArrayRef)>, nulls: Option<Vec<bool>>) -> ArrayRef {
    let fields: Fields = children
        .iter()
        .map(|(name, id, array)| {
            let id = (PARQUET_FIELD_ID_META_KEY.to_string(), id.to_string());
            Field::new(*name, array.data_type().clone(), true).with_metadata([id].into())
        })
        .collect();
    let arrays = children.into_iter().map(|(_, _, array)| array).collect();
    Arc::new(StructArray::new(fields, arrays, nulls.map(Into::into)))
}

#[tokio::test]
async fn c1_1_nullable_column_keeps_null_rows() {
    let mut world = World::new();
    world.delete(&[1], 2, vec![("a", Some(1), longs([Some(2)]))]).await;
    let task = world.data(1, vec![("a", Some(1), longs([None, Some(1), Some(2), None]))]).await;
    assert_eq!(world.deleted(&task).await, [2]);
}

#[tokio::test]
async fn c1_2_only_a_greater_sequence_number_deletes() {
    let mut world = World::new();
    world.delete(&[1], 5, vec![("a", Some(1), longs([Some(1), Some(2)]))]).await;
    world.delete(&[1], 7, vec![("a", Some(1), longs([Some(2), Some(3)]))]).await;
    let file = world.store(Data, vec![("a", Some(1), longs([Some(1), Some(2), Some(3)]))], 4).await;
    for (sequence_number, expected) in [(4, vec![0, 1, 2]), (5, vec![1, 2]), (6, vec![1, 2]), (7, vec![]), (8, vec![])]
    {
        assert_eq!(world.deleted(&world.task(file.clone(), sequence_number)).await, expected, "{sequence_number}");
    }
    // One table serves files of every age.
    let tasks = [world.task(file.clone(), 4), world.task(file, 5)];
    let loader = DeleteLoader::new(&world.table).for_tasks(&tasks[..1]).unwrap();
    assert_eq!(positions(&loader, &tasks[0]).await, [0, 1, 2]);
}

#[tokio::test]
async fn c1_3_deletes_of_one_partition_stay_in_it() {
    let mut world = World::new();
    let partition =
        |value: &str| PartitionKey { spec_id: 1, tuple: PartitionTuple([Some(Literal::String(value.into()))].into()) };
    let keys = || vec![("a", Some(1), longs([Some(1)]))];
    let mut scoped = world.store(EqualityDeletes, keys(), 3).await;
    (scoped.spec_id, scoped.partition) = (1, partition("x").tuple);
    world.deletes.push((scoped, 2));
    for (value, expected) in [("x", vec![0]), ("y", vec![])] {
        let mut data = world.store(Data, keys(), 3).await;
        (data.spec_id, data.partition) = (1, partition(value).tuple);
        assert_eq!(world.deleted(&world.task(data, 1)).await, expected, "{value}");
    }
    let unpartitioned = world.data(1, keys()).await;
    assert_eq!(world.deleted(&unpartitioned).await, [0; 0]);
}

#[tokio::test]
async fn c1_5_null_matches_null_and_only_null() {
    let mut world = World::new();
    world
        .delete(
            &[1, 2],
            2,
            vec![("a", Some(1), longs([None, Some(1), None])), ("b", Some(2), texts([None, None, Some("")]))],
        )
        .await;
    let rows = vec![
        ("a", Some(1), longs([None, Some(1), Some(0), None, Some(1)])),
        ("b", Some(2), texts([None, None, None, Some(""), Some("")])),
    ];
    let task = world.data(1, rows).await;
    assert_eq!(world.deleted(&task).await, [0, 1, 3]);
}

#[tokio::test]
async fn c1_6_and_7_many_keys_and_several_key_sets_delete_no_other_row() {
    let mut world = World::new();
    let even: Vec<i64> = (0..20_000).map(|i| i * 2).collect();
    world.delete(&[1], 2, vec![("a", Some(1), Arc::new(Int64Array::from(even)))]).await;
    world.delete(&[2], 2, vec![("b", Some(2), texts([Some("gone"), None]))]).await;
    world.delete(&[2, 1], 2, vec![("a", Some(1), longs([Some(3)])), ("b", Some(2), texts([Some("here")]))]).await;
    let rows = 1000i64;
    let text = |i: i64| {
        if i % 100 == 1 {
            Some("gone")
        } else if i % 100 == 5 {
            None
        } else {
            Some("here")
        }
    };
    let task = world
        .data(
            1,
            vec![
                ("a", Some(1), Arc::new((0..rows).collect::<Int64Array>()) as ArrayRef),
                ("b", Some(2), Arc::new((0..rows).map(text).collect::<StringArray>())),
            ],
        )
        .await;
    let expected: Vec<u64> =
        (0..rows as u64).filter(|i| i % 2 == 0 || i % 100 == 1 || i % 100 == 5 || *i == 3).collect();
    assert_eq!(world.deleted(&task).await, expected);
}

#[tokio::test]
async fn c1_11_positions_and_keys_apply_together() {
    let mut world = World::new();
    world.delete(&[1], 2, vec![("a", Some(1), longs([Some(1)]))]).await;
    let mut task = world.data(1, vec![("a", Some(1), longs([Some(0), Some(1), Some(2)]))]).await;
    let blob = DeletionVector::from_positions([2]).encode().unwrap();
    world.fixture.io.write("memory:/t/v.puffin", blob.clone().into()).await.unwrap();
    let vector = DataFile {
        file_format: FileFormat::Puffin,
        record_count: 1,
        content_offset: Some(0),
        content_size_in_bytes: Some(blob.len() as u64),
        referenced_data_file: Some(Arc::clone(&task.data_file.file_path)),
        ..file(DataContent::PositionDeletes, "memory:/t/v.puffin", key(0, []))
    };
    task.deletes.vector = Some(Arc::new(DeleteFile { file: Arc::new(vector), sequence_number: 2 }));
    let loader = DeleteLoader::new(&world.table);
    assert_eq!(positions(&loader, &task).await, [1, 2]);
    assert_eq!(loader.live_row_count(&task).await.unwrap(), 1);
    let positional = loader.positional_deletes(&task).await.unwrap().unwrap();
    assert_eq!(positional.iter().collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn c1_12_delete_files_may_hold_more_than_their_keys() {
    let mut world = World::new();
    // The other columns come first and differ from the data's.
    world
        .delete(
            &[1],
            2,
            vec![
                ("b", Some(2), texts([Some("other")])),
                ("x", None, longs([Some(0)])),
                ("a", Some(1), longs([Some(1)])),
            ],
        )
        .await;
    let task = world
        .data(1, vec![("a", Some(1), longs([Some(0), Some(1)])), ("b", Some(2), texts([Some("p"), Some("q")]))])
        .await;
    assert_eq!(world.deleted(&task).await, [1]);
}

#[tokio::test]
async fn c1_13_a_delete_file_without_its_key_column_is_an_error() {
    for columns in [vec![("a", Some(2), longs([Some(1)]))], vec![("a", None, longs([Some(1)]))]] {
        let mut world = World::new();
        world.delete(&[1], 2, columns).await;
        let task = world.data(1, vec![("a", Some(1), longs([Some(1)]))]).await;
        let e = world.error(&task).await;
        assert!(matches!(e.kind(), ErrorKind::DataInvalid | ErrorKind::Unsupported), "{e}");
        assert!(e.to_string().contains("EqualityDeletes-1.parquet"), "{e}");
    }
    for (id, reason) in [(99, "no schema"), (10, "list"), (4, "primitive")] {
        let mut world = World::new();
        world.delete(&[id], 2, vec![("a", Some(1), longs([Some(1)]))]).await;
        let task = world.data(1, vec![("a", Some(1), longs([Some(1)]))]).await;
        let e = world.error(&task).await;
        assert_eq!(e.kind(), ErrorKind::DataInvalid, "{e}");
        assert!(e.to_string().contains(reason) && e.to_string().contains("EqualityDeletes-1.parquet"), "{e}");
    }
}

#[tokio::test]
async fn c1_14_keys_are_bound_by_field_id() {
    let mut world = World::new();
    // Names are swapped in the data file.
    world.delete(&[1], 2, vec![("a", Some(1), longs([Some(1)]))]).await;
    let task = world
        .data(1, vec![("a", Some(99), longs([Some(1), Some(0)])), ("b", Some(1), longs([Some(0), Some(1)]))])
        .await;
    assert_eq!(world.deleted(&task).await, [1]);
}

#[tokio::test]
async fn c1_19_several_row_groups_on_both_sides() {
    let mut world = World::new();
    let all = || -> ArrayRef { Arc::new((0..50).collect::<Int64Array>()) };
    world.delete(&[1], 2, vec![("a", Some(1), all())]).await;
    let task = world.data(1, vec![("a", Some(1), all())]).await;
    assert_eq!(world.deleted(&task).await.len(), 50);
    assert_eq!(DeleteLoader::new(&world.table).live_row_count(&task).await.unwrap(), 0);
}

#[tokio::test]
async fn nan_is_nan_and_zeros_differ_by_sign() {
    let mut world = World::new();
    let doubles = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    world.delete(&[3], 2, vec![("c", Some(3), doubles(&[f64::NAN, -0.0]))]).await;
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 5);
    let task = world.data(1, vec![("c", Some(3), doubles(&[0.0, other_nan, -0.0, f64::NAN, 1.0]))]).await;
    assert_eq!(world.deleted(&task).await, [1, 2, 3]);
}

#[tokio::test]
async fn keys_promoted_dropped_and_added_since() {
    let mut world = World::new();
    // A key of the time when the column was an int, one of now; a data file of either time.
    world.delete(&[1], 2, vec![("old", Some(1), ints([Some(1)]))]).await;
    world.delete(&[1], 2, vec![("a", Some(1), longs([Some(2), Some(1 << 40)]))]).await;
    let old = world.data(1, vec![("old", Some(1), ints([Some(0), Some(1), Some(2)]))]).await;
    assert_eq!(world.deleted(&old).await, [1, 2]);
    let new = world.data(1, vec![("a", Some(1), longs([Some(1 << 40), Some(1), Some(3)]))]).await;
    assert_eq!(world.deleted(&new).await, [0, 1]);

    let mut world = World::new();
    world.delete(&[7], 2, vec![("gone", Some(7), texts([Some("x")]))]).await;
    let task = world
        .data(1, vec![("a", Some(1), longs([Some(1), Some(2)])), ("gone", Some(7), texts([Some("x"), Some("y")]))])
        .await;
    assert_eq!(world.deleted(&task).await, [0]);
    let without = world.data(1, vec![("a", Some(1), longs([Some(1)]))]).await;
    assert_eq!(world.deleted(&without).await, [0; 0]);

    // A file that lacks the column has its initial default in every row, or null.
    for (key, expected) in [(Some(7), vec![0, 1]), (None, vec![]), (Some(8), vec![])] {
        let mut world = World::new();
        world.delete(&[6], 2, vec![("e", Some(6), ints([key]))]).await;
        let task = world.data(1, vec![("a", Some(1), longs([Some(1), Some(2)]))]).await;
        assert_eq!(world.deleted(&task).await, expected, "{key:?}");
    }
    let mut world = World::new();
    world.delete(&[3], 2, vec![("c", Some(3), Arc::new(Float64Array::from(vec![None])))]).await;
    let task = world.data(1, vec![("a", Some(1), longs([Some(1), Some(2)]))]).await;
    assert_eq!(world.deleted(&task).await, [0, 1]);
}

#[tokio::test]
async fn nested_keys_are_null_where_their_struct_is() {
    let mut world = World::new();
    let keys = record(vec![("n", 5, ints([Some(1), None]))], None);
    world.delete(&[5], 2, vec![("t", Some(4), keys)]).await;
    let nested = record(
        vec![("m", 8, ints([Some(1), Some(1), Some(1), Some(1)])), ("n", 5, ints([Some(1), Some(2), Some(2), None]))],
        Some(vec![true, true, false, true]),
    );
    let task = world.data(1, vec![("a", Some(1), longs([Some(0); 4])), ("t", Some(4), nested)]).await;
    assert_eq!(world.deleted(&task).await, [0, 2, 3]);
    // A file whose struct lacks the field, and one without the struct: null in every row.
    let lacking = record(vec![("m", 8, ints([Some(1)]))], None);
    let task = world.data(1, vec![("t", Some(4), lacking)]).await;
    assert_eq!(world.deleted(&task).await, [0]);
    let task = world.data(1, vec![("a", Some(1), longs([Some(1)]))]).await;
    assert_eq!(world.deleted(&task).await, [0]);
}

#[tokio::test]
async fn each_delete_file_is_read_once_for_all_data_files() {
    let mut world = World::new();
    world.delete(&[1], 2, vec![("a", Some(1), longs([Some(1)]))]).await;
    let rows = || vec![("a", Some(1), longs([Some(1)]))];
    let mut files = Vec::new();
    for _ in 0..5 {
        files.push(world.store(Data, rows(), 4).await);
    }
    let deletes =
        world.deletes.iter().map(|(file, n)| DeleteFile { file: Arc::new(file.clone()), sequence_number: *n });
    let index = DeleteFileIndex::new(deletes, &world.table.metadata).unwrap();
    let tasks: Vec<FileScanTask> = files
        .into_iter()
        .map(|file| {
            let deletes = index.for_data_file(&file, 1).unwrap();
            FileScanTask { data_file: Arc::new(file), sequence_number: 1, deletes }
        })
        .collect();
    let budget = Limited::new(usize::MAX / 2);
    let loader = DeleteLoader::with_budget(&world.table, Arc::clone(&budget) as _).for_tasks(&tasks).unwrap();
    let found = futures::future::join_all(tasks.iter().map(|task| positions(&loader, task))).await;
    assert!(found.iter().all(|found| found == &[0]), "{found:?}");
    let reads = world.fixture.counts.count_where(|op, path| op != StoreOp::Put && path.contains("EqualityDeletes"));
    assert!(reads <= 2, "{reads} reads of one delete file: footer and column");
    assert!(budget.peak.load(Ordering::SeqCst) > 0);
    assert_eq!(budget.used.load(Ordering::SeqCst), 0, "keys are let go once every file is done");
}

#[tokio::test]
async fn keys_that_do_not_fit_are_looked_up_in_shares_or_refused_by_name() {
    let mut world = World::new();
    let keys = |from: i64, to: i64| -> ArrayRef { Arc::new((from..to).collect::<Int64Array>()) };
    world.delete(&[1], 2, vec![("a", Some(1), keys(0, 5000))]).await;
    world
        .delete(
            &[1, 2],
            3,
            vec![
                ("a", Some(1), keys(0, 500)),
                ("b", Some(2), Arc::new((0..500).map(|i| Some(i.to_string())).collect::<StringArray>())),
            ],
        )
        .await;
    let rows = vec![
        ("a", Some(1), keys(4000, 6000)),
        ("b", Some(2), Arc::new((0..2000).map(|_| Some("x")).collect::<StringArray>()) as ArrayRef),
    ];
    let task = world.data(1, rows).await;
    let expected: Vec<u64> = (0..1000).collect();
    assert_eq!(world.deleted(&task).await, expected);
    for limit in [200_000, 40_000, 8_000] {
        for known in [false, true] {
            let budget = Limited::new(limit);
            let mut loader = DeleteLoader::with_budget(&world.table, Arc::clone(&budget) as _);
            if known {
                loader = loader.for_tasks([&task]).unwrap();
            }
            assert_eq!(positions(&loader, &task).await, expected, "{limit}");
            assert!(budget.peak.load(Ordering::SeqCst) <= limit);
            drop(loader);
            assert_eq!(budget.used.load(Ordering::SeqCst), 0);
        }
    }
    let loader = DeleteLoader::with_budget(&world.table, Limited::new(100));
    let e = loader.deleted_positions(&task).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    for part in ["EqualityDeletes-1.parquet", "bytes of memory", "ns.t"] {
        assert!(e.to_string().contains(part), "{part}: {e}");
    }
}

/// Rows of all key columns, with few values each so that keys meet.
#[derive(Clone, PartialEq)]
struct Row {
    a: Option<i64>,
    b: Option<&'static str>,
    c: Option<u64>,
    n: Option<Option<i32>>,
}

impl Row {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let doubles = [0.0f64, -0.0, f64::NAN, -f64::NAN, 1.5];
        Self {
            a: (rng.u8(0..4) > 0).then(|| rng.i64(0..4)),
            b: (rng.u8(0..4) > 0).then(|| ["", "a", "a longer text than sixteen bytes", "b"][rng.usize(0..4)]),
            c: (rng.u8(0..4) > 0).then(|| doubles[rng.usize(0..5)].to_bits()),
            n: (rng.u8(0..4) > 0).then(|| (rng.u8(0..4) > 0).then(|| rng.i32(0..3))),
        }
    }

    fn columns(rows: &[Self]) -> Vec<Column> {
        let n: ArrayRef = Arc::new(rows.iter().map(|row| row.n.flatten()).collect::<Int32Array>());
        let there = rows.iter().map(|row| row.n.is_some()).collect();
        vec![
            ("a", Some(1), Arc::new(rows.iter().map(|row| row.a).collect::<Int64Array>())),
            ("b", Some(2), Arc::new(rows.iter().map(|row| row.b).collect::<StringArray>())),
            ("c", Some(3), Arc::new(rows.iter().map(|row| row.c.map(f64::from_bits)).collect::<Float64Array>())),
            ("t", Some(4), record(vec![("n", 5, n)], Some(there))),
        ]
    }

    fn equals(&self, other: &Self, ids: &[i32]) -> bool {
        let bits = |c: Option<u64>| c.map(|c| if f64::from_bits(c).is_nan() { f64::NAN.to_bits() } else { c });
        ids.iter().all(|id| match id {
            1 => self.a == other.a,
            2 => self.b == other.b,
            3 => bits(self.c) == bits(other.c),
            _ => self.n.flatten() == other.n.flatten(),
        })
    }
}

#[tokio::test]
async fn any_keys_delete_what_brute_force_deletes() {
    let seed = 20_261_201;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut deleted = 0;
    for round in 0..60 {
        let mut world = World::new();
        let mut deletes: Vec<(Vec<i32>, i64, Vec<Row>)> = Vec::new();
        for _ in 0..rng.usize(1..5) {
            let mut ids: Vec<i32> = [1, 2, 3, 5].into_iter().filter(|_| rng.bool()).collect();
            if ids.is_empty() {
                ids.push(1);
            }
            let rows: Vec<Row> = (0..rng.usize(1..8)).map(|_| Row::random(&mut rng)).collect();
            deletes.push((ids, rng.i64(1..5), rows));
        }
        for (ids, sequence_number, rows) in &deletes {
            world.delete(ids, *sequence_number, Row::columns(rows)).await;
        }
        for sequence_number in 0..4 {
            let rows: Vec<Row> = (0..rng.usize(1..40)).map(|_| Row::random(&mut rng)).collect();
            let task = world.data(sequence_number, Row::columns(&rows)).await;
            let gone = |row: &Row| {
                deletes.iter().any(|(ids, at, keys)| *at > sequence_number && keys.iter().any(|k| k.equals(row, ids)))
            };
            let expected: Vec<u64> =
                rows.iter().enumerate().filter(|(_, row)| gone(row)).map(|(i, _)| i as u64).collect();
            deleted += expected.len();
            let limit = [usize::MAX / 2, 20_000, 3_000][rng.usize(0..3)];
            let loader = DeleteLoader::with_budget(&world.table, Limited::new(limit)).for_tasks([&task]).unwrap();
            assert_eq!(positions(&loader, &task).await, expected, "seed {seed}, round {round}, limit {limit}");
        }
    }
    assert!(deleted > 500, "{deleted}");
}
