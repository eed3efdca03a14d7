//! Which statements are ours, and how they are bound to a catalog.
//!
//! A statement is ours when its first words say so and the table or schema it names lies in an Iceberg catalog of the
//! session; the same words about another catalog go to DataFusion.

use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::command::{BoundCommand, Command, CommandNode, table_exists, table_from_columns};
use super::constant::constant;
use super::from_datafusion;
use super::overlay::SessionCatalog;
use super::parser::{
    AlterTable, ColumnChange, CreateTable, Cursor, Name, TableChange, parse_alter_table, parse_create_namespace,
    parse_create_table, parse_drop_namespace, parse_drop_table,
};
use super::registry::Catalogs;
use crate::catalog::{Catalog, TableIdent};
use crate::{Error, Result};

/// The words that begin the statements of ours, and what they are.
const OURS: &[(&[&str], Kind)] = &[
    (&["CREATE", "SCHEMA"], Kind::CreateNamespace),
    (&["CREATE", "NAMESPACE"], Kind::CreateNamespace),
    (&["DROP", "SCHEMA"], Kind::DropNamespace),
    (&["DROP", "NAMESPACE"], Kind::DropNamespace),
    (&["CREATE", "TABLE"], Kind::CreateTable),
    (&["CREATE", "OR", "REPLACE", "TABLE"], Kind::CreateTable),
    (&["DROP", "TABLE"], Kind::DropTable),
    (&["ALTER", "TABLE"], Kind::AlterTable),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    CreateNamespace,
    DropNamespace,
    CreateTable,
    DropTable,
    AlterTable,
}

/// A statement of ours, bound.
pub(super) enum Planned {
    /// A plan that does what the statement says when it is executed.
    Plan(LogicalPlan),
    /// CREATE TABLE … AS: the query is planned by the caller.
    CreateTableAs(Box<CreateTable>, Arc<dyn Catalog>, TableIdent),
}

/// Binds names of a session to catalogs.
pub(super) struct Binder<'a> {
    pub(super) state: &'a SessionState,
    pub(super) catalogs: &'a Catalogs,
}

impl Binder<'_> {
    /// Plans the statement if it is ours. `sql` is its source, for EXPLAIN.
    pub(super) async fn plan(&self, tokens: &[TokenWithSpan], sql: &str) -> Result<Option<Planned>> {
        let normalize = self.state.config_options().sql_parser.enable_ident_normalization;
        let mut cursor = Cursor::new(tokens, normalize);
        let Some((words, kind)) = OURS.iter().find(|(words, _)| cursor.looking_at(words)) else { return Ok(None) };
        let is_schema = matches!(kind, Kind::CreateNamespace | Kind::DropNamespace);
        let Some(catalog) = self.named_catalog(tokens, words.len(), is_schema, normalize) else { return Ok(None) };
        match kind {
            Kind::CreateNamespace => {
                let create = parse_create_namespace(&mut cursor)?;
                let namespace = self.namespace(&create.name)?;
                self.command(catalog, Command::CreateNamespace { namespace, if_not_exists: create.if_not_exists }, sql)
            }
            Kind::DropNamespace => {
                let drop = parse_drop_namespace(&mut cursor)?;
                let namespace = self.namespace(&drop.name)?;
                let (if_exists, cascade) = (drop.if_exists, drop.cascade);
                self.command(catalog, Command::DropNamespace { namespace, if_exists, cascade }, sql)
            }
            Kind::CreateTable => {
                let create = parse_create_table(&mut cursor)?;
                let ident = self.table(&create.name)?;
                self.create_table(create, catalog, ident, sql).await
            }
            Kind::AlterTable => {
                let alter = parse_alter_table(&mut cursor)?;
                let ident = self.table(&alter.name)?;
                self.alter_table(alter, catalog, ident, sql).await
            }
            Kind::DropTable => {
                let drop = parse_drop_table(&mut cursor)?;
                if self.is_local(&drop.name) {
                    return if drop.purge {
                        Err(Error::invalid_input(format!("{}: an external table has no files to purge", drop.name)))
                    } else {
                        Ok(None)
                    };
                }
                let ident = self.table(&drop.name)?;
                let (if_exists, purge) = (drop.if_exists, drop.purge);
                self.command(catalog, Command::DropTable { ident, if_exists, purge }, sql)
            }
        }
    }

    async fn create_table(
        &self,
        create: CreateTable,
        catalog: Arc<dyn Catalog>,
        ident: TableIdent,
        sql: &str,
    ) -> Result<Option<Planned>> {
        if create.or_replace {
            return Err(Error::unsupported("CREATE OR REPLACE TABLE of an Iceberg table is not supported yet"));
        }
        if create.query.is_some() {
            if !create.columns.is_empty() {
                return Err(Error::invalid_input("CREATE TABLE takes a column list or AS query, not both"));
            }
            if !table_exists(catalog.as_ref(), &ident).await? {
                return Ok(Some(Planned::CreateTableAs(Box::new(create), catalog, ident)));
            }
            if !create.if_not_exists {
                return Err(Error::already_exists(format!("table {ident} exists already")));
            }
            return self.command(catalog, Command::Nothing, sql);
        }
        let defaults =
            self.constants(create.columns.iter().filter_map(|column| column.default.clone()).collect()).await?;
        let table = table_from_columns(&create, catalog.as_ref(), &ident, self.catalogs.env(), &defaults)?;
        let table = Box::new(table);
        self.command(catalog, Command::CreateTable { ident, table, if_not_exists: create.if_not_exists }, sql)
    }

    async fn alter_table(
        &self,
        alter: AlterTable,
        catalog: Arc<dyn Catalog>,
        ident: TableIdent,
        sql: &str,
    ) -> Result<Option<Planned>> {
        let AlterTable { name, change } = alter;
        if self.is_local(&name) {
            return Err(Error::unsupported(format!(
                "ALTER TABLE of {name}, which is a table of this session: alter it in its catalog"
            )));
        }
        let constants = match &change {
            TableChange::RenameTo(to) => {
                let to = match to.0.as_slice() {
                    [table] => TableIdent::new(ident.namespace.clone(), table.as_str()),
                    _ => self.table(to)?,
                };
                return self.command(catalog, Command::RenameTable { from: ident, to }, sql);
            }
            TableChange::SetLocation(_) if !catalog.allows_location() => {
                return Err(Error::unsupported(format!(
                    "SET LOCATION: catalog {} chooses the location of a table itself",
                    catalog.name()
                )));
            }
            TableChange::AddColumns(columns) => {
                self.constants(columns.iter().filter_map(|c| c.default.clone()).collect()).await?
            }
            TableChange::AlterColumn { change: ColumnChange::SetDefault(tokens), .. } => {
                self.constants(vec![tokens.clone()]).await?
            }
            _ => Vec::new(),
        };
        self.command(catalog, Command::AlterTable { ident, change: Box::new(change), constants }, sql)
    }

    /// The values of DEFAULTs.
    async fn constants(&self, defaults: Vec<Vec<TokenWithSpan>>) -> Result<Vec<ScalarValue>> {
        let mut values = Vec::with_capacity(defaults.len());
        for tokens in defaults {
            values.push(constant(self.state, tokens).await?);
        }
        Ok(values)
    }

    fn command(&self, catalog: Arc<dyn Catalog>, command: Command, sql: &str) -> Result<Option<Planned>> {
        let bound = BoundCommand { command, catalog, env: self.catalogs.env().clone() };
        let text = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        CommandNode::plan(bound, text).map(|plan| Some(Planned::Plan(plan))).map_err(from_datafusion)
    }

    /// Whether the name means an external table or view of the session, which DataFusion drops.
    fn is_local(&self, name: &Name) -> bool {
        let options = &self.state.config_options().catalog;
        let (catalog, schema, table) = match name.0.as_slice() {
            [table] => (&options.default_catalog, &options.default_schema, table),
            [schema, table] => (&options.default_catalog, schema, table),
            [catalog, schema, table] => (catalog, schema, table),
            _ => return false,
        };
        let catalog = self.state.catalog_list().catalog(catalog);
        let catalog = catalog.as_ref().and_then(|c| c.downcast_ref::<SessionCatalog>());
        catalog.is_some_and(|catalog| catalog.is_local(schema, table))
    }

    /// The Iceberg catalog that the name behind the leading words lies in. A name that does not parse is looked up in
    /// the current catalog, whose parser then reports it.
    fn named_catalog(
        &self,
        tokens: &[TokenWithSpan],
        words: usize,
        is_schema: bool,
        normalize: bool,
    ) -> Option<Arc<dyn Catalog>> {
        let mut cursor = Cursor::new(tokens.get(words..).unwrap_or_default(), normalize);
        let _ = cursor.eat_words(&["IF", "NOT", "EXISTS"]) || cursor.eat_words(&["IF", "EXISTS"]);
        let qualified = if is_schema { 2 } else { 3 };
        match cursor.name("a name") {
            Ok(Name(parts)) if parts.len() >= qualified => self.catalogs.get(parts.first()?),
            _ => self.catalogs.get(&self.state.config_options().catalog.default_catalog),
        }
    }

    /// `schema` or `catalog.schema`; a nested namespace is one quoted part.
    fn namespace(&self, name: &Name) -> Result<Vec<String>> {
        match name.0.as_slice() {
            [schema] | [_, schema] => namespace_of(schema),
            _ => Err(Error::invalid_input(format!(
                "{name} is no schema name: write catalog.schema, and a nested namespace as one name, \"a.b\""
            ))),
        }
    }

    /// `table`, `schema.table` or `catalog.schema.table`.
    fn table(&self, name: &Name) -> Result<TableIdent> {
        let (schema, table) = match name.0.as_slice() {
            [table] => (&self.state.config_options().catalog.default_schema, table),
            [schema, table] | [_, schema, table] => (schema, table),
            _ => {
                return Err(Error::invalid_input(format!(
                    "{name} is no table name: write catalog.schema.table, and a nested namespace as one name, \"a.b\""
                )));
            }
        };
        if table.contains('$') {
            return Err(Error::invalid_input(format!("{name}: a name with $ means a part of a table, as in t$rows")));
        }
        Ok(TableIdent::new(namespace_of(schema)?, table))
    }
}

/// The namespace that a schema name means.
fn namespace_of(schema: &str) -> Result<Vec<String>> {
    let TableIdent { mut namespace, name } = TableIdent::parse(schema)?;
    namespace.push(name);
    Ok(namespace)
}
