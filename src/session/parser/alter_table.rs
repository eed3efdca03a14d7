//! `ALTER TABLE`, in the syntax of Iceberg's extensions of Spark.
//!
//! ```text
//! ALTER TABLE name alteration
//! alteration := ADD COLUMN[S] [(] column type [NOT NULL] [DEFAULT constant] [COMMENT 'text'] [FIRST | AFTER column], … [)]
//!   | DROP COLUMN[S] [IF EXISTS] [(] column, … [)] | RENAME COLUMN column TO name
//!   | { ALTER | CHANGE } [COLUMN] column { [SET DATA] TYPE type | COMMENT 'text' | FIRST | AFTER column
//!       | { SET | DROP } NOT NULL | SET DEFAULT constant | DROP DEFAULT }
//!   | SET TBLPROPERTIES ( … ) | UNSET TBLPROPERTIES [IF EXISTS] ( 'key', … )
//!   | ADD PARTITION FIELD transform [AS name] | DROP PARTITION FIELD { transform | name }
//!   | REPLACE PARTITION FIELD { transform | name } WITH transform [AS name]
//!   | WRITE { [DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY order, …] | UNORDERED }
//!   | { SET | DROP } IDENTIFIER FIELDS column, … | SET LOCATION 'url' | RENAME TO name
//! ```

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Cursor, Name, PartitionTerm};
use crate::Result;
use crate::spec::properties::DistributionMode;
use crate::spec::{NullOrder, SortDirection, Type};

/// A parsed ALTER TABLE.
#[derive(Debug, Clone)]
pub(crate) struct AlterTable {
    pub(crate) name: Name,
    pub(crate) change: TableChange,
}

/// What ALTER TABLE changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableChange {
    AddColumns(Vec<AddedColumn>),
    DropColumns { columns: Vec<Name>, if_exists: bool },
    RenameColumn { column: Name, to: String },
    AlterColumn { column: Name, change: ColumnChange },
    SetProperties(BTreeMap<String, String>),
    UnsetProperties { names: Vec<String>, if_exists: bool },
    AddPartitionField(PartitionTerm),
    DropPartitionField(PartitionTerm),
    ReplacePartitionField { from: PartitionTerm, to: PartitionTerm },
    Write { order: Vec<SortTerm>, distribution: Option<DistributionMode> },
    SetIdentifier(Vec<Name>),
    DropIdentifier(Vec<Name>),
    SetLocation(String),
    RenameTo(Name),
}

/// A column of ADD COLUMN; ids in its type are 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddedColumn {
    /// Its path: all but the last part name the struct it goes into.
    pub(crate) path: Name,
    pub(crate) column_type: Type,
    pub(crate) required: bool,
    pub(crate) comment: Option<String>,
    pub(crate) default: Option<Vec<TokenWithSpan>>,
    pub(crate) position: Option<ColumnPosition>,
}

/// A place among the fields of the same struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnPosition {
    First,
    /// Behind the field of this name.
    After(String),
}

/// What ALTER COLUMN changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnChange {
    Type(Type),
    Comment(String),
    Move(ColumnPosition),
    SetRequired,
    SetOptional,
    SetDefault(Vec<TokenWithSpan>),
    DropDefault,
}

/// One key of an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortTerm {
    pub(crate) term: PartitionTerm,
    pub(crate) direction: SortDirection,
    pub(crate) nulls: NullOrder,
}

/// Parses from the word ALTER.
pub(crate) fn parse_alter_table(cursor: &mut Cursor<'_>) -> Result<AlterTable> {
    cursor.expect_words(&["ALTER", "TABLE"])?;
    let name = cursor.name("a table name")?;
    let change = cursor.table_change()?;
    cursor.expect_end("the end of the statement")?;
    Ok(AlterTable { name, change })
}

impl Cursor<'_> {
    fn table_change(&mut self) -> Result<TableChange> {
        if self.eat_words(&["ADD", "PARTITION", "FIELD"]) {
            return Ok(TableChange::AddPartitionField(self.named_term()?));
        }
        if self.eat_words(&["DROP", "PARTITION", "FIELD"]) {
            return Ok(TableChange::DropPartitionField(self.partition_term()?));
        }
        if self.eat_words(&["REPLACE", "PARTITION", "FIELD"]) {
            let from = self.partition_term()?;
            self.expect_words(&["WITH"])?;
            return Ok(TableChange::ReplacePartitionField { from, to: self.named_term()? });
        }
        if self.eat_words(&["ADD", "COLUMN"]) || self.eat_words(&["ADD", "COLUMNS"]) {
            return self.added_columns().map(TableChange::AddColumns);
        }
        if self.eat_words(&["DROP", "IDENTIFIER", "FIELDS"]) {
            return self.names().map(TableChange::DropIdentifier);
        }
        if self.eat_words(&["SET", "IDENTIFIER", "FIELDS"]) {
            return self.names().map(TableChange::SetIdentifier);
        }
        if self.eat_words(&["DROP", "COLUMN"]) || self.eat_words(&["DROP", "COLUMNS"]) {
            let if_exists = self.eat_if_exists()?;
            let open = self.eat(&Token::LParen);
            let columns = self.names()?;
            if open {
                self.expect(&Token::RParen, "a comma or )")?;
            }
            return Ok(TableChange::DropColumns { columns, if_exists });
        }
        if self.eat_words(&["RENAME", "COLUMN"]) {
            let column = self.name("a column")?;
            self.expect_words(&["TO"])?;
            return Ok(TableChange::RenameColumn { column, to: self.ident("the new name")? });
        }
        if self.eat_words(&["RENAME", "TO"]) {
            return self.name("the new name").map(TableChange::RenameTo);
        }
        if self.eat_words(&["SET", "TBLPROPERTIES"]) {
            return self.properties().map(TableChange::SetProperties);
        }
        if self.eat_words(&["UNSET", "TBLPROPERTIES"]) {
            let if_exists = self.eat_if_exists()?;
            return Ok(TableChange::UnsetProperties { names: self.property_names()?, if_exists });
        }
        if self.eat_words(&["SET", "LOCATION"]) {
            return self.string("a location in quotes").map(TableChange::SetLocation);
        }
        if self.eat_word("WRITE") {
            return self.write_order();
        }
        if self.eat_word("ALTER") || self.eat_word("CHANGE") {
            self.eat_word("COLUMN");
            let column = self.name("a column")?;
            return Ok(TableChange::AlterColumn { column, change: self.column_change()? });
        }
        Err(self.expected(
            "ADD, DROP, RENAME, ALTER COLUMN, REPLACE PARTITION FIELD, WRITE, SET or UNSET TBLPROPERTIES, SET LOCATION \
             or SET IDENTIFIER FIELDS",
        ))
    }

    fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name("a column")?];
        while self.eat(&Token::Comma) {
            names.push(self.name("a column")?);
        }
        Ok(names)
    }

    fn named_term(&mut self) -> Result<PartitionTerm> {
        let mut term = self.partition_term()?;
        if self.eat_word("AS") {
            term.name = Some(self.ident("a partition field name")?);
        }
        Ok(term)
    }

    fn added_columns(&mut self) -> Result<Vec<AddedColumn>> {
        let open = self.eat(&Token::LParen);
        let mut columns = vec![self.added_column()?];
        while self.eat(&Token::Comma) {
            columns.push(self.added_column()?);
        }
        if open {
            self.expect(&Token::RParen, "a comma or )")?;
        }
        Ok(columns)
    }

    fn added_column(&mut self) -> Result<AddedColumn> {
        let path = self.name("a column name")?;
        let column_type = self.data_type()?;
        let mut column =
            AddedColumn { path, column_type, required: false, comment: None, default: None, position: None };
        loop {
            if self.looking_at(&["NOT"]) || self.looking_at(&["NULL"]) {
                column.required = self.not_null()?;
            } else if self.eat_word("COMMENT") {
                column.comment = Some(self.string("a comment in quotes")?);
            } else if self.eat_word("DEFAULT") {
                column.default = Some(self.constant_tokens()?);
            } else if let Some(position) = self.column_position()? {
                column.position = Some(position);
            } else {
                return Ok(column);
            }
        }
    }

    fn column_position(&mut self) -> Result<Option<ColumnPosition>> {
        if self.eat_word("FIRST") {
            return Ok(Some(ColumnPosition::First));
        }
        if self.eat_word("AFTER") {
            return Ok(Some(ColumnPosition::After(self.ident("a column")?)));
        }
        Ok(None)
    }

    fn column_change(&mut self) -> Result<ColumnChange> {
        if self.eat_words(&["SET", "NOT", "NULL"]) {
            return Ok(ColumnChange::SetRequired);
        }
        if self.eat_words(&["DROP", "NOT", "NULL"]) {
            return Ok(ColumnChange::SetOptional);
        }
        if self.eat_words(&["SET", "DEFAULT"]) {
            return self.constant_tokens().map(ColumnChange::SetDefault);
        }
        if self.eat_words(&["DROP", "DEFAULT"]) {
            return Ok(ColumnChange::DropDefault);
        }
        if self.eat_word("TYPE") || self.eat_words(&["SET", "DATA", "TYPE"]) {
            return self.data_type().map(ColumnChange::Type);
        }
        if self.eat_word("COMMENT") {
            return self.string("a comment in quotes").map(ColumnChange::Comment);
        }
        match self.column_position()? {
            Some(position) => Ok(ColumnChange::Move(position)),
            None => Err(self.expected(
                "TYPE, COMMENT, FIRST, AFTER, SET NOT NULL, DROP NOT NULL, SET DEFAULT or DROP DEFAULT after the column",
            )),
        }
    }

    /// A constant: what stands up to a comma, a closing parenthesis, or a word that begins another clause of a column.
    pub(super) fn constant_tokens(&mut self) -> Result<Vec<TokenWithSpan>> {
        let (mut depth, mut tokens) = (0usize, Vec::new());
        while let Some(token) = self.peek() {
            let clause = ["NOT", "COMMENT", "FIRST", "AFTER"].iter().any(|word| self.looking_at(&[word]));
            match token.token {
                Token::RParen | Token::Comma if depth == 0 => break,
                _ if depth == 0 && clause && !tokens.is_empty() => break,
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.push(token.clone());
            self.advance();
        }
        if tokens.is_empty() { Err(self.expected("a constant")) } else { Ok(tokens) }
    }

    /// `( 'key', … )`.
    fn property_names(&mut self) -> Result<Vec<String>> {
        self.expect(&Token::LParen, "( before the property names")?;
        let mut names = vec![self.property_key()?];
        while self.eat(&Token::Comma) {
            names.push(self.property_key()?);
        }
        self.expect(&Token::RParen, "a comma or ) after a property name")?;
        Ok(names)
    }

    fn write_order(&mut self) -> Result<TableChange> {
        if self.eat_word("UNORDERED") {
            return Ok(TableChange::Write { order: Vec::new(), distribution: Some(DistributionMode::None) });
        }
        let by_partition = self.eat_words(&["DISTRIBUTED", "BY", "PARTITION"]);
        let locally = self.eat_word("LOCALLY");
        let ordered = self.eat_words(&["ORDERED", "BY"]);
        if !ordered && (locally || !by_partition) {
            return Err(self.expected("ORDERED BY"));
        }
        let distribution = match (by_partition, locally) {
            (true, _) => Some(DistributionMode::Hash),
            (false, true) => None,
            (false, false) => Some(DistributionMode::Range),
        };
        let order = if ordered { self.sort_terms()? } else { Vec::new() };
        Ok(TableChange::Write { order, distribution })
    }

    /// `term [ASC | DESC] [NULLS { FIRST | LAST }], …`, in parentheses or not.
    pub(super) fn sort_terms(&mut self) -> Result<Vec<SortTerm>> {
        let open = self.eat(&Token::LParen);
        let mut terms = vec![self.sort_term()?];
        while self.eat(&Token::Comma) {
            terms.push(self.sort_term()?);
        }
        if open {
            self.expect(&Token::RParen, "a comma or ) in the order")?;
        }
        Ok(terms)
    }

    fn sort_term(&mut self) -> Result<SortTerm> {
        let term = self.partition_term()?;
        let descending = self.eat_word("DESC");
        if !descending {
            self.eat_word("ASC");
        }
        let nulls = if self.eat_word("NULLS") {
            if self.eat_word("FIRST") {
                NullOrder::First
            } else if self.eat_word("LAST") {
                NullOrder::Last
            } else {
                return Err(self.expected("FIRST or LAST"));
            }
        } else if descending {
            NullOrder::Last
        } else {
            NullOrder::First
        };
        let direction = if descending { SortDirection::Descending } else { SortDirection::Ascending };
        Ok(SortTerm { term, direction, nulls })
    }
}
