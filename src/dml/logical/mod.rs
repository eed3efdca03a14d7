//! Logical nodes of writing statements.

mod change;
mod node;
mod overwrite;

pub use change::{Change, ChangeKind, OPERATION_COLUMN, Operation};
pub use node::{Command, RowDeltaNode};
pub use overwrite::{Matching, OverwriteNode, OverwriteScope};
