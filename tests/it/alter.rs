//! ALTER TABLE beside other commits.

use calve::ErrorKind;
use calve::session::from_datafusion;

use crate::support::Lake;

/// Plans an alteration, lets another statement run first, and then carries it out.
async fn overtaken(lake: &Lake, alter: &str, other: &str) -> calve::Result<()> {
    let statement = lake.calve.statements(alter).unwrap().remove(0);
    let plan = lake.calve.plan(&statement).await?;
    lake.sql(other).await?;
    lake.calve.start(plan).await?.collect().await.map_err(from_datafusion)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn alterations_are_planned_anew_on_what_others_committed() {
    let lake = Lake::new().await;
    lake.sql("CREATE TABLE t (id INT)").await.unwrap();
    overtaken(&lake, "ALTER TABLE t ADD COLUMN a INT", "ALTER TABLE t ADD COLUMN b INT").await.unwrap();
    let table = lake.table("t").await;
    let schema = table.metadata.current_schema().unwrap();
    let ids: Vec<(String, i32)> = schema.fields.fields.iter().map(|f| (f.name.clone(), f.id)).collect();
    assert_eq!(ids, [("id".to_string(), 1), ("b".to_string(), 2), ("a".to_string(), 3)]);
    let again = overtaken(&lake, "ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t ADD COLUMN c STRING").await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    // the rows that came in meanwhile count
    let required = overtaken(&lake, "ALTER TABLE t ALTER COLUMN a SET NOT NULL", "INSERT INTO t (id) VALUES (1)").await;
    assert_eq!(required.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(lake.rows("SELECT id, a FROM t").await, ["| 1  |   |"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn alterations_that_run_at_once_all_happen() {
    let lake = Lake::new().await;
    lake.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('commit.retry.num-retries' = '20')").await.unwrap();
    let alterations = (0..8).map(|i| {
        let calve = lake.calve.clone();
        tokio::spawn(async move { crate::support::run(&calve, &format!("ALTER TABLE t ADD COLUMN c{i} INT")).await })
    });
    for alteration in alterations.collect::<Vec<_>>() {
        alteration.await.unwrap().unwrap();
    }
    let table = lake.table("t").await;
    let fields = &table.metadata.current_schema().unwrap().fields.fields;
    assert_eq!(fields.len(), 9);
    assert_eq!(table.metadata.last_column_id, 9);
}
