//! Scan planning: from a snapshot to the files to read, each with exactly the deletes that apply to it.
//!
//! Chooses files and loads deletes; reads no rows of the table. Implements the spec section "Scan Planning". Invariant: a
//! task carries every delete that applies to its file, whatever the row filter was; a filter only leaves out data files
//! of which no row can match.

mod avro_batches;
mod budget;
mod delete_index;
mod delete_loader;
mod equality;
mod equality_pruning;
mod file_columns;
pub mod footer;
mod loads;
mod manifests;
mod plan;
mod position_deletes;
mod spawn;
mod task;

pub(crate) use avro_batches::avro_batches;
pub use budget::MemoryBudget;
pub use delete_index::DeleteFileIndex;
pub use delete_loader::DeleteLoader;
pub(crate) use delete_loader::positions_in;
pub(crate) use manifests::{CONCURRENCY, entries_of, manifests_of};
pub use plan::{live_files, plan_scan};
pub(crate) use spawn::spawned;
pub use task::{DeleteFile, DeleteList, FileDeletes, FileScanTask, ScanPlan, ScanPlanMetrics, position_delete_target};
pub(crate) use task::{FILE_PATH_ID, POS_ID, delete_files_of};

#[cfg(test)]
mod tests;
