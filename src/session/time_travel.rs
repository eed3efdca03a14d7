//! `t FOR VERSION AS OF …` and its other spellings, anywhere a table may stand.
//!
//! DataFusion's parser knows these clauses in few dialects, and its planner ignores them in all. So a clause is taken out of
//! the tokens of a statement, its version is looked up, and goes into the name of the table (`t$branch_audit`). Invariant:
//! whatever becomes of the statement goes by that name, so the version is never lost on the way; a statement that writes to
//! such a name is refused by the table itself.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::Expr;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, ExprWithAlias, Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableFactor,
    VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use super::from_datafusion;
use super::parser::{Name, is_keyword, is_word};
use super::plan::{dialect, name_rules, provider};
use super::rewrite::relations::NameRules;
use crate::provider::{IcebergTableProvider, MetadataTableProvider};
use crate::table::{Table, TableVersion};
use crate::{Error, Result};

/// Words between a table's name and `AS OF`, and whether they ask for a time.
const KINDS: [(&str, bool); 4] =
    [("VERSION", false), ("SYSTEM_VERSION", false), ("TIMESTAMP", true), ("SYSTEM_TIME", true)];

/// Words behind which `version AS of` is something with an alias, because they are no table's name.
const BEFORE_NAMES: [Keyword; 10] = [
    Keyword::SELECT,
    Keyword::DISTINCT,
    Keyword::ALL,
    Keyword::RETURNING,
    Keyword::FROM,
    Keyword::JOIN,
    Keyword::LATERAL,
    Keyword::USING,
    Keyword::INTO,
    Keyword::UPDATE,
];

/// The tokens of a statement without its version clauses.
pub(super) struct VersionedTokens {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// The names that a version was put into, by the place of their last part: what it was before.
    names: HashMap<Location, String>,
}

/// Takes the version clauses out of a statement and names the tables by their versions instead.
///
/// # Errors
/// `InvalidInput` with line and column for a clause that is no version, `NotFound` for a table or version that does not
/// exist.
pub(super) async fn take_versions(state: &SessionState, tokens: &[TokenWithSpan]) -> Result<VersionedTokens> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut names = HashMap::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match clause_at(tokens, at, out.last()) {
            Some((length, is_time)) => {
                let value = at + length;
                let rest = tokens.get(value..).unwrap_or_default();
                let (version, taken) = parse_version(state, rest, is_time).map_err(|e| at_token(e, token))?;
                at = value + taken;
                let rules = name_rules(state);
                let parts = name_before(&out, &rules).ok_or_else(|| {
                    at_token(Error::invalid_input("expected the name of a table before AS OF"), token)
                })?;
                let table = versioned_table(state, &rules, &parts).await?;
                let version = match version {
                    Asked::Version(version) => version,
                    Asked::Named(name) => table.version_named(&name)?,
                };
                table.at(&version)?;
                let suffix = version.suffix().unwrap_or_default();
                if let (Some(last), Some(name)) = (out.last_mut(), parts.last()) {
                    let value = format!("{name}${suffix}");
                    last.token = Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
                    names.insert(last.span.start, name.clone());
                }
            }
            None => {
                out.push(token.clone());
                at += 1;
            }
        }
    }
    Ok(VersionedTokens { tokens: out, names })
}

impl VersionedTokens {
    /// Lets the tables with a version be called by their own names in the rest of the statement.
    ///
    /// # Errors
    /// `InvalidInput` when what has a version is no table.
    pub(super) fn name_tables(&self, tree: &mut Statement, rules: &NameRules) -> Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        match tree.visit(&mut Namer { names: &self.names, rules, queries: Vec::new() }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(e) => Err(e),
        }
    }
}

/// A version as it is asked for.
enum Asked {
    Version(TableVersion),
    /// A snapshot, branch or tag, as the table will say.
    Named(String),
}

/// Length of the words of a clause that begins at `at`, and whether it asks for a time. Without FOR it has to follow a name
/// and be followed by a value: `SELECT version AS of FROM t` is none.
fn clause_at(tokens: &[TokenWithSpan], at: usize, before: Option<&TokenWithSpan>) -> Option<(usize, bool)> {
    let is = |ahead: usize, word: &str| tokens.get(at + ahead).is_some_and(|t| is_word(t, word));
    let with_for = usize::from(is(0, "FOR"));
    let (_, is_time) = KINDS.into_iter().find(|(word, _)| is(with_for, word))?;
    if !is(with_for + 1, "AS") || !is(with_for + 2, "OF") {
        return None;
    }
    let length = with_for + 3;
    if with_for == 1 {
        return Some((length, is_time));
    }
    let after_name = before
        .is_some_and(|t| matches!(t.token, Token::Word(_)) && !BEFORE_NAMES.iter().any(|word| is_keyword(t, *word)));
    let before_value = tokens.get(at + length).is_some_and(|t| match &t.token {
        Token::Word(_) => !is_keyword(t, Keyword::FROM),
        Token::Comma | Token::RParen => false,
        _ => true,
    });
    (after_name && before_value).then_some((length, is_time))
}

/// The dotted name that `tokens` end with, as it is looked up.
fn name_before(tokens: &[TokenWithSpan], rules: &NameRules) -> Option<Vec<String>> {
    let word = |at: usize| match tokens.get(at).map(|t| &t.token) {
        Some(Token::Word(w)) if w.quote_style.is_none() && rules.normalize => Some(w.value.to_lowercase()),
        Some(Token::Word(w)) => Some(w.value.clone()),
        _ => None,
    };
    let mut at = tokens.len().checked_sub(1)?;
    let mut parts = vec![word(at)?];
    while at >= 2
        && tokens.get(at - 1).is_some_and(|t| t.token == Token::Period)
        && let Some(part) = word(at - 2)
    {
        parts.insert(0, part);
        at -= 2;
    }
    Some(parts)
}

/// The table of that name, if it can have versions.
async fn versioned_table(state: &SessionState, rules: &NameRules, parts: &[String]) -> Result<Table> {
    let name = Name(parts.to_vec());
    let idents: Vec<Ident> = parts.iter().map(|part| Ident::with_quote('"', part)).collect();
    let missing = || Error::not_found(format!("table {name} not found: only tables have versions"));
    let resolved = rules.resolve(&ObjectName::from(idents)).ok_or_else(missing)?;
    let found = provider(state, &resolved).await?.ok_or_else(missing)?;
    let found = found.as_ref();
    let (table, version) = if let Some(iceberg) = found.downcast_ref::<IcebergTableProvider>() {
        (iceberg.table(), iceberg.version())
    } else if let Some(metadata) = found.downcast_ref::<MetadataTableProvider>() {
        (metadata.table(), metadata.version())
    } else {
        return Err(Error::invalid_input(format!("{name} is no Iceberg table: it has no versions")));
    };
    match version {
        TableVersion::Current => Ok(table.clone()),
        version => Err(Error::invalid_input(format!("{name} means {version} already"))),
    }
}

/// The version that `tokens` begin with, and how many of them it takes.
fn parse_version(state: &SessionState, tokens: &[TokenWithSpan], is_time: bool) -> Result<(Asked, usize)> {
    if is_time {
        let dialect = dialect(state)?;
        let mut parser = Parser::new(dialect.as_ref())
            .with_recursion_limit(state.config_options().sql_parser.recursion_limit.into())
            .with_tokens_with_locations(tokens.to_vec());
        let expr = parser.parse_expr().map_err(|e| from_datafusion(DataFusionError::SQL(Box::new(e), None)))?;
        let ms = time_ms(state, expr)?;
        return Ok((Asked::Version(TableVersion::Timestamp(ms)), parser.index().min(tokens.len())));
    }
    let number = |text: &str| {
        let id = text.parse().map_err(|_| Error::invalid_input(format!("{text} is no snapshot id")))?;
        Ok(Asked::Version(TableVersion::Snapshot(id)))
    };
    match (tokens.first().map(|t| &t.token), tokens.get(1).map(|t| &t.token)) {
        (Some(Token::Number(digits, _)), _) => Ok((number(digits)?, 1)),
        (Some(Token::Minus), Some(Token::Number(digits, _))) => Ok((number(&format!("-{digits}"))?, 2)),
        (Some(Token::SingleQuotedString(name)), _) => Ok((Asked::Named(name.clone()), 1)),
        _ => Err(Error::invalid_input("expected a snapshot id, or the name of a branch or tag in quotes, after AS OF")),
    }
}

/// A constant as milliseconds since the epoch: a number is just that, a time without zone is one of the session's time zone
/// (UTC if it has none).
fn time_ms(state: &SessionState, expr: SqlExpr) -> Result<i64> {
    let text = expr.to_string();
    let schema = Arc::new(DFSchema::empty());
    let expr = state.create_logical_expr_from_sql_expr(ExprWithAlias { expr, alias: None }, &schema);
    let options = state.config_options();
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(&schema))
        .with_config_options(Arc::clone(options))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let constant = expr.and_then(|expr| simplifier.simplify(simplifier.coerce(expr, &schema)?));
    let constant = constant.map_err(|e| {
        Error::invalid_input(format!("the time in AS OF {text} has to be a constant: {}", from_datafusion(e).message()))
    })?;
    let Expr::Literal(value, _) = constant else {
        return Err(Error::invalid_input(format!("the time in AS OF {text} has to be a constant")));
    };
    let no_time = || Error::invalid_input(format!("{text} is no time: expected a timestamp, a date or milliseconds"));
    let of = |value: &ScalarValue, to: &DataType| value.cast_to(to).map_err(|e| no_time().with_source(e));
    if value.data_type().is_integer() {
        return match of(&value, &DataType::Int64)? {
            ScalarValue::Int64(Some(ms)) => Ok(ms),
            _ => Err(no_time()),
        };
    }
    let is_time = matches!(
        value.data_type(),
        DataType::Timestamp(..)
            | DataType::Date32
            | DataType::Date64
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
    );
    if !is_time {
        return Err(no_time());
    }
    let zone = options.execution.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
    match of(&value, &DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())))? {
        ScalarValue::TimestampMicrosecond(Some(micros), _) => Ok(micros.div_euclid(1000)),
        _ => Err(no_time()),
    }
}

fn at_token(e: Error, token: &TokenWithSpan) -> Error {
    if e.message().contains(" at line ") {
        return e;
    }
    let at = token.span.start;
    Error::new(e.kind(), format!("{} at line {}, column {}", e.message(), at.line, at.column))
}

/// Gives the tables whose names were changed an alias, the name they had.
struct Namer<'a> {
    names: &'a HashMap<Location, String>,
    rules: &'a NameRules,
    /// The queries around, outermost first.
    queries: Vec<Frame>,
}

/// Common table expressions of one query, and how many of them are in scope yet: one sees those before it, the query all.
struct Frame {
    ctes: Vec<String>,
    visible: usize,
    recursive: bool,
}

impl VisitorMut for Namer<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let ctes = ctes.map(|cte| self.rules.text(&cte.alias.name)).collect();
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.queries.push(Frame { ctes, visible: 0, recursive });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.queries.pop();
        // The first queries in a query are those of its common table expressions, in order.
        if let Some(outer) = self.queries.last_mut() {
            outer.visible = outer.ctes.len().min(outer.visible + 1);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(ObjectNamePart::Identifier(last)) = name.0.last() else { return ControlFlow::Continue(()) };
        let Some(own) = self.names.get(&last.span.start) else { return ControlFlow::Continue(()) };
        let is_cte = |frame: &Frame| {
            let visible = if frame.recursive { frame.ctes.len() } else { frame.visible };
            frame.ctes.iter().take(visible).any(|cte| cte == own)
        };
        if name.0.len() == 1 && self.queries.iter().any(is_cte) {
            return ControlFlow::Break(Error::invalid_input(format!(
                "{own} is a common table expression here, which has no versions: give the table's schema too"
            )));
        }
        if alias.is_none() {
            let name = Ident::with_quote('"', own);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}

/// Refuses the version clauses that a dialect's own parser knows, which DataFusion would ignore.
#[derive(Debug)]
pub(super) struct VersionRefusal;

impl RelationPlanner for VersionRefusal {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> datafusion::common::Result<RelationPlanning> {
        if let TableFactor::Table { version: Some(version), name, .. } = &relation {
            return Err(Error::unsupported(format!(
                "{name} {version} in SessionContext::sql: use Calve::sql, or name the version as in t$snapshot_id_1, \
                 t$branch_main, t$tag_v1 or t$at_timestamp_0"
            ))
            .into());
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}
