//! The session: installing the extension into DataFusion, and the statements DataFusion does not plan.
//!
//! [`Calve::sql`] is the statement entry point: it splits a text, parses our own statements itself, repairs the parse tree of
//! the others, and has DataFusion plan them. Plain `SessionContext::sql` works for every statement that DataFusion can plan.

mod alter;
mod command;
mod constant;
mod dispatch;
mod external;
mod insert;
mod install;
mod overlay;
mod parser;
mod plan;
mod registry;
mod rewrite;
mod statement;
mod time_travel;
mod views;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::catalog::MemTable;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Deallocate, LogicalPlan, LogicalPlanBuilder, Statement, lit};
use datafusion::prelude::SessionContext;

pub use crate::options::CalveOptions;
pub use crate::provider::{from_datafusion, to_datafusion};
pub use install::{Extension, extension_planners, install};
pub use statement::{StatementText, is_complete, split_statements};

use crate::catalog::Catalog;
use crate::provider::IcebergCatalogProvider;
use crate::{Error, Result};
use dispatch::{Binder, Planned};
use overlay::SessionCatalog;
use parser::{Cursor, parse_insert, parse_show_create_table};
use registry::Catalogs;

/// A DataFusion session with the statement entry point for Iceberg tables. Cheap to clone; clones share the session.
#[derive(Clone)]
pub struct Calve {
    ctx: SessionContext,
    catalogs: Arc<Catalogs>,
    prepared: Arc<PreparedStatements>,
}

impl std::fmt::Debug for Calve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calve").field("session", &self.ctx.session_id()).finish_non_exhaustive()
    }
}

/// The texts of prepared statements: each EXECUTE plans its own again, so that it reads tables as they are.
#[derive(Default)]
struct PreparedStatements {
    /// Planned, and not prepared yet.
    noted: Mutex<HashMap<String, StatementText>>,
    kept: tokio::sync::Mutex<HashMap<String, StatementText>>,
}

impl PreparedStatements {
    fn note(&self, plan: &LogicalPlan, text: &StatementText) {
        if let LogicalPlan::Statement(Statement::Prepare(prepare)) = plan {
            self.noted().insert(prepare.name.clone(), text.clone());
        }
    }

    fn take_noted(&self, name: &str) -> Option<StatementText> {
        self.noted().remove(name)
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<String, StatementText>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calve {
    /// Wraps a session that was built with [`install`].
    ///
    /// # Errors
    /// `InvalidInput` when the extension is not installed in it.
    pub fn new(ctx: SessionContext) -> Result<Self> {
        match ctx.copied_config().get_extension::<Catalogs>() {
            Some(catalogs) => Ok(Self { ctx, catalogs, prepared: Arc::default() }),
            None => Err(Error::invalid_input("the session was not built with calve::session::install")),
        }
    }

    /// The DataFusion session inside.
    pub fn context(&self) -> &SessionContext {
        &self.ctx
    }

    /// Adds a catalog of Iceberg tables under the name `name`. External tables and views may be registered in it; they last
    /// as long as the session.
    pub fn register_catalog(&self, name: &str, catalog: Arc<dyn Catalog>) {
        self.register(name, catalog, false);
    }

    /// As [`register_catalog`](Self::register_catalog); in addition a quoted table name that is a path or URL, as in
    /// `SELECT * FROM 'data.parquet'`, reads that file. Not for statements of strangers.
    pub fn register_catalog_with_files(&self, name: &str, catalog: Arc<dyn Catalog>) {
        self.register(name, catalog, true);
    }

    fn register(&self, name: &str, catalog: Arc<dyn Catalog>, files: bool) {
        let provider = IcebergCatalogProvider::new(Arc::clone(&catalog), self.catalogs.env().clone());
        let files = files.then(|| {
            let factory = DynamicListTableFactory::new(Default::default());
            factory.session_store().with_state(self.ctx.state_weak_ref());
            Arc::new(factory) as _
        });
        self.catalogs.register(name.to_owned(), catalog);
        self.ctx.register_catalog(name, Arc::new(SessionCatalog::new(provider, files)));
    }

    /// Splits a text into statements, under the quoting rules of the session's dialect.
    ///
    /// # Errors
    /// `InvalidInput` with line and column when the text does not tokenise.
    pub fn statements(&self, text: &str) -> Result<Vec<StatementText>> {
        let dialect = plan::dialect(&self.ctx.state())?;
        statement::split_with_dialect(text, dialect.as_ref())
    }

    /// Plans one statement and, where it is DDL, runs it. Queries and DML run when the frame is collected.
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
        if command::is_command(&plan) { self.run(plan).await } else { self.start(plan).await }
    }

    /// Plans one statement; nothing is executed.
    ///
    /// # Errors
    /// `InvalidInput` and `NotFound` for what is wrong with the statement, `Unsupported` for what cannot be planned.
    pub async fn plan(&self, statement: &StatementText) -> Result<LogicalPlan> {
        let state = self.ctx.state();
        let explain = statement.explain_words();
        let inner = statement.behind(explain);
        let Some(plan) = self.plan_ours(&state, &inner).await? else {
            let plan = plan::plan_statement(&state, statement).await?;
            self.prepared.note(&plan, statement);
            return Ok(plan);
        };
        match statement.tokens().get(..explain) {
            Some(words @ [_, ..]) => plan::explain_words(&state, words, plan).await,
            _ => Ok(plan),
        }
    }

    async fn plan_ours(&self, state: &SessionState, statement: &StatementText) -> Result<Option<LogicalPlan>> {
        let normalize = state.config_options().sql_parser.enable_ident_normalization;
        let mut cursor = Cursor::new(statement.tokens(), normalize);
        if cursor.looking_at(&["SHOW", "CREATE", "TABLE"]) {
            let name = parse_show_create_table(&mut cursor)?;
            return show_create_table(state, &name).await.map(Some);
        }
        let insert = parse_insert(&mut cursor, plan::dialect(state)?.as_ref())?;
        if let Some(insert) = insert {
            return insert::plan_insert(state, insert).await.map(Some);
        }
        let binder = Binder { state, catalogs: &self.catalogs };
        match binder.plan(statement.tokens(), statement.sql()).await? {
            None => Ok(None),
            Some(Planned::Plan(plan)) => Ok(Some(plan)),
            Some(Planned::CreateTableAs(create, catalog, ident)) => {
                let query = StatementText::of_tokens(create.query.clone().unwrap_or_default());
                let query = plan::plan_statement(state, &query).await?;
                command::create_table_as(&create, query, catalog, ident, self.catalogs.env()).map(Some)
            }
        }
    }

    /// Makes a plan of [`plan`](Self::plan) ready to run. DataFusion's own DDL and SET run now; everything else, our own
    /// statements included, runs when the frame is collected.
    ///
    /// # Errors
    /// Those of what runs now.
    pub async fn start(&self, plan: LogicalPlan) -> Result<DataFrame> {
        let LogicalPlan::Statement(statement) = &plan else {
            return self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion);
        };
        // Nothing else may prepare or free the name in between.
        let mut kept = self.prepared.kept.lock().await;
        match statement {
            Statement::Prepare(prepare) => {
                let name = prepare.name.clone();
                let frame = self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion)?;
                if let Some(text) = self.prepared.take_noted(&name) {
                    kept.insert(name, text);
                }
                Ok(frame)
            }
            Statement::Deallocate(deallocate) => {
                kept.remove(&deallocate.name);
                self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion)
            }
            Statement::Execute(execute) => {
                if let Some(text) = kept.get(&execute.name) {
                    // The plan that was made reads the tables as they were then.
                    let again = plan::plan_statement(&self.ctx.state(), text).await?;
                    let name = execute.name.clone();
                    let free = LogicalPlan::Statement(Statement::Deallocate(Deallocate { name }));
                    self.ctx.execute_logical_plan(free).await.map_err(from_datafusion)?;
                    self.ctx.execute_logical_plan(again).await.map_err(from_datafusion)?;
                }
                self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion)
            }
            _ => self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion),
        }
    }

    /// Runs a command to its end; the frame holds its result.
    async fn run(&self, plan: LogicalPlan) -> Result<DataFrame> {
        let frame = DataFrame::new(self.ctx.state(), plan);
        let schema = Arc::clone(frame.schema().inner());
        let batches = frame.collect().await.map_err(from_datafusion)?;
        if schema.fields().is_empty() {
            let nothing = LogicalPlanBuilder::empty(false).build().map_err(from_datafusion)?;
            return Ok(DataFrame::new(self.ctx.state(), nothing));
        }
        let table = MemTable::try_new(schema, vec![batches]).map_err(from_datafusion)?;
        self.ctx.read_table(Arc::new(table)).map_err(from_datafusion)
    }
}

/// The plan of `SHOW CREATE TABLE`: one row with the statement that makes the table as it is.
async fn show_create_table(state: &SessionState, name: &parser::Name) -> Result<LogicalPlan> {
    let (table, provider) = plan::named_table(state, &name.0).await?;
    let definition = provider.get_table_definition();
    let Some(definition) = definition else {
        return Err(Error::unsupported(format!("the definition of {name} is not known")));
    };
    let row = [&*table.catalog, &*table.schema, &*table.table, definition].map(lit).to_vec();
    let columns = ["table_catalog", "table_schema", "table_name", "definition"];
    LogicalPlanBuilder::values(vec![row])
        .and_then(|values| {
            let schema = Arc::clone(values.schema());
            let named = schema.columns().into_iter().zip(columns);
            values.project(named.map(|(c, name)| datafusion::prelude::Expr::Column(c).alias(name)))
        })
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}

#[cfg(test)]
mod tests;
