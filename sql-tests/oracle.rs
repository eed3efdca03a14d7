//! After each INSERT, UPDATE and DELETE: the table holds what the same statement makes of a plain copy of its rows.
//!
//! The copy is an in-memory table `plain.rows.<name>`. A DELETE has to leave the rows of the copy that `WHERE condition`
//! does not select, which are those that `WHERE (condition) IS NOT TRUE` selects if that can be planned. A condition on
//! hidden columns is asked of the table itself, before. A statement that ends in the comment `-- no oracle: reason` is
//! not compared, because DataFusion is known to select other rows by its condition than SQL does. Whatever fails or has no row to do leaves rows and snapshots alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider};

use crate::database::Database;

type Rows = Vec<Vec<String>>;

/// What is known before a statement runs.
pub struct Oracle {
    sql: String,
    statement: Statement,
    before: Rows,
    /// Rows that have to be left; `None` when only the number is known.
    left: Option<Rows>,
    snapshots: usize,
}

#[derive(Debug, Clone)]
struct Statement {
    kind: Kind,
    /// The target as the statement spells it.
    table: String,
    /// What stands between the target and `WHERE`: an alias.
    alias: String,
    condition: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Insert,
    Delete,
    /// UPDATE.
    Update,
    /// MERGE.
    Merge,
    /// `EXPLAIN` of one of them.
    Explain,
    ExplainAnalyze,
}

/// Whether the statement returns a count.
pub fn is_dml(sql: &str) -> bool {
    let inserts = strip_word(sql.trim(), "INSERT").is_some()
        || strip_word(sql.trim(), "WITH").is_some() && find_word(sql, "INSERT").is_some();
    inserts
        || matches!(
            Statement::parse(sql),
            Some(Statement { kind: Kind::Insert | Kind::Delete | Kind::Update | Kind::Merge, .. })
        )
}

impl Statement {
    fn parse(sql: &str) -> Option<Self> {
        let mut rest = sql.trim();
        let mut explain = None;
        if let Some(after) = strip_word(rest, "EXPLAIN") {
            rest = after;
            explain = Some(Kind::Explain);
            if let Some(after) = strip_word(rest, "ANALYZE") {
                rest = after;
                explain = Some(Kind::ExplainAnalyze);
            }
            rest = strip_word(rest, "VERBOSE").unwrap_or(rest);
        }
        let (kind, rest) = if let Some(rest) = strip_word(rest, "INSERT").and_then(|rest| strip_word(rest, "INTO")) {
            (Kind::Insert, rest)
        } else if let Some(rest) = strip_word(rest, "UPDATE") {
            (Kind::Update, rest)
        } else if let Some(rest) = strip_word(rest, "MERGE").and_then(|rest| strip_word(rest, "INTO")) {
            (Kind::Merge, rest)
        } else {
            (Kind::Delete, strip_word(rest, "DELETE").and_then(|rest| strip_word(rest, "FROM"))?)
        };
        let (table, rest) = identifier(rest);
        if kind == Kind::Insert && find_word(rest, "REPLACE").is_some() {
            return None;
        }
        let (alias, condition) = match find_word(rest, "WHERE") {
            Some(at) => (rest[..at].trim(), Some(rest[at + 5..].trim().to_string())),
            None => (rest.trim(), None),
        };
        Some(Self { kind: explain.unwrap_or(kind), table: table.to_string(), alias: alias.to_string(), condition })
    }

    fn select_from(&self, from: &str, name: &str, columns: &str, condition: &str) -> String {
        format!("SELECT {columns} FROM {from} AS {name} WHERE ({condition})")
    }

    /// Text of the condition over `from`, a table that stands in for the target under its name.
    fn select(&self, from: &str, wrap: impl Fn(&str) -> String) -> String {
        let alias = match strip_word(&self.alias, "AS").unwrap_or(&self.alias) {
            "" => self.table.rsplit('.').next().unwrap_or(&self.table),
            alias => alias,
        };
        format!("SELECT {alias}.* FROM {from} AS {alias} WHERE {}", wrap(self.condition.as_deref().unwrap_or("TRUE")))
    }
}

impl Oracle {
    /// `None` for a statement that writes no rows, or to no Iceberg table.
    pub async fn before(database: &Database, sql: &str) -> Option<Self> {
        let statement = Statement::parse(sql)?;
        let snapshots = snapshots(database, &statement.table).await?;
        let all = format!("SELECT * FROM {}", statement.table);
        let before = sorted(database.rows(&all).await.ok()?.1);
        let left = match statement.kind {
            Kind::Delete => left(database, &statement, &before).await,
            Kind::Update => updated(database, &statement, &before).await,
            _ => None,
        };
        Some(Self { sql: sql.to_string(), statement, before, left, snapshots })
    }

    /// Compares the table after the statement. `count` is what it returned; 0 when it failed.
    pub async fn check(self, database: &Database, count: Option<u64>, failed: bool) {
        let Self { sql, statement, before, left, snapshots: snapshots_before } = self;
        let all = format!("SELECT * FROM {}", statement.table);
        let after = sorted(database.rows(&all).await.expect("the table still reads").1);
        let made = snapshots(database, &statement.table).await.expect("the table is still there") - snapshots_before;
        if failed || statement.kind == Kind::Explain {
            same(&after, &before, &format!("{sql}: rows after and before"));
            assert_eq!(made, 0, "{sql}: a snapshot was made");
            return;
        }
        if matches!(statement.kind, Kind::Update | Kind::Merge) {
            assert_eq!(made, usize::from(count != Some(0)), "{sql}: snapshots made");
            if let Some(left) = left {
                same(&after, &left, &format!("{sql}: rows of the table and of the copy"));
            }
            return;
        }
        let changed = after != before;
        assert_eq!(made, usize::from(changed), "{sql}: snapshots made");
        match (statement.kind, count) {
            (Kind::Insert, Some(count)) => {
                let added = minus(&after, &before).expect("rows that were there still are");
                assert_eq!(added.len() as u64, count, "{sql}: rows added");
            }
            (Kind::Delete, Some(count)) => {
                assert_eq!((before.len() - after.len()) as u64, count, "{sql}: rows deleted");
                if let Some(left) = left {
                    same(&after, &left, &format!("{sql}: rows left in the table and in the copy"));
                }
            }
            _ => {}
        }
    }
}

/// The rows a DELETE has to leave; `None` when the copy cannot be asked.
async fn left(database: &Database, statement: &Statement, before: &Rows) -> Option<Rows> {
    match &statement.condition {
        None => return Some(Rows::new()),
        Some(condition) if condition.contains("-- no oracle: ") => return None,
        Some(_) => {}
    }
    let hidden = statement.condition.as_ref().is_some_and(|c| c.contains("_file") || c.contains("_pos"));
    let from = if hidden { statement.table.clone() } else { copy(database, &statement.table).await? };
    let gone = database.rows(&statement.select(&from, |c| format!("({c})"))).await.ok()?.1;
    let left = minus(before, &sorted(gone)).expect("the rows selected are in the table");
    if let Ok((_, complement)) = database.rows(&statement.select(&from, |c| format!("({c}) IS NOT TRUE"))).await {
        let what = format!("{statement:?}: rows outside of WHERE and in its complement");
        same(&left, &sorted(complement), &what);
    }
    Some(left)
}

/// The rows an UPDATE has to leave; `None` for one that the copy cannot be asked about: FROM, DEFAULT, fields of structs, and
/// hidden columns.
async fn updated(database: &Database, statement: &Statement, before: &Rows) -> Option<Rows> {
    let (alias, assignments) =
        statement.alias.split_at(find_word(&format!(" {}", statement.alias), "SET")?.saturating_sub(1));
    let assignments = strip_word(assignments.trim_start(), "SET")?;
    let condition = statement.condition.as_deref().unwrap_or("TRUE");
    let text = format!("{assignments} {condition}");
    if find_word(assignments, "FROM").is_some()
        || ["_pos", "_file", "_spec_id", "DEFAULT"].iter().any(|w| text.contains(w))
    {
        return None;
    }
    let mut values = BTreeMap::new();
    for assignment in split_list(assignments) {
        let (column, value) = assignment.split_once('=')?;
        let column = column.trim().rsplit('.').next()?.trim_matches('"').to_string();
        values.insert(column, value.trim().to_string());
        if assignment.split_once('=')?.0.matches('.').count() > 1 {
            return None;
        }
    }
    let from = copy(database, &statement.table).await?;
    let name = match strip_word(alias.trim(), "AS").unwrap_or(alias.trim()) {
        "" => statement.table.rsplit('.').next().unwrap_or(&statement.table),
        name => name,
    };
    let schema = database.calve.context().table(from.as_str()).await.ok()?;
    let columns: Vec<String> = schema
        .schema()
        .fields()
        .iter()
        .map(|field| match values.remove(field.name()) {
            Some(value) => format!("arrow_cast({value}, '{}') AS \"{}\"", field.data_type(), field.name()),
            None => format!("{name}.\"{}\"", field.name()),
        })
        .collect();
    if !values.is_empty() {
        return None;
    }
    let changed = statement.select_from(&from, name, &columns.join(", "), condition);
    let old = statement.select_from(&from, name, &format!("{name}.*"), condition);
    let (changed, old) = (database.rows(&changed).await.ok()?.1, database.rows(&old).await.ok()?.1);
    let mut rows = minus(before, &sorted(old)).expect("the rows selected are in the table");
    rows.extend(changed);
    Some(sorted(rows))
}

/// The parts of a list, at commas outside of parentheses and quotes.
fn split_list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut quote, mut start) = (Vec::new(), 0, None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Copies a table into memory and returns the copy's name.
async fn copy(database: &Database, table: &str) -> Option<String> {
    let ctx = database.calve.context();
    let frame = database.calve.sql(&format!("SELECT * FROM {table}")).await.ok()?;
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await.ok()?;
    let copy = MemTable::try_new(schema, vec![batches]).expect("a table in memory");
    let catalog = MemoryCatalogProvider::new();
    let rows = Arc::new(MemorySchemaProvider::new());
    catalog.register_schema("rows", Arc::clone(&rows) as _).expect("a schema");
    ctx.register_catalog("plain", Arc::new(catalog));
    ctx.register_table("plain.rows.copy", Arc::new(copy)).expect("a table");
    Some("plain.rows.copy".to_string())
}

/// Number of snapshots of an Iceberg table; `None` when it is none.
async fn snapshots(database: &Database, table: &str) -> Option<usize> {
    use calve::provider::IcebergTableProvider;
    let provider = database.calve.context().table_provider(table).await.ok()?;
    let provider = provider.downcast_ref::<IcebergTableProvider>()?;
    Some(provider.table().metadata.snapshots.len())
}

fn same(left: &Rows, right: &Rows, what: &str) {
    if left != right {
        panic!("{what} differ: {:?} against {:?}", extra(left, right), extra(right, left));
    }
}

/// Rows of `all` beyond those of `some`, both counted.
fn extra(all: &Rows, some: &Rows) -> Rows {
    let mut counts: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
    some.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    let mut rest = Rows::new();
    for row in all {
        match counts.get_mut(row) {
            Some(count) if *count > 0 => *count -= 1,
            _ => rest.push(row.clone()),
        }
    }
    rest
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// `all` without `some`, both counted; `None` when `some` has what `all` has not.
fn minus(all: &Rows, some: &Rows) -> Option<Rows> {
    extra(some, all).is_empty().then(|| extra(all, some))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    let rest = &text[word.len()..];
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (head.eq_ignore_ascii_case(word) && ends).then(|| rest.trim_start())
}

/// Where `word` stands first in `text`, between white space.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let upper = text.to_ascii_uppercase();
    upper.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = upper[..*at].chars().next_back().is_none_or(char::is_whitespace);
        before && upper[at + word.len()..].starts_with(char::is_whitespace)
    })
}

/// A dotted, maybe quoted name and what follows it.
fn identifier(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || c == '(' || c == ';')
    });
    text.split_at(end.unwrap_or(text.len()))
}
