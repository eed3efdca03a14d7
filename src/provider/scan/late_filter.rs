//! Leaving out whole files by filters that come up during execution: those of joins and of TopK.
//!
//! DataFusion does this for files with exact statistics, and bounds of a manifest never are. They are bounds all the same,
//! which is what pruning asks for. Invariant: the filter is one that the Parquet source may prune by, so on no
//! floating-point or nested column.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, Result, ScalarValue};
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::{DynamicFilterTracking, PhysicalExpr};
use datafusion::physical_expr_adapter::replace_columns_with_literals;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use super::statistics::column_statistics;
use crate::spec::{DataFile, Schema};

/// A filter of which a part comes up after files were chosen.
#[derive(Debug)]
pub(crate) struct LateFilter {
    filter: Arc<dyn PhysicalExpr>,
    table_schema: TableSchema,
    schema: Arc<Schema>,
}

impl LateFilter {
    /// The filter of `source`, which reads `schema`; `None` when all of it was known at planning.
    pub(crate) fn of(source: &dyn FileSource, schema: &Arc<Schema>) -> Option<Self> {
        let filter = source.filter()?;
        DynamicFilterTracking::classify(&filter).contains_dynamic_filter().then(|| Self {
            filter,
            table_schema: source.table_schema().clone(),
            schema: Arc::clone(schema),
        })
    }

    /// Whether the filter, as it now stands, holds for no row of the file. `constants` are the columns with one value in
    /// all of it.
    ///
    /// # Errors
    /// Those of rewriting the filter.
    pub(crate) fn leaves_out(&self, file: &DataFile, constants: &HashMap<String, ScalarValue>) -> Result<bool> {
        let filter = replace_columns_with_literals(Arc::clone(&self.filter), constants)?;
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(self.table_schema.file_schema()));
        let Some(predicate) = builder.build(filter) else { return Ok(false) };
        // A filter that cannot be evaluated on bounds leaves nothing out.
        let kept = predicate.prune(&FileBounds { file, schema: &self.schema });
        Ok(kept.is_ok_and(|kept| kept == [false]))
    }
}

/// What the manifest says of one file.
struct FileBounds<'a> {
    file: &'a DataFile,
    schema: &'a Schema,
}

impl FileBounds<'_> {
    fn statistics(&self, column: &Column) -> Option<ColumnStatistics> {
        let field = self.schema.fields.fields.iter().find(|field| field.name == column.name)?;
        Some(column_statistics(self.file, field))
    }

    fn value(&self, column: &Column, of: impl Fn(ColumnStatistics) -> Precision<ScalarValue>) -> Option<ArrayRef> {
        of(self.statistics(column)?).get_value()?.to_array().ok()
    }
}

impl PruningStatistics for FileBounds<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.value(column, |statistics| statistics.min_value)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.value(column, |statistics| statistics.max_value)
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let nulls = u64::try_from(*self.statistics(column)?.null_count.get_value()?).ok()?;
        Some(Arc::new(UInt64Array::from(vec![nulls])))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from(vec![self.file.record_count])))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
