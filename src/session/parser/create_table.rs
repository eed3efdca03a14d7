//! `CREATE TABLE`.
//!
//! ```text
//! CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name
//!   [ ( column type [NOT NULL | NULL] [DEFAULT constant] [COMMENT 'text'], … ) ] [USING iceberg]
//!   [PARTITIONED BY ( transform [AS name], … )] [ORDERED BY order, …] [LOCATION 'url'] [COMMENT 'text']
//!   [TBLPROPERTIES ( 'key' = 'value', … )]
//!   [[AS] query]
//! transform := column | identity(column) | year(column) | month(column) | day(column) | hour(column)
//!            | bucket(n, column) | truncate(n, column) | void(column)
//! ```
//! The clauses between columns and query may stand in any order, each at most once. Plural and long spellings of
//! transforms (`years`, `date`, `date_hour`) and Trino's argument order are accepted.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Cursor, Name, SortTerm};
use crate::Result;
use crate::spec::{Transform, Type};

/// A parsed CREATE TABLE.
#[derive(Debug, Clone)]
pub(crate) struct CreateTable {
    pub(crate) name: Name,
    pub(crate) if_not_exists: bool,
    pub(crate) or_replace: bool,
    /// Empty only with a query.
    pub(crate) columns: Vec<ColumnDefinition>,
    pub(crate) partitioning: Vec<PartitionTerm>,
    pub(crate) order: Vec<SortTerm>,
    pub(crate) location: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) properties: BTreeMap<String, String>,
    /// The tokens of the query behind AS.
    pub(crate) query: Option<Vec<TokenWithSpan>>,
}

/// A column of CREATE TABLE; ids in its type are 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnDefinition {
    pub(crate) name: String,
    pub(crate) column_type: Type,
    pub(crate) required: bool,
    pub(crate) comment: Option<String>,
    /// The constant of DEFAULT.
    pub(crate) default: Option<Vec<TokenWithSpan>>,
}

/// One entry of PARTITIONED BY.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionTerm {
    pub(crate) transform: Transform,
    /// Path of the source column.
    pub(crate) column: Name,
    /// The partition field's name, if given.
    pub(crate) name: Option<String>,
}

/// Parses from the word CREATE.
pub(crate) fn parse_create_table(cursor: &mut Cursor<'_>) -> Result<CreateTable> {
    cursor.expect_words(&["CREATE"])?;
    let or_replace = cursor.eat_words(&["OR", "REPLACE"]);
    cursor.expect_words(&["TABLE"])?;
    let mut table = CreateTable {
        if_not_exists: cursor.eat_if_not_exists()?,
        or_replace,
        name: cursor.name("a table name")?,
        columns: Vec::new(),
        partitioning: Vec::new(),
        order: Vec::new(),
        location: None,
        comment: None,
        properties: BTreeMap::new(),
        query: None,
    };
    if cursor.at_token(&Token::LParen) {
        table.columns = cursor.columns()?;
    }
    parse_clauses(cursor, &mut table)?;
    if table.columns.is_empty() && table.query.is_none() {
        return Err(cursor.expected("a column list or AS query"));
    }
    Ok(table)
}

fn parse_clauses(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    loop {
        let start = cursor.location();
        let clause = if cursor.eat_word("USING") {
            if !cursor.eat_word("iceberg") {
                return Err(cursor.expected("iceberg"));
            }
            "USING"
        } else if cursor.eat_words(&["PARTITIONED", "BY"]) || cursor.eat_words(&["PARTITION", "BY"]) {
            table.partitioning = cursor.partitioning()?;
            "PARTITIONED BY"
        } else if cursor.eat_words(&["ORDERED", "BY"]) || cursor.eat_words(&["SORTED", "BY"]) {
            table.order = cursor.sort_terms()?;
            "ORDERED BY"
        } else if cursor.eat_word("LOCATION") {
            table.location = Some(cursor.string("a location in quotes")?);
            "LOCATION"
        } else if cursor.eat_word("COMMENT") {
            cursor.eat(&Token::Eq);
            table.comment = Some(cursor.string("a comment in quotes")?);
            "COMMENT"
        } else if cursor.eat_word("TBLPROPERTIES") {
            table.properties = cursor.properties()?;
            "TBLPROPERTIES"
        } else if cursor.eat_word("AS") || (!table.columns.is_empty() || !seen.is_empty()) && cursor.at_query() {
            if !cursor.at_query() {
                return Err(cursor.expected("a query after AS"));
            }
            table.query = Some(cursor.rest().to_vec());
            return Ok(());
        } else {
            return cursor.expect_end(
                "PARTITIONED BY, ORDERED BY, LOCATION, COMMENT, TBLPROPERTIES, AS query or the end of the statement",
            );
        };
        if seen.contains(&clause) {
            return Err(cursor.error_at(start, format!("{clause} is given twice,")));
        }
        seen.push(clause);
    }
}

impl Cursor<'_> {
    /// `( column definition, … )`.
    fn columns(&mut self) -> Result<Vec<ColumnDefinition>> {
        self.expect(&Token::LParen, "(")?;
        let mut columns: Vec<ColumnDefinition> = Vec::new();
        loop {
            let start = self.location();
            for constraint in ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT"] {
                if self.looking_at(&[constraint]) && self.peek_at(1).is_some_and(|t| constraint_follows(&t.token)) {
                    return Err(
                        self.error_at(start, format!("{constraint}: Iceberg tables have no constraints but NOT NULL"))
                    );
                }
            }
            let column = self.column()?;
            if columns.iter().any(|c| c.name == column.name) {
                return Err(self.error_at(start, format!("column {} is there twice,", column.name)));
            }
            columns.push(column);
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, "a comma or )")?;
        Ok(columns)
    }

    fn column(&mut self) -> Result<ColumnDefinition> {
        let name = self.ident("a column name")?;
        let mut column =
            ColumnDefinition { name, column_type: self.data_type()?, required: false, comment: None, default: None };
        loop {
            if self.looking_at(&["NOT"]) || self.looking_at(&["NULL"]) {
                column.required = self.not_null()?;
            } else if self.eat_word("COMMENT") {
                column.comment = Some(self.string("a comment in quotes")?);
            } else if self.eat_word("DEFAULT") {
                column.default = Some(self.constant_tokens()?);
            } else {
                return match self.peek().map(|t| &t.token) {
                    Some(Token::Comma | Token::RParen) => Ok(column),
                    _ => Err(self.expected("NOT NULL, DEFAULT, COMMENT, a comma or )")),
                };
            }
        }
    }

    /// `( term [AS name], … )`.
    fn partitioning(&mut self) -> Result<Vec<PartitionTerm>> {
        self.expect(&Token::LParen, "( after PARTITIONED BY")?;
        let mut terms = Vec::new();
        if self.eat(&Token::RParen) {
            return Ok(terms);
        }
        loop {
            let mut term = self.partition_term()?;
            if self.eat_word("AS") {
                term.name = Some(self.ident("a partition field name")?);
            }
            terms.push(term);
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, "a comma or ) in PARTITIONED BY")?;
        Ok(terms)
    }

    pub(super) fn partition_term(&mut self) -> Result<PartitionTerm> {
        let start = self.location();
        if self.peek_at(1).is_none_or(|t| t.token != Token::LParen) {
            let column = self.name("a column or a transform")?;
            return Ok(PartitionTerm { transform: Transform::Identity, column, name: None });
        }
        let function = self.ident("a transform")?.to_lowercase();
        self.expect(&Token::LParen, "(")?;
        let mut number = None;
        let mut column = None;
        loop {
            if matches!(self.peek().map(|t| &t.token), Some(Token::Number(..))) {
                number = Some(self.integer("a number", i32::MAX as u64)?);
            } else {
                column = Some(self.name(&format!("a column of {function}"))?);
            }
            if (number.is_some() && column.is_some()) || !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, &format!(") after the arguments of {function}"))?;
        let transform = match (function.as_str(), number.and_then(|n| u32::try_from(n).ok())) {
            ("identity", None) => Transform::Identity,
            ("year" | "years", None) => Transform::Year,
            ("month" | "months", None) => Transform::Month,
            ("day" | "days" | "date", None) => Transform::Day,
            ("hour" | "hours" | "date_hour", None) => Transform::Hour,
            ("void", None) => Transform::Void,
            ("bucket" | "buckets", Some(n @ 1..)) => Transform::Bucket(n),
            ("truncate" | "trunc", Some(n @ 1..)) => Transform::Truncate(n),
            ("bucket" | "buckets" | "truncate" | "trunc", _) => {
                return Err(
                    self.error_at(start, format!("{function} needs a number of at least 1: {function}(16, column),"))
                );
            }
            ("identity" | "year" | "years" | "month" | "months" | "day" | "days" | "date" | "hour" | "hours", _) => {
                return Err(self.error_at(start, format!("{function} takes a column and no number,")));
            }
            _ => {
                return Err(self.error_at(
                    start,
                    format!(
                        "{function} is no partition transform (identity, year, month, day, hour, bucket, truncate, void)"
                    ),
                ));
            }
        };
        let Some(column) = column else {
            return Err(self.error_at(start, format!("{function} needs a column,")));
        };
        Ok(PartitionTerm { transform, column, name: None })
    }

    /// `( key = value, … )`; keys are strings or dotted words, values strings, numbers, TRUE or FALSE.
    pub(super) fn properties(&mut self) -> Result<BTreeMap<String, String>> {
        self.expect(&Token::LParen, "( before the properties")?;
        let mut properties = BTreeMap::new();
        if self.eat(&Token::RParen) {
            return Ok(properties);
        }
        loop {
            let start = self.location();
            let key = self.property_key()?;
            self.eat(&Token::Eq);
            let value = self.property_value()?;
            if properties.insert(key.clone(), value).is_some() {
                return Err(self.error_at(start, format!("property {key} is given twice,")));
            }
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, "a comma or ) after a property")?;
        Ok(properties)
    }

    pub(super) fn property_key(&mut self) -> Result<String> {
        if let Ok(key) = self.string("a property name") {
            return Ok(key);
        }
        let mut key = String::new();
        loop {
            match self.peek().map(|t| &t.token) {
                Some(Token::Word(w)) => key.push_str(&w.value),
                _ => return Err(self.expected("a property name")),
            }
            self.advance();
            let separator = match self.peek().map(|t| &t.token) {
                Some(Token::Period) => '.',
                Some(Token::Minus) => '-',
                _ => return Ok(key),
            };
            key.push(separator);
            self.advance();
        }
    }

    fn property_value(&mut self) -> Result<String> {
        if let Ok(value) = self.string("a property value") {
            return Ok(value);
        }
        let sign = if self.eat(&Token::Minus) { "-" } else { "" };
        let value = match self.peek().map(|t| &t.token) {
            Some(Token::Number(digits, _)) => format!("{sign}{digits}"),
            Some(Token::Word(w)) if sign.is_empty() && ["true", "false"].contains(&w.value.to_lowercase().as_str()) => {
                w.value.to_lowercase()
            }
            _ => return Err(self.expected("a property value: a string, number, TRUE or FALSE")),
        };
        self.advance();
        Ok(value)
    }
}

/// Whether a token behind PRIMARY, UNIQUE, … makes it a table constraint and not a column of that name.
fn constraint_follows(token: &Token) -> bool {
    match token {
        Token::LParen => true,
        Token::Word(w) => w.value.eq_ignore_ascii_case("key") || w.value.eq_ignore_ascii_case("primary"),
        _ => false,
    }
}
