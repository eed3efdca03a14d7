//! The physical node of a command.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::{TryStreamExt, stream};

use super::{BoundCommand, CommandNode};
use crate::Error;
use crate::session::to_datafusion;

/// Plans [`CommandNode`]s.
#[derive(Debug, Default)]
pub(crate) struct CommandPlanner;

#[async_trait]
impl ExtensionPlanner for CommandPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<CommandNode>() else { return Ok(None) };
        Ok(Some(Arc::new(CommandExec::new(Arc::clone(node.command()), node.text().to_owned()))))
    }
}

/// Runs a command when its one partition is executed.
#[derive(Debug)]
struct CommandExec {
    command: Arc<BoundCommand>,
    text: String,
    properties: Arc<PlanProperties>,
    started: AtomicBool,
}

impl CommandExec {
    fn new(command: Arc<BoundCommand>, text: String) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(command.command.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { command, text, properties: Arc::new(properties), started: AtomicBool::new(false) }
    }
}

impl DisplayAs for CommandExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => f.write_str(&self.text),
            _ => write!(f, "CommandExec: {}", self.text),
        }
    }
}

impl ExecutionPlan for CommandExec {
    fn name(&self) -> &str {
        "CommandExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a command has no children") }
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a command has one partition, not {partition}");
        }
        if self.started.swap(true, Ordering::Relaxed) {
            return Err(to_datafusion(Error::invalid_input(format!(
                "this plan has been executed already; plan the statement again: {}",
                self.text
            ))));
        }
        let command = Arc::clone(&self.command);
        let run = async move {
            let batch = command.run().await.map_err(to_datafusion)?;
            Ok::<_, datafusion::error::DataFusionError>(stream::iter(batch.map(Ok)))
        };
        let stream = stream::once(run).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}
