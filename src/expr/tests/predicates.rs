//! Predicates themselves, and their composition.

use super::*;

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
