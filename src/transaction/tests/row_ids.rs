//! Row ids and sequence numbers through filtering, merging, retries and upgrades.

use super::*;

/// First row id and sequence number of each live data file.
async fn ids(table: &Table) -> BTreeMap<String, (Option<u64>, Option<i64>)> {
    let entries = live(table).await;
    let name = |path: String| path.rsplit('/').next().unwrap().to_string();
    entries.into_iter().map(|(path, e)| (name(path), (e.data_file.first_row_id, e.sequence_number))).collect()
}

fn check_ranges(table: &Table, ids: &BTreeMap<String, (Option<u64>, Option<i64>)>) {
    let mut firsts: Vec<u64> = ids.values().filter_map(|(first, _)| *first).collect();
    firsts.sort_unstable();
    assert!(firsts.windows(2).all(|pair| pair[1] - pair[0] >= 10), "row ids overlap: {ids:?}");
    assert!(firsts.last().is_none_or(|last| last + 10 <= table.metadata.next_row_id), "{ids:?}");
}

/// Merges on every commit.
const EAGER: &[(&str, &str)] = &[("commit.manifest.min-count-to-merge", "2")];

#[tokio::test]
async fn a_manifest_filtered_and_merged_in_one_commit_keeps_row_ids_and_sequence_numbers() {
    for properties in [EAGER, &[]] {
        let lake = Lake::new(3, properties).await;
        let mut table = lake.table().await;
        for batch in 0..4 {
            table =
                lake.commit(|update| (0..3).for_each(|i| update.add_data(data(&format!("f{batch}{i}"), i, 0)))).await;
        }
        let before = ids(&table).await;
        assert_eq!(before["f00"].0, Some(0));
        let gone = file(&table, "f11").await;
        let table = lake
            .commit(|update| {
                update.remove_data(gone, Removal::Whole);
                update.add_data(data("new", 1, 0));
            })
            .await;
        let mut after = ids(&lake.fresh().await).await;
        let new = after.remove("new").unwrap();
        assert_eq!(new.1, Some(table.metadata.last_sequence_number));
        assert!(new.0.unwrap() >= 120, "{new:?}");
        let mut expected = before;
        expected.remove("f11").unwrap();
        assert_eq!(after, expected);
        after.insert("new".to_string(), new);
        check_ranges(&lake.fresh().await, &after);
    }
}

#[tokio::test]
async fn a_retry_takes_the_row_ids_and_sequence_numbers_of_its_own_attempt() {
    let lake = Lake::new(3, EAGER).await;
    lake.commit(|update| update.add_data(data("a", 1, 0))).await;
    lake.race(|_, update| update.add_data(data("theirs", 1, 0))).await;
    lake.race(|_, update| update.add_data(data("theirs2", 1, 0))).await;
    let table = lake.commit(|update| update.add_data(data("mine", 1, 0))).await;
    assert_eq!(table.metadata.snapshots.len(), 4);
    let ids = ids(&lake.fresh().await).await;
    assert_eq!(ids["a"], (Some(0), Some(1)));
    assert_eq!((ids["theirs"].1, ids["theirs2"].1, ids["mine"].1), (Some(2), Some(3), Some(4)));
    check_ranges(&table, &ids);
    let head = table.metadata.current_snapshot().unwrap();
    assert_eq!(head.first_row_id.unwrap() + head.added_rows.unwrap(), table.metadata.next_row_id);
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn files_from_before_the_upgrade_get_row_ids_once() {
    for properties in [EAGER, &[]] {
        let lake = Lake::new(2, properties).await;
        let table = lake.commit(|update| add_all(update, &["a", "b", "c"])).await;
        let b = file(&table, "b").await;
        lake.change(TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 }).await;
        assert_eq!(ids(&lake.fresh().await).await["a"].0, None);
        // Another append gives the old files ids between our two attempts: our filtered copy must not give them others.
        lake.race(|_, update| update.add_data(data("theirs", 1, 0))).await;
        let mut update = SnapshotUpdate::new(lake.table().await);
        update.remove_data(b, Removal::Whole);
        let table = update.commit().await.unwrap();
        let now = ids(&lake.fresh().await).await;
        assert!(now.values().all(|(first, _)| first.is_some()), "{now:?}");
        check_ranges(&table, &now);
        let parent = table.metadata.current_snapshot().unwrap().parent_snapshot_id;
        let then = live_files(&table, parent).await.unwrap();
        for entry in then.iter().filter(|e| e.data_file.file_path.ends_with("/a")) {
            assert_eq!(entry.data_file.first_row_id, now["a"].0, "a's rows changed their ids");
        }
        assert_eq!(lake.strays().await, BTreeSet::new());
    }
}

#[tokio::test]
async fn a_file_rewritten_without_ids_must_not_have_got_some_since() {
    let lake = Lake::new(2, &[]).await;
    let table = lake.commit(|update| update.add_data(data("a", 1, 0))).await;
    let rewrite = |table: &Table, a: Arc<DataFile>| {
        let mut update = SnapshotUpdate::new(table.clone());
        update.remove_data(a, Removal::Rewritten);
        update.add_data(data("a2", 1, 0));
        update
    };
    let a = file(&table, "a").await;
    let update = rewrite(&table, a);
    lake.change(TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 }).await;
    lake.commit(|update| update.add_data(data("theirs", 1, 0))).await;
    let error = update.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("row ids"), "{error}");
    let table = lake.fresh().await;
    let a = file(&table, "a").await;
    assert!(a.first_row_id.is_some());
    rewrite(&table, a).commit().await.unwrap();
}

#[tokio::test]
async fn a_table_grows_from_v1_to_v3_under_its_commits() {
    let lake = Lake::new(1, EAGER).await;
    lake.commit(|update| update.add_data(data("one", 1, 0))).await;
    let table = lake.commit(|update| update.add_data(data("two", 1, 0))).await;
    assert_eq!(table.metadata.last_sequence_number, 0);
    let mut update = SnapshotUpdate::new(table.clone());
    update.add_delete(equality_delete("eq", 1));
    assert_eq!(update.commit().await.unwrap_err().kind(), ErrorKind::Unsupported);

    // Upgraded between two attempts: what the first one wrote must not count as sequence number 0.
    let upgrading = lake.fresh().await;
    lake.trick(Trick::Before(Box::pin(async move {
        let base = upgrading.loaded();
        let updates = vec![TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V2 }];
        let commit = TableCommit { ident: ident(), base, requirements: Vec::new(), updates };
        upgrading.catalog.commit(commit).await.unwrap();
    })));
    let table = lake.commit(|update| update.add_data(data("three", 1, 0))).await;
    assert_eq!(table.metadata.format_version, FormatVersion::V2);
    let ids_now = ids(&lake.fresh().await).await;
    assert_eq!((ids_now["one"].1, ids_now["two"].1, ids_now["three"].1), (Some(0), Some(0), Some(1)));
    let (one, three) = (file(&table, "one").await, file(&table, "three").await);
    let deletes = position_deletes(&table, &[&one, &three], DeleteGranularity::File).await;
    lake.commit(|update| deletes.into_iter().for_each(|file| update.add_delete(file))).await;

    lake.change(TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 }).await;
    let table = lake.commit(|update| update.remove_data(one, Removal::Whole)).await;
    let now = ids(&lake.fresh().await).await;
    assert_eq!(now["three"].1, Some(1));
    assert!(!now.contains_key("one") && now["two"].0.is_some(), "{now:?}");
    assert_eq!(table.metadata.next_row_id % 10, 0);
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn removed_files_are_deleted_entries_of_this_snapshot_with_their_old_numbers() {
    let lake = Lake::new(3, &[("commit.manifest-merge.enabled", "false")]).await;
    let table = lake.commit(|update| add_all(update, &["a", "b", "c"])).await;
    let (a, b) = (file(&table, "a").await, file(&table, "b").await);
    let added_by = table.metadata.current_snapshot_id;
    let second = lake.commit(|update| update.remove_data(a, Removal::Whole)).await;
    let third = lake.commit(|update| update.remove_data(b, Removal::Whole)).await;
    for (table, gone, stay) in [(&second, "a", 2), (&third, "b", 1)] {
        let head = table.metadata.current_snapshot().unwrap();
        let manifests = crate::scan::manifests_of(table, head).await.unwrap();
        assert_eq!(manifests.len(), 1);
        assert_eq!(manifests[0].added_snapshot_id, head.snapshot_id);
        assert_eq!((manifests[0].deleted_files_count, manifests[0].existing_files_count), (Some(1), Some(stay)));
        let entries = crate::scan::entries_of(table, &manifests[0]).await.unwrap();
        assert_eq!(entries.len() as u32, stay + 1, "older deleted entries are not copied");
        for entry in entries.iter() {
            assert_eq!((entry.sequence_number, entry.file_sequence_number), (Some(1), Some(1)));
            assert!(entry.data_file.first_row_id.is_some());
            let deleted = entry.data_file.file_path.ends_with(&format!("/{gone}"));
            let expected = if deleted { EntryStatus::Deleted } else { EntryStatus::Existing };
            assert_eq!(entry.status, expected);
            assert_eq!(entry.snapshot_id, if deleted { Some(head.snapshot_id) } else { added_by });
        }
        assert_eq!(head.summary["deleted-data-files"], "1");
        assert_eq!(head.summary["total-data-files"], stay.to_string());
    }
}
