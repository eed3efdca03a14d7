//! From a parsed CREATE TABLE to the first state of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::scalar::ScalarValue;

use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::session::alter::{default_literal, partition_field_name, sort_order, source_column};
use crate::session::parser::{ColumnDefinition, CreateTable, PartitionTerm};
use crate::spec::table_metadata::{NewTable, TableMetadataBuilder};
use crate::spec::{
    FormatVersion, ListType, MapType, NestedField, PartitionField, PartitionSpec, Schema, StructType, TableMetadata,
    Type, properties,
};
use crate::{Error, Result};

/// Property that holds the comment of a table.
const COMMENT: &str = "comment";

/// The table that a CREATE TABLE with a column list describes. `defaults` are the values of its DEFAULTs, in their order.
pub(crate) fn table_from_columns(
    create: &CreateTable,
    catalog: &dyn Catalog,
    ident: &TableIdent,
    env: &Env,
    defaults: &[ScalarValue],
) -> Result<NewTable> {
    let version = format_version(&create.properties)?;
    let mut ids = Ids(0);
    let mut defaults = defaults.iter();
    let mut fields = Vec::with_capacity(create.columns.len());
    for column in &create.columns {
        let mut field = ids.column(column);
        if let Some(value) = column.default.as_ref().and_then(|_| defaults.next()) {
            if version < FormatVersion::V3 {
                return Err(Error::invalid_input(format!(
                    "column {}: DEFAULT needs format version 3, as in TBLPROPERTIES ('format-version' = '3')",
                    column.name
                )));
            }
            let default = default_literal(value, &field.field_type, &column.name)?;
            field.initial_default.clone_from(&default);
            field.write_default = default;
        }
        fields.push(field);
    }
    new_table(create, Schema::new(0, fields), catalog, ident, env)
}

/// The table that a CREATE TABLE describes, with `schema` as its columns.
pub(crate) fn new_table(
    create: &CreateTable,
    schema: Schema,
    catalog: &dyn Catalog,
    ident: &TableIdent,
    env: &Env,
) -> Result<NewTable> {
    let mut properties = create.properties.clone();
    let format_version = take_format_version(&mut properties)?;
    if let Some(comment) = &create.comment {
        properties.insert(COMMENT.to_owned(), comment.clone());
    }
    let spec = partition_spec(&schema, &create.partitioning)?;
    let location = match &create.location {
        None => catalog.default_location(ident)?,
        Some(_) if !catalog.allows_location() => {
            return Err(Error::unsupported(format!(
                "LOCATION: catalog {} chooses the location of a table itself",
                catalog.name()
            )));
        }
        Some(location) => location.trim_end_matches('/').to_owned(),
    };
    let sort_order = sort_order(&schema, &create.order)?;
    Ok(NewTable { uuid: env.uuid(), location, format_version, schema, spec, sort_order, properties })
}

/// The first state of `table`, without a snapshot.
pub(crate) fn first_state(table: NewTable, env: &Env) -> Result<TableMetadata> {
    TableMetadataBuilder::new_table(table)?.build(env.now_ms())
}

/// Format version that the properties ask for.
pub(crate) fn format_version(properties: &BTreeMap<String, String>) -> Result<FormatVersion> {
    take_format_version(&mut properties.clone())
}

/// Takes `format-version` out of the properties, where it is never stored. The default is 2, as in Java.
fn take_format_version(properties: &mut BTreeMap<String, String>) -> Result<FormatVersion> {
    match properties.remove(properties::FORMAT_VERSION) {
        None => Ok(FormatVersion::V2),
        Some(text) => match text.trim().parse() {
            Ok(number @ 1..) => FormatVersion::from_number(number),
            _ => Err(Error::invalid_input(format!("format-version {text:?} is none of 1, 2 and 3"))),
        },
    }
}

/// Gives out field ids that are unique within one definition; the table assigns its own in the end.
struct Ids(i32);

impl Ids {
    fn next(&mut self) -> i32 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    fn column(&mut self, column: &ColumnDefinition) -> NestedField {
        let id = self.next();
        let mut field = NestedField::new(id, column.name.clone(), column.required, self.numbered(&column.column_type));
        field.doc.clone_from(&column.comment);
        field
    }

    fn field(&mut self, field: &NestedField) -> Arc<NestedField> {
        let id = self.next();
        Arc::new(NestedField { id, field_type: self.numbered(&field.field_type), ..field.clone() })
    }

    fn numbered(&mut self, of: &Type) -> Type {
        match of {
            Type::Primitive(_) | Type::Variant => of.clone(),
            Type::Struct(s) => Type::Struct(StructType { fields: s.fields.iter().map(|f| self.field(f)).collect() }),
            Type::List(l) => Type::List(Box::new(ListType { element: self.field(&l.element) })),
            Type::Map(m) => Type::Map(Box::new(MapType { key: self.field(&m.key), value: self.field(&m.value) })),
        }
    }
}

fn partition_spec(schema: &Schema, terms: &[PartitionTerm]) -> Result<PartitionSpec> {
    let mut fields = Vec::with_capacity(terms.len());
    for term in terms {
        let (source_id, source) = source_column(schema, &term.column, "PARTITIONED BY")?;
        let name = term.name.clone().unwrap_or_else(|| partition_field_name(&term.transform, &source));
        fields.push(PartitionField { source_id, field_id: 0, name, transform: term.transform.clone() });
    }
    Ok(PartitionSpec { spec_id: 0, fields })
}
