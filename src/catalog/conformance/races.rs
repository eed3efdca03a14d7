//! Another writer acts in just the moment between two operations of ours.

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Other {
    Commits,
    Drops,
    DropsAndCreates,
}

async fn act(other: Other, catalog: &dyn Catalog) {
    let t = ident("t");
    if other == Other::Commits {
        set_with_retries(catalog, &t, "theirs").await.unwrap();
        return;
    }
    catalog.drop_table(&t).await.unwrap();
    if other == Other::DropsAndCreates {
        create(catalog, &t, &[("new", "1")]).await.unwrap();
    }
}

#[tokio::test]
async fn a_writer_between_any_two_operations_of_a_commit_is_not_undone() {
    for kind in KINDS {
        for other in [Other::Commits, Other::Drops, Other::DropsAndCreates] {
            let mut n = 0;
            loop {
                let s = subject(kind).await;
                let t = ident("t");
                let base = create(&*s.catalog, &t, &[]).await.unwrap();
                let catalog = (s.reopen)();
                s.store.interrupt(n, move || async move { act(other, &*catalog).await });
                let outcome = s.catalog.commit(setting(&t, &base, "ours", "1")).await;
                let at = format!("{kind}, {other:?} before operation {n}: {outcome:?}");
                if !s.store.interrupted() {
                    break;
                }
                n += 1;
                let end = (s.reopen)().load_table(&t).await;
                match other {
                    Other::Commits => {
                        let properties = &end.expect(&at).metadata.properties;
                        assert!(properties.contains_key("theirs"), "{at}");
                        assert_eq!(properties.contains_key("ours"), outcome.is_ok(), "{at}");
                        assert!(outcome.as_ref().err().is_none_or(is_stale), "{at}");
                    }
                    Other::Drops => assert_eq!(end.unwrap_err().kind(), ErrorKind::NotFound, "{at}"),
                    Other::DropsAndCreates => {
                        let properties = &end.expect(&at).metadata.properties;
                        assert_eq!(*properties, [("new".to_string(), "1".to_string())].into(), "{at}");
                    }
                }
            }
            assert!(n >= 1, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_writer_between_any_two_operations_of_a_drop_loses_nothing_it_was_promised() {
    for kind in KINDS {
        let mut n = 0;
        loop {
            let s = subject(kind).await;
            let t = ident("t");
            create(&*s.catalog, &t, &[]).await.unwrap();
            set_with_retries(&*s.catalog, &t, "k").await.unwrap();
            let catalog = (s.reopen)();
            let (tell, told) = tokio::sync::oneshot::channel();
            s.store.interrupt(n, move || async move {
                let t = ident("t");
                let created = create(&*catalog, &t, &[("new", "1")]).await;
                let _ = tell.send(created.map(|made| made.metadata.table_uuid));
            });
            let outcome = s.catalog.drop_table(&t).await;
            if !s.store.interrupted() {
                break;
            }
            let created = told.await.unwrap();
            let at = format!("{kind}, created before operation {n}: {created:?}, drop: {outcome:?}");
            n += 1;
            outcome.expect(&at);
            let end = (s.reopen)().load_table(&t).await;
            match created {
                // Made after the drop had taken place: it must stay, and be usable.
                Ok(uuid) => {
                    let end = end.expect(&at);
                    assert_eq!(end.metadata.table_uuid, uuid, "{at}");
                    assert!(s.catalog.file_io().exists(&end.metadata_location).await.unwrap(), "{at}");
                    set_with_retries(&*(s.reopen)(), &t, "k").await.expect(&at);
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{at}");
                    assert_eq!(end.unwrap_err().kind(), ErrorKind::NotFound, "{at}");
                }
            }
        }
        assert!(n >= 1, "{kind}");
    }
}
