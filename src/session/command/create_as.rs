//! `CREATE TABLE … AS query`: an append whose commit creates the table.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder};

use super::definition::{first_state, format_version, new_table};
use crate::catalog::{Catalog, LoadedTable, TableIdent};
use crate::dml::logical::RowDeltaNode;
use crate::env::Env;
use crate::provider::from_datafusion;
use crate::session::parser::CreateTable;
use crate::spec::{ListType, MapType, NestedField, Schema, StructType, Type};
use crate::table::Table;
use crate::writer::schema_from_arrow;

/// The plan that creates a table from a query. Nothing is created before it is executed.
pub(crate) fn create_table_as(
    create: &CreateTable,
    query: LogicalPlan,
    catalog: Arc<dyn Catalog>,
    ident: TableIdent,
    env: &Env,
) -> crate::Result<LogicalPlan> {
    let version = format_version(&create.properties)?;
    let schema = optional(schema_from_arrow(query.schema().as_arrow(), 1, version)?);
    let table = new_table(create, schema, catalog.as_ref(), &ident, env)?;
    let first = LoadedTable { metadata: first_state(table, env)?.into(), metadata_location: String::new() };
    plan(Table::new(catalog, ident, first, env.clone()), query).map_err(from_datafusion)
}

fn plan(table: Table, query: LogicalPlan) -> Result<LogicalPlan> {
    let columns = query.schema().columns().into_iter();
    let named = columns.map(|column| {
        let name = column.name.clone();
        Expr::Column(column).alias(name)
    });
    let rows = LogicalPlanBuilder::from(query.clone()).project(named)?.build()?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(RowDeltaNode::create(table, rows)?) }))
}

/// Every field of `schema` made optional, as in Spark: that a literal is not null is no promise about later rows.
fn optional(schema: Schema) -> Schema {
    fn field(of: &NestedField) -> Arc<NestedField> {
        Arc::new(NestedField { required: false, field_type: inner(&of.field_type), ..of.clone() })
    }
    fn inner(of: &Type) -> Type {
        match of {
            Type::Primitive(_) | Type::Variant => of.clone(),
            Type::Struct(s) => Type::Struct(StructType { fields: s.fields.iter().map(|f| field(f)).collect() }),
            Type::List(l) => Type::List(Box::new(ListType { element: field(&l.element) })),
            Type::Map(m) => Type::Map(Box::new(MapType { key: Arc::clone(&m.key), value: field(&m.value) })),
        }
    }
    let fields = StructType { fields: schema.fields.fields.iter().map(|f| field(f)).collect() };
    Schema { fields, ..schema }
}
