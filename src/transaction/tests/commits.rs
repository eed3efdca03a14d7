//! The four outcomes of a commit, and what each leaves behind.

use super::*;

async fn base(properties: &[(&str, &str)]) -> Lake {
    let lake = Lake::new(2, properties).await;
    lake.commit(|update| add_all(update, &["a", "b"])).await;
    lake
}

/// An append of a data file that exists.
async fn append(table: &Table, name: &str) -> SnapshotUpdate {
    table.io.write(&path(name), "rows".into()).await.unwrap();
    let mut update = SnapshotUpdate::new(table.clone());
    update.add_data(data(name, 1, 0));
    update
}

#[tokio::test]
async fn a_lost_answer_is_found_out_and_not_committed_twice() {
    for filesystem in [true, false] {
        let lake = Lake::with_catalog(2, &[], filesystem).await;
        lake.commit(|update| update.add_data(data("a", 1, 0))).await;
        lake.trick(Trick::LoseAnswer);
        let table = append(&lake.table().await, "x").await.commit().await.unwrap();
        assert_eq!(table.metadata.snapshots.len(), 2);
        assert_eq!(names(&lake.fresh().await).await, ["a", "x"]);
        assert!(lake.objects().await.contains(&path("x")));
    }
}

#[tokio::test]
async fn an_unknown_outcome_removes_nothing_and_names_the_snapshot() {
    let lake = base(&[]).await;
    lake.trick(Trick::LoseRequest);
    let update = append(&lake.table().await, "x").await;
    let id = update.snapshot_id().to_string();
    let before = lake.objects().await;
    let error = update.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    assert_eq!(error.context("snapshot"), Some(id.as_str()), "{error}");
    assert!(error.message().contains(&id), "{error}");
    tokio::task::yield_now().await;
    let after = lake.objects().await;
    assert!(after.is_superset(&before));
    assert!(after.iter().any(|path| path.contains(&format!("snap-{id}-1-"))), "the list stays: {after:?}");
}

#[tokio::test]
async fn retries_end_and_leave_nothing() {
    let lake = base(&[("commit.retry.num-retries", "2")]).await;
    for i in 0..3 {
        lake.race(move |_, update| update.add_data(data(&format!("theirs{i}"), 1, 0))).await;
    }
    let error = append(&lake.table().await, "x").await.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("other commits came first 3 times"), "{error}");
    assert_eq!(names(&lake.fresh().await).await, ["a", "b", "theirs0", "theirs1", "theirs2"]);
    assert!(!lake.objects().await.contains(&path("x")));
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn an_attempt_within_the_retries_succeeds() {
    let lake = base(&[("commit.retry.num-retries", "2")]).await;
    for i in 0..2 {
        lake.race(move |_, update| update.add_data(data(&format!("theirs{i}"), 1, 0))).await;
    }
    append(&lake.table().await, "x").await.commit().await.unwrap();
    assert_eq!(names(&lake.fresh().await).await, ["a", "b", "theirs0", "theirs1", "x"]);
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn a_table_dropped_or_made_anew_since_is_not_written_to() {
    for again in [false, true] {
        let lake = base(&[]).await;
        let update = append(&lake.table().await, "x").await;
        lake.inner.drop_table(&ident()).await.unwrap();
        if again {
            lake.inner.create_table(&ident(), metadata(2, &[])).await.unwrap();
        }
        let error = update.commit().await.unwrap_err();
        let expected = if again { ErrorKind::Conflict } else { ErrorKind::NotFound };
        assert_eq!(error.kind(), expected, "{error}");
        assert!(!lake.objects().await.contains(&path("x")));
        assert_eq!(lake.inner.load_table(&ident()).await.is_ok(), again);
    }
    // The same, between load and swap.
    let lake = base(&[]).await;
    let table = lake.fresh().await;
    lake.trick(Trick::Before(Box::pin(async move {
        table.catalog.drop_table(&ident()).await.unwrap();
        table.catalog.create_table(&ident(), metadata(2, &[])).await.unwrap();
    })));
    let error = append(&lake.table().await, "x").await.commit().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound), "{error}");
    assert!(lake.fresh().await.metadata.snapshots.is_empty());
    assert!(!lake.objects().await.contains(&path("x")));
}

#[tokio::test]
async fn an_upgrade_in_between_refuses_position_deletes_and_keeps_everything_else() {
    let lake = base(&[]).await;
    let table = lake.table().await;
    let a = file(&table, "a").await;
    let mut update = SnapshotUpdate::new(table.clone());
    position_deletes(&table, &[&a], DeleteGranularity::File).await.into_iter().for_each(|f| update.add_delete(f));
    lake.change(TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 }).await;
    let error = update.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("upgraded to format version 3"), "{error}");
    append(&table, "x").await.commit().await.unwrap();
    assert!(!lake.objects().await.iter().any(|path| path.ends_with("-deletes.parquet")));
}

#[tokio::test]
async fn a_schema_or_spec_changed_in_between_does_not_lose_the_commit() {
    let lake = base(&[]).await;
    let table = lake.table().await;
    let update = append(&table, "x").await;
    let schema = table.metadata.current_schema().unwrap();
    let mut fields: Vec<_> = schema.fields.fields.iter().map(|field| (**field).clone()).collect();
    fields.push(crate::spec::NestedField::new(3, "new", false, crate::spec::PrimitiveType::Int));
    lake.change(TableUpdate::AddSchema { schema: crate::spec::Schema::new(1, fields) }).await;
    lake.change(TableUpdate::SetCurrentSchema { schema_id: 1 }).await;
    lake.change(TableUpdate::SetDefaultSpec { spec_id: 1 }).await;
    let table = update.commit().await.unwrap();
    assert_eq!(table.metadata.current_snapshot().unwrap().schema_id, Some(table.metadata.current_schema_id));
    assert_eq!(entry(&lake.fresh().await, "x").await.data_file.partition_key(), partition(1));
}

#[tokio::test]
async fn each_spec_has_its_own_manifests() {
    let lake = base(&[]).await;
    let unpartitioned = |name: &str| {
        let key = PartitionKey { spec_id: 1, tuple: PartitionTuple::default() };
        DataFile { spec_id: key.spec_id, partition: key.tuple, ..data(name, 1, 0) }
    };
    let table = lake
        .commit(|update| {
            update.add_data(unpartitioned("x"));
            update.add_data(data("y", 1, 0));
            update.add_delete(DataFile { spec_id: 1, partition: PartitionTuple::default(), ..equality_delete("e", 1) });
            update.add_delete(equality_delete("f", 1));
        })
        .await;
    let manifests = crate::scan::manifests_of(&table, table.metadata.current_snapshot().unwrap()).await.unwrap();
    // The old data manifest is merged with the new one of its spec, for the newest of all is of the other spec.
    assert_eq!(manifests.len(), 4);
    for manifest in manifests.iter() {
        for entry in crate::scan::entries_of(&table, manifest).await.unwrap().iter() {
            assert_eq!(entry.data_file.spec_id, manifest.partition_spec_id);
        }
    }
}

#[tokio::test]
async fn what_contradicts_itself_is_refused_and_cleaned_up() {
    let lake = Lake::new(3, &[]).await;
    let table = lake.commit(|update| update.add_data(data("a", 1, 0))).await;
    let a = file(&table, "a").await;
    type Fill = Box<dyn Fn(&mut SnapshotUpdate)>;
    let fills: [(&str, Fill); 5] = [
        ("two deletion vectors", {
            let a = a.clone();
            Box::new(move |u| ["p1", "p2"].into_iter().for_each(|p| u.add_delete(vector(p, &a))))
        }),
        ("removed and gets deletes", {
            let a = a.clone();
            Box::new(move |u| {
                u.remove_data(a.clone(), Removal::Whole);
                u.add_delete(vector("p", &a));
            })
        }),
        ("added twice", Box::new(|u| add_all(u, &["x", "x"]))),
        ("removes; run", Box::new(|u| u.remove_data(Arc::new(data("nowhere", 1, 0)), Removal::Whole))),
        ("is a tag", Box::new(|u| u.add_data(data("x", 1, 0)))),
    ];
    let reference = crate::spec::SnapshotRef {
        snapshot_id: table.metadata.current_snapshot_id.unwrap(),
        kind: crate::spec::RefKind::Tag { max_ref_age_ms: None },
    };
    lake.change(TableUpdate::SetSnapshotRef { ref_name: "v1".to_string(), reference }).await;
    for (expected, fill) in fills {
        let mut update = SnapshotUpdate::new(lake.table().await);
        fill(&mut update);
        if expected == "is a tag" {
            update = update.branch("v1");
        }
        let error = update.commit().await.expect_err(expected);
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(names(&lake.fresh().await).await, ["a"]);
        assert_eq!(lake.strays().await, BTreeSet::new(), "{expected}");
    }
}

#[tokio::test]
async fn a_commit_whose_caller_goes_away_ends_all_the_same() {
    let lake = base(&[]).await;
    let update = append(&lake.table().await, "x").await;
    let (reached, go) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (at, until) = (reached.clone(), go.clone());
    lake.trick(Trick::Before(Box::pin(async move {
        at.notify_one();
        until.notified().await;
    })));
    let caller = tokio::spawn(update.commit());
    reached.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    go.notify_one();
    while names(&lake.fresh().await).await.len() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(lake.objects().await.contains(&path("x")));
}

#[tokio::test]
async fn an_update_dropped_or_discarded_takes_its_files_along() {
    let lake = base(&[]).await;
    let table = lake.table().await;
    append(&table, "x").await.discard().await;
    assert!(!lake.objects().await.contains(&path("x")));
    drop(append(&table, "y").await);
    while lake.objects().await.contains(&path("y")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_failed_step_of_a_commit_leaves_the_old_state_and_no_file() {
    for version in [2, 3] {
        for fault in [Fault::BeforeSending, Fault::AfterApplying] {
            let mut n = 0;
            loop {
                let properties =
                    [("commit.manifest.min-count-to-merge", "2"), ("commit.status-check.num-retries", "3")];
                let lake = Lake::new(version, &properties).await;
                lake.commit(|update| add_all(update, &["a", "b"])).await;
                let table = lake.commit(|update| update.add_data(data("c", 2, 0))).await;
                let (a, before) = (file(&table, "a").await, lake.objects().await);
                let mut update = append(&table, "x").await;
                update.remove_data(a, Removal::Whole);
                lake.store.fail_nth(n, fault);
                let outcome = update.commit().await;
                let fired = lake.store.fired();
                lake.store.disarm();
                let what = format!("v{version} {fired:?}: {outcome:?}");
                let now = names(&lake.fresh().await).await;
                let strays = lake.strays().await;
                match outcome {
                    Ok(_) => {
                        assert_eq!(now, ["b", "c", "x"], "{what}");
                        assert!(lake.objects().await.contains(&path("x")), "{what}");
                        // A deletion that failed cannot be made up for.
                        assert!(strays.is_empty() || fired[0].contains("delete"), "{what}: {strays:?}");
                    }
                    Err(error) if error.kind() == ErrorKind::CommitUnknown => {
                        assert!(now == ["a", "b", "c"] || now == ["b", "c", "x"], "{what}");
                        assert!(lake.objects().await.contains(&path("x")), "{what}");
                    }
                    Err(_) => {
                        assert_eq!(now, ["a", "b", "c"], "{what}");
                        assert_eq!(lake.objects().await, before, "{what}");
                    }
                }
                if fired.is_empty() {
                    assert!(n > 8, "{n} operations");
                    break;
                }
                n += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_200_concurrent_deletes_of_a_file_each_nearly_all_succeed() {
    for (version, vectors, files) in [(3, true, 200), (2, false, 40)] {
        let lake = Lake::new(version, &[("commit.retry.max-wait-ms", "60000")]).await;
        let table = lake.commit(|update| (0..files).for_each(|i| update.add_data(data(&format!("f{i}"), i, 0)))).await;
        let tasks: Vec<_> = live(&table)
            .await
            .into_values()
            .map(|entry| {
                let mut update = SnapshotUpdate::new(table.clone());
                let isolation = IsolationLevel::Serializable;
                let validation =
                    Validation::for_delete(table.metadata.current_snapshot_id, isolation, Predicate::Unknown);
                if vectors {
                    let puffin = format!("{}.puffin", table.env.uuid());
                    update.add_delete(vector(&puffin, &entry.data_file));
                } else {
                    update.remove_data(entry.data_file.clone(), Removal::Whole);
                }
                let update = update.validate(validation.referencing([entry.data_file.file_path.clone()]));
                tokio::spawn(update.commit())
            })
            .collect();
        let mut succeeded = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(_) => succeeded += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        let files = files as usize;
        assert!(succeeded * 100 >= files * 95, "only {succeeded} of {files}");
        let table = lake.fresh().await;
        assert_eq!(table.metadata.snapshots.len(), succeeded + 1);
        assert_eq!(live(&table).await.len(), if vectors { files + succeeded } else { files - succeeded });
        assert_eq!(lake.strays().await, BTreeSet::new());
    }
}
