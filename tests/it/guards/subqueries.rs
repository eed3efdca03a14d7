//! A7 and C15: subqueries and "unknown".

use calve::spec::PrimitiveType::{self, Long};

use super::{Spec, assert_deletes, assert_refuses_delete};

const T: Spec<'_> = ("t", &[("id", PrimitiveType::Long), ("k", Long)], "(1, 1), (2, 2), (3, NULL), (4, 4)");
/// k 1 has two rows, k 2 one, and one is null.
const S: Spec<'_> = ("s", &[("k", PrimitiveType::Long), ("x", Long)], "(1, 10), (1, 11), (2, 20), (NULL, 1)");
const EMPTY: Spec<'_> = ("e", &[("k", PrimitiveType::Long), ("x", Long)], "");

async fn check(cases: &[(&str, &[i64])]) {
    for (condition, gone) in cases {
        assert_deletes(&[T, S, EMPTY], condition, gone).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_exists_over_an_aggregate_is_true() {
    check(&[
        ("EXISTS (SELECT max(x) FROM s WHERE s.k = t.k)", &[1, 2, 3, 4]),
        ("EXISTS (SELECT count(*) FROM s WHERE s.k = t.k)", &[1, 2, 3, 4]),
        ("NOT EXISTS (SELECT max(x) FROM s WHERE s.k = t.k)", &[]),
        ("EXISTS (SELECT max(x) FROM s WHERE s.k = t.k GROUP BY s.k)", &[1, 2]),
        ("NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k GROUP BY s.x)", &[3, 4]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_having_over_an_aggregate_without_groups() {
    check(&[
        ("EXISTS (SELECT 1 FROM s WHERE s.k=t.k HAVING count(*)=0)", &[3, 4]),
        ("NOT EXISTS (SELECT 1 FROM s WHERE s.k=t.k HAVING count(*)=0)", &[1, 2]),
        ("id < 3 AND (id = 9 OR EXISTS (SELECT 1 FROM s WHERE s.k=t.k HAVING count(*) > 1))", &[1]),
        ("EXISTS (SELECT 1 FROM s WHERE s.k=t.k HAVING max(x) > 15)", &[2]),
        ("NOT EXISTS (SELECT 1 FROM s WHERE s.k=t.k HAVING max(x) > 15)", &[1, 3, 4]),
        ("EXISTS (SELECT s.k FROM s WHERE s.k=t.k GROUP BY s.k HAVING count(*) > 1)", &[1]),
        ("(SELECT count(*) FROM s WHERE s.k = t.k HAVING count(*) > 1) IS NULL", &[2, 3, 4]),
        ("coalesce((SELECT count(*) FROM s WHERE s.k = t.k HAVING count(*) > 1), 77) = 77", &[2, 3, 4]),
        ("(SELECT max(x) FROM s WHERE s.k = t.k HAVING count(*) = 0) IS NULL", &[1, 2, 3, 4]),
        ("2 IN (SELECT count(*) FROM s WHERE s.k = t.k HAVING count(*) > 1)", &[1]),
        ("0 NOT IN (SELECT count(*) FROM s WHERE s.k = t.k HAVING count(*) > 1)", &[1, 2, 3, 4]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_in_over_an_aggregate_is_a_comparison() {
    check(&[
        ("0 IN (SELECT count(*) FROM s WHERE s.k = t.k)", &[3, 4]),
        ("0 NOT IN (SELECT count(*) FROM s WHERE s.k = t.k)", &[1, 2]),
        ("11 IN (SELECT max(x) FROM s WHERE s.k = t.k)", &[1]),
        ("11 NOT IN (SELECT max(x) FROM s WHERE s.k = t.k)", &[2]),
        ("(11 IN (SELECT max(x) FROM s WHERE s.k = t.k)) IS NULL", &[3, 4]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_offset_and_limit_in_exists() {
    let tables = [T, S, EMPTY];
    assert_refuses_delete(&tables, "EXISTS (SELECT 1 FROM s WHERE s.k = t.k OFFSET 5)", "OFFSET").await;
    assert_refuses_delete(&tables, "k IN (SELECT k FROM s WHERE s.x > t.id LIMIT 1)", "LIMIT").await;
    check(&[
        ("EXISTS (SELECT 1 FROM s WHERE s.k = t.k LIMIT 0)", &[]),
        ("NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k LIMIT 0)", &[1, 2, 3, 4]),
        ("EXISTS (SELECT 1 FROM s WHERE s.k = t.k LIMIT 1)", &[1, 2]),
        ("NOT EXISTS (SELECT x FROM s WHERE s.k = t.k ORDER BY x LIMIT 3)", &[3, 4]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_correlated_not_in_counts_its_own_nulls_only() {
    check(&[
        ("k NOT IN (SELECT s.k FROM s WHERE s.k = t.k)", &[3, 4]),
        ("k NOT IN (SELECT s.k FROM s WHERE s.x > t.id * 10)", &[2, 3, 4]),
        ("k NOT IN (SELECT s.k FROM s WHERE s.x < t.id)", &[1]),
        ("id NOT IN (SELECT s.k FROM s WHERE s.k = t.k)", &[3, 4]),
        ("NOT (k IN (SELECT s.k FROM s WHERE s.k = t.k))", &[3, 4]),
        ("k IN (SELECT s.k FROM s WHERE s.x > t.id * 10)", &[1]),
        ("k NOT IN (SELECT max(s.k) FROM s WHERE s.k = t.k GROUP BY s.x)", &[3, 4]),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_in_under_or_not_and_case_keeps_unknown() {
    check(&[
        ("id = 99 OR k NOT IN (SELECT k FROM s)", &[]),
        ("id = 99 OR k NOT IN (SELECT k FROM s WHERE k IS NOT NULL)", &[4]),
        ("id = 99 OR k NOT IN (SELECT k FROM e)", &[1, 2, 3, 4]),
        ("id = 2 OR k IN (SELECT k FROM s WHERE x = 10)", &[1, 2]),
        ("NOT (id = 1 OR k IN (SELECT k FROM s))", &[]),
        ("NOT (id = 1 AND k IN (SELECT k FROM s))", &[2, 3, 4]),
        ("CASE WHEN k IN (SELECT k FROM s) THEN false ELSE true END", &[3, 4]),
        ("CASE WHEN NOT (k IN (SELECT k FROM s)) THEN true ELSE false END", &[]),
        ("(k IN (SELECT k FROM s)) IS NOT TRUE", &[3, 4]),
        ("(k IN (SELECT k FROM s)) IS NOT FALSE", &[1, 2, 3, 4]),
        ("(k IN (SELECT k FROM s WHERE k = 1)) IS NOT FALSE", &[1, 3]),
        ("(k NOT IN (SELECT k FROM s)) IS NULL", &[3, 4]),
        ("(k IN (SELECT k FROM e)) IS NULL", &[]),
        ("(k IN (SELECT k FROM s)) IS FALSE", &[]),
        ("(k IN (SELECT k FROM s WHERE k = 1)) IS FALSE", &[2, 4]),
        ("coalesce(k IN (SELECT k FROM s), true)", &[1, 2, 3, 4]),
        ("coalesce(k NOT IN (SELECT k FROM s WHERE k = 2), false)", &[1, 4]),
        ("k NOT IN (SELECT k FROM s)", &[]),
        ("k NOT IN (SELECT k FROM e)", &[1, 2, 3, 4]),
        ("k NOT IN (SELECT k FROM s WHERE k = 1)", &[2, 4]),
        ("id = 3 OR k NOT IN (SELECT s.k FROM s WHERE s.k = t.k)", &[3, 4]),
        ("(k IN (SELECT s.k FROM s WHERE s.x < t.id)) IS NULL", &[2, 3, 4]),
        ("id = 99 OR k NOT IN (SELECT u.k FROM t u WHERE u.id < 3)", &[4]),
        ("id = 99 OR k + 1 NOT IN (SELECT u.k FROM t u WHERE u.k IS NOT NULL)", &[2, 4]),
        ("id IN (SELECT id FROM t u WHERE u.id = 99 OR u.k NOT IN (SELECT k FROM s WHERE k = 1))", &[2, 4]),
    ])
    .await;
}

/// Without a column of the outer table the anti join has no key and is not null-aware: `NULL NOT IN (S)` was taken for true.
#[tokio::test(flavor = "multi_thread")]
async fn not_in_with_an_operand_that_is_no_column_keeps_unknown() {
    check(&[
        ("NULL NOT IN (SELECT k FROM s)", &[]),
        ("CAST(NULL AS BIGINT) NOT IN (SELECT k FROM s WHERE k = 1)", &[]),
        ("NULL NOT IN (SELECT k FROM e)", &[1, 2, 3, 4]),
        ("9 NOT IN (SELECT k FROM s)", &[]),
        ("9 NOT IN (SELECT k FROM s WHERE k = 1)", &[1, 2, 3, 4]),
        ("1 NOT IN (SELECT k FROM s WHERE k = 1)", &[]),
        ("NOT (9 IN (SELECT k FROM s))", &[]),
        ("id < 3 AND 9 NOT IN (SELECT k FROM s WHERE k = 1)", &[1, 2]),
        ("k - k + 9 NOT IN (SELECT k FROM s WHERE k = 1)", &[1, 2, 4]),
        ("coalesce(9, k) NOT IN (SELECT k FROM s)", &[]),
        ("nullif(9, 9) NOT IN (SELECT k FROM s WHERE k = 1)", &[]),
        ("(SELECT max(k) FROM e) NOT IN (SELECT k FROM s)", &[]),
        ("(SELECT k FROM e) NOT IN (SELECT k FROM s WHERE k = 1)", &[]),
        ("(SELECT max(k) FROM t) NOT IN (SELECT k FROM s WHERE k = 1)", &[1, 2, 3, 4]),
        ("(SELECT max(k) FROM t) NOT IN (SELECT k FROM s)", &[]),
        ("(SELECT max(k) FROM e) NOT IN (SELECT k FROM e)", &[1, 2, 3, 4]),
        ("k NOT IN (SELECT NULL FROM s)", &[]),
        (
            "coalesce(k, 1) NOT IN (SELECT u.k FROM t u WHERE u.k IS NOT NULL AND coalesce(u.k, 9) NOT IN (SELECT k FROM s WHERE k = 1))",
            &[1, 3],
        ),
        ("k NOT IN (SELECT 1 FROM s)", &[2, 4]),
        ("k IN (SELECT u.k FROM t u WHERE 9 NOT IN (SELECT k FROM s))", &[]),
        ("k IN (SELECT u.k FROM t u WHERE NULL NOT IN (SELECT k FROM s))", &[]),
    ])
    .await;
    let tables = [T, S, EMPTY];
    let outer = "EXISTS (SELECT 1 FROM s WHERE t.k NOT IN (SELECT u.k FROM s u))";
    assert_refuses_delete(&tables, outer, "operand is itself from a subquery").await;
    let correlated = "(SELECT max(x) FROM s WHERE s.k = t.k) NOT IN (SELECT x FROM s)";
    assert_refuses_delete(&tables, correlated, "operand is itself from a subquery").await;
}

/// The condition on the outer row chooses what is ranked, so it cannot be applied after ranking.
#[tokio::test(flavor = "multi_thread")]
async fn windows_and_limits_over_correlated_rows_are_refused() {
    let tables = [T, S, EMPTY];
    for condition in [
        "k IN (SELECT rank() OVER (ORDER BY s.x) FROM s WHERE s.k >= t.k)",
        "k IN (SELECT r FROM (SELECT row_number() OVER (ORDER BY s.x) AS r FROM s WHERE s.k > t.k) AS q)",
        "EXISTS (SELECT 1 FROM (SELECT row_number() OVER (ORDER BY s.x) AS r FROM s WHERE s.k = t.k) AS q WHERE r = 2)",
        "k = (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY s.x) AS r FROM s WHERE s.k > t.k) AS q)",
        "CASE WHEN id > 1 THEN k NOT IN (SELECT rank() OVER (ORDER BY s.x) FROM s WHERE s.k <> t.k) ELSE false END",
    ] {
        assert_refuses_delete(&tables, condition, "window function").await;
    }
    check(&[
        ("k IN (SELECT rank() OVER (ORDER BY s.x) FROM s WHERE s.k IS NOT NULL)", &[1, 2]),
        (
            "EXISTS (SELECT 1 FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM s) AS q
             WHERE q.k = t.k AND q.r = 2)",
            &[1],
        ),
    ])
    .await;
}
