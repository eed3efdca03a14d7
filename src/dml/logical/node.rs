//! The logical node that every writing statement becomes.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use uuid::Uuid;

use super::Change;
use crate::table::Table;

/// What a statement does with the rows of its input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub enum Command {
    /// Appends them; the input has the table's columns.
    Append,
    /// Creates the table, which exists in the statement alone, and appends them; the input has the table's columns.
    Create,
    /// Deletes them; the input has [`FILE_COLUMN`](crate::provider::FILE_COLUMN) and
    /// [`POSITION_COLUMN`](crate::provider::POSITION_COLUMN).
    Delete {
        /// The condition as written, `None` for all rows; the input is already filtered by it.
        condition: Option<Box<Expr>>,
    },
    /// Takes some away and adds others.
    Change(Change),
}

/// One writing statement: a table pinned at the snapshot the statement reads, a command, and the rows.
#[derive(Debug, Clone)]
pub struct RowDeltaNode {
    pub(crate) table: Table,
    pub(crate) command: Command,
    pub(crate) input: Arc<LogicalPlan>,
    /// Columns the condition is written against.
    pub(crate) target_schema: DFSchemaRef,
    /// Marks the target's own scan within the input, told from other scans of the same table.
    pub(crate) scan_token: Uuid,
    schema: DFSchemaRef,
}

impl RowDeltaNode {
    /// `CREATE TABLE … AS`: `table` holds the metadata of the table to create, `input` its rows in column order.
    pub fn create(table: Table, input: LogicalPlan) -> Result<Self> {
        let schema = Arc::clone(input.schema());
        Self::try_new(table, Command::Create, input, schema, Uuid::nil())
    }

    /// Whether the statement creates its table.
    pub fn creates_table(&self) -> bool {
        self.command == Command::Create
    }

    /// A statement over `input`.
    pub fn try_new(
        table: Table,
        command: Command,
        input: LogicalPlan,
        target_schema: DFSchemaRef,
        scan_token: Uuid,
    ) -> Result<Self> {
        let count = Schema::new(vec![Field::new("count", DataType::UInt64, false)]);
        let schema = Arc::new(DFSchema::try_from(count)?);
        Ok(Self { table, command, input: Arc::new(input), target_schema, scan_token, schema })
    }

    fn identity(&self) -> (String, Option<i64>, Uuid) {
        (self.table.metadata_location.clone(), self.table.metadata.current_snapshot_id, self.scan_token)
    }
}

impl PartialEq for RowDeltaNode {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity() && self.command == other.command && self.input == other.input
    }
}

impl Eq for RowDeltaNode {}

impl PartialOrd for RowDeltaNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.identity().cmp(&other.identity()) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            unequal => Some(unequal),
        }
    }
}

impl Hash for RowDeltaNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
        self.command.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for RowDeltaNode {
    fn name(&self) -> &str {
        "RowDelta"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// None: the condition is kept as written and must not be rewritten apart from the filter in the input.
    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Command::Append => write!(f, "RowDelta: append to {}", self.table.ident),
            Command::Create => write!(f, "RowDelta: create {}", self.table.ident),
            Command::Change(change) => write!(f, "RowDelta: {} {}", change.kind, self.table.ident),
            Command::Delete { condition: None } => write!(f, "RowDelta: delete from {}", self.table.ident),
            Command::Delete { condition: Some(condition) } => {
                write!(f, "RowDelta: delete from {} where {condition}", self.table.ident)
            }
        }
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let (true, 1, Some(input)) = (exprs.is_empty(), inputs.len(), inputs.pop()) else {
            return plan_err!("RowDelta takes one input and no expressions");
        };
        Ok(Self { input: Arc::new(input), ..self.clone() })
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}
