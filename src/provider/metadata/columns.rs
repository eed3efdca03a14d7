//! Columns of a metadata table, each made from the same list of rows when it is asked for.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, MapArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

use crate::columns::UTC;
use crate::{Error, Result};

type Build<R> = Box<dyn Fn(&[R]) -> Result<ArrayRef> + Send + Sync>;

/// The columns of a table whose rows are made from values of type `R`.
pub(super) struct Columns<R> {
    fields: Vec<FieldRef>,
    build: Vec<Build<R>>,
}

pub(super) fn failed(e: ArrowError) -> Error {
    Error::internal("cannot put a metadata table together").with_source(e)
}

impl<R: 'static> Columns<R> {
    pub(super) fn new() -> Self {
        Self { fields: Vec::new(), build: Vec::new() }
    }

    /// A column of any type.
    pub(super) fn column(
        mut self,
        field: Field,
        build: impl Fn(&[R]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        self.fields.push(Arc::new(field));
        self.build.push(Box::new(build));
        self
    }

    /// An Int32 column, nullable unless `required`.
    pub(super) fn int(
        self,
        name: &str,
        required: bool,
        get: impl Fn(&R) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.column(Field::new(name, DataType::Int32, !required), move |rows| {
            Ok(Arc::new(rows.iter().map(&get).collect::<Int32Array>()))
        })
    }

    pub(super) fn long(
        self,
        name: &str,
        required: bool,
        get: impl Fn(&R) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        self.column(Field::new(name, DataType::Int64, !required), move |rows| {
            Ok(Arc::new(rows.iter().map(&get).collect::<Int64Array>()))
        })
    }

    /// As [`long`](Self::long); a value that is too great for the type is null.
    pub(super) fn unsigned(
        self,
        name: &str,
        required: bool,
        get: impl Fn(&R) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        self.long(name, required, move |row| get(row).and_then(|n| i64::try_from(n).ok()))
    }

    pub(super) fn boolean(self, name: &str, get: impl Fn(&R) -> bool + Send + Sync + 'static) -> Self {
        self.column(Field::new(name, DataType::Boolean, false), move |rows| {
            Ok(Arc::new(rows.iter().map(|row| Some(get(row))).collect::<BooleanArray>()))
        })
    }

    pub(super) fn text(
        self,
        name: &str,
        required: bool,
        get: impl for<'a> Fn(&'a R) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        self.column(Field::new(name, DataType::Utf8, !required), move |rows| {
            Ok(Arc::new(rows.iter().map(&get).collect::<StringArray>()))
        })
    }

    pub(super) fn bytes(
        self,
        name: &str,
        get: impl for<'a> Fn(&'a R) -> Option<&'a [u8]> + Send + Sync + 'static,
    ) -> Self {
        self.column(Field::new(name, DataType::Binary, true), move |rows| {
            Ok(Arc::new(rows.iter().map(&get).collect::<BinaryArray>()))
        })
    }

    /// An instant, from milliseconds since the epoch.
    pub(super) fn instant(
        self,
        name: &str,
        required: bool,
        ms: impl Fn(&R) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        let data_type = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        self.column(Field::new(name, data_type, !required), move |rows| {
            let micros = rows.iter().map(|row| ms(row).map(|ms| ms.saturating_mul(1000)));
            Ok(Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone(UTC)))
        })
    }

    /// A struct of columns, made from a value that each row has.
    pub(super) fn structure<S: 'static>(
        self,
        name: &str,
        required: bool,
        inner: Columns<S>,
        get: impl Fn(&R) -> S + Send + Sync + 'static,
    ) -> Self {
        let data_type = DataType::Struct(inner.fields.iter().cloned().collect());
        self.column(Field::new(name, data_type, !required), move |rows| {
            inner.struct_array(&rows.iter().map(&get).collect::<Vec<S>>())
        })
    }

    /// The schema of all columns.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(ArrowSchema::new(self.fields.iter().cloned().collect::<Fields>()))
    }

    /// The columns at these positions, made from `rows`.
    pub(super) fn batch(&self, projection: &[usize], rows: &[R]) -> Result<RecordBatch> {
        let schema = Arc::new(self.schema().project(projection).map_err(failed)?);
        let wanted = projection.iter().filter_map(|i| self.build.get(*i));
        let columns = wanted.map(|build| build(rows)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(failed)
    }

    /// All columns as one array of structs.
    pub(super) fn struct_array(&self, rows: &[R]) -> Result<ArrayRef> {
        let columns = self.build.iter().map(|build| build(rows)).collect::<Result<Vec<_>>>()?;
        let fields = self.fields.iter().cloned().collect();
        Ok(Arc::new(StructArray::try_new_with_length(fields, columns, None, rows.len()).map_err(failed)?))
    }
}

/// The type of a list whose items are of `item`.
pub(super) fn list_type(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, false)))
}

/// A list a row; `lengths` are `None` for a null, and `items` hold those of all lists.
pub(super) fn lists(items: ArrayRef, lengths: &[Option<usize>]) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|n| n.unwrap_or(0)));
    let field = Arc::new(Field::new("element", items.data_type().clone(), false));
    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls(lengths)).map_err(failed)?))
}

fn entry_fields(key: DataType, value: DataType) -> Fields {
    Fields::from(vec![Field::new("key", key, false), Field::new("value", value, false)])
}

/// The type of a map.
pub(super) fn map_type(key: DataType, value: DataType) -> DataType {
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry_fields(key, value)), false)), false)
}

/// A map a row; `lengths` are `None` for a null, and `keys` and `values` hold those of all maps.
pub(super) fn maps(keys: ArrayRef, values: ArrayRef, lengths: &[Option<usize>]) -> Result<ArrayRef> {
    let fields = entry_fields(keys.data_type().clone(), values.data_type().clone());
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|n| n.unwrap_or(0)));
    let field = Arc::new(Field::new("key_value", DataType::Struct(fields.clone()), false));
    let entries = StructArray::try_new(fields, vec![keys, values], None).map_err(failed)?;
    Ok(Arc::new(MapArray::try_new(field, offsets, entries, nulls(lengths), false).map_err(failed)?))
}

fn nulls(lengths: &[Option<usize>]) -> Option<NullBuffer> {
    let has_nulls = lengths.iter().any(Option::is_none);
    has_nulls.then(|| lengths.iter().map(Option::is_some).collect())
}
