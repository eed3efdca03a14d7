//! Name mapping: field ids for files that carry none.
//!
//! Implements the spec section "Column Projection" and "Appendix C: Name Mapping Serialization".

use serde_json::{Value, json};

use super::json::Node;
use super::schema::Schema;
use super::types::{NestedField, Type};
use crate::{Error, Result};

/// Names that stand for one field, and the mapping of what is inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedField {
    /// The field; `None` when files have a column that the table has not.
    pub field_id: Option<i32>,
    /// Every name the field has in files.
    pub names: Vec<String>,
    /// Fields inside: of a struct by name, of a list under `element`, of a map under `key` and `value`.
    pub fields: Vec<MappedField>,
}

/// A table's mapping from names to field ids (property `schema.name-mapping.default`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameMapping {
    /// The columns.
    pub fields: Vec<MappedField>,
}

impl NameMapping {
    /// Reads the property's JSON. `DataInvalid` names the place.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| Error::data_invalid("name mapping: not a JSON document").with_source(e))?;
        Ok(Self { fields: read_fields(&Node::root("name mapping", &value))? })
    }

    /// The mapping that knows every field of a schema by its present name.
    pub fn from_schema(schema: &Schema) -> Self {
        Self { fields: schema.fields.fields.iter().map(|f| mapped(f)).collect() }
    }

    /// The mapping as the property's JSON.
    pub fn to_json(&self) -> Value {
        Value::Array(self.fields.iter().map(field_json).collect())
    }

    /// Id of the field at this path of names in a file, as files spell them (case-sensitive). `None` when the mapping does
    /// not know it, and then the column is to be ignored.
    pub fn id_for(&self, path: &[&str]) -> Option<i32> {
        let (last, parents) = path.split_last()?;
        let mut fields = self.fields.as_slice();
        for name in parents {
            fields = &by_name(fields, name)?.fields;
        }
        by_name(fields, last)?.field_id
    }
}

fn by_name<'a>(fields: &'a [MappedField], name: &str) -> Option<&'a MappedField> {
    fields.iter().find(|f| f.names.iter().any(|n| n == name))
}

fn read_fields(node: &Node<'_, '_>) -> Result<Vec<MappedField>> {
    let read = |node: Node<'_, '_>| {
        Ok(MappedField {
            field_id: node.opt_i32("field-id")?,
            names: node.opt("names")?.map(|n| n.strings()).transpose()?.unwrap_or_default(),
            fields: node.opt("fields")?.map(|n| read_fields(&n)).transpose()?.unwrap_or_default(),
        })
    };
    node.items()?.map(read).collect()
}

fn field_json(field: &MappedField) -> Value {
    let mut object = json!({"names": field.names});
    if let Some(id) = field.field_id {
        object["field-id"] = json!(id);
    }
    if !field.fields.is_empty() {
        object["fields"] = field.fields.iter().map(field_json).collect();
    }
    object
}

fn mapped(field: &NestedField) -> MappedField {
    let fields = match &field.field_type {
        Type::Struct(inner) => inner.fields.iter().map(|f| mapped(f)).collect(),
        Type::List(list) => vec![mapped(&list.element)],
        Type::Map(map) => vec![mapped(&map.key), mapped(&map.value)],
        Type::Primitive(_) | Type::Variant => Vec::new(),
    };
    MappedField { field_id: Some(field.id), names: vec![field.name.clone()], fields }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    const MAPPING: &str = r#"[ {"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name", "title"]},
        {"field-id": 4, "names": ["st"], "fields": [{"field-id": 5, "names": ["a"]}, {"names": ["gone"]}]} ]"#;

    #[test]
    fn finds_ids_by_any_name() {
        let mapping = NameMapping::parse(MAPPING).unwrap();
        assert_eq!(mapping.id_for(&["title"]), Some(2));
        assert_eq!(mapping.id_for(&["name"]), Some(2));
        assert_eq!(mapping.id_for(&["st", "a"]), Some(5));
        for unknown in [&["a"][..], &["st", "gone"], &["st", "b"], &["id", "x"], &["ID"], &[]] {
            assert_eq!(mapping.id_for(unknown), None, "{unknown:?}");
        }
        assert_eq!(mapping.to_json(), serde_json::from_str::<Value>(MAPPING).unwrap());
    }

    #[test]
    fn comes_from_a_schema() {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [
            {"id": 1, "name": "l", "required": false, "type":
                {"type": "list", "element-id": 2, "element": "int", "element-required": false}}]}))
        .unwrap();
        assert_eq!(NameMapping::from_schema(&schema).id_for(&["l", "element"]), Some(2));
    }

    #[test]
    fn nonsense_is_data_invalid() {
        for text in ["", "{}", "[1]", r#"[{"field-id": "x"}]"#, r#"[{"field-id": 99999999999}]"#] {
            assert_eq!(NameMapping::parse(text).unwrap_err().kind(), ErrorKind::DataInvalid, "{text}");
        }
        let bomb = format!("{}1{}", r#"[{"fields":"#.repeat(10_000), "}]".repeat(10_000));
        assert_eq!(NameMapping::parse(&bomb).unwrap_err().kind(), ErrorKind::DataInvalid);
    }
}
