//! The key columns of equality deletes.
//!
//! Invariant: a key column is found by field id in any schema the table ever had, the current one first, for it may have
//! been dropped; both sides of a comparison have the type that schema gives it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use crate::columns::arrow_type;
use crate::scan::file_columns::Target;
use crate::spec::{NestedField, Schema, StructType, TableMetadata, Type};
use crate::{Error, Result};

/// One key column.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumn {
    pub(crate) target: Target,
    pub(crate) data_type: DataType,
}

impl KeyColumn {
    /// The column with this field id.
    ///
    /// # Errors
    /// `DataInvalid` for a field that no schema has, that is no primitive, or that lies inside a list or map.
    pub(crate) fn new(metadata: &TableMetadata, id: i32) -> Result<Self> {
        let invalid = |what: &str| Err(Error::data_invalid(format!("equality delete on field {id}, {what}")));
        let Some(schema) = schema_with(metadata, id) else {
            return invalid("which no schema of the table has");
        };
        let (Some(path), Some(field)) = (schema.path_to(id), schema.field_by_id(id)) else {
            return invalid("which no schema of the table has");
        };
        if schema.is_under_list_or_map(id) {
            return invalid("which lies inside a list or map");
        }
        if field.field_type.as_primitive().is_none() {
            return invalid("which is not of a primitive type");
        }
        let data_type = arrow_type(&field.field_type)?;
        match prune(&schema.fields, &path) {
            Some(field) => Ok(Self { target: Target { field, path }, data_type }),
            None => invalid("which no schema of the table has"),
        }
    }

    /// The key values in a column that was read for [`KeyColumn::target`]: null where an ancestor is.
    pub(crate) fn values(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let mut array = Arc::clone(column);
        let mut nulls: Option<NullBuffer> = None;
        for _ in self.target.path.iter().skip(1) {
            let parent = array.as_struct_opt().ok_or_else(|| Error::internal("a key column is not in a struct"))?;
            nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
            // Pruned structs have one child.
            array = match parent.columns().first() {
                Some(child) => Arc::clone(child),
                None => return Err(Error::internal("a pruned struct has no child")),
            };
        }
        if let Some(nulls) = nulls.filter(|n| n.null_count() > 0)
            && array.data_type() != &DataType::Null
        {
            let all = NullBuffer::union(Some(&nulls), array.nulls());
            let data = array.to_data().into_builder().nulls(all).build();
            array = make_array(data.map_err(|e| Error::internal("cannot mask a key column").with_source(e))?);
        }
        Ok(one_nan(&array))
    }
}

/// The newest schema that has the field, the current one before all others.
fn schema_with(metadata: &TableMetadata, id: i32) -> Option<&Arc<Schema>> {
    let current = metadata.schema_by_id(metadata.current_schema_id).filter(|s| s.field_by_id(id).is_some());
    let having = metadata.schemas.iter().filter(|s| s.field_by_id(id).is_some());
    current.or_else(|| having.max_by_key(|s| s.schema_id))
}

/// The field at the start of `path`, with nothing but the path inside. Nothing in it is required: a file that lacks a
/// part of it has null keys.
fn prune(fields: &StructType, path: &[i32]) -> Option<Arc<NestedField>> {
    let (id, rest) = path.split_first()?;
    let mut field = NestedField::clone(fields.fields.iter().find(|f| f.id == *id)?);
    field.required = false;
    if !rest.is_empty() {
        let Type::Struct(inner) = &field.field_type else { return None };
        let inner = prune(inner, rest)?;
        field.field_type = Type::Struct(StructType { fields: vec![inner] });
    }
    Some(Arc::new(field))
}

/// Floating-point keys with every NaN the same; all else compares by bits, so -0.0 is not 0.0.
fn one_nan(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let values: Float32Array =
                array.as_primitive::<Float32Type>().unary(|v| if v.is_nan() { f32::NAN } else { v });
            Arc::new(values)
        }
        DataType::Float64 => {
            let values: Float64Array =
                array.as_primitive::<Float64Type>().unary(|v| if v.is_nan() { f64::NAN } else { v });
            Arc::new(values)
        }
        _ => Arc::clone(array),
    }
}
