use super::*;

#[tokio::test]
async fn tables_are_created_found_listed_and_dropped() {
    for kind in KINDS {
        let s = subject(kind).await;
        let (c, t) = (&*s.catalog, ident("t"));
        assert_eq!(c.load_table(&t).await.unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        assert_eq!(c.drop_table(&t).await.unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        let made = create(c, &t, &[("k", "v")]).await.unwrap();
        assert_eq!(create(c, &t, &[]).await.unwrap_err().kind(), ErrorKind::AlreadyExists, "{kind}");
        let loaded = (s.reopen)().load_table(&t).await.unwrap();
        assert_eq!(loaded.metadata, made.metadata, "{kind}");
        assert_eq!(loaded.metadata_location, made.metadata_location, "{kind}");
        assert_eq!(loaded.metadata.properties["k"], "v");
        create(c, &ident("a b%20#1?"), &[]).await.unwrap();
        let names: Vec<_> = c.list_tables(&["ns".into()]).await.unwrap().into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["a b%20#1?", "t"], "{kind}");
        let data = format!("{}/data/x.parquet", loaded.metadata.location);
        c.file_io().write(&data, "rows".into()).await.unwrap();
        let dropped = c.drop_table(&t).await.unwrap();
        assert_eq!(dropped.location, loaded.metadata.location);
        assert!(dropped.message.contains(&dropped.location) && dropped.message.contains("stay"), "{}", dropped.message);
        assert!(c.file_io().exists(&data).await.unwrap(), "{kind}: a drop without PURGE keeps the data");
        let left = c.file_io().list(&format!("{}/metadata", dropped.location)).await.unwrap();
        assert_eq!(left, [], "{kind}");
        assert_eq!(c.load_table(&t).await.unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        assert_eq!(c.list_tables(&["ns".into()]).await.unwrap().len(), 1, "{kind}");
        assert_eq!(c.list_namespaces(Some(&["ns".into()])).await.unwrap(), Vec::<Vec<String>>::new(), "{kind}");
        let again = create(c, &t, &[]).await.unwrap();
        assert_ne!(again.metadata.table_uuid, loaded.metadata.table_uuid, "{kind}");
    }
}

#[tokio::test]
async fn commits_move_on_from_the_current_state_only() {
    for kind in KINDS {
        let s = subject(kind).await;
        let (c, t) = (&*s.catalog, ident("t"));
        let first = create(c, &t, &[]).await.unwrap();
        let second = c.commit(setting(&t, &first, "a", "1")).await.unwrap();
        assert_ne!(first.metadata_location, second.metadata_location);
        assert_eq!(second.metadata.metadata_log.last().unwrap().1, first.metadata_location, "{kind}");
        let stale = c.commit(setting(&t, &first, "b", "1")).await.unwrap_err();
        assert!(is_stale(&stale) && stale.kind() == ErrorKind::Conflict, "{kind}: {stale}");
        let third = c.commit(setting(&t, &second, "b", "1")).await.unwrap();
        let now = (s.reopen)().load_table(&t).await.unwrap();
        assert_eq!((&now.metadata, &now.metadata_location), (&third.metadata, &third.metadata_location), "{kind}");
        assert_eq!(now.metadata.properties, [("a", "1"), ("b", "1")].map(|(k, v)| (k.into(), v.into())).into());
        let missing = c.commit(setting(&ident("missing"), &third, "c", "1")).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound, "{kind}: {missing}");
    }
}

#[tokio::test]
async fn a_dropped_table_does_not_come_back_by_a_late_commit() {
    for kind in KINDS {
        let s = subject(kind).await;
        let (c, t) = (&*s.catalog, ident("t"));
        let old = create(c, &t, &[]).await.unwrap();
        c.drop_table(&t).await.unwrap();
        let late = c.commit(setting(&t, &old, "a", "1")).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::NotFound, "{kind}: {late}");
        let new = create(c, &t, &[]).await.unwrap();
        let late = c.commit(setting(&t, &old, "a", "1")).await.unwrap_err();
        assert!(matches!(late.kind(), ErrorKind::NotFound | ErrorKind::Conflict), "{kind}: {late}");
        assert_eq!(c.load_table(&t).await.unwrap().metadata, new.metadata, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_commits_all_land_once() {
    const TASKS: usize = 8;
    const EACH: usize = 6;
    for kind in KINDS {
        let s = subject(kind).await;
        let t = ident("t");
        create(&*s.catalog, &t, &[]).await.unwrap();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (c, t) = ((s.reopen)(), t.clone());
                tokio::spawn(async move {
                    let mut locations = Vec::new();
                    for i in 0..EACH {
                        let done = set_with_retries(&*c, &t, &format!("{task}-{i}")).await.unwrap();
                        locations.push(done.metadata_location);
                    }
                    locations
                })
            })
            .collect();
        let mut won = Vec::new();
        for task in tasks {
            won.extend(task.await.unwrap());
        }
        won.sort();
        won.dedup();
        assert_eq!(won.len(), TASKS * EACH, "{kind}: two commits took one version");
        let end = s.catalog.load_table(&t).await.unwrap();
        assert_eq!(end.metadata.properties.len(), TASKS * EACH, "{kind}: a commit was lost");
        assert_eq!(end.metadata.metadata_log.len(), TASKS * EACH, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_creates_and_drops_leave_one_table_or_none() {
    for kind in KINDS {
        let s = subject(kind).await;
        let t = ident("t");
        for round in 0..10 {
            let creates: Vec<_> = (0..4)
                .map(|_| {
                    let (c, t) = ((s.reopen)(), t.clone());
                    tokio::spawn(async move { create(&*c, &t, &[]).await })
                })
                .collect();
            let mut made = Vec::new();
            for task in creates {
                match task.await.unwrap() {
                    Ok(loaded) => made.push(loaded),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{kind}, {round}: {e}"),
                }
            }
            assert_eq!(made.len(), 1, "{kind}, {round}");
            assert_eq!(s.catalog.load_table(&t).await.unwrap().metadata, made[0].metadata);
            let (c, d) = ((s.reopen)(), (s.reopen)());
            let (t1, t2, t3) = (t.clone(), t.clone(), t.clone());
            let commit = tokio::spawn(async move { set_with_retries(&*c, &t1, "k").await });
            let drops: Vec<_> = [d, (s.reopen)()]
                .into_iter()
                .zip([t2, t3])
                .map(|(d, t)| tokio::spawn(async move { d.drop_table(&t).await }))
                .collect();
            match commit.await.unwrap() {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "{kind}, {round}: {e}"),
            }
            let mut dropped = 0;
            for task in drops {
                match task.await.unwrap() {
                    Ok(_) => dropped += 1,
                    Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "{kind}, {round}: {e}"),
                }
            }
            // A drop that started from the table which another one then removed may say that it dropped it, too.
            assert!(dropped >= 1, "{kind}, {round}");
            let gone = s.catalog.load_table(&t).await;
            assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound, "{kind}, {round}");
        }
    }
}

#[tokio::test]
async fn metadata_is_gzipped_and_trimmed_as_the_properties_say() {
    for kind in KINDS {
        let s = subject(kind).await;
        let (c, t) = (&*s.catalog, ident("t"));
        let properties = [
            ("write.metadata.compression-codec", "gzip"),
            ("write.metadata.delete-after-commit.enabled", "true"),
            ("write.metadata.previous-versions-max", "3"),
        ];
        create(c, &t, &properties).await.unwrap();
        for i in 0..8 {
            set_with_retries(c, &t, &format!("k{i}")).await.unwrap();
        }
        let now = (s.reopen)().load_table(&t).await.unwrap();
        assert_eq!(now.metadata.properties.len(), 3 + 8, "{kind}");
        let bytes = c.file_io().read(&now.metadata_location).await.unwrap();
        assert_eq!(bytes[..2], [0x1f, 0x8b], "{kind}");
        assert!(now.metadata_location.ends_with(".gz.metadata.json"), "{kind}: {}", now.metadata_location);
        let files = c.file_io().list(&format!("{}/metadata", now.metadata.location)).await.unwrap();
        let files = files.iter().filter(|f| f.location.ends_with(".metadata.json")).count();
        assert_eq!(files, 4, "{kind}: the current file and three before it");
        for (_, file) in &now.metadata.metadata_log {
            assert!(c.file_io().exists(file).await.unwrap(), "{kind}: {file}");
        }
        let base = now.clone();
        let bad = c.commit(setting(&t, &base, "write.metadata.compression-codec", "zstd")).await.unwrap_err();
        assert_eq!(bad.kind(), ErrorKind::InvalidInput, "{kind}");
        let plain = c.commit(setting(&t, &base, "write.metadata.compression-codec", "none")).await.unwrap();
        c.commit(setting(&t, &plain, "x", "1")).await.unwrap();
        let now = (s.reopen)().load_table(&t).await.unwrap();
        assert!(!now.metadata_location.contains(".gz."), "{kind}: {}", now.metadata_location);
    }
}
