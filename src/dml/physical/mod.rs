//! Physical plans of writing statements: rows to files, files to one commit.

use datafusion::physical_plan::ChildrenPropertiesMode;

mod addresses;
mod changed_rows;
mod commit;
mod handover;
mod message;
mod overwrite;
mod planner;
mod row_delta_writer;

pub use commit::CommitExec;
pub use overwrite::OverwritePlanner;
pub use planner::RowDeltaPlanner;
pub use row_delta_writer::RowDeltaWriterExec;

pub(crate) use planner::{find_rows, partition_overwrite_mode, plan_delete, session_mode};

/// Children of our nodes decide their partitioning, so properties are computed anew.
const RECOMPUTE: ChildrenPropertiesMode = ChildrenPropertiesMode::Recompute;
