//! DELETE, UPDATE and the like on tables that are not ours.
//!
//! DataFusion hands such a statement to the table as a list of filters, taken from wherever in the plan a filter stands: what
//! is a join (a subquery), a limit or an empty plan by then is lost, and the whole table goes. And it calls the table while it
//! plans, so that EXPLAIN deletes. Here a statement is left to DataFusion only if its plan is a plain chain of filters, and
//! only when it is executed.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, DataFusionError, Result, internal_err, plan_err};
use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    DmlStatement, Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore, WriteOp,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions, collect,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::TryStreamExt;

use super::{is_iceberg_target, unsupported};

/// Puts off the changes of other tables in an optimized plan until they are executed.
///
/// # Errors
/// `Unsupported` when the table's filter list would lose something.
pub(super) fn defer(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let deferred = plan.clone().transform_down(|node| match node {
        LogicalPlan::Dml(dml) if !matches!(dml.op, WriteOp::Insert(_)) && !is_iceberg_target(&dml) => {
            let no_rows = match dml.op {
                WriteOp::Delete | WriteOp::Update => !keeps_filters(&dml.input, &dml)?,
                _ => false,
            };
            let node = Arc::new(ForeignChange { dml, no_rows });
            Ok(Transformed::new(LogicalPlan::Extension(Extension { node }), true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(deferred.data)
}

/// Whether the plan is a chain that DataFusion's list of filters says all of; false when it has no row at all.
fn keeps_filters(plan: &LogicalPlan, dml: &DmlStatement) -> Result<bool> {
    match plan {
        LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row => Ok(false),
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() && scan.table_name.resolved_eq(&dml.table_name) => {
            Ok(true)
        }
        LogicalPlan::Projection(projection) if no_subquery(&projection.expr) => keeps_filters(&projection.input, dml),
        LogicalPlan::SubqueryAlias(alias) if matches!(alias.input.as_ref(), LogicalPlan::TableScan(_)) => {
            keeps_filters(&alias.input, dml)
        }
        LogicalPlan::Filter(filter) if no_subquery(std::slice::from_ref(&filter.predicate)) => {
            keeps_filters(&filter.input, dml)
        }
        _ => unsupported(&format!(
            "{} on '{}', which is not an Iceberg table, with a subquery, join or limit: DataFusion would hand the table a \
             condition that lacks it",
            dml.op, dml.table_name
        )),
    }
}

fn no_subquery(exprs: &[Expr]) -> bool {
    let is_one = |e: &Expr| {
        matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_))
    };
    !exprs.iter().any(|expr| expr.exists(|e| Ok(is_one(e))).unwrap_or(true))
}

/// A change of another table, planned when it is executed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
struct ForeignChange {
    dml: DmlStatement,
    /// The optimizer proved that no row matches.
    no_rows: bool,
}

impl UserDefinedLogicalNodeCore for ForeignChange {
    fn name(&self) -> &str {
        "ForeignChange"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.dml.output_schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dml: op=[{}] table=[{}]", self.dml.op, self.dml.table_name)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        if !exprs.is_empty() || !inputs.is_empty() {
            return plan_err!("ForeignChange takes no input and no expressions");
        }
        Ok(self.clone())
    }
}

/// Plans changes of other tables.
#[derive(Debug)]
pub(super) struct ForeignChangePlanner;

#[async_trait]
impl ExtensionPlanner for ForeignChangePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<ForeignChange>() else { return Ok(None) };
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return internal_err!("the session is not a SessionState");
        };
        let schema: SchemaRef = Arc::clone(node.dml.output_schema.inner());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Some(Arc::new(ForeignChangeExec {
            change: node.clone(),
            state: Arc::new(state.clone()),
            properties: Arc::new(properties),
        })))
    }
}

/// Changes a table that is not ours.
struct ForeignChangeExec {
    change: ForeignChange,
    state: Arc<SessionState>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for ForeignChangeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignChangeExec").field("change", &self.change).finish_non_exhaustive()
    }
}

impl DisplayAs for ForeignChangeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ForeignChangeExec: op=[{}] table=[{}]", self.change.dml.op, self.change.dml.table_name)
    }
}

impl ExecutionPlan for ForeignChangeExec {
    fn name(&self) -> &str {
        "ForeignChangeExec"
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

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("ForeignChangeExec takes no input") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("ForeignChangeExec takes no input") }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("ForeignChangeExec has one partition");
        }
        let schema = self.schema();
        let (change, state, result_schema) = (self.change.clone(), Arc::clone(&self.state), Arc::clone(&schema));
        let batches = async move {
            let batches = if change.no_rows {
                vec![RecordBatch::try_new(result_schema, vec![Arc::new(UInt64Array::from(vec![0]))])?]
            } else {
                let plan = LogicalPlan::Dml(change.dml);
                let plan = DefaultPhysicalPlanner::default().create_physical_plan(&plan, state.as_ref()).await?;
                collect(plan, context).await?
            };
            Ok::<_, DataFusionError>(futures::stream::iter(batches.into_iter().map(Ok)))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(batches).try_flatten())))
    }
}
