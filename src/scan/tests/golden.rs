use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use super::super::{DeleteLoader, plan_scan};
use crate::ErrorKind;
use crate::catalog::{TableIdent, static_table};
use crate::env::Env;
use crate::expr::Predicate;
use crate::io::FileIo;
use crate::spec::FileFormat;
use crate::table::Table;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

fn golden_io() -> FileIo {
    let to = golden().to_string_lossy().into_owned();
    FileIo::builder().with_location_map("file:/warehouse/golden", &to).unwrap().build()
}

fn index() -> Vec<Value> {
    let text = std::fs::read_to_string(golden().join("index.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(super) async fn golden_table(entry: &Value, io: &FileIo) -> Table {
    let (name, file) = (entry["table"].as_str().unwrap(), entry["current_metadata"].as_str().unwrap());
    let ident = TableIdent::new(["golden"], name);
    let location = format!("file:/warehouse/golden/{name}/metadata/{file}");
    let catalog = static_table(ident.clone(), &location, io.clone(), Env::system()).await.unwrap();
    Table::load(catalog, ident, Env::system()).await.unwrap()
}

/// Rows by snapshot, of all snapshots that the index gives a count for.
fn rows_by_snapshot(entry: &Value) -> BTreeMap<i64, u64> {
    let snapshots = entry["snapshots"].as_array().unwrap().iter().map(|s| (&s["id"], &s["rows"]));
    let expected = entry["expected"].as_array().unwrap().iter().map(|s| (&s["snapshot_id"], &s["rows"]));
    snapshots
        .chain(expected)
        .filter_map(|(id, rows)| Some((id.as_i64().filter(|id| *id != -1)?, rows.as_u64()?)))
        .collect()
}

#[tokio::test]
async fn live_rows_of_every_golden_snapshot() {
    let io = golden_io();
    let (mut tables, mut counted) = (0, 0);
    let mut unread = BTreeSet::new();
    for entry in index() {
        let name = entry["table"].as_str().unwrap();
        tables += 1;
        let table = golden_table(&entry, &io).await;
        for (snapshot, rows) in rows_by_snapshot(&entry) {
            let plan = plan_scan(&table, Some(snapshot), &Predicate::AlwaysTrue).await.unwrap();
            let loader = DeleteLoader::new(&table).for_tasks(&plan.tasks).unwrap();
            let mut live = 0;
            let mut supported = true;
            for task in &plan.tasks {
                match loader.live_row_count(task).await {
                    Ok(n) => live += n,
                    Err(e) if e.kind() == ErrorKind::Unsupported => {
                        assert!(task.deletes.iter().any(|d| d.file.file_format == FileFormat::Orc), "{e}");
                        supported = false;
                    }
                    Err(e) => panic!("{name} {snapshot}: {e}"),
                }
            }
            if !supported {
                unread.insert(name.to_string());
                continue;
            }
            assert_eq!(live, rows, "{name}, snapshot {snapshot}");
            counted += 1;
        }
    }
    assert_eq!(tables, 69);
    assert_eq!(counted, COUNTED);
    assert_eq!(unread.into_iter().collect::<Vec<_>>(), ["fmt_orc"]);
}

/// Snapshots whose rows are counted.
const COUNTED: usize = 263;

/// A golden table and the plan of its current snapshot.
pub(super) async fn table_with_plan(entry: &Value) -> (Table, crate::scan::ScanPlan) {
    let table = golden_table(entry, &golden_io()).await;
    let plan = plan_scan(&table, None, &Predicate::AlwaysTrue).await.unwrap();
    (table, plan)
}
