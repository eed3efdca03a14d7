//! UPDATE as a query over the rows it changes: their addresses and their new values.

use std::sync::Arc;

use datafusion::common::{Result, internal_err, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, LogicalPlanBuilder, ident, lit};

use super::{extension, own_columns, pin_scans_in_expr, row_id};
use crate::dml::logical::{Change, ChangeKind, Command, OPERATION_COLUMN, Operation, RowDeltaNode};
use crate::provider::{FILE_COLUMN, IcebergTableProvider, POSITION_COLUMN};

/// DataFusion plans UPDATE as a projection onto the whole row over the rows that the condition selects; all its expressions
/// see the old row.
pub(super) fn update(dml: &DmlStatement, target: &IcebergTableProvider) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(new_row) = dml.input.as_ref() else { return unexpected(dml) };
    let (condition, scan) = match new_row.input.as_ref() {
        LogicalPlan::Filter(filter) => (Some(filter.predicate.clone()), filter.input.as_ref()),
        scan => (None, scan),
    };
    let alias = match scan {
        LogicalPlan::TableScan(_) => None,
        LogicalPlan::SubqueryAlias(alias) if matches!(alias.input.as_ref(), LogicalPlan::TableScan(_)) => {
            Some(alias.alias.clone())
        }
        _ => return unexpected(dml),
    };
    let token = target.table().env.uuid();
    let provider = target.as_target(token)?;
    let mut rows = LogicalPlanBuilder::scan(dml.table_name.clone(), provider_as_source(Arc::new(provider)), None)?;
    if let Some(alias) = alias {
        rows = rows.alias(alias)?;
    }
    let target_schema = Arc::clone(rows.schema());
    if let Some(condition) = &condition {
        rows = rows.filter(pin_scans_in_expr(condition.clone(), target)?)?;
    }
    let operation = lit(Operation::Update.code()).alias(OPERATION_COLUMN);
    let mut columns = vec![ident(FILE_COLUMN), ident(POSITION_COLUMN), operation, row_id(target)];
    for field in own_columns(target) {
        let index = new_row.schema.index_of_column_by_name(None, field.name());
        let Some(value) = index.and_then(|index| new_row.expr.get(index)) else {
            return internal_err!("the new row of an UPDATE lacks column {}", field.name());
        };
        columns.push(pin_scans_in_expr(value.clone(), target)?);
    }
    let input = rows.project(columns)?.build()?;
    let change = Change {
        kind: ChangeKind::Update,
        condition: condition.map(Box::new),
        one_match: false,
        updates: true,
        inserts: false,
    };
    extension(RowDeltaNode::try_new(target.table().clone(), Command::Change(change), input, target_schema, token)?)
}

fn unexpected(dml: &DmlStatement) -> Result<LogicalPlan> {
    plan_err!("cannot update an Iceberg table by this plan:\n{}", dml.input.display_indent())
}
