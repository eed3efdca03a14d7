//! From the logical node of a writing statement to its physical plan.
//!
//! Finds the target's own scan in the physical input by its token, takes out the files that the condition covers whole or
//! not at all, and puts writer and commit node on top. When no file is left to read there is no scan in the plan.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode, col, ident};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use uuid::Uuid;

use crate::dml::delete_plan::{DeletePlan, position_deletes, whole_file_deletes};
use crate::dml::guard::{checked, guard_condition};
use crate::dml::logical::{ChangeKind, Command, RowDeltaNode};
use crate::dml::strict_pruning::{Split, split};
use crate::dml::{RowDelete, RowLevelCommand, effective_mode};
use crate::error::Error;
use crate::expr::Predicate;
use crate::options::{CalveOptions, PartitionOverwriteMode};
use crate::provider::predicate::to_predicate;
use crate::provider::{FILE_COLUMN, IcebergScan, IcebergTableProvider, POSITION_COLUMN, from_datafusion};
use crate::scan::{DeleteLoader, FileScanTask};
use crate::spec::properties::RowLevelMode;
use crate::table::Table;

use super::changed_rows::ChangeOptions;
use super::commit::{ChangeStatement, CommitExec, DeleteStatement, Statement};
use super::handover::Handover;
use super::message::Messages;
use super::row_delta_writer::{RowDeltaWriterExec, RowKind};

/// Plans [`RowDeltaNode`]s.
#[derive(Debug, Default)]
pub struct RowDeltaPlanner;

#[async_trait]
impl ExtensionPlanner for RowDeltaPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<RowDeltaNode>(), physical_inputs) else {
            return Ok(None);
        };
        let table = node.table.clone();
        let handover = Handover::new(table.io.clone());
        let plan = match &node.command {
            Command::Append | Command::Create => {
                let writer = Arc::new(RowDeltaWriterExec::new(
                    table.clone(),
                    RowKind::Added,
                    Arc::clone(input),
                    handover.clone(),
                ));
                let statement = if node.command == Command::Create { Statement::Create } else { Statement::Append };
                CommitExec::new(table, statement, writer, handover)
            }
            Command::Delete { condition } => {
                let options = session.config_options();
                let mode = effective_mode(RowLevelCommand::Delete, &table, options)?;
                let target = plan_target(
                    &table,
                    Files::Droppable,
                    condition.as_deref(),
                    &node.target_schema,
                    Arc::clone(input),
                    node.scan_token,
                    options,
                )?;
                let rows = Arc::clone(&target.input);
                let writer = Arc::new(RowDeltaWriterExec::new(table.clone(), RowKind::Deleted, rows, handover.clone()));
                let statement = DeleteStatement::new(target, mode);
                CommitExec::new(table, Statement::Delete(Arc::new(statement)), writer, handover)
            }
            Command::Change(change) => {
                let options = session.config_options();
                let command = match change.kind {
                    ChangeKind::Update => RowLevelCommand::Update,
                    ChangeKind::Merge => RowLevelCommand::Merge,
                };
                let mode = effective_mode(command, &table, options)?;
                let target = plan_target(
                    &table,
                    Files::Scanned,
                    change.condition.as_deref(),
                    &node.target_schema,
                    Arc::clone(input),
                    node.scan_token,
                    options,
                )?;
                let rows = RowKind::Changed(ChangeOptions { one_match: change.one_match, updates: change.updates });
                let writer = Arc::new(RowDeltaWriterExec::new(table.clone(), rows, target.input, handover.clone()));
                let statement = ChangeStatement {
                    kind: change.kind,
                    filter: target.filter,
                    mode,
                    one_match: change.one_match,
                    inserts: change.inserts,
                    scanned: target.split.scanned,
                    pruned: target.split.pruned,
                    deletes: target.deletes,
                };
                CommitExec::new(table, Statement::Change(Arc::new(statement)), writer, handover)
            }
        };
        Ok(Some(Arc::new(plan)))
    }
}

/// The target of a DELETE, with its files split and its scan reduced to those that must be read.
pub(super) struct Target {
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) filter: Predicate,
    pub(super) split: Split,
    pub(super) deletes: Arc<DeleteLoader>,
}

/// What becomes of a file whose rows all match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    /// It goes without being read.
    Droppable,
    /// It is read: its rows are needed.
    Scanned,
}

pub(super) fn plan_target(
    table: &Table,
    whole: Files,
    condition: Option<&Expr>,
    schema: &DFSchemaRef,
    input: Arc<dyn ExecutionPlan>,
    token: Uuid,
    options: &ConfigOptions,
) -> Result<Target> {
    let filter = match condition {
        None => Predicate::AlwaysTrue,
        Some(condition) => condition_predicate(condition, schema, table)?,
    };
    let strict = whole == Files::Droppable && calve_options(options).strict_pruning;
    let Some(scan) = find_scan(&input, token) else {
        // The optimizer proved that nothing matches and removed the scan.
        let input = match whole {
            Files::Droppable => Arc::new(EmptyExec::new(input.schema())),
            // New rows may come all the same.
            Files::Scanned => input,
        };
        let deletes = Arc::new(DeleteLoader::new(table));
        return Ok(Target { input, filter, split: Split::default(), deletes });
    };
    let mut files = split(scan.tasks, &filter, &table.metadata, strict);
    files.pruned += scan.pruned;
    let name = table.ident.to_string();
    files.scanned.iter().try_for_each(|task| task.check_readable(&name))?;
    let input: Arc<dyn ExecutionPlan> = if files.scanned.is_empty() && whole == Files::Droppable {
        Arc::new(EmptyExec::new(input.schema()))
    } else {
        replace_scan(input, token, &files.scanned)?
    };
    Ok(Target { input, filter, split: files, deletes: scan.deletes })
}

struct TargetScan {
    tasks: Vec<Arc<FileScanTask>>,
    pruned: u64,
    deletes: Arc<DeleteLoader>,
}

fn find_scan(plan: &Arc<dyn ExecutionPlan>, token: Uuid) -> Option<TargetScan> {
    if let Some(scan) = IcebergScan::of(plan.as_ref())
        && scan.target() == Some(token)
    {
        return Some(TargetScan {
            tasks: scan.tasks().to_vec(),
            pruned: scan.metrics().data_files_pruned,
            deletes: Arc::clone(scan.deletes()),
        });
    }
    plan.children().into_iter().find_map(|child| find_scan(child, token))
}

fn replace_scan(
    plan: Arc<dyn ExecutionPlan>,
    token: Uuid,
    tasks: &[Arc<FileScanTask>],
) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = plan.transform_down(|node| {
        let replacement = match IcebergScan::of(node.as_ref()) {
            Some(scan) if scan.target() == Some(token) => Some(scan.with_tasks(tasks)?),
            _ => None,
        };
        Ok(match replacement {
            Some(scan) => Transformed::new(scan, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(replaced.data)
}

/// The condition as a predicate: what cannot be said in one, subqueries first of all, is [`Predicate::Unknown`].
fn condition_predicate(condition: &Expr, schema: &DFSchemaRef, table: &Table) -> Result<Predicate> {
    // A column that no table has stands for every subquery: whatever holds it converts to Unknown.
    const OPAQUE: &str = "__calve_subquery";
    let opaque = DFSchema::from_unqualified_fields(
        vec![datafusion::arrow::datatypes::Field::new(OPAQUE, datafusion::arrow::datatypes::DataType::Boolean, true)]
            .into(),
        HashMap::new(),
    )?;
    let schema: DFSchemaRef = Arc::new(schema.join(&opaque)?);
    let condition = condition
        .clone()
        .transform_down(|expr| {
            Ok(match expr {
                Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => {
                    Transformed::new(ident(OPAQUE), true, TreeNodeRecursion::Jump)
                }
                other if is_over_scalar_subquery(&other) => {
                    Transformed::new(ident(OPAQUE), true, TreeNodeRecursion::Jump)
                }
                other => Transformed::no(other),
            })
        })?
        .data;
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
    let simplified =
        simplifier.coerce(condition, &schema).and_then(|expr| simplifier.simplify(checked(expr, &schema)?.data))?;
    Ok(to_predicate(&simplified, table.metadata.current_schema()?))
}

/// Whether a boolean expression rests on a scalar subquery somewhere below, with no AND, OR or NOT between.
fn is_over_scalar_subquery(expr: &Expr) -> bool {
    use datafusion::logical_expr::Operator::{And, Or};
    let connective =
        matches!(expr, Expr::Not(_)) || matches!(expr, Expr::BinaryExpr(binary) if matches!(binary.op, And | Or));
    !connective && expr.exists(|inner| Ok(matches!(inner, Expr::ScalarSubquery(_)))).unwrap_or(true)
}

fn calve_options(options: &ConfigOptions) -> CalveOptions {
    options.extensions.get::<CalveOptions>().cloned().unwrap_or_default()
}

/// The session's mode for a statement; `None` when unset.
pub(crate) fn session_mode(command: RowLevelCommand, options: &ConfigOptions) -> crate::Result<Option<RowLevelMode>> {
    let options = calve_options(options);
    let (name, text) = match command {
        RowLevelCommand::Delete => ("calve.delete_mode", options.delete_mode),
        RowLevelCommand::Update => ("calve.update_mode", options.update_mode),
        RowLevelCommand::Merge => ("calve.merge_mode", options.merge_mode),
    };
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|choices: Error| Error::invalid_input(format!("{name} is {text:?}; it takes: {}", choices.message())))
}

/// The session option `calve.partition_overwrite_mode`.
pub(crate) fn partition_overwrite_mode(options: &ConfigOptions) -> crate::Result<PartitionOverwriteMode> {
    let text = calve_options(options).partition_overwrite_mode;
    match text.to_ascii_lowercase().as_str() {
        "static" => Ok(PartitionOverwriteMode::Static),
        "dynamic" => Ok(PartitionOverwriteMode::Dynamic),
        _ => {
            Err(Error::invalid_input(format!("calve.partition_overwrite_mode is {text:?}; it takes: static, dynamic")))
        }
    }
}

/// Plans and runs the search of a DELETE on `table`, and decides per file. Nothing is written.
pub(crate) async fn plan_delete(
    state: &SessionState,
    table: &Table,
    condition: Option<Expr>,
) -> crate::Result<DeletePlan> {
    let mode = effective_mode(RowLevelCommand::Delete, table, state.config_options())?;
    let (filter, deletes) = find_rows(state, table, condition).await?;
    DeletePlan::new(table.clone(), filter, mode, deletes)
}

/// Plans and runs the search for the rows of `table` that `condition` selects, file by file. The predicate is the condition
/// as far as it can be said in one.
pub(crate) async fn find_rows(
    state: &SessionState,
    table: &Table,
    condition: Option<Expr>,
) -> crate::Result<(Predicate, Vec<RowDelete>)> {
    let provider = IcebergTableProvider::new(table.clone())?;
    provider.check_writable()?;
    let token = table.env.uuid();
    let source = provider_as_source(Arc::new(provider.as_target(token)?));
    let condition = condition.map(|condition| guarded_condition(condition, table, &source)).transpose();
    let condition = condition.map_err(from_datafusion)?;
    let (schema, input) = row_addresses(source, table, condition.clone()).map_err(from_datafusion)?;
    // Planned as the statement is, under its guards; its search runs, its commit does not.
    let command = Command::Delete { condition: condition.map(Box::new) };
    let node = RowDeltaNode::try_new(table.clone(), command, input, schema, token).map_err(from_datafusion)?;
    let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
    let physical = state.create_physical_plan(&plan).await.map_err(from_datafusion)?;
    let commit = (physical.as_ref() as &dyn Any).downcast_ref::<CommitExec>();
    let Some((delete, search)) = commit.and_then(CommitExec::search) else {
        return Err(Error::internal(
            "a DELETE was planned without a commit; is the extension installed in the session?",
        ));
    };
    let mut messages = Messages::default();
    for batch in collect(search, state.task_ctx()).await.map_err(from_datafusion)? {
        messages.absorb(&batch, &table.metadata)?;
    }
    let mut deletes = whole_file_deletes(&delete.deletes, &delete.dropped).await?;
    deletes.extend(position_deletes(&delete.deletes, &delete.scanned, messages.matched).await?);
    Ok((delete.filter.clone(), deletes))
}

/// The condition as the analyzer guards it, for the choice of files must go by the same.
fn guarded_condition(
    condition: Expr,
    table: &Table,
    source: &Arc<dyn datafusion::logical_expr::TableSource>,
) -> Result<Expr> {
    let schema = DFSchema::try_from_qualified_schema(table.ident.name.as_str(), &source.schema())?;
    guard_condition(condition, &schema)
}

fn row_addresses(
    source: Arc<dyn datafusion::logical_expr::TableSource>,
    table: &Table,
    condition: Option<Expr>,
) -> Result<(DFSchemaRef, LogicalPlan)> {
    let scan = LogicalPlanBuilder::scan(table.ident.name.clone(), source, None)?;
    let schema = Arc::clone(scan.schema());
    let filtered = match condition {
        Some(condition) => scan.filter(condition)?,
        None => scan,
    };
    let input = filtered.project(vec![col(FILE_COLUMN), col(POSITION_COLUMN)])?.build()?;
    Ok((schema, input))
}
