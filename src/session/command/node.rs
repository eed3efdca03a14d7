//! The logical node of a command.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::BoundCommand;

/// A command in a plan. Without inputs; its output is the command's.
#[derive(Debug, Clone)]
pub(crate) struct CommandNode {
    command: Arc<BoundCommand>,
    /// The statement as EXPLAIN prints it.
    text: String,
    schema: DFSchemaRef,
}

impl CommandNode {
    /// The plan that runs `command`; `text` is how EXPLAIN prints it.
    pub(crate) fn plan(command: BoundCommand, text: impl Into<String>) -> Result<LogicalPlan> {
        let schema = Arc::new(DFSchema::try_from(command.command.schema().as_ref().clone())?);
        let node = Arc::new(Self { command: Arc::new(command), text: text.into(), schema });
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    pub(super) fn command(&self) -> &Arc<BoundCommand> {
        &self.command
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl UserDefinedLogicalNodeCore for CommandNode {
    fn name(&self) -> &str {
        "Command"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        if !exprs.is_empty() || !inputs.is_empty() {
            return internal_err!("a command has neither expressions nor inputs");
        }
        Ok(self.clone())
    }
}

// One command is only ever equal to itself: running two of the same text is not running one.

impl PartialEq for CommandNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.command, &other.command)
    }
}

impl Eq for CommandNode {}

impl PartialOrd for CommandNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for CommandNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.command).hash(state);
    }
}
