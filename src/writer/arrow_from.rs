//! Arrow types as Iceberg types, for tables made from a query.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema as ArrowSchema, TimeUnit};

use crate::spec::{FormatVersion, ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type};
use crate::{Error, Result};

/// Deepest nesting accepted, so that no schema can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// The table schema (schema id 0) for rows of an Arrow schema, ids given from `start_id` (1 in a new table) in the order
/// Java gives them: all fields of a struct first, then what is inside each; a list's element; a map's key, then value.
///
/// Types that Iceberg lacks take the smallest type that holds every value: (u)int8/16 → `int`, uint32 → `long`, uint64 →
/// `decimal(20, 0)`, float16 → `float`; large, view, dictionary and run-end encoded types become what they hold;
/// second and millisecond times and timestamps become microseconds; any time zone becomes UTC (same instants).
/// Nanosecond timestamps are `timestamp_ns` in a v3 table. Older versions have no such type: there they become
/// `timestamp`, as Spark's own timestamps are microseconds, and values are floored to the microsecond when written
/// (SQL lets a stored datetime lose fractional digits; a value out of range is an error).
///
/// # Errors
/// `InvalidInput` naming the column for intervals, durations, unions, decimals of more than 38 digits or of negative
/// scale, empty structs, and, before v3, a column of type null.
pub fn schema_from_arrow(schema: &ArrowSchema, start_id: i32, version: FormatVersion) -> Result<Schema> {
    let mut ids = Ids { next: start_id };
    let fields: Vec<&Field> = schema.fields().iter().map(|f| f.as_ref()).collect();
    let fields = struct_fields(&fields, &mut ids, version, 0)?;
    Ok(Schema { schema_id: 0, fields: StructType { fields }, identifier_field_ids: Vec::new() })
}

/// The Iceberg type for an Arrow type, nested fields numbered from `next_id`, which is advanced past them. Mapping and
/// errors as [`schema_from_arrow`].
pub fn iceberg_type_from_arrow(data_type: &DataType, next_id: &mut i32, version: FormatVersion) -> Result<Type> {
    let mut ids = Ids { next: *next_id };
    let converted = convert(data_type, None, &mut ids, version, 0)?;
    *next_id = ids.next;
    Ok(converted)
}

struct Ids {
    next: i32,
}

impl Ids {
    fn take(&mut self) -> Result<i32> {
        let id = self.next;
        self.next = id.checked_add(1).ok_or_else(|| Error::invalid_input("the table is out of field ids"))?;
        Ok(id)
    }
}

fn struct_fields(
    fields: &[&Field],
    ids: &mut Ids,
    version: FormatVersion,
    depth: usize,
) -> Result<Vec<Arc<NestedField>>> {
    let numbered = fields.iter().map(|f| Ok((ids.take()?, *f))).collect::<Result<Vec<_>>>()?;
    numbered.into_iter().map(|(id, f)| nested(id, f.name(), !f.is_nullable(), f, ids, version, depth)).collect()
}

fn nested(
    id: i32,
    name: &str,
    required: bool,
    field: &Field,
    ids: &mut Ids,
    version: FormatVersion,
    depth: usize,
) -> Result<Arc<NestedField>> {
    let field_type = convert(field.data_type(), Some(field), ids, version, depth + 1)
        .map_err(|e| e.with_context("column", name.to_owned()))?;
    // `unknown` is always null, so it is never required.
    let required = required && field_type.as_primitive() != Some(&PrimitiveType::Unknown);
    Ok(Arc::new(NestedField::new(id, name, required, field_type)))
}

fn convert(
    data_type: &DataType,
    field: Option<&Field>,
    ids: &mut Ids,
    version: FormatVersion,
    depth: usize,
) -> Result<Type> {
    if depth > MAX_DEPTH {
        return Err(Error::invalid_input(format!("types nested deeper than {MAX_DEPTH} levels are not supported")));
    }
    Ok(match data_type {
        DataType::Dictionary(_, value) => convert(value, None, ids, version, depth + 1)?,
        DataType::RunEndEncoded(_, values) => convert(values.data_type(), None, ids, version, depth + 1)?,
        DataType::Struct(fields) if fields.is_empty() => {
            return Err(Error::invalid_input("a struct without fields cannot be stored in Parquet"));
        }
        DataType::Struct(fields) => {
            let fields: Vec<&Field> = fields.iter().map(|f| f.as_ref()).collect();
            StructType { fields: struct_fields(&fields, ids, version, depth)? }.into()
        }
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => {
            let id = ids.take()?;
            let element = nested(id, "element", !element.is_nullable(), element, ids, version, depth)?;
            Type::List(Box::new(ListType { element }))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(Error::invalid_input("a map's entries are not a struct"));
            };
            let [key, value] = pair.as_ref() else {
                return Err(Error::invalid_input("a map's entries are not a key and a value"));
            };
            let (key_id, value_id) = (ids.take()?, ids.take()?);
            let key = nested(key_id, "key", true, key, ids, version, depth)?;
            let value = nested(value_id, "value", !value.is_nullable(), value, ids, version, depth)?;
            Type::Map(Box::new(MapType { key, value }))
        }
        other => Type::Primitive(primitive(other, field, version)?),
    })
}

fn primitive(data_type: &DataType, field: Option<&Field>, version: FormatVersion) -> Result<PrimitiveType> {
    let nanos = version >= FormatVersion::V3;
    Ok(match data_type {
        DataType::Boolean => PrimitiveType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => PrimitiveType::Int,
        DataType::Int64 | DataType::UInt32 => PrimitiveType::Long,
        DataType::UInt64 => PrimitiveType::Decimal { precision: 20, scale: 0 },
        DataType::Float16 | DataType::Float32 => PrimitiveType::Float,
        DataType::Float64 => PrimitiveType::Double,
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => match u8::try_from(*s) {
            Ok(scale) if *p <= DECIMAL128_MAX_PRECISION && scale <= *p => {
                PrimitiveType::Decimal { precision: *p, scale }
            }
            _ => {
                return Err(Error::invalid_input(format!(
                    "decimal({p}, {s}) has no Iceberg type (precision at most 38, scale from 0 to the precision); cast it"
                )));
            }
        },
        DataType::Date32 | DataType::Date64 => PrimitiveType::Date,
        DataType::Time32(_) | DataType::Time64(_) => PrimitiveType::Time,
        DataType::Timestamp(TimeUnit::Nanosecond, None) if nanos => PrimitiveType::TimestampNs,
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) if nanos => PrimitiveType::TimestamptzNs,
        DataType::Timestamp(_, None) => PrimitiveType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PrimitiveType::Timestamptz,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => PrimitiveType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => PrimitiveType::Binary,
        DataType::FixedSizeBinary(16) if field.and_then(|f| f.extension_type_name()) == Some("arrow.uuid") => {
            PrimitiveType::Uuid
        }
        DataType::FixedSizeBinary(length) => PrimitiveType::Fixed(
            u64::try_from(*length)
                .map_err(|_| Error::invalid_input(format!("a fixed-size binary of length {length}")))?,
        ),
        DataType::Null if nanos => PrimitiveType::Unknown,
        DataType::Null => {
            return Err(Error::invalid_input(
                "a column of type null needs a format version 3 table; cast it to the type it shall have",
            ));
        }
        other => {
            return Err(Error::invalid_input(format!(
                "Arrow type {other} has no Iceberg type; cast it to one that has"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::ErrorKind;
    use crate::writer::arrow_schema;

    fn field(name: &str, data_type: DataType) -> Field {
        Field::new(name, data_type, true)
    }

    #[test]
    fn numbers_fields_as_java_does() {
        let point = DataType::Struct(vec![field("x", DataType::Float64), field("y", DataType::Float64)].into());
        let pair =
            DataType::Struct(vec![Field::new("key", DataType::Utf8, false), field("value", point.clone())].into());
        let schema = ArrowSchema::new(vec![
            field("p", point),
            field("l", DataType::new_list(DataType::Int8, true)),
            field("m", DataType::Map(Arc::new(Field::new("entries", pair, false)), false)),
            Field::new("s", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8View)), false),
        ]);
        let converted = schema_from_arrow(&schema, 1, FormatVersion::V2).unwrap();
        let ids: Vec<i32> = converted.fields.fields.iter().map(|f| f.id).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        let Type::Struct(p) = &converted.fields.fields[0].field_type else { panic!() };
        assert_eq!(p.fields.iter().map(|f| f.id).collect::<Vec<_>>(), [5, 6]);
        let Type::List(l) = &converted.fields.fields[1].field_type else { panic!() };
        assert_eq!((l.element.id, &l.element.field_type), (7, &PrimitiveType::Int.into()));
        let Type::Map(m) = &converted.fields.fields[2].field_type else { panic!() };
        assert_eq!((m.key.id, m.value.id, m.key.required, m.value.required), (8, 9, true, false));
        let Type::Struct(v) = &m.value.field_type else { panic!() };
        assert_eq!(v.fields.iter().map(|f| f.id).collect::<Vec<_>>(), [10, 11]);
        let s = &converted.fields.fields[3];
        assert_eq!((s.required, &s.field_type), (true, &PrimitiveType::String.into()));

        // Back to Arrow: ids at every level, Parquet's names for list and map parts.
        let arrow = arrow_schema(&converted).unwrap();
        let DataType::Map(entries, _) = arrow.field(2).data_type() else { panic!() };
        assert_eq!(entries.name(), "key_value");
        let DataType::Struct(pair) = entries.data_type() else { panic!() };
        assert_eq!(pair[1].metadata()["PARQUET:field_id"], "9");
        let DataType::List(element) = arrow.field(1).data_type() else { panic!() };
        assert_eq!((element.name().as_str(), element.metadata()["PARQUET:field_id"].as_str()), ("element", "7"));
        assert_eq!(schema_from_arrow(&arrow, 1, FormatVersion::V2).unwrap(), converted);
    }

    #[test]
    fn maps_every_primitive_or_refuses_it() {
        let ns = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
        let one = |t: &DataType, v| iceberg_type_from_arrow(t, &mut 1, v);
        let v2 = FormatVersion::V2;
        for (arrow, want) in [
            (DataType::UInt16, PrimitiveType::Int),
            (DataType::UInt32, PrimitiveType::Long),
            (DataType::UInt64, PrimitiveType::Decimal { precision: 20, scale: 0 }),
            (DataType::Float16, PrimitiveType::Float),
            (DataType::Decimal256(38, 38), PrimitiveType::Decimal { precision: 38, scale: 38 }),
            (DataType::Time32(TimeUnit::Second), PrimitiveType::Time),
            (DataType::Timestamp(TimeUnit::Second, None), PrimitiveType::Timestamp),
            (ns(None), PrimitiveType::Timestamp),
            (ns(Some("Europe/Oslo")), PrimitiveType::Timestamptz),
            (DataType::LargeBinary, PrimitiveType::Binary),
            (DataType::FixedSizeBinary(16), PrimitiveType::Fixed(16)),
        ] {
            assert_eq!(one(&arrow, v2).unwrap(), want.into(), "{arrow}");
        }
        assert_eq!(one(&ns(None), FormatVersion::V3).unwrap(), PrimitiveType::TimestampNs.into());
        assert_eq!(one(&ns(Some("UTC")), FormatVersion::V3).unwrap(), PrimitiveType::TimestamptzNs.into());
        assert_eq!(one(&DataType::Null, FormatVersion::V3).unwrap(), PrimitiveType::Unknown.into());
        for refused in [
            DataType::Null,
            DataType::Duration(TimeUnit::Second),
            DataType::Interval(arrow::datatypes::IntervalUnit::DayTime),
            DataType::Decimal256(39, 0),
            DataType::Decimal128(5, -2),
            DataType::Struct(Default::default()),
        ] {
            let schema = ArrowSchema::new(vec![field("c", refused.clone())]);
            let error = schema_from_arrow(&schema, 1, v2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{refused}");
            assert_eq!(error.context("column"), Some("c"));
        }
    }

    #[test]
    fn knows_arrow_uuids_and_bounds_nesting() {
        let extension = HashMap::from([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]);
        let schema = ArrowSchema::new(vec![field("u", DataType::FixedSizeBinary(16)).with_metadata(extension)]);
        let converted = schema_from_arrow(&schema, 1, FormatVersion::V2).unwrap();
        assert_eq!(converted.fields.fields[0].field_type, PrimitiveType::Uuid.into());

        let deep = (0..200).fold(DataType::Int32, |t, _| DataType::new_list(t, true));
        assert!(iceberg_type_from_arrow(&deep, &mut 1, FormatVersion::V2).is_err());
    }
}
