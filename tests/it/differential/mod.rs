//! Random statements on random tables, compared with a model of the rows in plain Rust; after each, the metadata and the
//! files are checked.
//!
//! `CALVE_DIFFERENTIAL_SEEDS=n` runs n further seeds, from `CALVE_DIFFERENTIAL_FIRST` on. A seed that fails prints its
//! statements.

mod audit;
mod change;
mod files;
mod predicate;
mod random;
mod script;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use script::{Log, Outcome, run};

/// Seeds of every test run.
const SEEDS: u64 = 24;

/// Where the seeds of a longer run start.
const FIRST_FURTHER: u64 = 1_000;

#[test]
fn random_statements_agree_with_the_model() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("CALVE_DIFFERENTIAL_FIRST").unwrap_or(FIRST_FURTHER);
    let seeds = match number("CALVE_DIFFERENTIAL_SEEDS") {
        Some(count) => first..first + count,
        None => 0..SEEDS,
    };
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(Vec::new());
    let total = Mutex::new(Outcome::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    match one(seed) {
                        Some(outcome) => total.lock().unwrap().add(outcome),
                        None => failed.lock().unwrap().push(seed),
                    }
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    println!("{total:?}");
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "seeds {failed:?} failed; their statements are above");
    assert!(
        total.deleted_rows > 0 && total.changed_rows > 0 && total.refused * 5 < total.statements,
        "too little was tested: {total:?}"
    );
}

/// Runs one seed; prints its statements when it fails.
fn one(seed: u64) -> Option<Outcome> {
    let log: Log = Arc::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(seed, Arc::clone(&log)))));
    if result.is_err() {
        println!("seed {seed}:\n{}\n", log.lock().unwrap().join(";\n"));
    }
    result.ok()
}
