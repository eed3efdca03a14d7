//! Filtering, merging and rolling of manifests.

use super::*;
use crate::scan::{entries_of, manifests_of};
use crate::spec::{ManifestContent, ManifestFile};
use crate::testing::StoreOp;

async fn manifests(table: &Table) -> Arc<Vec<ManifestFile>> {
    manifests_of(table, table.metadata.current_snapshot().unwrap()).await.unwrap()
}

#[tokio::test]
async fn vectors_go_with_their_data_file_and_no_others() {
    let lake = Lake::new(3, &[]).await;
    let table = lake.commit(|update| add_all(update, &["a", "b"])).await;
    let (a, b) = (file(&table, "a").await, file(&table, "b").await);
    lake.commit(|update| {
        update.add_delete(vector("both.puffin", &a));
        update.add_delete(DataFile { content_offset: Some(44), ..vector("both.puffin", &b) });
    })
    .await;
    let table = lake.commit(|update| update.remove_data(a, Removal::Whole)).await;
    let entries = live_files(&lake.fresh().await, None).await.unwrap();
    let vectors: Vec<_> = entries.iter().filter(|e| e.data_file.is_deletion_vector()).collect();
    assert_eq!(vectors.len(), 1);
    assert_eq!(vectors[0].data_file.referenced_data_file, Some(b.file_path.clone()));
    let summary = &table.metadata.current_snapshot().unwrap().summary;
    assert_eq!((summary["removed-dvs"].as_str(), summary["deleted-data-files"].as_str()), ("1", "1"));
    assert_eq!((summary["total-delete-files"].as_str(), summary["total-data-files"].as_str()), ("1", "1"));
}

#[tokio::test]
async fn a_vector_replaces_another_by_its_place_in_the_file() {
    let lake = Lake::new(3, &[]).await;
    let table = lake.commit(|update| add_all(update, &["a", "b"])).await;
    let (a, b) = (file(&table, "a").await, file(&table, "b").await);
    let old = vector("both.puffin", &a);
    let other = DataFile { content_offset: Some(44), ..vector("both.puffin", &b) };
    lake.commit(|update| [&old, &other].into_iter().for_each(|v| update.add_delete(v.clone()))).await;
    lake.commit(|update| {
        update.add_delete(DataFile { record_count: 2, ..vector("new.puffin", &a) });
        update.remove_delete(Arc::new(old.clone()));
    })
    .await;
    let entries = live_files(&lake.fresh().await, None).await.unwrap();
    let mut vectors: Vec<_> = entries.iter().filter(|e| e.data_file.is_deletion_vector()).collect();
    vectors.sort_by_key(|entry| entry.data_file.content_offset);
    assert_eq!(vectors.len(), 2);
    assert_eq!(vectors[0].data_file.record_count, 2);
    assert_eq!((vectors[1].sequence_number, vectors[1].data_file.content_offset), (Some(2), Some(44)));
}

#[tokio::test]
async fn manifests_of_other_partitions_and_contents_are_not_opened() {
    let lake = Lake::new(2, &[]).await;
    for p in 0..6 {
        lake.commit(|update| {
            update.add_data(data(&format!("f{p}"), p, 0));
            update.add_delete(equality_delete(&format!("e{p}"), p));
        })
        .await;
    }
    let target = file(&lake.table().await, "f3").await;
    let table = lake.fresh().await;
    let mut update = SnapshotUpdate::new(table.clone());
    update.remove_data(target, Removal::Whole);
    lake.counts.reset();
    let table = update.commit().await.unwrap();
    let read = lake.counts.count_where(|op, path| op == StoreOp::Get && path.ends_with("-m0.avro"));
    // The data manifest of the partition, and its delete manifest in search of vectors.
    assert_eq!(read, 2, "{:?}", lake.counts.counts());
    assert_eq!(manifests(&table).await.len(), 12, "the others are carried by reference");
}

#[tokio::test]
async fn small_manifests_are_merged_once_there_are_enough_of_them() {
    let lake = Lake::new(2, &[("commit.manifest.min-count-to-merge", "4")]).await;
    let mut counts = Vec::new();
    for i in 0..8 {
        let table = lake.commit(|update| update.add_data(data(&format!("f{i}"), i, 0))).await;
        counts.push(manifests(&table).await.len());
        assert_eq!(live(&lake.fresh().await).await.len(), i as usize + 1);
    }
    assert_eq!(counts, [1, 2, 3, 1, 2, 3, 1, 2]);
    let table = lake.fresh().await;
    let merged = manifests(&table).await;
    let oldest = merged.last().unwrap();
    let entries = entries_of(&table, oldest).await.unwrap();
    let by_status = |status| entries.iter().filter(|entry| entry.status == status).count();
    assert_eq!((by_status(EntryStatus::Added), by_status(EntryStatus::Existing)), (1, 6));
    let mut sequence_numbers: Vec<_> = entries.iter().map(|entry| entry.sequence_number.unwrap()).collect();
    sequence_numbers.sort_unstable();
    assert_eq!(sequence_numbers, (1..8).collect::<Vec<_>>());
    assert_eq!((oldest.min_sequence_number, oldest.sequence_number), (Some(1), Some(7)));
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn data_and_deletes_of_each_spec_merge_among_themselves() {
    let lake = Lake::new(2, &[("commit.manifest.min-count-to-merge", "1")]).await;
    let unpartitioned = |file: DataFile| DataFile { spec_id: 1, partition: PartitionTuple::default(), ..file };
    for i in 0..3 {
        lake.commit(|update| {
            update.add_data(data(&format!("a{i}"), i, 0));
            update.add_data(unpartitioned(data(&format!("b{i}"), i, 0)));
            update.add_delete(equality_delete(&format!("c{i}"), i));
            update.add_delete(unpartitioned(equality_delete(&format!("d{i}"), i)));
        })
        .await;
    }
    let table = lake.fresh().await;
    let mut kinds: Vec<_> = manifests(&table)
        .await
        .iter()
        .map(|m| (m.content == ManifestContent::Deletes, m.partition_spec_id, m.added_files_count))
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [(false, 0, Some(1)), (false, 1, Some(1)), (true, 0, Some(1)), (true, 1, Some(1))]);
    assert_eq!(live(&table).await.len(), 12);
}

#[tokio::test]
async fn merged_manifests_are_not_reused_when_the_head_has_changed() {
    let lake = Lake::new(2, &[("commit.manifest.min-count-to-merge", "2")]).await;
    let table = lake.commit(|update| add_all(update, &["a", "b"])).await;
    let a = file(&table, "a").await;
    lake.race(move |_, update| update.remove_data(a, Removal::Whole)).await;
    lake.commit(|update| update.add_data(data("x", 1, 0))).await;
    assert_eq!(names(&lake.fresh().await).await, ["b", "x"]);
    assert_eq!(lake.strays().await, BTreeSet::new());
}

#[tokio::test]
async fn large_additions_are_rolled_into_several_manifests() {
    let properties = [("commit.manifest.target-size-bytes", "4000"), ("commit.manifest-merge.enabled", "false")];
    let lake = Lake::new(2, &properties).await;
    let table = lake.commit(|update| (0..400).for_each(|i| update.add_data(data(&format!("f{i}"), 1, i)))).await;
    let manifests = manifests(&table).await;
    assert!((3..40).contains(&manifests.len()), "{}", manifests.len());
    assert!(manifests.iter().all(|manifest| manifest.manifest_length < 12_000));
    assert_eq!(live(&table).await.len(), 400);
}

#[tokio::test]
async fn a_manifest_whose_files_all_go_is_kept_by_the_snapshot_that_deletes_them_and_no_later_one() {
    let lake = Lake::new(2, &[("commit.manifest-merge.enabled", "false")]).await;
    let table = lake.commit(|update| update.add_data(data("a", 1, 0))).await;
    let a = file(&table, "a").await;
    let table = lake.commit(|update| update.remove_data(a, Removal::Whole)).await;
    let deleting = manifests(&table).await;
    assert_eq!((deleting.len(), deleting[0].deleted_files_count), (1, Some(1)));
    let table = lake.commit(|update| update.add_data(data("b", 1, 0))).await;
    let later = manifests(&table).await;
    assert_eq!((later.len(), later[0].deleted_files_count), (1, Some(0)));
    assert_eq!(names(&table).await, ["b"]);
}

#[tokio::test]
async fn random_commits_leave_what_a_model_says() {
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let version = random.u8(1..=3);
        let min_count = random.u32(2..6).to_string();
        let lake = Lake::new(version, &[("commit.manifest.min-count-to-merge", &min_count)]).await;
        let mut model = BTreeMap::new();
        for step in 0..25 {
            let table = if random.bool() { lake.table().await } else { lake.fresh().await };
            let mut update = SnapshotUpdate::new(table.clone());
            let now = live(&table).await;
            for i in 0..random.usize(0..3) {
                let file = data(&format!("f{step}-{i}"), random.i32(0..3), 0);
                model.insert(file.file_path.to_string(), (step, version > 1));
                update.add_data(file);
            }
            let files: Vec<_> = now.values().filter(|e| e.data_file.content == DataContent::Data).collect();
            for _ in 0..random.usize(0..2) {
                if let Some(entry) = random.choice(&files) {
                    update.remove_data(entry.data_file.clone(), Removal::Whole);
                    model.remove(&*entry.data_file.file_path);
                }
            }
            if update.is_empty() {
                continue;
            }
            update.commit().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let fresh = lake.fresh().await;
            let entries = live(&fresh).await;
            assert!(entries.keys().eq(model.keys()), "seed {seed}, step {step}");
            let total = &fresh.metadata.current_snapshot().unwrap().summary["total-data-files"];
            assert_eq!(*total, model.len().to_string(), "seed {seed}, step {step}");
            for (path, entry) in &entries {
                if let Some(then) = now.get(path) {
                    let id = |e: &ManifestEntry| (e.sequence_number, e.snapshot_id, e.data_file.first_row_id);
                    assert_eq!(id(entry), id(then), "seed {seed}, step {step}: {path}");
                }
            }
        }
        assert_eq!(lake.strays().await, BTreeSet::new(), "seed {seed}");
    }
}
