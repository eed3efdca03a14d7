//! Wrong answers of DataFusion 55.2 that a scan could give or prevent, by their names in the design notes.

use std::sync::Arc;

use calve::spec::PrimitiveType;
use datafusion::arrow::array::{Float32Array, Float64Array, Int64Array, StringArray};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::prelude::SessionContext;

use crate::handmade::{Lake, Setting, column, explain, query, rows, settings};

fn text(values: &[&str]) -> Arc<StringArray> {
    Arc::new(StringArray::from(values.to_vec()))
}

/// With and without the guard: a scan that was never looked at takes no filter, one that was takes only safe ones.
fn sessions(lake: &Lake) -> impl Iterator<Item = (String, SessionContext)> + '_ {
    settings().flat_map(move |setting: Setting| {
        [true, false].map(|guard| {
            let ctx = lake.session_with(guard, |o| setting.apply(o));
            (format!("{setting:?} guard: {guard}"), ctx)
        })
    })
}

#[tokio::test]
async fn a1_dynamic_filters_stay_with_their_table() {
    let lake = Lake::new().await;
    let string = PrimitiveType::String;
    lake.create("ta", vec![column(1, "id", string.clone()), column(2, "ty", string.clone())]).await;
    lake.create("tb", vec![column(1, "id", string.clone())]).await;
    let a = rows(&[("id", string.clone(), text(&["a1"])), ("ty", string.clone(), text(&["x1"]))]);
    lake.append("ta", &[a]).await;
    lake.append("tb", &[rows(&[("id", string, text(&["x1"]))])]).await;
    for (setting, ctx) in sessions(&lake) {
        let got = query(
            &ctx,
            "SELECT s.id, a.id, b.id FROM tb s JOIN (ta a LEFT JOIN tb b ON a.ty = b.id) ON s.id = b.id \
             WHERE a.id IS NOT NULL",
        )
        .await;
        assert_eq!(got, ["x1|a1|x1"], "{setting}");
    }
}

#[tokio::test]
async fn b0_filters_above_a_join_stay_with_their_table() {
    let lake = Lake::new().await;
    let long = PrimitiveType::Long;
    for (name, k, v) in [("a", 0, 6), ("b", 0, 0)] {
        lake.create(name, vec![column(1, "k", long.clone()), column(2, "v", long.clone())]).await;
        let one = |n: i64| Arc::new(Int64Array::from(vec![n]));
        lake.append(name, &[rows(&[("k", long.clone(), one(k)), ("v", long.clone(), one(v))])]).await;
    }
    for (setting, ctx) in sessions(&lake) {
        let sql = "SELECT b.v FROM a RIGHT JOIN b ON a.k = b.v WHERE a.v IS NULL OR a.v < 5";
        assert_eq!(query(&ctx, sql).await, Vec::<String>::new(), "{setting}");
    }
}

#[tokio::test]
async fn scans_take_dynamic_filters_where_names_differ() {
    let lake = Lake::new().await;
    let long = PrimitiveType::Long;
    for (name, column_name, n) in [("small", "x", 2), ("large", "y", 1000)] {
        lake.create(name, vec![column(1, column_name, long.clone())]).await;
        let values = Arc::new(Int64Array::from_iter_values(0..n));
        lake.append(name, &[rows(&[(column_name, long.clone(), values)])]).await;
    }
    let sql = "SELECT y FROM small JOIN large ON x = y";
    let guarded = lake.session(|_| {});
    assert!(explain(&guarded, sql).await.contains("DynamicFilter"));
    assert_eq!(query(&guarded, sql).await, ["0", "1"]);
    let unguarded = lake.session_with(false, |_| {});
    assert!(!explain(&unguarded, sql).await.contains("DynamicFilter"));
    assert_eq!(query(&unguarded, sql).await, ["0", "1"]);
    let same_name = "SELECT l.y FROM large l JOIN large r ON l.y = r.y WHERE r.y < 2";
    assert!(!explain(&guarded, same_name).await.contains("DynamicFilter"));
}

/// Doubles and floats as our own writer stores them, and as others do with statistics and bloom filters.
async fn floats(values: &[f64]) -> Lake {
    let lake = Lake::new().await;
    let batch = rows(&[
        ("d", PrimitiveType::Double, Arc::new(Float64Array::from(values.to_vec()))),
        ("f", PrimitiveType::Float, Arc::new(values.iter().map(|v| Some(*v as f32)).collect::<Float32Array>())),
    ]);
    let columns = || vec![column(1, "d", PrimitiveType::Double), column(2, "f", PrimitiveType::Float)];
    lake.create("own", columns()).await;
    lake.append("own", std::slice::from_ref(&batch)).await;
    lake.create("other", columns()).await;
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true)
        .build();
    lake.append_parquet("other", &batch, properties).await;
    lake
}

#[tokio::test]
async fn a2_equal_bounds_beside_nan_are_no_constant() {
    let lake = floats(&[1.0, f64::NAN]).await;
    for (setting, ctx) in sessions(&lake) {
        for table in ["own", "other"] {
            let q = |sql: String| {
                let ctx = ctx.clone();
                async move { query(&ctx, &sql).await }
            };
            assert_eq!(q(format!("SELECT d, f FROM {table}")).await, ["1.0|1.0", "NaN|NaN"], "{setting}");
            assert_eq!(q(format!("SELECT d FROM {table} WHERE d = 1.0")).await, ["1.0"], "{setting}");
            assert_eq!(q(format!("SELECT f FROM {table} WHERE isnan(f)")).await, ["NaN"], "{setting}");
            assert_eq!(q(format!("SELECT max(d), max(f) FROM {table}")).await, ["NaN|NaN"], "{setting}");
        }
    }
}

#[tokio::test]
async fn a3_nan_rows_are_not_pruned() {
    let lake = floats(&[1.5, f64::NAN, 2.0]).await;
    let nan = "'NaN'::double";
    let cases = [
        ("d > 100".to_owned(), 1),
        ("d <> 1".to_owned(), 3),
        ("f <> 1.5".to_owned(), 2),
        (format!("d = {nan}"), 1),
        ("NOT (d <= 100)".to_owned(), 1),
        ("NOT (f <= 100)".to_owned(), 1),
        ("d NOT IN (3.0, 1.5)".to_owned(), 2),
        (format!("d IN (7.0, {nan}, 8.0, 9.0, 10.0)"), 1),
        ("d NOT BETWEEN 1.0 AND 3.0".to_owned(), 1),
    ];
    for (setting, ctx) in sessions(&lake) {
        for table in ["own", "other"] {
            for (filter, wanted) in &cases {
                let got = query(&ctx, &format!("SELECT d FROM {table} WHERE {filter}")).await;
                assert_eq!(got.len(), *wanted, "{table} {filter} {setting}: {got:?}");
            }
        }
    }
}

#[tokio::test]
async fn a4_joins_on_doubles_find_nan_and_both_zeros() {
    let lake = floats(&[f64::NAN, -0.0, 5.0]).await;
    lake.create("s", vec![column(1, "k", PrimitiveType::Double)]).await;
    let keys = Arc::new(Float64Array::from(vec![f64::NAN, 0.0]));
    lake.append("s", &[rows(&[("k", PrimitiveType::Double, keys)])]).await;
    for (setting, ctx) in sessions(&lake) {
        for table in ["own", "other"] {
            let got = query(&ctx, &format!("SELECT k, d FROM s JOIN {table} ON k = d")).await;
            assert_eq!(got, ["0.0|-0.0", "NaN|NaN"], "{table} {setting}");
        }
    }
}

#[tokio::test]
async fn a9_negative_zero_equals_zero_in_pruning() {
    let lake = floats(&[-0.0, 3.0]).await;
    for (setting, ctx) in sessions(&lake) {
        for table in ["own", "other"] {
            for filter in ["d = 0.0", "f = 0.0", "d >= 0.0 AND d < 1.0", "d <= -0.0", "NOT d > 0.0"] {
                let got = query(&ctx, &format!("SELECT d FROM {table} WHERE {filter}")).await;
                assert_eq!(got, ["-0.0"], "{table} {filter} {setting}");
            }
        }
    }
}

#[tokio::test]
async fn filters_on_floats_do_not_keep_others_from_pruning() {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "i", PrimitiveType::Long), column(2, "d", PrimitiveType::Double)]).await;
    let batch = rows(&[
        ("i", PrimitiveType::Long, Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("d", PrimitiveType::Double, Arc::new(Float64Array::from(vec![1.0, f64::NAN, 3.0]))),
    ]);
    lake.append("t", &[batch]).await;
    for pushdown in [false, true] {
        let ctx = lake.session(|o| o.execution.parquet.pushdown_filters = pushdown);
        let sql = "SELECT i FROM t WHERE i > 1 AND d > 1.5";
        let plan = explain(&ctx, sql).await;
        let scan = plan.lines().find(|l| l.contains("DataSourceExec")).expect("a scan");
        assert!(scan.contains("predicate=i@0 > 1, ") && !scan.contains("d@1"), "{plan}");
        let above = if pushdown { "FilterExec: d@1 > 1.5" } else { "FilterExec: i@0 > 1 AND d@1 > 1.5" };
        assert!(plan.contains(above), "{plan}");
        assert_eq!(query(&ctx, sql).await, ["2", "3"]);
    }
}
