//! Errors of this crate as DataFusion errors.

use datafusion::common::DataFusionError;

use crate::Error;

impl From<Error> for DataFusionError {
    /// The error whole, as an external one: `Display` and downcasts still find kind, message and context.
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}
