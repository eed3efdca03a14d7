//! Arrays of a file in the shape of the table: nested fields by id.
//!
//! Implements the spec section "Column Projection" below the top level: children of structs are found by field id wherever
//! they stand and whatever they are called, missing ones read as their default or null, and primitives are promoted.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::PhysicalExpr;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::Error;
use crate::columns::VARIANT_PARTS;

/// The field id of an Arrow field, from its metadata.
pub(crate) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// `field` with no metadata on the fields within its type.
///
/// DataFusion takes types that differ only there for equal and does not cast between them, but Arrow does not put their
/// arrays together: a list of a table and one made by a query would not fit into one column.
pub(crate) fn without_nested_ids(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(type_without_ids(field.data_type())))
}

fn type_without_ids(data_type: &DataType) -> DataType {
    let bare = |field: &FieldRef| {
        let data_type = type_without_ids(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(HashMap::new()))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(bare).collect()),
        DataType::List(element) => DataType::List(bare(element)),
        DataType::Map(entries, ordered) => DataType::Map(bare(entries), *ordered),
        other => other.clone(),
    }
}

/// Values of fields that a file lacks, by field id; a field not in it is null.
pub(crate) type Defaults = HashMap<i32, ScalarValue>;

/// How an array of a file becomes one of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// As it is.
    Same,
    /// Promoted, or another representation of the same type.
    Cast,
    /// A struct whose children come from these sources, in the table's order.
    Struct(Vec<Source>),
    /// A list with reshaped elements.
    List(Box<Shape>),
    /// A map with reshaped keys and values.
    Map(Box<Shape>, Box<Shape>),
}

/// Where a child of a struct comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// Child of the file's struct, by position.
    Child(usize, Shape),
    /// The same value in every row.
    Constant(ScalarValue),
}

impl Shape {
    /// The shape that makes `to` (a field of the table, ids in its metadata) of `from` (a field of the file, ids in its
    /// metadata).
    ///
    /// With `relabel` the ids of `from` are not in the arrays, so nested ones have to be rebuilt even if nothing else differs.
    ///
    /// # Errors
    /// `DataInvalid` when the file's type is none that can be read as the table's, or a required field is missing.
    pub(crate) fn between(from: &Field, to: &Field, defaults: &Defaults, relabel: bool) -> crate::Result<Self> {
        let mismatch = || {
            Error::data_invalid(format!(
                "column {} is {} in the file, which cannot be read as {}",
                to.name(),
                from.data_type(),
                to.data_type()
            ))
        };
        match (from.data_type(), to.data_type()) {
            (DataType::Struct(parts), DataType::Struct(wanted)) if is_variant(wanted) => {
                if let Some(other) = parts.iter().find(|f| !VARIANT_PARTS.contains(&f.name().as_str())) {
                    return Err(Error::unsupported(format!(
                        "reading column {}, a shredded variant with the field {}",
                        to.name(),
                        other.name()
                    )));
                }
                let part = |wanted: &FieldRef| {
                    let (i, part) =
                        parts.iter().enumerate().find(|(_, f)| f.name() == wanted.name()).ok_or_else(mismatch)?;
                    Ok(Source::Child(i, Self::between(part, wanted, defaults, relabel)?))
                };
                Ok(Self::Struct(wanted.iter().map(part).collect::<crate::Result<_>>()?))
            }
            (DataType::Struct(from_children), DataType::Struct(to_children)) => {
                let sources: Vec<Source> = to_children
                    .iter()
                    .map(|child| Source::of(child, from_children, defaults, relabel))
                    .collect::<crate::Result<_>>()?;
                let same = !relabel
                    && from.data_type() == to.data_type()
                    && sources.iter().enumerate().all(|(i, s)| *s == Source::Child(i, Self::Same));
                Ok(if same { Self::Same } else { Self::Struct(sources) })
            }
            (
                DataType::List(from_element)
                | DataType::LargeList(from_element)
                | DataType::ListView(from_element)
                | DataType::LargeListView(from_element)
                | DataType::FixedSizeList(from_element, _),
                DataType::List(to_element),
            ) => {
                let element = Self::between(from_element, to_element, defaults, relabel)?;
                let same = !relabel && element == Self::Same && from.data_type() == to.data_type();
                Ok(if same { Self::Same } else { Self::List(Box::new(element)) })
            }
            (DataType::Map(from_entries, _), DataType::Map(to_entries, _)) => {
                let (Some([from_key, from_value]), Some([to_key, to_value])) =
                    (entry_fields(from_entries), entry_fields(to_entries))
                else {
                    return Err(mismatch());
                };
                let key = Self::between(from_key, to_key, defaults, relabel)?;
                let value = Self::between(from_value, to_value, defaults, relabel)?;
                let unchanged = key == Self::Same && value == Self::Same;
                let same = !relabel && unchanged && from.data_type() == to.data_type();
                Ok(if same { Self::Same } else { Self::Map(Box::new(key), Box::new(value)) })
            }
            (a, b) if a == b && !a.is_nested() => Ok(Self::Same),
            (a, b) if reads_as(a, b) => Ok(Self::Cast),
            _ => Err(mismatch()),
        }
    }

    /// Reshapes `array` to `target`.
    pub(crate) fn apply(&self, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
        match (self, target) {
            (Self::Same, _) => Ok(Arc::clone(array)),
            (Self::Cast, _) => cast_value(array, target),
            (Self::Struct(sources), DataType::Struct(fields)) => {
                let Some(from) = array.as_struct_opt() else {
                    return internal_err!("expected a struct array, got {}", array.data_type());
                };
                let children = sources
                    .iter()
                    .zip(fields)
                    .map(|(source, field)| source.array(from, field))
                    .collect::<Result<Vec<_>>>()?;
                let nulls = from.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), children, nulls, from.len())?))
            }
            (Self::List(element), DataType::List(field)) => {
                let plain = match array.data_type() {
                    DataType::List(_) => Arc::clone(array),
                    DataType::LargeList(f)
                    | DataType::ListView(f)
                    | DataType::LargeListView(f)
                    | DataType::FixedSizeList(f, _) => cast(array, &DataType::List(Arc::clone(f)))?,
                    other => return internal_err!("expected a list array, got {other}"),
                };
                let Some(list) = plain.as_list_opt::<i32>() else {
                    return internal_err!("expected a list array, got {}", plain.data_type());
                };
                let values = element.apply(list.values(), field.data_type())?;
                let nulls = list.nulls().cloned();
                Ok(Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, nulls)?))
            }
            (Self::Map(key, value), DataType::Map(entries, ordered)) => {
                let (Some(map), DataType::Struct(fields)) = (array.as_map_opt(), entries.data_type()) else {
                    return internal_err!("expected a map array, got {}", array.data_type());
                };
                let Some([key_field, value_field]) = entry_fields(entries) else {
                    return internal_err!("map entries are not a key and a value");
                };
                let columns = vec![
                    key.apply(map.keys(), key_field.data_type())?,
                    value.apply(map.values(), value_field.data_type())?,
                ];
                let reshaped = StructArray::try_new(fields.clone(), columns, None)?;
                Ok(Arc::new(MapArray::try_new(
                    Arc::clone(entries),
                    map.offsets().clone(),
                    reshaped,
                    map.nulls().cloned(),
                    *ordered,
                )?))
            }
            (shape, target) => internal_err!("shape {shape:?} does not make {target}"),
        }
    }
}

impl Source {
    fn of(to: &FieldRef, from: &Fields, defaults: &Defaults, relabel: bool) -> crate::Result<Self> {
        let Some(id) = field_id(to) else {
            return Err(Error::internal(format!("field {} of the table has no field id", to.name())));
        };
        match from.iter().position(|f| field_id(f) == Some(id)).and_then(|i| from.get(i).map(|f| (i, f))) {
            Some((i, field)) => Ok(Self::Child(i, Shape::between(field, to, defaults, relabel)?)),
            None => missing_value(to, id, defaults).map(Self::Constant),
        }
    }

    fn array(&self, from: &StructArray, field: &Field) -> Result<ArrayRef> {
        match self {
            Self::Child(i, shape) => match from.columns().get(*i) {
                Some(child) => shape.apply(child, field.data_type()),
                None => internal_err!("struct has {} children, wanted number {i}", from.num_columns()),
            },
            Self::Constant(value) => value.to_array_of_size(from.len()),
        }
    }
}

/// Whether a column of the table with these children is a variant, the only type whose children have no ids.
fn is_variant(children: &Fields) -> bool {
    let names = children.iter().map(|f| f.name().as_str());
    names.eq(VARIANT_PARTS) && children.iter().all(|f| field_id(f).is_none())
}

/// What a field of the table that a file lacks reads as.
pub(crate) fn missing_value(to: &Field, id: i32, defaults: &Defaults) -> crate::Result<ScalarValue> {
    if let Some(value) = defaults.get(&id) {
        return Ok(value.clone());
    }
    if !to.is_nullable() {
        return Err(Error::data_invalid(format!(
            "required column {} (field id {id}) is missing in the file and has no initial default",
            to.name()
        )));
    }
    ScalarValue::try_from(&type_without_ids(to.data_type()))
        .map_err(|e| Error::internal("cannot make a null").with_source(e))
}

/// Key and value fields of a map's entries.
pub(crate) fn entry_fields(entries: &Field) -> Option<[&FieldRef; 2]> {
    match entries.data_type() {
        DataType::Struct(fields) => match fields.as_ref() {
            [key, value] => Some([key, value]),
            _ => None,
        },
        _ => None,
    }
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00" | "Z" | "Etc/UTC")
}

/// Whether values of the file type `from` are values of the table type `to`: a type promotion of the spec, or another
/// representation of one type.
fn reads_as(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    if let Dictionary(_, value) = from {
        return value.as_ref() == to || reads_as(value, to);
    }
    match (from, to) {
        (Int8 | Int16 | UInt8 | UInt16, Int32 | Int64) | (Int32 | UInt32, Int64) => true,
        (Float16 | Float32, Float64) | (Float16, Float32) => true,
        (Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s), Decimal128(to_p, to_s)) => {
            s == to_s && p <= to_p
        }
        (Date64, Date32) => true,
        (Date32, Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None)) => true,
        (Time32(_), Time64(TimeUnit::Microsecond)) => true,
        (Timestamp(from_unit, from_zone), Timestamp(to_unit, to_zone)) => {
            let finer = |unit: &TimeUnit| match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 1,
                TimeUnit::Microsecond => 2,
                TimeUnit::Nanosecond => 3,
            };
            let zones = match (from_zone, to_zone) {
                // Files of old writers do not say whether a timestamp is adjusted to UTC.
                (None, _) => true,
                (Some(_), Some(_)) => true,
                (Some(zone), None) => is_utc(zone),
            };
            zones && finer(from_unit) <= finer(to_unit)
        }
        (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary | LargeBinary | BinaryView) => true,
        (Utf8 | LargeUtf8 | Utf8View, Binary | LargeBinary | BinaryView) => true,
        (Binary | LargeBinary | BinaryView, FixedSizeBinary(_)) => true,
        (Null, _) => true,
        _ => false,
    }
}

/// Casts between types that [`reads_as`] allows.
fn cast_value(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    match (array.data_type(), target) {
        // The zone of a timestamp is only a label of the same instant; arrow would shift a zone other than UTC.
        (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, None)) => {
            let utc = cast(array, &DataType::Timestamp(*unit, Some("UTC".into())))?;
            Ok(cast(&utc, target)?)
        }
        (DataType::Timestamp(unit, None), DataType::Timestamp(_, Some(zone))) if !is_utc(zone) => {
            let utc = cast(array, &DataType::Timestamp(*unit, Some("UTC".into())))?;
            Ok(cast(&utc, target)?)
        }
        _ => Ok(arrow::compute::cast_with_options(
            array,
            target,
            &arrow::compute::CastOptions { safe: false, ..Default::default() },
        )?),
    }
}

/// Reads a column of the file as a column of the table.
#[derive(Debug, Eq)]
pub(crate) struct ReshapeExpr {
    column: Arc<dyn PhysicalExpr>,
    shape: Shape,
    target: FieldRef,
}

impl ReshapeExpr {
    pub(crate) fn new(column: Arc<dyn PhysicalExpr>, shape: Shape, target: FieldRef) -> Self {
        Self { column, shape, target }
    }
}

impl PartialEq for ReshapeExpr {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.shape == other.shape && self.target == other.target
    }
}

impl Hash for ReshapeExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.shape.hash(state);
        self.target.hash(state);
    }
}

impl fmt::Display for ReshapeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} AS {}", self.column, self.target.data_type())
    }
}

impl PhysicalExpr for ReshapeExpr {
    fn return_field(&self, _input_schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.target))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(self.shape.apply(&array, self.target.data_type())?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([column]) = <[_; 1]>::try_from(children) else {
            return internal_err!("ReshapeExpr has one child");
        };
        Ok(Arc::new(Self::new(column, self.shape.clone(), Arc::clone(&self.target))))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
