//! From a parsed CREATE TABLE to the first state of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::session::parser::{ColumnDefinition, CreateTable, Name, PartitionTerm};
use crate::spec::table_metadata::{NewTable, TableMetadataBuilder};
use crate::spec::{
    FormatVersion, ListType, MapType, NestedField, PartitionField, PartitionSpec, Schema, SortOrder, StructType,
    TableMetadata, Transform, Type, properties,
};
use crate::{Error, Result};

/// Property that holds the comment of a table.
const COMMENT: &str = "comment";

/// The table that a CREATE TABLE with a column list describes.
pub(crate) fn table_from_columns(
    create: &CreateTable,
    catalog: &dyn Catalog,
    ident: &TableIdent,
    env: &Env,
) -> Result<NewTable> {
    let mut ids = Ids(0);
    let fields = create.columns.iter().map(|column| ids.column(column)).collect();
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
    let sort_order = SortOrder { order_id: 0, fields: Vec::new() };
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
        let (source_id, source) = source_column(schema, &term.column)?;
        let name = term.name.clone().unwrap_or_else(|| field_name(&term.transform, &source));
        fields.push(PartitionField { source_id, field_id: 0, name, transform: term.transform.clone() });
    }
    Ok(PartitionSpec { spec_id: 0, fields })
}

/// Id and dotted name of a column; each part is matched as it is, else by the one field that differs only in case.
fn source_column(schema: &Schema, path: &Name) -> Result<(i32, String)> {
    let unknown = || Error::invalid_input(format!("PARTITIONED BY: there is no column {path}"));
    let mut fields = &schema.fields;
    let mut names = Vec::new();
    let mut parts = path.0.iter().peekable();
    while let Some(part) = parts.next() {
        let field = match fields.fields.iter().find(|f| f.name == *part) {
            Some(field) => field,
            None => {
                let folded = part.to_lowercase();
                let mut alike = fields.fields.iter().filter(|f| f.name.to_lowercase() == folded);
                match (alike.next(), alike.next()) {
                    (Some(only), None) => only,
                    _ => return Err(unknown()),
                }
            }
        };
        names.push(field.name.as_str());
        match (&field.field_type, parts.peek()) {
            (_, None) => return Ok((field.id, names.join("."))),
            (Type::Struct(inner), Some(_)) => fields = inner,
            _ => return Err(unknown()),
        }
    }
    Err(unknown())
}

/// The name that Java's `PartitionSpec.Builder` gives.
fn field_name(transform: &Transform, column: &str) -> String {
    let suffix = match transform {
        Transform::Identity | Transform::Unknown(_) => return column.to_owned(),
        Transform::Bucket(_) => "bucket",
        Transform::Truncate(_) => "trunc",
        Transform::Year => "year",
        Transform::Month => "month",
        Transform::Day => "day",
        Transform::Hour => "hour",
        Transform::Void => "null",
    };
    format!("{column}_{suffix}")
}
