//! Reading an Avro data file: what the Parquet source does for Parquet files.
//!
//! Invariant: projection and filter are those of the Parquet source, rewritten to the file's columns by the same adapter;
//! a filter that the source took over from the plan is applied here, for nothing above does it again. Rows are numbered as
//! they stand in the file, before any is left out.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_adapter::{PhysicalExprAdapterFactory, replace_columns_with_literals};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner};
use futures::StreamExt;
use futures::stream::BoxStream;
use parquet::arrow::RowNumber;

use crate::columns::AvroFile;
use crate::scan::avro_batches;
use crate::spec::deletion_vector::DeletionVector;

/// Rows of one file, to be decoded.
pub(crate) struct AvroMorsel {
    file: AvroFile,
    location: Arc<str>,
    deleted: Option<Arc<DeletionVector>>,
    batch_rows: usize,
    plan: Plan,
}

/// How decoded rows become the scan's.
struct Plan {
    /// The file's columns, then those that the reader makes.
    physical: SchemaRef,
    /// Columns of the file to decode, ascending.
    wanted: Vec<usize>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    columns: Vec<Arc<dyn PhysicalExpr>>,
    output: SchemaRef,
}

impl AvroMorsel {
    /// The rows of `file` that are not `deleted`, as the columns that `source` puts out.
    ///
    /// # Errors
    /// Those of the adapter.
    pub(crate) fn new(
        file: AvroFile,
        partitioned: &PartitionedFile,
        location: Arc<str>,
        deleted: Option<Arc<DeletionVector>>,
        batch_rows: usize,
        source: &dyn FileSource,
        adapter: &dyn PhysicalExprAdapterFactory,
    ) -> Result<Self> {
        let plan = Plan::new(&file, partitioned, source, adapter)?;
        Ok(Self { file, location, deleted, batch_rows, plan })
    }
}

/// The columns with one value in all of a file, by name.
pub(crate) fn constants_of(schema: &TableSchema, file: &PartitionedFile) -> HashMap<String, ScalarValue> {
    let fields = schema.table_partition_cols().iter().zip(&file.partition_values);
    fields.map(|(field, value)| (field.name().clone(), value.clone())).collect()
}

impl Plan {
    fn new(
        file: &AvroFile,
        partitioned: &PartitionedFile,
        source: &dyn FileSource,
        adapter: &dyn PhysicalExprAdapterFactory,
    ) -> Result<Self> {
        let table_schema = source.table_schema();
        let constants = constants_of(table_schema, partitioned);
        let is_constant = |f: &FieldRef| constants.contains_key(f.name());
        let logical: Vec<FieldRef> =
            table_schema.table_schema().fields().iter().filter(|f| !is_constant(f)).cloned().collect();
        let made = logical.iter().filter(|f| f.try_extension_type::<RowNumber>().is_ok());
        let physical: Vec<FieldRef> = file.schema().fields().iter().chain(made).cloned().collect();
        let physical = Arc::new(Schema::new(physical));
        let adapter = adapter.create(Arc::new(Schema::new(logical)), Arc::clone(&physical))?;
        let rewrite = |expr: &Arc<dyn PhysicalExpr>| {
            adapter.rewrite(replace_columns_with_literals(Arc::clone(expr), &constants)?)
        };
        let Some(projection) = source.projection() else {
            return internal_err!("the scan of an Avro file has no projection");
        };
        let output = Arc::new(projection.project_schema(table_schema.table_schema())?);
        let columns = projection.iter().map(|p| rewrite(&p.expr)).collect::<Result<Vec<_>>>()?;
        let filter = source.filter().as_ref().map(rewrite).transpose()?;
        let used = columns.iter().chain(&filter).flat_map(collect_columns);
        let mut wanted: Vec<usize> = used.map(|c| c.index()).filter(|i| *i < file.schema().fields().len()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Ok(Self { physical, wanted, filter, columns, output })
    }

    /// The scan's rows among `rows` decoded from position `first` on.
    fn rows(&self, rows: &RecordBatch, first: u64, deleted: Option<&DeletionVector>) -> Result<RecordBatch> {
        let count = rows.num_rows();
        let mut decoded = self.wanted.iter().copied().zip(rows.columns()).peekable();
        let columns = self.physical.fields().iter().enumerate().map(|(index, field)| -> Result<ArrayRef> {
            if let Some((_, column)) = decoded.next_if(|(wanted, _)| *wanted == index) {
                return Ok(Arc::clone(column));
            }
            if field.try_extension_type::<RowNumber>().is_ok() {
                let first = i64::try_from(first).map_err(|_| internal_datafusion_err!("row position {first}"))?;
                return Ok(Arc::new((first..).take(count).collect::<Int64Array>()));
            }
            // No expression looks at it.
            Ok(new_null_array(field.data_type(), count))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let mut batch = RecordBatch::try_new_with_options(Arc::clone(&self.physical), columns, &options)?;
        let end = first.saturating_add(count as u64);
        if let Some(deleted) = deleted.filter(|deleted| deleted.count_in(first..end) > 0) {
            let live: BooleanArray = (first..end).map(|row| Some(!deleted.contains(row))).collect();
            batch = filter_record_batch(&batch, &live)?;
        }
        if let Some(filter) = &self.filter {
            let kept = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
            let Some(kept) = kept.as_boolean_opt() else { return internal_err!("a filter gives {}", kept.data_type()) };
            let kept = if kept.null_count() > 0 { prep_null_mask_filter(kept) } else { kept.clone() };
            batch = filter_record_batch(&batch, &kept)?;
        }
        let count = batch.num_rows();
        let columns = self.columns.iter().map(|expr| expr.evaluate(&batch)?.into_array(count));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

impl fmt::Debug for AvroMorsel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AvroMorsel").field("file", &self.location).finish_non_exhaustive()
    }
}

impl Morsel for AvroMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { file, location, deleted, batch_rows, plan } = *self;
        let mut first = 0;
        let decoded = avro_batches(file, location, plan.wanted.clone(), batch_rows);
        let batches = decoded.map(move |rows| {
            let rows = rows?;
            let batch = plan.rows(&rows, first, deleted.as_deref());
            first += rows.num_rows() as u64;
            batch
        });
        batches.boxed()
    }
}

/// A planner with this one morsel.
#[derive(Debug)]
pub(crate) struct OneMorsel(pub(crate) AvroMorsel);

impl MorselPlanner for OneMorsel {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_morsels(vec![Box::new(self.0)])))
    }
}
