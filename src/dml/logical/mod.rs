//! Logical nodes of writing statements.

mod change;
mod node;

pub use change::{Change, ChangeKind, OPERATION_COLUMN, Operation};
pub use node::{Command, RowDeltaNode};
