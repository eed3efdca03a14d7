//! Every I/O step of every statement fails once, before it is sent and after it is carried out.

use calve::ErrorKind;
use calve::testing::Fault;

use super::*;

/// A statement on `t`, and on what it runs. All tables have a DELETE behind them, so that there are deletes to absorb.
struct Case {
    /// How `t` was made; empty for none.
    properties: &'static str,
    settings: &'static str,
    statement: &'static str,
}

const V2: &str = "'format-version' = '2'";
const V2_MOR: &str = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'";
const V2_FILE: &str =
    "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'file'";
const V3: &str = "'format-version' = '3'";
const V3_MOR: &str = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read'";
const MERGING: &str = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', \
                       'commit.manifest.min-count-to-merge' = '2', 'write.metadata.delete-after-commit.enabled' = 'true', \
                       'write.metadata.previous-versions-max' = '1'";

const ROWS: &str = "DELETE FROM t WHERE k % 5 = 2";
const UPDATE: &str = "UPDATE t SET p = p + 1 WHERE k % 5 = 2";
const MERGE: &str = "MERGE INTO t USING (SELECT k + 2 AS k, p FROM s WHERE k > 18) AS s ON t.k = s.k \
                     WHEN MATCHED THEN UPDATE SET p = 9 WHEN NOT MATCHED THEN INSERT (k, p) VALUES (s.k, s.p)";
const WHOLE: &str = "DELETE FROM t WHERE p = 1";

/// For each case one test in which a step fails, and one in which nothing works from that step on.
macro_rules! cases {
    ($($name:ident: $properties:expr, $settings:expr, $statement:expr;)*) => {
        mod each_failed_step_leaves_the_state_before_or_after_and_no_file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use super::*;
                let case = Case { properties: $properties, settings: $settings, statement: $statement };
                at_each_step(&case, |store, n, fault| store.fail_nth(n, fault), false).await;
            })*
        }
        mod a_crash_at_each_step_leaves_the_state_before_or_after {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use super::*;
                let case = Case { properties: $properties, settings: $settings, statement: $statement };
                at_each_step(&case, |store, n, fault| store.fail_from(n, fault), true).await;
            })*
        }
    };
}

cases! {
    create: "", "", "CREATE TABLE t (k bigint, p int) PARTITIONED BY (p)";
    create_as: "", "", "CREATE TABLE t PARTITIONED BY (p) AS SELECT * FROM s";
    insert_v2: V2, "", "INSERT INTO t SELECT k + 100, p FROM s";
    insert_v3_merging_manifests: MERGING, "", "INSERT INTO t SELECT k + 100, p FROM s";
    copy_on_write_v2: V2, "", ROWS;
    copy_on_write_v3: V3, "", ROWS;
    copy_on_write_over_vectors: V3_MOR, "SET calve.delete_mode = 'copy-on-write'", ROWS;
    merge_on_read_v2: V2_MOR, "", ROWS;
    merge_on_read_v2_by_file: V2_FILE, "", ROWS;
    merge_on_read_v3: V3_MOR, "", ROWS;
    merge_on_read_v3_merging_manifests: MERGING, "", ROWS;
    metadata_only_v2: V2_MOR, "", WHOLE;
    metadata_only_v3: V3_MOR, "", WHOLE;
    delete_all: V3_MOR, "", "DELETE FROM t";
    update_merge_on_read_v3: V3_MOR, "SET calve.update_mode = 'merge-on-read'", UPDATE;
    update_copy_on_write_v2: V2, "", UPDATE;
    merge_merge_on_read_v2: V2_MOR, "SET calve.merge_mode = 'merge-on-read'", MERGE;
    merge_copy_on_write_v3: V3_MOR, "", MERGE;
    drop_table: V3_MOR, "", "DROP TABLE t";
    drop_table_purge: V3_MOR, "", "DROP TABLE t PURGE";
}

/// The store that a case starts from.
async fn prepare(case: &Case) -> InMemory {
    let world = World::filesystem(&InMemory::new()).await;
    world.sql("CREATE TABLE s AS SELECT value AS k, CAST(value % 3 AS int) AS p FROM range(24)").await.unwrap();
    if !case.properties.is_empty() {
        let create = format!(
            "CREATE TABLE t (k bigint, p int) PARTITIONED BY (p) TBLPROPERTIES ({}, \
             'commit.status-check.min-wait-ms' = '1', 'commit.retry.min-wait-ms' = '1')",
            case.properties
        );
        world.sql(&create).await.unwrap();
        world.sql("INSERT INTO t SELECT k, p FROM s").await.unwrap();
        world.sql("INSERT INTO t SELECT k + 50, p FROM s").await.unwrap();
        world.sql("DELETE FROM t WHERE k % 5 = 1").await.unwrap();
    }
    world.objects.fork()
}

/// Runs the case with `arm` applied for every step; `crash` when nothing works after the fault.
async fn at_each_step(case: &Case, arm: impl Fn(&FaultStore, u64, Fault), crash: bool) {
    let start = prepare(case).await;
    let names: &[&str] = if case.properties.is_empty() { &["s"] } else { &["s", "t"] };
    for memory in [false, true] {
        let open = async || match memory {
            true => World::memory(&start, names).await,
            false => World::filesystem(&start).await,
        };
        let clean = open().await;
        let before = clean.rows().await;
        clean.sql(case.settings).await.unwrap();
        clean.sql(case.statement).await.unwrap();
        let after = clean.rows().await;
        assert_ne!(before, after, "nothing is tested");
        for fault in [Fault::BeforeSending, Fault::AfterApplying] {
            if crash && fault == Fault::BeforeSending {
                // To die before a step is to die after the one before it.
                continue;
            }
            for n in 0.. {
                let world = open().await;
                world.sql(case.settings).await.unwrap();
                let objects = world.objects().await;
                // The version of the filesystem catalog that the memory catalog took the table from.
                let (strays_before, _) = world.strays_and_missing("t").await;
                arm(&world.faults, n, fault);
                let outcome = world.sql(case.statement).await;
                let fired = world.faults.fired();
                if crash && !fired.is_empty() {
                    // Whatever still runs in the background fails as well.
                    tokio::task::yield_now().await;
                }
                world.faults.disarm();
                let outcome = outcome.map(drop).map_err(|error| (error.kind(), error.to_string()));
                let what = format!("memory catalog: {memory}, {fired:?}: {outcome:?}");
                let now = world.rows().await;
                let (strays, missing) = world.strays_and_missing("t").await;
                assert_eq!(missing, BTreeSet::new(), "{what}: files are missing");
                match &outcome {
                    Ok(()) => {
                        assert_eq!(now, after, "{what}: acknowledged and lost");
                        // What could not be deleted stays, whatever it was.
                        if fired.iter().all(|f| !f.contains("delete")) && !crash {
                            assert!(strays.is_subset(&strays_before), "{what}: {strays:?} stay");
                        }
                    }
                    Err((ErrorKind::CommitUnknown, _)) => {
                        assert!(now == before || now == after, "{what}: neither before nor after: {now:?}");
                    }
                    Err(_) if crash => {
                        assert!(now == before || now == after, "{what}: neither before nor after: {now:?}");
                    }
                    Err(_) => {
                        assert_eq!(now, before, "{what}: failed and visible");
                        if fired.iter().all(|f| !f.contains("delete")) {
                            assert_eq!(world.settle(&objects).await, objects, "{what}: files stay");
                        }
                    }
                }
                if fired.is_empty() {
                    assert!(outcome.is_ok(), "{what}");
                    assert!(n > 1 || memory, "{what}: only {n} steps");
                    break;
                }
            }
        }
    }
}
