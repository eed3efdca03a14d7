//! INSERT OVERWRITE and TRUNCATE: what happens to files, snapshots and the work of others.

use std::collections::HashSet;
use std::sync::Arc;

use calve::ErrorKind;
use calve::catalog::{Catalog, FilesystemCatalog, TableCommit, TableIdent};
use calve::env::Env;
use calve::io::FileIo;
use calve::provider::IcebergTableProvider;
use calve::scan::live_files;
use calve::session::from_datafusion;
use calve::spec::{LAST_ADDED, Operation, PartitionField, PartitionSpec, Snapshot, TableUpdate, Transform};
use calve::table::Table;
use calve::testing::{CountingStore, StoreOp};
use datafusion::prelude::SessionConfig;
use object_store::local::LocalFileSystem;

use crate::support::{Lake, run, session};

const DYNAMIC: &str = "SET calve.partition_overwrite_mode = 'dynamic'";

fn head(table: &Table) -> &Arc<Snapshot> {
    table.metadata.current_snapshot().unwrap()
}

fn summary<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    head(table).summary.get(key).map(String::as_str)
}

async fn data_files(table: &Table) -> HashSet<String> {
    let files = live_files(table, None).await.unwrap();
    files.into_iter().map(|entry| entry.data_file.file_path.to_string()).collect()
}

async fn partitioned(lake: &Lake) {
    lake.sql("CREATE TABLE t (k INT, part STRING) PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '3')")
        .await
        .unwrap();
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, NULL)").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamic_overwrite_opens_no_old_data_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::new(Arc::new(LocalFileSystem::new()));
    let io = FileIo::builder().with_local_store(Arc::clone(&store) as _).build();
    let catalog = FilesystemCatalog::new("lake", dir.path().to_str().unwrap(), io, Env::system()).unwrap();
    let catalog: Arc<dyn Catalog> = Arc::new(catalog);
    catalog.create_namespace(&["default".to_string()], true).await.unwrap();
    let calve = session(Arc::clone(&catalog), SessionConfig::new());
    let create = "CREATE TABLE t (k INT, part STRING) PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '3')";
    let setup = format!(
        "{create}; INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'); SET calve.delete_mode = 'merge-on-read'; \
         DELETE FROM t WHERE k = 1; {DYNAMIC}"
    );
    run(&calve, &setup).await.unwrap();
    let ident = TableIdent { namespace: vec!["default".to_string()], name: "t".to_string() };
    let table = Table::load(Arc::clone(&catalog), ident, Env::system()).await.unwrap();
    let old = data_files(&table).await;
    assert_eq!(old.len(), 3, "two data files and a vector");
    store.reset();
    run(&calve, "INSERT OVERWRITE t VALUES (10, 'a'), (11, 'c')").await.unwrap();
    let read = |op, path: &str| {
        let reads = matches!(op, StoreOp::Get | StoreOp::GetRanges | StoreOp::Head);
        reads && old.iter().any(|file| path.ends_with(file.rsplit('/').next().unwrap()))
    };
    assert_eq!(store.count_where(read), 0, "{:?}", store.counts());
    assert!(store.count(StoreOp::Get) + store.count(StoreOp::GetRanges) > 0, "the store counts reads");

    let table = table.refresh().await.unwrap();
    assert_eq!(head(&table).operation, Some(Operation::Overwrite));
    assert_eq!(summary(&table, "replace-partitions"), Some("true"));
    assert_eq!(summary(&table, "deleted-data-files"), Some("1"));
    assert_eq!(summary(&table, "removed-dvs"), Some("1"));
    assert_eq!(summary(&table, "added-data-files"), Some("2"));
    assert_eq!(data_files(&table).await.intersection(&old).count(), 1, "partition b stays as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_is_one_snapshot_or_none() {
    let lake = Lake::new().await;
    partitioned(&lake).await;
    let cases = [
        ("INSERT OVERWRITE t PARTITION (part = 'b') VALUES (5)", Some(Operation::Overwrite)),
        ("INSERT OVERWRITE t PARTITION (part = 'z') SELECT k FROM t WHERE FALSE", None),
        ("INSERT OVERWRITE t PARTITION (part = 'b') SELECT k FROM t WHERE FALSE", Some(Operation::Delete)),
        ("INSERT INTO t REPLACE WHERE k = 1 VALUES (1, 'a')", Some(Operation::Overwrite)),
        ("INSERT OVERWRITE t SELECT * FROM t WHERE FALSE", Some(Operation::Delete)),
        ("INSERT OVERWRITE t SELECT * FROM t WHERE FALSE", None),
        ("INSERT OVERWRITE t VALUES (1, 'a')", Some(Operation::Overwrite)),
    ];
    let mut snapshots = 1;
    for (sql, operation) in cases {
        lake.sql(&format!("EXPLAIN {sql}")).await.unwrap();
        lake.sql(sql).await.unwrap();
        let table = lake.table("t").await;
        snapshots += usize::from(operation.is_some());
        assert_eq!(table.metadata.snapshots.len(), snapshots, "{sql}");
        if operation.is_some() {
            assert_eq!(head(&table).operation, operation, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_partitions_go_by_metadata_and_other_files_are_rewritten() {
    let lake = Lake::new().await;
    partitioned(&lake).await;
    let old = data_files(&lake.table("t").await).await;
    let explained = lake.rows("EXPLAIN INSERT OVERWRITE t PARTITION (part = 'a') VALUES (7)").await.join("\n");
    assert!(explained.contains("files: dropped=1, pruned=2, scanned=0"), "{explained}");
    lake.sql("SET calve.delete_mode = 'merge-on-read'").await.unwrap();
    lake.sql("INSERT INTO t REPLACE WHERE k = 2 OR k = 3 VALUES (2, 'a')").await.unwrap();
    let table = lake.table("t").await;
    let now = data_files(&table).await;
    // b went whole, a was rewritten, whatever the modes say
    assert_eq!(now.intersection(&old).count(), 1);
    assert_eq!(summary(&table, "added-dvs"), None);
    assert_eq!(summary(&table, "deleted-data-files"), Some("2"));
    assert_eq!(summary(&table, "added-data-files"), Some("2"));
    assert_eq!(lake.rows("SELECT k FROM t").await.len(), 3);
}

/// Plans a statement, lets another commit first, and runs it.
async fn overtaken(lake: &Lake, statement: &str, other: &str) -> calve::Result<u64> {
    let frame = lake.calve.sql(statement).await?;
    let plan = frame.create_physical_plan().await.map_err(from_datafusion)?;
    lake.sql(other).await?;
    let context = lake.calve.context().task_ctx();
    let batches = datafusion::physical_plan::collect(plan, context).await.map_err(from_datafusion)?;
    Ok(batches.len() as u64)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_others_add_are_never_overwritten_unseen() {
    let cases = [
        ("", "INSERT OVERWRITE t VALUES (9, 'a')", "INSERT INTO t VALUES (5, 'z')", false),
        ("", "INSERT OVERWRITE t PARTITION (part = 'a') VALUES (9)", "INSERT INTO t VALUES (5, 'a')", false),
        ("", "INSERT OVERWRITE t PARTITION (part = 'a') VALUES (9)", "INSERT INTO t VALUES (5, 'b')", true),
        (
            "",
            "INSERT OVERWRITE t PARTITION (part = 'new') VALUES (9)",
            "INSERT OVERWRITE t PARTITION (part = 'new') VALUES (8)",
            false,
        ),
        ("", "INSERT INTO t REPLACE WHERE k > 3 VALUES (9, 'a')", "INSERT INTO t VALUES (5, 'z')", false),
        ("", "INSERT INTO t REPLACE WHERE k > 3 VALUES (9, 'a')", "INSERT INTO t VALUES (1, 'z')", true),
        ("", "INSERT OVERWRITE t PARTITION (part = 'a') VALUES (9)", "DELETE FROM t WHERE k = 1", false),
        (DYNAMIC, "INSERT OVERWRITE t VALUES (9, 'a')", "INSERT INTO t VALUES (5, 'a')", false),
        (DYNAMIC, "INSERT OVERWRITE t VALUES (9, 'a')", "INSERT INTO t VALUES (5, 'b')", true),
        (DYNAMIC, "INSERT OVERWRITE t VALUES (9, NULL)", "INSERT INTO t VALUES (5, NULL)", false),
        (DYNAMIC, "INSERT OVERWRITE t VALUES (9, 'new')", "INSERT OVERWRITE t VALUES (8, 'new')", false),
    ];
    for (settings, statement, other, commits) in cases {
        let lake = Lake::new().await;
        partitioned(&lake).await;
        if !settings.is_empty() {
            lake.sql(settings).await.unwrap();
        }
        let outcome = overtaken(&lake, statement, other).await;
        let rows = lake.rows("SELECT * FROM t").await;
        match outcome {
            Ok(_) => assert!(commits, "{statement} after {other} was committed: {rows:?}"),
            Err(error) => {
                assert!(!commits && error.kind() == ErrorKind::Conflict, "{statement} after {other}: {error}");
                assert!(!rows.iter().any(|row| row.contains("| 9 ")), "{statement} after {other}: {rows:?}");
            }
        }
    }
}

/// Partitions the table anew by identity of the columns with these ids.
async fn repartition(table: &Table, sources: &[i32]) {
    let fields = sources.iter().map(|id| PartitionField {
        source_id: *id,
        field_id: 0,
        name: format!("p{id}"),
        transform: Transform::Identity,
    });
    let spec = PartitionSpec { spec_id: 0, fields: fields.collect() };
    let updates = vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: LAST_ADDED }];
    let commit = TableCommit { ident: table.ident.clone(), base: table.loaded(), requirements: Vec::new(), updates };
    table.catalog.commit(commit).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_older_specs_are_replaced_or_refused_never_left() {
    let lake = Lake::new().await;
    lake.sql("CREATE TABLE t (k INT, part STRING) TBLPROPERTIES ('format-version' = '2')").await.unwrap();
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')").await.unwrap();
    lake.sql("INSERT INTO t VALUES (3, 'a')").await.unwrap();
    lake.sql("INSERT INTO t VALUES (4, 'x')").await.unwrap();
    repartition(&lake.table("t").await, &[2]).await;
    lake.sql(DYNAMIC).await.unwrap();
    let error = lake.sql("INSERT OVERWRITE t VALUES (9, 'a')").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("partition spec 0"), "{error}");
    assert_eq!(lake.rows("SELECT * FROM t").await.len(), 4);
    // by its bounds, one old file holds this partition alone
    lake.sql("INSERT OVERWRITE t VALUES (9, 'x')").await.unwrap();
    assert_eq!(lake.rows("SELECT k FROM t WHERE part = 'x'").await, ["| 9 |"]);
    // a static overwrite takes single rows out of old files
    lake.sql("SET calve.partition_overwrite_mode = 'static'").await.unwrap();
    lake.sql("INSERT OVERWRITE t PARTITION (part = 'a') VALUES (10)").await.unwrap();
    assert_eq!(lake.rows("SELECT k FROM t").await, ["| 10 |", "| 2  |", "| 9  |"]);
    // finer partitions lie within those of the new spec
    repartition(&lake.table("t").await, &[2, 1]).await;
    lake.sql("INSERT INTO t VALUES (11, 'a')").await.unwrap();
    repartition(&lake.table("t").await, &[2]).await;
    lake.sql(DYNAMIC).await.unwrap();
    lake.sql("INSERT OVERWRITE t VALUES (12, 'a')").await.unwrap();
    assert_eq!(lake.rows("SELECT k FROM t").await, ["| 12 |", "| 2  |", "| 9  |"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_checked_against_the_condition_of_a_prepared_overwrite() {
    use datafusion::prelude::{col, lit};
    let lake = Lake::new().await;
    partitioned(&lake).await;
    lake.sql("CREATE TABLE donor (k INT, part STRING) PARTITIONED BY (part)").await.unwrap();
    let state = lake.calve.context().state();
    let prepare = async |rows: &str| {
        lake.sql(&format!("INSERT OVERWRITE donor VALUES {rows}")).await.unwrap();
        let files = live_files(&lake.table("donor").await, None).await.unwrap();
        let added = files.into_iter().map(|entry| Arc::unwrap_or_clone(entry.data_file)).collect();
        let table = lake.table("t").await;
        calve::dml::prepare_overwrite(&state, &table, Some(col("part").eq(lit("a"))), added).await
    };
    assert_eq!(prepare("(9, 'b')").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let update = prepare("(9, 'a')").await.unwrap();
    assert_eq!((update.added_data().len(), update.removed_data().count()), (1, 1));
    update.commit().await.unwrap();
    assert_eq!(lake.rows("SELECT k FROM t").await, ["| 3 |", "| 4 |", "| 9 |"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn truncate_is_a_delete_that_keeps_the_files_for_time_travel() {
    let lake = Lake::new().await;
    partitioned(&lake).await;
    lake.sql("DELETE FROM t WHERE k = 1").await.unwrap();
    let before = lake.table("t").await;
    let files = data_files(&before).await;
    lake.sql("TRUNCATE TABLE t").await.unwrap();
    let after = lake.table("t").await;
    assert_eq!(head(&after).operation, Some(Operation::Delete));
    assert!(data_files(&after).await.is_empty());
    for file in &files {
        assert!(after.io.exists(file).await.unwrap(), "{file}");
    }
    let old = IcebergTableProvider::new(after).unwrap().with_snapshot(head(&before).snapshot_id).unwrap();
    let rows = lake.calve.context().read_table(Arc::new(old)).unwrap().count().await.unwrap();
    assert_eq!(rows, 3);
}
