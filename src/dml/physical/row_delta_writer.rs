//! Turns the rows of a writing statement into files and positions.
//!
//! One writer a partition of the input. Appended rows go to data files; addresses of deleted rows are gathered in one bitmap
//! a data file, so memory is that of the bitmaps. Invariant: files of a writer that does not reach its end are removed.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;

use crate::spec::deletion_vector::PositionBitmap;
use crate::table::Table;
use crate::writer::{DataFileWriter, DataWriterOptions, cast_to_table};

use super::addresses::Addresses;
use super::changed_rows::{ChangeOptions, write_changes};
use super::handover::Handover;
use super::message::{MESSAGE_SCHEMA, Messages};

/// What becomes of the input's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// They are appended.
    Added,
    /// They are addresses (path, position) of rows to delete.
    Deleted,
    /// They are rows that go, and rows that come.
    Changed(ChangeOptions),
}

/// Writes the rows of each input partition and yields one batch of messages for it.
#[derive(Debug)]
pub struct RowDeltaWriterExec {
    table: Table,
    kind: RowKind,
    input: Arc<dyn ExecutionPlan>,
    handover: Handover,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RowDeltaWriterExec {
    pub(super) fn new(table: Table, kind: RowKind, input: Arc<dyn ExecutionPlan>, handover: Handover) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&MESSAGE_SCHEMA)),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { table, kind, input, handover, properties: Arc::new(properties), metrics }
    }
}

impl DisplayAs for RowDeltaWriterExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = match self.kind {
            RowKind::Added => "data files",
            RowKind::Deleted => "row positions",
            RowKind::Changed(_) => "row positions and data files",
        };
        match t {
            DisplayFormatType::TreeRender => f.write_str(written),
            _ => write!(f, "RowDeltaWriterExec: {written}"),
        }
    }
}

impl ExecutionPlan for RowDeltaWriterExec {
    fn name(&self) -> &str {
        "RowDeltaWriterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(self.table.clone(), self.kind, input, self.handover.clone()))),
            _ => internal_err!("RowDeltaWriterExec takes one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(super::RECOMPUTE))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (table, kind, handover) = (self.table.clone(), self.kind, self.handover.clone());
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let written = async move {
            let messages = match kind {
                RowKind::Added => {
                    let messages = write_rows(&table, partition, input, &rows).await?;
                    handover.offer(&messages.added_data).await?;
                    messages
                }
                RowKind::Changed(options) => {
                    let messages = write_changes(&table, partition, options, input, &rows).await?;
                    handover.offer(&messages.added_data).await?;
                    messages
                }
                RowKind::Deleted => gather_positions(input, &rows).await?,
            };
            messages.encode(&table.metadata).map_err(DataFusionError::from)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&MESSAGE_SCHEMA), futures::stream::once(written))))
    }
}

async fn write_rows(
    table: &Table,
    partition: usize,
    mut input: SendableRecordBatchStream,
    rows: &datafusion::physical_plan::metrics::Count,
) -> Result<Messages> {
    let mut writer = DataFileWriter::new(table, DataWriterOptions { partition, ..DataWriterOptions::default() })?;
    let schema = Arc::clone(writer.schema());
    let written = async {
        while let Some(batch) = input.next().await {
            let batch = batch?;
            rows.add(batch.num_rows());
            writer.write(&cast_to_table(&batch, &schema)?).await?;
        }
        Ok::<_, DataFusionError>(())
    }
    .await;
    match written {
        Ok(()) => Ok(Messages { added_data: writer.finish().await?, ..Messages::default() }),
        Err(error) => {
            writer.abort().await;
            Err(error)
        }
    }
}

async fn gather_positions(
    mut input: SendableRecordBatchStream,
    rows: &datafusion::physical_plan::metrics::Count,
) -> Result<Messages> {
    let mut messages = Messages::default();
    while let Some(batch) = input.next().await {
        let batch = batch?;
        rows.add(batch.num_rows());
        gather_batch(&batch, &mut messages)?;
    }
    Ok(messages)
}

fn gather_batch(batch: &RecordBatch, messages: &mut Messages) -> Result<()> {
    if batch.num_rows() == 0 {
        return Ok(());
    }
    let [files, positions] = batch.columns() else { return internal_err!("row addresses have two columns") };
    let addresses = Addresses::new(files, positions)?;
    if !addresses.complete() {
        return internal_err!("a row to delete has no address");
    }
    for (path, run) in addresses.runs() {
        let Some(path) = path else { return internal_err!("a row to delete has no address") };
        let bitmap = match messages.matched.get_mut(path) {
            Some(bitmap) => bitmap,
            None => messages.matched.entry(path.to_string()).or_default(),
        };
        add_positions(bitmap, addresses.positions(run))?;
    }
    Ok(())
}

fn add_positions(bitmap: &mut PositionBitmap, positions: &[i64]) -> Result<()> {
    let mut rest = positions;
    while let Some(first) = rest.first() {
        // Rows that lie together go in together.
        let length = rest.iter().zip(*first..).take_while(|(position, next)| **position == *next).count();
        let start = u64::try_from(*first).map_err(|_| internal_datafusion_err!("negative row position"))?;
        match length {
            1 => _ = bitmap.insert(start),
            _ => bitmap.insert_range(start..start + length as u64),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}
