//! `INSERT` with clauses that DataFusion's parser does not know.
//!
//! ```text
//! [WITH …] INSERT { INTO | OVERWRITE [INTO] } [TABLE] name
//!   [PARTITION ( column [= constant], … )] [BY NAME | ( column, … )] [REPLACE WHERE condition] query
//! ```
//! Ours are also `DEFAULT` in `VALUES`, and a query with `VALUES` inside, to which DataFusion gives the types of the table's
//! columns as if they were its rows. Every other INSERT is none of ours.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Cursor, Name, is_keyword, is_word};
use crate::{Error, Result};

/// A parsed INSERT with a clause of ours.
#[derive(Debug, Clone)]
pub(crate) struct Insert {
    pub(crate) overwrite: bool,
    pub(crate) table: Name,
    /// The table's name as written.
    pub(crate) table_tokens: Vec<TokenWithSpan>,
    /// Entries of PARTITION; those without a value only say that the column is one of the partition's.
    pub(crate) partition: Vec<(String, Option<Vec<TokenWithSpan>>)>,
    pub(crate) by_name: bool,
    pub(crate) columns: Option<Vec<String>>,
    /// The condition behind REPLACE WHERE.
    pub(crate) replace_where: Option<Vec<TokenWithSpan>>,
    /// The query, with the WITH that stood before INSERT.
    pub(crate) query: Vec<TokenWithSpan>,
    /// Row and column of each DEFAULT in `VALUES`; the query has NULL there.
    pub(crate) defaults: Vec<(usize, usize)>,
}

/// Parses from the first word; `None` when DataFusion knows all of it. `dialect` is that of the condition.
pub(crate) fn parse_insert(cursor: &mut Cursor<'_>, dialect: &dyn Dialect) -> Result<Option<Insert>> {
    let with = leading_with(cursor);
    if !cursor.eat_word("INSERT") {
        return Ok(None);
    }
    let overwrite = cursor.eat_word("OVERWRITE");
    if !cursor.eat_word("INTO") && !overwrite {
        return Ok(None);
    }
    // `table` may also be the name of a table
    if cursor.looking_at(&["TABLE"]) && cursor.peek_at(1).is_some_and(|t| matches!(t.token, Token::Word(_))) {
        cursor.advance();
    }
    let start = cursor.rest();
    let Ok(table) = cursor.name("a table name") else { return Ok(None) };
    let table_tokens = start.iter().take(start.len() - cursor.rest().len()).cloned().collect();
    let mut insert = Insert {
        overwrite,
        table,
        table_tokens,
        partition: Vec::new(),
        by_name: false,
        columns: None,
        replace_where: None,
        query: Vec::new(),
        defaults: Vec::new(),
    };
    let mut ours = !with.is_empty();
    if cursor.looking_at(&["PARTITION"]) {
        cursor.advance();
        insert.partition = cursor.partition_values()?;
        ours = true;
    }
    if cursor.eat_words(&["BY", "NAME"]) {
        insert.by_name = true;
        ours = true;
    } else if cursor.at_columns() {
        insert.columns = Some(cursor.column_names()?);
    }
    if cursor.eat_words(&["REPLACE", "WHERE"]) {
        insert.replace_where = Some(cursor.condition(dialect)?);
        ours = true;
    }
    let (query, defaults) = without_defaults(cursor.rest());
    let inner_values = query.iter().skip(1).any(|t| is_keyword(t, Keyword::VALUES));
    if !ours && !inner_values && defaults.is_empty() {
        return Ok(None);
    }
    if !cursor.at_query() {
        return Err(cursor.expected("a query"));
    }
    insert.query = with_query(with, query)?;
    insert.defaults = defaults;
    Ok(Some(insert))
}

/// The tokens from WITH up to INSERT, if the statement has both; they are consumed.
fn leading_with(cursor: &mut Cursor<'_>) -> Vec<TokenWithSpan> {
    if !cursor.looking_at(&["WITH"]) {
        return Vec::new();
    }
    let mut depth = 0usize;
    for (at, token) in cursor.rest().iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_keyword(token, Keyword::INSERT) => {
                let with = cursor.rest().iter().take(at).cloned().collect();
                (0..at).for_each(|_| cursor.advance());
                return with;
            }
            _ => {}
        }
    }
    Vec::new()
}

/// The query with the common table expressions of `with` before its own.
fn with_query(mut with: Vec<TokenWithSpan>, query: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    if with.is_empty() {
        return Ok(query);
    }
    let mut query = query.into_iter().peekable();
    if query.peek().is_some_and(|t| is_word(t, "WITH")) {
        query.next();
        let recursive = |t: Option<&TokenWithSpan>| t.is_some_and(|t| is_word(t, "RECURSIVE"));
        if recursive(query.peek()) || recursive(with.get(1)) {
            return Err(Error::unsupported(
                "WITH RECURSIVE before INSERT and WITH behind it: write one WITH, behind the table's name",
            ));
        }
        with.push(TokenWithSpan::wrap(Token::Comma));
    }
    with.extend(query);
    Ok(with)
}

/// Tokens of a query, with NULL for each DEFAULT that is a value of `VALUES`, and the places of those.
fn without_defaults(query: &[TokenWithSpan]) -> (Vec<TokenWithSpan>, Vec<(usize, usize)>) {
    let mut tokens = query.to_vec();
    let mut defaults = Vec::new();
    if !query.first().is_some_and(|t| is_keyword(t, Keyword::VALUES)) {
        return (tokens, defaults);
    }
    let (mut depth, mut row, mut column) = (0usize, 0usize, 0usize);
    for at in 0..query.len() {
        let token = |at: Option<usize>| at.and_then(|at| query.get(at)).map(|t| &t.token);
        match token(Some(at)) {
            Some(Token::LParen) => {
                depth += 1;
                if depth == 1 {
                    column = 0;
                }
            }
            Some(Token::RParen) => {
                depth = depth.saturating_sub(1);
                row += usize::from(depth == 0);
            }
            Some(Token::Comma) if depth == 1 => column += 1,
            Some(Token::Word(word)) if depth == 1 && word.keyword == Keyword::DEFAULT => {
                let before = matches!(token(at.checked_sub(1)), Some(Token::LParen | Token::Comma));
                let after = matches!(token(Some(at + 1)), Some(Token::RParen | Token::Comma));
                if let (true, true, None, Some(token)) = (before, after, word.quote_style, tokens.get_mut(at)) {
                    token.token = Token::make_keyword("NULL");
                    defaults.push((row, column));
                }
            }
            _ => {}
        }
    }
    (tokens, defaults)
}

impl Cursor<'_> {
    /// Whether a column list is next and no query in parentheses.
    fn at_columns(&self) -> bool {
        use Keyword::{FROM, SELECT, TABLE, VALUES, WITH};
        self.at_token(&Token::LParen)
            && self.peek_at(1).is_some_and(|t| {
                matches!(t.token, Token::Word(_))
                    && ![SELECT, WITH, VALUES, TABLE, FROM].iter().any(|k| is_keyword(t, *k))
            })
    }

    /// `( column, … )`.
    fn column_names(&mut self) -> Result<Vec<String>> {
        self.expect(&Token::LParen, "(")?;
        let mut columns = vec![self.ident("a column name")?];
        while self.eat(&Token::Comma) {
            columns.push(self.ident("a column name")?);
        }
        self.expect(&Token::RParen, "a comma or )")?;
        Ok(columns)
    }

    /// `( column [= constant], … )`.
    fn partition_values(&mut self) -> Result<Vec<(String, Option<Vec<TokenWithSpan>>)>> {
        self.expect(&Token::LParen, "( after PARTITION")?;
        let mut values: Vec<(String, Option<Vec<TokenWithSpan>>)> = Vec::new();
        loop {
            let start = self.location();
            let column = self.ident("a partition column")?;
            if values.iter().any(|(other, _)| *other == column) {
                return Err(self.error_at(start, format!("PARTITION names {column} twice,")));
            }
            let value = self.eat(&Token::Eq).then(|| self.balanced_until_comma());
            if value.as_ref().is_some_and(Vec::is_empty) {
                return Err(self.expected("a value"));
            }
            values.push((column, value));
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, "a comma or ) in PARTITION")?;
        Ok(values)
    }

    /// Tokens up to a comma or a closing parenthesis of this level.
    fn balanced_until_comma(&mut self) -> Vec<TokenWithSpan> {
        let (mut depth, mut tokens) = (0usize, Vec::new());
        while let Some(token) = self.peek() {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen | Token::Comma if depth == 0 => break,
                Token::RParen => depth -= 1,
                _ => {}
            }
            tokens.push(token.clone());
            self.advance();
        }
        tokens
    }

    /// An expression of DataFusion's grammar, consumed.
    fn condition(&mut self, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>> {
        let tokens = self.rest();
        let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
        parser.parse_expr().map_err(|e| Error::invalid_input(format!("REPLACE WHERE: {e}")))?;
        let condition: Vec<TokenWithSpan> = tokens.iter().take(parser.index()).cloned().collect();
        condition.iter().for_each(|_| self.advance());
        Ok(condition)
    }
}
