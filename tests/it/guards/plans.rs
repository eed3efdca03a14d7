//! A1 to A4 and B0 to B3: plans and settings.

use std::sync::Arc;

use calve::spec::PrimitiveType::{self, Double, Long, String as Text};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::{DOORS, Spec, World, assert_deletes};

const LONG: PrimitiveType = Long;
const TEXT: PrimitiveType = Text;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn doubles(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true)
        .set_max_row_group_row_count(Some(2))
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn a1_dynamic_filter_on_same_named_column() {
    let ta: Spec<'_> = ("ta", &[("id", TEXT), ("ty", TEXT)], "('a1', 'x1')");
    let tb: Spec<'_> = ("tb", &[("id", TEXT)], "('x1')");
    let target: Spec<'_> = ("target", &[("n", LONG), ("id", TEXT)], "(1, 'x1'), (2, 'y')");
    let join = "(ta a LEFT JOIN tb b ON a.ty = b.id) ON s.id = b.id WHERE a.id IS NOT NULL";
    let condition = format!("id IN (SELECT s.id FROM tb s JOIN {join})");
    assert_deletes(&[target, ta, tb], &condition, &[1]).await;
    // The same from plain Parquet files.
    for door in DOORS {
        let world = World::new(door, &[("target", &[("id", TEXT), ("other", TEXT)], "")]).await;
        world.parquet("ta", &batch(vec![("id", texts(&["a1"])), ("ty", texts(&["x1"]))]), properties()).await;
        world.parquet("tb", &batch(vec![("id", texts(&["x1"]))]), properties()).await;
        let sql = "INSERT INTO target SELECT s.id, a.id FROM mem.s.tb s JOIN \
                   (mem.s.ta a LEFT JOIN mem.s.tb b ON a.ty = b.id) ON s.id = b.id WHERE a.id IS NOT NULL";
        assert_eq!(world.rows(sql).await, ["1"], "{door:?}");
        assert_eq!(world.rows("SELECT * FROM target").await, ["x1|a1"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_equal_bounds_beside_nan_are_no_constant() {
    for door in DOORS {
        let world = World::new(door, &[("t", &[("d", Double)], "(7.0)")]).await;
        world.parquet("p", &batch(vec![("d", doubles(&[1.0, f64::NAN]))]), properties()).await;
        assert_eq!(world.rows("INSERT INTO t SELECT d FROM mem.s.p").await, ["2"], "{door:?}");
        assert_eq!(world.rows("SELECT d FROM t").await, ["1.0", "7.0", "NaN"], "{door:?}");
        assert_eq!(world.rows("DELETE FROM t WHERE d = 1.0").await, ["1"], "{door:?}");
        assert_eq!(world.rows("SELECT d FROM t").await, ["7.0", "NaN"], "{door:?}");
        let sql = "DELETE FROM t WHERE d IN (SELECT d FROM mem.s.p WHERE isnan(d))";
        assert_eq!(world.rows(sql).await, ["1"], "{door:?}");
        assert_eq!(world.rows("SELECT d FROM t").await, ["7.0"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_nan_rows_are_not_pruned() {
    let values = [1.5, f64::NAN, 2.0, 3.0];
    for door in DOORS {
        for (condition, count) in [
            ("d > 100", 1),
            ("d <> 1", 4),
            ("d = 'NaN'::double", 1),
            ("NOT (d <= 100)", 1),
            ("d NOT IN (3.0, 1.5)", 2),
            ("d IN ('NaN'::double, 7, 8, 9)", 1),
            ("d NOT BETWEEN 1 AND 10", 1),
        ] {
            for pushdown in [false, true] {
                let world = World::with(door, &[("t", &[("d", Double)], "")], |o| {
                    o.execution.parquet.pushdown_filters = pushdown;
                })
                .await;
                world.parquet("p", &batch(vec![("d", doubles(&values))]), properties()).await;
                let insert = format!("INSERT INTO t SELECT d FROM mem.s.p WHERE {condition}");
                assert_eq!(world.rows(&insert).await, [count.to_string()], "{door:?} {condition}");
                assert_eq!(world.rows("INSERT INTO t SELECT d FROM mem.s.p").await, ["4"], "{door:?}");
                let delete = format!("DELETE FROM t WHERE {condition}");
                assert_eq!(world.rows(&delete).await, [(2 * count).to_string()], "{door:?} {condition}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a4_joins_on_doubles_find_nan_and_both_zeros() {
    for door in DOORS {
        for pushdown in [false, true] {
            let rows = "(1, -0.0), (2, 'NaN'::double), (3, 5.0), (4, 0.0), (5, NULL)";
            let t: Spec<'_> = ("t", &[("id", LONG), ("d", Double)], rows);
            let world = World::with(door, &[t, ("copy", &[("id", LONG), ("k", Double)], "")], |o| {
                o.execution.parquet.pushdown_filters = pushdown;
            })
            .await;
            world.parquet("build", &batch(vec![("k", doubles(&[0.0, f64::NAN]))]), properties()).await;
            let probe = vec![("id", longs(&[1, 2, 3, 4])), ("d", doubles(&[-0.0, f64::NAN, 5.0, 2.0]))];
            world.parquet("probe", &batch(probe), properties()).await;
            let sql = "INSERT INTO copy SELECT id, k FROM mem.s.build JOIN mem.s.probe ON k = d";
            assert_eq!(world.rows(sql).await, ["2"], "{door:?}");
            assert_eq!(world.rows("SELECT id FROM copy").await, ["1", "2"], "{door:?}");
            let sql = "DELETE FROM t WHERE d IN (SELECT k FROM mem.s.build)";
            assert_eq!(world.rows(sql).await, ["3"], "{door:?}");
            assert_eq!(world.rows("SELECT id FROM t").await, ["3", "5"], "{door:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b0_filter_above_a_join_of_same_named_columns() {
    for door in DOORS {
        let kv: &[(&str, PrimitiveType)] = &[("k", LONG), ("v", LONG)];
        let tables: [Spec<'_>; 4] =
            [("t", kv, "(0, 1), (5, 1)"), ("a", kv, "(0, 6)"), ("b", kv, "(0, 0)"), ("copy", kv, "")];
        let world = World::with(door, &tables, |o| o.execution.parquet.pushdown_filters = true).await;
        world.parquet("a", &batch(vec![("k", longs(&[0])), ("v", longs(&[6]))]), properties()).await;
        world.parquet("b", &batch(vec![("k", longs(&[0])), ("v", longs(&[0]))]), properties()).await;
        for schema in ["lake.db", "mem.s"] {
            let join = format!("{schema}.a RIGHT JOIN {schema}.b ON a.k = b.v WHERE a.v IS NULL OR a.v < 5");
            let insert = format!("INSERT INTO copy SELECT b.k, b.v FROM {join}");
            assert_eq!(world.rows(&insert).await, ["0"], "{door:?} {schema}");
            let delete = format!("DELETE FROM t WHERE k IN (SELECT b.k FROM {join})");
            assert_eq!(world.rows(&delete).await, ["0"], "{door:?} {schema}");
        }
    }
}

/// Statements under settings that choose the joins which lose rows.
async fn with_settings(door: super::Door, tables: &[Spec<'_>]) -> World {
    World::with(door, tables, |o| {
        o.optimizer.prefer_hash_join = false;
        o.optimizer.enable_piecewise_merge_join = true;
        o.optimizer.repartition_joins = true;
        o.execution.target_partitions = 4;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn b1_sort_merge_joins_with_a_residual_filter() {
    for door in DOORS {
        let tables: [Spec<'_>; 3] = [
            ("t", &[("x", LONG), ("y", LONG)], "(1, 1), (2, 2)"),
            ("t1", &[("a", LONG), ("b", LONG), ("c", LONG)], "(100, 1, 0)"),
            ("t2", &[("a", LONG), ("b", LONG)], "(10, 1)"),
        ];
        let world = with_settings(door, &tables).await;
        let join = "t1 JOIN t2 ON t1.b = t2.b AND t1.a > t2.a";
        let insert = format!("INSERT INTO t SELECT t1.b, t2.b FROM {join}");
        assert_eq!(world.rows(&insert).await, ["1"], "{door:?}");
        let delete = format!("DELETE FROM t WHERE x IN (SELECT t1.b FROM {join})");
        assert_eq!(world.rows(&delete).await, ["2"], "{door:?}");
        assert_eq!(world.rows("SELECT x FROM t").await, ["2"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b2_full_join_with_a_condition_that_folds_to_null() {
    for door in DOORS {
        let one: &[(&str, PrimitiveType)] = &[("k", LONG)];
        let tables: [Spec<'_>; 3] =
            [("t", one, "(1), (2)"), ("s", one, "(1), (3)"), ("copy", &[("x", LONG), ("y", LONG)], "")];
        let world = with_settings(door, &tables).await;
        let sql = "INSERT INTO copy SELECT t.k, s.k FROM t FULL JOIN s ON t.k = s.k AND CAST(NULL AS BOOLEAN)";
        assert_eq!(world.rows(sql).await, ["4"], "{door:?}");
        assert_eq!(world.rows("SELECT x, y FROM copy").await, ["1|", "2|", "|1", "|3"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b3_left_join_on_an_inequality() {
    for door in DOORS {
        let one: &[(&str, PrimitiveType)] = &[("k", LONG)];
        let tables: [Spec<'_>; 3] = [
            ("t", one, "(1), (6), (7), (NULL)"),
            ("s", one, "(5), (5), (9), (NULL)"),
            ("copy", &[("x", LONG), ("y", LONG)], ""),
        ];
        let world = with_settings(door, &tables).await;
        let sql = "INSERT INTO copy SELECT t.k, s.k FROM t LEFT JOIN s ON t.k > s.k AND s.k = 5";
        assert_eq!(world.rows(sql).await, ["6"], "{door:?}");
        assert_eq!(world.rows("SELECT x, y FROM copy").await, ["1|", "6|5", "6|5", "7|5", "7|5", "|"], "{door:?}");
    }
}
