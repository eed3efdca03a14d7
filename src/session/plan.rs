//! From the tokens of a statement that DataFusion knows to a logical plan: its parser, our passes, its planner.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::display::ToStringifiedPlan;
use datafusion::common::{ResolvedTableReference, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, PlanType, TableSource, WriteOp};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, ExplainStatement, Statement};
use datafusion::sql::sqlparser::ast::{Statement as SqlStatement, TableFactor};
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::from_datafusion;
use super::rewrite::assignments::{self, TargetColumn, mark_stars};
use super::rewrite::delete::DeleteQuery;
use super::rewrite::names::{HIDDEN_COLUMNS, resolve_names};
use super::rewrite::relations::{NameRules, TableColumns};
use super::rewrite::{chains, ctes, distinct_from, to_merge};
use super::statement::StatementText;
use super::time_travel::take_versions;
use crate::provider::IcebergTableProvider;
use crate::{Error, Result};

/// Plans a statement that is not ours.
pub(super) async fn plan_statement(state: &SessionState, statement: &StatementText) -> Result<LogicalPlan> {
    let versioned = take_versions(state, statement.tokens()).await?;
    let mut parsed = parse(state, mark_stars(versioned.tokens.clone()))?;
    let rules = name_rules(state);
    each_tree(&mut parsed, &mut |tree| {
        chains::balance(tree)?;
        versioned.name_tables(tree, &rules)?;
        distinct_from::repair(tree);
        ctes::unwrap(tree, &rules);
        Ok(())
    })?;
    let mut parsed = changes(state, parsed, &rules).await?;
    each_tree(&mut parsed, &mut |tree| DeleteQuery::check(tree))?;
    if versioned.tokens.iter().any(names_hidden_column) {
        let resolved = with_resolved_names(state, &parsed).await?;
        return plan_tree(state, resolved).await;
    }
    let error = match plan_tree(state, parsed.clone()).await {
        Ok(plan) => return Ok(plan),
        Err(e) => e,
    };
    // a column that is there, but in another case, is the one failure that can be cured
    let resolved = with_resolved_names(state, &parsed).await?;
    if resolved == parsed { Err(error) } else { plan_tree(state, resolved).await }
}

/// A statement that changes rows of an Iceberg table in a form that DataFusion plans.
async fn changes(state: &SessionState, mut statement: Statement, rules: &NameRules) -> Result<Statement> {
    let mut target = None;
    each_tree(&mut statement, &mut |tree| {
        if let Some(TableFactor::Table { name, .. }) = to_merge::target(tree).or_else(|| assignments::target(tree)) {
            target = rules.resolve(name);
        }
        Ok(())
    })?;
    let Some(target) = target else { return Ok(statement) };
    let Some(found) = provider(state, &target).await? else { return Ok(statement) };
    let Some(table) = iceberg(&found) else { return Ok(statement) };
    let schema = table.schema();
    let columns = schema.fields().iter().map(|field| TargetColumn {
        name: field.name().clone(),
        data_type: field.data_type().clone(),
        default: table.get_column_default(field.name()).and_then(|e| e.as_literal().cloned()),
    });
    let columns: Vec<TargetColumn> = columns.collect();
    each_tree(&mut statement, &mut |tree| {
        to_merge::rewrite(tree);
        assignments::expand(tree, &columns, rules)
    })?;
    Ok(statement)
}

fn names_hidden_column(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(w) if HIDDEN_COLUMNS.iter().any(|c| w.value.eq_ignore_ascii_case(c)))
}

/// Parses the tokens of one statement with DataFusion's parser.
pub(super) fn parse(state: &SessionState, tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    let dialect = dialect(state)?;
    let mut statements = DFParserBuilder::new(tokens)
        .with_dialect(dialect.as_ref())
        .with_recursion_limit(state.config_options().sql_parser.recursion_limit.into())
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(from_datafusion)?;
    statements.pop_front().ok_or_else(|| Error::invalid_input("no statement is given"))
}

/// The session's SQL dialect.
pub(super) fn dialect(state: &SessionState) -> Result<Box<dyn Dialect>> {
    let name = state.config_options().sql_parser.dialect.to_string();
    dialect_from_str(&name).ok_or_else(|| Error::invalid_input(format!("unknown SQL dialect {name}")))
}

/// Calls `pass` with each tree of sqlparser's in a statement.
fn each_tree(statement: &mut Statement, pass: &mut dyn FnMut(&mut SqlStatement) -> Result<()>) -> Result<()> {
    match statement {
        Statement::Statement(tree) => pass(tree),
        Statement::Explain(explain) => each_tree(&mut explain.statement, pass),
        Statement::CopyTo(copy) => {
            let CopyToSource::Query(query) = &mut copy.source else { return Ok(()) };
            let mut tree = SqlStatement::Query(query.clone());
            pass(&mut tree)?;
            if let SqlStatement::Query(changed) = tree {
                *query = changed;
            }
            Ok(())
        }
        Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

/// A copy of the statement with hidden columns and names in another case resolved.
async fn with_resolved_names(state: &SessionState, statement: &Statement) -> Result<Statement> {
    let rules = name_rules(state);
    let mut tables = HashMap::new();
    for reference in state.resolve_table_references(statement).map_err(from_datafusion)? {
        let resolved = reference.resolve(&rules.default_catalog, &rules.default_schema);
        if let Some(provider) = provider(state, &resolved).await? {
            let columns: Vec<String> = provider.schema().fields().iter().map(|f| f.name().clone()).collect();
            let hidden = match iceberg(&provider) {
                Some(table) => {
                    let rows = table.with_row_address()?.schema();
                    Some(rows.fields().iter().map(|f| f.name().clone()).filter(|c| !columns.contains(c)).collect())
                }
                None => None,
            };
            tables.insert(resolved, TableColumns { columns, hidden });
        }
    }
    let mut statement = statement.clone();
    each_tree(&mut statement, &mut |tree| {
        if let Some(query) = DeleteQuery::of(tree) {
            return query.rewrite(tree, |query| resolve_names(query, &rules, &tables));
        }
        resolve_names(tree, &rules, &tables)
    })?;
    Ok(statement)
}

pub(super) fn name_rules(state: &SessionState) -> NameRules {
    let options = state.config_options();
    NameRules {
        normalize: options.sql_parser.enable_ident_normalization,
        default_catalog: options.catalog.default_catalog.clone(),
        default_schema: options.catalog.default_schema.clone(),
    }
}

/// The table of that name; `None` when there is none, or no such schema.
pub(super) async fn provider(
    state: &SessionState,
    table: &ResolvedTableReference,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Ok(schema) = state.schema_for_ref(table.clone()) else { return Ok(None) };
    schema.table(&table.table).await.map_err(from_datafusion)
}

/// The table that the parts of a name mean, with its full name.
pub(super) async fn named_table(
    state: &SessionState,
    parts: &[String],
) -> Result<(ResolvedTableReference, Arc<dyn TableProvider>)> {
    let reference = match parts {
        [table] => TableReference::bare(table.as_str()),
        [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
        [catalog, schema, table] => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
        _ => return Err(Error::invalid_input("a table name has at most three parts: catalog.schema.table")),
    };
    let rules = name_rules(state);
    let resolved = reference.resolve(&rules.default_catalog, &rules.default_schema);
    match provider(state, &resolved).await? {
        Some(provider) => Ok((resolved, provider)),
        None => Err(Error::not_found(format!("table '{resolved}' not found"))),
    }
}

/// The provider as an Iceberg table that shows its own columns only.
fn iceberg(provider: &Arc<dyn TableProvider>) -> Option<&IcebergTableProvider> {
    provider.downcast_ref::<IcebergTableProvider>().filter(|table| !table.has_row_address())
}

/// Plans a tree that the passes are done with.
async fn plan_tree(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    match statement {
        Statement::Explain(explain) if is_aliased_delete(&explain.statement) => {
            let plan = Box::pin(plan_tree(state, *explain.statement)).await?;
            explain_plan(state, ExplainStatement { statement: Box::new(nothing(state)?), ..explain }, plan).await
        }
        Statement::Statement(tree) => match DeleteQuery::of(&tree).filter(DeleteQuery::has_alias) {
            Some(query) => plan_delete(state, query, *tree).await,
            None => state.statement_to_plan(Statement::Statement(tree)).await.map_err(from_datafusion),
        },
        other => state.statement_to_plan(other).await.map_err(from_datafusion),
    }
}

fn is_aliased_delete(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(tree) if DeleteQuery::of(tree).is_some_and(|q| q.has_alias()))
}

/// Plans a DELETE whose target has an alias, which DataFusion drops: as `SELECT * FROM target AS alias WHERE …`, whose scan and
/// filter become the input of the DELETE. The target is the very table that the scan reads, hidden columns and all.
async fn plan_delete(state: &SessionState, query: DeleteQuery, tree: SqlStatement) -> Result<LogicalPlan> {
    let rules = name_rules(state);
    let not_a_name = || Error::invalid_input("DELETE FROM needs the name of a table");
    let target = rules.resolve(&query.table_name()).ok_or_else(not_a_name)?;
    let found = provider(state, &target).await?;
    if found.is_none_or(|found| iceberg(&found).is_none()) {
        return state.statement_to_plan(Statement::Statement(Box::new(tree))).await.map_err(from_datafusion);
    }
    let select = Statement::Statement(Box::new(SqlStatement::Query(Box::new(query.into_query()))));
    let plan = state.statement_to_plan(select).await.map_err(from_datafusion)?;
    let unexpected = || Error::internal("the query of a DELETE is planned in another way than it used to be");
    let LogicalPlan::Projection(projection) = plan else { return Err(unexpected()) };
    let source = scanned(&projection.input).ok_or_else(unexpected)?;
    let name = TableReference::from(target);
    Ok(LogicalPlan::Dml(DmlStatement::new(name, source, WriteOp::Delete, projection.input)))
}

/// The table that a filter, an alias, or both stand over.
fn scanned(plan: &LogicalPlan) -> Option<Arc<dyn TableSource>> {
    match plan {
        LogicalPlan::Filter(filter) => scanned(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => scanned(&alias.input),
        LogicalPlan::TableScan(scan) => Some(Arc::clone(&scan.source)),
        _ => None,
    }
}

/// A statement without effect, in whose place a plan of ours is put.
fn nothing(state: &SessionState) -> Result<Statement> {
    let tokens = super::statement::split_statements("SELECT 1")?;
    let tokens = tokens.into_iter().next().map(|s| s.tokens().to_vec()).unwrap_or_default();
    parse(state, tokens)
}

/// The plan of EXPLAIN with the words `explain` (from EXPLAIN up to the statement) over `plan`.
pub(super) async fn explain_words(
    state: &SessionState,
    explain: &[TokenWithSpan],
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    let mut tokens = explain.to_vec();
    if let Some(select) = super::statement::split_statements("SELECT 1")?.first() {
        tokens.extend_from_slice(select.tokens());
    }
    match parse(state, tokens)? {
        Statement::Explain(explain) => explain_plan(state, explain, plan).await,
        _ => Err(Error::invalid_input("expected a statement after EXPLAIN")),
    }
}

async fn explain_plan(state: &SessionState, explain: ExplainStatement, plan: LogicalPlan) -> Result<LogicalPlan> {
    match state.statement_to_plan(Statement::Explain(explain)).await.map_err(from_datafusion)? {
        LogicalPlan::Explain(mut explain) => {
            explain.stringified_plans = vec![plan.to_stringified(PlanType::InitialLogicalPlan)];
            explain.plan = Arc::new(plan);
            Ok(LogicalPlan::Explain(explain))
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(plan);
            Ok(LogicalPlan::Analyze(analyze))
        }
        _ => Err(Error::internal("EXPLAIN is not planned as one")),
    }
}
