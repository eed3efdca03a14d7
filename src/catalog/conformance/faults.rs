use super::*;
use crate::spec::{ManifestSource, Operation, RefKind, Snapshot, SnapshotRef};
use crate::testing::Fault;

const FAULTS: [Fault; 2] = [Fault::BeforeSending, Fault::AfterApplying];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Action {
    Create,
    Commit,
    Drop,
}

/// What a load shows: the value of `k`, or that there is no table.
async fn seen(catalog: &dyn Catalog) -> Option<String> {
    match catalog.load_table(&ident("t")).await {
        Ok(t) => Some(t.metadata.properties.get("k").cloned().unwrap_or_default()),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
            None
        }
    }
}

impl Action {
    async fn prepare(self, s: &Subject) -> Option<LoadedTable> {
        if self == Self::Create {
            return None;
        }
        let properties = [
            ("k", "before"),
            ("write.metadata.delete-after-commit.enabled", "true"),
            ("write.metadata.previous-versions-max", "1"),
        ];
        let mut table = create(&*s.catalog, &ident("t"), &properties).await.unwrap();
        for i in 0..3 {
            table = s.catalog.commit(setting(&ident("t"), &table, "i", &i.to_string())).await.unwrap();
        }
        Some(table)
    }

    async fn run(self, s: &Subject, base: Option<&LoadedTable>) -> Result<()> {
        match (self, base) {
            (Self::Create, _) => create(&*s.catalog, &ident("t"), &[("k", "after")]).await.map(drop),
            (Self::Commit, Some(base)) => s.catalog.commit(setting(&ident("t"), base, "k", "after")).await.map(drop),
            (Self::Drop, _) => s.catalog.drop_table(&ident("t")).await.map(drop),
            _ => unreachable!(),
        }
    }

    /// What a load shows before and after.
    fn states(self) -> (Option<String>, Option<String>) {
        let some = |s: &str| Some(s.to_string());
        match self {
            Self::Create => (None, some("after")),
            Self::Commit => (some("before"), some("after")),
            Self::Drop => (some("before"), None),
        }
    }
}

/// Runs every action with a fault at each of its operations; `arm` sets the fault up.
async fn at_each_operation(arm: impl Fn(&FaultStore, u64, Fault), crash: bool) {
    for kind in KINDS {
        for action in [Action::Create, Action::Commit, Action::Drop] {
            let s = subject(kind).await;
            let base = action.prepare(&s).await;
            s.store.disarm();
            action.run(&s, base.as_ref()).await.unwrap();
            let operations = s.store.operations();
            assert!(operations >= 1, "{kind}, {action:?}");
            for n in 0..operations {
                for fault in FAULTS {
                    let s = subject(kind).await;
                    let base = action.prepare(&s).await;
                    arm(&s.store, n, fault);
                    let outcome = action.run(&s, base.as_ref()).await;
                    let at = format!("{kind}, {action:?}, {:?}: {outcome:?}", s.store.fired());
                    s.store.disarm();
                    let catalog = (s.reopen)();
                    let now = seen(&*catalog).await;
                    let (before, after) = action.states();
                    match &outcome {
                        Ok(()) => assert_eq!(now, after, "{at}"),
                        Err(e) if e.kind() == ErrorKind::CommitUnknown => {
                            assert!(now == before || now == after, "{at}: {now:?}");
                        }
                        // A process that dies does not read the answer either.
                        Err(_) if crash => assert!(now == before || now == after, "{at}: {now:?}"),
                        Err(_) => assert_eq!(now, before, "{at}"),
                    }
                    // Whatever happened, the table can be used.
                    if now.is_none() {
                        create(&*catalog, &ident("t"), &[("k", "new")]).await.expect(&at);
                        assert_eq!(seen(&*(s.reopen)()).await.as_deref(), Some("new"), "{at}");
                        catalog.drop_table(&ident("t")).await.expect(&at);
                        assert_eq!(seen(&*(s.reopen)()).await, None, "{at}");
                    } else {
                        set_with_retries(&*catalog, &ident("t"), "more").await.expect(&at);
                        let t = (s.reopen)().load_table(&ident("t")).await.unwrap();
                        assert!(t.metadata.properties.contains_key("more"), "{at}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn one_failed_operation_never_turns_failure_into_success() {
    at_each_operation(|store, n, fault| store.fail_nth(n, fault), false).await;
}

#[tokio::test]
async fn a_crash_at_any_operation_leaves_the_old_state_or_the_new() {
    at_each_operation(|store, n, fault| store.fail_from(n, fault), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_faults_lose_no_acknowledged_commit() {
    for kind in KINDS {
        for seed in 0..6 {
            let s = subject(kind).await;
            let t = ident("t");
            create(&*s.catalog, &t, &[("write.metadata.delete-after-commit.enabled", "true")]).await.unwrap();
            s.store.fail_randomly(seed, 80);
            let tasks: Vec<_> = (0..4)
                .map(|task| {
                    let (c, t) = ((s.reopen)(), t.clone());
                    tokio::spawn(async move {
                        let mut outcomes = Vec::new();
                        for i in 0..6 {
                            let key = format!("{task}-{i}");
                            let outcome = set_with_retries(&*c, &t, &key).await.map(drop).map_err(|e| e.kind());
                            outcomes.push((key, outcome));
                        }
                        outcomes
                    })
                })
                .collect();
            let mut outcomes = Vec::new();
            for task in tasks {
                outcomes.extend(task.await.unwrap());
            }
            s.store.disarm();
            let end = (s.reopen)().load_table(&t).await.unwrap();
            for (key, outcome) in outcomes {
                let there = end.metadata.properties.contains_key(&key);
                match outcome {
                    Ok(()) => assert!(there, "{}, seed {seed}: commit {key} was acknowledged and is lost", s.what),
                    Err(ErrorKind::CommitUnknown) => {}
                    Err(kind) => {
                        assert!(!there, "{}, seed {seed}: commit {key} failed ({kind:?}) and is there", s.what)
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_outcome_nobody_knows_names_the_snapshot_and_deletes_nothing() {
    let s = subject("filesystem on an object store").await;
    let t = ident("t");
    let base = create(&*s.catalog, &t, &[]).await.unwrap();
    let snapshot = Snapshot {
        snapshot_id: 4711,
        parent_snapshot_id: None,
        sequence_number: 1,
        timestamp_ms: base.metadata.last_updated_ms + 1,
        manifests: ManifestSource::List(format!("{}/metadata/snap.avro", base.metadata.location)),
        operation: Some(Operation::Append),
        summary: Default::default(),
        schema_id: Some(0),
        first_row_id: None,
        added_rows: None,
        key_id: None,
        extra: Default::default(),
    };
    let kind = RefKind::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
    let reference = SnapshotRef { snapshot_id: 4711, kind };
    let updates = vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef { ref_name: "main".to_string(), reference },
    ];
    let commit = TableCommit { ident: t.clone(), base, requirements: Vec::new(), updates };
    // The put is the operation after the base was read and the three spellings of the next version were looked for.
    s.store.fail_from(4, Fault::AfterApplying);
    let e = s.catalog.commit(commit).await.unwrap_err();
    assert!(s.store.fired()[0].contains("put"), "{:?}", s.store.fired());
    assert!(!s.store.fired().iter().any(|f| f.contains("delete")), "{:?}", s.store.fired());
    assert_eq!(e.kind(), ErrorKind::CommitUnknown, "{e}");
    assert_eq!(e.context("snapshot"), Some("4711"), "{e}");
    assert!(e.message().contains("look for snapshot 4711"), "{e}");
    s.store.disarm();
    let now = s.catalog.load_table(&t).await.unwrap();
    assert_eq!(now.metadata.current_snapshot_id, Some(4711), "the answer was lost, the commit was not");
}
