//! `WITH … DELETE`, `WITH … UPDATE`, `WITH … MERGE`: the common table expressions move into the queries of the statement.
//!
//! DataFusion plans WITH before a query alone. Each query of the statement gets the expressions in front of its own, and a
//! relation that is one of them by name becomes a subquery.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, FromTable, Ident, ObjectNamePart, Query, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins,
    UpdateTableFromKind, VisitMut, VisitorMut, With,
};

use super::query::select_all;
use super::relations::{NameRules, for_each_factor};

/// Makes a statement of a query that is a DELETE, UPDATE or MERGE behind WITH.
pub(crate) fn unwrap(tree: &mut Statement, rules: &NameRules) {
    let Statement::Query(query) = tree else { return };
    let (SetExpr::Delete(inner) | SetExpr::Update(inner) | SetExpr::Merge(inner)) = query.body.as_mut() else { return };
    let mut inner = std::mem::replace(inner, Statement::Commit { chain: false, end: false, modifier: None });
    if let Some(with) = query.with.take() {
        let ControlFlow::Continue(()) = inner.visit(&mut Prepend { with: &with, depth: 0 });
        sources(&mut inner, &mut |factor| name_or_subquery(factor, &with, rules));
    }
    *tree = inner;
}

struct Prepend<'a> {
    with: &'a With,
    depth: usize,
}

impl VisitorMut for Prepend<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if self.depth == 0 {
            prepend(query, self.with);
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Puts the expressions of `with` in front of the query's own; one of the same name hides that of the statement.
fn prepend(query: &mut Query, with: &With) {
    match &mut query.with {
        None => query.with = Some(with.clone()),
        Some(own) => {
            let hidden = |cte: &&Cte| own.cte_tables.iter().any(|o| o.alias.name.value == cte.alias.name.value);
            let mut all: Vec<Cte> = with.cte_tables.iter().filter(|cte| !hidden(cte)).cloned().collect();
            all.append(&mut own.cte_tables);
            own.cte_tables = all;
            own.recursive |= with.recursive;
        }
    }
}

/// Calls `f` for each relation that a statement reads beside its target.
fn sources(statement: &mut Statement, f: &mut dyn FnMut(&mut TableFactor)) {
    let joined = |tables: &mut Vec<TableWithJoins>, f: &mut dyn FnMut(&mut TableFactor)| for_each_factor(tables, f);
    match statement {
        Statement::Merge(merge) => f(&mut merge.source),
        Statement::Update(update) => match &mut update.from {
            Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => joined(tables, f),
            None => {}
        },
        Statement::Delete(delete) => {
            if let Some(using) = &mut delete.using {
                joined(using, f);
            }
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &mut delete.from;
            for table in from {
                for join in &mut table.joins {
                    f(&mut join.relation);
                }
            }
        }
        _ => {}
    }
}

fn name_or_subquery(factor: &mut TableFactor, with: &With, rules: &NameRules) {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return };
    if !with.cte_tables.iter().any(|cte| rules.text(&cte.alias.name) == rules.text(ident)) {
        return;
    }
    let visible = |ident: &Ident| TableAlias { explicit: true, name: ident.clone(), columns: Vec::new(), at: None };
    let alias = alias.clone().or_else(|| Some(visible(ident)));
    let plain = TableWithJoins { relation: factor.clone(), joins: Vec::new() };
    let mut query = select_all(without_alias(plain), None);
    prepend(&mut query, with);
    *factor = TableFactor::Derived { lateral: false, subquery: Box::new(query), alias, sample: None };
}

fn without_alias(mut table: TableWithJoins) -> TableWithJoins {
    if let TableFactor::Table { alias, .. } = &mut table.relation {
        *alias = None;
    }
    table
}
