//! Names of columns: hidden columns and the fallback on case.
//!
//! - A statement that names a hidden column (`_file`, `_pos`, …) of an Iceberg table reads the table's `$rows` twin,
//!   where these are ordinary columns; every `*` over it leaves them out. A table that owns a column of such a name keeps it.
//! - An unquoted name that no column in scope has as it is folded, but one column of an Iceberg table has but for case,
//!   means that column; with several candidates in one table it is an error.
//!
//! Scopes are walked as SQL does, innermost first. Where a relation's columns are not known before planning (a subquery
//! with `*`, a table function), an unqualified name is left alone: DataFusion reports it, and a qualifier cures it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::common::ResolvedTableReference;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, ExceptSelectItem, ExcludeSelectItem, Expr, Ident, MergeAction, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor, TableObject,
    TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::relations::{
    JoinColumns, NameRules, Relation, Sources, TableColumns, for_each_factor, join_columns, output_names,
};
use crate::{Error, Result};

/// Names that a hidden column may have; which ones a table has, `$rows` says.
pub(crate) const HIDDEN_COLUMNS: [&str; 6] =
    ["_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"];

/// Suffix of the table that shows the hidden columns.
pub(crate) const ROWS_SUFFIX: &str = "$rows";

/// Rewrites the names in `node`; `tables` are the columns of every table that it names.
///
/// # Errors
/// `InvalidInput` for an ambiguous name, or a `*` that cannot be told apart from hidden columns.
pub(crate) fn resolve_names<N: VisitMut>(
    node: &mut N,
    rules: &NameRules,
    tables: &HashMap<ResolvedTableReference, TableColumns>,
) -> Result<()> {
    let sources = Sources { rules, tables, ctes: Vec::new() };
    let mut walk = Walk { sources, scopes: Vec::new(), queries: Vec::new(), own_scope: Vec::new() };
    match node.visit(&mut walk) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

/// Relations and output names that expressions of one SELECT see.
struct Scope {
    relations: Vec<Relation>,
    /// Aliases of the select list, which ORDER BY, GROUP BY and HAVING may use.
    aliases: Vec<String>,
}

struct QueryFrame {
    /// The query is one SELECT, whose scope also holds for ORDER BY.
    selects: bool,
    entered: bool,
    /// How many common table expressions were in scope before.
    ctes: usize,
}

struct Walk<'a> {
    sources: Sources<'a>,
    scopes: Vec<Scope>,
    queries: Vec<QueryFrame>,
    /// For each SELECT that is being visited, whether it opened its scope itself.
    own_scope: Vec<bool>,
}

impl VisitorMut for Walk<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let ctes = self.sources.ctes.len();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                let named = (!cte.alias.columns.is_empty())
                    .then(|| cte.alias.columns.iter().map(|c| self.sources.rules.text(&c.name)).collect());
                let columns = named.or_else(|| output_names(self.sources.rules, &cte.query));
                self.sources.ctes.push((self.sources.rules.text(&cte.alias.name), columns));
            }
        }
        let selects = match query.body.as_mut() {
            SetExpr::Select(select) => {
                self.open(select);
                true
            }
            _ => false,
        };
        self.queries.push(QueryFrame { selects, entered: false, ctes });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Some(frame) = self.queries.pop() {
            if frame.selects
                && let SetExpr::Select(select) = query.body.as_mut()
                && let Err(e) = self.close(select)
            {
                return ControlFlow::Break(e);
            }
            self.sources.ctes.truncate(frame.ctes);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let of_query = self.queries.last_mut().is_some_and(|q| q.selects && !std::mem::replace(&mut q.entered, true));
        if !of_query {
            self.open(select);
        }
        self.own_scope.push(!of_query);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if self.own_scope.pop() == Some(true)
            && let Err(e) = self.close(select)
        {
            return ControlFlow::Break(e);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        let result = match statement {
            Statement::Update(update) => {
                self.open_tables(std::slice::from_mut(&mut update.table));
                update.assignments.iter_mut().try_for_each(|assignment| match &mut assignment.target {
                    AssignmentTarget::ColumnName(name) => self.target_column(name),
                    AssignmentTarget::Tuple(names) => names.iter_mut().try_for_each(|name| self.target_column(name)),
                })
            }
            Statement::Merge(merge) => {
                let target = self.sources.relation(&merge.table);
                let source = self.sources.relation(&merge.source);
                self.scopes.push(Scope { relations: vec![target, source], aliases: Vec::new() });
                merge.clauses.iter_mut().try_for_each(|clause| match &mut clause.action {
                    MergeAction::Update(update) => {
                        update.assignments.iter_mut().try_for_each(|assignment| match &mut assignment.target {
                            AssignmentTarget::ColumnName(name) => self.target_column(name),
                            AssignmentTarget::Tuple(_) => Ok(()),
                        })
                    }
                    MergeAction::Insert(insert) => insert.columns.iter_mut().try_for_each(|c| self.target_column(c)),
                    MergeAction::Delete { .. } => Ok(()),
                })
            }
            Statement::Insert(insert) => match &insert.table {
                TableObject::TableName(table) => {
                    let table = self.sources.rules.resolve(table).and_then(|t| self.sources.tables.get(&t));
                    let rules = self.sources.rules;
                    match table.filter(|t| t.hidden.is_some()) {
                        Some(table) => {
                            insert.columns.iter_mut().try_for_each(|c| fold_target(rules, &table.columns, c))
                        }
                        None => Ok(()),
                    }
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        result.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        let factors = match statement {
            Statement::Update(update) => vec![&mut update.table.relation],
            Statement::Merge(merge) => vec![&mut merge.table, &mut merge.source],
            _ => return ControlFlow::Continue(()),
        };
        if let Some(scope) = self.scopes.pop() {
            for (factor, relation) in factors.into_iter().zip(&scope.relations).filter(|(_, r)| r.needs_rows) {
                read_rows(factor, relation);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let result = match expr {
            Expr::Identifier(ident) => self.unqualified(ident),
            Expr::CompoundIdentifier(parts) => self.qualified(parts),
            _ => Ok(()),
        };
        result.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

impl Walk<'_> {
    fn open(&mut self, select: &mut Select) {
        let rules = self.sources.rules;
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(rules.text(alias)),
            _ => None,
        });
        let aliases = aliases.collect();
        let relations = self.sources.relations(&mut select.from);
        self.scopes.push(Scope { relations, aliases });
    }

    fn open_tables(&mut self, tables: &mut [TableWithJoins]) {
        let relations = self.sources.relations(tables);
        self.scopes.push(Scope { relations, aliases: Vec::new() });
    }

    /// Leaves the scope of a SELECT and applies what was found.
    fn close(&mut self, select: &mut Select) -> Result<()> {
        let Some(scope) = self.scopes.pop() else { return Ok(()) };
        if !scope.relations.iter().any(|r| r.needs_rows) {
            return Ok(());
        }
        let joins = join_columns(&select.from);
        if joins == JoinColumns::Natural {
            return Err(Error::unsupported(
                "hidden columns beside a NATURAL JOIN: name the join columns with USING or ON instead",
            ));
        }
        exclude_hidden(self.sources.rules, &mut select.projection, &scope.relations, joins)?;
        let mut relations = scope.relations.iter();
        for_each_factor(&mut select.from, &mut |factor| {
            if let Some(relation) = relations.next().filter(|r| r.needs_rows) {
                read_rows(factor, relation);
            }
        });
        Ok(())
    }

    fn target_column(&self, name: &mut ObjectName) -> Result<()> {
        let target = self.scopes.last().and_then(|s| s.relations.first()).filter(|r| r.hidden.is_some());
        match target.and_then(|t| t.columns.as_ref()) {
            Some(columns) => fold_target(self.sources.rules, columns, name),
            None => Ok(()),
        }
    }

    fn unqualified(&mut self, ident: &mut Ident) -> Result<()> {
        let name = self.sources.rules.text(ident);
        for scope in self.scopes.iter_mut().rev() {
            if scope.relations.iter().any(|r| r.owns(&name)) {
                return Ok(());
            }
            if scope.relations.iter().any(|r| r.columns.is_none()) || scope.aliases.contains(&name) {
                // a relation of unknown columns, or an output name, may be what is meant
                return Ok(());
            }
            let mut found = false;
            for relation in scope.relations.iter_mut().filter(|r| r.hides(&name)) {
                relation.needs_rows = true;
                found = true;
            }
            if found {
                *ident = quoted(&name);
                return Ok(());
            }
        }
        if ident.quote_style.is_some() {
            return Ok(());
        }
        for scope in self.scopes.iter().rev() {
            let mut spellings = BTreeSet::new();
            for relation in scope.relations.iter().filter(|r| r.hidden.is_some()) {
                spellings.extend(relation.spelling(&name)?);
            }
            match spellings.len() {
                0 => {}
                1 => {
                    if let Some(spelling) = spellings.first() {
                        *ident = quoted(spelling);
                    }
                    return Ok(());
                }
                _ => return Err(ambiguous(&name, &spellings.into_iter().collect::<Vec<_>>())),
            }
        }
        Ok(())
    }

    /// `table.column…`, `schema.table.column…` or `catalog.schema.table.column…`; else a column and its fields.
    fn qualified(&mut self, parts: &mut Vec<Ident>) -> Result<()> {
        let texts: Vec<String> = parts.iter().map(|p| self.sources.rules.text(p)).collect();
        for scope in self.scopes.iter_mut().rev() {
            for prefix in (1..texts.len().min(4)).rev() {
                let (Some(path), Some(column)) = (texts.get(..prefix), texts.get(prefix)) else { continue };
                let Some(relation) = scope.relations.iter_mut().find(|r| r.is_named(path)) else { continue };
                if relation.owns(column) || relation.hidden.is_none() {
                    if relation.aliased && prefix > 1 {
                        let qualifier = relation.qualifier.clone().unwrap_or_default();
                        parts.splice(..prefix, [quoted(&qualifier)]);
                    }
                    return Ok(());
                }
                let spelled = parts.get(prefix).map(|p| p.quote_style.is_some());
                let replacement = if relation.hides(column) {
                    relation.needs_rows = true;
                    Some(column.clone())
                } else if spelled == Some(false) {
                    relation.spelling(column)?
                } else {
                    None
                };
                if let Some(replacement) = replacement {
                    let qualifier = relation.qualifier.clone().unwrap_or_default();
                    parts.splice(..=prefix, [quoted(&qualifier), quoted(&replacement)]);
                }
                return Ok(());
            }
        }
        match parts.first_mut() {
            Some(first) => self.unqualified(first),
            None => Ok(()),
        }
    }
}

impl Relation {
    fn owns(&self, column: &str) -> bool {
        self.columns.as_ref().is_some_and(|columns| columns.iter().any(|c| c == column))
    }

    fn hides(&self, column: &str) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.iter().any(|c| c == column))
    }

    /// Whether `path`, as looked up, names this relation.
    fn is_named(&self, path: &[String]) -> bool {
        match path {
            [single] => self.qualifier.as_ref() == Some(single),
            _ => self.full_name.ends_with(path),
        }
    }

    /// The one column equal to `name` but for case.
    fn spelling(&self, name: &str) -> Result<Option<String>> {
        spelling(self.columns.as_deref().unwrap_or_default(), name)
    }
}

fn spelling(columns: &[String], name: &str) -> Result<Option<String>> {
    let folded = name.to_lowercase();
    let candidates: Vec<String> = columns.iter().filter(|c| c.to_lowercase() == folded).cloned().collect();
    match candidates.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        _ => Err(ambiguous(name, &candidates)),
    }
}

fn ambiguous(name: &str, candidates: &[String]) -> Error {
    let quoted: Vec<String> = candidates.iter().map(|c| format!("\"{c}\"")).collect();
    Error::invalid_input(format!(
        "column {name} could be {}: write the one that is meant in double quotes",
        quoted.join(" or ")
    ))
}

/// Spells a target column of INSERT or UPDATE as the table does.
fn fold_target(rules: &NameRules, columns: &[String], name: &mut ObjectName) -> Result<()> {
    let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() else { return Ok(()) };
    let text = rules.text(ident);
    if ident.quote_style.is_none()
        && !columns.contains(&text)
        && let Some(spelling) = spelling(columns, &text)?
    {
        *ident = quoted(&spelling);
    }
    Ok(())
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Makes a FROM item read the table's `$rows` twin, under the name it had.
fn read_rows(factor: &mut TableFactor, relation: &Relation) {
    let TableFactor::Table { name, alias, .. } = factor else { return };
    if alias.is_none() {
        let visible = relation.qualifier.as_deref().unwrap_or_default();
        *alias = Some(TableAlias { explicit: true, name: quoted(visible), columns: Vec::new(), at: None });
    }
    if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() {
        let folded = if ident.quote_style.is_none() { ident.value.to_lowercase() } else { ident.value.clone() };
        *ident = quoted(&format!("{folded}{ROWS_SUFFIX}"));
    }
}

/// Leaves the hidden columns out of every `*` of a select list.
fn exclude_hidden(
    rules: &NameRules,
    projection: &mut Vec<SelectItem>,
    relations: &[Relation],
    joins: JoinColumns,
) -> Result<()> {
    let mut items = Vec::with_capacity(projection.len());
    for mut item in std::mem::take(projection) {
        match &mut item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let parts = rules.parts(name).unwrap_or_default();
                if let Some(relation) = relations.iter().find(|r| r.needs_rows && r.is_named(&parts)) {
                    exclude(options, relation);
                    *name = ObjectName::from(vec![quoted(relation.qualifier.as_deref().unwrap_or_default())]);
                }
                items.push(item);
            }
            SelectItem::Wildcard(options) => match relations {
                [only] => {
                    exclude(options, only);
                    items.push(item);
                }
                _ => items.extend(expand_wildcard(options, relations, joins)?),
            },
            _ => items.push(item),
        }
    }
    *projection = items;
    Ok(())
}

/// `*` over several relations as one `relation.*` for each.
fn expand_wildcard(
    options: &WildcardAdditionalOptions,
    relations: &[Relation],
    joins: JoinColumns,
) -> Result<Vec<SelectItem>> {
    let plain = options.opt_exclude.is_none() && options.opt_except.is_none() && options.opt_replace.is_none();
    let named = relations.iter().all(|r| r.qualifier.is_some());
    if joins != JoinColumns::All || !plain || !named {
        return Err(Error::unsupported(
            "* beside hidden columns over this join: name the columns, or select from a subquery that does",
        ));
    }
    let mut items = Vec::new();
    for relation in relations {
        let name = ObjectName::from(vec![quoted(relation.qualifier.as_deref().unwrap_or_default())]);
        let mut options = options.clone();
        if relation.needs_rows {
            exclude(&mut options, relation);
        }
        items.push(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options));
    }
    Ok(items)
}

fn exclude(options: &mut WildcardAdditionalOptions, relation: &Relation) {
    let hidden = relation.hidden.iter().flatten().map(|c| quoted(c));
    match &mut options.opt_except {
        Some(ExceptSelectItem { additional_elements, .. }) => additional_elements.extend(hidden),
        None => {
            let mut names = match options.opt_exclude.take() {
                Some(ExcludeSelectItem::Single(name)) => vec![name],
                Some(ExcludeSelectItem::Multiple(names)) => names,
                None => Vec::new(),
            };
            names.extend(hidden.map(|c| ObjectName::from(vec![c])));
            options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
        }
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
