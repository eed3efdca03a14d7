//! Iceberg types: primitives, structs, lists, maps and variant.
//!
//! Implements the spec sections "Schemas and Data Types" and "Appendix C: JSON serialization, Schemas". Invariant: a type
//! prints as the spec spells it (`decimal(9, 2)`, `fixed[16]`), and every spelling another writer uses parses.

use std::sync::Arc;

use super::literal::Literal;

/// A primitive type. Width and scale ranges as in the spec: decimal precision 1..=38, scale <= precision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    /// True or false.
    Boolean,
    /// 32-bit signed.
    Int,
    /// 64-bit signed.
    Long,
    /// 32-bit IEEE 754.
    Float,
    /// 64-bit IEEE 754.
    Double,
    /// Fixed-point; unscaled value in an i128.
    Decimal {
        /// Total digits, 1..=38.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since the epoch, without zone.
    Timestamp,
    /// Microseconds since the epoch, UTC.
    Timestamptz,
    /// Nanoseconds since the epoch, without zone (v3).
    TimestampNs,
    /// Nanoseconds since the epoch, UTC (v3).
    TimestamptzNs,
    /// UTF-8 text.
    String,
    /// 16 bytes, big-endian.
    Uuid,
    /// Exactly this many bytes.
    Fixed(u64),
    /// Any number of bytes.
    Binary,
    /// Always null (v3).
    Unknown,
    /// WKB geometry (v3); the coordinate reference system if not the default.
    Geometry(Option<String>),
    /// WKB geography (v3); coordinate reference system and edge algorithm if not the defaults.
    Geography(Option<String>, Option<String>),
}

/// Any Iceberg type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// A primitive.
    Primitive(PrimitiveType),
    /// Named fields.
    Struct(StructType),
    /// A list; the element is a field named `element`.
    List(Box<ListType>),
    /// A map; key and value are fields named `key` and `value`.
    Map(Box<MapType>),
    /// Semi-structured value (v3).
    Variant,
}

/// Fields of a struct, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StructType {
    /// The fields, shared so that schemas clone cheaply.
    pub fields: Vec<Arc<NestedField>>,
}

/// A list type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListType {
    /// The element, named `element`; `required` is `element-required`.
    pub element: Arc<NestedField>,
}

/// A map type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapType {
    /// The key, named `key`, always required.
    pub key: Arc<NestedField>,
    /// The value, named `value`; `required` is `value-required`.
    pub value: Arc<NestedField>,
}

/// A field of a schema, struct, list or map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NestedField {
    /// Field id, unique in the table for ever.
    pub id: i32,
    /// Name as written; names are case-sensitive in the format.
    pub name: String,
    /// Whether null is forbidden.
    pub required: bool,
    /// Type of the field.
    pub field_type: Type,
    /// Comment.
    pub doc: Option<String>,
    /// v3: the value rows of files without this field read as. `None` is null. Primitive types only.
    pub initial_default: Option<Literal>,
    /// v3: the value a writer stores where a row gives none. `None` is null. Primitive types only.
    pub write_default: Option<Literal>,
}

impl NestedField {
    /// A field without comment and defaults.
    pub fn new(id: i32, name: impl Into<String>, required: bool, field_type: impl Into<Type>) -> Self {
        Self {
            id,
            name: name.into(),
            required,
            field_type: field_type.into(),
            doc: None,
            initial_default: None,
            write_default: None,
        }
    }
}

impl From<PrimitiveType> for Type {
    fn from(value: PrimitiveType) -> Self {
        Self::Primitive(value)
    }
}

impl From<StructType> for Type {
    fn from(value: StructType) -> Self {
        Self::Struct(value)
    }
}

impl Type {
    /// The primitive inside, if this is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(p) => Some(p),
            _ => None,
        }
    }
}
