//! Runs the `.slt` files beside it, each over format versions × delete modes × strict pruning × partitions × batch sizes.
//!
//! In a statement `${version}` stands for the format version of the cell. Labels for `onlyif` and `skipif`: `v1`, `v2`,
//! `v3`, `copy-on-write`, `merge-on-read`, `strict`, and `first` for one cell of all. Arguments that are no options select
//! files by a part of their path; `CALVE_SQL_TESTS=pairwise` runs a selection of cells in which any two settings meet in every
//! combination instead of all cells.

mod database;
mod oracle;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use database::Database;
use sqllogictest::Runner;

/// Settings that must not change any result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    version: u8,
    merge_on_read: bool,
    strict: bool,
    partitions: usize,
    batch_size: usize,
}

/// The cell labelled `first`.
const FIRST: Cell = Cell { version: 3, merge_on_read: true, strict: true, partitions: 1, batch_size: 8192 };

impl Cell {
    fn all() -> Vec<Self> {
        let mut cells = vec![];
        for bits in 0..32_usize {
            let on = |bit: usize| bits >> bit & 1 == 0;
            cells.push(Self {
                version: if on(0) { 3 } else { 2 },
                merge_on_read: on(1),
                strict: on(2),
                partitions: if on(3) { 1 } else { 4 },
                batch_size: if on(4) { 8192 } else { 1 },
            });
        }
        for partitions in [1, 4] {
            cells.push(Self { version: 1, merge_on_read: false, strict: partitions == 1, partitions, ..FIRST });
        }
        cells
    }

    /// Cells in which every two values of any two settings of v2 and v3 occur, and one of v1.
    fn selection() -> Vec<Self> {
        let chosen = |cell: &Self| {
            let (old, rewrite, lax) = (cell.version == 2, !cell.merge_on_read, !cell.strict);
            (cell.partitions == 4) == (old ^ rewrite) && (cell.batch_size == 1) == (old ^ lax)
        };
        let one = |cell: &Self| if cell.version == 1 { cell.partitions == 1 } else { chosen(cell) };
        Self::all().into_iter().filter(one).collect()
    }

    fn labels(self) -> Vec<String> {
        let mut labels = vec![format!("v{}", self.version), self.mode().to_string()];
        labels.extend(self.strict.then(|| "strict".to_string()));
        labels.extend((self == FIRST).then(|| "first".to_string()));
        labels
    }

    /// The `calve.delete_mode` of the session.
    pub fn mode(self) -> &'static str {
        if self.merge_on_read { "merge-on-read" } else { "copy-on-write" }
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    files.retain(|file| wanted.is_empty() || wanted.iter().any(|part| file.to_string_lossy().contains(part)));
    let cells =
        if std::env::var("CALVE_SQL_TESTS").is_ok_and(|v| v == "pairwise") { Cell::selection() } else { Cell::all() };
    let jobs: Vec<(&PathBuf, Cell)> =
        files.iter().flat_map(|file| cells.iter().map(move |cell| (file, *cell))).collect();
    println!("running {} files in {} cells", files.len(), cells.len());

    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((file, cell)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = run(file, *cell) {
                        failures.lock().unwrap().push((file.to_path_buf(), *cell, error));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(file).display();
        let failed: Vec<_> = failures.iter().filter(|(f, ..)| f == file).collect();
        match failed.first() {
            None => println!("{name} ... ok"),
            Some((_, cell, error)) => {
                println!("{name} ... FAILED in {} cells, first in {cell:?}:\n{error}\n", failed.len())
            }
        }
    }
    println!("{} runs, {} failed, {:.1} s", jobs.len(), failures.len(), started.elapsed().as_secs_f64());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the folder of the tests") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "slt") {
            files.push(path);
        }
    }
}

/// Runs one file in one cell, in a warehouse of its own.
fn run(file: &Path, cell: Cell) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let result = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let mut runner = Runner::new(|| Database::new(cell));
            cell.labels().iter().for_each(|label| runner.add_label(label));
            runner.run_file_async(file).await.map_err(|error| error.to_string())
        })
    }));
    // The panic hook has printed what the oracle said.
    result.unwrap_or_else(|_| Err("the oracle disagrees, see above".to_string()))
}
