//! `CREATE SCHEMA`, `DROP SCHEMA`, `DROP TABLE` and `SHOW CREATE TABLE`.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Name};
use crate::Result;

/// `CREATE { SCHEMA | NAMESPACE } [IF NOT EXISTS] name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateNamespace {
    pub(crate) name: Name,
    pub(crate) if_not_exists: bool,
}

/// `DROP { SCHEMA | NAMESPACE } [IF EXISTS] name [RESTRICT | CASCADE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DropNamespace {
    pub(crate) name: Name,
    pub(crate) if_exists: bool,
    pub(crate) cascade: bool,
}

/// `DROP TABLE [IF EXISTS] name [PURGE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DropTable {
    pub(crate) name: Name,
    pub(crate) if_exists: bool,
    pub(crate) purge: bool,
}

fn namespace_word(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.eat_word("SCHEMA") || cursor.eat_word("NAMESPACE") { Ok(()) } else { Err(cursor.expected("SCHEMA")) }
}

/// Parses from the word CREATE.
pub(crate) fn parse_create_namespace(cursor: &mut Cursor<'_>) -> Result<CreateNamespace> {
    cursor.expect_words(&["CREATE"])?;
    namespace_word(cursor)?;
    let if_not_exists = cursor.eat_if_not_exists()?;
    let name = cursor.name("a schema name")?;
    cursor.expect_end("the end of the statement")?;
    Ok(CreateNamespace { name, if_not_exists })
}

/// Parses from the word DROP.
pub(crate) fn parse_drop_namespace(cursor: &mut Cursor<'_>) -> Result<DropNamespace> {
    cursor.expect_words(&["DROP"])?;
    namespace_word(cursor)?;
    let if_exists = cursor.eat_if_exists()?;
    let name = cursor.name("a schema name")?;
    let cascade = cursor.eat_word("CASCADE");
    if !cascade {
        cursor.eat_word("RESTRICT");
    }
    cursor.expect_end("RESTRICT, CASCADE or the end of the statement")?;
    Ok(DropNamespace { name, if_exists, cascade })
}

/// Parses from the word DROP.
pub(crate) fn parse_drop_table(cursor: &mut Cursor<'_>) -> Result<DropTable> {
    cursor.expect_words(&["DROP", "TABLE"])?;
    let if_exists = cursor.eat_if_exists()?;
    let name = cursor.name("a table name")?;
    if cursor.peek().is_some_and(|t| t.token == Token::Comma) {
        return Err(cursor.expected("one table only"));
    }
    let purge = cursor.eat_word("PURGE");
    cursor.expect_end("PURGE or the end of the statement")?;
    Ok(DropTable { name, if_exists, purge })
}

/// Parses `SHOW CREATE TABLE name`.
pub(crate) fn parse_show_create_table(cursor: &mut Cursor<'_>) -> Result<Name> {
    cursor.expect_words(&["SHOW", "CREATE", "TABLE"])?;
    let name = cursor.name("a table name")?;
    cursor.expect_end("the end of the statement")?;
    Ok(name)
}
