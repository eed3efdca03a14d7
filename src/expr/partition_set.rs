//! A set of partitions of one spec, and which files lie in them.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Coverage, FileEvaluator, LeafOp, Predicate};
use crate::spec::{DataFile, PartitionField, PartitionSpec, PartitionTuple, TableMetadata, Transform};

/// Above this many partitions their common predicate says nothing, because asking it would cost more than it saves.
const MAX_PREDICATE_PARTS: usize = 256;

/// Partitions of one spec, as a set of rows: those that the spec puts into one of them.
///
/// Files of the same spec are told by their tuple alone. Of a file of another spec the answer is [`Coverage::Some`] unless
/// its own tuple or its metrics prove more.
#[derive(Debug, Clone)]
pub struct PartitionSet {
    spec: Arc<PartitionSpec>,
    tuples: HashSet<PartitionTuple>,
    others: Arc<[OtherSpec]>,
    evaluators: Arc<[(PartitionTuple, FileEvaluator)]>,
    predicate: Predicate,
}

/// Where another spec has the fields of the set's spec.
#[derive(Debug)]
struct OtherSpec {
    spec_id: i32,
    /// For each field of the set's spec that is not void: its place, and the place in the other spec of a field with the
    /// same source and transform.
    fields: Vec<(usize, Option<usize>)>,
}

impl PartitionSet {
    /// The partitions `tuples` of `spec`, which is one of the table's. Tuples are in the spec's field order.
    pub fn new(
        spec: Arc<PartitionSpec>,
        tuples: impl IntoIterator<Item = PartitionTuple>,
        metadata: &TableMetadata,
    ) -> Self {
        let tuples: HashSet<PartitionTuple> = tuples.into_iter().collect();
        let others = metadata.partition_specs.iter().filter(|other| other.spec_id != spec.spec_id);
        let others = others.map(|other| OtherSpec::new(other, &spec)).collect();
        let rows = |tuple: &PartitionTuple| rows_of(&spec, tuple);
        // A metadata-only question for files of other specs; a table that never evolved has none.
        let evolved = metadata.partition_specs.len() > 1;
        let evaluators = tuples.iter().filter(|_| evolved);
        let evaluators = evaluators.map(|tuple| (tuple.clone(), FileEvaluator::new(&rows(tuple), metadata))).collect();
        let predicate = match tuples.len() {
            0..=MAX_PREDICATE_PARTS => Predicate::or(tuples.iter().map(rows)),
            _ => Predicate::AlwaysTrue,
        };
        Self { spec, tuples, others, evaluators, predicate }
    }

    /// A predicate that is true of every row in the set, and of as few others as can be said of columns.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Which of the rows of `file` lie in the set.
    pub fn coverage(&self, file: &DataFile) -> Coverage {
        if file.spec_id == self.spec.spec_id {
            return if self.tuples.contains(&file.partition) { Coverage::All } else { Coverage::None };
        }
        if self.spec.is_unpartitioned() && !self.tuples.is_empty() {
            return Coverage::All;
        }
        let Some(other) = self.others.iter().find(|other| other.spec_id == file.spec_id) else {
            return Coverage::Some;
        };
        self.evaluators.iter().fold(Coverage::None, |all, (tuple, rows)| {
            let by_tuple = other.compare(tuple, &file.partition);
            let one = match (by_tuple, rows.evaluate(file)) {
                (Coverage::None, _) | (_, Coverage::None) => Coverage::None,
                (Coverage::All, _) => Coverage::All,
                // The predicate leaves out what only a transform can tell.
                (_, Coverage::All) if self.all_identity() => Coverage::All,
                _ => Coverage::Some,
            };
            all.or(one)
        })
    }

    fn all_identity(&self) -> bool {
        self.spec.fields.iter().all(|f| matches!(f.transform, Transform::Identity | Transform::Void))
    }
}

impl OtherSpec {
    fn new(other: &PartitionSpec, spec: &PartitionSpec) -> Self {
        let fields = spec.fields.iter().enumerate().filter(|(_, field)| field.transform != Transform::Void);
        let fields = fields.map(|(place, field)| {
            let same = |f: &&PartitionField| {
                f.source_id == field.source_id
                    && f.transform == field.transform
                    && !matches!(f.transform, Transform::Unknown(_))
            };
            let there = other.fields.iter().find(same);
            (place, there.and_then(|there| other.fields.iter().position(|f| std::ptr::eq(f, there))))
        });
        Self { spec_id: other.spec_id, fields: fields.collect() }
    }

    /// Whether a file with the tuple `theirs` of this spec lies in the partition `ours`.
    fn compare(&self, ours: &PartitionTuple, theirs: &PartitionTuple) -> Coverage {
        self.fields.iter().fold(Coverage::All, |all, (place, there)| {
            let one = match (ours.0.get(*place), there.and_then(|there| theirs.0.get(there))) {
                (Some(a), Some(b)) if a == b => Coverage::All,
                (Some(_), Some(_)) => Coverage::None,
                _ => Coverage::Some,
            };
            all.and(one)
        })
    }
}

/// The rows of a partition as far as its identity fields say it.
fn rows_of(spec: &PartitionSpec, tuple: &PartitionTuple) -> Predicate {
    let fields = spec.fields.iter().zip(tuple.0.iter());
    let fields = fields.filter(|(field, _)| field.transform == Transform::Identity);
    Predicate::and(fields.map(|(field, value)| {
        let op = match value {
            None => LeafOp::IsNull,
            Some(value) => LeafOp::Eq(value.clone()),
        };
        Predicate::leaf(field.source_id, op)
    }))
}
