//! Casts of primitive columns that lose nothing unsaid.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow::util::display::FormatOptions;

use super::arrow_to::UTC;
use crate::{Error, Result};

/// Dictionaries and runs unpacked, so that only plain layouts are left.
pub(crate) fn plain(array: &ArrayRef, path: &str) -> Result<ArrayRef> {
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        DataType::RunEndEncoded(_, values) => values.data_type(),
        _ => return Ok(Arc::clone(array)),
    };
    checked(array, values).map_err(|e| e.with_context("column", path.to_owned()))
}

/// `array` as `target`: checked, nanoseconds floored to microseconds, times without zone taken as UTC.
pub(crate) fn cast_primitive(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    match (array.data_type(), target) {
        // Arrow divides toward zero; before 1970 that is the wrong microsecond.
        (T::Timestamp(TimeUnit::Nanosecond, _), T::Timestamp(TimeUnit::Microsecond, zone)) => {
            let floored = array
                .as_primitive::<TimestampNanosecondType>()
                .unary::<_, TimestampMicrosecondType>(|v| v.div_euclid(1000))
                .with_timezone_opt(zone.clone());
            Ok(Arc::new(floored))
        }
        (T::Timestamp(_, None), T::Timestamp(unit, Some(zone))) if zone.as_ref() == UTC => {
            // A timestamp without zone is taken as UTC; the session's zone has no part in what is stored.
            let same = checked(array, &T::Timestamp(*unit, None))?;
            checked(&same, target)
        }
        (T::Time64(TimeUnit::Nanosecond), T::Time64(TimeUnit::Microsecond)) => {
            let floored =
                array.as_primitive::<Time64NanosecondType>().unary::<_, Time64MicrosecondType>(|v| v.div_euclid(1000));
            Ok(Arc::new(floored))
        }
        (T::FixedSizeBinary(a), T::FixedSizeBinary(b)) if a != b => {
            Err(Error::invalid_input(format!("{a} bytes cannot be stored in a column of exactly {b}")))
        }
        (T::Null, T::Null) => Ok(Arc::clone(array)),
        (_, T::Null) if array.null_count() == array.len() => Ok(new_null_array(&T::Null, array.len())),
        (_, T::Null) => Err(Error::invalid_input("a column of type unknown holds only nulls")),
        _ => checked(array, target),
    }
}

/// A cast that refuses a value out of the target's range.
pub(crate) fn checked(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    cast_with_options(array, target, &options).map_err(|e| {
        Error::invalid_input(format!("a value of type {} cannot be stored as {target}", array.data_type()))
            .with_source(e)
    })
}
