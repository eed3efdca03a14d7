//! A line on the terminal while a statement runs.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;

/// Statements faster than this show no line.
const PATIENCE: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(250);

/// Shows time and rows read on standard error, if that is a terminal, until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    task: Option<tokio::task::JoinHandle<()>>,
    shown: Arc<AtomicBool>,
}

impl Progress {
    /// Starts watching; call it within the runtime.
    pub(crate) fn of(plan: Arc<dyn ExecutionPlan>, start: Instant) -> Self {
        let shown = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            return Self { task: None, shown };
        }
        let showing = Arc::clone(&shown);
        let task = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE.saturating_sub(start.elapsed())).await;
            loop {
                let rows = rows_read(plan.as_ref());
                showing.store(true, Ordering::Relaxed);
                eprint!("\r\x1b[2K{}", line(start.elapsed(), rows));
                let _ = std::io::stderr().flush();
                tokio::time::sleep(REFRESH).await;
            }
        });
        Self { task: Some(task), shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        if self.shown.load(Ordering::Relaxed) {
            eprint!("\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }
}

fn line(elapsed: Duration, rows: usize) -> String {
    format!("{:.0} s, {} rows read", elapsed.as_secs_f64(), grouped(rows))
}

/// Rows that came out of the leaves of a plan so far.
fn rows_read(plan: &dyn ExecutionPlan) -> usize {
    let children = plan.children();
    if children.is_empty() {
        return plan.metrics().and_then(|m| m.output_rows()).unwrap_or_default();
    }
    children.into_iter().map(|child| rows_read(child.as_ref())).sum()
}

/// A number with a comma between each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let texts: Vec<_> = [0, 999, 1000, 1_234_567].into_iter().map(grouped).collect();
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(line(Duration::from_millis(2_600), 1000), "3 s, 1,000 rows read");
    }
}
