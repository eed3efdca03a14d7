//! Columns of an old file as columns of the table's current schema.
//!
//! Implements the spec section "Column Projection": fields are found by id at every level; one that the file lacks is the
//! value of its identity partition, else its initial default, else null. Types widen as "Schema Evolution" allows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt32Array, new_null_array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields, Schema as ArrowSchema};

use super::arrow_to::{FIELD_ID_KEY, arrow_type};
use super::primitive::{cast_primitive, plain};
use crate::spec::name_mapping::NameMapping;
use crate::spec::{DataFile, Literal, NestedField, PrimitiveType, TableMetadata, Transform, Type};
use crate::{Error, Result};

/// Turns columns of one file into columns of the table.
#[derive(Debug)]
pub(crate) struct FileColumns {
    /// For a file without field ids.
    mapping: Option<NameMapping>,
    /// Values of identity partitions by source field id, for columns the file lacks.
    constants: HashMap<i32, Option<Literal>>,
}

impl FileColumns {
    /// For the data file `file` with the Arrow schema `schema` derived from its Parquet schema alone.
    ///
    /// # Errors
    /// `Unsupported` for a file without field ids in a table without name mapping.
    pub(crate) fn new(metadata: &TableMetadata, file: &DataFile, schema: &ArrowSchema) -> Result<Self> {
        let mapping = if schema.fields().iter().any(|f| has_ids(f)) {
            None
        } else {
            let mapping = metadata.typed_properties()?.name_mapping;
            Some(mapping.ok_or_else(|| {
                Error::unsupported("a data file without field ids in a table without schema.name-mapping.default")
                    .with_context("file", file.file_path.to_string())
            })?)
        };
        let mut constants = HashMap::new();
        if let Some(spec) = metadata.spec_by_id(file.spec_id) {
            for (field, value) in spec.fields.iter().zip(file.partition.0.iter()) {
                if field.transform == Transform::Identity {
                    constants.insert(field.source_id, value.clone());
                }
            }
        }
        Ok(Self { mapping, constants })
    }

    /// Id of a file's field; `None` for a field that has none.
    pub(crate) fn id_of(&self, field: &Field, path: &[&str]) -> Option<i32> {
        match &self.mapping {
            None => own_id(field),
            Some(mapping) => mapping.id_for(path),
        }
    }

    /// The table's column `target` of `rows` rows, from the file's column of its id if there is one.
    ///
    /// # Errors
    /// `DataInvalid` naming the column: a type that is no older type of the column, a required column without a value.
    pub(crate) fn column(
        &self,
        source: Option<(&ArrayRef, &Field)>,
        target: &NestedField,
        rows: usize,
    ) -> Result<ArrayRef> {
        match source {
            Some((array, field)) => self.adapt(array, field, target, &mut vec![field.name()]),
            None => self.missing(target, rows),
        }
        .map_err(|e| e.with_context("column", target.name.clone()))
    }

    fn adapt<'a>(
        &self,
        array: &ArrayRef,
        source: &'a Field,
        target: &NestedField,
        path: &mut Vec<&'a str>,
    ) -> Result<ArrayRef> {
        let data_type = arrow_type(&target.field_type)?;
        let mismatch = || {
            Error::data_invalid(format!(
                "field {} is of type {} in the file, {data_type} in the table",
                target.id,
                source.data_type()
            ))
        };
        match (&target.field_type, source.data_type(), &data_type) {
            (Type::Struct(fields), DataType::Struct(present), DataType::Struct(wanted)) => {
                let old = array.as_struct();
                let children = fields.fields.iter().map(|f| {
                    let found = present.iter().zip(old.columns()).find(|(s, _)| self.id_at(s, path) == Some(f.id));
                    match found {
                        Some((child, values)) => self.adapt_at(values, child, f, path),
                        None => self.missing(f, old.len()),
                    }
                });
                // The closure above borrows `path` for one child at a time.
                let children = children.collect::<Result<Vec<_>>>()?;
                build_struct(wanted, children, old)
            }
            (Type::List(list), DataType::List(element), DataType::List(wanted)) => {
                let old = array.as_list::<i32>();
                // The mapping calls it `element`, whatever the file does.
                let values = self.adapt_named(old.values(), element, &list.element, path, "element")?;
                ListArray::try_new(Arc::clone(wanted), old.offsets().clone(), values, old.nulls().cloned())
                    .map(|a| Arc::new(a) as ArrayRef)
                    .map_err(|e| mismatch().with_source(e))
            }
            (Type::Map(map), DataType::Map(entries, _), DataType::Map(wanted, _)) => {
                let (DataType::Struct(old_pair), DataType::Struct(pair)) = (entries.data_type(), wanted.data_type())
                else {
                    return Err(mismatch());
                };
                let old = array.as_map();
                let [old_key, old_value] = old_pair.as_ref() else { return Err(mismatch()) };
                let keys = self.adapt_named(old.keys(), old_key, &map.key, path, "key")?;
                let values = self.adapt_named(old.values(), old_value, &map.value, path, "value")?;
                let entries = StructArray::try_new(pair.clone(), vec![keys, values], None)
                    .map_err(|e| mismatch().with_source(e))?;
                MapArray::try_new(Arc::clone(wanted), old.offsets().clone(), entries, old.nulls().cloned(), false)
                    .map(|a| Arc::new(a) as ArrayRef)
                    .map_err(|e| mismatch().with_source(e))
            }
            (Type::Primitive(_), _, wanted) => {
                let array = plain(array, &target.name)?;
                if array.data_type() == wanted {
                    return Ok(array);
                }
                if array.data_type().is_nested() {
                    return Err(mismatch());
                }
                cast_primitive(&array, wanted).map_err(|e| mismatch().with_source(e))
            }
            (Type::Variant, ..) => Err(Error::unsupported("columns of type variant cannot be written yet")),
            _ => Err(mismatch()),
        }
    }

    fn id_at<'a>(&self, source: &'a Field, path: &mut Vec<&'a str>) -> Option<i32> {
        path.push(source.name());
        let id = self.id_of(source, path);
        path.pop();
        id
    }

    fn adapt_at<'a>(
        &self,
        array: &ArrayRef,
        source: &'a Field,
        target: &NestedField,
        path: &mut Vec<&'a str>,
    ) -> Result<ArrayRef> {
        self.adapt_named(array, source, target, path, source.name())
    }

    fn adapt_named<'a>(
        &self,
        array: &ArrayRef,
        source: &'a Field,
        target: &NestedField,
        path: &mut Vec<&'a str>,
        name: &'a str,
    ) -> Result<ArrayRef> {
        path.push(name);
        let adapted = self.adapt(array, source, target, path);
        path.pop();
        adapted
    }

    /// A field that the file lacks.
    fn missing(&self, target: &NestedField, rows: usize) -> Result<ArrayRef> {
        let value = match self.constants.get(&target.id) {
            Some(value) => value.clone(),
            None => target.initial_default.clone(),
        };
        match (value, &target.field_type) {
            (Some(value), Type::Primitive(primitive)) => {
                let value = value
                    .promote_to(primitive)
                    .ok_or_else(|| Error::data_invalid(format!("field {} has a value of another type", target.id)))?;
                constant(&value, primitive, rows)
            }
            (_, _) if target.required && rows > 0 => {
                Err(Error::data_invalid(format!("the file lacks the required field {} ({})", target.id, target.name)))
            }
            _ => Ok(new_null_array(&arrow_type(&target.field_type)?, rows)),
        }
    }
}

fn build_struct(wanted: &Fields, children: Vec<ArrayRef>, old: &StructArray) -> Result<ArrayRef> {
    StructArray::try_new_with_length(wanted.clone(), children, old.nulls().cloned(), old.len())
        .map(|a| Arc::new(a) as ArrayRef)
        .map_err(|e| Error::data_invalid("a struct of the file does not fit the table's").with_source(e))
}

fn own_id(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

fn has_ids(field: &Field) -> bool {
    own_id(field).is_some()
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|f| has_ids(f)),
            DataType::List(f) | DataType::Map(f, _) => has_ids(f),
            _ => false,
        }
}

/// `rows` times the same value.
fn constant(value: &Literal, primitive: &PrimitiveType, rows: usize) -> Result<ArrayRef> {
    let utc = matches!(value, Literal::Timestamptz(_) | Literal::TimestamptzNs(_)).then_some(super::arrow_to::UTC);
    let one: ArrayRef = match value {
        Literal::Boolean(v) => Arc::new(BooleanArray::from(vec![*v])),
        Literal::Int(v) => Arc::new(Int32Array::from(vec![*v])),
        Literal::Long(v) => Arc::new(Int64Array::from(vec![*v])),
        Literal::Float(v) => Arc::new(Float32Array::from(vec![*v])),
        Literal::Double(v) => Arc::new(Float64Array::from(vec![*v])),
        Literal::Decimal(v) => {
            let data_type = arrow_type(&Type::Primitive(primitive.clone()))?;
            Arc::new(Decimal128Array::from(vec![*v]).with_data_type(data_type))
        }
        Literal::Date(v) => Arc::new(Date32Array::from(vec![*v])),
        Literal::Time(v) => Arc::new(Time64MicrosecondArray::from(vec![*v])),
        Literal::Timestamp(v) | Literal::Timestamptz(v) => {
            Arc::new(TimestampMicrosecondArray::from(vec![*v]).with_timezone_opt(utc))
        }
        Literal::TimestampNs(v) | Literal::TimestamptzNs(v) => {
            Arc::new(TimestampNanosecondArray::from(vec![*v]).with_timezone_opt(utc))
        }
        Literal::String(v) => Arc::new(StringArray::from(vec![v.as_str()])),
        Literal::Uuid(v) => fixed(v.as_bytes())?,
        Literal::Fixed(v) => fixed(v)?,
        Literal::Binary(v) => Arc::new(BinaryArray::from(vec![v.as_slice()])),
    };
    take(&one, &UInt32Array::from(vec![0; rows]), None)
        .map_err(|e| Error::internal("cannot repeat a constant").with_source(e))
}

fn fixed(value: &[u8]) -> Result<ArrayRef> {
    let length = i32::try_from(value.len()).map_err(|_| Error::data_invalid("a fixed value is too long"))?;
    Ok(Arc::new(FixedSizeBinaryArray::new(length, value.to_vec().into(), None)))
}
