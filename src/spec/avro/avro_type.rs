//! Avro schemas as trees, and the check of rows against them.
//!
//! arrow-avro decodes rows, but loops for ever when a block holds more bytes than its rows take, and builds types of
//! unbounded size. So a schema is parsed here first, within limits, and every row is walked before arrow-avro sees it.
//! What arrow-avro gets is the *physical* schema: positional names, no logical types, no named references; what a value
//! means comes from Iceberg's types. Invariant: rows that pass [`AvroType::skip`] decode without error.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::varint::{read_bytes, read_exact, read_long};

/// Most nodes a schema may have with every named reference put in place; guards against nested doubling.
const MAX_NODES: usize = 20_000;
/// Most bytes of fixed types a row may have: a null one takes its room in a column, too.
const MAX_FIXED_BYTES: usize = 64 * 1024;

/// A node of a schema tree.
#[derive(Debug)]
pub(crate) struct AvroType {
    pub(crate) kind: Kind,
    /// What its attributes say, if it has any that matter.
    pub(crate) notes: Option<Box<Notes>>,
    /// Nodes of the tree, this one included.
    nodes: usize,
    /// Fewest bytes a value takes.
    min_bytes: usize,
    /// Bytes of all fixed types in it.
    fixed_bytes: usize,
}

/// Attributes of a type, as Iceberg and Avro define them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Notes {
    /// `logicalType`.
    pub(crate) logical: String,
    /// `precision` of a decimal.
    pub(crate) precision: Option<u8>,
    /// `scale` of a decimal.
    pub(crate) scale: Option<i8>,
    /// `adjust-to-utc` of a timestamp.
    pub(crate) adjust_to_utc: Option<bool>,
    /// `element-id` of an array.
    pub(crate) element_id: Option<i32>,
    /// `key-id` of a map.
    pub(crate) key_id: Option<i32>,
    /// `value-id` of a map.
    pub(crate) value_id: Option<i32>,
}

impl Notes {
    fn of(object: &serde_json::Map<String, Value>) -> Option<Box<Self>> {
        let number = |key: &str| object.get(key).and_then(Value::as_i64);
        let id = |key: &str| number(key).and_then(|id| i32::try_from(id).ok());
        let notes = Self {
            logical: object.get("logicalType").and_then(Value::as_str).unwrap_or_default().to_owned(),
            precision: number("precision").and_then(|n| u8::try_from(n).ok()),
            scale: number("scale").and_then(|n| i8::try_from(n).ok()),
            adjust_to_utc: object.get("adjust-to-utc").and_then(Value::as_bool),
            element_id: id("element-id"),
            key_id: id("key-id"),
            value_id: id("value-id"),
        };
        (notes != Self::default()).then(|| Box::new(notes))
    }
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Array(Arc<AvroType>),
    Map(Arc<AvroType>),
    Union(Vec<Arc<AvroType>>),
    Record(Vec<AvroField>),
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct AvroField {
    pub(crate) name: String,
    /// Iceberg's `field-id`.
    pub(crate) id: Option<i32>,
    pub(crate) field_type: Arc<AvroType>,
}

impl AvroType {
    /// Parses a schema.
    pub(crate) fn parse(json: &Value) -> Result<Arc<Self>, String> {
        Parser { names: HashMap::new() }.parse(json)
    }

    fn new(kind: Kind) -> Result<Arc<Self>, String> {
        Self::with_notes(kind, None)
    }

    fn with_notes(kind: Kind, notes: Option<Box<Notes>>) -> Result<Arc<Self>, String> {
        let (mut nodes, mut fixed_bytes) = (1usize, 0usize);
        let mut children = |children: &mut dyn Iterator<Item = &Arc<Self>>| {
            for child in children {
                nodes = nodes.saturating_add(child.nodes);
                fixed_bytes = fixed_bytes.saturating_add(child.fixed_bytes);
            }
        };
        let min_bytes = match &kind {
            Kind::Null => 0,
            Kind::Float => 4,
            Kind::Double => 8,
            Kind::Fixed(size) => {
                fixed_bytes = *size;
                *size
            }
            Kind::Array(item) | Kind::Map(item) => {
                children(&mut [item].into_iter());
                if matches!(kind, Kind::Array(_)) && item.min_bytes == 0 {
                    return Err("an array of items without bytes".into());
                }
                1
            }
            Kind::Union(branches) => {
                children(&mut branches.iter());
                1
            }
            Kind::Record(fields) => {
                children(&mut fields.iter().map(|f| &f.field_type));
                fields.iter().fold(0usize, |sum, f| sum.saturating_add(f.field_type.min_bytes))
            }
            _ => 1,
        };
        if nodes > MAX_NODES || fixed_bytes > MAX_FIXED_BYTES {
            return Err("the schema is too large".into());
        }
        Ok(Arc::new(Self { kind, notes, nodes, min_bytes, fixed_bytes }))
    }

    /// What its attributes say of a logical type; empty when they say nothing.
    pub(crate) fn logical(&self) -> &str {
        self.notes.as_ref().map_or("", |notes| &notes.logical)
    }

    /// The type without null: the other branch of a union of null and one type.
    pub(crate) fn non_null(&self) -> &Self {
        match &self.kind {
            Kind::Union(branches) => match &branches[..] {
                [a, b] if matches!(a.kind, Kind::Null) => b,
                [a, b] if matches!(b.kind, Kind::Null) => a,
                _ => self,
            },
            _ => self,
        }
    }

    /// The fields that are not void, each with its position.
    pub(crate) fn physical_fields(&self) -> impl Iterator<Item = (usize, &AvroField)> {
        self.fields().iter().enumerate().filter(|(_, f)| !f.field_type.is_void())
    }

    /// The fields, if this is a record or an optional one.
    pub(crate) fn fields(&self) -> &[AvroField] {
        match &self.non_null().kind {
            Kind::Record(fields) => fields,
            _ => &[],
        }
    }

    /// Whether no value takes any byte: null, or a record of nothing else (an unpartitioned tuple).
    pub(crate) fn is_void(&self) -> bool {
        match &self.kind {
            Kind::Null | Kind::Fixed(0) => true,
            Kind::Record(fields) => fields.iter().all(|f| f.field_type.is_void()),
            _ => false,
        }
    }

    /// Steps over one value, checking it.
    pub(crate) fn skip(&self, data: &mut &[u8]) -> Result<(), String> {
        match &self.kind {
            Kind::Null => {}
            Kind::Boolean => {
                read_exact(data, 1)?;
            }
            Kind::Int => {
                i32::try_from(read_long(data)?).map_err(|_| "a number exceeds 32 bits")?;
            }
            Kind::Long => {
                read_long(data)?;
            }
            Kind::Float => {
                read_exact(data, 4)?;
            }
            Kind::Double => {
                read_exact(data, 8)?;
            }
            Kind::Bytes => {
                read_bytes(data)?;
            }
            Kind::String => {
                std::str::from_utf8(read_bytes(data)?).map_err(|_| "a string is not UTF-8")?;
            }
            Kind::Fixed(size) => {
                read_exact(data, *size)?;
            }
            Kind::Enum(symbols) => {
                let index = read_long(data)?;
                if usize::try_from(index).map_or(true, |i| i >= symbols.len()) {
                    return Err(format!("enum symbol {index} does not exist"));
                }
            }
            Kind::Array(item) => skip_items(data, item.min_bytes, |data| item.skip(data))?,
            Kind::Map(value) => skip_items(data, value.min_bytes.saturating_add(1), |data| {
                std::str::from_utf8(read_bytes(data)?).map_err(|_| "a map key is not UTF-8")?;
                value.skip(data)
            })?,
            Kind::Union(branches) => {
                let index = read_long(data)?;
                let branch = usize::try_from(index).ok().and_then(|i| branches.get(i));
                branch.ok_or_else(|| format!("union branch {index} does not exist"))?.skip(data)?;
            }
            Kind::Record(fields) => {
                for field in fields {
                    field.field_type.skip(data).map_err(|e| format!("{}: {e}", field.name))?;
                }
            }
        }
        Ok(())
    }

    /// Fewest bytes a value takes.
    pub(crate) fn min_bytes(&self) -> usize {
        self.min_bytes
    }

    /// The physical schema; `keep` says which fields of which record stay (nested fields of a dropped field go with
    /// it). Void fields never do: they are not in the bytes, and arrow-avro stumbles over them. Names depend on the
    /// position in the whole tree only, so the schema of all fields and that of some match by name.
    pub(crate) fn physical_json(&self, keep: &dyn Fn(&AvroField) -> bool) -> Value {
        self.physical(keep, &mut 0)
    }

    fn physical(&self, keep: &dyn Fn(&AvroField) -> bool, counter: &mut usize) -> Value {
        *counter += 1;
        let name = format!("n{counter}");
        match &self.kind {
            Kind::Null => json!("null"),
            Kind::Boolean => json!("boolean"),
            Kind::Int => json!("int"),
            Kind::Long => json!("long"),
            Kind::Float => json!("float"),
            Kind::Double => json!("double"),
            Kind::Bytes => json!("bytes"),
            Kind::String => json!("string"),
            Kind::Fixed(size) => json!({"type": "fixed", "name": name, "size": size}),
            Kind::Enum(symbols) => json!({"type": "enum", "name": name, "symbols": symbols}),
            Kind::Array(item) => json!({"type": "array", "items": item.physical(keep, counter)}),
            Kind::Map(value) => json!({"type": "map", "values": value.physical(keep, counter)}),
            Kind::Union(branches) => branches.iter().map(|b| b.physical(keep, counter)).collect(),
            Kind::Record(fields) => {
                let mut kept = Vec::new();
                for (i, field) in fields.iter().enumerate() {
                    let field_type = field.field_type.physical(keep, counter);
                    if keep(field) && !field.field_type.is_void() {
                        kept.push(json!({"name": physical_name(i), "type": field_type}));
                    }
                }
                json!({"type": "record", "name": name, "fields": kept})
            }
        }
    }
}

/// Name of a record's field in the physical schema.
pub(crate) fn physical_name(index: usize) -> String {
    format!("f{index}")
}

/// Steps over the blocks of an array or map whose items take `min_bytes` at least.
fn skip_items(
    data: &mut &[u8],
    min_bytes: usize,
    mut skip: impl FnMut(&mut &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    loop {
        let mut count = read_long(data)?;
        if count == 0 {
            return Ok(());
        }
        if count < 0 {
            count = count.checked_neg().ok_or("an item count is out of range")?;
            let size = read_long(data)?;
            if usize::try_from(size).map_or(true, |s| s > data.len()) {
                return Err(format!("items of {size} bytes exceed the data"));
            }
        }
        if count > (data.len() / min_bytes.max(1)) as i64 {
            return Err(format!("{count} items exceed the data"));
        }
        for _ in 0..count {
            skip(data)?;
        }
    }
}

struct Parser {
    /// Named types seen; `None` while one is being defined.
    names: HashMap<String, Option<Arc<AvroType>>>,
}

impl Parser {
    fn parse(&mut self, json: &Value) -> Result<Arc<AvroType>, String> {
        match json {
            Value::String(name) => self.named(name, None),
            Value::Array(branches) => {
                AvroType::new(Kind::Union(branches.iter().map(|b| self.parse(b)).collect::<Result<_, _>>()?))
            }
            Value::Object(object) => match object.get("type") {
                Some(Value::String(name)) => self.complex(name, object),
                Some(inner) => self.parse(inner),
                None => Err("a type has no name".into()),
            },
            _ => Err("a type is neither text, list nor object".into()),
        }
    }

    fn named(&self, name: &str, notes: Option<Box<Notes>>) -> Result<Arc<AvroType>, String> {
        let kind = match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bytes" => Kind::Bytes,
            "string" => Kind::String,
            _ => {
                return match self.names.get(unqualified(name)) {
                    Some(Some(known)) => Ok(known.clone()),
                    Some(None) => Err(format!("type {name:?} contains itself")),
                    None => Err(format!("type {name:?} is not defined")),
                };
            }
        };
        AvroType::with_notes(kind, notes)
    }

    fn complex(&mut self, kind: &str, object: &serde_json::Map<String, Value>) -> Result<Arc<AvroType>, String> {
        let get = |key: &str| object.get(key).ok_or_else(|| format!("a type {kind:?} has no {key:?}"));
        match kind {
            "array" => return AvroType::with_notes(Kind::Array(self.parse(get("items")?)?), Notes::of(object)),
            "map" => return AvroType::with_notes(Kind::Map(self.parse(get("values")?)?), Notes::of(object)),
            "record" | "fixed" | "enum" => {}
            _ => return self.named(kind, Notes::of(object)),
        }
        let name = unqualified(get("name")?.as_str().unwrap_or_default()).to_owned();
        self.names.insert(name.clone(), None);
        let parsed = match kind {
            "fixed" => {
                let size = get("size")?.as_u64().and_then(|s| usize::try_from(s).ok());
                Kind::Fixed(size.ok_or_else(|| format!("fixed type {name:?} has no valid size"))?)
            }
            "enum" => Kind::Enum(
                get("symbols")?.as_array().into_iter().flatten().filter_map(|s| s.as_str().map(Into::into)).collect(),
            ),
            _ => {
                let mut fields = Vec::new();
                for field in get("fields")?.as_array().into_iter().flatten() {
                    let field_name = field.get("name").and_then(Value::as_str).ok_or("a field has no name")?;
                    let field_type = field.get("type").ok_or_else(|| format!("field {field_name:?} has no type"))?;
                    fields.push(AvroField {
                        name: field_name.to_owned(),
                        id: field.get("field-id").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok()),
                        field_type: self.parse(field_type).map_err(|e| format!("{field_name}: {e}"))?,
                    });
                }
                Kind::Record(fields)
            }
        };
        let parsed = AvroType::with_notes(parsed, Notes::of(object))?;
        self.names.insert(name, Some(parsed.clone()));
        Ok(parsed)
    }
}

/// A name without its namespace: writers refer to a type with or without it.
fn unqualified(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: Value) -> Result<Arc<AvroType>, String> {
        AvroType::parse(&json)
    }

    #[test]
    fn resolves_names_and_refuses_endless_types() {
        let fixed = json!({"type": "fixed", "name": "a.u", "size": 16});
        let record = json!({"type": "record", "name": "r", "fields": [
            {"name": "x", "type": ["null", fixed], "field-id": 7}, {"name": "y", "type": "u"}]});
        let parsed = parse(record).unwrap();
        assert_eq!(parsed.fields()[0].id, Some(7));
        assert_eq!(parsed.min_bytes, 17);
        let own = json!({"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "r"]}]});
        assert!(parse(own).unwrap_err().contains("itself"));
        let mut fields = vec![json!({"name": "f", "type": {"type": "record", "name": "t0", "fields": []}})];
        for i in 1..64 {
            let inner = format!("t{}", i - 1);
            fields.push(json!({"name": "f", "type": {"type": "record", "name": format!("t{i}"), "fields": [
                {"name": "a", "type": inner}, {"name": "b", "type": inner}]}}));
        }
        assert!(parse(json!({"type": "record", "name": "r", "fields": fields})).unwrap_err().contains("too large"));
        assert!(parse(json!({"type": "array", "items": "null"})).is_err());
        assert!(parse(json!({"type": "fixed", "name": "f", "size": 1u64 << 40})).is_err());
    }

    #[test]
    fn walks_values_and_finds_damage() {
        let list = parse(json!({"type": "array", "items": ["null", "string"]})).unwrap();
        let mut data = &[4, 0, 2, 2, b'x', 3, 4, 2, 2, b'y', b'z', 0][..];
        // Second block: -2 items of 2 bytes, which are not there as announced.
        assert!(list.skip(&mut data).is_err());
        let mut data = &[2, 2, 2, b'x', 0, 9][..];
        list.skip(&mut data).unwrap();
        assert_eq!(data, [9]);
        for bad in [&[2, 2, 2, 0xff, 0][..], &[2, 4, 0][..], &[0x80, 0x80, 4, 0, 0][..], &[2, 2, 9, b'x'][..]] {
            assert!(list.skip(&mut &bad[..]).is_err(), "{bad:?}");
        }
        assert!(parse(json!("int")).unwrap().skip(&mut &[0xff, 0xff, 0xff, 0xff, 0x7f][..]).is_err());
    }

    #[test]
    fn physical_schema_names_by_position() {
        let parsed = parse(json!({"type": "record", "name": "x", "fields": [
            {"name": "a", "type": {"type": "int", "logicalType": "date"}, "field-id": 1},
            {"name": "ü", "type": {"type": "fixed", "name": "q", "size": 4, "logicalType": "decimal"}, "field-id": 2},
            {"name": "c", "type": "q", "field-id": 3}]}))
        .unwrap();
        let kept = parsed.physical_json(&|f| f.id != Some(2));
        assert_eq!(
            kept,
            json!({"type": "record", "name": "n1", "fields": [
                {"name": "f0", "type": "int"}, {"name": "f2", "type": {"type": "fixed", "name": "n4", "size": 4}}]})
        );
    }
}
