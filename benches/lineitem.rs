//! The macro benchmark: whole statements on TPC-H lineitem (6 million rows in 12 zstd files at the default scale).
//!
//! `cargo bench --features cli,testing --bench lineitem`. Settings by environment:
//! - `CALVE_BENCH_DIR`: folder for the tables, made when missing and reused when there; else a temporary one;
//! - `CALVE_BENCH_SCALE`: TPC-H scale factor, 1 unless set;
//! - `CALVE_BENCH_ONLY`: comma-separated parts to run (`delete`, `equality`, `append`, `cow`, `partition`, `planning`, `memory`).
//!
//! All times are medians of five rounds (three for what writes whole tables). A round runs every statement once, so that load from elsewhere falls on all of
//! them; ratios are against the clean scan of the same round's median. CPU time is that of the whole process.

#[path = "lineitem/data.rs"]
mod data;
#[path = "lineitem/lake.rs"]
mod lake;
#[path = "lineitem/measure.rs"]
mod measure;
#[path = "lineitem/planning.rs"]
mod planning;
#[path = "common/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve::testing::{CountingStore, StoreOp};
use object_store::local::LocalFileSystem;

use data::{FILES, TABLES};
use lake::{Lake, SavedState};
use measure::{Rounds, Run, peak_memory_mib, print_machine};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;
const CLEAN_SCAN: &str = "SELECT count(*), sum(l_extendedprice), sum(l_quantity) FROM";
const SCATTERED: &str = "l_orderkey % 100 = 7";
const HALF: &str = "l_orderkey % 2 = 1";
const MONTH: &str = "l_shipdate >= DATE '1995-03-01' AND l_shipdate < DATE '1995-04-01'";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(at) = arguments.iter().position(|a| a == "--memory-of") {
        let [folder, table, condition] = &arguments[at + 1..at + 4] else { panic!("folder, table, condition") };
        runtime.block_on(memory_of(Path::new(folder), table, condition));
        return;
    }
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = std::env::var_os("CALVE_BENCH_DIR").map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    let scale: f64 = std::env::var("CALVE_BENCH_SCALE").map_or(1.0, |s| s.parse().expect("a number"));
    runtime.block_on(run(&folder, scale));
}

fn wanted(part: &str) -> bool {
    std::env::var("CALVE_BENCH_ONLY").map_or(true, |only| only.split(',').any(|p| p == part))
}

async fn run(folder: &Path, scale: f64) {
    print_machine(scale);
    data::prepare(folder, scale).await;
    let lake = Lake::open(folder, None).await;
    for table in TABLES {
        let files = lake.count(&format!("SELECT count(DISTINCT _file) FROM {table}")).await;
        assert_eq!(files, FILES as u64, "files of {table}");
    }
    if wanted("delete") {
        deletes(&lake).await;
    }
    if wanted("equality") {
        equality_deletes(&lake).await;
    }
    if wanted("append") {
        appends(&lake).await;
    }
    if wanted("cow") {
        copy_on_write(&lake).await;
    }
    if wanted("partition") {
        whole_partition(folder).await;
    }
    if wanted("planning") {
        planning::run().await;
    }
    if wanted("memory") {
        memory(folder);
    }
}

/// Clean scans, the scattered DELETE merge-on-read, and scans after it.
async fn deletes(lake: &Lake) {
    let mut rounds = Rounds::default();
    lake.run("SET calve.delete_mode = 'merge-on-read'").await;
    for round in 0..=ROUNDS {
        // The first round warms up.
        let mut record = |name: &str, run: Run| {
            if round > 0 {
                rounds.add(name, run)
            }
        };
        for (table, version) in [("lineitem_v3", "v3"), ("lineitem_v2", "v2")] {
            let state = SavedState::save(&lake.table_dir(table));
            let (rows, run) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
            record(&format!("clean scan {version}"), run);
            let (matching, run) = lake.timed(&format!("SELECT count(*) FROM {table} WHERE {SCATTERED}")).await;
            record(&format!("scan by the predicate {version}"), run);
            let (deleted, run) = lake.timed(&format!("DELETE FROM {table} WHERE {SCATTERED}")).await;
            record(&format!("DELETE 1 % merge-on-read {version}"), run);
            assert_eq!(deleted, matching);
            let (left, run) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
            record(&format!("scan after DELETE 1 % {version}"), run);
            assert_eq!(left, rows - deleted);
            // The deletes, not the data, are what the first scan had to fetch.
            let (_, run) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
            record(&format!("scan after DELETE 1 %, again {version}"), run);
            state.restore();
        }
    }
    rounds.print("clean scan v3");
}

/// Scans of a table from which another writer deleted 60,000 keys of one integer column.
async fn equality_deletes(lake: &Lake) {
    let mut rounds = Rounds::default();
    for (table, version) in [("lineitem_v3", "v3"), ("lineitem_v2", "v2")] {
        let (rows, _) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
        for _ in 0..ROUNDS {
            let (_, run) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
            rounds.add(&format!("clean scan {version}"), run);
        }
        let state = SavedState::save(&lake.table_dir(table));
        let keys = lake.run(&format!("SELECT DISTINCT l_orderkey FROM {table} WHERE l_orderkey % 25 = 7")).await;
        let matching = lake.count(&format!("SELECT count(*) FROM {table} WHERE l_orderkey % 25 = 7")).await;
        let count = lake.delete_keys(table, 1, &keys).await;
        println!("{count} keys, {matching} rows, {table}");
        for round in 0..=ROUNDS {
            let (left, run) = lake.timed(&format!("{CLEAN_SCAN} {table}")).await;
            assert_eq!(left, rows - matching);
            if round > 0 {
                rounds.add(&format!("scan after equality deletes {version}"), run);
            }
        }
        state.restore();
    }
    rounds.print("clean scan v3");
}

/// INSERT of the whole table into a table of its kind, beside DataFusion's own COPY of it.
async fn appends(lake: &Lake) {
    let mut rounds = Rounds::default();
    let copied = tempfile::tempdir().expect("a temporary folder");
    let target = copied.path().join("copy");
    for round in 0..=3 {
        lake.run("DROP TABLE IF EXISTS appended PURGE").await;
        lake.run(&data::create_table("appended", 3, "")).await;
        let (_, scan) = lake.timed(&format!("{CLEAN_SCAN} lineitem_v3")).await;
        let copy = format!(
            "COPY (SELECT * FROM lineitem_v3) TO '{}/' STORED AS PARQUET OPTIONS (compression 'zstd(3)')",
            target.display()
        );
        let (_, copy) = lake.timed(&copy).await;
        std::fs::remove_dir_all(&target).expect("what COPY wrote");
        let (rows, run) = lake.timed("INSERT INTO appended SELECT * FROM lineitem_v3").await;
        let bytes = measure::folder_bytes(&lake.table_dir("appended").join("data"));
        println!(
            "append: {:.2} s, {:.2} million rows/s, {:.1} MiB/s of Parquet",
            run.wall,
            rows as f64 / run.wall / 1e6,
            bytes as f64 / run.wall / (1 << 20) as f64
        );
        if round > 0 {
            rounds.add("clean scan v3", scan);
            rounds.add("DataFusion's COPY (all columns)", copy);
            rounds.add("INSERT … SELECT * (all columns)", run);
        }
    }
    lake.run("DROP TABLE appended PURGE").await;
    rounds.print("clean scan v3");
}

async fn copy_on_write(lake: &Lake) {
    let mut rounds = Rounds::default();
    lake.run("SET calve.delete_mode = 'copy-on-write'").await;
    for round in 0..=3 {
        let state = SavedState::save(&lake.table_dir("lineitem_v3"));
        let (_, scan) = lake.timed(&format!("{CLEAN_SCAN} lineitem_v3")).await;
        let (_, run) = lake.timed(&format!("DELETE FROM lineitem_v3 WHERE {SCATTERED}")).await;
        if round > 0 {
            rounds.add("clean scan v3", scan);
            rounds.add("DELETE 1 % copy-on-write v3", run);
        }
        state.restore();
    }
    lake.run("SET calve.delete_mode = 'merge-on-read'").await;
    rounds.print("clean scan v3");
}

/// A DELETE of a whole partition, and what it asks of the store.
async fn whole_partition(folder: &Path) {
    let store = CountingStore::new(Arc::new(LocalFileSystem::new()));
    let lake = Lake::open(folder, Some(Arc::clone(&store))).await;
    if !lake.table_dir("lineitem_month").exists() {
        lake.run(&format!(
            "{} AS SELECT * FROM lineitem_v3",
            data::create_like("lineitem_month", 3, "PARTITIONED BY (month(l_shipdate))")
        ))
        .await;
    }
    let files = lake.count("SELECT count(DISTINCT _file) FROM lineitem_month").await;
    let state = SavedState::save(&lake.table_dir("lineitem_month"));
    // A session of its own, so that nothing is cached.
    let lake = Lake::open(folder, Some(Arc::clone(&store))).await;
    store.reset();
    let (deleted, run) = lake.timed(&format!("DELETE FROM lineitem_month WHERE {MONTH}")).await;
    let data_reads = store.count_where(|op, path| {
        path.ends_with(".parquet") && matches!(op, StoreOp::Get | StoreOp::GetRanges | StoreOp::Head)
    });
    let reads = store.count(StoreOp::Get) + store.count(StoreOp::GetRanges);
    println!(
        "DELETE of one month of {files} files: {deleted} rows in {:.1} ms; data files opened: {data_reads}; \
         requests: {reads} reads, {} writes, {} size requests",
        run.wall * 1e3,
        store.count(StoreOp::Put),
        store.count(StoreOp::Head),
    );
    assert_eq!(data_reads, 0, "a whole-partition DELETE opens no data file");
    state.restore();
}

/// Peak memory of DELETEs, each in a process of its own.
fn memory(folder: &Path) {
    for (what, table, condition) in [
        ("clean scan", "lineitem_v3", ""),
        ("DELETE 1 % merge-on-read v3", "lineitem_v3", SCATTERED),
        ("DELETE 50 % merge-on-read v3", "lineitem_v3", HALF),
        ("DELETE 1 % merge-on-read v2", "lineitem_v2", SCATTERED),
        ("DELETE 50 % merge-on-read v2", "lineitem_v2", HALF),
    ] {
        let output = std::process::Command::new(std::env::current_exe().expect("own path"))
            .args(["--memory-of", folder.to_str().expect("a path"), table, condition])
            .output()
            .expect("a child process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        println!("peak memory, {what}: {}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

async fn memory_of(folder: &Path, table: &str, condition: &str) {
    let lake = Lake::open(folder, None).await;
    if condition.is_empty() {
        lake.run(&format!("{CLEAN_SCAN} {table}")).await;
        println!("{:.0} MiB", peak_memory_mib());
        return;
    }
    lake.run("SET calve.delete_mode = 'merge-on-read'").await;
    let state = SavedState::save(&lake.table_dir(table));
    let deleted = lake.count(&format!("DELETE FROM {table} WHERE {condition}")).await;
    println!("{:.0} MiB ({deleted} rows deleted)", peak_memory_mib());
    state.restore();
}
