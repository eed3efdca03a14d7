//! The logical node of INSERT OVERWRITE.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use uuid::Uuid;

use crate::table::Table;

/// Which rows of the table the new ones replace.
#[derive(Debug, Clone)]
pub enum OverwriteScope {
    /// All of them.
    Table,
    /// Those of the partitions that new rows land in.
    Partitions,
    /// Those that a condition selects.
    Matching(Box<Matching>),
}

/// The rows that a condition selects.
#[derive(Debug, Clone)]
pub struct Matching {
    /// The condition, over `target_schema`; `addresses` is already filtered by it.
    pub(crate) condition: Expr,
    /// [`FILE_COLUMN`](crate::provider::FILE_COLUMN) and [`POSITION_COLUMN`](crate::provider::POSITION_COLUMN) of the rows.
    pub(crate) addresses: Arc<LogicalPlan>,
    /// Columns the condition is written against.
    pub(crate) target_schema: DFSchemaRef,
    /// Marks the scan of the target within `addresses`.
    pub(crate) scan_token: Uuid,
}

/// One INSERT OVERWRITE: a table pinned at the snapshot the statement reads, the rows to put in, and those to take out.
#[derive(Debug, Clone)]
pub struct OverwriteNode {
    pub(crate) table: Table,
    pub(crate) scope: OverwriteScope,
    /// New rows, with the table's columns.
    pub(crate) rows: Arc<LogicalPlan>,
    schema: DFSchemaRef,
}

impl OverwriteNode {
    /// A statement that puts `rows` in the place of those in `scope`.
    pub fn try_new(table: Table, scope: OverwriteScope, rows: LogicalPlan) -> Result<Self> {
        let count = Schema::new(vec![Field::new("count", DataType::UInt64, false)]);
        let schema = Arc::new(DFSchema::try_from(count)?);
        Ok(Self { table, scope, rows: Arc::new(rows), schema })
    }

    fn matching(&self) -> Option<&Matching> {
        match &self.scope {
            OverwriteScope::Matching(matching) => Some(matching),
            OverwriteScope::Table | OverwriteScope::Partitions => None,
        }
    }

    /// All that tells one statement from another, but the plans below it.
    fn identity(&self) -> (String, Option<i64>, u8, Option<(&Expr, Uuid)>) {
        let kind = match &self.scope {
            OverwriteScope::Table => 0,
            OverwriteScope::Partitions => 1,
            OverwriteScope::Matching(_) => 2,
        };
        let matching = self.matching().map(|matching| (&matching.condition, matching.scan_token));
        (self.table.metadata_location.clone(), self.table.metadata.current_snapshot_id, kind, matching)
    }
}

impl PartialEq for OverwriteNode {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
            && self.rows == other.rows
            && self.matching().map(|m| &m.addresses) == other.matching().map(|m| &m.addresses)
    }
}

impl Eq for OverwriteNode {}

impl PartialOrd for OverwriteNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.identity().partial_cmp(&other.identity()) {
            Some(Ordering::Equal) => self.rows.partial_cmp(&other.rows),
            unequal => unequal,
        }
    }
}

impl Hash for OverwriteNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
        self.rows.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for OverwriteNode {
    fn name(&self) -> &str {
        "Overwrite"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        let addresses = self.matching().map(|matching| matching.addresses.as_ref());
        std::iter::once(self.rows.as_ref()).chain(addresses).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// None: the condition must not be rewritten apart from the filter in the input.
    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            OverwriteScope::Table => write!(f, "Overwrite: {}", self.table.ident),
            OverwriteScope::Partitions => write!(f, "Overwrite: partitions of {}", self.table.ident),
            OverwriteScope::Matching(matching) => {
                write!(f, "Overwrite: {} where {}", self.table.ident, matching.condition)
            }
        }
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let (true, Some(rows)) = (exprs.is_empty(), inputs.next()) else {
            return plan_err!("Overwrite takes rows and no expressions");
        };
        let scope = match (&self.scope, inputs.next(), inputs.next()) {
            (OverwriteScope::Matching(matching), Some(addresses), None) => {
                let addresses = Arc::new(addresses);
                OverwriteScope::Matching(Box::new(Matching { addresses, ..Matching::clone(matching) }))
            }
            (scope @ (OverwriteScope::Table | OverwriteScope::Partitions), None, None) => scope.clone(),
            _ => return plan_err!("Overwrite was given the inputs of another statement"),
        };
        Ok(Self { scope, rows: Arc::new(rows), ..self.clone() })
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all = |plan: &LogicalPlan| (0..plan.schema().fields().len()).collect();
        Some(self.inputs().into_iter().map(all).collect())
    }
}
