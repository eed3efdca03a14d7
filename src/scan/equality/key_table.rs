//! Keys of deleted rows, each with the greatest data sequence number it was deleted at.
//!
//! A row is deleted when its key is here with a greater sequence number than its file's. Invariant: keys are equal when
//! their normalised Arrow rows are the same bytes, so null equals null; all memory is charged before it is taken.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::HashTable;

use crate::scan::budget::{Charge, MemoryBudget};
use crate::{Error, Result};

/// A share of all keys: those whose hash leaves `number` when divided by `of`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) number: u64,
    pub(crate) of: u64,
}

impl Share {
    pub(crate) const ALL: Self = Self { number: 0, of: 1 };

    /// Whether a key is in the share; `hash` is without a seed, for all passes must divide the keys alike.
    fn holds(self, hash: impl FnOnce() -> u64) -> bool {
        self.of == 1 || (hash() >> 24) % self.of == self.number
    }
}

/// The keys of one key set in one scope.
#[derive(Debug)]
pub(crate) struct KeyTable {
    keys: Keys,
    seed: u64,
    share: Share,
    charge: Charge,
}

#[derive(Debug)]
enum Keys {
    /// One column of whole numbers, dates or times.
    Numbers(Numbers),
    Rows(RowKeys),
}

#[derive(Debug, Default)]
struct Numbers {
    table: HashTable<(i64, i64)>,
    null: Option<i64>,
    range: Option<(i64, i64)>,
}

#[derive(Debug)]
struct RowKeys {
    converter: RowConverter,
    table: HashTable<RowKey>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct RowKey {
    hash: u64,
    start: usize,
    length: u32,
    sequence_number: i64,
}

impl KeyTable {
    /// An empty table for keys of these types, of which it keeps `share`.
    pub(crate) fn new(types: &[DataType], share: Share, budget: &Arc<dyn MemoryBudget>) -> Result<Self> {
        let keys = match types {
            [one] if is_number(one) => Keys::Numbers(Numbers::default()),
            _ => Keys::Rows(RowKeys {
                converter: RowConverter::new(types.iter().cloned().map(SortField::new).collect()).map_err(not_keys)?,
                table: HashTable::new(),
                bytes: Vec::new(),
            }),
        };
        let seed = std::hash::RandomState::new().hash_one(0u8);
        Ok(Self { keys, seed, share, charge: Charge::new(budget) })
    }

    /// Bytes charged.
    pub(crate) fn charged(&self) -> usize {
        self.charge.bytes()
    }

    /// Adds keys deleted at `sequence_number`.
    ///
    /// # Errors
    /// `Unavailable` when the budget does not allow for them; what was added before stays.
    pub(crate) fn insert(&mut self, columns: &[ArrayRef], sequence_number: i64) -> Result<()> {
        match &mut self.keys {
            Keys::Numbers(keys) => {
                let numbers = numbers(columns)?;
                for key in &numbers {
                    let Some(key) = key else {
                        keys.null = keys.null.max(Some(sequence_number));
                        continue;
                    };
                    if !self.share.holds(|| hash_number(key, 0)) {
                        continue;
                    }
                    let hash = hash_number(key, self.seed);
                    match keys.table.find_mut(hash, |(other, _)| *other == key) {
                        Some((_, greatest)) => *greatest = sequence_number.max(*greatest),
                        None => {
                            reserve_one(&mut keys.table, &mut self.charge, |(k, _)| hash_number(*k, self.seed))?;
                            keys.table.insert_unique(hash, (key, sequence_number), |(k, _)| hash_number(*k, self.seed));
                            let (least, most) = keys.range.unwrap_or((key, key));
                            keys.range = Some((least.min(key), most.max(key)));
                        }
                    }
                }
            }
            Keys::Rows(keys) => {
                let rows = keys.converter.convert_columns(columns).map_err(not_keys)?;
                for row in &rows {
                    let row = row.as_ref();
                    if !self.share.holds(|| hash_bytes(row, 0)) {
                        continue;
                    }
                    let hash = hash_bytes(row, self.seed);
                    let bytes = &keys.bytes;
                    match keys.table.find_mut(hash, |key| key.hash == hash && stored(bytes, key) == Some(row)) {
                        Some(key) => key.sequence_number = sequence_number.max(key.sequence_number),
                        None => {
                            reserve_one(&mut keys.table, &mut self.charge, |key| key.hash)?;
                            reserve_bytes(&mut keys.bytes, row.len(), &mut self.charge)?;
                            let start = keys.bytes.len();
                            let length = u32::try_from(row.len()).map_err(|_| too_long())?;
                            keys.bytes.extend_from_slice(row);
                            keys.table.insert_unique(hash, RowKey { hash, start, length, sequence_number }, |k| k.hash);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes on the rows whose key was deleted after `sequence_number`, ascending.
    pub(crate) fn find(&self, columns: &[ArrayRef], sequence_number: i64, mut each: impl FnMut(usize)) -> Result<()> {
        match &self.keys {
            Keys::Numbers(keys) => {
                let numbers = numbers(columns)?;
                let null = keys.null.is_some_and(|greatest| greatest > sequence_number);
                let (least, most) = keys.range.unwrap_or((i64::MAX, i64::MIN));
                let deleted = |key: i64| {
                    (least..=most).contains(&key)
                        && keys
                            .table
                            .find(hash_number(key, self.seed), |(other, _)| *other == key)
                            .is_some_and(|(_, greatest)| *greatest > sequence_number)
                };
                let nulls = numbers.nulls().filter(|nulls| nulls.null_count() > 0);
                for (row, key) in numbers.values().iter().enumerate() {
                    let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
                    if if is_null { null } else { deleted(*key) } {
                        each(row);
                    }
                }
            }
            Keys::Rows(keys) => {
                let rows: Rows = keys.converter.convert_columns(columns).map_err(not_keys)?;
                for (number, row) in rows.iter().enumerate() {
                    let row = row.as_ref();
                    let hash = hash_bytes(row, self.seed);
                    let found = keys.table.find(hash, |k| k.hash == hash && stored(&keys.bytes, k) == Some(row));
                    if found.is_some_and(|key| key.sequence_number > sequence_number) {
                        each(number);
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_number(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int32 | DataType::Int64 | DataType::Date32 | DataType::Time64(_) | DataType::Timestamp(_, _)
    )
}

/// One key column as 64-bit numbers.
fn numbers(columns: &[ArrayRef]) -> Result<Int64Array> {
    let [column] = columns else { return Err(Error::internal("one key column was expected")) };
    let column = match column.data_type() {
        // The zone is a label; without it the numbers are taken as they are.
        DataType::Timestamp(unit, Some(_)) => cast(column, &DataType::Timestamp(*unit, None)).map_err(not_keys)?,
        _ => Arc::clone(column),
    };
    let column = cast(&column, &DataType::Int64).map_err(not_keys)?;
    Ok(column.as_primitive::<Int64Type>().clone())
}

fn stored<'a>(bytes: &'a [u8], key: &RowKey) -> Option<&'a [u8]> {
    bytes.get(key.start..key.start + key.length as usize)
}

fn not_keys(error: arrow::error::ArrowError) -> Error {
    Error::unsupported("comparing equality delete keys of such types").with_source(error)
}

fn too_long() -> Error {
    Error::unsupported("an equality delete key of more than 4 GiB")
}

/// Makes room for one entry. While the table grows, its old memory and the new are both taken.
fn reserve_one<T>(table: &mut HashTable<T>, charge: &mut Charge, hasher: impl Fn(&T) -> u64) -> Result<()> {
    if table.len() < table.capacity() {
        return Ok(());
    }
    let old = table.allocation_size();
    let buckets = table.capacity().saturating_add(1).saturating_mul(8).div_ceil(7).max(16).next_power_of_two();
    // One control byte a bucket, and a group of them at the end.
    let new = buckets.saturating_mul(size_of::<T>() + 1).saturating_add(64);
    charge.grow(new)?;
    table.reserve(1, hasher);
    charge.shrink((old + new).saturating_sub(table.allocation_size()));
    Ok(())
}

fn reserve_bytes(bytes: &mut Vec<u8>, more: usize, charge: &mut Charge) -> Result<()> {
    if bytes.capacity() - bytes.len() >= more {
        return Ok(());
    }
    let old = bytes.capacity();
    let new = (bytes.len().saturating_add(more)).max(old.saturating_mul(2));
    charge.grow(new)?;
    bytes.reserve_exact(new - bytes.len());
    charge.shrink((old + new).saturating_sub(bytes.capacity()));
    Ok(())
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies to 128 bits and folds: every input bit reaches every output bit.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn hash_number(key: i64, seed: u64) -> u64 {
    fold(key as u64 ^ seed, MULTIPLIER)
}

fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = fold(hash ^ u64::from_le_bytes(word), MULTIPLIER);
    }
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(chunks.remainder()) {
        *to = *from;
    }
    fold(hash ^ u64::from_le_bytes(word), MULTIPLIER)
}
