//! `readable_metrics`: the metrics of a file by column name, bounds in the column's type.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StructArray, new_empty_array};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;

use super::columns::{Columns, failed};
use crate::Result;
use crate::provider::from_datafusion;
use crate::provider::scalar::to_scalar;
use crate::spec::{ColumnMap, DataFile, Literal, PrimitiveType, Schema};
use crate::writer::arrow_type;

/// A column of the table that can have metrics: a primitive one at any depth.
struct Measured {
    id: i32,
    ty: PrimitiveType,
    data_type: DataType,
    name: String,
}

impl Measured {
    fn fields(&self) -> Fields {
        let count = |name| Field::new(name, DataType::Int64, true);
        let bound = |name| Field::new(name, self.data_type.clone(), true);
        Fields::from(vec![
            count("column_size"),
            count("value_count"),
            count("null_value_count"),
            count("nan_value_count"),
            bound("lower_bound"),
            bound("upper_bound"),
        ])
    }

    fn array(&self, files: &[&DataFile]) -> Result<ArrayRef> {
        let counts = |get: fn(&DataFile) -> &ColumnMap<u64>| -> ArrayRef {
            let count = |f: &&DataFile| get(f).get(self.id).and_then(|n| i64::try_from(*n).ok());
            Arc::new(files.iter().map(count).collect::<Int64Array>())
        };
        let bounds = |get: fn(&DataFile) -> &ColumnMap<Box<[u8]>>| -> Result<ArrayRef> {
            let bound = |f: &&DataFile| {
                let literal = get(f).get(self.id).and_then(|bytes| Literal::from_bytes(&self.ty, bytes).ok());
                let scalar = literal.and_then(|literal| to_scalar(Some(&literal), &self.ty));
                scalar.map_or_else(|| ScalarValue::try_from(&self.data_type), Ok)
            };
            if files.is_empty() {
                return Ok(new_empty_array(&self.data_type));
            }
            let scalars = files.iter().map(bound).collect::<datafusion::common::Result<Vec<_>>>();
            scalars.and_then(ScalarValue::iter_to_array).map_err(from_datafusion)
        };
        let columns = vec![
            counts(|f| &f.column_sizes),
            counts(|f| &f.value_counts),
            counts(|f| &f.null_value_counts),
            counts(|f| &f.nan_value_counts),
            bounds(|f| &f.lower_bounds)?,
            bounds(|f| &f.upper_bounds)?,
        ];
        let metrics = StructArray::try_new_with_length(self.fields(), columns, None, files.len());
        Ok(Arc::new(metrics.map_err(failed)?))
    }
}

/// Adds `readable_metrics`, if the table has a column that can have metrics (Java: `MetricsUtil.readableMetricsStruct`): a
/// struct with a field for every primitive column at any depth, by full name, in the order of names. A bound that cannot be
/// read is null; as bytes it stands in `lower_bounds` and `upper_bounds`.
pub(super) fn readable_metrics<R: 'static>(
    columns: Columns<R>,
    schema: &Schema,
    file: impl for<'a> Fn(&'a R) -> &'a Arc<DataFile> + Send + Sync + 'static,
) -> Result<Columns<R>> {
    let mut measured: Vec<Measured> = Vec::new();
    let mut failure = None;
    schema.visit(&mut |field| {
        if let (Some(ty), Some(name)) = (field.field_type.as_primitive(), schema.name_of(field.id)) {
            match arrow_type(&field.field_type) {
                Ok(data_type) => measured.push(Measured { id: field.id, ty: ty.clone(), data_type, name }),
                Err(e) => failure = Some(e),
            }
        }
    });
    if let Some(e) = failure {
        return Err(e);
    }
    measured.sort_by(|a, b| a.name.cmp(&b.name));
    if measured.is_empty() {
        return Ok(columns);
    }
    let fields: Fields = measured.iter().map(|m| Field::new(&m.name, DataType::Struct(m.fields()), true)).collect();
    let field = Field::new("readable_metrics", DataType::Struct(fields.clone()), true);
    Ok(columns.column(field, move |rows| {
        let files: Vec<&DataFile> = rows.iter().map(|row| file(row).as_ref()).collect();
        let columns = measured.iter().map(|m| m.array(&files)).collect::<Result<Vec<_>>>()?;
        let metrics = StructArray::try_new_with_length(fields.clone(), columns, None, files.len());
        Ok(Arc::new(metrics.map_err(failed)?))
    }))
}
