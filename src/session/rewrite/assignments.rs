//! What UPDATE and MERGE assign: stars, DEFAULT and fields of structs.
//!
//! - `UPDATE SET *` and `INSERT *`, which the parser does not know, come as assignments of a marker ([`mark_stars`]) and
//!   become one assignment for each column of the target, from the source's column of that name.
//! - `DEFAULT` becomes the column's default, or null.
//! - `SET s.f = x` becomes an assignment of the whole struct `s` in which `f` is `x`. DataFusion looks at the last part of the
//!   name alone, and would assign a column `f`.
//!
//! Invariant: afterwards every assignment is of one column of the target, each at most once.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Merge, MergeAction, MergeInsertExpr, MergeInsertKind, ObjectName, Parens, Statement,
    TableFactor, Value,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::relations::NameRules;
use crate::{Error, Result};

/// Stands for `*` in a parse tree.
const STAR: &str = "__calve_star";

/// A column of the table that a statement changes.
#[derive(Debug, Clone)]
pub(crate) struct TargetColumn {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// What DEFAULT stands for; `None` for null.
    pub(crate) default: Option<ScalarValue>,
}

/// The table that a statement changes, if it is an UPDATE or MERGE.
pub(crate) fn target(tree: &Statement) -> Option<&TableFactor> {
    match tree {
        Statement::Update(update) if update.table.joins.is_empty() => Some(&update.table.relation),
        Statement::Merge(merge) => Some(&merge.table),
        _ => None,
    }
}

/// Writes `UPDATE SET *` as `UPDATE SET "__calve_star" = NULL` and `INSERT *` as `INSERT ("__calve_star") VALUES (NULL)`.
pub(crate) fn mark_stars(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let word = |i: usize, text: &str| tokens.get(i).is_some_and(|t| super::super::parser::is_word(t, text));
    let star = |i: usize| tokens.get(i).is_some_and(|t| t.token == Token::Mul);
    let starred =
        |i: usize| (word(i, "UPDATE") && word(i + 1, "SET") && star(i + 2)) || (word(i, "INSERT") && star(i + 1));
    if !(0..tokens.len()).any(starred) {
        return tokens;
    }
    let marker = || Token::Word(Word { value: STAR.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
    let keyword = |text: &str, keyword| Token::Word(Word { value: text.to_owned(), quote_style: None, keyword });
    let null = || keyword("NULL", Keyword::NULL);
    let mut marked = Vec::with_capacity(tokens.len() + 8);
    for (i, token) in tokens.iter().enumerate() {
        let put: Vec<Token> = match token.token {
            Token::Mul if i >= 2 && starred(i - 2) && word(i - 2, "UPDATE") => vec![marker(), Token::Eq, null()],
            Token::Mul if i >= 1 && starred(i - 1) && word(i - 1, "INSERT") => vec![
                Token::LParen,
                marker(),
                Token::RParen,
                keyword("VALUES", Keyword::VALUES),
                Token::LParen,
                null(),
                Token::RParen,
            ],
            _ => vec![token.token.clone()],
        };
        marked.extend(put.into_iter().map(|put| TokenWithSpan { token: put, span: token.span }));
    }
    marked
}

/// Expands the assignments of an UPDATE or MERGE of a table with `columns`.
///
/// # Errors
/// `InvalidInput` for an unknown field, a column assigned twice, and `*` from a source without name.
pub(crate) fn expand(tree: &mut Statement, columns: &[TargetColumn], rules: &NameRules) -> Result<()> {
    match tree {
        Statement::Update(update) => {
            let target = Target::new(&update.table.relation, columns, rules);
            update.assignments = target.assignments(std::mem::take(&mut update.assignments))?;
            Ok(())
        }
        Statement::Merge(Merge { table, source, clauses, .. }) => {
            let target = Target::new(table, columns, rules);
            let source = visible_name(source);
            clauses.iter_mut().try_for_each(|clause| match &mut clause.action {
                MergeAction::Update(update) => {
                    let assignments = std::mem::take(&mut update.assignments);
                    update.assignments = match is_star(&assignments) {
                        true => target.all_of_source(source.as_ref())?,
                        false => target.assignments(assignments)?,
                    };
                    Ok(())
                }
                MergeAction::Insert(insert) => target.insert(insert, source.as_ref()),
                MergeAction::Delete { .. } => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

fn is_star(assignments: &[Assignment]) -> bool {
    let marks = |name: &ObjectName| name.0.last().and_then(|p| p.as_ident()).is_some_and(|ident| ident.value == STAR);
    matches!(assignments, [Assignment { target: AssignmentTarget::ColumnName(name), .. }] if marks(name))
}

/// The name by which the columns of a relation are qualified.
fn visible_name(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, .. } => name.0.last().and_then(|part| part.as_ident()).cloned(),
        _ => None,
    }
}

/// A name that is quoted only where it must be, so that names in another case are found.
fn spelled(name: &str) -> Ident {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_lowercase());
    if plain { Ident::new(name) } else { Ident::with_quote('"', name) }
}

struct Target<'a> {
    columns: &'a [TargetColumn],
    rules: &'a NameRules,
    qualifier: Option<Ident>,
    /// The parts it is named by, where it has no alias.
    full_name: Vec<String>,
}

/// What is assigned to a column, or to fields of it.
enum Assigned {
    Whole(Box<Expr>),
    Fields(Vec<(Vec<String>, Expr)>),
}

impl<'a> Target<'a> {
    fn new(table: &TableFactor, columns: &'a [TargetColumn], rules: &'a NameRules) -> Self {
        let full_name = match table {
            TableFactor::Table { name, alias: None, .. } => rules.parts(name).unwrap_or_default(),
            _ => Vec::new(),
        };
        Self { columns, rules, qualifier: visible_name(table), full_name }
    }

    /// The column that `part` names, unquoted names in any case.
    fn column(&self, part: &Ident) -> Option<&'a TargetColumn> {
        let text = self.rules.text(part);
        let exact = self.columns.iter().find(|column| column.name == text);
        exact.or_else(|| {
            let mut folded = self.columns.iter().filter(|column| column.name.eq_ignore_ascii_case(&text));
            folded.next().filter(|_| part.quote_style.is_none() && folded.next().is_none())
        })
    }

    /// The parts of a name from the column on, without the table's name in front.
    fn behind_table_name<'p>(&self, parts: &'p [Ident]) -> &'p [Ident] {
        let texts: Vec<String> = parts.iter().map(|part| self.rules.text(part)).collect();
        for length in (1..parts.len()).rev() {
            let Some(prefix) = texts.get(..length) else { continue };
            let alias = self.qualifier.as_ref().map(|ident| self.rules.text(ident));
            let named = match prefix {
                [one] => alias.as_ref() == Some(one),
                more => self.full_name.ends_with(more),
            };
            let rest = parts.get(length..).unwrap_or_default();
            if named && rest.first().is_some_and(|part| self.column(part).is_some()) {
                return rest;
            }
        }
        parts
    }

    fn assignments(&self, assignments: Vec<Assignment>) -> Result<Vec<Assignment>> {
        let mut order: Vec<&str> = Vec::new();
        let mut assigned: BTreeMap<&str, Assigned> = BTreeMap::new();
        let mut unknown = Vec::new();
        for assignment in assignments {
            let name = match &assignment.target {
                AssignmentTarget::ColumnName(name) => name,
                AssignmentTarget::Tuple(_) => {
                    return Err(Error::unsupported("assigning several columns at once: write one assignment for each"));
                }
            };
            let parts: Option<Vec<Ident>> = name.0.iter().map(|part| part.as_ident().cloned()).collect();
            let parts = parts.unwrap_or_default();
            let (column, path) = match self.behind_table_name(&parts) {
                [first, path @ ..] => (self.column(first), path),
                [] => (None, [].as_slice()),
            };
            let Some(column) = column else {
                // DataFusion says what is wrong with it.
                unknown.push(assignment);
                continue;
            };
            let value = self.value(assignment.value, column, path.is_empty());
            let twice = || {
                Error::invalid_input(format!("column {} is assigned twice in one SET", column.name))
                    .with_context("assignment", name.to_string())
            };
            if path.is_empty() {
                if assigned.insert(&column.name, Assigned::Whole(Box::new(value))).is_some() {
                    return Err(twice());
                }
                order.push(&column.name);
                continue;
            }
            let path: Vec<String> = path.iter().map(|part| self.rules.text(part)).collect();
            match assigned.get_mut(column.name.as_str()) {
                None => {
                    assigned.insert(&column.name, Assigned::Fields(vec![(path, value)]));
                    order.push(&column.name);
                }
                Some(Assigned::Fields(fields)) => {
                    if fields.iter().any(|(other, _)| other.starts_with(&path) || path.starts_with(other)) {
                        return Err(twice());
                    }
                    fields.push((path, value));
                }
                Some(Assigned::Whole(_)) => return Err(twice()),
            }
        }
        let mut expanded = unknown;
        for name in order {
            let Some(column) = self.columns.iter().find(|column| column.name == name) else { continue };
            let value = match assigned.remove(name) {
                Some(Assigned::Whole(value)) => *value,
                Some(Assigned::Fields(fields)) => self.with_fields(column, fields)?,
                None => continue,
            };
            expanded.push(self.assign(&column.name, value));
        }
        Ok(expanded)
    }

    fn assign(&self, column: &str, value: Expr) -> Assignment {
        let name = ObjectName::from(vec![Ident::with_quote('"', column)]);
        Assignment { target: AssignmentTarget::ColumnName(name), value }
    }

    /// The value, where it is not DEFAULT.
    fn value(&self, value: Expr, column: &TargetColumn, whole: bool) -> Expr {
        let Expr::Identifier(ident) = &value else { return value };
        let is_default = ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default");
        match is_default && self.column(ident).is_none() {
            true if whole => default(column),
            true => Expr::value(Value::Null),
            false => value,
        }
    }

    /// The struct in `column` with some of its fields replaced.
    fn with_fields(&self, column: &TargetColumn, fields: Vec<(Vec<String>, Expr)>) -> Result<Expr> {
        let own = Ident::with_quote('"', &column.name);
        let old = match &self.qualifier {
            Some(qualifier) => Expr::CompoundIdentifier(vec![qualifier.clone(), own]),
            None => Expr::Identifier(own),
        };
        replaced(old, &column.data_type, fields, &column.name)
    }

    /// An assignment for each column, from the source's column of that name.
    fn all_of_source(&self, source: Option<&Ident>) -> Result<Vec<Assignment>> {
        let columns = self.columns.iter().map(|column| Ok(self.assign(&column.name, of_source(source, &column.name)?)));
        columns.collect()
    }

    fn insert(&self, insert: &mut MergeInsertExpr, source: Option<&Ident>) -> Result<()> {
        let MergeInsertKind::Values(values) = &mut insert.kind else { return Ok(()) };
        let [Parens { content: row, .. }] = values.rows.as_mut_slice() else { return Ok(()) };
        let all = || self.columns.iter().map(|column| ObjectName::from(vec![Ident::with_quote('"', &column.name)]));
        let is_marker = |name: &ObjectName| name.0.last().and_then(|p| p.as_ident()).is_some_and(|i| i.value == STAR);
        if matches!(insert.columns.as_slice(), [only] if is_marker(only)) {
            let values = self.columns.iter().map(|column| of_source(source, &column.name));
            *row = values.collect::<Result<_>>()?;
            insert.columns = all().collect();
            return Ok(());
        }
        if insert.columns.is_empty() && row.len() == self.columns.len() {
            insert.columns = all().collect();
        }
        for (name, value) in insert.columns.iter().zip(row.iter_mut()) {
            let column = name.0.last().and_then(|part| part.as_ident()).and_then(|ident| self.column(ident));
            if let Some(column) = column {
                let given = std::mem::replace(value, Expr::value(Value::Null));
                *value = self.value(given, column, true);
            }
        }
        Ok(())
    }
}

fn of_source(source: Option<&Ident>, column: &str) -> Result<Expr> {
    match source {
        Some(source) => Ok(Expr::CompoundIdentifier(vec![source.clone(), spelled(column)])),
        None => Err(Error::invalid_input("SET * and INSERT * need a source with a name: USING (…) AS s")),
    }
}

/// The default of a column as an expression.
fn default(column: &TargetColumn) -> Expr {
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    match &column.default {
        None => Expr::value(Value::Null),
        Some(value) if value.is_null() => Expr::value(Value::Null),
        Some(
            ScalarValue::Utf8(Some(value)) | ScalarValue::LargeUtf8(Some(value)) | ScalarValue::Utf8View(Some(value)),
        ) => text(value),
        Some(value) => call("arrow_cast", vec![text(&value.to_string()), text(&column.data_type.to_string())]),
    }
}

/// `old`, a struct, with the fields at the ends of the paths replaced. The others of a null struct are null.
fn replaced(old: Expr, data_type: &DataType, fields: Vec<(Vec<String>, Expr)>, name: &str) -> Result<Expr> {
    let DataType::Struct(children) = data_type else {
        return Err(Error::invalid_input(format!("{name} is not a struct, so it has no fields to assign")));
    };
    let mut below: BTreeMap<String, Vec<(Vec<String>, Expr)>> = BTreeMap::new();
    for (path, value) in fields {
        let [first, rest @ ..] = path.as_slice() else { continue };
        let child =
            child(children, first).ok_or_else(|| Error::invalid_input(format!("{name} has no field {first}")))?;
        below.entry(child.to_owned()).or_default().push((rest.to_vec(), value));
    }
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    let mut arguments = Vec::with_capacity(children.len() * 2);
    for field in children {
        let current = call("get_field", vec![old.clone(), text(field.name())]);
        let value = match below.remove(field.name()) {
            None => current,
            Some(mut assigned) => match assigned.as_slice() {
                [(path, _)] if path.is_empty() => assigned.remove(0).1,
                _ => replaced(current, field.data_type(), assigned, &format!("{name}.{}", field.name()))?,
            },
        };
        arguments.push(text(field.name()));
        arguments.push(value);
    }
    Ok(call("named_struct", arguments))
}

fn child<'a>(children: &'a Fields, name: &str) -> Option<&'a str> {
    let exact = children.iter().find(|field| field.name() == name);
    let found = exact.or_else(|| {
        let mut folded = children.iter().filter(|field| field.name().eq_ignore_ascii_case(name));
        folded.next().filter(|_| folded.next().is_none())
    });
    found.map(|field| field.name().as_str())
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
