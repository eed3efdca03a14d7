//! `CREATE TABLE … AS query`: an append to a table that its commit creates.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, Result, TableReference, internal_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    DmlStatement, Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
    WriteOp,
};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::{TryStreamExt, stream};

use super::definition::{first_state, format_version, new_table};
use super::staged::StagedTable;
use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::provider::IcebergTableProvider;
use crate::session::parser::CreateTable;
use crate::session::{from_datafusion, to_datafusion};
use crate::spec::{ListType, MapType, NestedField, Schema, StructType, Type};
use crate::writer::schema_from_arrow;

/// The plan that creates a table from a query. Nothing is created before it is executed.
pub(crate) fn create_table_as(
    create: &CreateTable,
    query: LogicalPlan,
    catalog: Arc<dyn Catalog>,
    ident: TableIdent,
    env: &Env,
) -> crate::Result<LogicalPlan> {
    let version = format_version(&create.properties)?;
    let schema = optional(schema_from_arrow(query.schema().as_arrow(), 1, version)?);
    let table = new_table(create, schema, catalog.as_ref(), &ident, env)?;
    let staged = StagedTable::new(catalog, ident.clone(), first_state(table, env)?, env.clone());
    let target = provider_as_source(Arc::new(IcebergTableProvider::new(staged.table())?));
    let name = TableReference::partial(ident.namespace.join("."), ident.name.as_str());
    let plan = move || -> Result<LogicalPlan> {
        let columns = query.schema().columns().into_iter();
        let named = columns.map(|c| {
            let name = c.name.clone();
            Expr::Column(c).alias(name)
        });
        let rows = LogicalPlanBuilder::from(query.clone()).project(named)?.build()?;
        let append = DmlStatement::new(name, target, WriteOp::Insert(InsertOp::Append), Arc::new(rows));
        let node = CreateTableAsNode { staged, input: LogicalPlan::Dml(append) };
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    };
    plan().map_err(from_datafusion)
}

/// Every field of `schema` made optional, as in Spark: that a literal is not null is no promise about later rows.
fn optional(schema: Schema) -> Schema {
    fn field(of: &NestedField) -> Arc<NestedField> {
        Arc::new(NestedField { required: false, field_type: inner(&of.field_type), ..of.clone() })
    }
    fn inner(of: &Type) -> Type {
        match of {
            Type::Primitive(_) | Type::Variant => of.clone(),
            Type::Struct(s) => Type::Struct(StructType { fields: s.fields.iter().map(|f| field(f)).collect() }),
            Type::List(l) => Type::List(Box::new(ListType { element: field(&l.element) })),
            Type::Map(m) => Type::Map(Box::new(MapType { key: Arc::clone(&m.key), value: field(&m.value) })),
        }
    }
    let fields = StructType { fields: schema.fields.fields.iter().map(|f| field(f)).collect() };
    Schema { fields, ..schema }
}

/// Creates a table by the append below it.
#[derive(Debug, Clone)]
pub(crate) struct CreateTableAsNode {
    staged: Arc<StagedTable>,
    input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for CreateTableAsNode {
    fn name(&self) -> &str {
        "CreateTableAs"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CreateTableAs: {}", self.staged.ident())
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, ..self.clone() }),
            _ => internal_err!("CREATE TABLE AS has one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

impl PartialEq for CreateTableAsNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.staged, &other.staged) && self.input == other.input
    }
}

impl Eq for CreateTableAsNode {}

impl PartialOrd for CreateTableAsNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for CreateTableAsNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.staged).hash(state);
        self.input.hash(state);
    }
}

/// Plans [`CreateTableAsNode`]s.
#[derive(Debug, Default)]
pub(crate) struct CreateTableAsPlanner;

#[async_trait]
impl ExtensionPlanner for CreateTableAsPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<CreateTableAsNode>() else { return Ok(None) };
        match physical_inputs {
            [input] => Ok(Some(Arc::new(CreateTableAsExec::new(Arc::clone(&node.staged), Arc::clone(input))))),
            _ => internal_err!("CREATE TABLE AS has one input"),
        }
    }
}

/// Runs the append, then creates the table if there was nothing to append. Its output is the append's.
#[derive(Debug)]
struct CreateTableAsExec {
    staged: Arc<StagedTable>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl CreateTableAsExec {
    fn new(staged: Arc<StagedTable>, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { staged, input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for CreateTableAsExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => write!(f, "table={}", self.staged.ident()),
            _ => write!(f, "CreateTableAsExec: table={}", self.staged.ident()),
        }
    }
}

impl ExecutionPlan for CreateTableAsExec {
    fn name(&self) -> &str {
        "CreateTableAsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(Arc::clone(&self.staged), input))),
            _ => internal_err!("CREATE TABLE AS has one input"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("CREATE TABLE AS has one partition, not {partition}");
        }
        let appended = self.input.execute(0, context)?;
        let staged = Arc::clone(&self.staged);
        let run = async move {
            let counts: Vec<_> = appended.try_collect().await?;
            staged.create_if_not_committed().await.map_err(to_datafusion)?;
            Ok::<_, datafusion::error::DataFusionError>(stream::iter(counts.into_iter().map(Ok)))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::once(run).try_flatten())))
    }
}
