//! Logical nodes of writing statements.

mod node;

pub use node::{Command, RowDeltaNode};
