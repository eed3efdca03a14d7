use std::sync::Arc;

use object_store::memory::InMemory;
use tempfile::TempDir;

use super::*;

fn dir() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().to_str().unwrap().to_string();
    (dir, path)
}

const ODD_NAMES: [&str; 14] = [
    "a%20b",
    "100%",
    "a b",
    "a+b=c",
    "x#y",
    "what?",
    "s=with+space",
    "k=a%2Fb",
    "ünï/日本",
    "%2E%2E",
    "a\\b",
    "q'\"`",
    "[~^|]{}<>",
    "tail ",
];

#[tokio::test]
async fn odd_names_are_the_same_bytes_on_disk_and_in_the_store() {
    let (_guard, root) = dir();
    let io = FileIo::local();
    for name in ODD_NAMES {
        let location = format!("file:{root}/{name}/f {name}");
        io.write(&location, Bytes::from(name)).await.unwrap();
        let on_disk = std::path::PathBuf::from(format!("{root}/{name}/f {name}"));
        assert_eq!(std::fs::read(&on_disk).unwrap(), name.as_bytes(), "{name}");
        assert_eq!(io.read(&location).await.unwrap(), name, "{name}");
        let mut upload = io.upload(&format!("file://{root}/{name}/up")).await.unwrap();
        upload.write(Bytes::from("abc")).await.unwrap();
        assert_eq!(upload.finish().await.unwrap(), 3);
        std::fs::write(format!("{root}/{name}/other"), "written by another program").unwrap();
        assert_eq!(io.size(&format!("{root}/{name}/other")).await.unwrap(), 26);
        let mut listed: Vec<_> =
            io.list(&format!("file:{root}/{name}")).await.unwrap().into_iter().map(|f| f.location).collect();
        listed.sort();
        let mut want: Vec<_> = [format!("f {name}"), "up".to_string(), "other".to_string()]
            .map(|f| format!("file:{root}/{name}/{f}"))
            .into();
        want.sort();
        assert_eq!(listed, want);
        let outcome = io.delete_all(listed).await;
        assert!(outcome.iter().all(|(_, r)| r.is_ok()), "{outcome:?}");
        assert!(io.list(&format!("{root}/{name}")).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_name_of_an_unfinished_file_is_refused_clearly() {
    let (_guard, root) = dir();
    std::fs::write(format!("{root}/x.parquet#12"), "1").unwrap();
    let e = FileIo::local().read(&format!("file:{root}/x.parquet#12")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("# and digits"), "{e}");
}

#[tokio::test]
async fn create_takes_a_name_once_and_overwrites_nothing() {
    let (_guard, root) = dir();
    let io = FileIo::local();
    let location = format!("{root}/t/metadata/v1.metadata.json");
    let racers = (0..16).map(|i| {
        let (io, location) = (io.clone(), location.clone());
        tokio::spawn(async move { io.create(&location, Bytes::from(format!("{i:010000}"))).await.map(|()| i) })
    });
    let mut winners = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        match racer.await.unwrap() {
            Ok(i) => winners.push(i),
            Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
        }
    }
    assert_eq!(winners.len(), 1);
    let text = io.read(&location).await.unwrap();
    assert_eq!(text, format!("{:010000}", winners[0]));
    let (folders, files) = io.list_names(&format!("{root}/t/metadata")).await.unwrap();
    assert_eq!((folders.len(), files), (0, vec!["v1.metadata.json".to_string()]));
    assert_eq!(std::fs::read_dir(format!("{root}/t/metadata")).unwrap().count(), 1, "no staged file is left");
}

#[tokio::test]
async fn maps_apply_to_every_operation() {
    let (_guard, root) = dir();
    let io = FileIo::builder().with_location_map("file:/warehouse/golden", &root).unwrap().build();
    let location = "file:/warehouse/golden/t/data/x";
    io.write(location, Bytes::from("1")).await.unwrap();
    assert_eq!(std::fs::read(format!("{root}/t/data/x")).unwrap(), b"1");
    assert_eq!(io.read("file:///warehouse/golden/t/data/x").await.unwrap(), "1");
    io.create("/warehouse/golden/t/data/y", Bytes::from("2")).await.unwrap();
    let mut files = io.list("file:///warehouse/golden/t").await.unwrap();
    files.sort_by(|a, b| a.location.cmp(&b.location));
    let names: Vec<_> = files.iter().map(|f| f.location.as_str()).collect();
    assert_eq!(names, ["file:///warehouse/golden/t/data/x", "file:///warehouse/golden/t/data/y"]);
    assert!(io.same_object(location, &format!("{root}/t/data/x")).unwrap());
    assert!(!io.same_object(location, &format!("{root}/t/data/y")).unwrap());
    io.delete(location).await.unwrap();
    assert!(!io.exists(location).await.unwrap());
    assert!(io.exists(names[1]).await.unwrap());
}

#[tokio::test]
async fn schemes_pick_stores_and_unknown_ones_are_unsupported() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let io = FileIo::builder()
        .with_store("s3://b1", Arc::clone(&bucket))
        .with_store("memory", Arc::new(InMemory::new()))
        .build();
    io.write("s3://b1/k/x", Bytes::from("1")).await.unwrap();
    assert_eq!(bucket.get(&Path::from("k/x")).await.unwrap().bytes().await.unwrap(), "1");
    io.write("memory://a/x", Bytes::from("a")).await.unwrap();
    io.write("memory://b/x", Bytes::from("b")).await.unwrap();
    assert_eq!(io.read("memory://a/x").await.unwrap(), "a");
    assert_eq!(io.resolve_location("s3://b1/k/x").unwrap().store_url, "s3://b1");
    assert_eq!(io.resolve_location("memory://a/x").unwrap().path.as_ref(), "a/x");
    let e = io.read("s3://b2/k/x").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("s3:"), "{e}");
    let e = io.read("abfss://u:secret@acc/x?sig=hidden").await.unwrap_err();
    assert!(!e.to_string().contains("hidden") && !e.to_string().contains("secret"), "{e}");
}

#[tokio::test]
async fn missing_and_short_files_are_told_apart() {
    let (_guard, root) = dir();
    let io = FileIo::local();
    let location = format!("file://{root}/x");
    assert_eq!(io.read(&location).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!io.exists(&location).await.unwrap());
    io.delete(&location).await.unwrap();
    io.write(&location, Bytes::from("0123456789")).await.unwrap();
    assert_eq!(io.read_range(&location, 2..5).await.unwrap(), "234");
    assert!(io.read_range(&location, 8..12).await.is_err());
    assert!(io.list(&format!("{root}/nothing")).await.unwrap().is_empty());
    assert_eq!(io.list_names(&format!("{root}/nothing")).await.unwrap(), (vec![], vec![]));
    let c = io.metrics().counts();
    assert_eq!((c.writes, c.written_bytes, c.deletes, c.lists), (1, 10, 1, 2));
    assert!(c.reads >= 1 && c.read_bytes >= 3);
}

#[tokio::test]
async fn large_uploads_go_in_parts_and_vanish_when_given_up() {
    let (_guard, root) = dir();
    let io = FileIo::local();
    let location = format!("file://{root}/big");
    let piece = Bytes::from(vec![7u8; 3 << 20]);
    let mut upload = io.upload(&location).await.unwrap();
    for _ in 0..7 {
        upload.write(piece.clone()).await.unwrap();
    }
    assert!(!io.exists(&location).await.unwrap(), "visible before it is finished");
    assert_eq!(upload.finish().await.unwrap(), 21 << 20);
    assert_eq!(io.size(&location).await.unwrap(), 21 << 20);
    assert!(io.read(&location).await.unwrap().iter().all(|b| *b == 7));
    for drop_it in [true, false] {
        let gone = format!("file://{root}/gone/{drop_it}");
        let mut upload = io.upload(&gone).await.unwrap();
        for _ in 0..4 {
            upload.write(piece.clone()).await.unwrap();
        }
        if drop_it {
            drop(upload);
        } else {
            upload.abort().await.unwrap();
        }
        assert!(!io.exists(&gone).await.unwrap());
    }
    for _ in 0..100 {
        if std::fs::read_dir(format!("{root}/gone")).unwrap().count() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("staged files are left");
}

#[tokio::test]
async fn folders_are_made_found_and_removed_only_when_empty() {
    let (_guard, root) = dir();
    for (io, base) in [
        (FileIo::local(), format!("file://{root}")),
        (FileIo::builder().with_store("memory", Arc::new(InMemory::new())).build(), "memory:///w".to_string()),
    ] {
        let ns = join(&base, "a/b");
        assert!(!io.dir_exists(&ns).await.unwrap());
        io.create_dir(&ns).await.unwrap();
        io.create_dir(&ns).await.unwrap();
        assert!(io.dir_exists(&ns).await.unwrap());
        io.write(&join(&ns, "f"), Bytes::from("1")).await.unwrap();
        assert_eq!(io.remove_dir(&ns).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        io.prune_empty_dirs(&ns).await;
        assert!(io.exists(&join(&ns, "f")).await.unwrap());
        io.delete(&join(&ns, "f")).await.unwrap();
        io.remove_dir(&ns).await.unwrap();
        assert!(!io.dir_exists(&ns).await.unwrap());
    }
}
