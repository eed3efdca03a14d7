//! MERGE as a query: source and target joined, the acting clause of each row, and the row it leaves.
//!
//! The source stands on the left of the join, so that the usually smaller side is the one that is hashed. A source row and a
//! target row meet where ON is true; null is no match. Above the join one projection says which clause acts (the first of
//! its kind whose condition is true) and a second one builds the new row. Rows that nothing happens to leave the plan
//! between them, except matched ones while a second match of their target row would be an error.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, JoinType, Result, ScalarValue, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, MergeIntoAction, MergeIntoClause, MergeIntoClauseKind,
    MergeIntoOp, cast, ident, lit,
};
use uuid::Uuid;

use super::{extension, own_columns, pin_scans, pin_scans_in_expr, row_id};
use crate::dml::guard::has_subquery;
use crate::dml::logical::{Change, ChangeKind, Command, OPERATION_COLUMN, Operation, RowDeltaNode};
use crate::provider::{FILE_COLUMN, IcebergTableProvider, POSITION_COLUMN};

/// True in every row of the source, null where an outer join made one up.
const SOURCE: &str = "__calve_source";
/// Index of the clause that acts, null where none does.
const CLAUSE: &str = "__calve_clause";

/// The clauses, sorted by the rows that they are for.
struct Clauses<'a> {
    matched: Vec<(i32, &'a MergeIntoClause)>,
    by_target: Vec<(i32, &'a MergeIntoClause)>,
    by_source: Vec<(i32, &'a MergeIntoClause)>,
}

impl<'a> Clauses<'a> {
    fn new(merge: &'a MergeIntoOp, target_name: &TableReference) -> Result<Self> {
        let mut clauses = Self { matched: Vec::new(), by_target: Vec::new(), by_source: Vec::new() };
        for (index, clause) in (0..).zip(&merge.clauses) {
            let (name, kind) = match clause.kind {
                MergeIntoClauseKind::Matched => ("MATCHED", &mut clauses.matched),
                MergeIntoClauseKind::NotMatched | MergeIntoClauseKind::NotMatchedByTarget => {
                    ("NOT MATCHED", &mut clauses.by_target)
                }
                MergeIntoClauseKind::NotMatchedBySource => ("NOT MATCHED BY SOURCE", &mut clauses.by_source),
            };
            if kind.last().is_some_and(|(_, before)| before.predicate.is_none()) {
                return plan_err!("a WHEN {name} clause without condition must be the last of its kind");
            }
            let inserts = matches!(clause.action, MergeIntoAction::Insert { .. });
            if inserts != clause.kind.is_not_matched_by_target() {
                return plan_err!("WHEN {name} cannot {}", if inserts { "INSERT" } else { "UPDATE or DELETE" });
            }
            if let Some(column) = out_of_sight(clause, target_name) {
                return plan_err!("column {column} has no value in a WHEN {name} clause");
            }
            if clause.predicate.as_ref().is_some_and(Expr::is_volatile) {
                return plan_err!(
                    "the condition of WHEN {name} is not deterministic, so which rows it is for is left to chance"
                );
            }
            kind.push((index, clause));
        }
        Ok(clauses)
    }

    fn join_type(&self) -> JoinType {
        match (self.by_target.is_empty(), self.by_source.is_empty()) {
            _ if self.matched.is_empty() && self.by_source.is_empty() => JoinType::LeftAnti,
            (true, true) => JoinType::Inner,
            (false, true) => JoinType::Left,
            (true, false) => JoinType::Right,
            (false, false) => JoinType::Full,
        }
    }

    /// Whether two source rows for one target row are an error: with any MATCHED clause but a lone unconditional DELETE.
    fn one_match(&self) -> bool {
        !matches!(
            self.matched.as_slice(),
            [] | [(_, MergeIntoClause { predicate: None, action: MergeIntoAction::Delete, .. })]
        )
    }

    /// Whether some row of the join may have no clause that acts.
    fn leave_rows(&self) -> bool {
        let open = |kind: &[(i32, &MergeIntoClause)]| kind.last().is_none_or(|(_, last)| last.predicate.is_some());
        let join = self.join_type();
        let unmatched = |kind: &[(i32, &MergeIntoClause)], joined: bool| joined && open(kind);
        let matched = join != JoinType::LeftAnti && open(&self.matched);
        let by_target = matches!(join, JoinType::Left | JoinType::Full | JoinType::LeftAnti);
        let by_source = matches!(join, JoinType::Right | JoinType::Full);
        matched || unmatched(&self.by_target, by_target) || unmatched(&self.by_source, by_source)
    }
}

/// A column that a clause names although rows of its kind have none: one of the source in NOT MATCHED BY SOURCE, one of the
/// target in NOT MATCHED.
fn out_of_sight(clause: &MergeIntoClause, target_name: &TableReference) -> Option<Column> {
    let values: Vec<&Expr> = match &clause.action {
        MergeIntoAction::Update(assignments) => assignments.iter().map(|(_, value)| value).collect(),
        MergeIntoAction::Insert { values, .. } => values.iter().collect(),
        MergeIntoAction::Delete => Vec::new(),
    };
    let of_target = |column: &&Column| column.relation.as_ref() == Some(target_name);
    let hidden = |column: &&Column| match clause.kind {
        MergeIntoClauseKind::Matched => false,
        MergeIntoClauseKind::NotMatchedBySource => !of_target(column),
        MergeIntoClauseKind::NotMatched | MergeIntoClauseKind::NotMatchedByTarget => of_target(column),
    };
    let named = clause.predicate.iter().chain(values).flat_map(Expr::column_refs);
    named.into_iter().find(hidden).cloned()
}

pub(super) fn merge(dml: &DmlStatement, merge: &MergeIntoOp, target: &IcebergTableProvider) -> Result<LogicalPlan> {
    let clauses = Clauses::new(merge, &dml.table_name)?;
    if has_subquery(&merge.on) {
        return plan_err!("ON of a MERGE takes no subquery; move it into the source");
    }
    if merge.on.is_volatile() {
        return plan_err!("ON of a MERGE is not deterministic, so which rows match is left to chance");
    }
    let join_type = clauses.join_type();
    let token = if join_type == JoinType::LeftAnti { Uuid::nil() } else { target.table().env.uuid() };
    let provider = if token.is_nil() { target.clone() } else { target.as_target(token)? };
    let rows = LogicalPlanBuilder::scan(dml.table_name.clone(), provider_as_source(Arc::new(provider)), None)?;
    let target_schema = Arc::clone(rows.schema());
    let joined = source(dml, target)?.join_on(rows.build()?, join_type, [merge.on.clone()])?;

    let acting = acting_clause(&clauses, join_type, target)?;
    let one_match = clauses.one_match();
    let mut columns: Vec<Expr> = joined.schema().columns().into_iter().map(Expr::Column).collect();
    columns.push(acting.alias(CLAUSE));
    let mut classified = joined.project(columns)?;
    if clauses.leave_rows() {
        let acts = ident(CLAUSE).is_not_null();
        classified = match one_match {
            false => classified.filter(acts)?,
            true if join_type == JoinType::Inner => classified,
            true => classified.filter(acts.or(is_matched()))?,
        };
    }
    let input = classified.project(new_rows(dml, merge, target, token.is_nil())?)?.build()?;

    // A file without a row that can meet a source row is not touched, unless rows that meet none are.
    let condition = match clauses.by_source.is_empty() {
        true => target_conjuncts(&merge.on, dml),
        false => None,
    };
    let inserts = !clauses.by_target.is_empty();
    let updates = merge.clauses.iter().any(|clause| matches!(clause.action, MergeIntoAction::Update(_)));
    let change = Change { kind: ChangeKind::Merge, condition: condition.map(Box::new), one_match, updates, inserts };
    extension(RowDeltaNode::try_new(target.table().clone(), Command::Change(change), input, target_schema, token)?)
}

/// The source with [`SOURCE`] behind its columns.
fn source(dml: &DmlStatement, target: &IcebergTableProvider) -> Result<LogicalPlanBuilder> {
    let plan = pin_scans(dml.input.as_ref().clone(), target)?;
    let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    columns.push(lit(true).alias(SOURCE));
    LogicalPlanBuilder::from(plan).project(columns)
}

fn is_matched() -> Expr {
    ident(POSITION_COLUMN).is_not_null().and(ident(SOURCE).is_not_null())
}

/// The index of the first clause of a row's kind whose condition is true.
fn acting_clause(clauses: &Clauses<'_>, join_type: JoinType, target: &IcebergTableProvider) -> Result<Expr> {
    let first = |kind: &[(i32, &MergeIntoClause)]| -> Result<Expr> {
        let mut when = Vec::new();
        let mut otherwise = lit(ScalarValue::Int32(None));
        for (index, clause) in kind {
            match &clause.predicate {
                Some(predicate) => {
                    when.push((Box::new(pin_scans_in_expr(predicate.clone(), target)?), Box::new(lit(*index))));
                }
                None => otherwise = lit(*index),
            }
        }
        if when.is_empty() {
            return Ok(otherwise);
        }
        Ok(Expr::Case(Case { expr: None, when_then_expr: when, else_expr: Some(Box::new(otherwise)) }))
    };
    let matched = first(&clauses.matched)?;
    let by_target = first(&clauses.by_target)?;
    let by_source = first(&clauses.by_source)?;
    let mut when = Vec::new();
    let otherwise = match join_type {
        JoinType::LeftAnti => by_target,
        JoinType::Inner => matched,
        JoinType::Left => {
            when.push((ident(POSITION_COLUMN).is_not_null(), matched));
            by_target
        }
        JoinType::Right => {
            when.push((ident(SOURCE).is_not_null(), matched));
            by_source
        }
        _ => {
            when.push((is_matched(), matched));
            when.push((ident(SOURCE).is_not_null(), by_target));
            by_source
        }
    };
    if when.is_empty() {
        return Ok(otherwise);
    }
    let when_then_expr = when.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(otherwise)) }))
}

/// Address, operation, row id and new values of each row; `inserts` says that all of them are new.
fn new_rows(
    dml: &DmlStatement,
    merge: &MergeIntoOp,
    target: &IcebergTableProvider,
    inserts: bool,
) -> Result<Vec<Expr>> {
    let operation = |clause: &MergeIntoClause| match clause.action {
        MergeIntoAction::Update(_) => Operation::Update,
        MergeIntoAction::Insert { .. } => Operation::Insert,
        MergeIntoAction::Delete => Operation::Delete,
    };
    let codes = (0..).zip(&merge.clauses).map(|(index, clause)| (index, lit(operation(clause).code())));
    let operation = by_clause(codes.collect(), lit(Operation::Keep.code()));
    let mut columns = match inserts {
        true => {
            let file = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            let position = lit(ScalarValue::Int64(None));
            vec![lit(ScalarValue::try_from(&file)?).alias(FILE_COLUMN), position.clone().alias(POSITION_COLUMN)]
        }
        false => vec![ident(FILE_COLUMN), ident(POSITION_COLUMN)],
    };
    columns.push(operation.alias(OPERATION_COLUMN));
    columns.push(if inserts { super::no_row_id() } else { row_id(target) });
    for (position, field) in own_columns(target).iter().enumerate() {
        let mut values = Vec::new();
        for (index, clause) in (0..).zip(&merge.clauses) {
            if let Some(value) = new_value(dml, &clause.action, target, position, field) {
                values.push((index, cast(pin_scans_in_expr(value, target)?, field.data_type().clone())));
            }
        }
        let null = lit(ScalarValue::try_from(field.data_type())?);
        columns.push(by_clause(values, null).alias(field.name()));
    }
    Ok(columns)
}

/// What an action leaves in a column; `None` when it leaves no row.
fn new_value(
    dml: &DmlStatement,
    action: &MergeIntoAction,
    target: &IcebergTableProvider,
    position: usize,
    field: &FieldRef,
) -> Option<Expr> {
    match action {
        MergeIntoAction::Delete => None,
        MergeIntoAction::Update(assignments) => {
            let assigned = assignments.iter().find(|(name, _)| name == field.name()).map(|(_, value)| value.clone());
            Some(assigned.unwrap_or_else(|| Expr::Column(Column::new(Some(dml.table_name.clone()), field.name()))))
        }
        MergeIntoAction::Insert { columns, values } => {
            let index = match columns.is_empty() {
                true => Some(position),
                false => columns.iter().position(|name| name == field.name()),
            };
            let given = index.and_then(|index| values.get(index)).cloned();
            let default = || target.get_column_default(field.name()).cloned();
            given.or_else(default).or_else(|| ScalarValue::try_from(field.data_type()).ok().map(lit))
        }
    }
}

/// `CASE clause WHEN index THEN value … ELSE otherwise END`.
fn by_clause(values: Vec<(i32, Expr)>, otherwise: Expr) -> Expr {
    if values.is_empty() {
        return otherwise;
    }
    let when = values.into_iter().map(|(index, value)| (Box::new(lit(index)), Box::new(value)));
    Expr::Case(Case {
        expr: Some(Box::new(ident(CLAUSE))),
        when_then_expr: when.collect(),
        else_expr: Some(Box::new(otherwise)),
    })
}

/// What ON says of the target alone.
fn target_conjuncts(on: &Expr, dml: &DmlStatement) -> Option<Expr> {
    let of_target = |expr: &&Expr| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|c| c.relation.as_ref().is_some_and(|r| *r == dml.table_name))
    };
    split_conjunction(on).into_iter().filter(of_target).cloned().reduce(Expr::and)
}
