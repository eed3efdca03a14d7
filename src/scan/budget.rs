//! Memory that reading deletes may take.

use std::fmt;
use std::sync::Arc;

use crate::Result;

/// Grants memory. The scan layer knows no memory pool; who runs a query gives it one in this form.
pub trait MemoryBudget: fmt::Debug + Send + Sync {
    /// Takes `bytes` out of the budget.
    ///
    /// # Errors
    /// `Unavailable` when that much is not left; then nothing is taken.
    fn try_grow(&self, bytes: usize) -> Result<()>;

    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);
}

/// A budget without end.
#[derive(Debug)]
pub(crate) struct Unlimited;

impl MemoryBudget for Unlimited {
    fn try_grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}

/// Memory taken out of a budget, given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Bytes taken so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_grow`].
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.budget.try_grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives `bytes` of it back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.shrink(bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}
