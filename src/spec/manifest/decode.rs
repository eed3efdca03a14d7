//! Columns of a manifest's rows by field id.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, ListArray, StructArray};
use arrow::array::{Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use crate::spec::avro::{AvroField, AvroType, Container, Kind, decode_batches, physical_name};
use crate::spec::data_file::ColumnMap;
use crate::{Error, Result};

/// Rows of a batch.
const BATCH_ROWS: usize = 2048;

/// Decodes every row of the container and passes the batches on. Fields that `keep` refuses are not decoded.
pub(super) fn decode_rows(
    container: Container<'_>,
    row_type: &Arc<AvroType>,
    keep: &dyn Fn(&AvroField) -> bool,
    mut each: impl FnMut(Rows<'_>) -> Result<()>,
) -> Result<()> {
    decode_batches(container, row_type, BATCH_ROWS, keep, |array| each(Rows { fields: row_type.fields(), array }))
}

/// Some rows of a record: its schema's fields, and their columns.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    pub(super) fields: &'a [AvroField],
    pub(super) array: StructArray,
}

impl<'a> Rows<'a> {
    pub(super) fn len(&self) -> usize {
        self.array.len()
    }

    /// The field of an id, or, where the writer gave fields no ids, of a name; with its column, if it was decoded.
    fn find(&self, id: i32, name: &str) -> Option<(&'a AvroField, &ArrayRef)> {
        let by_id = self.fields.iter().position(|f| f.id == Some(id));
        let index = by_id.or_else(|| self.fields.iter().position(|f| f.id.is_none() && f.name == name))?;
        Some((self.fields.get(index)?, self.array.column_by_name(&physical_name(index))?))
    }

    /// The column at a position of the schema, if it was decoded.
    pub(super) fn column(&self, index: usize) -> Option<&ArrayRef> {
        self.array.column_by_name(&physical_name(index))
    }

    pub(super) fn longs(&self, id: i32, name: &'static str) -> Result<Longs> {
        Longs::new(self.find(id, name).map(|(_, c)| c), name)
    }

    pub(super) fn booleans(&self, id: i32, name: &'static str) -> Result<Booleans> {
        match self.find(id, name) {
            None => Ok(Booleans(None)),
            Some((_, column)) => match column.as_boolean_opt() {
                Some(values) => Ok(Booleans(Some(values.clone()))),
                None => Err(unexpected(name, column.data_type())),
            },
        }
    }

    pub(super) fn texts(&self, id: i32, name: &'static str) -> Result<Texts> {
        match self.find(id, name) {
            None => Ok(Texts(None)),
            Some((_, column)) if column.data_type() == &DataType::Null => Ok(Texts(None)),
            Some((_, column)) => match column.as_string_opt::<i32>() {
                Some(values) => Ok(Texts(Some(values.clone()))),
                None => Err(unexpected(name, column.data_type())),
            },
        }
    }

    pub(super) fn bytes(&self, id: i32, name: &'static str) -> Result<Bytes> {
        Bytes::new(self.find(id, name).map(|(_, c)| c), name)
    }

    pub(super) fn lists(&self, id: i32, name: &'static str) -> Result<LongLists> {
        let Some((list, _)) = self.list(id, name)? else { return Ok(LongLists(None)) };
        let items = Longs::new(Some(list.values()), name)?;
        Ok(LongLists(Some((list, items))))
    }

    /// A map kept as an array of records of key and value.
    pub(super) fn maps<V>(&self, id: i32, name: &'static str, value: fn(&ArrayRef) -> Result<V>) -> Result<Maps<V>> {
        let Some((list, field)) = self.list(id, name)? else { return Ok(Maps(None)) };
        let (Some(items), Some(item)) = (list.values().as_struct_opt(), field) else {
            return Err(unexpected(name, list.data_type()));
        };
        let named = |name: &str| {
            let index = item.fields().iter().position(|f| f.name == name);
            index.and_then(|i| items.column_by_name(&physical_name(i)))
        };
        let (Some(keys), Some(values)) = (named("key"), named("value")) else {
            return Err(unexpected(name, list.data_type()));
        };
        let (keys, values) = (Longs::new(Some(keys), name)?, value(values)?);
        Ok(Maps(Some((list, keys, values))))
    }

    /// A list column with the type of its items; `None` when it is absent or always null.
    fn list(&self, id: i32, name: &'static str) -> Result<Option<(ListArray, Option<&'a AvroType>)>> {
        let Some((field, column)) = self.find(id, name) else { return Ok(None) };
        if column.data_type() == &DataType::Null {
            return Ok(None);
        }
        let list = column.as_list_opt::<i32>().ok_or_else(|| unexpected(name, column.data_type()))?;
        let item = match &field.field_type.non_null().kind {
            Kind::Array(item) => Some(&**item),
            _ => None,
        };
        Ok(Some((list.clone(), item)))
    }

    /// A column of lists of records: the lists, and all their records.
    pub(super) fn record_lists(&self, id: i32, name: &'static str) -> Result<Option<(ListArray, Rows<'a>)>> {
        let Some((list, item)) = self.list(id, name)? else { return Ok(None) };
        let (Some(items), Some(item)) = (list.values().as_struct_opt(), item) else {
            return Err(unexpected(name, list.data_type()));
        };
        let rows = Rows { fields: item.fields(), array: items.clone() };
        Ok(Some((list, rows)))
    }

    /// A nested record, which must be there.
    pub(super) fn record(&self, id: i32, name: &'static str) -> Result<Rows<'a>> {
        let (field, column) =
            self.find(id, name).ok_or_else(|| Error::data_invalid(format!("field {name} ({id}) is missing")))?;
        let array = column.as_struct_opt().ok_or_else(|| unexpected(name, column.data_type()))?;
        Ok(Rows { fields: field.field_type.fields(), array: array.clone() })
    }
}

fn unexpected(name: &str, found: &DataType) -> Error {
    Error::data_invalid(format!("field {name} has the unexpected type {found}"))
}

/// A column of whole numbers; absent reads as null.
#[derive(Debug)]
pub(super) enum Longs {
    Absent,
    Int(Int32Array),
    Long(Int64Array),
}

impl Longs {
    pub(super) fn new(column: Option<&ArrayRef>, name: &str) -> Result<Self> {
        let Some(column) = column else { return Ok(Self::Absent) };
        match column.data_type() {
            DataType::Null => Ok(Self::Absent),
            DataType::Int32 => Ok(Self::Int(column.as_primitive::<Int32Type>().clone())),
            DataType::Int64 => Ok(Self::Long(column.as_primitive::<Int64Type>().clone())),
            other => Err(unexpected(name, other)),
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Absent => None,
            Self::Int(a) => a.is_valid(row).then(|| i64::from(a.value(row))),
            Self::Long(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }
}

/// A column of booleans.
#[derive(Debug)]
pub(super) struct Booleans(Option<arrow::array::BooleanArray>);

impl Booleans {
    pub(super) fn get(&self, row: usize) -> Option<bool> {
        self.0.as_ref().and_then(|a| a.is_valid(row).then(|| a.value(row)))
    }
}

/// A column of texts.
#[derive(Debug)]
pub(super) struct Texts(Option<StringArray>);

impl Texts {
    pub(super) fn get(&self, row: usize) -> Option<&str> {
        self.0.as_ref().and_then(|a| a.is_valid(row).then(|| a.value(row)))
    }
}

/// A column of bytes, of any or of a fixed length.
#[derive(Debug)]
pub(super) enum Bytes {
    Absent,
    Any(BinaryArray),
    Fixed(FixedSizeBinaryArray),
}

impl Bytes {
    pub(super) fn new(column: Option<&ArrayRef>, name: &str) -> Result<Self> {
        let Some(column) = column else { return Ok(Self::Absent) };
        match column.data_type() {
            DataType::Null => Ok(Self::Absent),
            DataType::Binary => Ok(Self::Any(column.as_binary::<i32>().clone())),
            DataType::FixedSizeBinary(_) => Ok(Self::Fixed(column.as_fixed_size_binary().clone())),
            other => Err(unexpected(name, other)),
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Absent => None,
            Self::Any(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Fixed(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }
}

/// A column of lists of whole numbers.
#[derive(Debug)]
pub(super) struct LongLists(Option<(ListArray, Longs)>);

impl LongLists {
    /// The list; null reads as empty.
    pub(super) fn get(&self, row: usize) -> impl Iterator<Item = i64> + '_ {
        let range = self.0.as_ref().map_or(0..0, |(list, _)| item_range(list, row));
        range.filter_map(|i| self.0.as_ref().and_then(|(_, items)| items.get(i)))
    }
}

/// A column of maps from column id.
#[derive(Debug)]
pub(super) struct Maps<V>(Option<(ListArray, Longs, V)>);

impl<V> Maps<V> {
    /// The map; null reads as empty. Pairs without a valid id or value are left out.
    pub(super) fn get<T>(&self, row: usize, value: impl Fn(&V, usize) -> Option<T>) -> ColumnMap<T> {
        let Some((list, keys, values)) = &self.0 else { return ColumnMap::default() };
        item_range(list, row).filter_map(|i| Some((i32::try_from(keys.get(i)?).ok()?, value(values, i)?))).collect()
    }
}

/// Positions of a row's items among all items.
pub(super) fn item_range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    if list.is_null(row) {
        return 0..0;
    }
    let offsets = list.value_offsets();
    let at = |i: usize| offsets.get(i).map_or(0, |o| *o as usize);
    at(row)..at(row + 1)
}
