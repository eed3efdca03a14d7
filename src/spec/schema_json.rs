//! Schemas and types as JSON.
//!
//! Implements the spec section "Appendix C: JSON serialization, Schemas" and "Default values".

use std::sync::Arc;

use serde_json::{Value, json};

use super::json::{self, Node};
use super::literal::Literal;
use super::schema::Schema;
use super::types::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};
use crate::{Error, Result};

/// How deep types may nest. The JSON parser stops documents at 128 levels; this guards values built otherwise.
const MAX_DEPTH: usize = 128;

impl Schema {
    /// Reads a schema as table metadata, manifests and the REST protocol hold it. A missing schema id reads as 0.
    /// `DataInvalid` names the field.
    pub fn from_json(value: &Value) -> Result<Self> {
        Self::from_node(&Node::root("schema", value))
    }

    pub(crate) fn from_node(node: &Node<'_, '_>) -> Result<Self> {
        if let Some(kind) = node.opt("type")?
            && kind.str()? != "struct"
        {
            return Err(kind.error("a schema is a struct"));
        }
        let schema = Self {
            schema_id: node.opt_i32("schema-id")?.unwrap_or(0),
            fields: struct_fields(node, 0)?,
            identifier_field_ids: node.i32_list("identifier-field-ids")?,
        };
        schema.validate().map_err(|e| node.error(e.message()))?;
        Ok(schema)
    }

    /// The schema as JSON, with its id.
    pub fn to_json(&self) -> Value {
        let mut object = struct_json(&self.fields);
        object["schema-id"] = json!(self.schema_id);
        if !self.identifier_field_ids.is_empty() {
            object["identifier-field-ids"] = json!(self.identifier_field_ids);
        }
        object
    }
}

impl Type {
    /// Reads a type: a string for primitives, an object for nested types.
    pub fn from_json(value: &Value) -> Result<Self> {
        read_type(&Node::root("type", value), 0)
    }

    /// The type as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Primitive(p) => Value::String(p.to_string()),
            Self::Variant => json!("variant"),
            Self::Struct(fields) => struct_json(fields),
            Self::List(list) => json!({
                "type": "list",
                "element-id": list.element.id,
                "element": list.element.field_type.to_json(),
                "element-required": list.element.required,
            }),
            Self::Map(map) => json!({
                "type": "map",
                "key-id": map.key.id,
                "key": map.key.field_type.to_json(),
                "value-id": map.value.id,
                "value": map.value.field_type.to_json(),
                "value-required": map.value.required,
            }),
        }
    }
}

fn struct_json(fields: &StructType) -> Value {
    json!({"type": "struct", "fields": fields.fields.iter().map(|f| field_json(f)).collect::<Vec<_>>()})
}

fn field_json(field: &NestedField) -> Value {
    let default = |literal: &Option<Literal>| match (literal, &field.field_type) {
        (Some(literal), Type::Primitive(p)) => Some(literal.to_json(p)),
        _ => None,
    };
    Value::Object(json::object([
        ("id", Some(json!(field.id))),
        ("name", Some(json!(field.name))),
        ("required", Some(json!(field.required))),
        ("type", Some(field.field_type.to_json())),
        ("doc", field.doc.as_ref().map(|doc| json!(doc))),
        ("initial-default", default(&field.initial_default)),
        ("write-default", default(&field.write_default)),
    ]))
}

fn struct_fields(node: &Node<'_, '_>, depth: usize) -> Result<StructType> {
    let fields = node.req("fields")?;
    let fields = fields.items()?.map(|f| read_field(&f, depth).map(Arc::new)).collect::<Result<_>>()?;
    Ok(StructType { fields })
}

fn read_field(node: &Node<'_, '_>, depth: usize) -> Result<NestedField> {
    let field_type = read_type(&node.req("type")?, depth + 1)?;
    Ok(NestedField {
        id: node.req("id")?.i32()?,
        name: node.req("name")?.str()?.to_string(),
        required: node.req("required")?.bool()?,
        doc: node.opt_string("doc")?,
        initial_default: read_default(node, "initial-default", &field_type)?,
        write_default: read_default(node, "write-default", &field_type)?,
        field_type,
    })
}

fn read_default(node: &Node<'_, '_>, key: &str, field_type: &Type) -> Result<Option<Literal>> {
    let Some(value) = node.opt(key)? else { return Ok(None) };
    match field_type {
        Type::Primitive(p) => Literal::from_json(p, value.value()).map(Some).map_err(|e| value.error(e.message())),
        _ => Err(Error::unsupported(value.error(format_args!("a default of type {field_type}")).message())),
    }
}

fn read_type(node: &Node<'_, '_>, depth: usize) -> Result<Type> {
    if depth > MAX_DEPTH {
        return Err(node.error("types nest too deep"));
    }
    if let Value::String(text) = node.value() {
        return match text.trim() {
            t if t.eq_ignore_ascii_case("variant") => Ok(Type::Variant),
            t => t.parse::<PrimitiveType>().map(Type::from).map_err(|e| node.error(e.message())),
        };
    }
    let kind = node.req("type")?;
    match kind.str()? {
        "struct" => Ok(Type::Struct(struct_fields(node, depth)?)),
        "list" => {
            let element = part(node, ["element", "element-id", "element-required"], depth)?;
            Ok(Type::List(Box::new(ListType { element })))
        }
        "map" => {
            let key = part(node, ["key", "key-id", ""], depth)?;
            let value = part(node, ["value", "value-id", "value-required"], depth)?;
            Ok(Type::Map(Box::new(MapType { key, value })))
        }
        other => Err(kind.error(format_args!("unknown nested type {other:?}"))),
    }
}

/// The element, key or value of a list or map; a part without a `required` member of its own is required.
fn part(node: &Node<'_, '_>, [name, id, required]: [&'static str; 3], depth: usize) -> Result<Arc<NestedField>> {
    let field_type = read_type(&node.req(name)?, depth + 1)?;
    let required = if required.is_empty() { true } else { node.req(required)?.bool()? };
    Ok(Arc::new(NestedField::new(node.req(id)?.i32()?, name, required, field_type)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn nested() -> Value {
        json!({
            "type": "struct", "schema-id": 4, "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "id", "required": true, "type": "long", "doc": "the key"},
                {"id": 2, "name": "d", "required": false, "type": "decimal(9, 2)"},
                {"id": 3, "name": "v", "required": false, "type": "variant"},
                {"id": 4, "name": "l", "required": false, "type": {
                    "type": "list", "element-id": 5, "element-required": true, "element": {
                        "type": "struct", "fields": [{"id": 6, "name": "x", "required": false, "type": "fixed[3]"}]}}},
                {"id": 7, "name": "m", "required": false, "type": {
                    "type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "uuid", "value-required": false}},
            ],
        })
    }

    #[test]
    fn nested_schemas_survive() {
        let schema = Schema::from_json(&nested()).unwrap();
        assert_eq!(schema.to_json(), nested());
        assert!(schema.field_by_name("m.key").unwrap().required);
        assert!(schema.field_by_name("l.element").unwrap().required);
    }

    #[test]
    fn decimals_print_with_a_space() {
        let mut value = nested();
        value["fields"][1]["type"] = json!("decimal(9,2)");
        assert_eq!(Schema::from_json(&value).unwrap().to_json(), nested());
    }

    #[test]
    fn bad_schemas_name_the_field() {
        let cases: [(&str, Value, &str); 8] = [
            ("/fields/0/id", json!(4294967296i64), "fields[0].id"),
            ("/fields/0/id", json!(2), "both have id 2"),
            ("/fields/0/type", json!("lng"), "fields[0].type"),
            ("/fields/0/required", json!("yes"), "fields[0].required"),
            ("/fields/3/type/element", Value::Null, "fields[3].type.element"),
            ("/fields/3/type/type", json!("array"), "fields[3].type.type"),
            ("/fields/4/type/value-required", Value::Null, "fields[4].type.value-required"),
            ("/fields", json!({}), "fields"),
        ];
        for (pointer, replacement, wanted) in cases {
            let mut value = nested();
            *value.pointer_mut(pointer).unwrap() = replacement;
            let e = Schema::from_json(&value).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::DataInvalid, "{pointer}");
            assert!(e.message().contains(wanted), "{pointer}: {e}");
        }
    }

    #[test]
    fn deep_types_are_refused() {
        let mut t = json!("int");
        for i in 0..1000 {
            t = json!({"type": "list", "element-id": i + 2, "element": t, "element-required": false});
        }
        let schema = json!({"type": "struct", "fields": [{"id": 1, "name": "a", "required": false, "type": t}]});
        let e = Schema::from_json(&schema).unwrap_err();
        assert!(e.message().contains("too deep"));
    }
}
