use std::path::Path;

use super::*;
use crate::catalog::conformance::{set_with_retries, setting};

fn golden(table: &str) -> String {
    format!("{}/fixtures/golden/{table}", env!("CARGO_MANIFEST_DIR"))
}

fn copy_metadata(table: &str, to: &Path) {
    std::fs::create_dir_all(to.join("metadata")).unwrap();
    for file in std::fs::read_dir(format!("{}/metadata", golden(table))).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join("metadata").join(file.file_name())).unwrap();
    }
}

async fn open(location: &str) -> Result<Arc<StaticCatalog>> {
    let io = FileIo::local();
    static_table(TableIdent::new(["public"], "t"), location, io, Env::system()).await
}

#[tokio::test]
async fn a_pointed_table_is_read_at_its_highest_number_and_is_read_only() {
    let t = open(&golden("pyice_v2")).await.unwrap();
    let loaded = t.load_table(t.ident()).await.unwrap();
    assert!(loaded.metadata_location.contains("/00006-8593d7c3-3b98-47d0-a3fe-b6c2cfeb5a79.metadata.json"));
    let e = t.commit(setting(t.ident(), &loaded, "k", "v")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("catalog it belongs to must commit"), "{e}");
    assert_eq!(t.read_only_reason(), Some(OTHERS_COMMIT));
    let by_file = open(&loaded.metadata_location).await.unwrap();
    assert_eq!(by_file.load_table(t.ident()).await.unwrap().metadata, loaded.metadata);
    assert!(by_file.read_only_reason().is_some());
}

#[tokio::test]
async fn two_files_of_the_highest_number_are_an_error_that_names_both() {
    let dir = tempfile::tempdir().unwrap();
    copy_metadata("pyice_v2", dir.path());
    let metadata = dir.path().join("metadata");
    let first = "00006-8593d7c3-3b98-47d0-a3fe-b6c2cfeb5a79.metadata.json";
    let second = "00006-00000000-0000-0000-0000-000000000000.metadata.json";
    std::fs::copy(metadata.join(first), metadata.join(second)).unwrap();
    let e = open(dir.path().to_str().unwrap()).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DataInvalid);
    assert!(e.message().contains(first) && e.message().contains(second), "{e}");
}

#[tokio::test]
async fn a_versioned_table_is_followed_and_an_older_file_is_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    copy_metadata("orders_v2_mor", &root.join("orders_v2_mor"));
    let io = FileIo::builder().with_location_map("file:/warehouse/golden", root.to_str().unwrap()).unwrap().build();
    let ident = TableIdent::new(["public"], "t");
    let open = |location: String| {
        let (ident, io) = (ident.clone(), io.clone());
        async move { static_table(ident, &location, io, Env::system()).await }
    };
    let folder = root.join("orders_v2_mor").to_str().unwrap().to_string();
    let by_folder = open(folder.clone()).await.unwrap();
    let old = by_folder.load_table(&ident).await.unwrap();
    let newest = open(old.metadata_location.clone()).await.unwrap();
    assert_eq!(newest.read_only_reason(), None);
    let new = set_with_retries(&*newest, &ident, "k").await.unwrap();
    assert_eq!(by_folder.load_table(&ident).await.unwrap().metadata, new.metadata);
    let pinned = open(old.metadata_location.clone()).await.unwrap();
    assert!(pinned.read_only_reason().unwrap().contains("is newer than"));
    let loaded = pinned.load_table(&ident).await.unwrap();
    assert_eq!(loaded.metadata, old.metadata);
    let e = pinned.commit(setting(&ident, &loaded, "k", "v")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    assert_eq!(by_folder.drop_table(&ident).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(by_folder.list_tables(&["public".into()]).await.unwrap(), std::slice::from_ref(&ident));
    assert_eq!(by_folder.list_namespaces(None).await.unwrap(), [vec!["public".to_string()]]);
}

#[tokio::test]
async fn a_place_without_metadata_is_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap();
    for location in [here.to_string(), format!("{here}/nothing"), format!("{here}/metadata/v1.metadata.json")] {
        let e = open(&location).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
        assert!(e.message().contains(here), "{e}");
    }
    assert_eq!(open("s3://bucket/t").await.unwrap_err().kind(), ErrorKind::Unsupported);
}
