//! A5, A6, A8, A9, A10: conditions and values.

use calve::spec::PrimitiveType::{self, Boolean, Date, Double, Float, Int, Long, String as Text};

use super::{DOORS, Door, Spec, World, assert_deletes, assert_refuses_delete};

const LONG: PrimitiveType = Long;
const J: &[(&str, PrimitiveType)] = &[("id", LONG), ("j", Int)];
const TJ: Spec<'_> = ("t", J, "(1, NULL), (2, 1), (3, 2), (4, 9), (5, 7), (6, 0)");

#[tokio::test(flavor = "multi_thread")]
async fn a5_lists_on_one_column_keep_null() {
    for (condition, gone) in [
        ("j NOT IN (1,2) OR j NOT IN (7,8)", vec![2, 3, 4, 5, 6]),
        ("NOT (j IN (1,2,3,4) AND j IN (7,8,9,10))", vec![2, 3, 4, 5, 6]),
        ("j IN (2,4,9) AND j NOT IN (2,0,NULL,4)", vec![]),
        ("NOT (j IN (1,2,3,4,NULL) AND j NOT IN (9))", vec![4]),
        ("j IN (1,2,3,4,NULL) AND j IN (1,7,8,9)", vec![2]),
        ("NOT (j IN (1,2,3,4,NULL) AND j IN (1,7,8,9))", vec![3, 6]),
        ("NOT (j=1 OR j=2) OR NOT (j=7 OR j=8)", vec![2, 3, 4, 5, 6]),
        ("(j IN (1,2) AND j IN (7,9)) IS NULL", vec![1]),
        ("CASE WHEN j IN (1,2,9) THEN j NOT IN (9,NULL) ELSE j IN (7, 8) END", vec![5]),
        ("j IN (1, 2) OR j IN (7, 8)", vec![2, 3, 5]),
        ("j NOT IN (1, 2) AND j NOT IN (7, 8)", vec![4, 6]),
        ("j NOT IN (NULL)", vec![]),
        ("(j IN (NULL, 9)) IS NOT TRUE", vec![1, 2, 3, 5, 6]),
    ] {
        assert_deletes(&[TJ], condition, &gone).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_lists_that_meet_through_a_derived_table_keep_null() {
    for door in DOORS {
        let world = World::new(door, &[TJ, ("target", J, "")]).await;
        let source = "SELECT id, j FROM (SELECT *, j NOT IN (1,2) AS p FROM t) WHERE p OR j NOT IN (7,8)";
        assert_eq!(world.rows(source).await, ["2|1", "3|2", "4|9", "5|7", "6|0"], "{door:?}");
        assert_eq!(world.rows(&format!("INSERT INTO target {source}")).await, ["5"], "{door:?}");
        assert_eq!(world.rows("SELECT id FROM target WHERE j IS NULL").await, Vec::<String>::new());
    }
}

const BOOLEANS: Spec<'_> = (
    "t",
    &[("id", LONG), ("a", Boolean), ("b", Boolean), ("c", Boolean)],
    "(1, true, true, true), (2, true, true, false), (3, true, false, false), (4, NULL, NULL, true), (5, NULL, NULL, NULL)",
);

#[tokio::test(flavor = "multi_thread")]
async fn a6_is_distinct_from_before_or() {
    for (condition, wanted) in [
        ("a IS DISTINCT FROM b OR c", "1,3,4"),
        ("a IS NOT DISTINCT FROM b AND c", "1,4"),
        ("a IS DISTINCT FROM (b OR c)", "3,4"),
        ("a IS NOT DISTINCT FROM (b IS NULL)", ""),
        ("(a IS DISTINCT FROM b) OR c", "1,3,4"),
    ] {
        let world = World::new(Door::Entry, &[BOOLEANS]).await;
        let gone = world.rows(&format!("SELECT id FROM t WHERE {condition}")).await;
        assert_eq!(gone.join(","), wanted, "{condition}");
        assert_eq!(
            world.rows(&format!("DELETE FROM t WHERE {condition}")).await,
            [gone.len().to_string()],
            "{condition}"
        );
    }
    let world = World::new(Door::Plain, &[BOOLEANS, ("u", BOOLEANS.1, "")]).await;
    for sql in [
        "DELETE FROM t WHERE a IS DISTINCT FROM b OR c",
        "DELETE FROM t WHERE id IN (SELECT id FROM u WHERE a IS NOT DISTINCT FROM b AND c)",
        "INSERT INTO u SELECT t.* FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a AND t.b IS NOT DISTINCT FROM u.b",
        "DELETE FROM t WHERE a IS NOT DISTINCT FROM b IS NULL",
    ] {
        world.refused(sql, "parentheses").await;
    }
    assert_eq!(world.rows("SELECT count(*) FROM t").await, ["5"]);
    assert_eq!(world.rows("DELETE FROM t WHERE (a IS DISTINCT FROM b) OR c").await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_xor_and_regular_expressions_keep_null() {
    let table: Spec<'_> =
        ("t", &[("id", LONG), ("i", Int), ("s", Text)], "(1, NULL, NULL), (2, 5, 'x'), (3, 2, ''), (4, 7, NULL)");
    for (condition, gone) in [
        ("i ^ i = 0", vec![2, 3, 4]),
        ("i ^ (i ^ 2) = 2", vec![2, 3, 4]),
        ("(2 ^ i) ^ i = 2", vec![2, 3, 4]),
        ("(i ^ id) ^ (i ^ id) = 0", vec![2, 3, 4]),
        ("NOT (s ~ '.*')", vec![]),
        ("NOT (s ~* '.*')", vec![]),
        ("s ~ '.*'", vec![2, 3]),
        ("s !~ '.*'", vec![]),
        ("(s ~ '.*') IS NULL", vec![1, 4]),
        ("NOT (s ~ '')", vec![]),
        ("NOT (s LIKE '%')", vec![]),
    ] {
        assert_deletes(&[table], condition, &gone).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a9_negative_zero_equals_zero_in_lists() {
    let table: Spec<'_> = (
        "t",
        &[("id", LONG), ("d", Double), ("f", Float), ("i", Int)],
        "(1, -0.0, -0.0, 0), (2, 0.0, 0.0, 1), (3, 1.0, 1.0, 2), (4, NULL, NULL, NULL), (5, 9.0, 9.0, 9)",
    );
    for (condition, gone) in [
        ("d IN (0.0, 1, 2, 3)", vec![1, 2, 3]),
        ("d IN (-0.0, 1, 2, 3)", vec![1, 2, 3]),
        ("d NOT IN (0.0, 1, 2, 3)", vec![5]),
        ("f IN (0, 2, 3, 4, 5)", vec![1, 2]),
        ("f NOT IN (-0.0, 2, 3, 4)", vec![3, 5]),
        ("i IN (-0.0, 4.0, 2.0, 3.0)", vec![1, 3]),
        ("d IN (1.0 - 1.0, 7, 2, 3)", vec![1, 2]),
        ("d NOT IN (1.0 - 1.0, 7, 2, 3)", vec![3, 5]),
        ("d = 0.0 OR d = 7 OR d = 2 OR d = 3", vec![1, 2]),
        ("d <> 0.0 AND d <> 7 AND d <> 2 AND d <> 3", vec![3, 5]),
        ("CASE d WHEN 0.0 THEN true ELSE false END", vec![1, 2]),
        ("CASE f WHEN 0.0 THEN true WHEN 1.0 THEN true WHEN 7.0 THEN true WHEN 8.0 THEN true END", vec![1, 2, 3]),
        ("nullif(d, 0.0) IS NULL", vec![1, 2, 4]),
        ("d = 0.0", vec![1, 2]),
        ("d = -0.0", vec![1, 2]),
        ("f >= 0.0 AND f < 0.5", vec![1, 2]),
        ("NOT d > 0.0", vec![1, 2]),
        ("d BETWEEN 0.0 AND 0.5", vec![1, 2]),
        ("d IS NOT DISTINCT FROM 0.0", vec![1, 2]),
        ("d IS DISTINCT FROM 0.0", vec![3, 4, 5]),
    ] {
        assert_deletes(&[table], condition, &gone).await;
    }
}

const MAX: &str = "9223372036854775807";

#[tokio::test(flavor = "multi_thread")]
async fn a10_arithmetic_does_not_wrap() {
    let decimal = PrimitiveType::Decimal { precision: 38, scale: 0 };
    let columns: &[(&str, PrimitiveType)] = &[("id", LONG), ("l", LONG), ("i", Int), ("m", decimal)];
    let nines = "9".repeat(38);
    let rows = format!("(1, {MAX}, 2147483647, CAST('{nines}' AS DECIMAL(38,0))), (2, 1, 1, 1)");
    let table: Spec<'_> = ("t", columns, &rows);
    for condition in [
        "l + 1 < 0",
        "l * 2 = -2",
        "-1 - l - 1 > 0 AND (0 - l) - 2 > 0",
        "i + i < 0",
        "i * i = 1",
        "m + 1 > 5",
        "9223372036854775807 + 1 < 0",
        "l > 9223372036854775807 + id",
        "id IN (SELECT u.l + 1 FROM t u)",
        "(SELECT sum(u.l) FROM t u) < 0",
    ] {
        for door in DOORS {
            let world = World::new(door, &[table]).await;
            let refusal = world.try_rows(&format!("DELETE FROM t WHERE {condition}")).await;
            assert!(refusal.is_err(), "{door:?} {condition}: {refusal:?}");
            assert_eq!(world.rows("SELECT id FROM t").await, ["1", "2"], "{condition}");
        }
    }
    for door in DOORS {
        for values in [
            "id, l + 1, i, m FROM t",
            "id, l, i, m + 1 FROM t",
            "3, sum(l), 1, 1 FROM t",
            "3, l * l, 1, 1 FROM (SELECT l FROM t)",
        ] {
            let world = World::new(door, &[table]).await;
            let refusal = world.try_rows(&format!("INSERT INTO t SELECT {values}")).await;
            assert!(refusal.is_err(), "{door:?} {values}: {refusal:?}");
        }
        let world = World::new(door, &[table]).await;
        let insert = "INSERT INTO t SELECT 3 + id, l - 1, i * -1, m - 1 FROM t";
        assert_eq!(world.rows(insert).await, ["2"], "{door:?}");
        let insert =
            "INSERT INTO t SELECT 10 * max(id), sum(i), count(*), sum(m) - sum(m) FROM t WHERE id = 2 GROUP BY i";
        assert_eq!(world.rows(insert).await, ["1"], "{door:?}");
        assert_eq!(world.rows("SELECT l, i, m FROM t WHERE id IN (5, 20)").await, ["0|-1|0", "1|1|0"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_odd_comparisons_and_patterns() {
    let decimal = PrimitiveType::Decimal { precision: 9, scale: 2 };
    let columns: &[(&str, PrimitiveType)] = &[("id", LONG), ("d", Double), ("m", decimal), ("s", Text), ("day", Date)];
    let table: Spec<'_> = (
        "t",
        columns,
        "(1, 1e-16, 0.00, 'abc', '2020-01-01'), (2, 0.0, 0.00, 'xa', '2020-01-02'), \
         (3, 'NaN'::double, 1.50, 'a%', '2020-01-03'), (4, 1e300, 2.00, NULL, NULL), (5, 1.5, 1.50, 'a', '2020-01-01')",
    );
    for (condition, gone) in [
        ("d = m", vec![2, 5]),
        ("d > m", vec![1, 3, 4]),
        ("m < 1e300", vec![1, 2, 3, 4, 5]),
        ("m = 1e-16", vec![]),
        ("m = 1.5", vec![3, 5]),
        ("d BETWEEN m AND m", vec![2, 5]),
        ("s SIMILAR TO 'a%'", vec![1, 3, 5]),
        ("s NOT SIMILAR TO 'a%'", vec![2]),
        ("s SIMILAR TO '(a|x)_'", vec![2, 3]),
        ("day + INTERVAL '12 hours' > TIMESTAMP '2020-01-01 06:00:00'", vec![1, 2, 3, 5]),
        ("day + INTERVAL '1 day' = DATE '2020-01-02'", vec![1, 5]),
    ] {
        assert_deletes(&[table], condition, &gone).await;
    }
    assert_refuses_delete(&[table], "s SIMILAR TO s", "SIMILAR TO").await;
}
