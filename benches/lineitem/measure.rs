//! Clocks, medians and the machine.

use std::path::Path;
use std::time::Instant;

/// What one statement took.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Seconds on the wall.
    pub wall: f64,
    /// Seconds of CPU time of the process.
    pub cpu: f64,
}

pub struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }

    pub fn stop(self) -> Run {
        Run { wall: self.wall.elapsed().as_secs_f64(), cpu: cpu_seconds() - self.cpu }
    }
}

/// CPU time of all live threads so far; 0 where the kernel does not tell.
fn cpu_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

/// Greatest resident memory of the process so far.
pub fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { folder_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}

/// Runs by statement, in the order first met.
#[derive(Debug, Default)]
pub struct Rounds(Vec<(String, Vec<Run>)>);

impl Rounds {
    pub fn add(&mut self, name: &str, run: Run) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, runs)) => runs.push(run),
            None => self.0.push((name.to_string(), vec![run])),
        }
    }

    fn median(&self, name: &str) -> Run {
        let runs = self.0.iter().find(|(n, _)| n == name).map(|(_, runs)| runs.as_slice()).unwrap_or_default();
        let of = |value: fn(&Run) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Run { wall: of(|r| r.wall), cpu: of(|r| r.cpu) }
    }

    /// Prints medians and their ratios to those of `base`.
    pub fn print(&self, base: &str) {
        let base = self.median(base);
        println!(
            "{:<40} {:>9} {:>9} {:>7} {:>8} {:>6}",
            "statement (median)", "wall ms", "cpu ms", "× wall", "× cpu", "cores"
        );
        for (name, _) in &self.0 {
            let run = self.median(name);
            println!(
                "{name:<40} {:>9.1} {:>9.1} {:>7.2} {:>8.2} {:>6.2}",
                run.wall * 1e3,
                run.cpu * 1e3,
                run.wall / base.wall,
                run.cpu / base.cpu,
                run.cpu / run.wall
            );
        }
    }
}

pub fn print_machine(scale: f64) {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("machine: {}, {cores} cores, load average {}", model.trim_matches([':', ' ', '\t']), load.trim());
    println!(
        "versions: calve {}, DataFusion {}, {} {}",
        env!("CARGO_PKG_VERSION"),
        datafusion::DATAFUSION_VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    println!("settings: TPC-H scale {scale}, {cores} partitions, batch size 8192, zstd Parquet, local files, warm");
}
