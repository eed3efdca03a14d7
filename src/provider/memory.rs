//! DataFusion's memory pool as a budget.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::error::from_datafusion;
use crate::Result;
use crate::scan::MemoryBudget;

#[derive(Debug)]
struct PoolBudget(MemoryReservation);

impl MemoryBudget for PoolBudget {
    fn try_grow(&self, bytes: usize) -> Result<()> {
        self.0.try_grow(bytes).map_err(from_datafusion)
    }

    fn shrink(&self, bytes: usize) {
        self.0.shrink(bytes);
    }
}

/// A budget out of `pool`, for the keys of equality deletes.
pub(crate) fn pool_budget(pool: &Arc<dyn MemoryPool>) -> Arc<dyn MemoryBudget> {
    Arc::new(PoolBudget(MemoryConsumer::new("IcebergEqualityDeletes").register(pool)))
}
