//! Equality deletes and Avro files through SQL, on tables that other engines wrote.

use crate::support::Lake;

const KEYED: &[(&str, &str)] = &[
    ("eq_added_col", "id"),
    ("eq_dropped", "id"),
    ("eq_global", "id"),
    ("eq_mixed_pos", "id"),
    ("eq_null_key", "id"),
    ("eq_one_key", "id"),
    ("eq_partition_scoped", "id"),
    ("eq_partitioned_pos", "id"),
    ("eq_renamed", "id"),
    ("eq_two_cols", "id"),
    ("eq_types", "id"),
    ("eq_v3", "id"),
    ("fmt_avro", "order_id"),
    ("fmt_mixed", "order_id"),
];

async fn number(lake: &Lake, query: &str) -> usize {
    let rows = lake.rows(query).await;
    rows[0].trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// A filter of a column that is no key, and counts that read no column at all.
#[tokio::test(flavor = "multi_thread")]
async fn c1_8_and_9_filters_and_counts_see_only_live_rows() {
    for pushdown in [false, true] {
        let mut config = datafusion::prelude::SessionConfig::new();
        config.options_mut().execution.parquet.pushdown_filters = pushdown;
        let lake = Lake::with_config(config).await;
        for (name, key) in KEYED {
            lake.copy_golden(name);
            let all = lake.rows(&format!("SELECT * FROM {name}")).await;
            assert_eq!(number(&lake, &format!("SELECT count(*) FROM {name}")).await, all.len(), "{name}");
            assert_eq!(number(&lake, &format!("SELECT count({key}) FROM {name}")).await, all.len(), "{name}");
            let table = lake.table(name).await;
            for field in &table.metadata.current_schema().unwrap().fields.fields {
                let column = format!("\"{}\"", field.name);
                let mut parts = lake.rows(&format!("SELECT * FROM {name} WHERE {column} IS NULL")).await;
                parts.extend(lake.rows(&format!("SELECT * FROM {name} WHERE {column} IS NOT NULL")).await);
                parts.sort();
                // Widths of a printed table depend on its rows.
                let squeeze = |rows: &[String]| {
                    let mut rows: Vec<String> =
                        rows.iter().map(|r| r.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
                    rows.sort();
                    rows
                };
                assert_eq!(squeeze(&parts), squeeze(&all), "{name} by {column}, pushdown {pushdown}");
            }
        }
    }
}

/// Queries of one session that read different columns, keys among them or not.
#[tokio::test(flavor = "multi_thread")]
async fn c1_10_other_projections_of_one_session_see_the_same_rows() {
    let lake = Lake::new().await;
    for (name, key) in KEYED {
        lake.copy_golden(name);
        let rows = lake.rows(&format!("SELECT {key} FROM {name}")).await.len();
        let table = lake.table(name).await;
        for field in &table.metadata.current_schema().unwrap().fields.fields {
            assert_eq!(lake.rows(&format!("SELECT \"{}\" FROM {name}", field.name)).await.len(), rows, "{name}");
        }
        assert_eq!(lake.rows(&format!("SELECT * FROM {name} LIMIT {rows}")).await.len(), rows, "{name}");
    }
}

/// A pool too small for the keys stops the query with a message that names the delete files.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_charged_to_the_memory_pool() {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::execution::session_state::SessionStateBuilder;
    use datafusion::prelude::SessionContext;

    let lake = Lake::new().await;
    lake.copy_golden("eq_one_key");
    let table = lake.table("eq_one_key").await;
    let query = |pool: Arc<dyn datafusion::execution::memory_pool::MemoryPool>| {
        let table = table.clone();
        async move {
            let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
            let state = SessionStateBuilder::new().with_default_features().with_runtime_env(runtime).build();
            let ctx = SessionContext::new_with_state(state);
            let provider = calve::provider::IcebergTableProvider::new(table).unwrap();
            ctx.register_table("t", Arc::new(provider)).unwrap();
            ctx.sql("SELECT id FROM t").await.unwrap().collect().await
        }
    };
    let rows = query(Arc::new(UnboundedMemoryPool::default())).await.unwrap();
    assert_eq!(rows.iter().map(|b| b.num_rows()).sum::<usize>(), 37);
    let small = Arc::new(GreedyMemoryPool::new(100));
    let error = calve::provider::from_datafusion(query(small).await.unwrap_err());
    assert_eq!(error.kind(), calve::ErrorKind::Unavailable);
    for part in ["eq_one_key", "equality delete files", "bytes of memory", "deletes.parquet"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}
