//! `DELETE FROM t [AS] a WHERE …` as the query over its rows.
//!
//! DataFusion drops the alias of a DELETE's target. As a query the alias, its use in subqueries, self references and hidden
//! columns are resolved like everywhere else.

use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableFactor, TableWithJoins,
};

use super::names::ROWS_SUFFIX;
use super::query::select_all;
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

    /// Refuses a DELETE from several tables, which DataFusion does by printing its parse tree.
    ///
    /// # Errors
    /// `Unsupported`, with what to write instead.
    pub(crate) fn check(statement: &Statement) -> Result<()> {
        let Statement::Delete(delete) = statement else { return Ok(()) };
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let one = matches!(from.as_slice(), [target] if target.joins.is_empty());
        if one && delete.tables.is_empty() && delete.using.is_none() {
            return Ok(());
        }
        Err(Error::unsupported(
            "DELETE FROM takes one table, USING relations of an Iceberg table alone, and neither with a LIMIT; choose the rows by a subquery: \
             DELETE FROM t WHERE EXISTS (SELECT 1 FROM …)",
        ))
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
        select_all(self.target, self.selection)
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
