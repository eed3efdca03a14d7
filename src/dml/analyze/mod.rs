//! The analyzer rule that takes writing statements on Iceberg tables out of DataFusion's hands.
//!
//! DataFusion's own DML hooks receive a list of filters that forgets subqueries and limits, so a `LogicalPlan::Dml` on one
//! of our tables becomes a [`RowDeltaNode`] over an ordinary query before anything else happens to it. The rule runs first,
//! so that the plan it builds goes through type coercion like any other. Invariant: every scan of the target within the
//! statement reads the one snapshot that the statement is pinned to.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, TableReference, not_impl_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Expr, Extension, LogicalPlan, LogicalPlanBuilder, TableScan, WriteOp, ident, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use uuid::Uuid;

use crate::options::PartitionOverwriteMode;
use crate::provider::{FILE_COLUMN, IcebergTableProvider, MetadataTableProvider, POSITION_COLUMN, ROW_ID_COLUMN};
use crate::spec::FormatVersion;

use super::guard::guard_condition;
use super::logical::{Command, Matching, OverwriteNode, OverwriteScope, RowDeltaNode};
use super::physical::partition_overwrite_mode;

mod merge;
mod update;

/// Replaces DML on Iceberg tables by [`RowDeltaNode`]s. Install it as the first analyzer rule.
#[derive(Debug, Default)]
pub struct RowLevelDmlRule;

impl AnalyzerRule for RowLevelDmlRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_down(|node| match node {
            LogicalPlan::Dml(dml) => match iceberg_target(&dml)? {
                Some(target) => {
                    rewrite(&dml, &target, config).map(|plan| Transformed::new(plan, true, TreeNodeRecursion::Jump))
                }
                None => Ok(Transformed::new(LogicalPlan::Dml(dml), false, TreeNodeRecursion::Jump)),
            },
            other => Ok(Transformed::no(other)),
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        "iceberg_row_level_dml"
    }
}

fn iceberg_target(dml: &DmlStatement) -> Result<Option<IcebergTableProvider>> {
    let provider = source_as_provider(&dml.target)?;
    Ok(provider.downcast_ref::<IcebergTableProvider>().cloned())
}

fn rewrite(dml: &DmlStatement, target: &IcebergTableProvider, config: &ConfigOptions) -> Result<LogicalPlan> {
    target.check_writable()?;
    match &dml.op {
        WriteOp::Insert(InsertOp::Append) => append(dml, target),
        WriteOp::Insert(InsertOp::Overwrite) => {
            let scope = match partition_overwrite_mode(config)? {
                PartitionOverwriteMode::Static => OverwriteScope::Table,
                PartitionOverwriteMode::Dynamic => OverwriteScope::Partitions,
            };
            let rows = pin_scans(dml.input.as_ref().clone(), target)?;
            overwrite_node(OverwriteNode::try_new(target.table().clone(), scope, rows)?)
        }
        WriteOp::Delete => delete(dml, target),
        WriteOp::Truncate => delete_rows(dml, target, None, None),
        WriteOp::Update => update::update(dml, target),
        WriteOp::MergeInto(merge) => merge::merge(dml, merge, target),
        other => {
            let name = match other {
                WriteOp::Insert(InsertOp::Replace) => "REPLACE INTO",
                _ => other.name(),
            };
            not_impl_err!("{name} on an Iceberg table is not supported by this version of calve")
        }
    }
}

fn append(dml: &DmlStatement, target: &IcebergTableProvider) -> Result<LogicalPlan> {
    let input = pin_scans(dml.input.as_ref().clone(), target)?;
    extension(RowDeltaNode::try_new(
        target.table().clone(),
        Command::Append,
        input,
        Arc::clone(dml.input.schema()),
        Uuid::nil(),
    )?)
}

fn delete(dml: &DmlStatement, target: &IcebergTableProvider) -> Result<LogicalPlan> {
    if let LogicalPlan::Limit(_) = dml.input.as_ref() {
        return plan_err!("DELETE … LIMIT is not supported: which rows go would be left to chance");
    }
    let (condition, scan) = match dml.input.as_ref() {
        LogicalPlan::Filter(filter) => (Some(filter.predicate.clone()), filter.input.as_ref()),
        scan => (None, scan),
    };
    match scan {
        LogicalPlan::TableScan(_) => delete_rows(dml, target, None, condition),
        LogicalPlan::SubqueryAlias(alias) if matches!(alias.input.as_ref(), LogicalPlan::TableScan(_)) => {
            delete_rows(dml, target, Some(alias.alias.clone()), condition)
        }
        _ => plan_err!("cannot delete from an Iceberg table by this plan:\n{}", dml.input.display_indent()),
    }
}

/// The plan that puts `rows`, which have the columns of `target`, in the place of those that `condition` selects. The
/// condition names the target's columns by `name`. What files are chosen by is guarded here, because no rule sees it within
/// the node; the filter is guarded with the rest of the plan.
pub(crate) fn overwrite_matching(
    target: &IcebergTableProvider,
    name: &TableReference,
    condition: Expr,
    rows: LogicalPlan,
) -> Result<LogicalPlan> {
    target.check_writable()?;
    let table = target.table();
    let token = table.env.uuid();
    let source = provider_as_source(Arc::new(target.as_target(token)?));
    let scan = LogicalPlanBuilder::scan(name.clone(), source, None)?;
    let target_schema = Arc::clone(scan.schema());
    let filtered = scan.filter(pin_scans_in_expr(condition.clone(), target)?)?;
    let condition = guard_condition(condition, &target_schema)?;
    let addresses = Arc::new(filtered.project(vec![ident(FILE_COLUMN), ident(POSITION_COLUMN)])?.build()?);
    let matching = Matching { condition, addresses, target_schema, scan_token: token };
    let scope = OverwriteScope::Matching(Box::new(matching));
    overwrite_node(OverwriteNode::try_new(table.clone(), scope, pin_scans(rows, target)?)?)
}

fn overwrite_node(node: OverwriteNode) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// `alias` is the name that the condition has for the target, if not the table's own.
fn delete_rows(
    dml: &DmlStatement,
    target: &IcebergTableProvider,
    alias: Option<TableReference>,
    condition: Option<Expr>,
) -> Result<LogicalPlan> {
    let token = target.table().env.uuid();
    let source = provider_as_source(Arc::new(target.as_target(token)?));
    let mut scan = LogicalPlanBuilder::scan(dml.table_name.clone(), source, None)?;
    if let Some(alias) = alias {
        scan = scan.alias(alias)?;
    }
    let target_schema = Arc::clone(scan.schema());
    let filtered = match &condition {
        Some(condition) => scan.filter(pin_scans_in_expr(condition.clone(), target)?)?,
        None => scan,
    };
    let input = filtered.project(vec![ident(FILE_COLUMN), ident(POSITION_COLUMN)])?.build()?;
    let command = Command::Delete { condition: condition.map(Box::new) };
    extension(RowDeltaNode::try_new(target.table().clone(), command, input, target_schema, token)?)
}

/// The target's columns, hidden ones left out, in the order of its schema.
fn own_columns(target: &IcebergTableProvider) -> Vec<FieldRef> {
    let schema = target.schema();
    let own = target.iceberg_schema().fields.fields.iter();
    own.filter_map(|field| schema.field_with_name(&field.name).ok().cloned().map(Arc::new)).collect()
}

/// The id of a target's row; null before format version 3.
fn row_id(target: &IcebergTableProvider) -> Expr {
    match target.table().metadata.format_version >= FormatVersion::V3 {
        true => ident(ROW_ID_COLUMN),
        false => no_row_id(),
    }
}

/// What a row without id has for one.
fn no_row_id() -> Expr {
    lit(ScalarValue::Int64(None)).alias(ROW_ID_COLUMN)
}

fn extension(node: RowDeltaNode) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// Makes every scan of the target's current state read the snapshot that `target` is pinned to.
fn pin_scans(plan: LogicalPlan, target: &IcebergTableProvider) -> Result<LogicalPlan> {
    let pinned = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => match pinned_provider(&scan, target)? {
            Some(provider) => {
                let source = provider_as_source(provider);
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            None => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    Ok(pinned.data)
}

fn pin_scans_in_expr(expr: Expr, target: &IcebergTableProvider) -> Result<Expr> {
    let pinned = expr.transform_down(|expr| {
        Ok(match expr {
            Expr::ScalarSubquery(mut subquery) => {
                subquery.subquery = Arc::new(pin_scans(subquery.subquery.as_ref().clone(), target)?);
                Transformed::yes(Expr::ScalarSubquery(subquery))
            }
            Expr::InSubquery(mut in_subquery) => {
                let plan = pin_scans(in_subquery.subquery.subquery.as_ref().clone(), target)?;
                in_subquery.subquery.subquery = Arc::new(plan);
                Transformed::yes(Expr::InSubquery(in_subquery))
            }
            Expr::Exists(mut exists) => {
                exists.subquery.subquery = Arc::new(pin_scans(exists.subquery.subquery.as_ref().clone(), target)?);
                Transformed::yes(Expr::Exists(exists))
            }
            Expr::SetComparison(mut comparison) => {
                let plan = pin_scans(comparison.subquery.subquery.as_ref().clone(), target)?;
                comparison.subquery.subquery = Arc::new(plan);
                Transformed::yes(Expr::SetComparison(comparison))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(pinned.data)
}

fn pinned_provider(scan: &TableScan, target: &IcebergTableProvider) -> Result<Option<Arc<dyn TableProvider>>> {
    let Ok(provider) = source_as_provider(&scan.source) else { return Ok(None) };
    if let Some(metadata) = provider.downcast_ref::<MetadataTableProvider>() {
        return Ok(metadata.pinned_to(target.table())?.map(|provider| Arc::new(provider) as _));
    }
    let Some(provider) = provider.downcast_ref::<IcebergTableProvider>() else { return Ok(None) };
    Ok(provider.pinned_to(target.table())?.map(|provider| Arc::new(provider) as _))
}
