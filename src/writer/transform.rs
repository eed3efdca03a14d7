//! Partition transforms over whole Arrow columns, and single values out of them.
//!
//! Invariant: row by row the results are those of [`Transform::apply`].

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, Decimal128Array, Int32Array, PrimitiveArray,
    StringArray, make_array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow::error::ArrowError;
use uuid::Uuid;

use crate::columns::arrow_type;
use crate::spec::calendar::{MICROS_PER_DAY, NANOS_PER_DAY, civil_from_days, months_from_days};
use crate::spec::literal::minimal_twos_complement;
use crate::spec::transform::{bucket_of, murmur3_hash};
use crate::spec::{Literal, PrimitiveType, Transform, Type};
use crate::{Error, Result};

/// The partition values of `array`, a column of type `source` as [`arrow_type`](super::arrow_type) has it. The result has
/// the transform's result type.
///
/// # Errors
/// As [`Transform::apply`].
pub(crate) fn transform_column(transform: &Transform, source: &PrimitiveType, array: &ArrayRef) -> Result<ArrayRef> {
    let unfit = || Error::invalid_input(format!("partition transform {transform} does not take type {source}"));
    let result = match transform {
        Transform::Identity => return Ok(Arc::clone(array)),
        Transform::Void => return Ok(new_null_array(&arrow_type(&Type::Primitive(source.clone()))?, array.len())),
        Transform::Unknown(_) => {
            // Always an error, whatever the value; one place words it.
            transform.apply(&Literal::Boolean(false))?;
            return Err(unfit());
        }
        Transform::Bucket(n) => Ok(bucket(source, array, *n).ok_or_else(unfit)?),
        Transform::Truncate(width) => truncate(source, array, *width).ok_or_else(unfit)?,
        Transform::Year => dates::<Int32Type>(source, array, |d| int(civil_from_days(d).0 - 1970)).ok_or_else(unfit)?,
        Transform::Month => dates::<Int32Type>(source, array, |d| int(months_from_days(d))).ok_or_else(unfit)?,
        Transform::Day => dates::<Date32Type>(source, array, int).ok_or_else(unfit)?,
        Transform::Hour => hours(source, array).ok_or_else(unfit)?,
    };
    result.map_err(|e| {
        Error::invalid_input(format!("a value is out of the range of partition transform {transform}")).with_source(e)
    })
}

type Computed = Result<ArrayRef, ArrowError>;

fn int(value: i64) -> Result<i32, ArrowError> {
    i32::try_from(value).map_err(|_| ArrowError::ArithmeticOverflow(format!("partition value {value}")))
}

fn bucket(source: &PrimitiveType, array: &ArrayRef, n: u32) -> Option<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef, n: u32, long: impl Fn(T::Native) -> i64) -> Option<Int32Array> {
        let array = array.as_primitive_opt::<T>()?;
        Some(array.unary(|v| bucket_of(murmur3_hash(&long(v).to_le_bytes()), n)))
    }
    fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, n: u32) -> Int32Array {
        values.map(|v| v.map(|v| bucket_of(murmur3_hash(v), n))).collect()
    }
    use PrimitiveType as T;
    Some(Arc::new(match source {
        T::Int => numbers::<Int32Type>(array, n, i64::from)?,
        T::Date => numbers::<Date32Type>(array, n, i64::from)?,
        T::Long => numbers::<Int64Type>(array, n, |v| v)?,
        T::Time => numbers::<Time64MicrosecondType>(array, n, |v| v)?,
        T::Timestamp | T::Timestamptz => numbers::<TimestampMicrosecondType>(array, n, |v| v)?,
        T::TimestampNs | T::TimestamptzNs => numbers::<TimestampNanosecondType>(array, n, |v| v.div_euclid(1000))?,
        T::Decimal { .. } => array
            .as_primitive_opt::<Decimal128Type>()?
            .unary(|v| bucket_of(murmur3_hash(&minimal_twos_complement(v)), n)),
        T::String => bytes(array.as_string_opt::<i32>()?.iter().map(|v| v.map(str::as_bytes)), n),
        T::Binary => bytes(array.as_binary_opt::<i32>()?.iter(), n),
        T::Uuid | T::Fixed(_) => bytes(array.as_fixed_size_binary_opt()?.iter(), n),
        _ => return None,
    }))
}

fn truncate(source: &PrimitiveType, array: &ArrayRef, width: u32) -> Option<Computed> {
    let overflow = || ArrowError::ArithmeticOverflow("truncate".to_owned());
    use PrimitiveType as T;
    Some(match source {
        T::Int => {
            let width = i64::from(width);
            let down = |v: i32| int(i64::from(v) - i64::from(v).rem_euclid(width));
            array.as_primitive_opt::<Int32Type>()?.try_unary::<_, Int32Type, _>(down).map(|a| Arc::new(a) as ArrayRef)
        }
        T::Long => {
            let width = i64::from(width);
            let down = |v: i64| v.checked_sub(v.rem_euclid(width)).ok_or_else(overflow);
            array.as_primitive_opt::<Int64Type>()?.try_unary::<_, Int64Type, _>(down).map(|a| Arc::new(a) as ArrayRef)
        }
        T::Decimal { .. } => {
            let width = i128::from(width);
            let decimals: &Decimal128Array = array.as_primitive_opt()?;
            let down = |v: i128| v.checked_sub(v.rem_euclid(width)).ok_or_else(overflow);
            decimals
                .try_unary::<_, Decimal128Type, _>(down)
                .map(|a| Arc::new(a.with_data_type(decimals.data_type().clone())) as ArrayRef)
        }
        T::String => {
            let width = usize::try_from(width).ok()?;
            // Fewer bytes than the width are fewer code points.
            let end = |text: &str| match text.len() <= width {
                true => text.len(),
                false => text.char_indices().nth(width).map_or(text.len(), |(end, _)| end),
            };
            let texts = array.as_string_opt::<i32>()?;
            let cut: StringArray = texts.iter().map(|t| t.and_then(|t| t.get(..end(t)))).collect();
            Ok(Arc::new(cut))
        }
        T::Binary => {
            let width = usize::try_from(width).ok()?;
            let values = array.as_binary_opt::<i32>()?;
            let cut: BinaryArray = values.iter().map(|v| v.map(|v| v.get(..width).unwrap_or(v))).collect();
            Ok(Arc::new(cut))
        }
        _ => return None,
    })
}

/// `of` the days since 1970-01-01 that dates or timestamps lie in.
fn dates<R: ArrowPrimitiveType<Native = i32>>(
    source: &PrimitiveType,
    array: &ArrayRef,
    of: impl Fn(i64) -> Result<i32, ArrowError>,
) -> Option<Computed> {
    use PrimitiveType as T;
    let result: Result<PrimitiveArray<R>, ArrowError> = match source {
        T::Date => array.as_primitive_opt::<Date32Type>()?.try_unary(|d| of(i64::from(d))),
        T::Timestamp | T::Timestamptz => {
            array.as_primitive_opt::<TimestampMicrosecondType>()?.try_unary(|v| of(v.div_euclid(MICROS_PER_DAY)))
        }
        T::TimestampNs | T::TimestamptzNs => {
            array.as_primitive_opt::<TimestampNanosecondType>()?.try_unary(|v| of(v.div_euclid(NANOS_PER_DAY)))
        }
        _ => return None,
    };
    Some(result.map(|a| Arc::new(a) as ArrayRef))
}

fn hours(source: &PrimitiveType, array: &ArrayRef) -> Option<Computed> {
    use PrimitiveType as T;
    let result: Result<Int32Array, ArrowError> = match source {
        T::Timestamp | T::Timestamptz => {
            array.as_primitive_opt::<TimestampMicrosecondType>()?.try_unary(|v| int(v.div_euclid(MICROS_PER_DAY / 24)))
        }
        T::TimestampNs | T::TimestamptzNs => {
            array.as_primitive_opt::<TimestampNanosecondType>()?.try_unary(|v| int(v.div_euclid(NANOS_PER_DAY / 24)))
        }
        _ => return None,
    };
    Some(result.map(|a| Arc::new(a) as ArrayRef))
}

/// The field at `path` (index of a column, then of a field in each struct), null wherever a struct on the way is.
pub(crate) fn column_at(columns: &[ArrayRef], path: &[usize]) -> Option<ArrayRef> {
    let (first, rest) = path.split_first()?;
    let mut array = columns.get(*first)?;
    let mut hidden: Option<NullBuffer> = None;
    for index in rest {
        let parent = array.as_struct_opt()?;
        hidden = NullBuffer::union(hidden.as_ref(), parent.nulls());
        array = parent.columns().get(*index)?;
    }
    match hidden {
        None => Some(Arc::clone(array)),
        Some(_) => {
            let nulls = NullBuffer::union(hidden.as_ref(), array.nulls());
            array.to_data().into_builder().nulls(nulls).build().ok().map(make_array)
        }
    }
}

/// The value of type `primitive` at `row`; `None` is null.
///
/// # Errors
/// `Internal` when the array is not what [`arrow_type`](super::arrow_type) has for the type.
pub(crate) fn literal_at(array: &ArrayRef, row: usize, primitive: &PrimitiveType) -> Result<Option<Literal>> {
    if array.is_null(row) || *primitive == PrimitiveType::Unknown {
        return Ok(None);
    }
    value_at(array, row, primitive)
        .map(Some)
        .ok_or_else(|| Error::internal(format!("an array of type {} holds no {primitive}", array.data_type())))
}

fn value_at(array: &ArrayRef, row: usize, primitive: &PrimitiveType) -> Option<Literal> {
    fn number<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Option<T::Native> {
        array.as_primitive_opt::<T>().map(|a| a.value(row))
    }
    use PrimitiveType as T;
    Some(match primitive {
        T::Boolean => Literal::Boolean(array.as_boolean_opt()?.value(row)),
        T::Int => Literal::Int(number::<Int32Type>(array, row)?),
        T::Long => Literal::Long(number::<Int64Type>(array, row)?),
        T::Float => Literal::Float(number::<Float32Type>(array, row)?),
        T::Double => Literal::Double(number::<Float64Type>(array, row)?),
        T::Decimal { .. } => Literal::Decimal(number::<Decimal128Type>(array, row)?),
        T::Date => Literal::Date(number::<Date32Type>(array, row)?),
        T::Time => Literal::Time(number::<Time64MicrosecondType>(array, row)?),
        T::Timestamp => Literal::Timestamp(number::<TimestampMicrosecondType>(array, row)?),
        T::Timestamptz => Literal::Timestamptz(number::<TimestampMicrosecondType>(array, row)?),
        T::TimestampNs => Literal::TimestampNs(number::<TimestampNanosecondType>(array, row)?),
        T::TimestamptzNs => Literal::TimestamptzNs(number::<TimestampNanosecondType>(array, row)?),
        T::String => Literal::String(array.as_string_opt::<i32>()?.value(row).to_owned()),
        T::Uuid => Literal::Uuid(Uuid::from_slice(array.as_fixed_size_binary_opt()?.value(row)).ok()?),
        T::Fixed(_) => Literal::Fixed(array.as_fixed_size_binary_opt()?.value(row).to_vec()),
        T::Binary | T::Geometry(_) | T::Geography(..) => {
            Literal::Binary(array.as_binary_opt::<i32>()?.value(row).to_vec())
        }
        T::Unknown => return None,
    })
}
