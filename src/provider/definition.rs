//! The statement that would create a table as it is, for `SHOW CREATE TABLE`.

use std::fmt::Write;

use super::catalog::schema_name;
use crate::spec::{NestedField, PrimitiveType, Schema, Transform, Type};
use crate::table::Table;

/// `CREATE TABLE …` with columns, comments, partitioning, location and properties, in the syntax this crate reads.
///
/// The location is left out where the catalog chooses it.
pub fn table_definition(table: &Table, schema: &Schema) -> String {
    let mut text = String::from("CREATE TABLE ");
    let parents = schema_name(&table.ident.namespace);
    for part in [Some(table.catalog.name().to_owned()), parents].into_iter().flatten() {
        text.push_str(&identifier(&part));
        text.push('.');
    }
    text.push_str(&identifier(&table.ident.name));
    text.push_str(" (\n");
    let columns: Vec<String> = schema.fields.fields.iter().map(|f| format!("  {}", column(f))).collect();
    text.push_str(&columns.join(",\n"));
    text.push_str("\n)");
    let metadata = &table.metadata;
    let terms: Vec<String> = metadata
        .spec_by_id(metadata.default_spec_id)
        .map(|spec| spec.fields.iter().filter_map(|f| term(&f.transform, &schema.name_of(f.source_id)?)).collect())
        .unwrap_or_default();
    if !terms.is_empty() {
        let _ = write!(text, "\nPARTITIONED BY ({})", terms.join(", "));
    }
    if table.catalog.allows_location() {
        let _ = write!(text, "\nLOCATION {}", string(&metadata.location));
    }
    let version = [("format-version".to_owned(), metadata.format_version.number().to_string())];
    let properties: Vec<String> = version
        .iter()
        .map(|(k, v)| (k, v))
        .chain(&metadata.properties)
        .map(|(key, value)| format!("{} = {}", string(key), string(value)))
        .collect();
    let _ = write!(text, "\nTBLPROPERTIES ({})", properties.join(", "));
    text
}

fn column(field: &NestedField) -> String {
    let mut text = format!("{} {}", identifier(&field.name), type_name(&field.field_type));
    if field.required {
        text.push_str(" NOT NULL");
    }
    if let Some(doc) = &field.doc {
        let _ = write!(text, " COMMENT {}", string(doc));
    }
    text
}

fn type_name(field_type: &Type) -> String {
    match field_type {
        Type::Primitive(primitive) => primitive_name(primitive),
        Type::Struct(s) => {
            let fields: Vec<String> = s.fields.iter().map(|f| column(f)).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        Type::List(l) => format!("ARRAY<{}{}>", type_name(&l.element.field_type), not_null(&l.element)),
        Type::Map(m) => {
            let (key, value) = (type_name(&m.key.field_type), type_name(&m.value.field_type));
            format!("MAP<{key}, {value}{}>", not_null(&m.value))
        }
        Type::Variant => "VARIANT".to_owned(),
    }
}

fn not_null(field: &NestedField) -> &'static str {
    if field.required { " NOT NULL" } else { "" }
}

fn primitive_name(primitive: &PrimitiveType) -> String {
    match primitive {
        PrimitiveType::Boolean => "BOOLEAN".to_owned(),
        PrimitiveType::Int => "INT".to_owned(),
        PrimitiveType::Long => "BIGINT".to_owned(),
        PrimitiveType::Float => "FLOAT".to_owned(),
        PrimitiveType::Double => "DOUBLE".to_owned(),
        PrimitiveType::Decimal { precision, scale } => format!("DECIMAL({precision}, {scale})"),
        PrimitiveType::Date => "DATE".to_owned(),
        PrimitiveType::Time => "TIME".to_owned(),
        PrimitiveType::Timestamp => "TIMESTAMP".to_owned(),
        PrimitiveType::Timestamptz => "TIMESTAMP WITH TIME ZONE".to_owned(),
        PrimitiveType::TimestampNs => "TIMESTAMP(9)".to_owned(),
        PrimitiveType::TimestamptzNs => "TIMESTAMP(9) WITH TIME ZONE".to_owned(),
        PrimitiveType::String => "STRING".to_owned(),
        PrimitiveType::Uuid => "UUID".to_owned(),
        PrimitiveType::Fixed(length) => format!("FIXED({length})"),
        PrimitiveType::Binary => "BINARY".to_owned(),
        PrimitiveType::Unknown => "UNKNOWN".to_owned(),
        PrimitiveType::Geometry(crs) => with_arguments("GEOMETRY", &[crs]),
        PrimitiveType::Geography(crs, algorithm) => with_arguments("GEOGRAPHY", &[crs, algorithm]),
    }
}

fn with_arguments(name: &str, arguments: &[&Option<String>]) -> String {
    let given: Vec<String> = arguments.iter().filter_map(|a| a.as_deref()).map(string).collect();
    if given.is_empty() { name.to_owned() } else { format!("{name}({})", given.join(", ")) }
}

/// `None` for a field that is no longer one.
fn term(transform: &Transform, source: &str) -> Option<String> {
    let source = source.split('.').map(identifier).collect::<Vec<_>>().join(".");
    Some(match transform {
        Transform::Identity => source,
        Transform::Bucket(n) => format!("bucket({n}, {source})"),
        Transform::Truncate(width) => format!("truncate({width}, {source})"),
        Transform::Void | Transform::Unknown(_) => return None,
        other => format!("{other}({source})"),
    })
}

/// An identifier as a statement has to spell it: in double quotes unless it is a plain lower-case word.
fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
