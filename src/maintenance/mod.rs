//! Upkeep of tables: what their metadata reaches, and what may go.

mod reachable;

pub use reachable::{ReachableFiles, reachable_files};
