//! Several processes on one warehouse, killed at any moment.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

const WAREHOUSE: &str = "CALVE_TEST_WAREHOUSE";
const WRITER: &str = "CALVE_TEST_WRITER";

fn lake(warehouse: &str) -> FilesystemCatalog {
    FilesystemCatalog::new("lake", warehouse, FileIo::local(), Env::system()).unwrap()
}

/// The body of a writing process: commits until it is killed, and notes each commit once it is acknowledged. Does nothing in
/// an ordinary run of the tests.
#[tokio::test]
async fn writer_process() {
    let (Ok(warehouse), Ok(writer)) = (std::env::var(WAREHOUSE), std::env::var(WRITER)) else { return };
    let catalog = lake(&warehouse);
    let mut notes = std::fs::File::create(format!("{warehouse}/notes-{writer}")).unwrap();
    for i in 0.. {
        let key = format!("{writer}-{i}");
        set_with_retries(&catalog, &ident("t"), &key).await.unwrap();
        writeln!(notes, "{key}").unwrap();
    }
}

#[tokio::test]
async fn killed_processes_lose_no_acknowledged_commit() {
    let dir = tempfile::tempdir().unwrap();
    let warehouse = dir.path().to_str().unwrap().to_string();
    let catalog = lake(&warehouse);
    catalog.create_namespace(&["ns".into()], true).await.unwrap();
    create(&catalog, &ident("t"), &[("write.metadata.delete-after-commit.enabled", "true")]).await.unwrap();
    let seed = std::process::id() as u64;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged = 0;
    for round in 0..6 {
        let spawn = |writer: String| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "catalog::conformance::processes::writer_process"]);
            command.env(WAREHOUSE, &warehouse).env(WRITER, writer).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let mut writers: Vec<_> = (0..2).map(|w| spawn(format!("{round}-{w}"))).collect();
        for writer in &mut writers {
            tokio::time::sleep(std::time::Duration::from_millis(100 + random.u64(0..250))).await;
            assert!(writer.try_wait().unwrap().is_none(), "seed {seed}: a writer ended by itself");
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let table = catalog.load_table(&ident("t")).await.unwrap();
        for writer in 0..2 {
            let notes = std::fs::read_to_string(format!("{warehouse}/notes-{round}-{writer}")).unwrap_or_default();
            for key in notes.lines() {
                acknowledged += 1;
                assert!(table.metadata.properties.contains_key(key), "seed {seed}: commit {key} is lost");
            }
        }
    }
    assert!(acknowledged > 10, "seed {seed}: only {acknowledged} commits");
    set_with_retries(&catalog, &ident("t"), "last").await.unwrap();
}
