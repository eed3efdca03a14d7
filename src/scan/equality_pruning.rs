//! Leaving out equality delete files whose keys cannot occur in a data file.
//!
//! Compares the key columns' null counts and bounds of both files. Invariant: a delete file is left out only when the
//! metrics prove that no row of the data file equals any of its keys, null matching null and NaN matching NaN; whatever
//! is unknown may match.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::spec::{DataFile, Literal, PrimitiveType, TableMetadata};

/// The types under which key columns are compared.
#[derive(Debug)]
pub(crate) struct EqualityPruner {
    /// Top-level primitive key columns; metrics of nested columns are not trusted.
    types: HashMap<i32, PrimitiveType>,
}

/// What metrics say about the key columns of one file. Columns of which nothing is known are absent.
#[derive(Debug, Default)]
pub(crate) struct KeyRanges(HashMap<i32, KeyRange>);

#[derive(Debug)]
struct KeyRange {
    may_have_null: bool,
    all_null: bool,
    /// Bounds of all values that are not null; may be wider than the values.
    bounds: Option<(Literal, Literal)>,
}

impl EqualityPruner {
    /// A pruner for the columns `equality_ids`. A column is looked up in the current schema, then in the others from the
    /// last on, for it may have been dropped since.
    pub(crate) fn new(equality_ids: impl Iterator<Item = i32>, metadata: &TableMetadata) -> Self {
        let current = metadata.schemas.iter().filter(|schema| schema.schema_id == metadata.current_schema_id);
        let find = |id: i32| {
            let mut schemas = current.clone().chain(metadata.schemas.iter().rev());
            schemas.find_map(|schema| schema.fields.fields.iter().find(|field| field.id == id))
        };
        let mut types = HashMap::new();
        for id in equality_ids {
            if !types.contains_key(&id)
                && let Some(primitive) = find(id).and_then(|field| field.field_type.as_primitive())
            {
                types.insert(id, primitive.clone());
            }
        }
        Self { types }
    }

    /// Ranges of all key columns in a data file.
    pub(crate) fn data_ranges(&self, file: &DataFile) -> KeyRanges {
        self.ranges(file, self.types.keys().copied())
    }

    /// Ranges of a delete file's own key columns.
    pub(crate) fn delete_ranges(&self, file: &DataFile) -> KeyRanges {
        self.ranges(file, file.equality_ids.iter().copied())
    }

    fn ranges(&self, file: &DataFile, ids: impl Iterator<Item = i32>) -> KeyRanges {
        KeyRanges(ids.filter_map(|id| Some((id, KeyRange::of(file, id, self.types.get(&id)?)))).collect())
    }
}

impl KeyRange {
    fn of(file: &DataFile, id: i32, primitive: &PrimitiveType) -> Self {
        let values = file.value_counts.get(id);
        let nulls = file.null_value_counts.get(id);
        let float = matches!(primitive, PrimitiveType::Float | PrimitiveType::Double);
        let may_have_nan = float && file.nan_value_counts.get(id) != Some(&0);
        // Java's order of uuids is another than that of their bytes.
        let ordered = !may_have_nan && *primitive != PrimitiveType::Uuid;
        let bound = |bytes: Option<&Box<[u8]>>| bytes.and_then(|bytes| Literal::from_bytes(primitive, bytes).ok());
        let bounds = match (bound(file.lower_bounds.get(id)), bound(file.upper_bounds.get(id))) {
            // NaN lies outside bounds; inverted bounds say nothing.
            (Some(lower), Some(upper)) if ordered && lower.compare(&upper).is_some_and(Ordering::is_le) => {
                Some((lower, upper))
            }
            _ => None,
        };
        // Where there are bounds there are values, whatever the counts say.
        let bounded = file.lower_bounds.get(id).is_some() || file.upper_bounds.get(id).is_some();
        Self { may_have_null: nulls != Some(&0), all_null: values.is_some() && values == nulls && !bounded, bounds }
    }

    fn may_equal(&self, other: &Self) -> bool {
        if self.may_have_null && other.may_have_null {
            return true;
        }
        if (self.all_null && !other.may_have_null) || (other.all_null && !self.may_have_null) {
            return false;
        }
        match (&self.bounds, &other.bounds) {
            (Some((lower, upper)), Some((other_lower, other_upper))) => {
                let below = |a: &Literal, b: &Literal| a.compare(b) == Some(Ordering::Less);
                !below(upper, other_lower) && !below(other_upper, lower)
            }
            _ => true,
        }
    }
}

impl KeyRanges {
    /// Whether a row of the data file may equal a key of this delete file.
    pub(crate) fn may_match(&self, data: &Self) -> bool {
        self.0.iter().all(|(id, keys)| data.0.get(id).is_none_or(|values| keys.may_equal(values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{DataContent, FileFormat, PartitionKey, PartitionTuple};

    /// A file whose bounds are in Java's order, which takes the halves of a uuid as signed, may hold a key that lies outside
    /// of them by bytes.
    #[test]
    fn bounds_of_uuids_leave_no_delete_out() {
        let key = PartitionKey { spec_id: 0, tuple: PartitionTuple::default() };
        let mut file = DataFile::new(DataContent::Data, "f", FileFormat::Parquet, key);
        file.lower_bounds.insert(1, [0; 16].into());
        file.upper_bounds.insert(1, [1; 16].into());
        assert!(KeyRange::of(&file, 1, &PrimitiveType::Uuid).bounds.is_none());
        assert!(KeyRange::of(&file, 1, &PrimitiveType::Binary).bounds.is_some());
    }
}
