//! File metrics.

use super::*;

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
    let open = measured(Some(0), Some(0), Some(d(5.0)), None);
    assert_eq!(ask(T::Double, &open, LeafOp::In(vec![d(1.0), d(f64::NAN)])), Never);
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
    assert_eq!(ask(T::Int, &file, LeafOp::NotNull), All, "the counts still hold");
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
