//! Passes over the parse tree, before DataFusion plans it.
//!
//! Each pass repairs or translates one thing and leaves every other statement as it was parsed.

pub(super) mod assignments;
pub(super) mod chains;
pub(super) mod ctes;
pub(super) mod delete;
pub(super) mod distinct_from;
pub(super) mod names;
mod query;
pub(super) mod relations;
pub(super) mod to_merge;
