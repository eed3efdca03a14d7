//! `UPDATE … FROM` and `DELETE … USING` as MERGE, the most general statement that changes rows.
//!
//! The other tables are the source, the WHERE condition is ON. So an UPDATE for which one row of the target meets two rows of
//! FROM is an error, as for MERGE: it does not say which of them to take.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Join, JoinConstraint, JoinOperator, Merge, MergeAction, MergeClause, MergeClauseKind,
    MergeUpdateExpr, Statement, TableFactor, TableWithJoins, Update, UpdateTableFromKind, Value,
};

/// The target of a statement that [`rewrite`] would change.
pub(crate) fn target(tree: &Statement) -> Option<&TableFactor> {
    match tree {
        Statement::Update(Update {
            table,
            from: Some(_),
            returning: None,
            output: None,
            or: None,
            limit: None,
            order_by,
            ..
        }) if table.joins.is_empty() && order_by.is_empty() => Some(&table.relation),
        Statement::Delete(Delete {
            tables,
            from,
            using: Some(_),
            returning: None,
            output: None,
            limit: None,
            order_by,
            ..
        }) if tables.is_empty() && order_by.is_empty() => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
            match from.as_slice() {
                [only] if only.joins.is_empty() => Some(&only.relation),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Makes a MERGE of the statement, if [`target`] knows it.
pub(crate) fn rewrite(tree: &mut Statement) {
    let Some(table) = target(tree).cloned() else { return };
    let (source, selection, action) = match tree {
        Statement::Update(Update { assignments, from: Some(from), selection, .. }) => {
            let (UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = from;
            let update = MergeUpdateExpr {
                update_token: AttachedToken::empty(),
                assignments: std::mem::take(assignments),
                update_predicate: None,
                delete_predicate: None,
            };
            (std::mem::take(from), selection.take(), MergeAction::Update(update))
        }
        Statement::Delete(Delete { using: Some(using), selection, .. }) => {
            let delete = MergeAction::Delete { delete_token: AttachedToken::empty() };
            (std::mem::take(using), selection.take(), delete)
        }
        _ => return,
    };
    let Some(source) = one_relation(source) else { return };
    let clause = MergeClause {
        when_token: AttachedToken::empty(),
        clause_kind: MergeClauseKind::Matched,
        predicate: None,
        action,
    };
    *tree = Statement::Merge(Merge {
        merge_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        into: true,
        table,
        source,
        on: Box::new(selection.unwrap_or_else(|| Expr::value(Value::Boolean(true)))),
        clauses: vec![clause],
        output: None,
    });
}

/// The tables of a FROM clause as one relation.
fn one_relation(tables: Vec<TableWithJoins>) -> Option<TableFactor> {
    let mut tables = tables.into_iter();
    let mut first = tables.next()?;
    for table in tables {
        let cross = JoinOperator::CrossJoin(JoinConstraint::None);
        let relation = match table.joins.is_empty() {
            true => table.relation,
            false => TableFactor::NestedJoin { table_with_joins: Box::new(table), alias: None },
        };
        first.joins.push(Join { relation, global: false, join_operator: cross });
    }
    Some(match first.joins.is_empty() {
        true => first.relation,
        false => TableFactor::NestedJoin { table_with_joins: Box::new(first), alias: None },
    })
}
