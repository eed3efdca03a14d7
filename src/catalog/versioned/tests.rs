use std::sync::Arc;

use super::super::conformance::{ident, metadata_at, set_with_retries, setting};
use super::super::{Catalog, FilesystemCatalog, is_stale};
use super::*;
use crate::spec::TableMetadata;

struct Lake {
    dir: tempfile::TempDir,
    catalog: FilesystemCatalog,
}

impl Lake {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let catalog = FilesystemCatalog::new("lake", path, FileIo::local(), Env::system()).unwrap();
        catalog.create_namespace(&["ns".into()], true).await.unwrap();
        Self { dir, catalog }
    }

    async fn create(&self, properties: &[(&str, &str)]) -> LoadedTable {
        let location = self.catalog.default_location(&ident("t")).unwrap();
        self.catalog.create_table(&ident("t"), metadata_at(&location, properties)).await.unwrap()
    }

    async fn set(&self, key: &str) -> LoadedTable {
        set_with_retries(&self.catalog, &ident("t"), key).await.unwrap()
    }

    async fn version(&self) -> u64 {
        let loaded = self.catalog.load_table(&ident("t")).await.unwrap();
        version_of_name(loaded.metadata_location.rsplit('/').next().unwrap()).unwrap()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("ns/t/metadata").join(name)
    }
}

#[tokio::test]
async fn the_hint_is_only_a_hint() {
    let lake = Lake::new().await;
    lake.create(&[]).await;
    for i in 0..20 {
        lake.set(&i.to_string()).await;
    }
    assert_eq!(std::fs::read(lake.file(HINT)).unwrap(), b"21");
    for hint in ["21", "1", "3", "20", "999", "", "x", "-1", " 7\n", "18446744073709551615", "\u{fffd}"] {
        std::fs::write(lake.file(HINT), hint).unwrap();
        assert_eq!(lake.version().await, 21, "hint {hint:?}");
    }
    std::fs::write(lake.file(HINT), [0xff, 0xfe]).unwrap();
    assert_eq!(lake.version().await, 21);
    std::fs::remove_file(lake.file(HINT)).unwrap();
    std::fs::create_dir(lake.file(HINT)).unwrap();
    assert_eq!(lake.version().await, 21);
    lake.set("written although the hint cannot be").await;
    assert_eq!(lake.version().await, 22);
}

#[tokio::test]
async fn other_files_in_the_folder_are_no_versions() {
    let lake = Lake::new().await;
    lake.create(&[]).await;
    std::fs::remove_file(lake.file(HINT)).unwrap();
    for name in ["v9.metadata.json#1", "v9.metadata.json.tmp", "v09.metadata.json", "v9.avro", ".v9.metadata.json.crc"]
    {
        std::fs::write(lake.file(name), "{").unwrap();
    }
    std::fs::create_dir(lake.file("v9")).unwrap();
    assert_eq!(lake.version().await, 1);
}

#[tokio::test]
async fn both_gzip_spellings_are_read_and_never_stand_beside_a_plain_file() {
    for name in ["v2.gz.metadata.json", "v2.metadata.json.gz"] {
        let lake = Lake::new().await;
        let first = lake.create(&[]).await;
        lake.set("k").await;
        let plain = lake.file("v2.metadata.json");
        let metadata = TableMetadata::parse(&std::fs::read(&plain).unwrap(), "").unwrap();
        std::fs::write(lake.file(name), metadata.to_gzip_bytes().unwrap()).unwrap();
        let both = lake.catalog.load_table(&ident("t")).await.unwrap_err();
        assert_eq!(both.kind(), ErrorKind::DataInvalid);
        assert!(both.message().contains(name) && both.message().contains("v2.metadata.json"), "{both}");
        std::fs::remove_file(&plain).unwrap();
        assert_eq!(lake.version().await, 2);
        let stale = lake.catalog.commit(setting(&ident("t"), &first, "x", "1")).await.unwrap_err();
        assert!(is_stale(&stale), "{stale}");
        assert!(!plain.exists());
        std::fs::remove_file(lake.file(HINT)).unwrap();
        assert_eq!(lake.version().await, 2);
        lake.set("on top").await;
        assert_eq!(lake.version().await, 3);
    }
}

#[tokio::test]
async fn what_the_layout_cannot_hold_is_unsupported() {
    let lake = Lake::new().await;
    let t = ident("t");
    let elsewhere = lake.dir.path().join("elsewhere").to_str().unwrap().to_string();
    let e = lake.catalog.create_table(&t, metadata_at(&elsewhere, &[])).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    let here = lake.catalog.default_location(&t).unwrap();
    let e = lake.catalog.create_table(&t, metadata_at(&here, &[("write.metadata.path", "/m")])).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    assert!(!lake.dir.path().join("ns/t").exists(), "a refusal leaves nothing");
    let base = lake.create(&[]).await;
    let e = lake.catalog.commit(setting(&t, &base, "write.metadata.path", "/m")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    let e = lake.catalog.rename_table(&t, &ident("u")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    assert!(!lake.catalog.allows_location());
    assert_eq!(lake.version().await, 1);
}

#[tokio::test]
async fn an_interrupted_drop_is_a_drop_to_everyone() {
    let lake = Lake::new().await;
    lake.create(&[]).await;
    lake.set("k").await;
    std::fs::write(lake.file("v3.metadata.json"), format!("{{\"{TOMBSTONE_KEY}\":\"x\"}}")).unwrap();
    for _ in 0..2 {
        let e = lake.catalog.load_table(&ident("t")).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        assert_eq!(lake.catalog.list_tables(&["ns".into()]).await.unwrap(), []);
        assert!(!lake.catalog.namespace_exists(&["ns".into(), "t".into()]).await.unwrap());
        assert_eq!(lake.catalog.drop_table(&ident("t")).await.unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::remove_file(lake.file("v1.metadata.json")).ok();
        std::fs::remove_file(lake.file(HINT)).ok();
    }
    let bytes = std::fs::read(lake.file("v3.metadata.json")).unwrap();
    let e = TableMetadata::parse(&bytes, "v3.metadata.json").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DataInvalid, "readers that do not know the tombstone must not take it for a table");
    lake.create(&[]).await;
    assert_eq!(lake.version().await, 4);
    lake.catalog.drop_table(&ident("t")).await.unwrap();
    assert!(!lake.dir.path().join("ns/t").exists(), "the next drop takes the rest along");
}

#[tokio::test]
async fn folders_of_dropped_tables_are_no_namespaces() {
    let lake = Lake::new().await;
    let t = lake.create(&[]).await;
    let io = lake.catalog.file_io();
    io.write(&join(&t.metadata.location, "data/x"), Bytes::from("1")).await.unwrap();
    lake.catalog.drop_table(&ident("t")).await.unwrap();
    assert!(lake.dir.path().join("ns/t/data/x").exists());
    assert_eq!(lake.catalog.list_namespaces(Some(&["ns".into()])).await.unwrap(), Vec::<Vec<String>>::new());
    let e = lake.catalog.drop_namespace(&["ns".into()]).await.unwrap_err();
    assert!(e.message().contains("not empty"), "{e}");
    lake.create(&[]).await;
}

#[tokio::test]
async fn golden_tables_are_a_warehouse_where_they_were_written() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden");
    let io = FileIo::builder().with_location_map("file:/warehouse/golden", golden).unwrap().build();
    let catalog = FilesystemCatalog::new("golden", golden, io.clone(), Env::system()).unwrap();
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{golden}/index.json")).unwrap()).unwrap();
    let mut versioned = 0;
    for entry in index.as_array().unwrap() {
        let (name, current) = (entry["table"].as_str().unwrap(), entry["current_metadata"].as_str().unwrap());
        let t = TableIdent::new(Vec::<String>::new(), name);
        if version_of_name(current).is_none() {
            assert_eq!(catalog.load_table(&t).await.unwrap_err().kind(), ErrorKind::NotFound, "{name}");
            continue;
        }
        versioned += 1;
        let loaded = catalog.load_table(&t).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let recorded = format!("{}/metadata/{current}", entry["location"].as_str().unwrap());
        assert_eq!(loaded.metadata_location, recorded, "{name}");
        assert!(io.exists(&recorded).await.unwrap());
        assert_eq!(
            loaded.metadata.current_snapshot_id,
            entry["current_snapshot_id"].as_i64().filter(|id| *id != -1),
            "{name}"
        );
        for file in io.list(&join(&loaded.metadata.location, "data")).await.unwrap() {
            assert_eq!(io.size(&file.location).await.unwrap(), file.size, "{name}");
        }
    }
    assert_eq!(catalog.list_tables(&[]).await.unwrap().len(), versioned);
}

#[tokio::test]
async fn a_copied_table_is_read_and_not_written_until_it_is_mapped() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden/orders_v2_mor");
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("wh/orders_v2_mor");
    std::fs::create_dir_all(copy.join("metadata")).unwrap();
    for file in std::fs::read_dir(format!("{golden}/metadata")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join("metadata").join(file.file_name())).unwrap();
    }
    let warehouse = dir.path().join("wh").to_str().unwrap().to_string();
    let t = TableIdent::new(Vec::<String>::new(), "orders_v2_mor");
    let open = |io| Arc::new(FilesystemCatalog::new("c", &warehouse, io, Env::system()).unwrap());
    let unmapped = open(FileIo::local());
    let base = unmapped.load_table(&t).await.unwrap();
    let e = unmapped.commit(setting(&t, &base, "k", "v")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("map"), "{e}");
    let io = FileIo::builder().with_location_map("/warehouse/golden", &warehouse).unwrap().build();
    let mapped = open(io);
    let done = set_with_retries(&*mapped, &t, "k").await.unwrap();
    let log = &done.metadata.metadata_log.last().unwrap().1;
    assert!(log.starts_with("file:///warehouse/golden/orders_v2_mor/metadata/v"), "recorded as the table does: {log}");
}

#[test]
fn reads_all_three_spellings_and_nothing_else() {
    for (name, number) in [
        ("v1.metadata.json", 1),
        ("v12.gz.metadata.json", 12),
        ("v0.metadata.json.gz", 0),
        ("v18446744073709551615.metadata.json", u64::MAX),
    ] {
        assert_eq!(version_of_name(name), Some(number), "{name}");
    }
    for name in [
        "version-hint.text",
        "v.metadata.json",
        "v01.metadata.json",
        "v+1.metadata.json",
        "v1.metadata.json#1",
        "v1.metadata.json.tmp",
        "v18446744073709551616.metadata.json",
        "00001-x.metadata.json",
        "vi.avro",
    ] {
        assert_eq!(version_of_name(name), None, "{name}");
    }
}

#[test]
fn a_tombstone_is_told_from_metadata() {
    assert!(is_tombstone(br#"{"calve-dropped-table": "x"}"#));
    assert!(!is_tombstone(br#"{"format-version": 2}"#));
    assert!(!is_tombstone(b"{\"calve-dropped"));
    assert!(!is_tombstone(b""));
}
