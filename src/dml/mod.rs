//! Row-level DML: statements to plans, plans to one snapshot.
//!
//! A statement becomes a [`logical::RowDeltaNode`] or [`logical::OverwriteNode`] in [`analyze`], is optimized like a query, and is planned in
//! [`physical`]: files that the condition covers whole leave the scan ([`strict_pruning`]), the rest is read for row
//! addresses, [`row_delete_planner`] decides file by file how the rows go, and one commit node makes one snapshot.
//! [`DeletePlan`] is the same path for Rust callers.

pub mod analyze;
mod delete_plan;
pub mod guard;
pub mod logical;
pub(crate) mod overwrite;
pub mod physical;
mod require;
pub mod row_delete_planner;
mod row_removal;
pub mod strict_pruning;

pub use delete_plan::{DeletePlan, RowLevelCommand, effective_mode, live_positions, plan_delete};
pub use overwrite::{prepare_dynamic_partition_overwrite, prepare_overwrite};
pub(crate) use physical::partition_overwrite_mode;
pub(crate) use require::require_true;
pub use row_delete_planner::{Action, RowDelete};
