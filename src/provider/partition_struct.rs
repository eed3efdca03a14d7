//! Partition values as one struct over all specs of a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray, new_empty_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue};

use super::scalar::to_scalar;
use crate::spec::{DataFile, Literal, PartitionSpec, PrimitiveType, TableMetadata, Transform};
use crate::writer;

/// The fields of every spec of a table, by partition field id, void ones left out. A field that was renamed has the name
/// of the newest spec that holds it.
#[derive(Debug, Clone)]
pub(crate) struct PartitionStruct(Vec<PartitionColumn>);

#[derive(Debug, Clone)]
struct PartitionColumn {
    field_id: i32,
    ty: PrimitiveType,
    field: FieldRef,
}

impl PartitionStruct {
    /// The partition values of a table; `None` when it was never partitioned.
    ///
    /// # Errors
    /// `Unsupported` for a type that Arrow cannot carry.
    pub(crate) fn of(metadata: &TableMetadata) -> crate::Result<Option<Self>> {
        let mut columns: Vec<PartitionColumn> = Vec::new();
        let mut newest_first: Vec<_> = metadata.partition_specs.iter().collect();
        newest_first.sort_by_key(|s| std::cmp::Reverse((s.spec_id == metadata.default_spec_id, s.spec_id)));
        for spec in newest_first {
            let types = spec.partition_type(metadata);
            for (field, ty) in spec.fields.iter().zip(&types.fields) {
                let seen = columns.iter().any(|c| c.field_id == field.field_id || c.field.name() == &field.name);
                let Some(primitive) = ty.field_type.as_primitive() else { continue };
                if field.transform == Transform::Void || seen {
                    continue;
                }
                let data_type = writer::arrow_type(&ty.field_type)?;
                columns.push(PartitionColumn {
                    field_id: field.field_id,
                    ty: primitive.clone(),
                    field: Arc::new(Field::new(&field.name, data_type, true)),
                });
            }
        }
        columns.sort_by_key(|c| c.field_id);
        Ok((!columns.is_empty()).then_some(Self(columns)))
    }

    /// The type of the struct.
    pub(crate) fn data_type(&self) -> DataType {
        DataType::Struct(self.fields())
    }

    fn fields(&self) -> Fields {
        self.0.iter().map(|c| Arc::clone(&c.field)).collect()
    }

    /// The values of one file under its spec, one a field; `None` where null or not in the spec.
    pub(crate) fn values(&self, file: &DataFile, spec: Option<&PartitionSpec>) -> Vec<Option<Literal>> {
        let value = |column: &PartitionColumn| {
            let position = spec?.fields.iter().position(|f| f.field_id == column.field_id)?;
            file.partition.0.get(position)?.clone()?.promote_to(&column.ty)
        };
        self.0.iter().map(value).collect()
    }

    /// The values of some files as one array of structs.
    pub(crate) fn array(&self, rows: &[Vec<Option<Literal>>]) -> Result<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.0.len());
        for (i, column) in self.0.iter().enumerate() {
            let scalar = |row: &Vec<Option<Literal>>| {
                let literal = row.get(i).and_then(Option::as_ref);
                let scalar = literal.and_then(|literal| to_scalar(Some(literal), &column.ty));
                scalar.map_or_else(|| ScalarValue::try_from(column.field.data_type()), Ok)
            };
            arrays.push(match rows {
                [] => new_empty_array(column.field.data_type()),
                rows => ScalarValue::iter_to_array(rows.iter().map(scalar).collect::<Result<Vec<_>>>()?)?,
            });
        }
        Ok(Arc::new(StructArray::try_new_with_length(self.fields(), arrays, None, rows.len())?))
    }
}
