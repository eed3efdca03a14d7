//! The session: installing the extension into DataFusion, and the statements DataFusion does not plan.
//!
//! [`Calve::sql`] is the statement entry point: it splits a text, parses our own statements itself, repairs the parse tree of
//! the others, and has DataFusion plan them. Plain `SessionContext::sql` works for every statement that DataFusion can plan.

mod install;
mod rewrite;
mod statement;

use datafusion::dataframe::DataFrame;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

pub use crate::options::CalveOptions;
pub use crate::provider::{from_datafusion, to_datafusion};
pub use install::{extension_planners, install};
pub use statement::{StatementText, is_complete, split_statements};

use crate::{Error, Result};

/// A DataFusion session with the statement entry point for Iceberg tables. Cheap to clone; clones share the session.
#[derive(Clone)]
pub struct Calve {
    ctx: SessionContext,
}

impl std::fmt::Debug for Calve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calve").field("session", &self.ctx.session_id()).finish_non_exhaustive()
    }
}

impl Calve {
    /// Wraps a session that was built with [`install`].
    ///
    /// # Errors
    /// `InvalidInput` when the extension is not installed in it.
    pub fn new(ctx: SessionContext) -> Result<Self> {
        if ctx.copied_config().options().extensions.get::<CalveOptions>().is_none() {
            return Err(Error::invalid_input("the session was not built with calve::session::install"));
        }
        Ok(Self { ctx })
    }

    /// The DataFusion session inside.
    pub fn context(&self) -> &SessionContext {
        &self.ctx
    }

    /// Splits a text into statements, under the quoting rules of the session's dialect.
    ///
    /// # Errors
    /// `InvalidInput` with line and column when the text does not tokenise.
    pub fn statements(&self, text: &str) -> Result<Vec<StatementText>> {
        let dialect = dialect(&self.ctx.state())?;
        statement::split_with_dialect(text, dialect.as_ref())
    }

    /// Plans one statement and, where it is one, runs its DDL. Queries and DML run when the frame is collected.
    ///
    /// # Errors
    /// `InvalidInput` unless `text` is exactly one statement; else those of the statement.
    pub async fn sql(&self, text: &str) -> Result<DataFrame> {
        match self.statements(text)?.as_slice() {
            [statement] => self.execute(statement).await,
            [] => Err(Error::invalid_input("no statement is given")),
            more => Err(Error::invalid_input(format!("one statement is expected, {} are given", more.len()))),
        }
    }

    /// As [`sql`](Self::sql), for a statement that is already split off.
    ///
    /// # Errors
    /// Those of the statement.
    pub async fn execute(&self, statement: &StatementText) -> Result<DataFrame> {
        let plan = self.plan(statement).await?;
        self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion)
    }

    /// Plans one statement; nothing is executed.
    ///
    /// # Errors
    /// `InvalidInput` and `NotFound` for what is wrong with the statement, `Unsupported` for what cannot be planned.
    pub async fn plan(&self, statement: &StatementText) -> Result<LogicalPlan> {
        let state = self.ctx.state();
        let mut parsed = parse(&state, statement.tokens().to_vec())?;
        repair(&mut parsed);
        state.statement_to_plan(parsed).await.map_err(from_datafusion)
    }
}

/// Parses the tokens of one statement with DataFusion's parser.
fn parse(state: &SessionState, tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    let dialect = dialect(state)?;
    let mut statements = DFParserBuilder::new(tokens)
        .with_dialect(dialect.as_ref())
        .with_recursion_limit(state.config_options().sql_parser.recursion_limit.into())
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(from_datafusion)?;
    statements.pop_front().ok_or_else(|| Error::invalid_input("no statement is given"))
}

fn dialect(state: &SessionState) -> Result<Box<dyn datafusion::sql::sqlparser::dialect::Dialect>> {
    let name = state.config_options().sql_parser.dialect.to_string();
    dialect_from_str(&name).ok_or_else(|| Error::invalid_input(format!("unknown SQL dialect {name}")))
}

/// Repairs what the parser gets wrong.
fn repair(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => rewrite::distinct_from::repair(statement),
        Statement::Explain(explain) => repair(&mut explain.statement),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                rewrite::distinct_from::repair(query);
            }
        }
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

#[cfg(test)]
mod tests;
