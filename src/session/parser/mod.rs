//! Recursive-descent parser of the statements that DataFusion's parser does not know: the DDL of Iceberg tables.
//!
//! It works on the tokens of one statement. Names follow DataFusion's rule (unquoted is lower-cased unless
//! `sql_parser.enable_ident_normalization` is off). Invariant: every error says what was expected, what was found, and
//! at which line and column.

mod alter_table;
mod create_table;
mod data_type;
mod insert;
mod schema;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

pub(crate) use alter_table::{
    AddedColumn, AlterTable, ColumnChange, ColumnPosition, SortTerm, TableChange, parse_alter_table,
};
pub(crate) use create_table::{ColumnDefinition, CreateTable, PartitionTerm, parse_create_table};
pub(crate) use insert::{Insert, parse_insert};
pub(crate) use schema::{parse_create_namespace, parse_drop_namespace, parse_drop_table, parse_show_create_table};

use crate::{Error, Result};

/// A possibly qualified name, outermost part first; parts are as they are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Vec<String>);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(&quote_name(part))?;
        }
        Ok(())
    }
}

/// `name` as SQL that reads back as it is: bare when lower case and plain, else in double quotes.
pub(crate) fn quote_name(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && !is_reserved(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether a bare `name` would be taken for a keyword by the parsers it may meet.
fn is_reserved(name: &str) -> bool {
    use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
    ALL_KEYWORDS.binary_search(&name.to_ascii_uppercase().as_str()).is_ok()
}

/// Cursor over the tokens of one statement.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
    /// Whether half of the `>>` at `at` is consumed (nested type arguments).
    half_shift: bool,
    normalize: bool,
    depth: usize,
}

/// Deepest nesting of types that is parsed; a guard of the stack.
const MAX_DEPTH: usize = 64;

impl<'a> Cursor<'a> {
    /// A cursor at the first token; `normalize` is whether unquoted names are lower-cased.
    pub(crate) fn new(tokens: &'a [TokenWithSpan], normalize: bool) -> Self {
        Self { tokens, at: 0, half_shift: false, normalize, depth: 0 }
    }

    /// The next token, or `None` at the end.
    pub(crate) fn peek(&self) -> Option<&'a TokenWithSpan> {
        self.tokens.get(self.at)
    }

    fn peek_at(&self, ahead: usize) -> Option<&'a TokenWithSpan> {
        self.tokens.get(self.at + ahead)
    }

    /// The tokens from here to the end.
    pub(crate) fn rest(&self) -> &'a [TokenWithSpan] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self) {
        self.at += 1;
        self.half_shift = false;
    }

    /// Whether the next tokens are these words.
    pub(crate) fn looking_at(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, word)| self.peek_at(i).is_some_and(|t| is_word(t, word)))
    }

    /// Consumes these words if they are next.
    pub(crate) fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = self.looking_at(words);
        if found {
            self.at += words.len();
        }
        found
    }

    /// Consumes one word if it is next.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        self.eat_words(&[word])
    }

    /// Consumes these words or fails.
    pub(crate) fn expect_words(&mut self, words: &[&str]) -> Result<()> {
        for word in words {
            if !self.eat_word(word) {
                return Err(self.expected(word));
            }
        }
        Ok(())
    }

    fn at_token(&self, token: &Token) -> bool {
        self.peek().is_some_and(|t| t.token == *token)
    }

    /// Consumes the token if it is next.
    pub(crate) fn eat(&mut self, token: &Token) -> bool {
        let found = self.at_token(token);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes the token or fails.
    pub(crate) fn expect(&mut self, token: &Token, what: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Consumes a `>`, which may be half of a `>>`.
    fn eat_greater(&mut self) -> bool {
        if self.eat(&Token::Gt) {
            return true;
        }
        if self.at_token(&Token::ShiftRight) {
            if self.half_shift {
                self.advance();
            } else {
                self.half_shift = true;
            }
            return true;
        }
        false
    }

    /// Fails unless all tokens are consumed.
    pub(crate) fn expect_end(&self, expected: &str) -> Result<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// The error "expected …, found … at line …, column …" for the next token.
    pub(crate) fn expected(&self, what: &str) -> Error {
        match self.peek() {
            Some(t) => Error::invalid_input(format!("expected {what}, found {}{}", t.token, place(t.span.start))),
            None => {
                Error::invalid_input(format!("expected {what}, found the end of the statement{}", place(self.end())))
            }
        }
    }

    /// An error about the token before the cursor.
    pub(crate) fn error_at(&self, at: Location, message: impl std::fmt::Display) -> Error {
        Error::invalid_input(format!("{message}{}", place(at)))
    }

    /// Position of the next token, or just behind the last one.
    pub(crate) fn location(&self) -> Location {
        self.peek().map_or(self.end(), |t| t.span.start)
    }

    fn end(&self) -> Location {
        self.tokens.last().map_or(Span::empty().end, |t| t.span.end)
    }

    fn word_text(&self, word: &Word) -> String {
        if word.quote_style.is_none() && self.normalize { word.value.to_lowercase() } else { word.value.clone() }
    }

    /// A name part: any word, quoted or not, that is not empty.
    pub(crate) fn ident(&mut self, what: &str) -> Result<String> {
        match self.peek().map(|t| &t.token) {
            Some(Token::Word(w)) if !w.value.is_empty() => {
                let text = self.word_text(w);
                self.advance();
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A dotted name.
    pub(crate) fn name(&mut self, what: &str) -> Result<Name> {
        let mut parts = vec![self.ident(what)?];
        while self.eat(&Token::Period) {
            parts.push(self.ident(&format!("the next part of {what}"))?);
        }
        Ok(Name(parts))
    }

    /// A string literal: quoted, dollar-quoted or with escapes.
    pub(crate) fn string(&mut self, what: &str) -> Result<String> {
        let text = match self.peek().map(|t| &t.token) {
            Some(Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s)) => s.clone(),
            Some(Token::DollarQuotedString(s)) => s.value.clone(),
            _ => return Err(self.expected(what)),
        };
        self.advance();
        Ok(text)
    }

    /// An unsigned integer of at most `max`.
    fn integer(&mut self, what: &str, max: u64) -> Result<u64> {
        let value = match self.peek().map(|t| &t.token) {
            Some(Token::Number(digits, _)) => digits.parse::<u64>().ok().filter(|v| *v <= max),
            _ => None,
        };
        let Some(value) = value else { return Err(self.expected(&format!("{what} (0 to {max})"))) };
        self.advance();
        Ok(value)
    }

    /// Runs `parse` one nesting level down.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error_at(self.location(), format!("types nest deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// `IF NOT EXISTS`, if next.
    pub(crate) fn eat_if_not_exists(&mut self) -> Result<bool> {
        if !self.eat_word("IF") {
            return Ok(false);
        }
        self.expect_words(&["NOT", "EXISTS"])?;
        Ok(true)
    }

    /// `IF EXISTS`, if next.
    pub(crate) fn eat_if_exists(&mut self) -> Result<bool> {
        if !self.eat_word("IF") {
            return Ok(false);
        }
        self.expect_words(&["EXISTS"])?;
        Ok(true)
    }

    /// Whether the next token starts a query: `SELECT`, `WITH`, `VALUES`, `TABLE`, `FROM` or an opening parenthesis.
    fn at_query(&self) -> bool {
        use Keyword::{FROM, SELECT, TABLE, VALUES, WITH};
        self.at_token(&Token::LParen)
            || self.peek().is_some_and(|t| [SELECT, WITH, VALUES, TABLE, FROM].iter().any(|k| is_keyword(t, *k)))
    }
}

fn place(at: Location) -> String {
    format!(" at line {}, column {}", at.line, at.column)
}

/// Whether `token` is the unquoted word `word`, in any case.
pub(crate) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// Whether `token` is the unquoted keyword.
pub(crate) fn is_keyword(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && w.keyword == keyword)
}

#[cfg(test)]
mod tests;
