//! Addresses of rows as a scan gives them: the file as a dictionary value, the position in it.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, DataType, Int32Type, UInt16Type};
use datafusion::common::{Result, internal_datafusion_err, internal_err};

/// The addresses of a batch of rows, in runs of one file.
pub(super) struct Addresses {
    /// Index of each row's path; `None` where the row has no address.
    keys: Vec<Option<u32>>,
    paths: StringArray,
    positions: Int64Array,
}

impl Addresses {
    /// # Errors
    /// `Internal` when the columns are not what a scan gives.
    pub(super) fn new(files: &ArrayRef, positions: &ArrayRef) -> Result<Self> {
        let Some(positions) = positions.as_any().downcast_ref::<Int64Array>() else {
            return internal_err!("row positions are not Int64");
        };
        let files = match files.data_type() {
            DataType::Dictionary(_, _) => files.clone(),
            _ => cast(files, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)))?,
        };
        let (keys, values) = if let Some(files) = files.as_any().downcast_ref::<DictionaryArray<UInt16Type>>() {
            (keys(files), files.values())
        } else if let Some(files) = files.as_any().downcast_ref::<DictionaryArray<Int32Type>>() {
            (keys(files), files.values())
        } else {
            return internal_err!("row addresses hold paths of type {}", files.data_type());
        };
        let paths = cast(values, &DataType::Utf8)?.as_string::<i32>().clone();
        Ok(Self { keys, paths, positions: positions.clone() })
    }

    /// Rows of the same file that stand together: its path (`None`: rows without address) and which rows they are. Rows come
    /// file by file, so runs are long.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Option<&str>, Range<usize>)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let key = *self.keys.get(start)?;
            let length = self.keys.iter().skip(start).take_while(|other| **other == key).count();
            let run = start..start + length;
            start = run.end;
            Some((key.map(|key| self.paths.value(key.as_usize())), run))
        })
    }

    /// The position of a row that has an address.
    pub(super) fn position(&self, row: usize) -> Result<u64> {
        if row >= self.positions.len() || self.positions.is_null(row) {
            return internal_err!("a row has a file and no position");
        }
        u64::try_from(self.positions.value(row)).map_err(|_| internal_datafusion_err!("negative row position"))
    }

    /// The positions of a run of rows, as numbers; their nulls are not looked at.
    pub(super) fn positions(&self, run: Range<usize>) -> &[i64] {
        self.positions.values().get(run).unwrap_or_default()
    }

    /// Whether every row has an address.
    pub(super) fn complete(&self) -> bool {
        self.positions.null_count() == 0 && self.keys.iter().all(Option::is_some)
    }
}

fn keys<K: ArrowDictionaryKeyType>(files: &DictionaryArray<K>) -> Vec<Option<u32>> {
    let key = |key: K::Native| u32::try_from(key.as_usize()).ok();
    match files.keys().null_count() {
        0 => files.keys().values().iter().map(|k| key(*k)).collect(),
        _ => files.keys().iter().map(|k| k.and_then(key)).collect(),
    }
}
