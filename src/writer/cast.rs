//! Rows of any matching Arrow schema as rows of the table's schema.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};

use crate::columns::{cast_primitive, checked, plain};
use crate::{Error, Result};

/// `batch` as rows of `schema` (one made by [`arrow_schema`](super::arrow_schema)), columns matched by position, nested
/// fields by name when the names are the same and by position otherwise.
///
/// Casts are checked: a value out of the target's range is an error, never null. Nanosecond times written to a
/// microsecond column are floored to the microsecond, before 1970 too.
///
/// # Errors
/// `InvalidInput` naming the column: a different number of columns, a type that does not convert, a value out of
/// range, a null in a required column or nested field.
pub fn cast_to_table(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::invalid_input(format!(
            "the rows have {} columns, the table has {}",
            batch.num_columns(),
            schema.fields().len()
        )));
    }
    if batch.schema_ref().fields() == schema.fields() {
        check_nested_nulls(batch, schema)?;
        return rebuild(schema, batch.columns().to_vec(), batch.num_rows());
    }
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| cast_column(array, field))
        .collect::<Result<Vec<_>>>()?;
    rebuild(schema, columns, batch.num_rows())
}

fn rebuild(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    for (array, field) in columns.iter().zip(schema.fields()) {
        if !field.is_nullable() {
            check_required(array, None, field.name())?;
        }
    }
    RecordBatch::try_new_with_options(schema.clone(), columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
        .map_err(|e| Error::internal("cast rows do not form a batch of the table's schema").with_source(e))
}

fn null_in_required(path: &str) -> Error {
    Error::invalid_input("null in a column that is NOT NULL").with_context("column", path.to_owned())
}

fn check_nested_nulls(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    for (array, field) in batch.columns().iter().zip(schema.fields()) {
        if field.data_type().is_nested() {
            cast_nested(array, field, field.name(), None)?;
        }
    }
    Ok(())
}

/// One column as the table's `field`: cast, and checked for nulls where none may be. Errors as [`cast_to_table`].
pub(crate) fn cast_column(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    cast_nested(array, field, field.name(), None)
}

/// `parents` marks the slots under a null ancestor: whatever stands there means nothing, so its nulls break no rule.
fn cast_nested(array: &ArrayRef, field: &Field, path: &str, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let array = plain(array, path)?;
    let target = field.data_type();
    if !field.is_nullable() {
        check_required(&array, parents, path)?;
    }
    if matches!(array.data_type(), DataType::Null) && *target != DataType::Null {
        return Ok(new_null_array(target, array.len()));
    }
    match target {
        DataType::Struct(fields) => cast_struct(&array, fields, path, parents),
        DataType::List(element) => cast_list(&array, element, path, parents),
        DataType::Map(entries, _) => cast_map(&array, entries, path, parents),
        target if array.data_type() == target => Ok(array),
        target => cast_primitive(&array, target).map_err(|e| e.with_context("column", path.to_owned())),
    }
}

/// Refuses a null whose ancestors are all there.
fn check_required(array: &ArrayRef, parents: Option<&NullBuffer>, path: &str) -> Result<()> {
    let Some(own) = array.logical_nulls().filter(|n| n.null_count() > 0) else { return Ok(()) };
    match parents {
        Some(parents) if parents.contains(&own) => Ok(()),
        _ => Err(null_in_required(path)),
    }
}

fn cast_struct(array: &ArrayRef, fields: &Fields, path: &str, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(source) = array.as_struct_opt() else { return Err(mismatch(array, "a struct", path)) };
    if source.num_columns() != fields.len() {
        return Err(mismatch(array, &format!("a struct of {} fields", fields.len()), path));
    }
    let by_name: Option<Vec<&ArrayRef>> = fields.iter().map(|f| source.column_by_name(f.name())).collect();
    let children = by_name.unwrap_or_else(|| source.columns().iter().collect());
    let hidden = NullBuffer::union(source.nulls(), parents);
    let cast = children
        .into_iter()
        .zip(fields)
        .map(|(child, field)| cast_nested(child, field, &format!("{path}.{}", field.name()), hidden.as_ref()))
        .collect::<Result<Vec<_>>>()?;
    // Arrow wants a required child null nowhere but under its own parent's nulls, so the ancestors' come down.
    let nulls = if fields.iter().any(|f| !f.is_nullable()) { hidden } else { source.nulls().cloned() };
    StructArray::try_new_with_length(fields.clone(), cast, nulls, source.len())
        .map(|a| Arc::new(a) as ArrayRef)
        .map_err(|e| Error::invalid_input("the struct does not fit the column").with_source(e))
}

fn cast_list(array: &ArrayRef, element: &FieldRef, path: &str, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let list: ListArray = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().clone(),
        DataType::LargeList(f) | DataType::ListView(f) | DataType::LargeListView(f) => {
            checked(array, &DataType::List(Arc::clone(f))).map(|a| a.as_list::<i32>().clone())?
        }
        DataType::FixedSizeList(f, _) => {
            let source: &FixedSizeListArray = array.as_fixed_size_list();
            checked(array, &DataType::List(Arc::clone(f)))
                .map(|a| a.as_list::<i32>().clone())
                .map_err(|e| e.with_context("length", source.value_length().to_string()))?
        }
        _ => return Err(mismatch(array, "a list", path)),
    };
    let hidden = NullBuffer::union(list.nulls(), parents);
    let (offsets, values) = referred(list.offsets(), hidden.as_ref(), list.values())?;
    let values = cast_nested(&values, element, &format!("{path}.element"), None)?;
    ListArray::try_new(Arc::clone(element), offsets, values, list.nulls().cloned())
        .map(|a| Arc::new(a) as ArrayRef)
        .map_err(|e| Error::invalid_input("the list does not fit the column").with_source(e))
}

fn cast_map(array: &ArrayRef, entries: &FieldRef, path: &str, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let (Some(map), DataType::Struct(fields)) = (array.as_map_opt(), entries.data_type()) else {
        return Err(mismatch(array, "a map", path));
    };
    let source: ArrayRef = Arc::new(map.entries().clone());
    let hidden = NullBuffer::union(map.nulls(), parents);
    let (offsets, source) = referred(map.offsets(), hidden.as_ref(), &source)?;
    let (source, [key, value]) = (source.as_struct(), fields.as_ref()) else {
        return Err(mismatch(array, "a map", path));
    };
    let [keys, values] = source.columns() else { return Err(mismatch(array, "a map", path)) };
    let keys = cast_nested(keys, key, &format!("{path}.key"), None)?;
    let values = cast_nested(values, value, &format!("{path}.value"), None)?;
    let pair = StructArray::try_new_with_length(fields.clone(), vec![keys, values], None, source.len())
        .map_err(|e| Error::invalid_input("the map does not fit the column").with_source(e))?;
    MapArray::try_new(Arc::clone(entries), offsets, pair, map.nulls().cloned(), false)
        .map(|a| Arc::new(a) as ArrayRef)
        .map_err(|e| Error::invalid_input("the map does not fit the column").with_source(e))
}

type Offsets = arrow::buffer::OffsetBuffer<i32>;

/// The child values that offsets refer to, and offsets that start at 0. A list's child may hold values that no list, or
/// only a null one, refers to; they are dropped, so that what is left can be checked.
fn referred(offsets: &Offsets, nulls: Option<&NullBuffer>, values: &ArrayRef) -> Result<(Offsets, ArrayRef)> {
    let hidden = |i: usize| nulls.is_some_and(|n| n.is_null(i));
    let lengths = || offsets.windows(2).enumerate().filter_map(|(i, w)| Some((i, *w.first()?, *w.get(1)?)));
    if lengths().any(|(i, from, to)| hidden(i) && from != to) {
        let kept = lengths().map(|(i, from, to)| if hidden(i) { 0 } else { (to - from).max(0) as usize });
        let compact = Offsets::from_lengths(kept);
        let mut indices = Vec::new();
        for (i, from, to) in lengths() {
            if !hidden(i) {
                indices.extend(from..to);
            }
        }
        let indices = arrow::array::Int32Array::from(indices);
        let values = arrow::compute::take(values, &indices, None)
            .map_err(|e| Error::internal("cannot compact nested values").with_source(e))?;
        return Ok((compact, values));
    }
    let (first, last) = match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => (0, 0),
    };
    if first == 0 && last as usize == values.len() {
        return Ok((offsets.clone(), Arc::clone(values)));
    }
    let moved: Vec<i32> = offsets.iter().map(|o| o - first).collect();
    Ok((Offsets::new(moved.into()), values.slice(first as usize, (last - first) as usize)))
}

fn mismatch(array: &ArrayRef, wanted: &str, path: &str) -> Error {
    Error::invalid_input(format!("a value of type {} cannot be stored as {wanted}", array.data_type()))
        .with_context("column", path.to_owned())
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, StringArray, StringViewArray,
        TimestampNanosecondArray, UInt64Array,
    };
    use arrow::datatypes::{Int8Type, Schema, TimeUnit, TimestampMicrosecondType};

    use super::*;
    use crate::ErrorKind;
    use crate::columns::UTC;

    fn one(array: ArrayRef, target: Field) -> Result<ArrayRef> {
        let source = Schema::new(vec![Field::new("x", array.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(source), vec![array]).unwrap();
        let schema = Arc::new(Schema::new(vec![target.with_name("c")]));
        cast_to_table(&batch, &schema).map(|b| Arc::clone(b.column(0)))
    }

    fn refused(array: ArrayRef, target: Field, column: &str) {
        let error = one(array, target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(error.context("column"), Some(column), "{error}");
    }

    fn nullable(data_type: DataType) -> Field {
        Field::new("c", data_type, true)
    }

    #[test]
    fn casts_are_checked() {
        let long = one(Arc::new(Int32Array::from(vec![Some(7), None])), nullable(DataType::Int64)).unwrap();
        assert_eq!(long.as_ref(), &Int64Array::from(vec![Some(7), None]) as &dyn Array);
        refused(Arc::new(Int64Array::from(vec![1 << 40])), nullable(DataType::Int32), "c");
        refused(Arc::new(UInt64Array::from(vec![u64::MAX])), nullable(DataType::Int64), "c");
        refused(Arc::new(Float64Array::from(vec![1e300])), nullable(DataType::Decimal128(10, 2)), "c");
        refused(Arc::new(StringArray::from(vec!["x"])), nullable(DataType::Int32), "c");
        let text: DictionaryArray<Int8Type> = ["a", "b", "a"].into_iter().collect();
        let text = one(Arc::new(text), nullable(DataType::Utf8)).unwrap();
        assert_eq!(text.as_ref(), &StringArray::from(vec!["a", "b", "a"]) as &dyn Array);
        let views =
            one(Arc::new(StringViewArray::from(vec!["long enough to leave the view"])), nullable(DataType::Utf8));
        assert_eq!(views.unwrap().as_string::<i32>().value(0), "long enough to leave the view");
    }

    #[test]
    fn nanoseconds_floor_and_zones_are_utc() {
        let times = || Arc::new(TimestampNanosecondArray::from(vec![-1, 1999, i64::MIN])) as ArrayRef;
        let us = DataType::Timestamp(TimeUnit::Microsecond, None);
        let floored = one(times(), nullable(us)).unwrap();
        let floored = floored.as_primitive::<TimestampMicrosecondType>().values().to_vec();
        assert_eq!(floored, [-1, 1, i64::MIN.div_euclid(1000)]);
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let zoned = one(times(), nullable(zoned.clone())).unwrap();
        assert_eq!(zoned.as_primitive::<TimestampMicrosecondType>().values().to_vec(), floored);
        let seconds = Arc::new(arrow::array::TimestampSecondArray::from(vec![i64::MAX])) as ArrayRef;
        refused(seconds, nullable(DataType::Timestamp(TimeUnit::Microsecond, None)), "c");
    }

    #[test]
    fn required_columns_take_no_null() {
        let required = Field::new("c", DataType::Int32, false);
        refused(Arc::new(Int32Array::from(vec![Some(1), None])), required.clone(), "c");
        refused(new_null_array(&DataType::Null, 2), required.clone(), "c");
        assert!(one(new_null_array(&DataType::Null, 0), required.clone()).is_ok());
        let all = one(new_null_array(&DataType::Null, 2), nullable(DataType::Int32)).unwrap();
        assert_eq!(all.null_count(), 2);

        // A required field may be null under a null struct, and only there.
        let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
        let child: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let present = StructArray::new(fields.clone(), vec![child.clone()], None);
        let target = nullable(DataType::Struct(vec![required.with_name("a")].into()));
        refused(Arc::new(present), target.clone(), "c.a");
        let absent = StructArray::new(fields.clone(), vec![child], Some(NullBuffer::from(vec![true, false])));
        let cast = one(Arc::new(absent.clone()), target.clone()).unwrap();
        assert!(cast.is_null(1) && cast.as_struct().column(0).is_null(1));

        // Two levels: the inner struct is there, its ancestor is not.
        let inner = StructArray::new(fields, vec![Arc::clone(absent.column(0))], None);
        let inner_field = Field::new("s", inner.data_type().clone(), true);
        let outer = |nulls| StructArray::new(vec![inner_field.clone()].into(), vec![Arc::new(inner.clone())], nulls);
        let outer_target = nullable(DataType::Struct(vec![target.with_name("s")].into()));
        refused(Arc::new(outer(None)), outer_target.clone(), "c.s.a");
        let cast = one(Arc::new(outer(Some(vec![true, false].into()))), outer_target).unwrap();
        assert_eq!(cast.null_count(), 1);
    }

    #[test]
    fn lists_drop_what_no_row_refers_to() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(9), Some(1), None, Some(2), None]));
        let offsets = Offsets::new(vec![1, 2, 3, 4].into());
        let list = ListArray::new(
            Arc::new(Field::new("item", DataType::Int64, true)),
            offsets,
            values,
            Some(NullBuffer::from(vec![true, false, true])),
        );
        let element = Arc::new(Field::new("element", DataType::Int32, false));
        let cast = one(Arc::new(list), nullable(DataType::List(element.clone()))).unwrap();
        let cast = cast.as_list::<i32>();
        assert_eq!(cast.values().as_ref(), &Int32Array::from(vec![1, 2]) as &dyn Array);
        assert_eq!((cast.is_null(1), cast.value_length(1)), (true, 0));
        assert_eq!(cast.data_type(), &DataType::List(element.clone()));

        let bad = ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(vec![Some(vec![Some(1), None])]);
        refused(Arc::new(bad), nullable(DataType::List(element)), "c.element");
    }

    #[test]
    fn wrong_number_of_columns() {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let schema = Arc::new(Schema::new(vec![nullable(DataType::Int32)]));
        assert_eq!(cast_to_table(&batch, &schema).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
