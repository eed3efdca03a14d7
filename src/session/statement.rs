//! Text into statements: tokenising and splitting at top-level semicolons.
//!
//! Comments, quoted names, strings and dollar quotes are the tokenizer's business, so a `;` inside one never splits.
//! Invariant: token positions are those of the whole text, so that an error in the third statement of a file names the
//! line of the file.

use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::{Error, Result};

/// One statement of a text: its tokens without white space and comments, and its source.
#[derive(Debug, Clone)]
pub struct StatementText {
    tokens: Vec<TokenWithSpan>,
    sql: String,
}

impl StatementText {
    /// The source of the statement, from its first to its last token, without the semicolon.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Line of the text on which the statement begins, from 1.
    pub fn line(&self) -> u64 {
        self.tokens.first().map_or(1, |t| t.span.start.line)
    }

    /// The first word of the statement, in upper case; empty when it does not begin with a word.
    pub fn first_word(&self) -> String {
        match self.tokens.first().map(|t| &t.token) {
            Some(Token::Word(w)) if w.quote_style.is_none() => w.value.to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    /// The statement of some tokens, without source.
    pub(crate) fn of_tokens(tokens: Vec<TokenWithSpan>) -> Self {
        Self { tokens, sql: String::new() }
    }

    /// How many tokens stand before the statement that EXPLAIN is about; 0 when there is no EXPLAIN.
    pub(crate) fn explain_words(&self) -> usize {
        let word = |at: usize, text: &str| matches!(self.tokens.get(at).map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text));
        if !word(0, "EXPLAIN") {
            return 0;
        }
        let mut at = 1;
        loop {
            if word(at, "ANALYZE") || word(at, "VERBOSE") {
                at += 1;
            } else if word(at, "FORMAT") {
                at += 2;
            } else {
                return at;
            }
        }
    }

    /// The statement without its first `count` tokens.
    pub(crate) fn behind(&self, count: usize) -> Self {
        let tokens = self.tokens.get(count..).unwrap_or_default().to_vec();
        let sql = match (self.tokens.first(), tokens.first()) {
            (Some(all), Some(first)) => {
                let (from, to) = (all.span.start, first.span.start);
                let line = to.line.saturating_sub(from.line) + 1;
                let column = if line == 1 { to.column.saturating_sub(from.column) + 1 } else { to.column };
                let offset = LineIndex::new(&self.sql).offset(&self.sql, Location { line, column });
                self.sql.get(offset..).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        };
        Self { tokens, sql }
    }

    /// The tokens, never empty, without white space and without end-of-file mark.
    pub(crate) fn tokens(&self) -> &[TokenWithSpan] {
        &self.tokens
    }
}

/// Splits `text` into its statements; empty ones vanish.
///
/// # Errors
/// `InvalidInput` with line and column when the text does not tokenise, such as an unterminated string.
pub fn split_statements(text: &str) -> Result<Vec<StatementText>> {
    split_with_dialect(text, &GenericDialect {})
}

/// [`split_statements`] under another dialect's quoting rules.
pub(crate) fn split_with_dialect(text: &str, dialect: &dyn Dialect) -> Result<Vec<StatementText>> {
    let tokens = Tokenizer::new(dialect, text).tokenize_with_location().map_err(|e| token_error(&e))?;
    let lines = LineIndex::new(text);
    let mut statements = Vec::new();
    let mut current: Vec<TokenWithSpan> = Vec::new();
    for token in tokens {
        match token.token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => push_statement(&mut statements, &mut current, text, &lines),
            _ => current.push(token),
        }
    }
    push_statement(&mut statements, &mut current, text, &lines);
    Ok(statements)
}

fn push_statement(
    statements: &mut Vec<StatementText>,
    current: &mut Vec<TokenWithSpan>,
    text: &str,
    lines: &LineIndex,
) {
    if let (Some(first), Some(last)) = (current.first(), current.last()) {
        let sql = text.get(lines.offset(text, first.span.start)..lines.offset(text, last.span.end));
        let sql = sql.unwrap_or_default().to_owned();
        statements.push(StatementText { tokens: std::mem::take(current), sql });
    }
}

/// Whether a prompt should submit `text`: its last token is a top-level semicolon, or nothing but white space and
/// comments follow one. Text that can never be completed (a tokenizer error that more input does not cure) is submitted
/// too, so that the error is shown.
pub fn is_complete(text: &str) -> bool {
    match Tokenizer::new(&GenericDialect {}, text).tokenize_with_location() {
        Ok(tokens) => {
            let last = tokens.iter().rev().find(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
            matches!(last.map(|t| &t.token), None | Some(Token::SemiColon))
        }
        Err(e) => !is_unterminated(&e),
    }
}

/// Whether more input could cure the error: a string, quoted name or comment is still open.
fn is_unterminated(e: &TokenizerError) -> bool {
    ["Unterminated", "Unexpected EOF", "Expected close delimiter"].iter().any(|m| e.message.starts_with(m))
}

fn token_error(e: &TokenizerError) -> Error {
    Error::invalid_input(format!("{} at line {}, column {}", e.message, e.location.line, e.location.column))
}

/// Byte offsets of line starts, to turn a position (line, character) into a byte offset.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { starts }
    }

    fn offset(&self, text: &str, at: Location) -> usize {
        let line = usize::try_from(at.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(at.column).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let rest = text.get(start..).unwrap_or_default();
        start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqls(text: &str) -> Vec<String> {
        split_statements(text).unwrap().iter().map(|s| s.sql().to_owned()).collect()
    }

    #[test]
    fn splits_at_top_level_semicolons_only() {
        assert_eq!(
            sqls("select 1; select ';' ;; -- a;b\nselect \"x;y\" /* ; */ from t"),
            ["select 1", "select ';'", "select \"x;y\" /* ; */ from t"]
        );
        assert_eq!(sqls("select $$a;b$$; select $q$ ; $q$"), ["select $$a;b$$", "select $q$ ; $q$"]);
        assert_eq!(sqls(" \n-- only a comment\n"), Vec::<String>::new());
    }

    #[test]
    fn cuts_by_characters_not_bytes() {
        assert_eq!(sqls("select 'äöü€' ;\nselect 'ß' , 1;"), ["select 'äöü€'", "select 'ß' , 1"]);
    }

    #[test]
    fn keeps_dollar_names_in_one_token() {
        let s = split_statements("select * from t$rows").unwrap();
        assert!(matches!(&s[0].tokens().last().unwrap().token, Token::Word(w) if w.value == "t$rows"));
    }

    #[test]
    fn unterminated_text_names_its_place() {
        let e = split_statements("select 1;\n  select 'abc").unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::InvalidInput);
        assert!(e.message().contains("line 2, column 10"), "{e}");
    }

    #[test]
    fn explain_is_told_from_what_it_explains() {
        for (sql, count, rest) in [
            ("select 1; EXPLAIN ANALYZE VERBOSE\n create table t (a int)", 3, "create table t (a int)"),
            ("select 1; explain format tree drop table \"ä\"", 3, "drop table \"ä\""),
            ("select 1; drop table t", 0, "drop table t"),
        ] {
            let statements = split_statements(sql).unwrap();
            assert_eq!(statements[1].explain_words(), count, "{sql}");
            assert_eq!(statements[1].behind(count).sql(), rest);
        }
    }

    #[test]
    fn completeness_of_prompt_input() {
        for (text, complete) in [
            ("select 1", false),
            ("select 1;", true),
            ("select 1; -- done", true),
            ("select ';", false),
            ("select /* ;", false),
            ("select \"a;", false),
            ("select $$ ;", false),
            ("select $$ ;$$;", true),
            ("", true),
            ("select 1;\nselect 2", false),
        ] {
            assert_eq!(is_complete(text), complete, "{text}");
        }
    }
}
