use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::ErrorKind;
use crate::scan::FileScanTask;
use crate::scan::task::FILE_PATH_ID;
use crate::spec::{ColumnMap, Literal, PartitionTuple};

const PATH: &str = "file:/t/data/a.parquet";

/// Specs: 0 unpartitioned, 1 identity(s), 2 bucket(s), 3 void. Columns: 1 id long, 2 s string, 3 d double, 4 st struct.
fn metadata() -> TableMetadata {
    let json = json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:/t",
        "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 6, "current-schema-id": 1,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "id", "type": "int", "required": false},
                {"id": 6, "name": "gone", "type": "int", "required": false}]},
            {"type": "struct", "schema-id": 1, "fields": [
                {"id": 1, "name": "id", "type": "long", "required": false},
                {"id": 2, "name": "s", "type": "string", "required": false},
                {"id": 3, "name": "d", "type": "double", "required": false},
                {"id": 4, "name": "st", "required": false, "type": {"type": "struct", "fields": [
                    {"id": 5, "name": "n", "type": "int", "required": false}]}}]}],
        "default-spec-id": 1, "last-partition-id": 1002,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "s", "transform": "identity"}]},
            {"spec-id": 2, "fields": [{"source-id": 2, "field-id": 1001, "name": "b", "transform": "bucket[4]"}]},
            {"spec-id": 3, "fields": [{"source-id": 2, "field-id": 1002, "name": "v", "transform": "void"}]}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "snapshots": [], "properties": {}
    });
    TableMetadata::parse(json.to_string().as_bytes(), "test").unwrap()
}

fn key(spec_id: i32, tuple: impl IntoIterator<Item = Option<Literal>>) -> PartitionKey {
    PartitionKey { spec_id, tuple: PartitionTuple(tuple.into_iter().collect()) }
}

fn none() -> PartitionKey {
    key(0, [])
}

fn s(value: &str) -> PartitionKey {
    key(1, [Some(Literal::String(value.into()))])
}

fn data(path: &str, partition: PartitionKey) -> DataFile {
    DataFile { record_count: 100, ..DataFile::new(DataContent::Data, path, FileFormat::Parquet, partition) }
}

fn file(name: &str, content: DataContent, partition: PartitionKey) -> DataFile {
    DataFile { record_count: 1, ..DataFile::new(content, name, FileFormat::Parquet, partition) }
}

fn positions(name: &str, partition: PartitionKey) -> DataFile {
    file(name, DataContent::PositionDeletes, partition)
}

fn bounded(name: &str, lower: &str, upper: &str, partition: PartitionKey) -> DataFile {
    let bound = |path: &str| ColumnMap::from_iter([(FILE_PATH_ID, path.as_bytes().into())]);
    DataFile { lower_bounds: bound(lower), upper_bounds: bound(upper), ..positions(name, partition) }
}

fn targeted(name: &str, target: &str, partition: PartitionKey) -> DataFile {
    DataFile { referenced_data_file: Some(target.into()), ..positions(name, partition) }
}

fn vector(name: &str, target: &str, partition: PartitionKey) -> DataFile {
    let file = targeted(name, target, partition);
    DataFile { file_format: FileFormat::Puffin, content_offset: Some(4), content_size_in_bytes: Some(40), ..file }
}

fn equality(name: &str, ids: &[i32], partition: PartitionKey) -> DataFile {
    DataFile { equality_ids: ids.to_vec(), ..file(name, DataContent::EqualityDeletes, partition) }
}

fn index(deletes: impl IntoIterator<Item = (DataFile, i64)>) -> Result<DeleteFileIndex> {
    let deletes =
        deletes.into_iter().map(|(file, sequence_number)| DeleteFile { file: Arc::new(file), sequence_number });
    DeleteFileIndex::new(deletes, &metadata())
}

/// Names of the delete files of a data file: vector, positions, equality.
fn names(index: &DeleteFileIndex, data: &DataFile, sequence_number: i64) -> Vec<String> {
    let deletes = index.for_data_file(data, sequence_number).unwrap();
    deletes.iter().map(|delete| delete.file.file_path.to_string()).collect()
}

fn invalid<T: std::fmt::Debug>(result: Result<T>, part: &str) {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DataInvalid);
    assert!(e.to_string().contains(part), "{e}");
}

#[test]
fn without_deletes_nothing_applies() {
    let index = index([]).unwrap();
    assert!(index.is_empty());
    assert!(index.for_data_file(&data(PATH, none()), 1).unwrap().is_empty());
}

#[test]
fn a_vector_applies_by_path_from_its_own_sequence_number_on() {
    let index = index([(vector("v", PATH, none()), 3)]).unwrap();
    assert!(!index.is_empty());
    assert_eq!(names(&index, &data(PATH, none()), 3), ["v"]);
    assert_eq!(names(&index, &data(PATH, none()), 1), ["v"]);
    assert_eq!(names(&index, &data("file:/t/data/b.parquet", none()), 1), [""; 0]);
    // Recorded paths are opaque: another spelling is another file.
    assert_eq!(names(&index, &data("file:///t/data/a.parquet", none()), 1), [""; 0]);
    invalid(index.for_data_file(&data(PATH, none()), 4), "smaller than its data file's");
}

#[test]
fn a_vector_lies_in_the_partition_of_its_data_file() {
    let index = index([(vector("v", PATH, s("x")), 3)]).unwrap();
    assert_eq!(names(&index, &data(PATH, s("x")), 1), ["v"]);
    invalid(index.for_data_file(&data(PATH, s("y")), 1), "another partition");
    invalid(index.for_data_file(&data(PATH, key(2, [Some(Literal::String("x".into()))])), 1), "another partition");
}

#[test]
fn two_vectors_for_one_file_are_refused() {
    invalid(index([(vector("v", PATH, none()), 3), (vector("w", PATH, none()), 4)]), "two deletion vectors");
    // One Puffin file serves several data files.
    let index = index([(vector("v", PATH, none()), 3), (vector("v", "b", s("x")), 3)]).unwrap();
    assert_eq!(names(&index, &data("b", s("x")), 3), ["v"]);
}

#[test]
fn a_vector_shadows_position_deletes_but_no_equality_deletes() {
    let deletes = [
        (vector("v", PATH, none()), 5),
        (targeted("by path", PATH, none()), 5),
        (positions("by partition", none()), 6),
        (equality("keys", &[1], none()), 5),
    ];
    let index = index(deletes).unwrap();
    assert_eq!(names(&index, &data(PATH, none()), 2), ["v", "keys"]);
    assert_eq!(names(&index, &data("b", none()), 2), ["by partition", "keys"]);
}

#[test]
fn single_target_position_deletes_apply_by_path_sequence_and_partition() {
    let deletes = [
        (targeted("seq 3", PATH, s("x")), 3),
        (bounded("seq 5", PATH, PATH, s("x")), 5),
        (targeted("other spec", PATH, none()), 5),
        (bounded("other tuple", PATH, PATH, s("y")), 5),
        (targeted("other file", "b", s("x")), 5),
    ];
    let index = index(deletes).unwrap();
    assert_eq!(names(&index, &data(PATH, s("x")), 3), ["seq 3", "seq 5"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 4), ["seq 5"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 5), ["seq 5"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 6), [""; 0]);
}

#[test]
fn equal_bounds_may_be_truncated_paths() {
    let index = index([(bounded("short", "file:/t/data/a", "file:/t/data/a", none()), 2)]).unwrap();
    // It is no target, but its content is looked at.
    let task = |path: &str| {
        let data_file = Arc::new(data(path, none()));
        let deletes = index.for_data_file(&data_file, 1).unwrap();
        FileScanTask { data_file, sequence_number: 1, deletes }
    };
    assert_eq!(task(PATH).deletes.positions.len(), 1);
    assert!(task(PATH).superseded_deletes().is_empty());
    assert_eq!(task("file:/t/data/b.parquet").deletes.positions.len(), 0);
    assert_eq!(task("file:/t/data/a").superseded_deletes().len(), 1);
}

#[test]
fn unequal_or_missing_bounds_address_a_partition() {
    let deletes = [
        (bounded("range", "file:/t/data/a", "file:/t/data/b", s("x")), 4),
        (positions("unbounded", s("x")), 3),
        (positions("other tuple", s("y")), 4),
        (positions("other spec", key(2, [Some(Literal::Int(1))])), 4),
        (positions("null tuple", key(1, [None])), 4),
        (positions("unpartitioned", none()), 4),
    ];
    let index = index(deletes).unwrap();
    assert_eq!(names(&index, &data(PATH, s("x")), 3), ["unbounded", "range"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 4), ["range"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 5), [""; 0]);
    assert_eq!(names(&index, &data(PATH, key(1, [None])), 1), ["null tuple"]);
    // Position deletes of an unpartitioned spec are not global.
    assert_eq!(names(&index, &data(PATH, none()), 1), ["unpartitioned"]);
}

#[test]
fn position_deletes_are_chosen_by_exact_partition_values() {
    let float = |v: f64| key(1, [Some(Literal::Double(v))]);
    let index = index([(positions("nan", float(f64::NAN)), 2), (positions("zero", float(0.0)), 2)]).unwrap();
    assert_eq!(names(&index, &data(PATH, float(-f64::NAN)), 1), ["nan"]);
    assert_eq!(names(&index, &data(PATH, float(0.0)), 1), ["zero"]);
    assert_eq!(names(&index, &data(PATH, float(-0.0)), 1), [""; 0]);
}

#[test]
fn equality_deletes_of_an_unpartitioned_spec_are_global_and_strictly_newer() {
    let deletes = [(equality("global", &[1], none()), 4), (equality("void spec", &[1], key(3, [None])), 5)];
    let index = index(deletes).unwrap();
    for partition in [none(), s("x"), key(2, [Some(Literal::Int(1))]), key(3, [None])] {
        assert_eq!(names(&index, &data(PATH, partition.clone()), 3), ["global", "void spec"]);
        assert_eq!(names(&index, &data(PATH, partition.clone()), 4), ["void spec"]);
        assert_eq!(names(&index, &data(PATH, partition), 5), [""; 0]);
    }
}

#[test]
fn equality_deletes_of_a_partitioned_spec_stay_in_their_partition() {
    let deletes = [
        (equality("x", &[1], s("x")), 4),
        (equality("y", &[1], s("y")), 4),
        (equality("null", &[1], key(1, [None])), 4),
        (equality("bucket", &[1], key(2, [Some(Literal::Int(0))])), 4),
    ];
    let index = index(deletes).unwrap();
    assert_eq!(names(&index, &data(PATH, s("x")), 3), ["x"]);
    assert_eq!(names(&index, &data(PATH, s("x")), 4), [""; 0]);
    assert_eq!(names(&index, &data(PATH, key(1, [None])), 3), ["null"]);
    assert_eq!(names(&index, &data(PATH, key(2, [Some(Literal::Int(0))])), 3), ["bucket"]);
    assert_eq!(names(&index, &data(PATH, key(2, [None])), 3), [""; 0]);
    assert_eq!(names(&index, &data(PATH, none()), 3), [""; 0]);
}

#[test]
fn all_kinds_apply_together() {
    let deletes = [
        (targeted("by path", PATH, none()), 2),
        (positions("by partition", none()), 2),
        (equality("ids", &[1], none()), 3),
        (equality("strings", &[2], none()), 3),
    ];
    let index = index(deletes).unwrap();
    assert_eq!(names(&index, &data(PATH, none()), 2), ["by path", "by partition", "ids", "strings"]);
}

/// Column metrics for one column: (values, nulls, NaNs, lower, upper).
type Metrics = (Option<u64>, Option<u64>, Option<u64>, Option<Literal>, Option<Literal>);

fn with_metrics(mut file: DataFile, id: i32, (values, nulls, nans, lower, upper): Metrics) -> DataFile {
    let count = |n: Option<u64>| n.map(|n| (id, n)).into_iter().collect();
    let bound = |v: Option<Literal>| v.map(|v| (id, v.to_bytes().into())).into_iter().collect();
    (file.value_counts, file.null_value_counts, file.nan_value_counts) = (count(values), count(nulls), count(nans));
    (file.lower_bounds, file.upper_bounds) = (bound(lower), bound(upper));
    file
}

#[test]
fn equality_deletes_are_left_out_only_when_no_key_can_occur() {
    use Literal::{Double, Int, Long};
    let range = |lower, upper| (Some(9), Some(0), Some(0), Some(lower), Some(upper));
    let nulls = || (Some(9), Some(9), None, None, None);
    let some_nulls = |lower, upper| (Some(9), Some(1), Some(0), Some(lower), Some(upper));
    let unknown = || (None, None, None, None, None);
    let cases: Vec<(&str, i32, Metrics, Metrics, bool)> = vec![
        ("overlap", 1, range(Long(1), Long(5)), range(Long(5), Long(9)), true),
        ("disjoint", 1, range(Long(1), Long(5)), range(Long(6), Long(9)), false),
        ("disjoint, other side", 1, range(Long(6), Long(9)), range(Long(1), Long(5)), false),
        ("data from before a promotion, disjoint", 1, range(Int(1), Int(5)), range(Long(6), Long(9)), false),
        ("data from before a promotion, overlap", 1, range(Int(1), Int(6)), range(Long(6), Long(9)), true),
        ("nulls on both sides", 1, some_nulls(Long(1), Long(5)), some_nulls(Long(6), Long(9)), true),
        ("nulls in the data alone", 1, some_nulls(Long(1), Long(5)), range(Long(6), Long(9)), false),
        ("nulls in the keys alone", 1, range(Long(1), Long(5)), some_nulls(Long(6), Long(9)), false),
        ("all null data, no null key", 1, nulls(), range(Long(6), Long(9)), false),
        ("no null in data, all keys null", 1, range(Long(6), Long(9)), nulls(), false),
        ("all null on both sides", 1, nulls(), nulls(), true),
        (
            "all null by the counts, yet with bounds",
            1,
            (Some(9), Some(9), None, Some(Long(6)), Some(Long(9))),
            range(Long(6), Long(9)),
            true,
        ),
        ("unknown data", 1, unknown(), range(Long(6), Long(9)), true),
        ("unknown keys", 1, range(Long(6), Long(9)), unknown(), true),
        (
            "unknown null counts",
            1,
            (Some(9), None, None, Some(Long(1)), Some(Long(5))),
            (Some(9), None, None, Some(Long(6)), Some(Long(9))),
            true,
        ),
        ("one bound missing", 1, (Some(9), Some(0), None, Some(Long(1)), None), range(Long(6), Long(9)), true),
        ("inverted bounds", 1, range(Long(5), Long(1)), range(Long(6), Long(9)), true),
        ("doubles, disjoint", 3, range(Double(1.0), Double(5.0)), range(Double(6.0), Double(9.0)), false),
        ("doubles, zeros", 3, range(Double(-1.0), Double(-0.0)), range(Double(0.0), Double(9.0)), true),
        (
            "doubles with NaN",
            3,
            (Some(9), Some(0), Some(1), Some(Double(1.0)), Some(Double(5.0))),
            range(Double(6.0), Double(9.0)),
            true,
        ),
        (
            "doubles, NaN unknown in the keys",
            3,
            range(Double(1.0), Double(5.0)),
            (Some(9), Some(0), None, Some(Double(6.0)), Some(Double(9.0))),
            true,
        ),
        ("nested column", 5, range(Int(1), Int(5)), range(Int(6), Int(9)), true),
        ("dropped column", 6, range(Int(1), Int(5)), range(Int(6), Int(9)), false),
        ("unknown column", 77, range(Int(1), Int(5)), range(Int(6), Int(9)), true),
    ];
    for (name, id, of_data, of_keys, expected) in cases {
        let data = with_metrics(data(PATH, none()), id, of_data);
        let keys = with_metrics(equality("keys", &[id], none()), id, of_keys);
        let found = names(&index([(keys, 2)]).unwrap(), &data, 1);
        assert_eq!(!found.is_empty(), expected, "{name}");
    }
}

#[test]
fn of_several_key_columns_one_suffices_to_leave_a_delete_file_out() {
    let data = with_metrics(data(PATH, none()), 1, (Some(9), Some(0), None, Some(1i64), Some(5i64)).into_metrics());
    let keys = |name, low: i64| {
        with_metrics(equality(name, &[1, 2], none()), 1, (Some(9), Some(0), None, Some(low), Some(9i64)).into_metrics())
    };
    let index = index([(keys("far", 6), 2), (keys("near", 5), 3), (keys("far too", 7), 4)]).unwrap();
    assert_eq!(names(&index, &data, 1), ["near"]);
    let deletes = index.for_data_file(&data, 1).unwrap();
    assert_eq!((deletes.equality.len(), deletes.equality.is_empty()), (1, false));
}

trait IntoMetrics {
    fn into_metrics(self) -> Metrics;
}

impl IntoMetrics for (Option<u64>, Option<u64>, Option<u64>, Option<i64>, Option<i64>) {
    fn into_metrics(self) -> Metrics {
        (self.0, self.1, self.2, self.3.map(Literal::Long), self.4.map(Literal::Long))
    }
}

#[test]
fn what_is_no_delete_file_is_refused() {
    invalid(index([(data(PATH, none()), 1)]), "data file in a delete manifest");
    invalid(index([(equality("keys", &[], none()), 1)]), "without equality_ids");
    let puffin = DataFile { file_format: FileFormat::Puffin, ..equality("keys", &[1], none()) };
    invalid(index([(puffin, 1)]), "format Puffin");
    let lost = DataFile { referenced_data_file: None, ..vector("v", PATH, none()) };
    invalid(index([(lost, 1)]), "without referenced_data_file");
}

#[test]
fn superseded_are_the_file_scoped_positional_deletes() {
    let deletes = [
        (targeted("by reference", PATH, none()), 2),
        (bounded("by bounds", PATH, PATH, none()), 2),
        (positions("by partition", none()), 2),
        (equality("keys", &[1], none()), 3),
    ];
    let v2 = index(deletes).unwrap();
    let task = |index: &DeleteFileIndex| {
        let data_file = Arc::new(data(PATH, none()));
        let deletes = index.for_data_file(&data_file, 1).unwrap();
        let task = FileScanTask { data_file, sequence_number: 1, deletes };
        task.superseded_deletes().iter().map(|delete| delete.file.file_path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(task(&v2), ["by reference", "by bounds"]);
    assert_eq!(task(&index([(vector("v", PATH, none()), 2)]).unwrap()), ["v"]);
}

#[test]
fn unreadable_tasks_say_which_file_and_why() {
    let task = |file: DataFile, deletes: Vec<(DataFile, i64)>| {
        let deletes = index(deletes).unwrap().for_data_file(&file, 1).unwrap();
        FileScanTask { data_file: Arc::new(file), sequence_number: 1, deletes }
    };
    let refused = |task: FileScanTask, parts: &[&str]| {
        let e = task.check_readable("ns.t").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        for part in parts.iter().chain(&["ns.t"]) {
            assert!(e.to_string().contains(part), "{e}");
        }
    };
    let good = [(vector("v", PATH, none()), 2)];
    task(data(PATH, none()), good.to_vec()).check_readable("ns.t").unwrap();
    task(data(PATH, none()), vec![(equality("keys.parquet", &[1], none()), 2)]).check_readable("ns.t").unwrap();
    let avro = DataFile { file_format: FileFormat::Avro, ..data(PATH, none()) };
    task(avro, vec![]).check_readable("ns.t").unwrap();
    let orc = DataFile { file_format: FileFormat::Orc, ..data(PATH, none()) };
    refused(task(orc, vec![]), &["data files", "ORC", PATH]);
    let orc = DataFile { file_format: FileFormat::Orc, ..equality("keys.orc", &[1], none()) };
    refused(task(data(PATH, none()), vec![(orc, 2)]), &["equality delete files", "ORC", "keys.orc"]);
    let orc = DataFile { file_format: FileFormat::Orc, ..positions("p.orc", none()) };
    refused(task(data(PATH, none()), vec![(orc, 2)]), &["position delete files", "ORC", "p.orc"]);
    let secret = DataFile { key_metadata: Some([1].into()), ..data(PATH, none()) };
    refused(task(secret, vec![]), &["encrypted", PATH]);
}

/// 10,000 data files under 10,000 delete files of one partition: tasks share one list.
#[test]
fn tasks_share_their_delete_lists() {
    let index = index((0..10_000).map(|n| (positions(&n.to_string(), none()), n))).unwrap();
    let deletes: Vec<_> = (0..10_000).map(|n| index.for_data_file(&data(PATH, none()), n).unwrap()).collect();
    assert_eq!(deletes.iter().map(|d| d.positions.len()).sum::<usize>(), 10_000 * 10_001 / 2);
    // One holder in the index, one in each task: no list was copied.
    let lists = index.by_partition.values().map(|partition| Arc::strong_count(&partition.positions)).sum::<usize>();
    assert_eq!(lists, 10_001);
}
