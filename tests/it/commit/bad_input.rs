//! Damaged files and impossible statements: an error that says where, and nothing left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use calve::maintenance::reachable_files;
use calve::scan::{live_files, plan_scan};
use calve::spec::{DataContent, DataFile, FileFormat, PartitionKey, PartitionTuple};
use calve::transaction::SnapshotUpdate;
use calve::{Error, ErrorKind};

use crate::support::Lake;

fn files_below(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { _ = found.insert(path) }
    }
    found
}

fn assert_no_panic(error: &Error, what: &str) {
    let text = error.to_string();
    assert!(!text.contains("panic"), "{what}: {text}");
    assert_ne!(error.kind(), ErrorKind::Internal, "{what}: {text}");
}

/// What can happen to a file of `length` bytes.
///
/// A reader of vectors leaves the end of a Puffin file alone: `tail_unread`.
fn damages(bytes: &[u8], tail_unread: bool, random: &mut fastrand::Rng) -> Vec<(String, Vec<u8>, bool)> {
    let length = bytes.len();
    let mut damages = Vec::new();
    for (kept, near_end) in [
        (0, false),
        (1, false),
        (4, false),
        (16, false),
        (length / 2, true),
        (length.saturating_sub(9), true),
        (length - 1, true),
    ] {
        let must_fail = !(near_end && tail_unread);
        damages.push((format!("cut to {kept} of {length}"), bytes[..kept].to_vec(), must_fail));
    }
    damages.push(("overwritten by text".to_string(), vec![b'x'; length], true));
    for _ in 0..3 {
        let at = random.usize(..length);
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << random.u8(..8);
        damages.push((format!("bit flipped at {at}"), flipped, false));
    }
    damages
}

const DAMAGED: &[(&str, &str)] = &[
    ("orders_v3_dv", "order_id % 7 = 3"),
    ("orders_v2_mor", "order_id % 7 = 3"),
    ("orders_v2_mor_partgran", "order_id % 7 = 3"),
    ("v1_to_v2", "order_id % 4 = 0"),
    ("meta_gzip", "id % 2 = 1"),
];

/// The files that a scan of the current snapshot needs, by what they are.
async fn needed(lake: &Lake, name: &str) -> BTreeMap<&'static str, BTreeSet<String>> {
    let table = lake.table(name).await;
    let reached = reachable_files(&table).await.unwrap();
    let head = table.metadata.current_snapshot().unwrap();
    let mut needed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for task in plan_scan(&table, None, &calve::expr::Predicate::AlwaysTrue).await.unwrap().tasks {
        needed.entry("data").or_default().insert(task.data_file.file_path.to_string());
        for delete in task.deletes.iter() {
            needed.entry("deletes").or_default().insert(delete.file.file_path.to_string());
        }
    }
    assert!(!live_files(&table, None).await.unwrap().is_empty());
    let id = head.snapshot_id.to_string();
    let lists = reached.manifest_lists.into_iter().filter(|list| list.contains(&id)).collect();
    needed.insert("list", lists);
    needed.insert("metadata", [table.metadata_location.clone()].into());
    needed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_gives_an_error_that_names_it_and_leaves_nothing() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut failures = Vec::new();
    for (name, condition) in DAMAGED {
        let lake = Lake::new().await;
        lake.copy_golden(name);
        let dir = lake.dir.path().join("default").join(name);
        for (kind, locations) in needed(&lake, name).await {
            for location in locations.iter().take(3) {
                let path = dir.join(location.split(&format!("/{name}/")).last().unwrap());
                let file = path.file_name().unwrap().to_str().unwrap().to_string();
                let intact = fs::read(&path).unwrap();
                for (damage, bytes, must_fail) in damages(&intact, file.ends_with(".puffin"), &mut random) {
                    let before = files_below(&dir);
                    fs::write(&path, &bytes).unwrap();
                    // A session of its own, with nothing cached.
                    let session = Lake::at(lake.dir.path()).await;
                    let mut statements = vec![format!("SELECT * FROM {name}")];
                    for mode in ["merge-on-read", "copy-on-write"] {
                        statements
                            .push(format!("SET calve.delete_mode = '{mode}'; DELETE FROM {name} WHERE {condition}"));
                    }
                    for statement in statements {
                        let what = format!("{name}, {kind} {file} {damage}: {statement}");
                        match session.sql(&statement).await {
                            Ok(_) if must_fail => failures.push(format!("{what}: no error")),
                            Ok(_) => {}
                            Err(error) => {
                                assert_no_panic(&error, &what);
                                if must_fail && !error.to_string().contains(&file) {
                                    failures.push(format!("{what}: does not name the file: {error}"));
                                }
                                if must_fail && error.kind() != ErrorKind::DataInvalid {
                                    failures.push(format!("{what}: is no invalid data: {error}"));
                                }
                            }
                        }
                        let now = files_below(&dir);
                        if must_fail && now != before {
                            failures.push(format!("{what}: left {} files", now.difference(&before).count()));
                        }
                        // A flipped bit may go unnoticed, and then the statement has its effect.
                        for new in now.difference(&before) {
                            fs::remove_file(new).unwrap();
                        }
                        fs::write(dir.join("metadata/version-hint.text"), "1").unwrap();
                    }
                }
                fs::write(&path, &intact).unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test]
async fn a_missing_file_is_named() {
    for (name, condition) in DAMAGED {
        let lake = Lake::new().await;
        lake.copy_golden(name);
        let dir = lake.dir.path().join("default").join(name);
        for (kind, locations) in needed(&lake, name).await {
            if kind == "metadata" {
                continue;
            }
            let location = locations.iter().next().unwrap();
            let path = dir.join(location.split(&format!("/{name}/")).last().unwrap());
            let file = path.file_name().unwrap().to_str().unwrap().to_string();
            let intact = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let before = files_below(&dir);
            let session = Lake::at(lake.dir.path()).await;
            for statement in [format!("SELECT * FROM {name}"), format!("DELETE FROM {name} WHERE {condition}")] {
                let error = session.sql(&statement).await.unwrap_err();
                assert!(error.to_string().contains(&file), "{statement}, {kind} {file}: {error}");
                assert_no_panic(&error, &statement);
                assert_eq!(files_below(&dir), before, "{statement}");
            }
            fs::write(&path, &intact).unwrap();
        }
    }
}

#[tokio::test]
async fn a_version_hint_is_only_a_hint() {
    let lake = Lake::new().await;
    lake.copy_golden("orders_v3_dv");
    let hint = lake.dir.path().join("default/orders_v3_dv/metadata/version-hint.text");
    let rows = lake.rows("SELECT * FROM orders_v3_dv").await;
    for text in ["", "garbage", "1", "999", "-3", "99999999999999999999999"] {
        fs::write(&hint, text).unwrap();
        assert_eq!(Lake::at(lake.dir.path()).await.rows("SELECT * FROM orders_v3_dv").await, rows, "{text}");
    }
    fs::remove_file(&hint).unwrap();
    assert_eq!(Lake::at(lake.dir.path()).await.rows("SELECT * FROM orders_v3_dv").await, rows);
}

#[tokio::test]
async fn encrypted_files_are_refused() {
    for (content, property) in [(DataContent::Data, "2"), (DataContent::PositionDeletes, "2")] {
        let lake = Lake::new().await;
        lake.sql(&format!("CREATE TABLE t (k bigint) TBLPROPERTIES ('format-version' = '{property}')")).await.unwrap();
        lake.sql("INSERT INTO t VALUES (1), (2)").await.unwrap();
        let table = lake.table("t").await;
        let mut update = SnapshotUpdate::new(table.clone());
        let key = PartitionKey { spec_id: 0, tuple: PartitionTuple::default() };
        let location = table.new_data_location("", "encrypted.parquet").unwrap();
        let mut file = DataFile::new(content, location, FileFormat::Parquet, key);
        (file.record_count, file.file_size_in_bytes) = (1, 4);
        file.key_metadata = Some([1, 2, 3].into());
        if content == DataContent::Data {
            update.add_data(file)
        } else {
            update.add_delete(file)
        }
        update.commit().await.unwrap();
        let before = files_below(lake.dir.path());
        for statement in ["SELECT * FROM t", "DELETE FROM t WHERE k = 1", "DELETE FROM t WHERE k % 2 = 1"] {
            let error = lake.sql(statement).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{statement}: {error}");
            assert!(error.to_string().contains("encrypted"), "{statement}: {error}");
            assert!(error.to_string().contains("encrypted.parquet"), "{statement}: {error}");
            assert_eq!(files_below(lake.dir.path()), before, "{statement}");
        }
    }
}

#[tokio::test]
async fn files_in_formats_we_do_not_read_are_refused() {
    let lake = Lake::new().await;
    lake.copy_golden("fmt_orc");
    let before = files_below(lake.dir.path());
    let column = lake.table("fmt_orc").await.metadata.current_schema().unwrap().fields.fields[0].name.clone();
    for (statement, parts) in [
        ("SELECT * FROM fmt_orc".to_owned(), ["in format ORC", "table: default.fmt_orc", ".orc"]),
        // The table asks for files that we do not write either.
        (format!("DELETE FROM fmt_orc WHERE abs({column}) % 2 = 1"), ["ORC data files", "write.format.default", ""]),
    ] {
        let error = lake.sql(&statement).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{statement}: {error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{statement}: {part} in {error}");
        }
        assert_eq!(files_below(lake.dir.path()), before, "{statement}");
    }
}

#[tokio::test]
async fn statements_that_cannot_be_run_say_why_and_write_nothing() {
    let lake = Lake::new().await;
    lake.copy_golden("v1_orders");
    lake.sql("CREATE TABLE t (k bigint, s struct<a int>) TBLPROPERTIES ('format-version' = '2')").await.unwrap();
    lake.sql("CREATE VIEW v AS SELECT k FROM t").await.unwrap();
    lake.sql("INSERT INTO t VALUES (1, named_struct('a', 1))").await.unwrap();
    let before = files_below(lake.dir.path());
    for (statement, expected) in [
        ("DELETE FROM nope", "nope"),
        ("DELETE FROM nowhere.t", "nowhere"),
        ("DELETE FROM lake.nowhere.t WHERE k = 1", "nowhere"),
        ("DELETE FROM t WHERE nope = 1", "nope"),
        ("DELETE FROM t WHERE s.nope = 1", "nope"),
        ("DELETE FROM t WHERE k", "bool"),
        ("DELETE FROM t WHERE k + 1", "bool"),
        ("DELETE FROM t WHERE 'x'", "bool"),
        ("DELETE FROM v WHERE k = 1", "v"),
        ("DELETE FROM information_schema.tables", "tables"),
        ("DELETE FROM t LIMIT 1", "LIMIT"),
        ("SET calve.delete_mode = 'merge-on-read'; DELETE FROM v1_orders WHERE order_id % 2 = 1", "format version 2"),
        ("SET calve.delete_mode = 'sometimes'; DELETE FROM t WHERE k = 1", "sometimes"),
        ("INSERT INTO nope VALUES (1)", "nope"),
        ("INSERT INTO t (nope) VALUES (1)", "nope"),
        ("DROP TABLE nope", "nope"),
        ("CREATE TABLE t (k bigint)", "t"),
        ("CREATE TABLE nowhere.t (k bigint)", "nowhere"),
    ] {
        let session = Lake::at(lake.dir.path()).await;
        if statement.contains(" v ") {
            session.sql("CREATE VIEW v AS SELECT k FROM t").await.unwrap();
        }
        let error = session.sql(statement).await.expect_err(statement);
        assert!(error.to_string().contains(expected), "{statement}: {error}");
        assert_no_panic(&error, statement);
        assert_eq!(files_below(lake.dir.path()), before, "{statement}");
    }
}
