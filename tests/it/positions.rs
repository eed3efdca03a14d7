//! Row positions are absolute whatever was split, pruned, selected or filtered (bug-catalogue C2).

use std::sync::Arc;

use calve::spec::PrimitiveType;
use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::handmade::{Lake, batches, column, rows, settings};

const ROWS: i64 = 3000;

/// `id` is twice the position, `s` its text.
fn data() -> RecordBatch {
    let ids: Vec<i64> = (0..ROWS).map(|i| 2 * i).collect();
    let texts: Vec<String> = ids.iter().map(|i| format!("row {i:06}")).collect();
    rows(&[
        ("id", PrimitiveType::Long, Arc::new(Int64Array::from(ids))),
        ("s", PrimitiveType::String, Arc::new(StringArray::from(texts))),
    ])
}

async fn lake(row_group: usize) -> Lake {
    let lake = Lake::new().await;
    let columns = vec![column(1, "id", PrimitiveType::Long), column(2, "s", PrimitiveType::String)];
    lake.create("t", columns).await;
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group))
        .set_data_page_row_count_limit(50)
        .set_write_batch_size(50)
        .set_statistics_enabled(EnabledStatistics::Page)
        .build();
    lake.append_parquet("t", &data(), properties.clone()).await;
    lake
}

fn deleted(position: i64) -> bool {
    position % 7 == 3 || (1000..1600).contains(&position)
}

/// Queries with a test of which positions they give.
type Case = (&'static str, fn(i64) -> bool);

const CASES: &[Case] = &[
    ("", |_| true),
    ("WHERE id >= 2500 AND id < 2620", |p| (1250..1310).contains(&p)),
    ("WHERE id = 4002", |p| p == 2001),
    ("WHERE id IN (0, 2, 3000, 5998, 7)", |p| [0, 1, 1500, 2999].contains(&p)),
    ("WHERE s = 'row 000800' OR id > 5900", |p| p == 400 || p > 2950),
    ("WHERE _pos < 100", |p| p < 100),
    ("WHERE _pos >= 990 AND id < 2000", |p| (990..1000).contains(&p)),
    ("WHERE _file LIKE '%.parquet' AND id < 10", |p| p < 5),
    ("WHERE _file = 'elsewhere'", |_| false),
    ("WHERE id % 10 = 4", |p| p % 5 == 2),
];

async fn check(lake: &Lake, is_deleted: fn(i64) -> bool) {
    for setting in settings() {
        let ctx = lake.session(|o| setting.apply(o));
        for (filter, matches) in CASES {
            let sql = format!("SELECT id, _pos, s FROM t$rows {filter}");
            let mut got: Vec<i64> = Vec::new();
            for batch in batches(&ctx, &sql).await {
                let (ids, positions) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1));
                for (id, position) in ids.values().iter().zip(positions.as_primitive::<Int64Type>().values()) {
                    assert_eq!(*id, 2 * position, "{setting:?} {sql}");
                    got.push(*position);
                }
            }
            got.sort_unstable();
            let wanted: Vec<i64> = (0..ROWS).filter(|p| matches(*p) && !is_deleted(*p)).collect();
            assert_eq!(got, wanted, "{setting:?} {sql}");
        }
        let top = batches(&ctx, "SELECT _pos FROM t$rows WHERE id > 100 ORDER BY id DESC LIMIT 3").await;
        let top: Vec<i64> =
            top.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        let wanted: Vec<i64> = (0..ROWS).rev().filter(|p| !is_deleted(*p)).take(3).collect();
        assert_eq!(top, wanted, "{setting:?}");
        let only = batches(&ctx, "SELECT min(_pos), max(_pos), count(*), count(DISTINCT _pos) FROM t$rows").await;
        let number = |i: usize| only[0].column(i).as_primitive::<Int64Type>().value(0);
        let live: Vec<i64> = (0..ROWS).filter(|p| !is_deleted(*p)).collect();
        let count = live.len() as i64;
        let got = [number(0), number(1), number(2), number(3)];
        assert_eq!(got, [live[0], live[live.len() - 1], count, count], "{setting:?}");
        let limited = batches(&ctx, "SELECT _pos, id FROM t$rows LIMIT 5").await;
        let positions = |b: &RecordBatch| b.column(0).as_primitive::<Int64Type>().values().to_vec();
        let limited: Vec<i64> = limited.iter().flat_map(positions).collect();
        assert!(limited.len() == 5 && limited.iter().all(|p| !is_deleted(*p)), "{setting:?} {limited:?}");
    }
}

#[tokio::test]
async fn c2_several_row_groups() {
    let lake = lake(500).await;
    check(&lake, |_| false).await;
    lake.delete("t", |_| (0..ROWS).filter(|p| deleted(*p)).map(|p| p as u64).collect()).await;
    check(&lake, deleted).await;
}

#[tokio::test]
async fn c2_one_row_group_in_several_splits() {
    let lake = lake(1 << 20).await;
    check(&lake, |_| false).await;
    lake.delete("t", |_| (0..ROWS).filter(|p| deleted(*p)).map(|p| p as u64).collect()).await;
    check(&lake, deleted).await;
}

#[tokio::test]
async fn positions_alone_need_no_column() {
    let lake = lake(500).await;
    let ctx = lake.session(|o| o.execution.target_partitions = 4);
    let got = batches(&ctx, "SELECT _pos FROM t$rows").await;
    let mut got: Vec<i64> =
        got.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    got.sort_unstable();
    assert!(got.into_iter().eq(0..ROWS));
}
