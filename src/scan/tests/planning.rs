use std::time::{Duration, Instant};

use super::super::{live_files, plan_scan};
use super::*;
use crate::ErrorKind;
use crate::expr::{LeafOp, Predicate};
use crate::scan::{ScanPlan, ScanPlanMetrics};
use crate::spec::ManifestSource;
use crate::spec::manifest::read_manifest_list;
use crate::testing::StoreOp;

use DataContent::{Data, EqualityDeletes, PositionDeletes};

fn s_is(value: &str) -> Predicate {
    Predicate::leaf(2, LeafOp::Eq(Literal::String(value.into())))
}

/// Each task as `file <- delete file delete file`.
fn tasks(plan: &ScanPlan) -> Vec<String> {
    plan.tasks
        .iter()
        .map(|task| {
            let deletes: Vec<_> = task.deletes.iter().map(|delete| &*delete.file.file_path).collect();
            format!("{} <- {}", task.data_file.file_path, deletes.join(" "))
        })
        .collect()
}

async fn partitioned() -> Fixture {
    let mut fixture = Fixture::new();
    for (value, sequence_number) in [("a", 1), ("b", 2)] {
        let files = vec![(file(Data, &format!("data-{value}"), s(value)), sequence_number)];
        fixture.manifest(&format!("m-{value}"), 1, ManifestContent::Data, files).await;
        let files = vec![
            (file(PositionDeletes, &format!("pos-{value}"), s(value)), 3),
            (file(EqualityDeletes, &format!("eq-{value}"), s(value)), 3),
        ];
        fixture.manifest(&format!("d-{value}"), 1, ManifestContent::Deletes, files).await;
    }
    fixture
}

#[tokio::test]
async fn everything_is_planned_without_a_filter() {
    let mut fixture = partitioned().await;
    let table = fixture.table().await;
    let plan = plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap();
    assert_eq!(plan.snapshot_id, Some(SNAPSHOT));
    assert_eq!(tasks(&plan), ["data-a <- pos-a eq-a", "data-b <- pos-b eq-b"]);
    let metrics = ScanPlanMetrics {
        manifests_total: 4,
        manifests_read: 4,
        data_files_total: 2,
        data_files_pruned: 0,
        delete_files_total: 4,
        delete_files_pruned: 0,
    };
    assert_eq!(plan.metrics, metrics);
    assert_eq!(plan.tasks[1].sequence_number, 2);
    let live: Vec<_> = live_files(&table, None).await.unwrap();
    assert_eq!(live.len(), 6);
}

#[tokio::test]
async fn only_manifests_that_may_match_are_opened() {
    let mut fixture = partitioned().await;
    let table = fixture.table().await;
    fixture.counts.reset();
    let plan = plan_scan(&table, Some(SNAPSHOT), &s_is("b")).await.unwrap();
    assert_eq!(tasks(&plan), ["data-b <- pos-b eq-b"]);
    let metrics = ScanPlanMetrics {
        manifests_total: 4,
        manifests_read: 2,
        data_files_total: 2,
        data_files_pruned: 1,
        delete_files_total: 4,
        delete_files_pruned: 2,
    };
    assert_eq!(plan.metrics, metrics);
    // The list and two manifests, each by one request and never asked for its size.
    assert_eq!(fixture.counts.count_where(|_, _| true), 3);
    assert_eq!(fixture.counts.count(StoreOp::Get), 3);
    // The same again comes from the caches; so do the other manifests' entries.
    fixture.counts.reset();
    plan_scan(&table, None, &s_is("b")).await.unwrap();
    assert_eq!(fixture.counts.count_where(|_, _| true), 0);
}

#[tokio::test]
async fn files_are_pruned_within_a_manifest() {
    let mut fixture = Fixture::new();
    let data = ["a", "b", "c"].map(|value| (file(Data, &format!("data-{value}"), s(value)), 1));
    fixture.manifest("m", 1, ManifestContent::Data, data.to_vec()).await;
    let deletes = ["a", "b", "c"].map(|value| (file(PositionDeletes, &format!("pos-{value}"), s(value)), 2));
    fixture.manifest("d", 1, ManifestContent::Deletes, deletes.to_vec()).await;
    let table = fixture.table().await;
    let plan = plan_scan(&table, None, &s_is("b")).await.unwrap();
    assert_eq!(tasks(&plan), ["data-b <- pos-b"]);
    assert_eq!((plan.metrics.data_files_pruned, plan.metrics.delete_files_pruned), (2, 2));
}

/// duck#691: `WHERE col IS NULL` must not lose the deletes.
#[tokio::test]
async fn a_filter_on_data_columns_never_prunes_deletes() {
    let mut fixture = Fixture::new();
    let counts = |mut file: DataFile, nulls: u64| {
        file.value_counts.insert(1, 10);
        file.null_value_counts.insert(1, nulls);
        file
    };
    let data =
        vec![(counts(file(Data, "with-nulls", key(0, [])), 5), 1), (counts(file(Data, "without", key(0, [])), 0), 1)];
    fixture.manifest("m", 0, ManifestContent::Data, data).await;
    // Whatever the metrics of the delete files say of column 1.
    let deletes = vec![
        (counts(file(PositionDeletes, "pos", key(0, [])), 0), 2),
        (counts(file(EqualityDeletes, "eq", key(0, [])), 1), 2),
    ];
    fixture.manifest("d", 0, ManifestContent::Deletes, deletes).await;
    let table = fixture.table().await;
    let plan = plan_scan(&table, None, &Predicate::leaf(1, LeafOp::IsNull)).await.unwrap();
    assert_eq!(tasks(&plan), ["with-nulls <- pos eq"]);
    assert_eq!((plan.metrics.delete_files_total, plan.metrics.delete_files_pruned), (2, 0));
}

/// StarRocks#76280, rust#1758: a filter on the partition column keeps what is global.
#[tokio::test]
async fn a_partition_filter_keeps_global_equality_deletes() {
    let mut fixture = Fixture::new();
    let data = vec![(file(Data, "data-a", s("a")), 1), (file(Data, "data-b", s("b")), 1)];
    fixture.manifest("m", 1, ManifestContent::Data, data).await;
    let unpartitioned = vec![(file(EqualityDeletes, "global", key(0, [])), 2)];
    fixture.manifest("d0", 0, ManifestContent::Deletes, unpartitioned).await;
    let void = vec![(file(EqualityDeletes, "void", key(2, [None])), 2)];
    fixture.manifest("d2", 2, ManifestContent::Deletes, void).await;
    let table = fixture.table().await;
    let plan = plan_scan(&table, None, &s_is("b")).await.unwrap();
    assert_eq!(tasks(&plan), ["data-b <- global void"]);
}

#[tokio::test]
async fn unknown_snapshots_and_tables_without_one() {
    let mut fixture = partitioned().await;
    let mut table = fixture.table().await;
    let e = plan_scan(&table, Some(5), &Predicate::AlwaysTrue).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("snapshot 5"), "{e}");
    let mut metadata = (*table.metadata).clone();
    metadata.current_snapshot_id = None;
    table.metadata = Arc::new(metadata);
    let plan = plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap();
    assert_eq!((plan.snapshot_id, plan.tasks.len()), (None, 0));
    assert!(live_files(&table, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_missing_manifest_is_an_error_that_names_it() {
    let mut fixture = partitioned().await;
    let table = fixture.table().await;
    let bytes = fixture.io.read("memory:/t/d-b.avro").await.unwrap();
    fixture.io.delete("memory:/t/d-b.avro").await.unwrap();
    let e = plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap_err();
    assert!(e.to_string().contains("memory:/t/d-b.avro"), "{e}");
    // A later scan that finds it again works: the failure is not kept.
    fixture.io.write("memory:/t/d-b.avro", bytes).await.unwrap();
    assert_eq!(plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap().tasks.len(), 2);
}

/// A v1 snapshot may name its manifests itself.
#[tokio::test]
async fn snapshots_without_a_manifest_list() {
    let entry = serde_json::json!({"table": "v1_part", "current_metadata": "v5.metadata.json"});
    let (table, expected) = golden::table_with_plan(&entry).await;
    let mut metadata = (*table.metadata).clone();
    let mut snapshot = (**metadata.current_snapshot().unwrap()).clone();
    let ManifestSource::List(list) = &snapshot.manifests else { panic!("no manifest list") };
    let manifests = read_manifest_list(&table.io.read(list).await.unwrap(), list).unwrap();
    snapshot.manifests = ManifestSource::Inline(manifests.iter().map(|m| m.manifest_path.clone()).collect());
    let id = snapshot.snapshot_id;
    let at = metadata.snapshots.iter().position(|s| s.snapshot_id == id).unwrap();
    metadata.snapshots[at] = Arc::new(snapshot);
    let table = Table { metadata: Arc::new(metadata), ..table };
    let plan = plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap();
    assert_eq!(tasks(&plan), tasks(&expected));
    assert!(!plan.tasks.is_empty());
}

async fn planning_time(files: usize) -> Duration {
    let mut fixture = Fixture::new();
    for (manifest, first) in (0..files).step_by(500).enumerate() {
        let range = first..first + 500;
        let data = range.clone().map(|n| (file(Data, &format!("data-{n}"), s("a")), 1)).collect();
        fixture.manifest(&format!("m-{manifest}"), 1, ManifestContent::Data, data).await;
        let targeted = |n| DataFile {
            referenced_data_file: Some(format!("data-{n}").into()),
            ..file(PositionDeletes, &format!("pos-{n}"), s("a"))
        };
        let deletes = range
            .map(|n| (if n % 2 == 0 { targeted(n) } else { file(PositionDeletes, &format!("all-{n}"), s("a")) }, 2));
        fixture.manifest(&format!("d-{manifest}"), 1, ManifestContent::Deletes, deletes.collect()).await;
    }
    let table = fixture.table().await;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        fixture.io.cache().manifests.clear();
        let start = Instant::now();
        let plan = plan_scan(&table, None, &Predicate::leaf(1, LeafOp::Gt(Literal::Long(5)))).await.unwrap();
        best = best.min(start.elapsed());
        assert_eq!(plan.tasks.len(), files);
        assert_eq!(plan.tasks[0].deletes.positions.len(), 1 + files / 2);
    }
    best
}

/// Every data file under one partition with as many delete files: time grows with files, not with their product.
#[tokio::test]
async fn planning_is_linear() {
    // Load on the machine can only lengthen a time, so one quiet round is enough to tell linear (5 times) from quadratic (25).
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (small, large) = (planning_time(2_000).await, planning_time(10_000).await);
        if large < small * 5 * 3 {
            return;
        }
        seen.push((small, large));
    }
    panic!("times of planning 2000 and 10000 files: {seen:?}");
}
