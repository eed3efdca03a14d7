//! What tests of this crate and of applications that embed it need: stores that fail or count, on demand.

mod counting_store;
mod fault_store;

pub use counting_store::{CountingStore, StoreOp};
pub use fault_store::{Fault, FaultStore};
