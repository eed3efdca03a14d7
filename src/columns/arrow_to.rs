//! Iceberg types as Arrow types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, Schema as ArrowSchema};
use arrow::datatypes::{SchemaRef, TimeUnit};

use crate::spec::{NestedField, PrimitiveType, Schema, Type};
use crate::{Error, Result};

/// Arrow field metadata key that holds the Iceberg field id in decimal; what Arrow's Parquet writer stores as `field_id`.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Fields of an unshredded variant: the names in its objects, and the value.
pub(crate) const VARIANT_PARTS: [&str; 2] = ["metadata", "value"];

/// Time zone of every `timestamptz` column.
pub(crate) const UTC: &str = "UTC";

/// The Arrow schema of a table schema: same columns, same order, nullable unless required, every field at every level
/// with its id under [`FIELD_ID_KEY`].
///
/// `int` is Int32, `decimal` Decimal128, `date` Date32, `time` Time64(µs), timestamps in µs or ns with zone `UTC` for the
/// zoned ones, `uuid` FixedSizeBinary(16), `fixed[n]` FixedSizeBinary(n), `unknown` Null, geometry and geography Binary
/// (WKB), `variant` a struct of its Binary `metadata` and `value`, as it is stored unshredded. List elements are named
/// `element`; map entries `key_value`, with fields `key` and `value`.
///
/// # Errors
/// `DataInvalid` for a decimal or fixed outside Arrow's range.
pub fn arrow_schema(schema: &Schema) -> Result<SchemaRef> {
    let fields = schema.fields.fields.iter().map(|f| arrow_field(f)).collect::<Result<Fields>>()?;
    Ok(Arc::new(ArrowSchema::new(fields)))
}

/// The Arrow field of one Iceberg field. Errors as [`arrow_schema`].
pub fn arrow_field(field: &NestedField) -> Result<FieldRef> {
    let data_type = arrow_type(&field.field_type).map_err(|e| e.with_context("column", field.name.clone()))?;
    // A null-typed column holds only nulls, so Arrow insists that it is nullable.
    let nullable = !field.required || data_type == DataType::Null;
    Ok(Arc::new(named_field(field.id, &field.name, data_type, nullable)))
}

/// An Arrow field with an Iceberg id.
pub(crate) fn named_field(id: i32, name: &str, data_type: DataType, nullable: bool) -> Field {
    let metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]);
    Field::new(name, data_type, nullable).with_metadata(metadata)
}

/// The Arrow type of an Iceberg type. Errors as [`arrow_schema`].
pub fn arrow_type(field_type: &Type) -> Result<DataType> {
    match field_type {
        Type::Primitive(p) => arrow_primitive(p),
        Type::Struct(s) => Ok(DataType::Struct(s.fields.iter().map(|f| arrow_field(f)).collect::<Result<Fields>>()?)),
        Type::List(l) => {
            let e = &l.element;
            let data_type = arrow_type(&e.field_type)?;
            let nullable = !e.required || data_type == DataType::Null;
            Ok(DataType::List(Arc::new(named_field(e.id, "element", data_type, nullable))))
        }
        Type::Map(m) => {
            let key = named_field(m.key.id, "key", arrow_type(&m.key.field_type)?, false);
            let value_type = arrow_type(&m.value.field_type)?;
            let nullable = !m.value.required || value_type == DataType::Null;
            let value = named_field(m.value.id, "value", value_type, nullable);
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            Ok(DataType::Map(Arc::new(Field::new("key_value", entries, false)), false))
        }
        // The parts have no ids of their own.
        Type::Variant => Ok(DataType::Struct(Fields::from(vec![
            Field::new(VARIANT_PARTS[0], DataType::Binary, false),
            Field::new(VARIANT_PARTS[1], DataType::Binary, true),
        ]))),
    }
}

fn arrow_primitive(primitive: &PrimitiveType) -> Result<DataType> {
    Ok(match primitive {
        PrimitiveType::Boolean => DataType::Boolean,
        PrimitiveType::Int => DataType::Int32,
        PrimitiveType::Long => DataType::Int64,
        PrimitiveType::Float => DataType::Float32,
        PrimitiveType::Double => DataType::Float64,
        PrimitiveType::Decimal { precision, scale } => {
            if *precision == 0 || *precision > DECIMAL128_MAX_PRECISION || scale > precision {
                return Err(Error::data_invalid(format!(
                    "decimal({precision}, {scale}) is outside the format's range"
                )));
            }
            DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
        }
        PrimitiveType::Date => DataType::Date32,
        PrimitiveType::Time => DataType::Time64(TimeUnit::Microsecond),
        PrimitiveType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        PrimitiveType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        PrimitiveType::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
        PrimitiveType::String => DataType::Utf8,
        PrimitiveType::Uuid => DataType::FixedSizeBinary(16),
        PrimitiveType::Fixed(length) => {
            let length = i32::try_from(*length)
                .map_err(|_| Error::data_invalid(format!("fixed[{length}] is longer than a value can be")))?;
            DataType::FixedSizeBinary(length)
        }
        PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => DataType::Binary,
        PrimitiveType::Unknown => DataType::Null,
    })
}
