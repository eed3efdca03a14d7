//! Planning time by number of data files.

use std::sync::Arc;
use std::time::Instant;

use calve::catalog::{Catalog, MemoryCatalog, TableIdent};
use calve::env::Env;
use calve::expr::{LeafOp, Predicate};
use calve::io::FileIo;
use calve::scan::plan_scan;
use calve::spec::Literal;
use calve::table::Table;
use calve::transaction::SnapshotUpdate;

use crate::synthetic::{FILES_PER_REGION, data_file, metadata};

/// About a hundred files a manifest.
const PROPERTIES: [(&str, &str); 2] =
    [("commit.manifest.target-size-bytes", "24000"), ("commit.manifest-merge.enabled", "false")];

pub async fn run() {
    println!(
        "{:<10} {:>10} {:>12} {:>12} {:>16} {:>14} {:>16} {:>16}",
        "files", "manifests", "commit ms", "cold ms", "files/s (cold)", "warm ms", "1 % cold ms", "manifests opened"
    );
    for files in [1_000, 10_000, 100_000] {
        measure(files).await;
    }
}

async fn measure(files: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let warehouse = folder.path().to_str().expect("a path");
    let catalog = MemoryCatalog::new("lake", warehouse, FileIo::local(), Env::system()).expect("a catalog");
    let catalog: Arc<dyn Catalog> = Arc::new(catalog);
    catalog.create_namespace(&["default".to_string()], true).await.expect("a namespace");
    let ident = TableIdent { namespace: vec!["default".to_string()], name: "synthetic".to_string() };
    let location = catalog.default_location(&ident).expect("a location");
    catalog.create_table(&ident, metadata(&location, &PROPERTIES)).await.expect("a table");
    let table = Table::load(catalog, ident, Env::system()).await.expect("the table");
    let mut update = SnapshotUpdate::new(table);
    (0..files).for_each(|number| update.add_data(data_file(&location, number)));
    let start = Instant::now();
    let table = update.commit().await.expect("a commit");
    let commit = start.elapsed();

    let regions = i32::try_from(files / FILES_PER_REGION).expect("few regions");
    let few = Predicate::Leaf { field_id: 1, op: LeafOp::Lt(Literal::Int((regions / 100).max(1))) };
    let (mut cold, mut warm, mut filtered) = (Vec::new(), Vec::new(), Vec::new());
    let (mut manifests, mut opened) = (0, 0);
    for _ in 0..5 {
        // Another access to files has caches of its own.
        let table = Table { io: FileIo::local(), ..table.clone() };
        let start = Instant::now();
        let plan = plan_scan(&table, None, &Predicate::AlwaysTrue).await.expect("a plan");
        cold.push(start.elapsed().as_secs_f64());
        assert_eq!(plan.tasks.len(), files);
        manifests = plan.metrics.manifests_total;
        let start = Instant::now();
        plan_scan(&table, None, &Predicate::AlwaysTrue).await.expect("a plan");
        warm.push(start.elapsed().as_secs_f64());
        let table = Table { io: FileIo::local(), ..table };
        let start = Instant::now();
        let plan = plan_scan(&table, None, &few).await.expect("a plan");
        filtered.push(start.elapsed().as_secs_f64());
        assert!(plan.tasks.len() <= (files / 100).max(FILES_PER_REGION));
        opened = plan.metrics.manifests_read;
        assert!(opened <= 2 + manifests / 50, "{opened} of {manifests} manifests opened");
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (cold, warm, filtered) = (median(&mut cold), median(&mut warm), median(&mut filtered));
    println!(
        "{files:<10} {manifests:>10} {:>12.1} {:>12.1} {:>16.0} {:>14.2} {:>16.2} {opened:>16}",
        commit.as_secs_f64() * 1e3,
        cold * 1e3,
        files as f64 / cold,
        warm * 1e3,
        filtered * 1e3
    );
}
