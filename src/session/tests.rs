use datafusion::execution::session_state::SessionStateBuilder;

use super::*;
use crate::ErrorKind;

fn session() -> Calve {
    let state = install(SessionStateBuilder::new().with_default_features()).build();
    Calve::new(SessionContext::new_with_state(state)).unwrap()
}

async fn rows(session: &Calve, sql: &str) -> String {
    let batches = session.sql(sql).await.unwrap().collect().await.unwrap();
    arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string()
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
