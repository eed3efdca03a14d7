use datafusion::execution::session_state::SessionStateBuilder;

use super::*;
use crate::ErrorKind;
use crate::catalog::{FilesystemCatalog, TableIdent};
use crate::env::Env;
use crate::io::FileIo;
use crate::table::Table;

fn session() -> Calve {
    let state = install(SessionStateBuilder::new().with_default_features()).build();
    Calve::new(SessionContext::new_with_state(state)).unwrap()
}

async fn rows(session: &Calve, sql: &str) -> String {
    let frame = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await.unwrap();
    arrow::util::pretty::pretty_format_batches_with_schema(schema, &batches).unwrap().to_string()
}

#[tokio::test]
async fn distinct_from_binds_as_sql_says() {
    let session = session();
    let table =
        rows(&session, "SELECT true IS DISTINCT FROM true OR true AS a, 1 IS DISTINCT FROM 1 AND false AS b").await;
    assert!(table.contains("| true | false |"), "{table}");
    let table = rows(&session, "EXPLAIN SELECT 1 IS DISTINCT FROM x OR x = 2 FROM (VALUES (1)) t(x)").await;
    assert!(table.contains("IS DISTINCT FROM"), "{table}");
}

#[tokio::test]
async fn one_statement_only() {
    let session = session();
    for (sql, part) in [("", "no statement"), ("select 1; select 2", "one statement is expected, 2 are given")] {
        let e = session.sql(sql).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.message().contains(part), "{e}");
    }
}

#[tokio::test]
async fn options_are_set_by_statement() {
    let session = session();
    session.sql("SET calve.delete_mode = 'merge-on-read'").await.unwrap();
    let config = session.context().copied_config();
    assert_eq!(config.options().extensions.get::<CalveOptions>().unwrap().delete_mode, "merge-on-read");
    assert!(session.sql("SET calve.nonsense = '1'").await.is_err());
}

#[tokio::test]
async fn errors_name_their_place() {
    let session = session();
    let e = session.sql("SELECT 1\n + , 2").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.message().contains("at line 2, column 4"), "{e}");
    let e = session.sql("SELECT * FROM no_such_table").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
}

#[test]
fn a_session_without_the_extension_is_refused() {
    assert_eq!(Calve::new(SessionContext::new()).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// A session over a filesystem catalog `lake` with the namespace `default`, both current.
async fn lake(dir: &std::path::Path) -> Calve {
    let config = datafusion::prelude::SessionConfig::new()
        .with_default_catalog_and_schema("lake", "default")
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let session = Calve::new(SessionContext::new_with_state(install(builder).build())).unwrap();
    let io = FileIo::local();
    let catalog = FilesystemCatalog::new("lake", dir.to_str().unwrap(), io, Env::system()).unwrap();
    catalog.create_namespace(&["default".to_owned()], true).await.unwrap();
    session.register_catalog_with_files("lake", Arc::new(catalog));
    session
}

async fn load(session: &Calve, name: &str) -> crate::Result<Table> {
    let catalog = session.catalogs.get("lake").unwrap();
    Table::load(catalog, TableIdent::new(["default"], name), Env::system()).await
}

#[tokio::test]
async fn creates_describes_and_drops_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    let create = "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'key', s STRUCT<a INT, b ARRAY<STRING>>, d DATE)
        PARTITIONED BY (bucket(4, id), month(d)) COMMENT 'mine' TBLPROPERTIES ('format-version' = '3', 'a' = 'b')";
    session.sql(create).await.unwrap();
    let table = load(&session, "t").await.unwrap();
    let schema = table.metadata.current_schema().unwrap();
    let ids: Vec<_> = schema.fields.fields.iter().map(|f| (f.id, f.name.as_str(), f.required)).collect();
    assert_eq!(ids, [(1, "id", true), (2, "s", false), (3, "d", false)]);
    assert_eq!(schema.field_by_name("s.a").unwrap().id, 4);
    assert_eq!(schema.field_by_id(1).unwrap().doc.as_deref(), Some("key"));
    let spec = table.metadata.default_spec().unwrap();
    let fields: Vec<_> = spec.fields.iter().map(|f| (f.name.as_str(), f.source_id, f.field_id)).collect();
    assert_eq!(fields, [("id_bucket", 1, 1000), ("d_month", 3, 1001)]);
    assert_eq!(table.metadata.format_version.number(), 3);
    assert_eq!(table.metadata.properties.get("comment").map(String::as_str), Some("mine"));
    assert!(!table.metadata.properties.contains_key("format-version"));

    let shown = rows(&session, "SHOW CREATE TABLE t").await;
    assert!(shown.contains("PARTITIONED BY (bucket(4, id), month(d))"), "{shown}");
    let tables = rows(&session, "SHOW TABLES").await;
    assert!(tables.contains("| lake          | default            | t"), "{tables}");
    assert!(rows(&session, "DESCRIBE t").await.contains("| id          | Int64"));

    let e = session.sql(create).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    session.sql("CREATE TABLE IF NOT EXISTS t (other INT)").await.unwrap();
    assert_eq!(load(&session, "t").await.unwrap().metadata.current_schema().unwrap().fields.fields.len(), 3);

    let message = rows(&session, "DROP TABLE t").await;
    assert!(message.contains("stay in"), "{message}");
    assert_eq!(load(&session, "t").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(session.sql("DROP TABLE t").await.unwrap_err().kind(), ErrorKind::NotFound);
    session.sql("DROP TABLE IF EXISTS t PURGE").await.unwrap();
}

#[tokio::test]
async fn the_definition_shown_makes_the_same_table() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    session
        .sql(
            "CREATE TABLE a (\"Mixed Case\" MAP<STRING, STRUCT<x DECIMAL(9,2) NOT NULL>>, ts TIMESTAMP WITH TIME ZONE,
             f FIXED(8), u UUID, t TIME, n TIMESTAMP(9), b BINARY, l ARRAY<ARRAY<DOUBLE NOT NULL>>)
             PARTITIONED BY (hour(ts), truncate(3, b), u) TBLPROPERTIES ('format-version' = '3')",
        )
        .await
        .unwrap();
    let first = load(&session, "a").await.unwrap();
    let frame = session.sql("SHOW CREATE TABLE a").await.unwrap();
    let batches = frame.collect().await.unwrap();
    let column = batches[0].column_by_name("definition").unwrap();
    let definition = arrow::util::display::array_value_to_string(column, 0).unwrap();
    session.sql("DROP TABLE a").await.unwrap();
    session.sql(&definition).await.unwrap_or_else(|e| panic!("{e}\n{definition}"));
    let second = load(&session, "a").await.unwrap();
    assert_eq!(first.metadata.current_schema().unwrap(), second.metadata.current_schema().unwrap());
    assert_eq!(first.metadata.default_spec().unwrap(), second.metadata.default_spec().unwrap());
    assert_eq!(first.metadata.properties, second.metadata.properties);
}

#[tokio::test]
async fn schemas_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    session.sql("CREATE SCHEMA db").await.unwrap();
    assert_eq!(session.sql("CREATE SCHEMA db").await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    session.sql("CREATE SCHEMA IF NOT EXISTS lake.db").await.unwrap();
    session.sql("CREATE TABLE db.t (a INT)").await.unwrap();
    assert!(rows(&session, "SELECT * FROM lake.db.t").await.contains("| a |"));
    for sql in ["DROP SCHEMA db", "DROP SCHEMA db CASCADE"] {
        assert!(session.sql(sql).await.is_err(), "{sql}");
    }
    session.sql("DROP TABLE lake.db.t PURGE").await.unwrap();
    session.sql("DROP SCHEMA db").await.unwrap();
    session.sql("DROP SCHEMA IF EXISTS db").await.unwrap();
    assert_eq!(session.sql("DROP SCHEMA db").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn explain_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    let plan = rows(&session, "EXPLAIN CREATE TABLE t (a INT)").await;
    assert!(plan.contains("CommandExec: CREATE TABLE t (a INT)"), "{plan}");
    assert_eq!(load(&session, "t").await.unwrap_err().kind(), ErrorKind::NotFound);
    session.sql("CREATE TABLE t (a INT)").await.unwrap();
    for sql in ["EXPLAIN DROP TABLE t", "EXPLAIN FORMAT INDENT DROP TABLE t PURGE", "EXPLAIN VERBOSE DROP SCHEMA x"] {
        rows(&session, sql).await;
        load(&session, "t").await.unwrap();
    }
    rows(&session, "EXPLAIN ANALYZE DROP TABLE t").await;
    assert_eq!(load(&session, "t").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_planned_command_runs_once() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    let statement = session.statements("CREATE TABLE t (a INT)").unwrap().remove(0);
    let plan = session.plan(&statement).await.unwrap();
    assert!(load(&session, "t").await.is_err());
    let physical = session.context().state().create_physical_plan(&plan).await.unwrap();
    let run = || datafusion::physical_plan::collect(Arc::clone(&physical), session.context().task_ctx());
    run().await.unwrap();
    load(&session, "t").await.unwrap();
    assert!(run().await.unwrap_err().to_string().contains("executed already"));
}

#[tokio::test]
async fn definitions_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    for (sql, kind, part) in [
        ("CREATE TABLE t (a STRING) PARTITIONED BY (month(a))", ErrorKind::InvalidInput, "month"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b)", ErrorKind::InvalidInput, "no column b"),
        ("CREATE TABLE t (a INT) LOCATION '/tmp/x'", ErrorKind::Unsupported, "LOCATION"),
        ("CREATE TABLE t (a VARIANT)", ErrorKind::InvalidInput, "variant"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('format-version' = '7')", ErrorKind::Unsupported, "7"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('format-version' = 'x')", ErrorKind::InvalidInput, "format-version"),
        (
            "CREATE TABLE t (a INT) TBLPROPERTIES ('write.delete.mode' = 'x')",
            ErrorKind::InvalidInput,
            "write.delete.mode",
        ),
        ("CREATE TABLE nowhere.t (a INT)", ErrorKind::NotFound, "nowhere"),
        ("CREATE TABLE lake.b.c.d (a INT)", ErrorKind::InvalidInput, "table name"),
        ("CREATE OR REPLACE TABLE t (a INT)", ErrorKind::Unsupported, "OR REPLACE"),
        ("CREATE TABLE \"t$rows\" (a INT)", ErrorKind::InvalidInput, "$"),
    ] {
        let e = session.sql(sql).await.expect_err(sql);
        assert_eq!(e.kind(), kind, "{sql}: {e}");
        assert!(e.to_string().to_lowercase().contains(&part.to_lowercase()), "{sql}: {e}");
        assert_eq!(load(&session, "t").await.unwrap_err().kind(), ErrorKind::NotFound, "{sql}");
    }
}

#[tokio::test]
async fn external_tables_files_and_views_live_in_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    let csv = dir.path().join("x.csv");
    std::fs::write(&csv, "a,b\n1,2\n").unwrap();
    let csv = csv.to_str().unwrap();
    assert!(rows(&session, &format!("SELECT * FROM '{csv}'")).await.contains("| 1 | 2 |"));
    session
        .sql(&format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{csv}' OPTIONS ('format.has_header' 'true')"))
        .await
        .unwrap();
    assert!(rows(&session, "SELECT a FROM x").await.contains("| 1 |"));
    session.sql("CREATE VIEW v AS SELECT a + 1 AS c FROM x").await.unwrap();
    assert!(rows(&session, "SELECT c FROM v").await.contains("| 2 |"));
    assert!(rows(&session, "SHOW TABLES").await.contains("| x "));
    assert!(session.sql("DROP TABLE x PURGE").await.is_err());
    session.sql("DROP VIEW v").await.unwrap();
    session.sql("DROP TABLE x").await.unwrap();
    assert_eq!(session.sql("SELECT * FROM x").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(std::path::Path::new(csv).exists());
}

#[tokio::test]
async fn an_external_iceberg_table_reads_its_location() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    session.sql("CREATE TABLE t (\"Id\" INT, v INT)").await.unwrap();
    let location = load(&session, "t").await.unwrap().metadata.location.clone();
    session.sql(&format!("CREATE EXTERNAL TABLE e STORED AS ICEBERG LOCATION '{location}'")).await.unwrap();
    assert!(rows(&session, "SELECT id, v FROM e").await.contains("| Id | v |"));
    assert!(rows(&session, "SELECT _file, * FROM e").await.contains("| _file | Id | v |"));
    assert!(rows(&session, "SELECT * FROM e$rows").await.contains("| Id | v | _file | _pos | _spec_id |"));
    let e = session.sql("CREATE EXTERNAL TABLE f STORED AS ICEBERG LOCATION '/no/such/place'").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    session.sql("DROP TABLE e").await.unwrap();
    load(&session, "t").await.unwrap();
}

/// Values of the first column, as text.
async fn column(session: &Calve, sql: &str) -> Vec<String> {
    let batches = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")).collect().await.unwrap();
    let cells = batches.iter().flat_map(|b| (0..b.num_rows()).map(|row| (Arc::clone(b.column(0)), row)));
    cells.map(|(c, row)| arrow::util::display::array_value_to_string(&c, row).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn create_table_as_is_one_commit() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    let create = "CREATE TABLE t PARTITIONED BY (truncate(10, k)) TBLPROPERTIES ('format-version' = '3')
        AS SELECT value AS k, 'v' || value AS \"Name\" FROM generate_series(1, 25)";
    let plan = rows(&session, &format!("EXPLAIN {create}")).await;
    assert!(plan.contains("RowDelta: create default.t"), "{plan}");
    assert!(!dir.path().join("default/t").exists());
    assert_eq!(column(&session, create).await, ["25"]);
    let table = load(&session, "t").await.unwrap();
    assert_eq!(table.metadata.snapshots.len(), 1);
    assert_eq!(table.metadata.metadata_log, []);
    assert!(table.metadata_location.ends_with("v1.metadata.json"), "{}", table.metadata_location);
    assert!(table.metadata.current_schema().unwrap().fields.fields.iter().all(|f| !f.required));
    assert_eq!(column(&session, "SELECT count(DISTINCT _file) FROM t").await, ["3"]);
    assert_eq!(column(&session, "SELECT name FROM t WHERE k = 7").await, ["v7"]);

    assert_eq!(session.sql(create).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    session.sql(&create.replacen("TABLE", "TABLE IF NOT EXISTS", 1)).await.unwrap();
    assert_eq!(column(&session, "SELECT count(*) FROM t").await, ["25"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn create_table_as_of_no_rows_makes_an_empty_table() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    assert_eq!(column(&session, "CREATE TABLE t AS SELECT 1 AS a, now() AS b WHERE false").await, ["0"]);
    let table = load(&session, "t").await.unwrap();
    assert_eq!(table.metadata.snapshots.len(), 0);
    assert_eq!(column(&session, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_create_table_as_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    for sql in [
        "CREATE TABLE t AS SELECT 10 / (value - 5) AS a FROM generate_series(1, 9)",
        "CREATE TABLE t AS SELECT 1 AS a, 2 AS A",
        "CREATE TABLE t AS SELECT 1 AS a, 2 AS a",
        "CREATE TABLE t AS SELECT nowhere",
        "CREATE TABLE t PARTITIONED BY (month(a)) AS SELECT 'x' AS a",
    ] {
        assert!(session.sql(sql).await.is_err(), "{sql}");
        assert_eq!(load(&session, "t").await.unwrap_err().kind(), ErrorKind::NotFound, "{sql}");
        let left = std::fs::read_dir(dir.path().join("default")).unwrap().count();
        assert_eq!(left, 0, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_takes_an_alias_and_hidden_columns() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    session.sql("SET calve.delete_mode = 'merge-on-read'").await.unwrap();
    session.sql("CREATE TABLE t AS SELECT value AS k, value % 3 AS \"G\" FROM generate_series(1, 12)").await.unwrap();
    for (sql, count, left) in [
        ("DELETE FROM t AS a WHERE a.k = 1", "1", "2,3,4,5,6,7,8,9,10,11,12"),
        ("DELETE FROM t a WHERE k < 4 AND a.g = 0", "1", "2,4,5,6,7,8,9,10,11,12"),
        // the greatest of each group stays
        ("DELETE FROM lake.default.t a WHERE EXISTS (SELECT 1 FROM t WHERE t.g = a.g AND t.k > a.k)", "7", "10,11,12"),
        ("DELETE FROM t WHERE _pos >= 0 AND k = 10", "1", "11,12"),
        ("DELETE FROM t AS x WHERE x._file LIKE '%.parquet' AND x.\"G\" = 2", "1", "12"),
        ("DELETE FROM t WHERE g = 1", "0", "12"),
    ] {
        let plan = rows(&session, &format!("EXPLAIN {sql}")).await;
        assert!(!plan.contains("Error"), "{plan}");
        assert_eq!(column(&session, sql).await, [count], "{sql}");
        assert_eq!(column(&session, "SELECT k FROM t ORDER BY k").await.join(","), left, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_deletes_the_table_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let session = lake(dir.path()).await;
    session.sql("SET calve.delete_mode = 'merge-on-read'").await.unwrap();
    session.sql("CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 12)").await.unwrap();
    column(&session, "DELETE FROM t WHERE k < 5").await;
    column(&session, "INSERT INTO t SELECT 100").await;
    let stray = dir.path().join("default/t/data/stray.txt");
    std::fs::write(&stray, "mine").unwrap();
    let message = column(&session, "DROP TABLE t PURGE").await;
    assert!(message[0].starts_with("dropped table default.t and deleted its "), "{message:?}");
    let left: Vec<_> = std::fs::read_dir(dir.path().join("default/t/data")).unwrap().collect();
    assert_eq!((left.len(), stray.exists()), (1, true));
    assert!(!dir.path().join("default/t/metadata").exists());

    session.sql("CREATE TABLE g (a INT) TBLPROPERTIES ('gc.enabled' = 'false')").await.unwrap();
    let e = session.sql("DROP TABLE g PURGE").await.unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidInput && e.message().contains("gc.enabled"), "{e}");
    session.sql("DROP TABLE g").await.unwrap();
}
