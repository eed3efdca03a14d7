//! Statements that overtake one another. The rules one by one are unit tests of the transaction layer.

use calve::ErrorKind;
use calve::dml::{DeletePlan, plan_delete};
use calve::expr::Predicate;
use calve::scan::plan_scan;
use calve::spec::deletion_vector::DeletionVector;
use calve::spec::properties::{DeleteGranularity, IsolationLevel};
use calve::spec::{DataFile, FormatVersion};
use calve::transaction::{SnapshotUpdate, Validation};
use calve::writer::{DataFileWriter, DataWriterOptions, DeletionVectorWriter, PositionDeleteWriter};
use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::prelude::Expr;

use super::*;

/// A table of one column with a file for each list of rows.
async fn lake(version: u8, properties: &str, files: &[&str]) -> World {
    let world = World::filesystem(&InMemory::new()).await;
    let create = format!("CREATE TABLE t (k bigint) TBLPROPERTIES ('format-version' = '{version}' {properties})");
    world.sql(&create).await.unwrap();
    for rows in files {
        world.sql(&format!("INSERT INTO t VALUES {rows}")).await.unwrap();
    }
    world
}

const MOR: &str = ", 'write.delete.mode' = 'merge-on-read'";

impl World {
    async fn condition(&self, text: &str) -> Expr {
        let frame = self.calve.sql("SELECT * FROM t").await.unwrap();
        self.calve.context().parse_sql_expr(text, frame.schema()).unwrap()
    }

    async fn plan(&self, condition: &str) -> DeletePlan {
        let condition = self.condition(condition).await;
        plan_delete(&self.calve.context().state(), &self.table("t").await.unwrap(), Some(condition)).await.unwrap()
    }

    async fn keys(&self) -> Vec<i64> {
        let batches = self.sql("SELECT k FROM t ORDER BY k").await.unwrap();
        let column =
            |batch: &RecordBatch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
        batches.iter().flat_map(column).collect()
    }

    async fn snapshots(&self) -> usize {
        self.table("t").await.unwrap().metadata.snapshots.len()
    }

    async fn assert_tidy(&self) {
        let (strays, missing) = self.strays_and_missing("t").await;
        assert_eq!((strays, missing), Default::default());
    }
}

/// An UPDATE by hand: the first row of each file goes, and a row `new` comes.
async fn update_by_hand(table: &Table, isolation: IsolationLevel, new: i64) -> SnapshotUpdate {
    let tasks = plan_scan(table, None, &Predicate::AlwaysTrue).await.unwrap().tasks;
    let mut update = SnapshotUpdate::new(table.clone());
    let first = DeletionVector::from_positions([0]);
    let deletes: Vec<DataFile> = if table.metadata.format_version >= FormatVersion::V3 {
        let mut writer = DeletionVectorWriter::new(table, 0, 0).unwrap();
        for task in &tasks {
            writer.add(&task.data_file.file_path, &task.data_file.partition_key(), &first).await.unwrap();
        }
        writer.finish().await.unwrap()
    } else {
        let mut writer = PositionDeleteWriter::new(table, 0, 0, Some(DeleteGranularity::File)).unwrap();
        for task in &tasks {
            writer.add(&task.data_file.file_path, &task.data_file.partition_key(), &first);
        }
        writer.finish().await.unwrap()
    };
    deletes.into_iter().for_each(|file| update.add_delete(file));
    let mut writer = DataFileWriter::new(table, DataWriterOptions::default()).unwrap();
    let schema = writer.schema().clone();
    let rows = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![new]))]).unwrap();
    writer.write(&rows).await.unwrap();
    writer.finish().await.unwrap().into_iter().for_each(|file| update.add_data(file));
    let validation = Validation::for_update(table.metadata.current_snapshot_id, isolation, Predicate::Unknown);
    update.validate(validation.referencing(tasks.iter().map(|task| Arc::clone(&task.data_file.file_path))))
}

/// Named by the rules: the row that an UPDATE moves to another file must not survive the DELETE of its whole old file, nor may
/// the DELETE be undone by the UPDATE.
#[tokio::test]
async fn of_an_update_and_a_delete_of_the_whole_file_exactly_one_wins() {
    for version in [2, 3] {
        for isolation in [IsolationLevel::Snapshot, IsolationLevel::Serializable] {
            let property = format!("{MOR}, 'write.delete.isolation-level' = '{isolation}'");
            for update_first in [true, false] {
                let world = lake(version, &property, &["(1), (2), (3)"]).await;
                let delete = world.plan("k < 10").await.prepare().await.unwrap();
                let update = update_by_hand(&world.table("t").await.unwrap(), isolation, 7).await;
                let (first, second, expected) =
                    if update_first { (update, delete, vec![2, 3, 7]) } else { (delete, update, vec![]) };
                first.commit().await.unwrap();
                let error = second.commit().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "v{version} {isolation:?} {update_first}: {error}");
                assert_eq!(world.keys().await, expected, "v{version} {isolation:?} {update_first}");
                world.assert_tidy().await;
            }
        }
    }
}

/// Arithmetic that wraps would choose the row whose sum overflows.
#[tokio::test]
async fn a_delete_planned_from_rust_is_guarded_as_the_statement_is() {
    let world = lake(3, MOR, &["(1), (9223372036854775807)"]).await;
    let condition = world.condition("k + 1 < 0").await;
    let table = world.table("t").await.unwrap();
    let planned = plan_delete(&world.calve.context().state(), &table, Some(condition)).await.unwrap_err();
    let stated = world.sql("DELETE FROM t WHERE k + 1 < 0").await.unwrap_err();
    assert_eq!(planned.to_string(), stated.to_string());
    assert!(planned.to_string().to_lowercase().contains("overflow"), "{planned}");
    assert_eq!(world.keys().await, [1, 9223372036854775807]);
    assert_eq!(world.plan("k < 5").await.deleted_rows(), 1);
}

#[tokio::test]
async fn two_deletes_of_different_rows_of_one_file() {
    for (version, properties, both) in [(2, MOR, true), (3, MOR, false), (2, "", false), (3, "", false)] {
        let world = lake(version, properties, &["(1), (2), (3), (4)"]).await;
        let (one, two) = (world.plan("k = 1").await, world.plan("k = 2").await);
        let (one, two) = (one.prepare().await.unwrap(), two.prepare().await.unwrap());
        one.commit().await.unwrap();
        let second = two.commit().await;
        if both {
            second.unwrap();
            assert_eq!(world.keys().await, [3, 4], "v{version}{properties}");
        } else {
            let error = second.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "v{version}{properties}");
            assert!(error.message().contains("run the statement again"), "{error}");
            assert_eq!(world.keys().await, [2, 3, 4], "v{version}{properties}");
            world.sql("DELETE FROM t WHERE k = 2").await.unwrap();
            assert_eq!(world.keys().await, [3, 4], "v{version}{properties}");
        }
        world.assert_tidy().await;
    }
}

#[tokio::test]
async fn two_deletes_of_different_files_both_succeed() {
    for (version, properties) in [(2, MOR), (3, MOR), (2, ""), (3, "")] {
        let world = lake(version, properties, &["(1), (2)", "(11), (12)"]).await;
        let plans = [world.plan("k = 1").await, world.plan("k = 11").await];
        let updates = [plans[0].prepare().await.unwrap(), plans[1].prepare().await.unwrap()];
        for update in updates {
            update.commit().await.unwrap();
        }
        assert_eq!(world.keys().await, [2, 12], "v{version}{properties}");
        world.assert_tidy().await;
    }
}

#[tokio::test]
async fn an_append_in_between_conflicts_under_serializable_isolation_if_its_rows_may_match() {
    for (version, mode) in [(2, MOR), (3, MOR), (2, ""), (3, "")] {
        for (isolation, rows, conflict) in [
            ("serializable", "(1), (5)", true),
            ("serializable", "(100)", false),
            ("snapshot", "(1), (5)", false),
            ("snapshot", "(100)", false),
        ] {
            let properties = format!("{mode}, 'write.delete.isolation-level' = '{isolation}'");
            let world = lake(version, &properties, &["(1), (2)"]).await;
            let update = world.plan("k = 1").await.prepare().await.unwrap();
            world.sql(&format!("INSERT INTO t VALUES {rows}")).await.unwrap();
            let outcome = update.commit().await;
            assert_eq!(outcome.is_err(), conflict, "v{version} {properties} {rows}");
            let kept = if conflict { 2 } else { 1 };
            assert_eq!(world.keys().await.len(), kept + rows.split(',').count(), "v{version} {properties} {rows}");
            world.assert_tidy().await;
        }
    }
}

/// The file is gone: nothing is left to delete, and nothing is counted.
#[tokio::test]
async fn rows_that_another_delete_took_are_not_counted_again() {
    for version in [2, 3] {
        let world = lake(version, MOR, &["(1), (2)", "(11), (12)"]).await;
        let slow = world.calve.sql("DELETE FROM t WHERE k = 1 OR k = 11").await.unwrap();
        let plan = slow.create_physical_plan().await.unwrap();
        world.sql("DELETE FROM t WHERE k < 10").await.unwrap();
        let context = world.calve.context().task_ctx();
        let batches = datafusion::physical_plan::collect(Arc::clone(&plan), context.clone()).await.unwrap();
        assert_eq!(batches[0].column(0).as_primitive::<UInt64Type>().value(0), 1, "v{version}");
        assert_eq!(world.keys().await, [12]);
        world.assert_tidy().await;
        let again = datafusion::physical_plan::collect(plan, context).await.unwrap_err();
        assert!(again.to_string().contains("executed already"), "{again}");

        let world = lake(version, MOR, &["(1), (2)"]).await;
        let update = world.plan("k = 1").await.prepare().await.unwrap();
        world.sql("DELETE FROM t").await.unwrap();
        let snapshots = world.snapshots().await;
        update.commit().await.unwrap();
        assert_eq!(world.snapshots().await, snapshots, "v{version}: nothing was left to do");
        world.assert_tidy().await;
    }
}

/// Position delete files of two DELETEs may name one row; it is counted by the first alone.
#[tokio::test]
async fn rows_that_position_deletes_took_are_not_counted_again() {
    let by_file = format!("{MOR}, 'write.delete.granularity' = 'file'");
    for properties in [MOR, &by_file] {
        let world = lake(2, properties, &["(1), (2), (3)", "(11), (12)"]).await;
        let slow = world.calve.sql("DELETE FROM t WHERE k IN (1, 2, 11)").await.unwrap();
        let plan = slow.create_physical_plan().await.unwrap();
        world.sql("DELETE FROM t WHERE k = 3").await.unwrap();
        world.sql("DELETE FROM t WHERE k = 2 OR k = 12").await.unwrap();
        let batches = datafusion::physical_plan::collect(plan, world.calve.context().task_ctx()).await;
        match batches {
            Ok(batches) => {
                assert_eq!(batches[0].column(0).as_primitive::<UInt64Type>().value(0), 2, "{properties}");
                assert!(world.keys().await.is_empty(), "{properties}");
            }
            Err(error) => panic!("{properties}: {error}"),
        }
        world.assert_tidy().await;
    }
}

#[tokio::test]
async fn a_plan_or_update_that_is_given_up_leaves_no_file() {
    for (version, properties) in [(2, MOR), (3, MOR), (2, "")] {
        let world = lake(version, properties, &["(1), (2)"]).await;
        let objects = world.objects().await;
        drop(world.plan("k = 1").await);
        assert_eq!(world.objects().await, objects);
        let update = world.plan("k = 1").await.prepare().await.unwrap();
        assert_ne!(world.objects().await, objects);
        drop(update);
        assert_eq!(world.settle(&objects).await, objects, "v{version}{properties}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_dropped_at_any_time_leaves_the_state_before_or_after() {
    for (statement, version, properties) in [
        ("DELETE FROM t WHERE k % 2 = 1", 3, MOR),
        ("DELETE FROM t WHERE k % 2 = 1", 2, MOR),
        ("DELETE FROM t WHERE k % 2 = 1", 3, ""),
        ("INSERT INTO t SELECT k + 100 FROM t", 2, ""),
    ] {
        let start = lake(version, properties, &["(1), (2)", "(11), (12)"]).await;
        let before = start.keys().await;
        start.sql(statement).await.unwrap();
        let after = start.keys().await;
        for step in 0.. {
            let world = lake(version, properties, &["(1), (2)", "(11), (12)"]).await;
            let (reached, at) = tokio::sync::oneshot::channel();
            world.faults.interrupt(step, move || async move {
                let _ = reached.send(());
                tokio::time::sleep(Duration::from_millis(20)).await;
            });
            let calve = world.calve.clone();
            let text = statement.to_string();
            let mut running = tokio::spawn(async move { run(&calve, &text).await });
            tokio::select! {
                _ = at => {
                    running.abort();
                    let _ = running.await;
                }
                ended = &mut running => {
                    ended.unwrap().unwrap();
                    assert!(step > 10, "only {step} steps");
                    break;
                }
            }
            // A commit that had begun goes on in the background, and so does cleaning up.
            for _ in 0..1000 {
                if world.strays_and_missing("t").await.0.is_empty() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let now = world.keys().await;
            assert!(now == before || now == after, "{statement}, step {step}: {now:?}");
            world.assert_tidy().await;
            world.sql("DELETE FROM t WHERE k = 12").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_statements_equal_some_serial_order() {
    for (version, properties) in [(3, MOR), (2, MOR), (3, ""), (2, "")] {
        let world = lake(version, properties, &["(1), (2), (3)", "(11), (12), (13)", "(21), (22), (23)"]).await;
        let tasks: Vec<_> = (0..12)
            .map(|i| {
                let calve = world.calve.clone();
                tokio::spawn(async move {
                    let statement = match i % 3 {
                        0 => format!("INSERT INTO t VALUES ({})", 100 + i),
                        1 => format!("DELETE FROM t WHERE k = {}", i / 3 * 10 + 1),
                        _ => format!("DELETE FROM t WHERE k >= {0} AND k < {0} + 10", i / 3 * 10),
                    };
                    run(&calve, &statement).await.map(drop).map_err(|error| (error.kind(), error.to_string()))
                })
            })
            .collect();
        let mut expected: BTreeSet<i64> = [1, 2, 3, 11, 12, 13, 21, 22, 23].into();
        for (i, task) in tasks.into_iter().enumerate() {
            let i = i as i64;
            match task.await.unwrap() {
                Ok(()) => match i % 3 {
                    0 => _ = expected.insert(100 + i),
                    1 => _ = expected.remove(&(i / 3 * 10 + 1)),
                    _ => expected.retain(|k| *k / 10 != i / 3 || *k >= 100),
                },
                Err((kind, text)) => assert_eq!(kind, ErrorKind::Conflict, "{text}"),
            }
        }
        // The statements commute: whatever succeeded decides, in any order.
        assert_eq!(world.keys().await, expected.into_iter().collect::<Vec<_>>(), "v{version}{properties}");
        world.assert_tidy().await;
    }
}
