//! Guards against DataFusion's own wrong answers.
//!
//! Some expressions and plans get another meaning on their way through DataFusion 55, which a DELETE would turn into lost rows.
//! [`GuardRule`] runs before every other analyzer rule and rewrites what is at risk into forms that keep their meaning, or
//! refuses a writing statement and says what to write instead; [`CheckedArithmeticRule`] runs last and makes arithmetic fail
//! rather than wrap; [`GuardedPlanner`] plans writing statements under settings of its own. Queries that read an Iceberg table
//! get the rewrites, not the refusals. Other queries are left alone.

mod arithmetic;
mod distinct;
mod foreign;
mod lists;
mod operators;
mod planning;
mod subqueries;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, WriteOp};
use datafusion::optimizer::AnalyzerRule;

use super::analyze::RowLevelDmlRule;
use crate::Error;
use crate::provider::IcebergTableProvider;

pub use arithmetic::CheckedArithmeticRule;
pub(crate) use arithmetic::checked;
pub use planning::GuardedPlanner;
pub(crate) use subqueries::has_subquery;

/// A session's analyzer rules with ours around them: [`GuardRule`] and [`RowLevelDmlRule`] see the statement as written, and
/// what they build is coerced; [`CheckedArithmeticRule`] needs the final types.
pub fn guarded_analyzer_rules(
    others: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let first: [Arc<dyn AnalyzerRule + Send + Sync>; 2] = [Arc::new(GuardRule), Arc::new(RowLevelDmlRule)];
    let last: Arc<dyn AnalyzerRule + Send + Sync> = Arc::new(CheckedArithmeticRule);
    first.into_iter().chain(others).chain([last]).collect()
}

/// Rewrites or refuses what DataFusion would get wrong. Install it as the first analyzer rule.
#[derive(Debug, Default)]
pub struct GuardRule;

impl AnalyzerRule for GuardRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let writing = writes(&plan);
        if writing {
            distinct::refuse_ambiguous(&plan)?;
        } else if !reads_iceberg(&plan)? {
            return Ok(plan);
        }
        guard_plan(plan, writing)
    }

    fn name(&self) -> &str {
        "iceberg_guards"
    }
}

/// Plan nodes of ours that write what their input gives.
const WRITING_NODES: &[&str] = &["RowDelta", "Overwrite", "CreateTableAs"];

/// Whether the plan is of a statement that writes.
pub(crate) fn writes(plan: &LogicalPlan) -> bool {
    let is_write = |node: &LogicalPlan| match node {
        LogicalPlan::Dml(_) => true,
        LogicalPlan::Extension(extension) => WRITING_NODES.contains(&extension.node.name()),
        _ => false,
    };
    plan.exists(|node| Ok(is_write(node))).unwrap_or(true)
}

fn reads_iceberg(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= is_iceberg_scan(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_iceberg_scan(node: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = node else { return false };
    source_as_provider(&scan.source).is_ok_and(|provider| provider.is::<IcebergTableProvider>())
}

fn is_iceberg_target(dml: &DmlStatement) -> bool {
    source_as_provider(&dml.target).is_ok_and(|provider| provider.is::<IcebergTableProvider>())
}

/// Guards every expression of a plan, subqueries first.
fn guard_plan(plan: LogicalPlan, writing: bool) -> Result<LogicalPlan> {
    if is_foreign_change(&plan)? {
        return Ok(plan);
    }
    Ok(plan.transform_up_with_subqueries(|node| guard_node(node, writing))?.data)
}

/// Whether the plan changes rows of another table. Its filters go to that table, which knows no functions of ours.
fn is_foreign_change(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Dml(dml) if !matches!(dml.op, WriteOp::Insert(_)) && !is_iceberg_target(dml)))
    })
}

fn guard_node(node: LogicalPlan, writing: bool) -> Result<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Dml(dml) => return guard_merge(dml, writing),
        // Its filters are part of a filter above it.
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) | LogicalPlan::Subquery(_) => {
            return Ok(Transformed::no(node));
        }
        other => other,
    };
    let schema = merge_schema(&node.inputs());
    let is_condition = matches!(node, LogicalPlan::Filter(_));
    let is_join = matches!(node, LogicalPlan::Join(_));
    let stores = writing && matches!(node, LogicalPlan::Projection(_));
    let names = NamePreserver::new(&node);
    let guarded = node.map_expressions(|expr| {
        if writing && is_condition {
            refuse_functions_of_many_rows(&expr)?;
        }
        let name = names.save(&expr);
        let guarded = guard_parts(expr.clone(), &schema, writing, !is_condition && !is_join)?;
        let guarded = match (is_condition, stores) {
            (true, _) => subqueries::guard_condition(guarded, &schema, writing)?.data,
            (_, true) => subqueries::guard_value(guarded, &schema, writing)?.data,
            _ => guarded,
        };
        Ok(if guarded == expr { Transformed::no(expr) } else { Transformed::yes(name.restore(guarded)) })
    })?;
    guarded.map_data(|node| if is_condition || is_join { Ok(node) } else { node.recompute_schema() })
}

/// What DataFusion's planner would refuse by printing its own structures.
fn refuse_functions_of_many_rows(condition: &Expr) -> Result<()> {
    let mut found = None;
    condition.apply(|e| {
        found = match e {
            Expr::AggregateFunction(function) => Some(("aggregate", function.func.name().to_owned())),
            Expr::WindowFunction(function) => Some(("window", function.fun.name().to_owned())),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match found {
        Some((kind, name)) => Err(Error::invalid_input(format!(
            "{kind} function {name} stands in a condition on single rows; put it in a subquery"
        ))
        .into()),
        None => Ok(()),
    }
}

/// Guards an expression that will be evaluated over `schema` but stands in no plan yet.
fn guard_parts(expr: Expr, schema: &DFSchema, writing: bool, everywhere: bool) -> Result<Expr> {
    let expr = expr
        .transform_up(|e| {
            subqueries::guard_shape(e, writing)?.transform_data(|e| operators::guard_operator(e, schema, writing))
        })?
        .data;
    lists::guard_lists(expr, schema, everywhere)
}

/// The expressions of a MERGE are outside its plan.
fn guard_merge(dml: DmlStatement, writing: bool) -> Result<Transformed<LogicalPlan>> {
    let WriteOp::MergeInto(merge) = &dml.op else { return Ok(Transformed::no(LogicalPlan::Dml(dml))) };
    let target = DFSchema::try_from_qualified_schema(dml.table_name.clone(), &dml.target.schema())?;
    let schema = target.join(dml.input.schema()).unwrap_or(target);
    let exprs = merge.exprs().into_iter().map(|e| {
        let guarded = guard_parts(e.clone(), &schema, writing, true)?;
        Ok(subqueries::guard_value(guarded, &schema, writing)?.data)
    });
    let merge = merge.with_new_exprs(exprs.collect::<Result<Vec<_>>>()?)?;
    let op = WriteOp::MergeInto(Box::new(merge));
    Ok(Transformed::yes(LogicalPlan::Dml(DmlStatement { op, ..dml })))
}

/// A condition that reaches planning without a plan around it, guarded as [`GuardRule`] does.
pub(crate) fn guard_condition(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    let guarded = guard_parts(condition, schema, true, false)?;
    Ok(subqueries::guard_condition(guarded, schema, true)?.data)
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(Error::unsupported(what.to_owned()).into())
}
