//! A predicate over files, partitions and manifests.

use std::collections::HashMap;

use super::Coverage;
use super::facts::Facts;
use super::leaf::Test;
use super::predicate::Predicate;
use super::project::source_facts;
use crate::spec::{
    DataContent, DataFile, Literal, ManifestFile, PartitionKey, PrimitiveType, TableMetadata, Transform,
};

/// A predicate made ready to be asked of many files of one table. Owns what it needs of the metadata.
#[derive(Debug)]
pub struct FileEvaluator {
    root: Node,
    /// Number of fields of each partition spec.
    spec_lengths: HashMap<i32, usize>,
}

#[derive(Debug)]
enum Node {
    Constant(Coverage),
    And(Vec<Node>),
    Or(Vec<Node>),
    Leaf(Box<Leaf>),
}

#[derive(Debug)]
struct Leaf {
    field_id: i32,
    ty: PrimitiveType,
    /// Inside a struct.
    nested: bool,
    test: Test,
    /// By spec id, the partition fields made from the column: their place in the tuple and their transform.
    partition_fields: HashMap<i32, Vec<(usize, Transform)>>,
}

impl FileEvaluator {
    /// Prepares `predicate` for the files of the table. A test of a column that no schema of the table has, that lies in a list
    /// or map, or whose literals do not have its type, proves nothing.
    pub fn new(predicate: &Predicate, metadata: &TableMetadata) -> Self {
        Self {
            root: Node::new(predicate, metadata),
            spec_lengths: metadata.partition_specs.iter().map(|spec| (spec.spec_id, spec.fields.len())).collect(),
        }
    }

    /// What the predicate is on the rows of a data file, whether or not deletes apply to them. Of a delete file only the partition
    /// is asked: [`Coverage::None`] then says that no row it may apply to matches.
    pub fn evaluate(&self, file: &DataFile) -> Coverage {
        if file.content != DataContent::Data {
            return self.evaluate_partition(&file.partition_key());
        }
        if file.record_count == 0 {
            // True of every row and of none. There is nothing to read; only a delete of everything takes the file along.
            return match self.root {
                Node::Constant(Coverage::All) => Coverage::All,
                _ => Coverage::None,
            };
        }
        self.root.walk(&|leaf| {
            let partition = self.tuple_facts(leaf, file.spec_id, &file.partition.0);
            if !leaf.nested {
                let metrics = Facts::of_metrics(file, leaf.field_id, &leaf.ty);
                return leaf.test.coverage(&partition.intersect(metrics, &leaf.ty));
            }
            // Only the partition may prove that all rows match.
            let strict = leaf.test.coverage(&partition);
            let metrics = Facts::of_nested_bounds(file, leaf.field_id, &leaf.ty);
            match (strict, leaf.test.coverage(&partition.intersect(metrics, &leaf.ty))) {
                (Coverage::All, _) => Coverage::All,
                (_, Coverage::None) => Coverage::None,
                _ => Coverage::Some,
            }
        })
    }

    /// What the predicate is on all rows that a partition may hold.
    pub fn evaluate_partition(&self, key: &PartitionKey) -> Coverage {
        self.root.walk(&|leaf| leaf.test.coverage(&self.tuple_facts(leaf, key.spec_id, &key.tuple.0)))
    }

    /// What the predicate is on the rows of all files of a manifest, by the summary of their partitions.
    pub fn evaluate_manifest(&self, manifest: &ManifestFile) -> Coverage {
        let spec_id = manifest.partition_spec_id;
        let summaries = manifest
            .partitions
            .as_deref()
            .filter(|summaries| self.spec_lengths.get(&spec_id) == Some(&summaries.len()))
            .unwrap_or_default();
        self.root.walk(&|leaf| {
            leaf.test.coverage(&leaf.partition_facts(spec_id, |place, transform| {
                let ty = transform.result_type(&leaf.ty)?;
                Some(Facts::of_summary(summaries.get(place)?, &ty))
            }))
        })
    }

    /// What the tuple says about the column, when it is one of the spec.
    fn tuple_facts(&self, leaf: &Leaf, spec_id: i32, tuple: &[Option<Literal>]) -> Facts {
        let tuple = if self.spec_lengths.get(&spec_id) == Some(&tuple.len()) { tuple } else { &[] };
        leaf.partition_facts(spec_id, |place, _| Some(Facts::of_value(tuple.get(place)?.as_ref())))
    }
}

impl Node {
    fn new(predicate: &Predicate, metadata: &TableMetadata) -> Self {
        match predicate {
            Predicate::AlwaysTrue => Self::Constant(Coverage::All),
            Predicate::AlwaysFalse => Self::Constant(Coverage::None),
            Predicate::Unknown => Self::Constant(Coverage::Some),
            Predicate::And(parts) => Self::And(parts.iter().map(|part| Self::new(part, metadata)).collect()),
            Predicate::Or(parts) => Self::Or(parts.iter().map(|part| Self::new(part, metadata)).collect()),
            Predicate::Leaf { field_id, op } => {
                let leaf = column(metadata, *field_id).and_then(|(ty, nested)| {
                    Some(Leaf {
                        field_id: *field_id,
                        test: Test::new(op, &ty)?,
                        nested,
                        partition_fields: partition_fields(metadata, *field_id, &ty),
                        ty,
                    })
                });
                leaf.map_or(Self::Constant(Coverage::Some), |leaf| Self::Leaf(Box::new(leaf)))
            }
        }
    }

    fn walk(&self, decide: &dyn Fn(&Leaf) -> Coverage) -> Coverage {
        match self {
            Self::Constant(coverage) => *coverage,
            Self::And(parts) => {
                let mut result = Coverage::All;
                for part in parts {
                    result = result.and(part.walk(decide));
                    if result == Coverage::None {
                        break;
                    }
                }
                result
            }
            Self::Or(parts) => {
                let mut result = Coverage::None;
                for part in parts {
                    result = result.or(part.walk(decide));
                    if result == Coverage::All {
                        break;
                    }
                }
                result
            }
            Self::Leaf(leaf) => decide(leaf),
        }
    }
}

impl Leaf {
    /// What all partition fields of the column say together; `values` gives the facts about one field's values.
    fn partition_facts(&self, spec_id: i32, values: impl Fn(usize, &Transform) -> Option<Facts>) -> Facts {
        let mut facts = Facts::unknown(&self.ty);
        for (place, transform) in self.partition_fields.get(&spec_id).into_iter().flatten() {
            let more = values(*place, transform).and_then(|p| source_facts(transform, &self.ty, &p));
            if let Some(more) = more {
                facts = facts.intersect(more, &self.ty);
            }
        }
        facts
    }
}

/// Type of a column today (or when it was last there), and whether it lies inside a struct. `None` for columns that are unknown,
/// not primitive, or in a list or map.
fn column(metadata: &TableMetadata, field_id: i32) -> Option<(PrimitiveType, bool)> {
    let ty = metadata.field_of_any_schema(field_id)?.field_type.as_primitive()?.clone();
    if metadata.schemas.iter().any(|schema| schema.is_under_list_or_map(field_id)) {
        return None;
    }
    let top_level = metadata.schemas.iter().any(|schema| schema.top_level_index_of(field_id).is_some());
    Some((ty, !top_level))
}

/// The partition fields made from a column, by spec id.
fn partition_fields(
    metadata: &TableMetadata,
    field_id: i32,
    ty: &PrimitiveType,
) -> HashMap<i32, Vec<(usize, Transform)>> {
    // A date hashes differently from the timestamp it was promoted to; so buckets of a column that once was a date are of no use.
    let was_date = *ty != PrimitiveType::Date
        && metadata.schemas.iter().any(|schema| {
            let then = schema.field_by_id(field_id).and_then(|field| field.field_type.as_primitive());
            then == Some(&PrimitiveType::Date)
        });
    metadata
        .partition_specs
        .iter()
        .map(|spec| {
            let fields = spec.fields.iter().enumerate().filter(|(_, field)| {
                field.source_id == field_id && !(was_date && matches!(field.transform, Transform::Bucket(_)))
            });
            (spec.spec_id, fields.map(|(place, field)| (place, field.transform.clone())).collect())
        })
        .collect()
}
