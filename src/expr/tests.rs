use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Coverage::{All, None as Never, Some as Maybe};
use super::*;
use crate::spec::{
    DataContent, DataFile, FieldSummary, FileFormat, FormatVersion, ListType, Literal, ManifestContent, ManifestFile,
    NestedField, PartitionField, PartitionKey, PartitionSpec, PartitionTuple, PrimitiveType as T, Schema, StructType,
    TableMetadata, Transform, Type,
};

const DAY: i64 = 86_400_000_000;

/// A table with these columns and specs (transform and source id of each field).
pub(super) fn table(fields: Vec<NestedField>, specs: &[&[(i32, Transform)]]) -> TableMetadata {
    TableMetadata {
        format_version: FormatVersion::V2,
        table_uuid: None,
        location: "memory:///t".into(),
        last_sequence_number: 0,
        last_updated_ms: 0,
        last_column_id: 100,
        schemas: vec![schema(0, fields)],
        current_schema_id: 0,
        partition_specs: specs
            .iter()
            .enumerate()
            .map(|(id, fields)| {
                let field = |(i, (source_id, transform)): (usize, &(i32, Transform))| PartitionField {
                    source_id: *source_id,
                    field_id: 1000 + i as i32,
                    name: format!("p{i}"),
                    transform: transform.clone(),
                };
                Arc::new(PartitionSpec { spec_id: id as i32, fields: fields.iter().enumerate().map(field).collect() })
            })
            .collect(),
        default_spec_id: 0,
        last_partition_id: 1100,
        properties: BTreeMap::new(),
        current_snapshot_id: None,
        snapshots: vec![],
        snapshot_log: vec![],
        metadata_log: vec![],
        sort_orders: vec![],
        default_sort_order_id: 0,
        refs: HashMap::new(),
        statistics: vec![],
        partition_statistics: vec![],
        next_row_id: 0,
        encryption_keys: vec![],
        extra: serde_json::Map::new(),
    }
}

pub(super) fn schema(schema_id: i32, fields: Vec<NestedField>) -> Arc<Schema> {
    let fields = StructType { fields: fields.into_iter().map(Arc::new).collect() };
    Arc::new(Schema { schema_id, fields, identifier_field_ids: vec![] })
}

pub(super) fn file(spec_id: i32, partition: Vec<Option<Literal>>, rows: u64) -> DataFile {
    let key = PartitionKey { spec_id, tuple: PartitionTuple(partition.into()) };
    let mut file = DataFile::new(DataContent::Data, "memory:///t/data/f.parquet", FileFormat::Parquet, key);
    file.record_count = rows;
    file
}

pub(super) fn manifest(spec_id: i32, partitions: Vec<FieldSummary>) -> ManifestFile {
    ManifestFile {
        manifest_path: "m.avro".into(),
        manifest_length: 1,
        partition_spec_id: spec_id,
        content: ManifestContent::Data,
        sequence_number: Some(1),
        min_sequence_number: Some(1),
        added_snapshot_id: 1,
        added_files_count: Some(1),
        existing_files_count: Some(0),
        deleted_files_count: Some(0),
        added_rows_count: Some(1),
        existing_rows_count: Some(0),
        deleted_rows_count: Some(0),
        partitions: Some(partitions),
        key_metadata: None,
        first_row_id: None,
    }
}

/// One optional column `c` (id 1) of a type.
fn column(ty: T) -> Vec<NestedField> {
    vec![NestedField::new(1, "c", false, ty)]
}

/// A file of ten rows: nulls, NaNs, bounds of column 1.
fn measured(nulls: Option<u64>, nans: Option<u64>, lower: Option<Literal>, upper: Option<Literal>) -> DataFile {
    let mut file = file(0, vec![], 10);
    file.value_counts.insert(1, 10);
    nulls.into_iter().for_each(|n| file.null_value_counts.insert(1, n));
    nans.into_iter().for_each(|n| file.nan_value_counts.insert(1, n));
    lower.into_iter().for_each(|v| file.lower_bounds.insert(1, v.to_bytes().into()));
    upper.into_iter().for_each(|v| file.upper_bounds.insert(1, v.to_bytes().into()));
    file
}

fn ask(ty: T, file: &DataFile, op: LeafOp) -> Coverage {
    FileEvaluator::new(&Predicate::leaf(1, op), &table(column(ty), &[&[]])).evaluate(file)
}

/// Coverage of a leaf on one partition of a table partitioned by one transform.
fn of_partition(ty: T, transform: Transform, p: Option<Literal>, op: LeafOp) -> Coverage {
    let table = table(column(ty), &[&[(1, transform)]]);
    let evaluator = FileEvaluator::new(&Predicate::leaf(1, op), &table);
    let file = file(0, vec![p], 10);
    let coverage = evaluator.evaluate(&file);
    assert_eq!(evaluator.evaluate_partition(&file.partition_key()), coverage);
    coverage
}

fn int(v: i32) -> Literal {
    Literal::Int(v)
}

fn text(v: &str) -> Literal {
    Literal::String(v.into())
}

#[test]
fn numbers_by_bounds() {
    let file = measured(Some(0), None, Some(int(5)), Some(int(9)));
    for (op, want) in [
        (LeafOp::Lt(int(10)), All),
        (LeafOp::Lt(int(9)), Maybe),
        (LeafOp::Lt(int(5)), Never),
        (LeafOp::LtEq(int(9)), All),
        (LeafOp::LtEq(int(5)), Maybe),
        (LeafOp::LtEq(int(4)), Never),
        (LeafOp::Gt(int(4)), All),
        (LeafOp::Gt(int(5)), Maybe),
        (LeafOp::Gt(int(9)), Never),
        (LeafOp::GtEq(int(5)), All),
        (LeafOp::GtEq(int(9)), Maybe),
        (LeafOp::GtEq(int(10)), Never),
        (LeafOp::Eq(int(5)), Maybe),
        (LeafOp::Eq(int(4)), Never),
        (LeafOp::NotEq(int(5)), Maybe),
        (LeafOp::NotEq(int(10)), All),
        (LeafOp::In(vec![int(10), int(4)]), Never),
        (LeafOp::In(vec![int(10), int(6)]), Maybe),
        (LeafOp::In(vec![]), Never),
        (LeafOp::NotIn(vec![int(4), int(10)]), All),
        (LeafOp::NotIn(vec![int(4), int(6)]), Maybe),
        (LeafOp::NotIn(vec![]), All),
        (LeafOp::IsNull, Never),
        (LeafOp::NotNull, All),
        (LeafOp::IsNan, Never),
        (LeafOp::NotNan, All),
    ] {
        assert_eq!(ask(T::Int, &file, op.clone()), want, "{op:?}");
    }
    let constant = measured(Some(0), None, Some(int(7)), Some(int(7)));
    assert_eq!(ask(T::Int, &constant, LeafOp::Eq(int(7))), All);
    assert_eq!(ask(T::Int, &constant, LeafOp::In(vec![int(9), int(7)])), All);
    assert_eq!(ask(T::Int, &constant, LeafOp::NotIn(vec![int(9), int(7)])), Never);
    assert_eq!(ask(T::Int, &constant, LeafOp::NotEq(int(7))), Never);
}

#[test]
fn nulls_never_match_but_is_null() {
    for nulls in [None, Some(3)] {
        let file = measured(nulls, None, Some(int(5)), Some(int(9)));
        for op in [
            LeafOp::Lt(int(10)),
            LeafOp::NotEq(int(10)),
            LeafOp::NotIn(vec![int(10)]),
            LeafOp::NotNan,
            LeafOp::NotNull,
            LeafOp::IsNull,
        ] {
            assert_eq!(ask(T::Int, &file, op.clone()), Maybe, "{op:?} {nulls:?}");
        }
        assert_eq!(ask(T::Int, &file, LeafOp::Eq(int(10))), Never);
    }
    let all_null = measured(Some(10), None, None, None);
    assert_eq!(ask(T::Int, &all_null, LeafOp::IsNull), All);
    for op in [LeafOp::NotNull, LeafOp::NotEq(int(1)), LeafOp::NotIn(vec![int(1)]), LeafOp::NotNan] {
        assert_eq!(ask(T::Int, &all_null, op), Never);
    }
    let nothing_known = file(0, vec![], 10);
    for op in [LeafOp::IsNull, LeafOp::NotNull, LeafOp::Eq(int(1)), LeafOp::NotEq(int(1))] {
        assert_eq!(ask(T::Int, &nothing_known, op), Maybe);
    }
}

#[test]
fn counts_that_contradict_each_other_say_nothing() {
    let mut short = measured(Some(0), None, Some(int(5)), Some(int(9)));
    short.value_counts.insert(1, 9);
    assert_eq!(ask(T::Int, &short, LeafOp::Lt(int(10))), Maybe);
    assert_eq!(ask(T::Int, &short, LeafOp::Eq(int(10))), Never);
    for nulls in [10, 11] {
        let file = measured(Some(nulls), None, Some(int(5)), Some(int(9)));
        assert_eq!(ask(T::Int, &file, LeafOp::IsNull), Maybe, "{nulls} nulls and bounds");
    }
    let mut uncounted = measured(Some(10), None, None, None);
    uncounted.value_counts = Default::default();
    assert_eq!(ask(T::Int, &uncounted, LeafOp::IsNull), Maybe);
}

#[test]
fn nan_is_the_greatest_and_equals_itself() {
    let d = Literal::Double;
    let some = measured(Some(0), Some(2), Some(d(1.0)), Some(d(2.0)));
    let unknown = measured(Some(0), None, Some(d(1.0)), Some(d(2.0)));
    let none = measured(Some(0), Some(0), Some(d(1.0)), Some(d(2.0)));
    let all = measured(Some(0), Some(10), None, None);
    for (op, [of_some, of_unknown, of_none, of_all]) in [
        (LeafOp::Lt(d(3.0)), [Maybe, Maybe, All, Never]),
        (LeafOp::Gt(d(0.0)), [All, All, All, All]),
        (LeafOp::Gt(d(3.0)), [Maybe, Maybe, Never, All]),
        (LeafOp::GtEq(d(f64::INFINITY)), [Maybe, Maybe, Never, All]),
        (LeafOp::NotEq(d(3.0)), [All, All, All, All]),
        (LeafOp::NotIn(vec![d(3.0), d(f64::NAN)]), [Maybe, Maybe, All, Never]),
        (LeafOp::Eq(d(f64::NAN)), [Maybe, Maybe, Never, All]),
        (LeafOp::In(vec![d(3.0), d(f64::NAN)]), [Maybe, Maybe, Never, All]),
        (LeafOp::LtEq(d(f64::NAN)), [All, All, All, All]),
        (LeafOp::Lt(d(f64::NAN)), [Maybe, Maybe, All, Never]),
        (LeafOp::IsNan, [Maybe, Maybe, Never, All]),
        (LeafOp::NotNan, [Maybe, Maybe, All, Never]),
    ] {
        assert_eq!(ask(T::Double, &some, op.clone()), of_some, "some {op:?}");
        assert_eq!(ask(T::Double, &unknown, op.clone()), of_unknown, "unknown {op:?}");
        assert_eq!(ask(T::Double, &none, op.clone()), of_none, "none {op:?}");
        assert_eq!(ask(T::Double, &all, op.clone()), of_all, "all {op:?}");
    }
    // A NaN bound makes both meaningless.
    for (lower, upper) in [(1.0, f64::NAN), (f64::NAN, 2.0)] {
        let file = measured(Some(0), None, Some(d(lower)), Some(d(upper)));
        assert_eq!(ask(T::Double, &file, LeafOp::Eq(d(0.0))), Maybe);
        assert_eq!(ask(T::Double, &file, LeafOp::Lt(d(3.0))), Maybe);
    }
}

#[test]
fn zeros_are_equal_but_lists_are_not_trusted_with_them() {
    let zero = measured(Some(0), Some(0), Some(Literal::Float(0.0)), Some(Literal::Float(-0.0)));
    for v in [0.0, -0.0] {
        let v = Literal::Float(v);
        assert_eq!(ask(T::Float, &zero, LeafOp::Eq(v.clone())), All);
        assert_eq!(ask(T::Float, &zero, LeafOp::Lt(v.clone())), Never);
        assert_eq!(ask(T::Float, &zero, LeafOp::GtEq(v.clone())), All);
        assert_eq!(ask(T::Float, &zero, LeafOp::In(vec![v.clone(), Literal::Float(1.0)])), Maybe);
        assert_eq!(ask(T::Float, &zero, LeafOp::NotIn(vec![v])), Maybe);
    }
}

#[test]
fn bounds_are_outward_only_when_they_are_bounds() {
    // Inverted.
    let file = measured(Some(0), None, Some(int(9)), Some(int(5)));
    assert_eq!(ask(T::Int, &file, LeafOp::Lt(int(0))), Maybe);
    assert_eq!(ask(T::Int, &file, LeafOp::Gt(int(0))), Maybe);
    // Damaged.
    let mut file = measured(Some(0), None, Some(int(5)), Some(int(9)));
    file.lower_bounds.insert(1, Box::new([1, 2, 3]));
    assert_eq!(ask(T::Int, &file, LeafOp::Gt(int(0))), Maybe);
    assert_eq!(ask(T::Int, &file, LeafOp::Lt(int(10))), All);
}

#[test]
fn bounds_are_read_by_their_width() {
    let ints = measured(Some(0), Some(0), Some(int(-5)), Some(int(9)));
    assert_eq!(ask(T::Long, &ints, LeafOp::GtEq(Literal::Long(-5))), All);
    assert_eq!(ask(T::Long, &ints, LeafOp::Eq(Literal::Long(-6))), Never);
    let floats = measured(Some(0), Some(0), Some(Literal::Float(0.1)), Some(Literal::Float(0.1)));
    assert_eq!(ask(T::Double, &floats, LeafOp::Eq(Literal::Double(f64::from(0.1f32)))), All);
    assert_eq!(ask(T::Double, &floats, LeafOp::Eq(Literal::Double(0.1))), Never);
    let dates = measured(Some(0), None, Some(Literal::Date(-1)), Some(Literal::Date(-1)));
    assert_eq!(ask(T::Timestamp, &dates, LeafOp::Eq(Literal::Timestamp(-DAY))), All);
    let wide = T::Decimal { precision: 38, scale: 2 };
    let decimals = measured(Some(0), None, Some(Literal::Decimal(-129)), Some(Literal::Decimal(1)));
    assert_eq!(ask(wide.clone(), &decimals, LeafOp::GtEq(Literal::Decimal(-129))), All);
    assert_eq!(ask(wide, &decimals, LeafOp::Gt(Literal::Decimal(1))), Never);
    // A literal of the type the column had then is promoted, one of another type proves nothing.
    assert_eq!(ask(T::Long, &ints, LeafOp::Lt(int(10))), All);
    assert_eq!(ask(T::Int, &ints, LeafOp::Lt(Literal::Long(10))), Maybe);
}

#[test]
fn cut_text_bounds() {
    let long = "0123456789abcdef";
    let file = |lower: &str, upper: Option<&str>| measured(Some(0), None, Some(text(lower)), upper.map(text));
    assert_eq!(ask(T::String, &file("ab", Some("ab")), LeafOp::Eq(text("ab"))), All);
    // A writer that cuts the upper bound without rounding it up would write this for longer values.
    assert_eq!(ask(T::String, &file(long, Some(long)), LeafOp::Eq(text(long))), Maybe);
    assert_eq!(ask(T::String, &file(long, Some(long)), LeafOp::NotEq(text(long))), Maybe);
    let open = file("ab", None);
    assert_eq!(ask(T::String, &open, LeafOp::Eq(text("aa"))), Never);
    assert_eq!(ask(T::String, &open, LeafOp::Eq(text("b"))), Maybe);
    assert_eq!(ask(T::String, &open, LeafOp::GtEq(text("ab"))), All);
    assert_eq!(ask(T::String, &open, LeafOp::StartsWith("ab".into())), Maybe);
    let range = file("abc", Some("abx"));
    for (prefix, want) in
        [("ab", All), ("", All), ("abc", Maybe), ("b", Never), ("abb", Never), ("aby", Never), ("abxa", Never)]
    {
        assert_eq!(ask(T::String, &range, LeafOp::StartsWith(prefix.into())), want, "{prefix}");
        assert_eq!(ask(T::String, &range, LeafOp::NotStartsWith(prefix.into())), want.opposite(), "{prefix}");
    }
    let nulls = measured(Some(1), None, Some(text("abc")), Some(text("abx")));
    assert_eq!(ask(T::String, &nulls, LeafOp::NotStartsWith("b".into())), Maybe);
}

#[test]
fn uuid_bounds_hold_in_javas_order_too() {
    let id = |text: &str| Literal::Uuid(uuid::Uuid::parse_str(text).unwrap());
    let lower = id("00000000-0000-0001-f000-000000000000");
    let upper = id("00000000-0000-0002-0000-000000000000");
    let file = measured(Some(0), None, Some(lower), Some(upper));
    // Java's order takes the second half as signed, so this one lies above that lower bound.
    assert_eq!(ask(T::Uuid, &file, LeafOp::Eq(id("00000000-0000-0001-1000-000000000000"))), Maybe);
    assert_eq!(ask(T::Uuid, &file, LeafOp::Eq(id("00000000-0000-0003-1000-000000000000"))), Never);
}

#[test]
fn nested_columns_are_pruned_but_never_strict() {
    let inner = StructType { fields: vec![Arc::new(NestedField::new(1, "c", true, T::Int))] };
    let nested = table(vec![NestedField::new(2, "s", false, inner)], &[&[], &[(1, Transform::Identity)]]);
    let measured = measured(Some(0), None, Some(int(5)), Some(int(9)));
    let on = |op: LeafOp, file: &DataFile| FileEvaluator::new(&Predicate::leaf(1, op), &nested).evaluate(file);
    assert_eq!(on(LeafOp::Lt(int(10)), &measured), Maybe);
    assert_eq!(on(LeafOp::NotNull, &measured), Maybe);
    assert_eq!(on(LeafOp::IsNull, &measured), Maybe);
    assert_eq!(on(LeafOp::Eq(int(10)), &measured), Never);
    assert_eq!(on(LeafOp::Eq(int(7)), &file(1, vec![Some(int(7))], 3)), All);

    let element = Arc::new(NestedField::new(1, "element", true, T::Int));
    let list = table(vec![NestedField::new(2, "l", false, Type::List(Box::new(ListType { element })))], &[&[]]);
    assert_eq!(FileEvaluator::new(&Predicate::leaf(1, LeafOp::Eq(int(10))), &list).evaluate(&measured), Maybe);
    assert_eq!(FileEvaluator::new(&Predicate::leaf(77, LeafOp::IsNull), &list).evaluate(&measured), Maybe);
}

#[test]
fn identity_partitions_are_exact() {
    let id = |p: Option<Literal>, op| of_partition(T::Double, Transform::Identity, p, op);
    let d = Literal::Double;
    assert_eq!(id(None, LeafOp::IsNull), All);
    assert_eq!(id(None, LeafOp::NotEq(d(1.0))), Never);
    assert_eq!(id(None, LeafOp::NotNan), Never);
    assert_eq!(id(Some(d(f64::NAN)), LeafOp::Gt(d(f64::INFINITY))), All);
    assert_eq!(id(Some(d(f64::NAN)), LeafOp::Lt(d(1.0))), Never);
    assert_eq!(id(Some(d(f64::NAN)), LeafOp::NotNull), All);
    assert_eq!(id(Some(d(-0.0)), LeafOp::Eq(d(0.0))), All);
    assert_eq!(id(Some(Literal::Float(0.5)), LeafOp::Eq(d(0.5))), All);
    let long = text("0123456789abcdef0123");
    assert_eq!(of_partition(T::String, Transform::Identity, Some(long.clone()), LeafOp::Eq(long)), All);
}

/// Strict and inclusive projection of every operator through rounding of numbers: at the partition's edges, one inside, one out.
#[test]
fn truncated_numbers() {
    for (p, op, want) in [
        (10, LeafOp::Lt(int(20)), All),
        (10, LeafOp::Lt(int(19)), Maybe),
        (10, LeafOp::Lt(int(10)), Never),
        (10, LeafOp::LtEq(int(19)), All),
        (10, LeafOp::LtEq(int(9)), Never),
        (10, LeafOp::Gt(int(9)), All),
        (10, LeafOp::Gt(int(10)), Maybe),
        (10, LeafOp::Gt(int(19)), Never),
        (10, LeafOp::GtEq(int(10)), All),
        (10, LeafOp::Eq(int(10)), Maybe),
        (10, LeafOp::Eq(int(20)), Never),
        (10, LeafOp::NotEq(int(20)), All),
        (-10, LeafOp::LtEq(int(-1)), All),
        (-10, LeafOp::Eq(int(-11)), Never),
        (2_147_483_640, LeafOp::Lt(int(0)), Maybe),
        (2_147_483_640, LeafOp::NotNull, All),
        (2_147_483_630, LeafOp::Lt(int(0)), Never),
    ] {
        assert_eq!(of_partition(T::Int, Transform::Truncate(10), Some(int(p)), op.clone()), want, "{p} {op:?}");
    }
    // Java wraps -2147483648 around to 2147483646; the value must be found there.
    assert_eq!(
        of_partition(T::Int, Transform::Truncate(10), Some(int(2_147_483_646)), LeafOp::Eq(int(i32::MIN))),
        Maybe
    );
    let long = of_partition(
        T::Long,
        Transform::Truncate(10),
        Some(int(2_147_483_646)),
        LeafOp::Eq(Literal::Long(i32::MIN.into())),
    );
    assert_eq!(long, Maybe);
    let decimal = T::Decimal { precision: 38, scale: 2 };
    let max = Literal::Decimal(i128::MAX);
    assert_eq!(of_partition(decimal, Transform::Truncate(50), Some(max.clone()), LeafOp::LtEq(max)), Maybe);
}

#[test]
fn truncated_text() {
    let ask = |p: &str, op| of_partition(T::String, Transform::Truncate(3), Some(text(p)), op);
    for (p, op, want) in [
        ("abc", LeafOp::StartsWith("ab".into()), All),
        ("abc", LeafOp::StartsWith("abc".into()), All),
        ("abc", LeafOp::StartsWith("abcd".into()), Maybe),
        ("abc", LeafOp::StartsWith("abd".into()), Never),
        ("abc", LeafOp::NotStartsWith("abcd".into()), Maybe),
        ("abc", LeafOp::NotStartsWith("abdd".into()), All),
        ("abc", LeafOp::Lt(text("abd")), All),
        ("abc", LeafOp::Lt(text("abcz")), Maybe),
        ("abc", LeafOp::GtEq(text("abc")), All),
        ("abc", LeafOp::Gt(text("abc")), Maybe),
        ("abc", LeafOp::Eq(text("abc")), Maybe),
        ("abc", LeafOp::Eq(text("abcdef")), Maybe),
        ("abc", LeafOp::Eq(text("abdef")), Never),
        ("ab", LeafOp::Eq(text("ab")), All),
        ("ab", LeafOp::Eq(text("abc")), Never),
        // Two code points, four UTF-16 units: some writer may have cut it.
        ("\u{1F600}\u{1F600}", LeafOp::Eq(text("\u{1F600}\u{1F600}")), Maybe),
        ("abcd", LeafOp::Eq(text("x")), Maybe),
    ] {
        assert_eq!(ask(p, op.clone()), want, "{p} {op:?}");
    }
}

#[test]
fn time_partitions() {
    let ts = Literal::Timestamp;
    let day = |p, op| of_partition(T::Timestamp, Transform::Day, Some(p), op);
    for p in [Literal::Date(10), int(10)] {
        assert_eq!(day(p.clone(), LeafOp::Lt(ts(11 * DAY))), All);
        assert_eq!(day(p.clone(), LeafOp::Lt(ts(11 * DAY - 1))), Maybe);
        assert_eq!(day(p.clone(), LeafOp::LtEq(ts(11 * DAY - 1))), All);
        assert_eq!(day(p.clone(), LeafOp::GtEq(ts(10 * DAY))), All);
        assert_eq!(day(p.clone(), LeafOp::Gt(ts(10 * DAY))), Maybe);
        assert_eq!(day(p.clone(), LeafOp::Eq(ts(10 * DAY))), Maybe);
        assert_eq!(day(p.clone(), LeafOp::Eq(ts(10 * DAY - 1))), Never);
        assert_eq!(day(p, LeafOp::NotEq(ts(9 * DAY))), All);
    }
    // Before 1970 a file of Iceberg 0.10 may hold values of the unit before.
    for p in [0, -1] {
        let start = i64::from(p) * DAY;
        assert_eq!(day(int(p), LeafOp::GtEq(ts(start))), Maybe);
        assert_eq!(day(int(p), LeafOp::Eq(ts(start - 1))), Maybe);
        assert_eq!(day(int(p), LeafOp::Eq(ts(start - DAY))), Maybe);
        assert_eq!(day(int(p), LeafOp::Eq(ts(start - DAY - 1))), Never);
        assert_eq!(day(int(p), LeafOp::GtEq(ts(start - DAY))), All);
        assert_eq!(day(int(p), LeafOp::Lt(ts(start + DAY))), All);
    }
    assert_eq!(day(int(1), LeafOp::GtEq(ts(DAY))), All);
    let date = |p, op| of_partition(T::Date, Transform::Day, Some(p), op);
    assert_eq!(date(Literal::Date(-1), LeafOp::Eq(Literal::Date(-1))), All);
    let month = |p, op| of_partition(T::Date, Transform::Month, Some(int(p)), op);
    assert_eq!(month(1, LeafOp::Lt(Literal::Date(59))), All);
    assert_eq!(month(1, LeafOp::Lt(Literal::Date(58))), Maybe);
    let year = |p, op| of_partition(T::TimestamptzNs, Transform::Year, Some(int(p)), op);
    assert_eq!(year(1, LeafOp::GtEq(Literal::TimestamptzNs(365 * DAY * 1000))), All);
    // Beyond the type's range there is no bound.
    assert_eq!(year(i32::MAX, LeafOp::LtEq(Literal::TimestamptzNs(i64::MAX))), Maybe);
    let hour = |p, op| of_partition(T::Timestamptz, Transform::Hour, Some(int(p)), op);
    assert_eq!(hour(1, LeafOp::LtEq(Literal::Timestamptz(7_199_999_999))), All);
    assert_eq!(hour(i32::MAX, LeafOp::IsNull), Never);
}

#[test]
fn buckets() {
    let bucket_of_34 = 2_017_239_379 % 16;
    let ask = |p: i32, op| of_partition(T::Int, Transform::Bucket(16), Some(int(p)), op);
    assert_eq!(ask(bucket_of_34, LeafOp::Eq(int(34))), Maybe);
    assert_eq!(ask(bucket_of_34 + 1, LeafOp::Eq(int(34))), Never);
    assert_eq!(ask(bucket_of_34 + 1, LeafOp::NotEq(int(34))), All);
    assert_eq!(ask(bucket_of_34 + 1, LeafOp::NotIn(vec![int(34)])), All);
    assert_eq!(ask(bucket_of_34, LeafOp::NotEq(int(34))), Maybe);
    assert_eq!(ask(bucket_of_34, LeafOp::Lt(int(34))), Maybe);
    assert_eq!(ask(bucket_of_34, LeafOp::NotNull), All);
    assert_eq!(of_partition(T::Int, Transform::Bucket(16), None, LeafOp::IsNull), All);
    // int and long hash alike; a date and the timestamp it became do not.
    let long = of_partition(T::Long, Transform::Bucket(16), Some(int(bucket_of_34 + 1)), LeafOp::Eq(Literal::Long(34)));
    assert_eq!(long, Never);
    let mut promoted = table(column(T::Timestamp), &[&[(1, Transform::Bucket(16))]]);
    promoted.schemas.push(schema(1, column(T::Date)));
    for bucket in 0..16 {
        let evaluator = FileEvaluator::new(&Predicate::leaf(1, LeafOp::Eq(Literal::Timestamp(0))), &promoted);
        assert_eq!(evaluator.evaluate(&file(0, vec![Some(int(bucket))], 1)), Maybe);
    }
}

#[test]
fn partitions_that_say_nothing() {
    for transform in [Transform::Void, Transform::Unknown("zorder".into()), Transform::Hour] {
        for p in [None, Some(int(1))] {
            for op in [LeafOp::IsNull, LeafOp::NotNull, LeafOp::Eq(int(1)), LeafOp::NotEq(int(2))] {
                assert_eq!(of_partition(T::Int, transform.clone(), p.clone(), op), Maybe, "{transform}");
            }
        }
    }
    // A tuple that does not fit its spec, and a spec the table does not have.
    let table = table(column(T::Int), &[&[(1, Transform::Identity)]]);
    let evaluator = FileEvaluator::new(&Predicate::leaf(1, LeafOp::Eq(int(1))), &table);
    assert_eq!(evaluator.evaluate(&file(0, vec![Some(int(1)), None], 1)), Maybe);
    assert_eq!(evaluator.evaluate(&file(0, vec![], 1)), Maybe);
    assert_eq!(evaluator.evaluate(&file(9, vec![Some(int(1))], 1)), Maybe);
    assert_eq!(evaluator.evaluate(&file(0, vec![Some(int(1))], 1)), All);
}

#[test]
fn partition_and_metrics_together() {
    let table = table(column(T::Timestamp), &[&[(1, Transform::Day), (1, Transform::Bucket(4))], &[]]);
    // The partition knows that there are no nulls, the metrics know the narrower bounds.
    let mut file = file(0, vec![Some(int(1)), Some(int(0))], 10);
    file.lower_bounds.insert(1, Literal::Timestamp(DAY + 5).to_bytes().into());
    file.upper_bounds.insert(1, Literal::Timestamp(DAY + 9).to_bytes().into());
    let ask = |op, file: &DataFile| FileEvaluator::new(&Predicate::leaf(1, op), &table).evaluate(file);
    let before = LeafOp::Lt(Literal::Timestamp(DAY + 10));
    assert_eq!(ask(before.clone(), &file), All);
    // Of another spec the tuple says nothing.
    file.spec_id = 1;
    file.partition = PartitionTuple([].into());
    assert_eq!(ask(before.clone(), &file), Maybe);
    // A partition that contradicts the metrics.
    file.spec_id = 0;
    file.partition = PartitionTuple([Some(int(3)), Some(int(0))].into());
    assert_eq!(ask(before, &file), Maybe);
    file.partition = PartitionTuple([None, None].into());
    assert_eq!(ask(LeafOp::IsNull, &file), Maybe);
}

#[test]
fn composition_and_constants() {
    let fields = vec![NestedField::new(1, "a", false, T::Int), NestedField::new(2, "b", false, T::Int)];
    let table = table(fields, &[&[(1, Transform::Identity)]]);
    let mut data = file(0, vec![Some(int(1))], 10);
    data.value_counts.insert(2, 10);
    data.null_value_counts.insert(2, 0);
    data.lower_bounds.insert(2, int(5).to_bytes().into());
    data.upper_bounds.insert(2, int(9).to_bytes().into());
    let leaf = Predicate::leaf;
    let (a, not_a) = (leaf(1, LeafOp::Eq(int(1))), leaf(1, LeafOp::NotEq(int(1))));
    let (b, maybe_b) = (leaf(2, LeafOp::Lt(int(10))), leaf(2, LeafOp::Lt(int(7))));
    for (predicate, want) in [
        (Predicate::and([a.clone(), b.clone()]), All),
        (Predicate::and([a.clone(), maybe_b.clone()]), Maybe),
        (Predicate::and([not_a.clone(), maybe_b.clone()]), Never),
        (Predicate::and([Predicate::Unknown, not_a.clone()]), Never),
        (Predicate::or([not_a.clone(), b.clone()]), All),
        (Predicate::or([not_a.clone(), maybe_b.clone()]), Maybe),
        (Predicate::or([Predicate::Unknown, a.clone()]), All),
        (Predicate::or([Predicate::Unknown, not_a.clone()]), Maybe),
        (Predicate::AlwaysTrue, All),
        (Predicate::AlwaysFalse, Never),
        (Predicate::Unknown, Maybe),
    ] {
        assert_eq!(FileEvaluator::new(&predicate, &table).evaluate(&data), want, "{predicate}");
    }
    let mut empty = data.clone();
    empty.record_count = 0;
    assert_eq!(FileEvaluator::new(&a, &table).evaluate(&empty), Never);
    assert_eq!(FileEvaluator::new(&Predicate::AlwaysTrue, &table).evaluate(&empty), All);
    // The metrics of a delete file are not those of the rows it applies to.
    data.content = DataContent::EqualityDeletes;
    assert_eq!(FileEvaluator::new(&b, &table).evaluate(&data), Maybe);
    assert_eq!(FileEvaluator::new(&not_a, &table).evaluate(&data), Never);
}

#[test]
fn manifests_by_summary() {
    let table = table(column(T::Int), &[&[(1, Transform::Identity)], &[(1, Transform::Bucket(16))]]);
    let summary = |contains_null, lower: Option<i32>, upper: Option<i32>| FieldSummary {
        contains_null,
        contains_nan: None,
        lower_bound: lower.map(|v| int(v).to_bytes().into()),
        upper_bound: upper.map(|v| int(v).to_bytes().into()),
    };
    let ask = |op, spec, s: &FieldSummary| {
        FileEvaluator::new(&Predicate::leaf(1, op), &table).evaluate_manifest(&manifest(spec, vec![s.clone()]))
    };
    let range = summary(false, Some(3), Some(5));
    assert_eq!(ask(LeafOp::Eq(int(6)), 0, &range), Never);
    assert_eq!(ask(LeafOp::Eq(int(4)), 0, &range), Maybe);
    assert_eq!(ask(LeafOp::IsNull, 0, &range), Never);
    assert_eq!(ask(LeafOp::Gt(int(2)), 0, &range), All);
    assert_eq!(ask(LeafOp::Gt(int(2)), 0, &summary(true, Some(3), Some(5))), Maybe);
    assert_eq!(ask(LeafOp::IsNull, 0, &summary(true, None, None)), Maybe);
    let bucket = 2_017_239_379 % 16;
    assert_eq!(ask(LeafOp::Eq(int(34)), 1, &summary(false, Some(bucket), Some(bucket + 1))), Maybe);
    assert_eq!(ask(LeafOp::Eq(int(34)), 1, &summary(false, Some(bucket + 1), Some(15))), Never);
    let evaluator = FileEvaluator::new(&Predicate::leaf(1, LeafOp::Eq(int(6))), &table);
    let mut unknown = manifest(0, vec![range]);
    unknown.partitions = None;
    assert_eq!(evaluator.evaluate_manifest(&unknown), Maybe);
    unknown.partition_spec_id = 7;
    assert_eq!(evaluator.evaluate_manifest(&unknown), Maybe);
}

#[test]
fn building_and_showing_predicates() {
    let inner = StructType { fields: vec![Arc::new(NestedField::new(3, "day", false, T::Date))] };
    let schema = schema(
        0,
        vec![
            NestedField::new(1, "amount", false, T::Decimal { precision: 9, scale: 2 }),
            NestedField::new(2, "s", false, inner),
            NestedField::new(4, "name", false, T::String),
        ],
    );
    let a = Predicate::leaf(1, LeafOp::In(vec![Literal::Decimal(-5), Literal::Decimal(100)]));
    let b = Predicate::leaf(3, LeafOp::GtEq(Literal::Date(0)));
    let c = Predicate::leaf(4, LeafOp::NotStartsWith("o'b".into()));
    let all = Predicate::and([
        a.clone(),
        Predicate::and([b.clone(), Predicate::AlwaysTrue]),
        Predicate::or([c.clone(), Predicate::Unknown]),
    ]);
    assert_eq!(
        all.display(&schema).to_string(),
        "amount IN (-0.05, 1.00) AND s.day >= '1970-01-01' AND (NOT starts_with(name, 'o''b') OR unknown)"
    );
    assert_eq!(Predicate::leaf(9, LeafOp::IsNull).to_string(), "#9 IS NULL");
    assert_eq!(all.field_ids().into_iter().collect::<Vec<_>>(), [1, 3, 4]);
    assert_eq!(Predicate::and([a.clone(), Predicate::AlwaysFalse]), Predicate::AlwaysFalse);
    assert_eq!(Predicate::and([]), Predicate::AlwaysTrue);
    assert_eq!(Predicate::or([]), Predicate::AlwaysFalse);
    assert_eq!(Predicate::or([a.clone()]), a);
    assert_eq!(Predicate::or([Predicate::or([a.clone(), b.clone()]), c.clone()]), Predicate::Or(vec![a, b, c]));
}

#[test]
fn rows_by_three_valued_logic() {
    let row = |value: Option<Literal>| move |id: i32| if id == 1 { value.clone() } else { None };
    let leaf = |op| Predicate::leaf(1, op);
    let null_leaf = Predicate::leaf(2, LeafOp::Eq(int(1)));
    for (predicate, value, want) in [
        (leaf(LeafOp::NotEq(int(1))), None, None),
        (leaf(LeafOp::NotIn(vec![int(1)])), None, None),
        (leaf(LeafOp::NotNan), None, None),
        (leaf(LeafOp::NotNull), None, Some(false)),
        (leaf(LeafOp::IsNull), None, Some(true)),
        (leaf(LeafOp::NotIn(vec![int(1)])), Some(int(2)), Some(true)),
        (leaf(LeafOp::Gt(Literal::Double(f64::INFINITY))), Some(Literal::Double(f64::NAN)), Some(true)),
        (leaf(LeafOp::Eq(Literal::Double(f64::NAN))), Some(Literal::Double(f64::NAN)), Some(true)),
        (leaf(LeafOp::Eq(Literal::Double(0.0))), Some(Literal::Double(-0.0)), Some(true)),
        (leaf(LeafOp::Eq(int(1))), Some(Literal::Long(1)), None),
        (Predicate::and([null_leaf.clone(), leaf(LeafOp::Eq(int(1)))]), Some(int(1)), None),
        (Predicate::and([null_leaf.clone(), leaf(LeafOp::Eq(int(1)))]), Some(int(2)), Some(false)),
        (Predicate::or([null_leaf.clone(), leaf(LeafOp::Eq(int(1)))]), Some(int(1)), Some(true)),
        (Predicate::or([null_leaf, leaf(LeafOp::Eq(int(1)))]), Some(int(2)), None),
        (Predicate::Unknown, None, None),
    ] {
        assert_eq!(predicate.matches_row(&row(value.clone())), want, "{predicate} {value:?}");
    }
}
