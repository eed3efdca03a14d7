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
use crate::spec::{DataFile, PrimitiveType, Schema};

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
        let mut statistics = column_statistics(self.file, field);
        let nulls = statistics.null_count.get_value().copied();
        let all_null = nulls.is_some_and(|nulls| nulls as u64 >= self.file.record_count);
        let bounded = statistics.min_value.get_value().is_some() || statistics.max_value.get_value().is_some();
        // Counts that contradict each other or the bounds say nothing.
        if self.file.value_counts.get(field.id) != Some(&self.file.record_count) || all_null && bounded {
            statistics.null_count = Precision::Absent;
        }
        match field.field_type.as_primitive() {
            // Java's order of uuids is another than that of their bytes.
            Some(PrimitiveType::Uuid) => {
                (statistics.min_value, statistics.max_value) = (Precision::Absent, Precision::Absent);
            }
            // Bounds may be cut, and prove nothing by meeting.
            Some(PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_))
                if statistics.min_value.get_value() == statistics.max_value.get_value() =>
            {
                statistics.max_value = Precision::Absent;
            }
            _ => {}
        }
        Some(statistics)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{DataContent, FileFormat, NestedField, PartitionKey, PartitionTuple};

    fn file() -> DataFile {
        let key = PartitionKey { spec_id: 0, tuple: PartitionTuple::default() };
        let mut file = DataFile::new(DataContent::Data, "f", FileFormat::Parquet, key);
        file.record_count = 3;
        file
    }

    /// Whether lower bound, upper bound and null count of column 1 are used.
    fn used(file: &DataFile, ty: PrimitiveType) -> (bool, bool, bool) {
        let schema = Schema::new(0, vec![NestedField::new(1, "c", false, ty)]);
        let bounds = FileBounds { file, schema: &schema };
        let column = Column::from_name("c");
        assert!(bounds.min_values(&Column::from_name("_file")).is_none());
        (
            bounds.min_values(&column).is_some(),
            bounds.max_values(&column).is_some(),
            bounds.null_counts(&column).is_some(),
        )
    }

    #[test]
    fn bounds_and_counts_are_used_only_where_they_prove_something() {
        let mut bounded = file();
        assert_eq!(used(&bounded, PrimitiveType::String), (false, false, false));
        bounded.lower_bounds.insert(1, (*b"0123456789abcdef").into());
        bounded.upper_bounds.insert(1, (*b"0123456789abcdef").into());
        bounded.null_value_counts.insert(1, 0);
        assert_eq!(used(&bounded, PrimitiveType::String), (true, false, false));
        bounded.value_counts.insert(1, 3);
        assert_eq!(used(&bounded, PrimitiveType::String), (true, false, true));
        assert_eq!(used(&bounded, PrimitiveType::Uuid), (false, false, true));
        bounded.upper_bounds.insert(1, (*b"1123456789abcdef").into());
        assert_eq!(used(&bounded, PrimitiveType::String), (true, true, true));
        assert_eq!(used(&bounded, PrimitiveType::Uuid), (false, false, true));
        // All null, yet there are bounds.
        bounded.null_value_counts.insert(1, 3);
        assert_eq!(used(&bounded, PrimitiveType::String), (true, true, false));
        let mut nulls = file();
        nulls.value_counts.insert(1, 3);
        nulls.null_value_counts.insert(1, 3);
        assert_eq!(used(&nulls, PrimitiveType::String), (false, false, true));
        // Counted over other rows than the file's.
        nulls.value_counts.insert(1, 4);
        assert_eq!(used(&nulls, PrimitiveType::String), (false, false, false));
    }
}
