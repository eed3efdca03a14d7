//! The record types of manifests and manifest lists, and Iceberg types as Avro schemas.
//!
//! Implements the tables of "Manifests" and "Manifest Lists" and "Appendix A: Avro". Invariant: per format version the
//! same fields, in the same order, with the same ids and requiredness as Iceberg Java writes.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::partition_value::decimal_bytes;
use crate::spec::{FormatVersion, ListType, MapType, NestedField, PrimitiveType, StructType, Type};

const INT: Type = Type::Primitive(PrimitiveType::Int);
const LONG: Type = Type::Primitive(PrimitiveType::Long);
const STRING: Type = Type::Primitive(PrimitiveType::String);
const BINARY: Type = Type::Primitive(PrimitiveType::Binary);
const BOOLEAN: Type = Type::Primitive(PrimitiveType::Boolean);

fn field(id: i32, name: &str, required: bool, field_type: Type, doc: &str) -> Arc<NestedField> {
    let mut field = NestedField::new(id, name, required, field_type);
    field.doc = (!doc.is_empty()).then(|| doc.to_owned());
    Arc::new(field)
}

fn required(id: i32, name: &str, field_type: Type, doc: &str) -> Arc<NestedField> {
    field(id, name, true, field_type, doc)
}

fn optional(id: i32, name: &str, field_type: Type, doc: &str) -> Arc<NestedField> {
    field(id, name, false, field_type, doc)
}

fn map(key_id: i32, value_id: i32, value: Type) -> Type {
    Type::Map(Box::new(MapType {
        key: required(key_id, "key", INT, ""),
        value: required(value_id, "value", value, ""),
    }))
}

fn list(element_id: i32, element: Type) -> Type {
    Type::List(Box::new(ListType { element: required(element_id, "element", element, "") }))
}

/// Type of a manifest's rows.
pub(super) fn manifest_entry_type(version: FormatVersion, partition: &StructType) -> StructType {
    let mut fields = vec![required(0, "status", INT, ""), optional(1, "snapshot_id", LONG, "")];
    if version >= FormatVersion::V2 {
        fields.push(optional(3, "sequence_number", LONG, ""));
        fields.push(optional(4, "file_sequence_number", LONG, ""));
    }
    fields.push(required(2, "data_file", Type::Struct(data_file_type(version, partition)), ""));
    StructType { fields }
}

fn data_file_type(version: FormatVersion, partition: &StructType) -> StructType {
    let (v2, v3) = (version >= FormatVersion::V2, version >= FormatVersion::V3);
    let mut fields = Vec::new();
    if v2 {
        fields.push(required(
            134,
            "content",
            INT,
            "Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
        ));
    }
    fields.extend([
        required(100, "file_path", STRING, "Location URI with FS scheme"),
        required(101, "file_format", STRING, "File format name: avro, orc, or parquet"),
        required(
            102,
            "partition",
            Type::Struct(partition.clone()),
            "Partition data tuple, schema based on the partition spec",
        ),
        required(103, "record_count", LONG, "Number of records in the file"),
        required(104, "file_size_in_bytes", LONG, "Total file size in bytes"),
    ]);
    if !v2 {
        fields.push(required(105, "block_size_in_bytes", LONG, ""));
    }
    fields.extend([
        optional(108, "column_sizes", map(117, 118, LONG), "Map of column id to total size on disk"),
        optional(109, "value_counts", map(119, 120, LONG), "Map of column id to total count, including null and NaN"),
        optional(110, "null_value_counts", map(121, 122, LONG), "Map of column id to null value count"),
        optional(
            137,
            "nan_value_counts",
            map(138, 139, LONG),
            "Map of column id to number of NaN values in the column",
        ),
        optional(125, "lower_bounds", map(126, 127, BINARY), "Map of column id to lower bound"),
        optional(128, "upper_bounds", map(129, 130, BINARY), "Map of column id to upper bound"),
        optional(131, "key_metadata", BINARY, "Encryption key metadata blob"),
        optional(132, "split_offsets", list(133, LONG), "Splittable offsets"),
    ]);
    if v2 {
        fields.push(optional(135, "equality_ids", list(136, INT), "Equality comparison field IDs"));
    }
    fields.push(optional(140, "sort_order_id", INT, "Sort order ID"));
    if v3 {
        fields.push(optional(142, "first_row_id", LONG, "The first row ID assigned to the first row in the data file"));
    }
    if v2 {
        fields.push(optional(
            143,
            "referenced_data_file",
            STRING,
            "Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
        ));
    }
    if v3 {
        fields.push(optional(144, "content_offset", LONG, "The offset in the file where the content starts"));
        fields.push(optional(
            145,
            "content_size_in_bytes",
            LONG,
            "The length of referenced content stored in the file",
        ));
    }
    StructType { fields }
}

/// Type of a manifest list's rows.
pub(super) fn manifest_file_type(version: FormatVersion) -> StructType {
    let v2 = version >= FormatVersion::V2;
    let summary = StructType {
        fields: vec![
            required(509, "contains_null", BOOLEAN, "True if any file has a null partition value"),
            optional(518, "contains_nan", BOOLEAN, "True if any file has a nan partition value"),
            optional(510, "lower_bound", BINARY, "Partition lower bound for all files"),
            optional(511, "upper_bound", BINARY, "Partition upper bound for all files"),
        ],
    };
    let partitions = optional(507, "partitions", list(508, Type::Struct(summary)), "Summary for each partition");
    let file_counts = [
        field(504, "added_files_count", v2, INT, "Added entry count"),
        field(505, "existing_files_count", v2, INT, "Existing entry count"),
        field(506, "deleted_files_count", v2, INT, "Deleted entry count"),
    ];
    let row_counts = [
        field(512, "added_rows_count", v2, LONG, "Added rows count"),
        field(513, "existing_rows_count", v2, LONG, "Existing rows count"),
        field(514, "deleted_rows_count", v2, LONG, "Deleted rows count"),
    ];
    let mut fields = vec![
        required(500, "manifest_path", STRING, "Location URI with FS scheme"),
        required(501, "manifest_length", LONG, "Total file size in bytes"),
        required(502, "partition_spec_id", INT, "Spec ID used to write"),
    ];
    if v2 {
        fields.extend([
            required(517, "content", INT, "Contents of the manifest: 0=data, 1=deletes"),
            required(515, "sequence_number", LONG, "Sequence number when the manifest was added"),
            required(516, "min_sequence_number", LONG, "Lowest sequence number in the manifest"),
        ]);
    }
    fields.push(required(503, "added_snapshot_id", LONG, "Snapshot ID that added the manifest"));
    fields.extend(file_counts);
    if v2 {
        fields.extend(row_counts);
        fields.push(partitions);
    } else {
        fields.push(partitions);
        fields.extend(row_counts);
    }
    fields.push(optional(519, "key_metadata", BINARY, "Encryption key metadata blob"));
    if version >= FormatVersion::V3 {
        fields.push(optional(520, "first_row_id", LONG, "Starting row ID to assign to new rows in ADDED data files"));
    }
    StructType { fields }
}

/// The Avro schema of a record type.
pub(super) fn avro_schema(record: &StructType, name: &str) -> Value {
    AvroWriter { defined: HashSet::new() }.record(record, name.to_owned())
}

struct AvroWriter {
    /// Names of the types defined so far. Avro allows each one definition, and PyIceberg knows no use by name: a second
    /// one of equal shape gets a name of its own.
    defined: HashSet<String>,
}

impl AvroWriter {
    fn record(&mut self, record: &StructType, name: String) -> Value {
        let fields: Vec<Value> = record.fields.iter().map(|f| self.field(f)).collect();
        json!({"type": "record", "name": name, "fields": fields})
    }

    fn field(&mut self, field: &NestedField) -> Value {
        let value_type = self.value_type(&field.field_type, field.id);
        let mut json = Map::new();
        let name = avro_name(&field.name);
        if name != field.name {
            json.insert("iceberg-field-name".into(), json!(field.name));
        }
        json.insert("name".into(), json!(name));
        if field.required || value_type == "null" {
            json.insert("type".into(), value_type);
        } else {
            json.insert("type".into(), json!(["null", value_type]));
        }
        if !field.required {
            json.insert("default".into(), Value::Null);
        }
        if let Some(doc) = &field.doc {
            json.insert("doc".into(), json!(doc));
        }
        json.insert("field-id".into(), json!(field.id));
        Value::Object(json)
    }

    fn value_type(&mut self, value_type: &Type, id: i32) -> Value {
        match value_type {
            Type::Primitive(primitive) => self.primitive(primitive, id),
            Type::Struct(record) => self.record(record, format!("r{id}")),
            Type::List(list) => {
                let items = self.value_type(&list.element.field_type, list.element.id);
                json!({"type": "array", "items": items, "element-id": list.element.id})
            }
            // Avro's own maps have text keys only.
            Type::Map(map) => {
                let pair = StructType { fields: vec![map.key.clone(), map.value.clone()] };
                let items = self.record(&pair, format!("k{}_v{}", map.key.id, map.value.id));
                json!({"type": "array", "items": items, "logicalType": "map"})
            }
            // No partition and no field of a manifest is a variant; the encoder finds no column for it.
            Type::Variant => json!("bytes"),
        }
    }

    fn primitive(&mut self, primitive: &PrimitiveType, id: i32) -> Value {
        let timestamp = |unit: &str, utc: bool| json!({"type": "long", "logicalType": unit, "adjust-to-utc": utc});
        match primitive {
            PrimitiveType::Boolean => json!("boolean"),
            PrimitiveType::Int => json!("int"),
            PrimitiveType::Long => json!("long"),
            PrimitiveType::Float => json!("float"),
            PrimitiveType::Double => json!("double"),
            PrimitiveType::Date => json!({"type": "int", "logicalType": "date"}),
            PrimitiveType::Time => json!({"type": "long", "logicalType": "time-micros"}),
            PrimitiveType::Timestamp => timestamp("timestamp-micros", false),
            PrimitiveType::Timestamptz => timestamp("timestamp-micros", true),
            PrimitiveType::TimestampNs => timestamp("timestamp-nanos", false),
            PrimitiveType::TimestamptzNs => timestamp("timestamp-nanos", true),
            PrimitiveType::String => json!("string"),
            PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => json!("bytes"),
            PrimitiveType::Unknown => json!("null"),
            PrimitiveType::Uuid => self.fixed("uuid_fixed".into(), id, 16, json!({"logicalType": "uuid"})),
            PrimitiveType::Fixed(length) => self.fixed(format!("fixed_{length}"), id, *length, json!({})),
            PrimitiveType::Decimal { precision, scale } => self.fixed(
                format!("decimal_{precision}_{scale}"),
                id,
                decimal_bytes(*precision) as u64,
                json!({"logicalType": "decimal", "precision": precision, "scale": scale}),
            ),
        }
    }

    fn fixed(&mut self, mut name: String, id: i32, size: u64, mut attributes: Value) -> Value {
        if !self.defined.insert(name.clone()) {
            name = format!("{name}_{id}");
        }
        attributes["type"] = json!("fixed");
        attributes["name"] = json!(name);
        attributes["size"] = json!(size);
        attributes
    }
}

/// The name of a field in Avro. One that Avro allows stays; in any other a leading digit is prefixed with `_` and each
/// UTF-16 unit but letters, digits and `_` becomes `_x` and its hexadecimal number, as Iceberg Java does it.
pub(super) fn avro_name(name: &str) -> String {
    let mut avro = String::with_capacity(name.len());
    for (i, unit) in name.encode_utf16().enumerate() {
        let c = char::from_u32(u32::from(unit)).filter(|c| *c == '_' || c.is_alphanumeric());
        match c {
            Some(c) if i == 0 && !(c == '_' || c.is_alphabetic()) => avro.extend(['_', c]),
            Some(c) => avro.push(c),
            None => avro.push_str(&format!("_x{unit:X}")),
        }
    }
    avro
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_avro_names() {
        for (name, expected) in [
            ("region", "region"),
            ("we ird", "we_x20ird"),
            ("we ird-n", "we_x20ird_x2Dn"),
            ("9lives", "_9lives"),
            ("größe", "größe"),
            ("a.b", "a_x2Eb"),
            ("😀", "_xD83D_xDE00"),
        ] {
            assert_eq!(avro_name(name), expected);
        }
    }

    #[test]
    fn no_name_is_defined_twice() {
        let uuid = |id, name| optional(id, name, Type::Primitive(PrimitiveType::Uuid), "");
        let schema = avro_schema(&StructType { fields: vec![uuid(1000, "a"), uuid(1001, "b c")] }, "r102");
        assert_eq!(schema["fields"][0]["type"][1]["name"], "uuid_fixed");
        assert_eq!(schema["fields"][1]["type"][1]["name"], "uuid_fixed_1001");
        assert_eq!(schema["fields"][1]["iceberg-field-name"], "b c");
        crate::spec::avro::AvroType::parse(&schema).unwrap();
    }
}
