//! Shells that delete from one table at once, and are killed at any moment.

#![cfg(feature = "cli")]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use calve::catalog::{Catalog, FilesystemCatalog};
use calve::env::Env;
use calve::io::FileIo;
use calve::maintenance::reachable_files;
use calve::table::Table;
use datafusion::prelude::SessionConfig;

use super::ident;
use crate::support::{run, session, text_rows};

/// Keys a row can have; each statement deletes one key, in every file.
const KEYS: usize = 24;
const FILES: usize = 4;

struct Warehouse {
    dir: tempfile::TempDir,
}

impl Warehouse {
    /// A table `t` of a few files, each with a row of every key.
    async fn new(properties: &str) -> Self {
        let warehouse = Self { dir: tempfile::tempdir().unwrap() };
        let create = format!("CREATE TABLE t (k bigint, f bigint) TBLPROPERTIES ({properties})");
        warehouse.sql(&create).await;
        for file in 0..FILES {
            warehouse.sql(&format!("INSERT INTO t SELECT value, {file} FROM range({KEYS})")).await;
        }
        warehouse
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The catalog as a new process sees it.
    async fn catalog(&self) -> Arc<dyn Catalog> {
        let folder = self.path().join("warehouse");
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.to_str().unwrap();
        let catalog = FilesystemCatalog::new("lake", folder, FileIo::local(), Env::system()).unwrap();
        catalog.create_namespace(&["default".to_string()], true).await.unwrap();
        Arc::new(catalog)
    }

    async fn sql(&self, text: &str) -> Vec<String> {
        let session = session(self.catalog().await, SessionConfig::new());
        text_rows(&run(&session, text).await.unwrap())
    }

    /// Starts a shell that deletes the keys one after the other and writes what was acknowledged to a file.
    fn delete(&self, writer: &str, keys: &[usize]) -> (Child, std::path::PathBuf) {
        let answers = self.path().join(format!("answers-{writer}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_calve"));
        command.current_dir(self.path()).env("HOME", self.path()).args(["-q", "--format", "csv"]);
        for key in keys {
            command.args(["-c", &format!("DELETE FROM t WHERE k = {key}")]);
        }
        let errors = File::create(self.path().join(format!("errors-{writer}"))).unwrap();
        command.stdin(Stdio::null()).stdout(File::create(&answers).unwrap()).stderr(errors);
        (command.spawn().unwrap(), answers)
    }

    /// Keys that are there, each of which must be in every file or in none.
    async fn keys(&self, what: &str) -> BTreeSet<usize> {
        let rows = self.sql("SELECT k, count(*) FROM t GROUP BY k").await;
        let mut keys = BTreeSet::new();
        for row in rows {
            let cells: Vec<usize> = row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
            assert_eq!(cells[1], FILES, "{what}: a part of key {} is gone", cells[0]);
            keys.insert(cells[0]);
        }
        keys
    }

    async fn assert_whole(&self, what: &str) {
        let table = Table::load(self.catalog().await, ident("t"), Env::system()).await.unwrap();
        for location in reachable_files(&table).await.unwrap().into_deletion_order() {
            assert!(table.io.exists(&location).await.unwrap(), "{what}: {location} is missing");
        }
    }
}

/// Number of statements that a shell acknowledged: it prints a header and a count for each.
fn acknowledged(answers: &Path) -> usize {
    std::fs::read_to_string(answers).unwrap().lines().filter(|line| *line == FILES.to_string()).count()
}

const TABLES: [&str; 3] = [
    "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'",
    "'format-version' = '3', 'write.delete.mode' = 'merge-on-read'",
    "'format-version' = '3', 'write.delete.mode' = 'copy-on-write'",
];

#[tokio::test]
async fn two_processes_delete_from_one_table_at_once() {
    for properties in TABLES {
        let warehouse = Warehouse::new(&format!("{properties}, 'commit.retry.num-retries' = '20'")).await;
        let even: Vec<usize> = (0..KEYS).step_by(2).collect();
        let odd: Vec<usize> = (0..KEYS).skip(1).step_by(2).collect();
        let writers = [("even", &even), ("odd", &odd)].map(|(name, keys)| (warehouse.delete(name, keys), name, keys));
        let mut expected: BTreeSet<usize> = (0..KEYS).collect();
        for ((mut child, answers), name, keys) in writers {
            let status = child.wait().unwrap();
            let done = acknowledged(&answers);
            let errors = std::fs::read_to_string(warehouse.path().join(format!("errors-{name}"))).unwrap();
            assert_eq!(status.success(), done == keys.len(), "{properties}: {done} deletes\n{errors}");
            // On the same files only one may win where deletes of one file exclude each other.
            assert!(status.success() || errors.contains("run the statement again"), "{properties}: {errors}");
            expected.retain(|key| !keys[..done].contains(key));
        }
        assert_eq!(warehouse.keys(properties).await, expected, "{properties}");
        assert!(expected.len() < KEYS, "{properties}: nobody got anything done");
        if properties.contains("'2'") {
            assert!(expected.is_empty(), "{properties}: position deletes of different rows do not conflict");
        }
        warehouse.assert_whole(properties).await;
    }
}

#[tokio::test]
async fn processes_killed_at_any_moment_lose_nothing_acknowledged() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut total = 0;
    for properties in TABLES {
        let warehouse = Warehouse::new(properties).await;
        let mut present: BTreeSet<usize> = (0..KEYS).collect();
        for round in 0..6 {
            let what = format!("seed {seed}, {properties}, round {round}");
            let keys: Vec<usize> = present.iter().copied().collect();
            let (one, two): (Vec<usize>, Vec<usize>) = keys.iter().partition(|key| *key % 2 == round % 2);
            let writers = [one, two].map(|keys| {
                let name = format!("{round}-{}", keys.first().copied().unwrap_or(KEYS));
                (warehouse.delete(&name, &keys), keys)
            });
            tokio::time::sleep(Duration::from_millis(random.u64(200..1500))).await;
            let mut gone = BTreeSet::new();
            let mut possible = BTreeSet::new();
            for ((mut child, answers), keys) in writers {
                let _ = child.kill();
                child.wait().unwrap();
                let done = acknowledged(&answers);
                total += done;
                gone.extend(keys.iter().take(done).copied());
                // The one it was at may be committed without having been acknowledged.
                possible.extend(keys.iter().take(done + 1).copied());
            }
            let now = warehouse.keys(&what).await;
            assert!(now.is_disjoint(&gone), "{what}: a delete was acknowledged and is lost");
            let missing: BTreeSet<usize> = present.difference(&now).copied().collect();
            assert!(missing.is_subset(&possible), "{what}: {missing:?} went without a statement");
            warehouse.assert_whole(&what).await;
            present = now;
        }
        warehouse.sql("DELETE FROM t").await;
        assert!(warehouse.keys(properties).await.is_empty());
    }
    assert!(total > 0, "seed {seed}: no delete was ever acknowledged");
}
