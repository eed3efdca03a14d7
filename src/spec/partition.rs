//! Partition specs and partition tuples.
//!
//! Implements the spec section "Partitioning". Invariant: a tuple is only ever read under the spec that made it, and its
//! values stand in that spec's field order.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::json::Node;
use super::literal::Literal;
use super::table_metadata::TableMetadata;
use super::transform::Transform;
use super::types::{NestedField, PrimitiveType, StructType};
use crate::{Error, Result};

/// Partition field ids start above this one; the last id given out in a table without any.
pub const LAST_UNASSIGNED_PARTITION_ID: i32 = 999;

/// One field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionField {
    /// Field id of the source column.
    pub source_id: i32,
    /// Partition field id, from 1000, unique in the table.
    pub field_id: i32,
    /// Name of the partition field.
    pub name: String,
    /// Transform of the source value.
    pub transform: Transform,
}

/// How a table's files are partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionSpec {
    /// Id among the table's specs.
    pub spec_id: i32,
    /// The fields, in order; empty when unpartitioned.
    pub fields: Vec<PartitionField>,
}

/// Partition values in the field order of a spec; `None` is null. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PartitionTuple(pub Arc<[Option<Literal>]>);

/// A spec id with a tuple of that spec: the identity of one partition of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// The spec that made the tuple.
    pub spec_id: i32,
    /// The values.
    pub tuple: PartitionTuple,
}

impl PartitionSpec {
    /// Spec 0 without fields.
    pub fn unpartitioned() -> Self {
        Self { spec_id: 0, fields: Vec::new() }
    }

    /// Whether all rows go to one partition: no field, or dropped (`void`) fields only. A spec of void fields is
    /// unpartitioned yet its tuples have fields.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|f| f.transform == Transform::Void)
    }

    /// Greatest partition field id, 999 for none.
    pub fn highest_field_id(&self) -> i32 {
        self.fields.iter().map(|f| f.field_id).fold(LAST_UNASSIGNED_PARTITION_ID, i32::max)
    }

    /// Whether both partition alike: equal fields up to partition field ids and spec id.
    pub fn same_fields(&self, other: &Self) -> bool {
        let key = |f: &PartitionField| (f.source_id, f.name.clone(), f.transform.clone());
        self.fields.iter().map(key).eq(other.fields.iter().map(key))
    }

    /// Type of this spec's tuples: one optional field a partition field. The source column is looked up in the current
    /// schema, then in the table's other schemas, newest first, because an old spec may name a dropped column; a
    /// column that no schema ever had gives `unknown`, and so does a source the transform cannot take.
    pub fn partition_type(&self, metadata: &TableMetadata) -> StructType {
        let fields = self.fields.iter().map(|f| {
            let result = match &f.transform {
                // An unknown transform's values are kept as text, as the reference implementation reads them.
                Transform::Unknown(_) => Some(PrimitiveType::String),
                transform => metadata
                    .field_of_any_schema(f.source_id)
                    .and_then(|source| source.field_type.as_primitive())
                    .and_then(|source| transform.result_type(source)),
            };
            Arc::new(NestedField::new(f.field_id, f.name.clone(), false, result.unwrap_or(PrimitiveType::Unknown)))
        });
        StructType { fields: fields.collect() }
    }

    /// Folder of a partition below the data location: `name=value` joined by `/`, names and values form-encoded as Java's
    /// `URLEncoder` does, null as `null`; empty for a spec without fields. `types` is [`PartitionSpec::partition_type`].
    /// For people only: nothing reads values back from a path.
    pub fn partition_path(&self, tuple: &PartitionTuple, types: &StructType) -> String {
        let mut path = String::new();
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                path.push('/');
            }
            let value = tuple.0.get(i).and_then(Option::as_ref);
            let value_type = types.fields.get(i).and_then(|f| f.field_type.as_primitive());
            let human = field.transform.to_human(value, value_type.unwrap_or(&PrimitiveType::Unknown));
            form_encode(&field.name, &mut path);
            path.push('=');
            form_encode(&human, &mut path);
        }
        path
    }

    /// Reads a spec as table metadata and the REST protocol hold it. `DataInvalid` names the field. When no field has an
    /// id, as in old v1 tables, they count from 1000.
    pub fn from_json(value: &Value) -> Result<Self> {
        Self::from_node(&Node::root("partition spec", value))
    }

    pub(crate) fn from_node(node: &Node<'_, '_>) -> Result<Self> {
        let fields = read_fields(&node.req("fields")?, true)?;
        Ok(Self { spec_id: node.opt_i32("spec-id")?.unwrap_or(0), fields })
    }

    /// Reads a spec whose field ids may be left to the table, as a request to add one holds it: those read as 0.
    pub(crate) fn from_unbound_node(node: &Node<'_, '_>) -> Result<Self> {
        let fields = read_fields(&node.req("fields")?, false)?;
        Ok(Self { spec_id: node.opt_i32("spec-id")?.unwrap_or(0), fields })
    }

    /// Reads the bare array of fields of v1 metadata (`partition-spec`) and of manifest headers.
    pub fn from_fields_json(spec_id: i32, value: &Value) -> Result<Self> {
        Self::from_fields_node(spec_id, &Node::root("partition spec", value))
    }

    pub(crate) fn from_fields_node(spec_id: i32, node: &Node<'_, '_>) -> Result<Self> {
        Ok(Self { spec_id, fields: read_fields(node, true)? })
    }

    /// The spec as JSON. A field id of 0 is left out: the table is to give one.
    pub fn to_json(&self) -> Value {
        json!({"spec-id": self.spec_id, "fields": self.fields_json()})
    }

    /// The bare array of fields, as v1 metadata and manifest headers hold it.
    pub fn fields_json(&self) -> Value {
        let field = |f: &PartitionField| {
            let mut object = json!({"name": f.name, "transform": f.transform.to_string(), "source-id": f.source_id});
            if f.field_id != 0 {
                object["field-id"] = json!(f.field_id);
            }
            object
        };
        Value::Array(self.fields.iter().map(field).collect())
    }
}

/// Reads fields; with `assign`, ids that all fields lack count from 1000, else they read as 0.
fn read_fields(node: &Node<'_, '_>, assign: bool) -> Result<Vec<PartitionField>> {
    let mut fields = Vec::new();
    let mut without_id = 0usize;
    for item in node.items()? {
        let field_id = item.opt_i32("field-id")?;
        without_id += usize::from(field_id.is_none());
        fields.push(PartitionField {
            source_id: read_source_id(&item)?,
            field_id: field_id.unwrap_or(0),
            name: item.req("name")?.str()?.to_string(),
            transform: read_transform(&item)?,
        });
    }
    if assign && without_id > 0 {
        if without_id < fields.len() {
            return Err(node.error("some partition fields have a field-id and some have none"));
        }
        for (field, id) in fields.iter_mut().zip(LAST_UNASSIGNED_PARTITION_ID + 1..) {
            field.field_id = id;
        }
    }
    let mut ids: Vec<i32> = fields.iter().map(|f| f.field_id).filter(|id| *id != 0).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|w| w[0] == w[1]) {
        return Err(node.error(format_args!("two partition fields have id {}", pair[0])));
    }
    Ok(fields)
}

/// The transform of a partition or sort field.
pub(crate) fn read_transform(node: &Node<'_, '_>) -> Result<Transform> {
    let transform = node.req("transform")?;
    Transform::parse(transform.str()?).map_err(|e| transform.error(e.message()))
}

/// The source column of a partition or sort field: `source-id`, or v3's `source-ids` when it holds one id.
pub(crate) fn read_source_id(node: &Node<'_, '_>) -> Result<i32> {
    if let Some(id) = node.opt("source-id")? {
        return id.i32();
    }
    let Some(ids) = node.opt("source-ids")? else { return node.req("source-id")?.i32() };
    match ids.items()?.map(|n| n.i32()).collect::<Result<Vec<_>>>()?.as_slice() {
        [id] => Ok(*id),
        [] => Err(ids.error("names no source column")),
        _ => Err(Error::unsupported(ids.error("transforms of several columns").message())),
    }
}

/// Encodes as an HTML form does (`java.net.URLEncoder`, UTF-8): letters, digits and `.-*_` stay, a space becomes `+`, every
/// other byte `%XX`.
fn form_encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}
