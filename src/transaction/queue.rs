//! A queue for commits of one process to one table.
//!
//! Optimistic commits starve each other: of a hundred that start at once one wins a round, and the rest use their retries
//! up. So whoever lost a round takes a place in the table's queue and keeps it until it is done, and newcomers line up
//! behind while anyone stands there. Other processes are not in the queue: against them, only the catalog's swap decides.
//! Invariant: the queue orders attempts and nothing else; a commit that waited too long goes on without a place.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

type Line = tokio::sync::Mutex<()>;

static LINES: LazyLock<Mutex<HashMap<Uuid, Weak<Line>>>> = LazyLock::new(Mutex::default);

/// A place in the queue of one table, given up when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _guard: OwnedMutexGuard<()>,
}

/// Waits until nobody else's commit to the table stands in the queue. Takes a place if there was someone, or if `insist`.
/// `None` when the queue was empty, and after `patience`.
pub(super) async fn line_up(table: Uuid, insist: bool, patience: Duration) -> Option<Place> {
    let line = line_of(table);
    if !insist && line.try_lock().is_ok() {
        return None;
    }
    let guard = tokio::time::timeout(patience, line.lock_owned()).await.ok()?;
    Some(Place { _guard: guard })
}

fn line_of(table: Uuid) -> Arc<Line> {
    let mut lines = LINES.lock();
    if let Some(line) = lines.get(&table).and_then(Weak::upgrade) {
        return line;
    }
    lines.retain(|_, line| line.strong_count() > 0);
    let line = Arc::new(Line::default());
    lines.insert(table, Arc::downgrade(&line));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_place_is_taken_only_when_others_stand_there_or_on_insistence() {
        let table = Uuid::from_u128(1);
        assert!(line_up(table, false, PATIENCE).await.is_none());
        let first = line_up(table, true, PATIENCE).await;
        assert!(first.is_some());
        assert!(line_up(table, false, PATIENCE).await.is_none(), "patience ends");
        let next = tokio::spawn(line_up(table, false, Duration::from_secs(60)));
        tokio::task::yield_now().await;
        drop(first);
        assert!(next.await.unwrap().is_some(), "who waited gets the place");
        assert!(line_up(Uuid::from_u128(2), true, PATIENCE).await.is_some(), "tables do not wait for each other");
        assert!(line_up(table, false, PATIENCE).await.is_none());
    }
}
