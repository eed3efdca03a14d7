//! What the manifests know about a file, as statistics for the optimizer.
//!
//! Invariant: nothing is exact but the row count of a file without deletes. Bounds may be truncated, leave NaN out and
//! count deleted rows, and DataFusion reads a column whose exact bounds are equal as that constant; so bounds are always
//! inexact, and floating-point columns have none.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

use crate::provider::scalar::to_scalar;
use crate::scan::FileScanTask;
use crate::spec::{DataFile, Literal, NestedField, PrimitiveType, Schema};

/// Statistics of one file for the columns of `schema`, in order.
pub(crate) fn file_statistics(task: &FileScanTask, schema: &Schema) -> Statistics {
    let file = &task.data_file;
    let rows = usize::try_from(file.record_count).unwrap_or(usize::MAX);
    // Null counts and bounds count deleted rows too, and pruning compares them with this number: so it does as well.
    let num_rows = if task.deletes.is_empty() { Precision::Exact(rows) } else { Precision::Inexact(rows) };
    Statistics {
        num_rows,
        total_byte_size: Precision::Inexact(usize::try_from(file.file_size_in_bytes).unwrap_or(usize::MAX)),
        column_statistics: schema.fields.fields.iter().map(|f| column_statistics(file, f)).collect(),
    }
}

/// Rows of the file that its deletion vector deletes; position delete files do not say.
pub(crate) fn known_deleted(task: &FileScanTask) -> usize {
    task.deletes.vector.as_ref().map_or(0, |v| usize::try_from(v.file.record_count).unwrap_or(usize::MAX))
}

/// What is known of one column of a file.
pub(crate) fn column_statistics(file: &DataFile, field: &NestedField) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let Some(ty) = field.field_type.as_primitive() else {
        return statistics;
    };
    if let Some(nulls) = file.null_value_counts.get(field.id) {
        statistics.null_count = Precision::Inexact(usize::try_from(*nulls).unwrap_or(usize::MAX));
    }
    let ordered = !matches!(
        ty,
        PrimitiveType::Float
            | PrimitiveType::Double
            | PrimitiveType::Unknown
            | PrimitiveType::Geometry(_)
            | PrimitiveType::Geography(..)
    );
    if !ordered {
        return statistics;
    }
    let bound = |bytes: Option<&Box<[u8]>>| -> Option<ScalarValue> {
        to_scalar(Some(&Literal::from_bytes(ty, bytes?).ok()?), ty)
    };
    let (lower, upper) = (bound(file.lower_bounds.get(field.id)), bound(file.upper_bounds.get(field.id)));
    // Inverted bounds are no bounds.
    if let (Some(lower), Some(upper)) = (lower, upper)
        && lower <= upper
    {
        statistics.min_value = Precision::Inexact(lower);
        statistics.max_value = Precision::Inexact(upper);
    }
    statistics
}
