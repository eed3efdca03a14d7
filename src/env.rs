//! Time and identity, injected.
//!
//! Everything that would differ between two runs of one statement (clock, snapshot ids, uuids) comes from an [`Env`], so
//! that a test replays a commit byte for byte from a seed. Invariant: no other module reads the clock or draws an id.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// The wall clock.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
}

/// The source of random identity.
pub trait IdGenerator: fmt::Debug + Send + Sync {
    /// A random uuid (version 4).
    fn uuid(&self) -> Uuid;

    /// A positive random snapshot id: the two halves of a uuid folded together, as Java's `SnapshotIdGeneratorUtil`.
    fn snapshot_id(&self) -> i64 {
        let (high, low) = self.uuid().as_u64_pair();
        ((high ^ low) & i64::MAX as u64) as i64
    }
}

/// The injected clock and id source of a session.
#[derive(Debug, Clone)]
pub struct Env {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
}

impl Env {
    /// An environment of the given clock and id source.
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { clock, ids }
    }

    /// The real clock and random ids.
    pub fn system() -> Self {
        Self::new(Arc::new(SystemClock), Arc::new(RandomIds))
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A fresh uuid.
    pub fn uuid(&self) -> Uuid {
        self.ids.uuid()
    }

    /// A fresh snapshot id, positive.
    pub fn snapshot_id(&self) -> i64 {
        self.ids.snapshot_id()
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::system()
    }
}

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now_ms(&self) -> i64 {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }
}

#[derive(Debug)]
struct RandomIds;

impl IdGenerator for RandomIds {
    #[allow(clippy::disallowed_methods, reason = "the one place that draws random ids")]
    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}
