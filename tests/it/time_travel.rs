//! Older states, branches and tags: by name in any session, by clause in our own, against the rows their writer expects.

use calve::ErrorKind;
use calve::provider::IcebergTableProvider;
use calve::table::TableVersion;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::{Lake, fixtures, text_rows};

/// Ids of the rows of `expected`, a file of the golden table `refs_table`.
fn ids(expected: &str) -> Vec<i64> {
    let text = std::fs::read_to_string(fixtures().join("golden/refs_table").join(expected)).unwrap();
    let mut ids: Vec<i64> = text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn numbers(rows: &[String]) -> Vec<i64> {
    let mut ids: Vec<i64> = rows.iter().map(|row| row.trim_matches(['|', ' ']).parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

const VERSIONS: [(&str, &str, &str); 6] = [
    ("expected-1.csv", "refs_table$snapshot_id_447522725379374418", "VERSION AS OF 447522725379374418"),
    ("expected-2.csv", "refs_table$at_timestamp_1796093823800", "TIMESTAMP AS OF 1796093823800"),
    ("expected-2.csv", "refs_table$snapshot_id_4992878902820082338", "FOR VERSION AS OF '4992878902820082338'"),
    ("expected-branch-audit.csv", "refs_table$branch_audit", "FOR SYSTEM_VERSION AS OF 'audit'"),
    ("expected-tag-first-tag.csv", "\"refs_table$tag_first-tag\"", "VERSION AS OF 'first-tag'"),
    ("expected.csv", "refs_table$branch_main", "FOR SYSTEM_TIME AS OF '2099-01-01'"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_read_by_clause_and_by_name() {
    let lake = Lake::new().await;
    lake.copy_golden("refs_table");
    for (expected, name, clause) in VERSIONS {
        let by_clause = lake.rows(&format!("SELECT id FROM refs_table {clause}")).await;
        assert_eq!(numbers(&by_clause), ids(expected), "{clause}");
        let plain = lake.calve.context().sql(&format!("SELECT id FROM {name}")).await.unwrap().collect().await.unwrap();
        assert_eq!(numbers(&text_rows(&plain)), ids(expected), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_of_external_tables_are_read() {
    let lake = Lake::new().await;
    lake.sql("CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await.unwrap();
    let first = lake.table("t").await.metadata.snapshots[0].snapshot_id;
    let location = lake.dir.path().join("default/t");
    lake.sql(&format!("CREATE EXTERNAL TABLE e STORED AS ICEBERG LOCATION '{}'", location.display())).await.unwrap();
    assert_eq!(numbers(&lake.rows(&format!("SELECT id FROM e VERSION AS OF {first}")).await), [1]);
    assert_eq!(numbers(&lake.rows(&format!("SELECT id FROM e$snapshot_id_{first}")).await), [1]);
    assert_eq!(numbers(&lake.rows("SELECT id FROM e VERSION AS OF 'main'").await), [1, 2]);
    assert_eq!(numbers(&lake.rows("SELECT count(_pos) FROM e$branch_main$rows").await), [2]);
    assert_eq!(numbers(&lake.rows("SELECT count(*) FROM e$snapshots").await), [2]);
    let e = lake.sql("DELETE FROM e$branch_main").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
}

/// A dialect whose parser knows the clause must not lose it: DataFusion's planner ignores it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clause_that_datafusion_would_ignore_is_refused() {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.dialect = datafusion::config::Dialect::Databricks;
    let lake = Lake::with_config(config).await;
    lake.copy_golden("refs_table");
    for clause in ["VERSION AS OF 447522725379374418", "TIMESTAMP AS OF '2099-01-01'", "FOR SYSTEM_TIME AS OF now()"] {
        let sql = format!("SELECT id FROM refs_table {clause}");
        let e = lake.calve.context().sql(&sql).await.unwrap_err();
        assert_eq!(calve::session::from_datafusion(e).kind(), ErrorKind::Unsupported, "{clause}");
        assert_eq!(lake.rows(&sql).await.len(), 10, "{clause}");
    }
}

/// The version in a name stays whatever a session without the extension makes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_changes_a_version() {
    let lake = Lake::new().await;
    lake.copy_golden("refs_table");
    for (name, kind) in [
        ("refs_table$snapshot_id_9192106984977186969", ErrorKind::InvalidInput),
        ("refs_table$snapshot_id_447522725379374418", ErrorKind::InvalidInput),
        ("\"refs_table$tag_first-tag\"", ErrorKind::InvalidInput),
        ("refs_table$at_timestamp_9999999999999", ErrorKind::InvalidInput),
        ("refs_table$branch_audit", ErrorKind::Unsupported),
        ("refs_table$branch_main", ErrorKind::Unsupported),
    ] {
        for statement in [
            "DELETE FROM {} WHERE id = 1",
            "DELETE FROM {}",
            "INSERT INTO {} VALUES (1, 'x')",
            "TRUNCATE TABLE {}",
            "UPDATE {} SET v = 'x'",
            "MERGE INTO {} AS t USING (VALUES (1)) AS s(id) ON t.id = s.id WHEN MATCHED THEN DELETE",
        ] {
            let sql = statement.replace("{}", name);
            let e = lake.sql(&sql).await.unwrap_err();
            assert_eq!(e.kind(), kind, "{sql}: {e}");
            let plain = async { lake.calve.context().sql(&sql).await?.collect().await };
            let e = calve::session::from_datafusion(plain.await.unwrap_err());
            assert_eq!(e.kind(), kind, "{sql}: {e}");
        }
    }
    assert_eq!(numbers(&lake.rows("SELECT id FROM refs_table").await), ids("expected.csv"));
    let table = lake.table("refs_table").await;
    assert_eq!(table.metadata.snapshots.len(), 5);

    // A session without the extension has read-only tables, versions or not.
    let provider = IcebergTableProvider::at_version(table, TableVersion::Tag("first-tag".into())).unwrap();
    let ctx = SessionContext::new_with_state(SessionStateBuilder::new().with_default_features().build());
    ctx.register_table("t", std::sync::Arc::new(provider)).unwrap();
    let rows = ctx.sql("SELECT id FROM t").await.unwrap().collect().await.unwrap();
    assert_eq!(numbers(&text_rows(&rows)), ids("expected-tag-first-tag.csv"));
    assert!(async { ctx.sql("DELETE FROM t").await?.collect().await }.await.is_err());
}
