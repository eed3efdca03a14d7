//! The scan: statistics, what it reads, what it prints, and random filters against a plain copy of the rows.

use std::sync::Arc;

use calve::provider::{FILE_COLUMN, IcebergScan};
use calve::spec::{FormatVersion, PartitionField, PartitionSpec, PrimitiveType, Transform};
use calve::testing::StoreOp;
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::handmade::{Lake, batches, column, explain, query, rows, settings};

const LONG: PrimitiveType = PrimitiveType::Long;

fn ids(range: std::ops::Range<i64>) -> RecordBatch {
    rows(&[("id", LONG, Arc::new(Int64Array::from_iter_values(range)))])
}

async fn three_files() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "id", LONG)]).await;
    lake.append("t", &[ids(0..100), ids(100..200), ids(200..300)]).await;
    lake
}

fn statistics(plan: &Arc<dyn ExecutionPlan>) -> Arc<Statistics> {
    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap()
}

async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

fn with_scan<T>(plan: &Arc<dyn ExecutionPlan>, f: impl FnOnce(IcebergScan<'_>) -> T) -> T {
    let mut found = None;
    let mut f = Some(f);
    plan.apply(|node| {
        Ok(match IcebergScan::of(node.as_ref()) {
            Some(scan) => {
                found = f.take().map(|f| f(scan));
                TreeNodeRecursion::Stop
            }
            None => TreeNodeRecursion::Continue,
        })
    })
    .unwrap();
    found.expect("a scan")
}

#[tokio::test]
async fn files_are_chosen_by_bounds_and_shown() {
    let lake = three_files().await;
    let ctx = lake.session(|_| {});
    let text = explain(&ctx, "SELECT * FROM t WHERE id >= 150 AND id < 160").await;
    for part in ["file_type=iceberg", "table=db.t", "files=1 of 3", "pruned=2", "delete_files=0 of 0"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let snapshot = lake.table("t").await.metadata.current_snapshot_id.unwrap();
    assert!(text.contains(&format!("snapshot={snapshot}")), "{text}");
    assert_eq!(query(&ctx, "SELECT count(*) FROM t WHERE id >= 150 AND id < 160").await, ["10"]);
    assert!(explain(&ctx, "SELECT * FROM t WHERE id < 0").await.contains("files=0 of 3"));
    assert_eq!(query(&ctx, "SELECT * FROM t WHERE id < 0").await, Vec::<String>::new());
}

#[tokio::test]
async fn tables_without_files_or_snapshots_are_empty() {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "id", LONG)]).await;
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        assert_eq!(query(&ctx, "SELECT * FROM t").await, Vec::<String>::new());
        assert_eq!(query(&ctx, "SELECT count(*), max(id) FROM t").await, ["0|"]);
        assert_eq!(query(&ctx, "SELECT count(*) FROM t$rows a JOIN t b ON a.id = b.id").await, ["0"]);
    }
}

#[tokio::test]
async fn counts_are_exact_only_without_deletes() {
    let lake = three_files().await;
    let ctx = lake.session(|_| {});
    let scan = plan(&ctx, "SELECT * FROM t").await;
    let before = statistics(&scan);
    assert_eq!(before.num_rows, Precision::Exact(300));
    assert_eq!(before.column_statistics[0].min_value, Precision::Inexact(0i64.into()));
    assert_eq!(before.column_statistics[0].max_value, Precision::Inexact(299i64.into()));
    assert!(!explain(&ctx, "SELECT count(*) FROM t").await.contains("DataSourceExec"));

    lake.delete("t", |file| if file.record_count == 100 { vec![0, 5] } else { vec![] }).await;
    let scan = plan(&ctx, "SELECT * FROM t").await;
    assert_eq!(statistics(&scan).num_rows, Precision::Inexact(294));
    assert!(explain(&ctx, "SELECT count(*) FROM t").await.contains("DataSourceExec"));
    assert_eq!(query(&ctx, "SELECT count(*) FROM t").await, ["294"]);
    assert_eq!(query(&ctx, "SELECT min(id) FROM t").await, ["1"]);
}

#[tokio::test]
async fn columns_of_nulls_or_of_one_value_are_read() {
    let lake = Lake::new().await;
    lake.create("t", vec![column(1, "id", LONG), column(2, "c", LONG)]).await;
    let nulls = Arc::new(Int64Array::from(vec![None, None, Some(4)]));
    lake.append("t", &[rows(&[("id", LONG, Arc::new(Int64Array::from(vec![1, 1, 1]))), ("c", LONG, nulls)])]).await;
    lake.delete("t", |_| vec![2]).await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT id, c FROM t").await, ["1|", "1|"]);
    assert_eq!(query(&ctx, "SELECT count(c), count(*) FROM t").await, ["0|2"]);
}

#[tokio::test]
async fn known_sizes_are_not_asked_for_and_footers_and_deletes_are_read_once() {
    let lake = three_files().await;
    lake.delete("t", |_| vec![1]).await;
    let data = |op: StoreOp, path: &str| op != StoreOp::Put && path.ends_with(".parquet");
    let vectors = |op: StoreOp, path: &str| op != StoreOp::Put && path.ends_with(".puffin");
    let ctx = lake.session(|o| {
        o.execution.target_partitions = 4;
        o.optimizer.repartition_file_min_size = 1;
    });
    // Another cache than the writer's.
    lake.io.cache().footers.clear();
    lake.store.reset();
    assert_eq!(query(&ctx, "SELECT count(id) FROM t").await, ["297"]);
    assert_eq!(lake.store.count_where(|op, path| op == StoreOp::Head && path.ends_with(".parquet")), 0);
    // A footer and a column chunk each; a vector each.
    assert_eq!(lake.store.count_where(data), 6, "{:?}", lake.store.counts());
    assert_eq!(lake.store.count_where(vectors), 3, "{:?}", lake.store.counts());
    lake.store.reset();
    assert_eq!(query(&ctx, "SELECT count(id) FROM t").await, ["297"]);
    assert_eq!(lake.store.count_where(data), 3, "{:?}", lake.store.counts());
}

#[tokio::test]
async fn a_whole_file_deleted_is_not_opened() {
    let lake = three_files().await;
    lake.delete("t", |file| if file.record_count == 100 { (0..100).collect() } else { vec![] }).await;
    let ctx = lake.session(|_| {});
    lake.io.cache().footers.clear();
    lake.store.reset();
    assert_eq!(query(&ctx, "SELECT * FROM t").await, Vec::<String>::new());
    assert_eq!(lake.store.count_where(|_, path| path.ends_with(".parquet")), 0);
}

/// Runs a query and gives the metrics of its scan of a table with so many files: total, pruned and read, of data files and
/// of delete files.
async fn file_metrics(ctx: &SessionContext, sql: &str, data_files: usize) -> [[usize; 3]; 2] {
    let plan = plan(ctx, sql).await;
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let mut found = None;
    plan.apply(|node| {
        if IcebergScan::of(node.as_ref()).is_some() {
            let metrics = node.metrics().unwrap();
            let value = |of: &str, what: &str| metrics.sum_by_name(&format!("{of}_files_{what}")).unwrap().as_usize();
            let all = ["data", "delete"].map(|of| ["total", "pruned", "read"].map(|what| value(of, what)));
            if all[0][0] == data_files {
                found = Some(all);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found.expect("the scan")
}

#[tokio::test]
async fn explain_analyze_counts_data_files_and_delete_files() {
    let lake = three_files().await;
    lake.delete("t", |_| vec![1, 2]).await;
    for partitions in [1, 4] {
        let ctx = lake.session(|o| {
            o.execution.target_partitions = partitions;
            o.optimizer.repartition_file_min_size = 1;
        });
        assert_eq!(file_metrics(&ctx, "SELECT * FROM t", 3).await, [[3, 0, 3], [3, 0, 3]]);
        assert_eq!(file_metrics(&ctx, "SELECT * FROM t WHERE id >= 150", 3).await, [[3, 1, 2], [3, 1, 2]]);
        assert_eq!(file_metrics(&ctx, "SELECT * FROM t WHERE id < 0", 3).await, [[3, 3, 0], [3, 3, 0]]);
    }
    let text = explain(&lake.session(|_| {}), "ANALYZE SELECT * FROM t WHERE id >= 150").await;
    for part in ["data_files_total=3", "data_files_pruned=1", "data_files_read=2", "delete_files_read=2"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// Files that a join's or a TopK's filter leaves out cost neither the file nor its deletes, and no row is lost with them.
#[tokio::test]
async fn filters_of_joins_and_top_k_leave_out_files_and_their_deletes() {
    let lake = three_files().await;
    lake.delete("t", |_| vec![0, 50]).await;
    lake.create("keys", vec![column(1, "k", LONG)]).await;
    lake.append("keys", &[rows(&[("k", LONG, Arc::new(Int64Array::from(vec![250, 251])))])]).await;
    let ctx = lake.session(|o| o.execution.target_partitions = 1);
    let join = "SELECT id FROM keys JOIN t ON k = id";
    assert_eq!(query(&ctx, join).await, ["251"]);
    assert_eq!(file_metrics(&ctx, join, 3).await, [[3, 2, 1], [3, 0, 1]]);
    let top = "SELECT id FROM t ORDER BY id LIMIT 2";
    assert_eq!(query(&ctx, top).await, ["1", "2"]);
    assert_eq!(file_metrics(&ctx, top, 3).await, [[3, 2, 1], [3, 0, 1]]);
}

#[tokio::test]
async fn scans_can_be_narrowed_to_some_files() {
    let lake = three_files().await;
    let ctx = lake.session(|o| o.execution.target_partitions = 2);
    let provider = lake.provider("t").await.as_target(uuid::Uuid::from_u128(7)).unwrap();
    let frame = ctx.read_table(Arc::new(provider)).unwrap();
    let all = frame.create_physical_plan().await.unwrap();
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    assert_eq!(all.schema().field_with_name(FILE_COLUMN).unwrap().data_type(), &dictionary);
    let (tasks, narrowed, foreign) = with_scan(&all, |scan| {
        assert_eq!(scan.target(), Some(uuid::Uuid::from_u128(7)));
        let tasks = scan.tasks().to_vec();
        let narrowed = scan.with_tasks(&tasks[1..2]).unwrap();
        let mut other = calve::scan::FileScanTask::clone(&tasks[0]);
        let mut file = calve::spec::DataFile::clone(&other.data_file);
        file.file_path = "elsewhere".into();
        other.data_file = Arc::new(file);
        (tasks, narrowed, scan.with_tasks(&[Arc::new(other)]).unwrap_err().to_string())
    });
    assert_eq!(tasks.len(), 3);
    assert!(foreign.contains("elsewhere"), "{foreign}");
    assert_eq!(
        narrowed.properties().output_partitioning().partition_count(),
        all.properties().output_partitioning().partition_count()
    );
    assert_eq!(statistics(&narrowed).num_rows, Precision::Exact(100));
    let got = collect(narrowed, ctx.task_ctx()).await.unwrap();
    assert_eq!(got.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
}

#[tokio::test]
async fn older_snapshots_keep_their_rows() {
    let lake = three_files().await;
    let before = lake.table("t").await.metadata.current_snapshot_id.unwrap();
    lake.append("t", &[ids(300..310)]).await;
    let provider = lake.provider("t").await;
    let ctx = SessionContext::new();
    let count = |provider| {
        let frame = ctx.read_table(Arc::new(provider)).unwrap();
        async move { frame.count().await.unwrap() }
    };
    assert_eq!(count(provider.clone()).await, 310);
    assert_eq!(count(provider.with_snapshot(before).unwrap()).await, 300);
    assert!(provider.with_snapshot(1).unwrap_err().to_string().contains("no snapshot 1"));
}

/// The rows of a table of many types, with nulls, NaN, both zeros and infinities.
fn mixed(seed: u64, n: usize) -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(seed);
    let null = |rng: &mut fastrand::Rng| rng.u8(0..6) == 0;
    let doubles = [0.0, -0.0, 1.5, -3.25, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 7.0];
    let mut i = Int32Builder::new();
    let mut l = Int64Builder::new();
    let mut d = Float64Builder::new();
    let mut s = StringBuilder::new();
    let mut b = BooleanBuilder::new();
    let mut da = Date32Builder::new();
    let mut m = Decimal128Builder::new().with_precision_and_scale(9, 2).unwrap();
    for _ in 0..n {
        i.append_option((!null(&mut rng)).then(|| rng.i32(-5..15)));
        l.append_option((!null(&mut rng)).then(|| rng.i64(0..1000)));
        d.append_option((!null(&mut rng)).then(|| doubles[rng.usize(..doubles.len())]));
        s.append_option((!null(&mut rng)).then(|| "abcdefgh"[..rng.usize(0..8)].to_owned()));
        b.append_option((!null(&mut rng)).then(|| rng.bool()));
        da.append_option((!null(&mut rng)).then(|| rng.i32(-400..20_000)));
        m.append_option((!null(&mut rng)).then(|| rng.i128(-1000..1000)));
    }
    rows(&[
        ("i", PrimitiveType::Int, Arc::new(i.finish())),
        ("l", LONG, Arc::new(l.finish())),
        ("d", PrimitiveType::Double, Arc::new(d.finish())),
        ("s", PrimitiveType::String, Arc::new(s.finish())),
        ("b", PrimitiveType::Boolean, Arc::new(b.finish())),
        ("da", PrimitiveType::Date, Arc::new(da.finish())),
        ("m", PrimitiveType::Decimal { precision: 9, scale: 2 }, Arc::new(m.finish())),
    ])
}

const LEAVES: &[&str] = &[
    "i = 3",
    "i <> 3",
    "i > 7",
    "i IS NULL",
    "i IN (1, 2, 3)",
    "i NOT IN (1, 2, 3)",
    "l BETWEEN 100 AND 300",
    "l >= 900",
    "d > 1.0",
    "d = 'NaN'::double",
    "d <= 0.0",
    "d <> 1.5",
    "d IS NOT NULL",
    "isnan(d)",
    "s = 'abc'",
    "s LIKE 'abc%'",
    "s NOT LIKE 'ab%'",
    "s > 'abcd'",
    "s = ''",
    "b",
    "b IS NOT TRUE",
    "da < DATE '1970-01-01'",
    "da >= DATE '2010-05-05'",
    "m = 1.5",
    "m > 5",
    "i = l",
    "i + l > 500",
    "CAST(i AS DOUBLE) > d",
];

fn condition(rng: &mut fastrand::Rng, depth: usize) -> String {
    if depth == 0 {
        return LEAVES[rng.usize(..LEAVES.len())].to_owned();
    }
    let a = condition(rng, depth - 1);
    match rng.u8(0..6) {
        0 => format!("NOT ({a})"),
        1 | 2 => format!("({a}) AND ({})", condition(rng, depth - 1)),
        3 => format!("({a}) IS NOT TRUE"),
        _ => format!("({a}) OR ({})", condition(rng, depth - 1)),
    }
}

#[tokio::test]
async fn random_filters_give_the_rows_of_a_plain_copy() {
    for (version, partitioned) in [(FormatVersion::V2, true), (FormatVersion::V3, false), (FormatVersion::V3, true)] {
        let lake = Lake::new().await;
        let batch = mixed(11, 400);
        let columns = (1..)
            .zip(["i", "l", "d", "s", "b", "da", "m"])
            .zip([
                PrimitiveType::Int,
                LONG,
                PrimitiveType::Double,
                PrimitiveType::String,
                PrimitiveType::Boolean,
                PrimitiveType::Date,
                PrimitiveType::Decimal { precision: 9, scale: 2 },
            ])
            .map(|((id, name), ty)| column(id, name, ty));
        let field = |source_id, name: &str, transform| PartitionField {
            source_id,
            field_id: 0,
            name: name.to_owned(),
            transform,
        };
        let spec = match partitioned {
            true => PartitionSpec {
                spec_id: 0,
                fields: vec![field(5, "b", Transform::Identity), field(4, "s_trunc", Transform::Truncate(3))],
            },
            false => PartitionSpec::unpartitioned(),
        };
        lake.create_with("t", version, columns.collect(), spec, &[]).await;
        lake.append("t", &[batch.slice(0, 150), batch.slice(150, 150), batch.slice(300, 100)]).await;
        lake.delete("t", |file| (0..file.record_count).filter(|p| p % 5 == 1).collect()).await;

        let plain = lake.session(|_| {});
        let copy = batches(&plain, "SELECT * FROM t").await;
        let memory = SessionContext::new();
        memory.register_table("t", Arc::new(MemTable::try_new(copy[0].schema(), vec![copy]).unwrap())).unwrap();

        let mut rng = fastrand::Rng::with_seed(5);
        for round in 0..60 {
            let filter = condition(&mut rng, round % 4);
            let sql = format!("SELECT * FROM t WHERE {filter}");
            let wanted = query(&memory, &sql).await;
            let setting = settings().nth(round % 16).unwrap();
            let ctx = lake.session(|o| setting.apply(o));
            let what = format!("{version:?} {partitioned} {setting:?} {filter}");
            assert_eq!(query(&ctx, &sql).await, wanted, "{what}");

            let count = query(&ctx, &format!("SELECT count(*) FROM t WHERE {filter}")).await;
            assert_eq!(count, [wanted.len().to_string()], "{what}");
            let some = query(&ctx, &format!("{sql} LIMIT 7")).await;
            assert_eq!(some.len(), wanted.len().min(7), "{what}");
            assert!(some.iter().all(|row| wanted.contains(row)), "{what}");
            let by = ["i", "l", "d", "s", "da", "m"][round % 6];
            let order = ["ASC NULLS LAST", "DESC NULLS LAST", "DESC NULLS FIRST"][round / 6 % 3];
            let top = format!("SELECT {by} FROM t WHERE {filter} ORDER BY {by} {order} LIMIT 5");
            // Both zeros are equal, so which of them come first is open.
            let plain = |rows: Vec<String>| rows.into_iter().map(|r| r.replace("-0.0", "0.0")).collect::<Vec<_>>();
            assert_eq!(plain(query(&ctx, &top).await), plain(query(&memory, &top).await), "{what} {top}");
            let join = format!(
                "SELECT a.i, b.l FROM t a JOIN (SELECT i + 1 AS j, l, d FROM t WHERE {filter}) b \
                 ON a.i = b.j AND a.d >= b.d"
            );
            assert_eq!(query(&ctx, &join).await, query(&memory, &join).await, "{what} {join}");
        }
    }
}
