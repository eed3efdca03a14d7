//! Partition tuples and manifest summaries.

use super::*;

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
    // Of a width beyond 2^30 Java's intermediate sum wraps: it puts 1,900,000,000 here.
    let wide = Transform::Truncate(2_000_000_000);
    assert_eq!(of_partition(T::Int, wide, Some(int(-2_000_000_000)), LeafOp::Eq(int(1_900_000_000))), Maybe);
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
    assert_eq!(ask(LeafOp::NotEq(Literal::Timestamp(2 * DAY)), &file), Maybe);
    file.partition = PartitionTuple([None, None].into());
    assert_eq!(ask(LeafOp::IsNull, &file), Maybe);
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
fn partition_sets_tell_files_of_any_spec() {
    let columns = || vec![NestedField::new(1, "a", false, T::Int), NestedField::new(2, "b", false, T::String)];
    let day = NestedField::new(3, "c", false, T::Timestamp);
    let fields = columns().into_iter().chain([day]).collect();
    let identity = |id| (id, Transform::Identity);
    let bucket = (1, Transform::Bucket(4));
    let table = table(
        fields,
        &[&[identity(1)], &[identity(1), identity(2)], &[bucket.clone(), identity(2)], &[], &[(3, Transform::Day)]],
    );
    let int = |v: i32| Some(Literal::Int(v));
    let set = |spec: usize, tuples: &[&[Option<Literal>]]| {
        let tuples = tuples.iter().map(|tuple| PartitionTuple(tuple.to_vec().into()));
        PartitionSet::new(Arc::clone(&table.partition_specs[spec]), tuples, &table)
    };
    let of_a = set(0, &[&[int(1)], &[None]]);
    let text = || Some(Literal::String("x".to_string()));
    for (spec, tuple, coverage) in [
        (0, vec![int(1)], All),
        (0, vec![int(2)], Never),
        (0, vec![None], All),
        (1, vec![int(1), text()], All),
        (1, vec![None, None], All),
        (1, vec![int(2), text()], Never),
        // what bucket(4, 1) holds is not known to be 1, and others cannot hold it
        (2, vec![int(0), text()], Maybe),
        (3, vec![], Maybe),
        (4, vec![Some(Literal::Date(0))], Maybe),
        (99, vec![], Maybe),
    ] {
        assert_eq!(of_a.coverage(&file(spec, tuple.clone(), 5)), coverage, "spec {spec}, {tuple:?}");
    }
    let of_bucket = set(2, &[&[int(0), text()]]);
    assert_eq!(of_bucket.coverage(&file(2, vec![int(1), text()], 5)), Never);
    assert_eq!(of_bucket.coverage(&file(1, vec![int(1), None], 5)), Never);
    assert_eq!(of_bucket.coverage(&file(1, vec![int(1), text()], 5)), Maybe);
    assert_eq!(set(3, &[&[]]).coverage(&file(0, vec![int(1)], 5)), All);
    assert_eq!(set(0, &[]).coverage(&file(0, vec![int(1)], 5)), Never);
}
