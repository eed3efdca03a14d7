//! What a FROM clause brings into scope.
//!
//! Only as much as name fallback needs: the qualifier of each relation and, where it is known without planning, its
//! columns. Invariant: a column list is either complete or `None`.

use std::collections::HashMap;

use datafusion::common::{ResolvedTableReference, TableReference};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor,
    TableWithJoins,
};

/// Columns of a table that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumns {
    /// Column names, in order.
    pub(crate) columns: Vec<String>,
    /// Names of an Iceberg table's hidden columns; `None` for other tables, whose names do not fall back on case either.
    pub(crate) hidden: Option<Vec<String>>,
}

/// How names of this session resolve.
#[derive(Debug, Clone)]
pub(crate) struct NameRules {
    /// Whether unquoted names are lower-cased.
    pub(crate) normalize: bool,
    /// Catalog of a name without one.
    pub(crate) default_catalog: String,
    /// Schema of a name without one.
    pub(crate) default_schema: String,
}

impl NameRules {
    /// The text a name is looked up by.
    pub(crate) fn text(&self, ident: &Ident) -> String {
        if ident.quote_style.is_none() && self.normalize { ident.value.to_lowercase() } else { ident.value.clone() }
    }

    /// The parts of a name, or `None` when one of them is a function.
    pub(crate) fn parts(&self, name: &ObjectName) -> Option<Vec<String>> {
        name.0.iter().map(|part| part.as_ident().map(|ident| self.text(ident))).collect()
    }

    /// The full reference of a name of one to three parts.
    pub(crate) fn resolve(&self, name: &ObjectName) -> Option<ResolvedTableReference> {
        let parts = self.parts(name)?;
        let reference = match <[String; 1]>::try_from(parts) {
            Ok([table]) => TableReference::bare(table),
            Err(parts) => match <[String; 2]>::try_from(parts) {
                Ok([schema, table]) => TableReference::partial(schema, table),
                Err(parts) => match <[String; 3]>::try_from(parts) {
                    Ok([catalog, schema, table]) => TableReference::full(catalog, schema, table),
                    Err(_) => return None,
                },
            },
        };
        Some(reference.resolve(&self.default_catalog, &self.default_schema))
    }
}

/// One relation of a FROM clause.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    /// The name columns are qualified with: the alias or the table's own last part. `None` for an unnamed subquery.
    pub(crate) qualifier: Option<String>,
    /// The parts the table was named by, where it has no alias, or the alias is its own name before a `$`.
    pub(crate) full_name: Vec<String>,
    /// Whether it has an alias, by which alone DataFusion knows it.
    pub(crate) aliased: bool,
    /// Columns, if known.
    pub(crate) columns: Option<Vec<String>>,
    /// Names of the hidden columns of an Iceberg table; `None` for everything else.
    pub(crate) hidden: Option<Vec<String>>,
    /// Set when a hidden column of it is named.
    pub(crate) needs_rows: bool,
}

/// Tables and common table expressions that names in a statement may mean.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) rules: &'a NameRules,
    pub(crate) tables: &'a HashMap<ResolvedTableReference, TableColumns>,
    /// Common table expressions in scope, innermost last: name and columns.
    pub(crate) ctes: Vec<(String, Option<Vec<String>>)>,
}

impl Sources<'_> {
    /// The relations of a FROM clause, in the order of [`for_each_factor`].
    pub(crate) fn relations(&self, from: &mut [TableWithJoins]) -> Vec<Relation> {
        let mut relations = Vec::new();
        for_each_factor(from, &mut |factor| relations.push(self.relation(factor)));
        relations
    }

    /// The relation that one item of a FROM clause is.
    pub(crate) fn relation(&self, factor: &TableFactor) -> Relation {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => self.table(name, alias.as_ref()),
            TableFactor::Derived { subquery, alias, .. } => opaque(
                self.alias_name(alias.as_ref()),
                alias_columns(self.rules, alias.as_ref()).or_else(|| output_names(self.rules, subquery)),
            ),
            TableFactor::Table { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => {
                opaque(self.alias_name(alias.as_ref()), alias_columns(self.rules, alias.as_ref()))
            }
            _ => opaque(None, None),
        }
    }

    fn table(&self, name: &ObjectName, alias: Option<&TableAlias>) -> Relation {
        let parts = self.rules.parts(name).unwrap_or_default();
        let qualifier = self.alias_name(alias).or_else(|| parts.last().cloned());
        let renamed = alias_columns(self.rules, alias);
        if let [single] = parts.as_slice()
            && let Some((_, columns)) = self.ctes.iter().rev().find(|(cte, _)| cte == single)
        {
            return opaque(qualifier, renamed.or_else(|| columns.clone()));
        }
        match self.rules.resolve(name).and_then(|reference| self.tables.get(&reference)) {
            Some(table) if renamed.is_none() => Relation {
                qualifier,
                full_name: full_name(parts, self.alias_name(alias)),
                aliased: alias.is_some(),
                columns: Some(table.columns.clone()),
                hidden: table.hidden.clone(),
                needs_rows: false,
            },
            _ => opaque(qualifier, renamed),
        }
    }

    fn alias_name(&self, alias: Option<&TableAlias>) -> Option<String> {
        alias.map(|alias| self.rules.text(&alias.name))
    }
}

/// The parts by which columns may name a table. One that was read at a version has its own name as alias.
fn full_name(mut parts: Vec<String>, alias: Option<String>) -> Vec<String> {
    let Some(alias) = alias else { return parts };
    match parts.last_mut() {
        Some(last) if last.strip_prefix(alias.as_str()).is_some_and(|rest| rest.starts_with('$')) => {
            *last = alias;
            parts
        }
        _ => Vec::new(),
    }
}

fn opaque(qualifier: Option<String>, columns: Option<Vec<String>>) -> Relation {
    Relation { qualifier, full_name: Vec::new(), aliased: false, columns, hidden: None, needs_rows: false }
}

fn alias_columns(rules: &NameRules, alias: Option<&TableAlias>) -> Option<Vec<String>> {
    let columns = &alias?.columns;
    (!columns.is_empty()).then(|| columns.iter().map(|c| rules.text(&c.name)).collect())
}

/// Output names of a query whose select list has no wildcard. An expression without a name counts as a name that no
/// column can be meant by.
pub(crate) fn output_names(rules: &NameRules, query: &Query) -> Option<Vec<String>> {
    fn of_set(rules: &NameRules, body: &SetExpr) -> Option<Vec<String>> {
        match body {
            SetExpr::Select(select) => select_names(rules, select),
            SetExpr::Query(query) => output_names(rules, query),
            SetExpr::SetOperation { left, .. } => of_set(rules, left),
            _ => None,
        }
    }
    of_set(rules, &query.body)
}

fn select_names(rules: &NameRules, select: &Select) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for item in &select.projection {
        names.push(match item {
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => rules.text(ident),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => rules.text(parts.last()?),
            SelectItem::UnnamedExpr(other) => other.to_string(),
            SelectItem::ExprWithAlias { alias, .. } => rules.text(alias),
            _ => return None,
        });
    }
    Some(names)
}

/// Calls `f` for each relation of a FROM clause, in source order, going into parentheses around joins.
pub(crate) fn for_each_factor(from: &mut [TableWithJoins], f: &mut dyn FnMut(&mut TableFactor)) {
    fn one(factor: &mut TableFactor, f: &mut dyn FnMut(&mut TableFactor)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                for_each_factor(std::slice::from_mut(table_with_joins), f);
            }
            other => f(other),
        }
    }
    for table in from {
        one(&mut table.relation, f);
        for join in &mut table.joins {
            one(&mut join.relation, f);
        }
    }
}

/// How the joins of a FROM clause treat columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JoinColumns {
    /// `*` is every column of every relation, in order.
    All,
    /// Semi, anti and USING joins: `*` leaves columns out or merges them.
    Some,
    /// NATURAL: columns are matched by name.
    Natural,
}

/// What `*` means over this FROM clause.
pub(crate) fn join_columns(from: &[TableWithJoins]) -> JoinColumns {
    let mut worst = JoinColumns::All;
    for table in from {
        worst = worst.max(factor_columns(&table.relation));
        for join in &table.joins {
            worst = worst.max(factor_columns(&join.relation)).max(operator_columns(&join.join_operator));
        }
    }
    worst
}

fn factor_columns(factor: &TableFactor) -> JoinColumns {
    match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            join_columns(std::slice::from_ref(table_with_joins))
        }
        _ => JoinColumns::All,
    }
}

fn operator_columns(operator: &JoinOperator) -> JoinColumns {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::FullOuter(c)
        | JoinOperator::CrossJoin(c) => match c {
            JoinConstraint::Natural => JoinColumns::Natural,
            JoinConstraint::Using(_) => JoinColumns::Some,
            JoinConstraint::On(_) | JoinConstraint::None => JoinColumns::All,
        },
        _ => JoinColumns::Some,
    }
}
