//! Statements that take rows away and add others: UPDATE and MERGE.
//!
//! Their input has one row for each row that something happens to, in this order of columns: address of the old row
//! ([`FILE_COLUMN`](crate::provider::FILE_COLUMN), [`POSITION_COLUMN`](crate::provider::POSITION_COLUMN); null for a new row),
//! [`OPERATION_COLUMN`], the old row's id (Int64, null where it has none), and the table's columns with the new values.

use std::fmt;

use datafusion::logical_expr::Expr;

/// The code of an [`Operation`], Int8, never null.
pub const OPERATION_COLUMN: &str = "__calve_operation";

/// What happens to one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing; the row is there because a second match of it would be an error.
    Keep,
    /// The old row goes.
    Delete,
    /// The old row goes and a new one comes in its place, with its id.
    Update,
    /// A new row comes.
    Insert,
}

impl Operation {
    /// The code in [`OPERATION_COLUMN`].
    pub const fn code(self) -> i8 {
        match self {
            Self::Keep => 0,
            Self::Delete => 1,
            Self::Update => 2,
            Self::Insert => 3,
        }
    }

    /// The operation of a code; `None` for no code.
    pub fn of(code: i8) -> Option<Self> {
        [Self::Keep, Self::Delete, Self::Update, Self::Insert].into_iter().find(|operation| operation.code() == code)
    }

    /// Whether the old row goes.
    pub fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Update)
    }

    /// Whether a new row comes.
    pub fn adds(self) -> bool {
        matches!(self, Self::Update | Self::Insert)
    }
}

/// Which statement changes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub enum ChangeKind {
    /// UPDATE.
    Update,
    /// MERGE.
    Merge,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Update => "update",
            Self::Merge => "merge into",
        })
    }
}

/// A statement that changes rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct Change {
    /// The statement.
    pub kind: ChangeKind,
    /// What every row that the statement may touch satisfies, `None` when nothing is known; files are chosen by it.
    pub condition: Option<Box<Expr>>,
    /// Whether it is an error that a row of the target is there twice: the statement does not say which of the two to take.
    pub one_match: bool,
    /// Whether old rows may live on in new ones.
    pub updates: bool,
    /// Whether rows come because the target has none like them.
    pub inserts: bool,
}
