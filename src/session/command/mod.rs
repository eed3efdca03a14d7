//! Our own statements as plan nodes, executed like any other plan.
//!
//! A command is planned without effect, so that EXPLAIN of one writes nothing, and runs when its plan is executed. Invariant:
//! a plan runs its command at most once.

mod create_as;
mod definition;
mod drop_table;
mod exec;
mod namespace;
mod node;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;

pub(crate) use create_as::create_table_as;
pub(crate) use definition::table_from_columns;
pub(crate) use exec::CommandPlanner;
pub(crate) use node::CommandNode;

use crate::catalog::{Catalog, TableIdent};
use crate::dml::logical::RowDeltaNode;
use crate::env::Env;
use crate::session::alter::plan_change;
use crate::session::parser::TableChange;
use crate::spec::table_metadata::NewTable;
use crate::table::Table;
use crate::transaction::commit_metadata;
use crate::{Error, ErrorKind, Result};

/// A statement that changes a catalog.
#[derive(Debug)]
pub(crate) enum Command {
    /// A statement that has nothing to do.
    Nothing,
    /// `CREATE SCHEMA`.
    CreateNamespace { namespace: Vec<String>, if_not_exists: bool },
    /// `DROP SCHEMA`.
    DropNamespace { namespace: Vec<String>, if_exists: bool, cascade: bool },
    /// `CREATE TABLE` without a query.
    CreateTable { ident: TableIdent, table: Box<NewTable>, if_not_exists: bool },
    /// `ALTER TABLE`, with the values of its DEFAULTs.
    AlterTable { ident: TableIdent, change: Box<TableChange>, constants: Vec<ScalarValue> },
    /// `ALTER TABLE … RENAME TO`.
    RenameTable { from: TableIdent, to: TableIdent },
    /// `DROP TABLE`.
    DropTable { ident: TableIdent, if_exists: bool, purge: bool },
}

/// A command with the catalog it works on.
#[derive(Debug)]
pub(crate) struct BoundCommand {
    pub(crate) command: Command,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) env: Env,
}

impl Command {
    /// Columns of the result: a message where there is one to tell, else none.
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::DropTable { .. } => Arc::new(Schema::new(vec![Field::new("message", DataType::Utf8, false)])),
            _ => Arc::new(Schema::empty()),
        }
    }
}

impl BoundCommand {
    /// Runs the command. The batch is of the command's schema; `None` when there are no rows.
    pub(crate) async fn run(&self) -> Result<Option<RecordBatch>> {
        let catalog = &self.catalog;
        match &self.command {
            Command::Nothing => Ok(None),
            Command::CreateNamespace { namespace, if_not_exists } => {
                catalog.create_namespace(namespace, *if_not_exists).await?;
                Ok(None)
            }
            Command::DropNamespace { namespace, if_exists, cascade } => {
                namespace::drop_namespace(catalog.as_ref(), namespace, *if_exists, *cascade).await?;
                Ok(None)
            }
            Command::CreateTable { ident, table, if_not_exists } => {
                self.create_table(ident, table, *if_not_exists).await?;
                Ok(None)
            }
            Command::AlterTable { ident, change, constants } => {
                let table = Table::load(Arc::clone(catalog), ident.clone(), self.env.clone()).await?;
                commit_metadata(&table, |metadata| plan_change(metadata, change, constants)).await?;
                Ok(None)
            }
            Command::RenameTable { from, to } => {
                catalog.rename_table(from, to).await?;
                Ok(None)
            }
            Command::DropTable { ident, if_exists, purge } => {
                let message = drop_table::drop_table(catalog, &self.env, ident, *if_exists, *purge).await?;
                let Some(message) = message else { return Ok(None) };
                let column: ArrayRef = Arc::new(StringArray::from(vec![message]));
                let batch = RecordBatch::try_new(self.command.schema(), vec![column]);
                batch.map(Some).map_err(|e| Error::internal("the message of a command").with_source(e))
            }
        }
    }

    async fn create_table(&self, ident: &TableIdent, table: &NewTable, if_not_exists: bool) -> Result<()> {
        if if_not_exists && table_exists(self.catalog.as_ref(), ident).await? {
            return Ok(());
        }
        let metadata = definition::first_state(table.clone(), &self.env)?;
        match self.catalog.create_table(ident, metadata).await {
            // another session created it meanwhile
            Err(e) if if_not_exists && e.kind() == ErrorKind::AlreadyExists => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// Whether a plan is one of ours that is run at once: everything but a query and DML.
pub(crate) fn is_command(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Extension(extension) = plan else { return false };
    let node = extension.node.as_any();
    node.is::<CommandNode>() || node.downcast_ref::<RowDeltaNode>().is_some_and(RowDeltaNode::creates_table)
}

/// Whether `catalog` has the table. A table whose metadata is damaged exists.
pub(crate) async fn table_exists(catalog: &dyn Catalog, ident: &TableIdent) -> Result<bool> {
    match catalog.load_table(ident).await {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) if e.kind() == ErrorKind::DataInvalid => Ok(true),
        Err(e) => Err(e),
    }
}
