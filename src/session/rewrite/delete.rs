//! `DELETE FROM t [AS] a WHERE …` as the query over its rows.
//!
//! DataFusion drops the alias of a DELETE's target. As a query the alias, its use in subqueries, self references and hidden
//! columns are resolved like everywhere else.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectFlavor, SelectItem,
    SetExpr, Statement, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

use super::names::ROWS_SUFFIX;
use crate::{Error, Result};

/// Target and condition of a DELETE of one table, without USING, ORDER BY, LIMIT and RETURNING.
#[derive(Debug, Clone)]
pub(crate) struct DeleteQuery {
    target: TableWithJoins,
    selection: Option<Expr>,
}

impl DeleteQuery {
    /// The query of `statement`, if it is such a DELETE.
    pub(crate) fn of(statement: &Statement) -> Option<Self> {
        let Statement::Delete(Delete {
            tables,
            from,
            using: None,
            selection,
            returning: None,
            order_by,
            limit: None,
            output: None,
            ..
        }) = statement
        else {
            return None;
        };
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
        match from.as_slice() {
            [target] if tables.is_empty() && order_by.is_empty() && target.joins.is_empty() => {
                let plain = matches!(&target.relation, TableFactor::Table { args: None, .. });
                plain.then(|| Self { target: target.clone(), selection: selection.clone() })
            }
            _ => None,
        }
    }

    /// Whether the target has an alias.
    pub(crate) fn has_alias(&self) -> bool {
        matches!(&self.target.relation, TableFactor::Table { alias: Some(_), .. })
    }

    /// The name of the table to delete from, without a `$rows` that a pass put there.
    pub(crate) fn table_name(&self) -> ObjectName {
        let TableFactor::Table { name, .. } = &self.target.relation else { return ObjectName(Vec::new()) };
        let mut name = name.clone();
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut()
            && let Some(table) = ident.value.strip_suffix(ROWS_SUFFIX)
        {
            *ident = Ident { value: table.to_owned(), ..ident.clone() };
        }
        name
    }

    /// `SELECT * FROM target WHERE condition`.
    pub(crate) fn into_query(self) -> Query {
        let select = Select {
            select_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            distinct: None,
            select_modifiers: None,
            top: None,
            top_before_distinct: false,
            projection: vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
            exclude: None,
            into: None,
            from: vec![self.target],
            lateral_views: Vec::new(),
            prewhere: None,
            selection: self.selection,
            connect_by: Vec::new(),
            group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
            cluster_by: Vec::new(),
            distribute_by: Vec::new(),
            sort_by: Vec::new(),
            having: None,
            named_window: Vec::new(),
            qualify: None,
            window_before_qualify: false,
            value_table_mode: None,
            flavor: SelectFlavor::Standard,
        };
        Query {
            with: None,
            body: Box::new(SetExpr::Select(Box::new(select))),
            order_by: None,
            limit_clause: None,
            fetch: None,
            locks: Vec::new(),
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators: Vec::new(),
        }
    }

    /// Runs a pass over the query and puts target and condition back into the DELETE it came from.
    pub(crate) fn rewrite(self, statement: &mut Statement, pass: impl FnOnce(&mut Query) -> Result<()>) -> Result<()> {
        let mut query = self.into_query();
        pass(&mut query)?;
        let lost = || Error::internal("a pass changed the kind of a query");
        let SetExpr::Select(select) = *query.body else { return Err(lost()) };
        let Statement::Delete(delete) = statement else { return Err(lost()) };
        delete.selection = select.selection;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &mut delete.from;
        *from = select.from;
        Ok(())
    }
}
