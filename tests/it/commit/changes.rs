//! UPDATE and MERGE beside other statements: planned before another one commits, executed after.

use calve::ErrorKind;
use datafusion::physical_plan::{ExecutionPlan, collect};

use super::*;

const CHANGES: [&str; 6] = [
    "UPDATE t SET v = v + 100 WHERE k < 3",
    "UPDATE t SET k = k + 10",
    "MERGE INTO t USING (VALUES (1, 7), (9, 9)) AS s (k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v \
     WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)",
    "MERGE INTO t USING (VALUES (2)) AS s (k) ON t.k = s.k WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (VALUES (9, 9), (1, 1)) AS s (k, v) ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)",
    "MERGE INTO t USING (VALUES (1)) AS s (k) ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
];

const OTHERS: [&str; 6] = [
    "INSERT INTO t VALUES (9, 1)",
    "INSERT INTO t VALUES (2, 5)",
    "DELETE FROM t WHERE k = 1",
    "DELETE FROM t WHERE k = 3",
    "DELETE FROM t",
    "UPDATE t SET v = v + 1000 WHERE k = 1",
];

impl World {
    async fn planned(&self, sql: &str) -> Arc<dyn ExecutionPlan> {
        let statement = self.calve.statements(sql).unwrap().remove(0);
        let plan = self.calve.plan(&statement).await.unwrap();
        self.calve.context().state().create_physical_plan(&plan).await.unwrap()
    }
}

async fn table(version: u8, mode: &str, isolation: &str) -> World {
    let world = World::filesystem(&InMemory::new()).await;
    let properties: Vec<String> = ["delete", "update", "merge"]
        .iter()
        .flat_map(|s| [format!("'write.{s}.mode' = '{mode}'"), format!("'write.{s}.isolation-level' = '{isolation}'")])
        .collect();
    let properties = properties.join(", ");
    let sql = format!("CREATE TABLE t (k INT, v INT) TBLPROPERTIES ('format-version' = '{version}', {properties})");
    world.sql(&sql).await.unwrap();
    world.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)").await.unwrap();
    world.sql("INSERT INTO t VALUES (11, 1), (12, 2)").await.unwrap();
    world
}

/// The statement either commits what it would have made of the table as the other one left it, or, under snapshot isolation,
/// does its part beside what the other one made of the table; or it is refused and leaves nothing.
#[tokio::test]
async fn a_change_beside_another_statement_is_serial_or_refused() {
    let (mut committed, mut refused) = (0, 0);
    let cells = [
        (2, "merge-on-read", "serializable"),
        (3, "merge-on-read", "snapshot"),
        (3, "copy-on-write", "serializable"),
        (3, "merge-on-read", "serializable"),
        (2, "copy-on-write", "snapshot"),
    ];
    for (i, change) in CHANGES.into_iter().enumerate() {
        for (j, other) in OTHERS.into_iter().enumerate() {
            let (version, mode, isolation) = cells[(i + j) % cells.len()];
            let serial = table(version, mode, isolation).await;
            serial.sql(other).await.unwrap();
            let after_other = sorted(&serial).await;
            serial.sql(change).await.unwrap();
            let serial = sorted(&serial).await;

            let world = table(version, mode, isolation).await;
            let planned = world.planned(change).await;
            world.sql(other).await.unwrap();
            let result = collect(planned, world.calve.context().task_ctx()).await;
            let now = sorted(&world).await;
            let what = format!("v{version} {mode} {isolation}: {change} beside {other}");
            match result.map_err(calve::session::from_datafusion) {
                Ok(_) => {
                    committed += 1;
                    let apart = match isolation {
                        "snapshot" => Some(both_apart(version, mode, change, &after_other).await),
                        _ => None,
                    };
                    assert!(now == serial || Some(&now) == apart.as_ref(), "{what}: {now:?}");
                }
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{what}: {error}");
                    assert_eq!(now, after_other, "{what}");
                }
            }
            let (strays, missing) = world.strays_and_missing("t").await;
            assert_eq!((strays, missing), Default::default(), "{what}");
        }
    }
    assert!(committed > 5 && refused > 5, "{committed} committed, {refused} refused");
}

/// `after_other` with what the change alone makes of the table: each statement saw the table as it was before both.
async fn both_apart(version: u8, mode: &str, change: &str, after_other: &[String]) -> Vec<String> {
    let world = table(version, mode, "snapshot").await;
    let before = sorted(&world).await;
    world.sql(change).await.unwrap();
    let after = sorted(&world).await;
    let mut rows = after_other.to_vec();
    for gone in before.iter().filter(|row| !after.contains(row)) {
        rows.retain(|row| row != gone);
    }
    rows.extend(after.into_iter().filter(|row| !before.contains(row)));
    rows.sort();
    rows
}

async fn sorted(world: &World) -> Vec<String> {
    // Columns are padded to the widest value.
    let mut rows: Vec<String> = world.rows().await.unwrap().iter().map(|row| row.replace(' ', "")).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn a_planned_change_is_executed_once_and_explain_changes_nothing() {
    let world = table(3, "merge-on-read", "serializable").await;
    let before = world.objects().await;
    for change in CHANGES {
        world.sql(&format!("EXPLAIN {change}")).await.unwrap();
    }
    assert_eq!(world.objects().await, before);
    let planned = world.planned(CHANGES[0]).await;
    collect(Arc::clone(&planned), world.calve.context().task_ctx()).await.unwrap();
    let rows = sorted(&world).await;
    assert!(collect(planned, world.calve.context().task_ctx()).await.is_err());
    assert_eq!(sorted(&world).await, rows);
    let analyzed = text_rows(&world.sql(&format!("EXPLAIN ANALYZE {}", CHANGES[2])).await.unwrap()).join("\n");
    assert!(analyzed.contains("rows_inserted=1") && analyzed.contains("rows_updated=1"), "{analyzed}");
    assert_ne!(sorted(&world).await, rows);
}
