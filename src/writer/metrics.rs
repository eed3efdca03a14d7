//! Column metrics of a file: what manifests record so that readers can skip it.
//!
//! Counts and bounds come from the footer the Parquet writer made while encoding, so they cost no pass over the rows; only
//! NaNs are counted here. A metric is recorded from all row groups or not at all. As Java has it: columns in lists and
//! maps have a size but neither counts nor bounds, and a column of mode `none` has nothing.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;
use uuid::Uuid;

use super::parquet_schema::Leaf;
use crate::spec::properties::{MetricsMode, MetricsProperties};
use crate::spec::{DataFile, Literal, PrimitiveType, Schema, TableMetadata, Type};

/// The metrics mode of each leaf. Columns of the table's sort order are always worth bounds: where the default would
/// leave them out they get `truncate(16)`, unless the column's own property says otherwise.
pub(crate) fn leaf_modes(
    properties: &MetricsProperties,
    schema: &Schema,
    metadata: &TableMetadata,
    leaves: &[Leaf],
) -> Vec<MetricsMode> {
    let sorted: Vec<i32> = metadata
        .sort_orders
        .iter()
        .filter(|o| o.order_id == metadata.default_sort_order_id)
        .flat_map(|o| o.fields.iter().map(|f| f.source_id))
        .collect();
    let mut order = Vec::new();
    schema.visit(&mut |field| order.push(field.id));
    let ordinals: std::collections::HashMap<i32, usize> =
        order.into_iter().enumerate().map(|(i, id)| (id, i)).collect();
    leaves
        .iter()
        .map(|leaf| {
            // Lineage columns are no part of the schema and never searched by.
            let Some(ordinal) = ordinals.get(&leaf.id) else { return MetricsMode::Counts };
            let mode = properties.mode_of(&leaf.name, *ordinal);
            let named = properties.columns.contains_key(&leaf.name);
            match mode {
                MetricsMode::None | MetricsMode::Counts if !named && sorted.contains(&leaf.id) => {
                    MetricsProperties::INFERRED
                }
                mode => mode,
            }
        })
        .collect()
}

/// Counts the NaNs of the float columns of a file.
#[derive(Debug)]
pub(crate) struct NanCounter {
    columns: Vec<FloatColumn>,
}

#[derive(Debug, Clone)]
struct FloatColumn {
    id: i32,
    /// Index of the top-level column, then of the field in each struct.
    path: Vec<usize>,
    count: u64,
}

impl NanCounter {
    /// A counter for columns with these types, in the order of the batches. Only floats outside lists and maps count.
    pub(crate) fn new<'a>(columns: impl Iterator<Item = (i32, &'a Type)>) -> Self {
        fn walk(id: i32, field_type: &Type, path: &mut Vec<usize>, columns: &mut Vec<FloatColumn>) {
            match field_type {
                Type::Primitive(PrimitiveType::Float | PrimitiveType::Double) => {
                    columns.push(FloatColumn { id, path: path.clone(), count: 0 });
                }
                Type::Struct(s) => {
                    for (i, f) in s.fields.iter().enumerate() {
                        path.push(i);
                        walk(f.id, &f.field_type, path, columns);
                        path.pop();
                    }
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        for (i, (id, field_type)) in columns.enumerate() {
            walk(id, field_type, &mut vec![i], &mut found);
        }
        Self { columns: found }
    }

    /// Adds the NaNs of a batch's columns.
    pub(crate) fn update(&mut self, columns: &[ArrayRef]) {
        for column in &mut self.columns {
            let Some((first, rest)) = column.path.split_first() else { continue };
            let Some(mut array) = columns.get(*first) else { continue };
            let mut hidden: Option<NullBuffer> = None;
            for index in rest {
                let Some(parent) = array.as_struct_opt() else { break };
                let Some(child) = parent.columns().get(*index) else { break };
                hidden = NullBuffer::union(hidden.as_ref(), parent.nulls());
                array = child;
            }
            let hidden = NullBuffer::union(hidden.as_ref(), array.nulls());
            column.count += match array.data_type() {
                DataType::Float32 => count_nans::<Float32Type>(array.as_primitive(), hidden.as_ref(), |v| v.is_nan()),
                DataType::Float64 => count_nans::<Float64Type>(array.as_primitive(), hidden.as_ref(), |v| v.is_nan()),
                _ => 0,
            };
        }
    }

    fn count_of(&self, id: i32) -> Option<u64> {
        self.columns.iter().find(|c| c.id == id).map(|c| c.count)
    }
}

fn count_nans<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    nulls: Option<&NullBuffer>,
    is_nan: impl Fn(&T::Native) -> bool,
) -> u64 {
    let values = array.values().iter();
    let count = match nulls.filter(|n| n.null_count() > 0) {
        None => values.filter(|v| is_nan(v)).count(),
        Some(nulls) => values.zip(nulls.iter()).filter(|(v, valid)| *valid && is_nan(v)).count(),
    };
    count as u64
}

/// Writes a finished file's metrics into its description: rows, sizes, counts, bounds and split offsets.
pub(crate) fn record(
    file: &mut DataFile,
    footer: &ParquetMetaData,
    leaves: &[Leaf],
    modes: &[MetricsMode],
    nans: &NanCounter,
) {
    file.record_count = u64::try_from(footer.file_metadata().num_rows()).unwrap_or(0);
    file.split_offsets = footer.row_groups().iter().filter_map(|g| g.file_offset()).collect();
    for (index, (leaf, mode)) in leaves.iter().zip(modes).enumerate() {
        if *mode == MetricsMode::None {
            continue;
        }
        let chunks = || footer.row_groups().iter().filter_map(|g| g.columns().get(index));
        let sum = |of: fn(&ColumnChunkMetaData) -> i64| chunks().map(|c| u64::try_from(of(c)).unwrap_or(0)).sum();
        file.column_sizes.insert(leaf.id, sum(ColumnChunkMetaData::compressed_size));
        if leaf.repeated {
            continue;
        }
        file.value_counts.insert(leaf.id, sum(ColumnChunkMetaData::num_values));
        if let Some(count) = nans.count_of(leaf.id) {
            file.nan_value_counts.insert(leaf.id, count);
        }
        let nulls: Option<u64> = chunks().map(|c| c.statistics().and_then(Statistics::null_count_opt)).sum();
        let Some(nulls) = nulls else { continue };
        file.null_value_counts.insert(leaf.id, nulls);
        let length = match mode {
            MetricsMode::Truncate(n) => Some(*n),
            MetricsMode::Full => None,
            MetricsMode::None | MetricsMode::Counts => continue,
        };
        if let Some((lower, upper)) = bounds(chunks(), &leaf.primitive) {
            file.lower_bounds.insert(leaf.id, lower_bound(lower, length).to_bytes().into());
            if let Some(upper) = upper_bound(upper, length) {
                file.upper_bounds.insert(leaf.id, upper.to_bytes().into());
            }
        }
    }
}

/// Smallest and greatest value over all row groups; `None` when one of them does not know, or there is no value.
fn bounds<'a>(
    chunks: impl Iterator<Item = &'a ColumnChunkMetaData>,
    primitive: &PrimitiveType,
) -> Option<(Literal, Literal)> {
    let mut found: Option<(Literal, Literal)> = None;
    for chunk in chunks {
        let statistics = chunk.statistics()?;
        if statistics.min_bytes_opt().is_none() && statistics.max_bytes_opt().is_none() {
            // Nothing but nulls and NaNs has no bounds and widens none. (NaNs count as values, so this cannot be
            // told from the counts; the writer leaves bounds out for no other reason.)
            continue;
        }
        let (min, max) = statistics_values(statistics, primitive)?;
        found = Some(match found {
            None => (min, max),
            Some((lower, upper)) => (
                if min.compare(&lower)? == Ordering::Less { min } else { lower },
                if max.compare(&upper)? == Ordering::Greater { max } else { upper },
            ),
        });
    }
    found
}

fn statistics_values(statistics: &Statistics, primitive: &PrimitiveType) -> Option<(Literal, Literal)> {
    use PrimitiveType as T;
    fn both<V>(min: Option<V>, max: Option<V>, literal: impl Fn(V) -> Option<Literal>) -> Option<(Literal, Literal)> {
        Some((literal(min?)?, literal(max?)?))
    }
    match statistics {
        Statistics::Boolean(s) => both(s.min_opt(), s.max_opt(), |v| Some(Literal::Boolean(*v))),
        Statistics::Int32(s) => both(s.min_opt(), s.max_opt(), |v| match primitive {
            T::Int => Some(Literal::Int(*v)),
            T::Date => Some(Literal::Date(*v)),
            T::Decimal { .. } => Some(Literal::Decimal(i128::from(*v))),
            _ => None,
        }),
        Statistics::Int64(s) => both(s.min_opt(), s.max_opt(), |v| match primitive {
            T::Long => Some(Literal::Long(*v)),
            T::Time => Some(Literal::Time(*v)),
            T::Timestamp => Some(Literal::Timestamp(*v)),
            T::Timestamptz => Some(Literal::Timestamptz(*v)),
            T::TimestampNs => Some(Literal::TimestampNs(*v)),
            T::TimestamptzNs => Some(Literal::TimestamptzNs(*v)),
            T::Decimal { .. } => Some(Literal::Decimal(i128::from(*v))),
            _ => None,
        }),
        Statistics::Float(s) => both(s.min_opt(), s.max_opt(), |v| Some(Literal::Float(*v))),
        Statistics::Double(s) => both(s.min_opt(), s.max_opt(), |v| Some(Literal::Double(*v))),
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
            both(statistics.min_bytes_opt(), statistics.max_bytes_opt(), |v| match primitive {
                T::String => std::str::from_utf8(v).ok().map(|v| Literal::String(v.to_owned())),
                T::Binary => Some(Literal::Binary(v.to_vec())),
                T::Fixed(_) => Some(Literal::Fixed(v.to_vec())),
                T::Uuid => Uuid::from_slice(v).ok().map(Literal::Uuid),
                T::Decimal { .. } => Literal::from_bytes(primitive, v).ok(),
                // The bounds of shapes are points, which the bytes of a shape are not.
                _ => None,
            })
        }
        Statistics::Int96(_) => None,
    }
}

/// The value, or a prefix of at most `length` code points or bytes: never above the value.
pub(crate) fn lower_bound(value: Literal, length: Option<usize>) -> Literal {
    let Some(length) = length else { return value };
    match value {
        Literal::String(mut text) => {
            if let Some((end, _)) = text.char_indices().nth(length) {
                text.truncate(end);
            }
            Literal::String(text)
        }
        Literal::Binary(mut bytes) => {
            bytes.truncate(length);
            Literal::Binary(bytes)
        }
        Literal::Fixed(mut bytes) => {
            bytes.truncate(length);
            Literal::Fixed(bytes)
        }
        other => other,
    }
}

/// The value, or the least prefix of at most `length` code points or bytes, its last one counted up, that is above the
/// value; `None` when there is none, as for a prefix of nothing but 0xFF.
pub(crate) fn upper_bound(value: Literal, length: Option<usize>) -> Option<Literal> {
    let Some(length) = length else { return Some(value) };
    Some(match value {
        Literal::String(text) => match text.char_indices().nth(length) {
            None => Literal::String(text),
            Some((end, _)) => {
                let mut prefix = text;
                prefix.truncate(end);
                loop {
                    let next = next_char(prefix.pop()?);
                    if let Some(next) = next {
                        prefix.push(next);
                        return Some(Literal::String(prefix));
                    }
                }
            }
        },
        Literal::Binary(bytes) => Literal::Binary(upper_bytes(bytes, length)?),
        Literal::Fixed(bytes) => Literal::Fixed(upper_bytes(bytes, length)?),
        other => other,
    })
}

/// The code point after `c`, surrogates left out.
fn next_char(c: char) -> Option<char> {
    match c {
        '\u{D7FF}' => Some('\u{E000}'),
        c => char::from_u32(u32::from(c) + 1),
    }
}

fn upper_bytes(mut bytes: Vec<u8>, length: usize) -> Option<Vec<u8>> {
    if bytes.len() <= length {
        return Some(bytes);
    }
    bytes.truncate(length);
    loop {
        if let Some(next) = bytes.pop()?.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
}
