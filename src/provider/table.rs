//! One Iceberg table for DataFusion, at one snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, MergeIntoClause, TableProviderFilterPushDown, TableType, lit};
use datafusion::physical_plan::ExecutionPlan;
use uuid::Uuid;

use super::definition::table_definition;
use super::memory::pool_budget;
use super::predicate::to_conjunction;
use super::scalar::to_scalar;
use super::scan::{HiddenColumns, ScanColumns, ScanRequest, scan_plan};
use crate::Error;
use crate::expr::Predicate;
use crate::scan::plan_scan;
use crate::spec::Schema;
use crate::table::{Table, TableState, TableVersion};

/// Reads a table as it was loaded: its current snapshot in the current schema, unless another version was asked for.
#[derive(Debug, Clone)]
pub struct IcebergTableProvider {
    table: Table,
    version: TableVersion,
    snapshot_id: Option<i64>,
    columns: Arc<ScanColumns>,
    /// The scan's columns in the order users see.
    order: Arc<[usize]>,
    arrow_schema: SchemaRef,
    definition: Arc<str>,
    defaults: Arc<HashMap<String, Expr>>,
}

impl IcebergTableProvider {
    /// The table's current snapshot.
    ///
    /// # Errors
    /// `Unsupported` for a column type that Arrow cannot carry.
    pub fn new(table: Table) -> crate::Result<Self> {
        Self::at_version(table, TableVersion::Current)
    }

    /// Another version of the table; a statement cannot write to it.
    ///
    /// # Errors
    /// `NotFound` when the table has no such version; those of [`new`](Self::new).
    pub fn at_version(table: Table, version: TableVersion) -> crate::Result<Self> {
        Self::build(table, version, HiddenColumns::default())
    }

    fn build(table: Table, version: TableVersion, hidden: HiddenColumns) -> crate::Result<Self> {
        let TableState { snapshot, schema } = table.at(&version)?;
        let definition = table_definition(&table, &schema).into();
        let defaults = write_defaults(&schema);
        let columns = ScanColumns::new(&table, schema, hidden)?;
        let order = columns.display_order();
        let arrow_schema = Arc::new(
            columns
                .arrow_schema()
                .project(&order)
                .map_err(|e| Error::internal("cannot order the columns of a scan").with_source(e))?,
        );
        Ok(Self {
            table,
            version,
            snapshot_id: snapshot.map(|s| s.snapshot_id),
            columns: Arc::new(columns),
            order: order.into(),
            arrow_schema,
            definition,
            defaults: Arc::new(defaults),
        })
    }

    /// The same table at another snapshot, in that snapshot's schema.
    ///
    /// # Errors
    /// `NotFound` when the table has no such snapshot.
    pub fn with_snapshot(&self, snapshot_id: i64) -> crate::Result<Self> {
        Self::build(self.table.clone(), TableVersion::Snapshot(snapshot_id), self.hidden())
    }

    /// The same table and snapshot with the hidden columns `_file`, `_pos`, `_spec_id` and `_partition` behind its own,
    /// each unless a column of the table has its name (`_partition` also only if the table ever was partitioned).
    pub fn with_row_address(&self) -> crate::Result<Self> {
        self.with_hidden(HiddenColumns { named: true, ..self.hidden() })
    }

    /// The same table and snapshot with [`FILE_COLUMN`](super::FILE_COLUMN) and
    /// [`POSITION_COLUMN`](super::POSITION_COLUMN), as the target of the writing statement that `token` marks.
    ///
    /// # Errors
    /// `Unsupported` when the table has a column of such a name.
    pub fn as_target(&self, token: Uuid) -> crate::Result<Self> {
        self.with_hidden(HiddenColumns { target: Some(token), ..self.hidden() })
    }

    /// This provider over `table`'s current state, if it reads the current state of the same table as loaded at another
    /// moment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn pinned_to(&self, table: &Table) -> crate::Result<Option<Self>> {
        let (own, other) = (&self.table.metadata, &table.metadata);
        let same = self.table.ident == table.ident && own.table_uuid == other.table_uuid;
        if !same || !self.version.is_current() {
            return Ok(None);
        }
        self.renewed(table).map(Some)
    }

    /// The same version and columns of `table`, another state of the same table.
    ///
    /// # Errors
    /// `NotFound` when that state has no such version; those of [`new`](Self::new).
    pub fn renewed(&self, table: &Table) -> crate::Result<Self> {
        Self::build(table.clone(), self.version.clone(), self.hidden())
    }

    /// Refuses what no statement may write to.
    ///
    /// # Errors
    /// `InvalidInput` when the provider reads a version of the table that never changes, `Unsupported` when it reads a
    /// branch, when the catalog cannot commit to the table, or when the table's properties ask for what this version of
    /// calve does not write.
    pub fn check_writable(&self) -> crate::Result<()> {
        let table = &self.table;
        match &self.version {
            TableVersion::Current => {}
            TableVersion::Branch(name) => {
                return Err(Error::unsupported(format!("writing to branch {name} of table {}", table.ident)));
            }
            version => {
                return Err(Error::invalid_input(format!(
                    "{version} of table {} cannot be written to: name the table without a version",
                    table.ident
                )));
            }
        }
        table.catalog.check_writable(&table.ident, &table.loaded())?;
        table.properties()?.check_writable()
    }

    fn with_hidden(&self, hidden: HiddenColumns) -> crate::Result<Self> {
        Self::build(self.table.clone(), self.version.clone(), hidden)
    }

    fn hidden(&self) -> HiddenColumns {
        self.columns.hidden
    }

    /// The table, as it was loaded.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The version read.
    pub fn version(&self) -> &TableVersion {
        &self.version
    }

    /// The snapshot read; `None` when the table has none.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.snapshot_id
    }

    /// The schema read, hidden columns excluded.
    pub fn iceberg_schema(&self) -> &Arc<Schema> {
        &self.columns.schema
    }

    /// Whether the hidden columns are there.
    pub fn has_row_address(&self) -> bool {
        self.hidden().named
    }

    /// The rows that `filters` leave, as far as files can be chosen by it.
    ///
    /// Literals of the predicate have the types of the schema read, while files are judged by the current schema; a column
    /// whose type differs between them is not used.
    pub fn predicate(&self, filters: &[Expr]) -> Predicate {
        let schema = &self.columns.schema;
        let predicate = to_conjunction(filters, schema);
        let same_type = |id: i32| match (schema.field_by_id(id), self.table.metadata.current_schema()) {
            (Some(read), Ok(current)) => current.field_by_id(id).is_some_and(|c| c.field_type == read.field_type),
            _ => false,
        };
        if predicate.field_ids().into_iter().all(same_type) { predicate } else { forget(predicate, &same_type) }
    }

    fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(Error::unsupported(format!(
            "{what} on Iceberg table {} in a session without the extension: install it when the session is built, with \
             calve::session::install",
            self.table.ident
        ))
        .into())
    }
}

/// `predicate` with the leaves on columns that `known` does not know made unknown.
fn forget(predicate: Predicate, known: &dyn Fn(i32) -> bool) -> Predicate {
    match predicate {
        Predicate::And(parts) => Predicate::And(parts.into_iter().map(|p| forget(p, known)).collect()),
        Predicate::Or(parts) => Predicate::Or(parts.into_iter().map(|p| forget(p, known)).collect()),
        Predicate::Leaf { field_id, .. } if !known(field_id) => Predicate::Unknown,
        other => other,
    }
}

fn write_defaults(schema: &Schema) -> HashMap<String, Expr> {
    let defaults = schema.fields.fields.iter().filter_map(|field| {
        let ty = field.field_type.as_primitive()?;
        let value = to_scalar(Some(field.write_default.as_ref()?), ty)?;
        Some((field.name.clone(), lit(value)))
    });
    defaults.collect()
}

#[async_trait]
impl TableProvider for IcebergTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow_schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        Some(&self.definition)
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan_scan(&self.table, self.snapshot_id, &self.predicate(filters)).await?;
        let df_schema = DFSchema::try_from(Arc::clone(self.columns.arrow_schema()))?;
        let filters = filters
            .iter()
            .map(|filter| state.create_physical_expr(filter.clone(), &df_schema))
            .collect::<Result<Vec<_>>>()?;
        let projection: Vec<usize> = match projection {
            Some(indices) => indices.iter().filter_map(|i| self.order.get(*i).copied()).collect(),
            None => self.order.to_vec(),
        };
        let limit = if filters.is_empty() { limit } else { None };
        let request = ScanRequest { projection: Some(&projection), filters, limit };
        let budget = pool_budget(&state.runtime_env().memory_pool);
        scan_plan(&self.table, &self.columns, plan, request, state.config_options(), budget)
    }

    /// All filters choose files, row groups, pages and perhaps rows; none is relied upon.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _insert_op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse("INSERT")
    }

    async fn delete_from(&self, _state: &dyn Session, _filters: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse("DELETE")
    }

    async fn update(
        &self,
        _state: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse("UPDATE")
    }

    async fn truncate(&self, _state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse("TRUNCATE")
    }

    async fn merge_into(
        &self,
        _state: &dyn Session,
        _source: Arc<dyn ExecutionPlan>,
        _merge_schema: DFSchemaRef,
        _on: Expr,
        _clauses: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse("MERGE")
    }
}
