//! Tables of questions and answers.

mod metrics;
mod partitions;
mod predicates;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Coverage::{All, None as Never, Some as Maybe};
use super::*;
use crate::spec::{
    DataContent, DataFile, FieldSummary, FileFormat, FormatVersion, ListType, Literal, ManifestContent, ManifestFile,
    NestedField, PartitionField, PartitionKey, PartitionSpec, PartitionTuple, PrimitiveType as T, Schema, StructType,
    TableMetadata, Transform, Type,
};

const DAY: i64 = 86_400_000_000;

/// A table with these columns and specs (transform and source id of each field).
pub(super) fn table(fields: Vec<NestedField>, specs: &[&[(i32, Transform)]]) -> TableMetadata {
    TableMetadata {
        format_version: FormatVersion::V2,
        table_uuid: None,
        location: "memory:///t".into(),
        last_sequence_number: 0,
        last_updated_ms: 0,
        last_column_id: 100,
        schemas: vec![schema(0, fields)],
        current_schema_id: 0,
        partition_specs: specs
            .iter()
            .enumerate()
            .map(|(id, fields)| {
                let field = |(i, (source_id, transform)): (usize, &(i32, Transform))| PartitionField {
                    source_id: *source_id,
                    field_id: 1000 + i as i32,
                    name: format!("p{i}"),
                    transform: transform.clone(),
                };
                Arc::new(PartitionSpec { spec_id: id as i32, fields: fields.iter().enumerate().map(field).collect() })
            })
            .collect(),
        default_spec_id: 0,
        last_partition_id: 1100,
        properties: BTreeMap::new(),
        current_snapshot_id: None,
        snapshots: vec![],
        snapshot_log: vec![],
        metadata_log: vec![],
        sort_orders: vec![],
        default_sort_order_id: 0,
        refs: HashMap::new(),
        statistics: vec![],
        partition_statistics: vec![],
        next_row_id: 0,
        encryption_keys: vec![],
        extra: serde_json::Map::new(),
    }
}

pub(super) fn schema(schema_id: i32, fields: Vec<NestedField>) -> Arc<Schema> {
    let fields = StructType { fields: fields.into_iter().map(Arc::new).collect() };
    Arc::new(Schema { schema_id, fields, identifier_field_ids: vec![] })
}

pub(super) fn file(spec_id: i32, partition: Vec<Option<Literal>>, rows: u64) -> DataFile {
    let key = PartitionKey { spec_id, tuple: PartitionTuple(partition.into()) };
    let mut file = DataFile::new(DataContent::Data, "memory:///t/data/f.parquet", FileFormat::Parquet, key);
    file.record_count = rows;
    file
}

pub(super) fn manifest(spec_id: i32, partitions: Vec<FieldSummary>) -> ManifestFile {
    ManifestFile {
        manifest_path: "m.avro".into(),
        manifest_length: 1,
        partition_spec_id: spec_id,
        content: ManifestContent::Data,
        sequence_number: Some(1),
        min_sequence_number: Some(1),
        added_snapshot_id: 1,
        added_files_count: Some(1),
        existing_files_count: Some(0),
        deleted_files_count: Some(0),
        added_rows_count: Some(1),
        existing_rows_count: Some(0),
        deleted_rows_count: Some(0),
        partitions: Some(partitions),
        key_metadata: None,
        first_row_id: None,
    }
}

/// One optional column `c` (id 1) of a type.
fn column(ty: T) -> Vec<NestedField> {
    vec![NestedField::new(1, "c", false, ty)]
}

/// A file of ten rows: nulls, NaNs, bounds of column 1.
fn measured(nulls: Option<u64>, nans: Option<u64>, lower: Option<Literal>, upper: Option<Literal>) -> DataFile {
    let mut file = file(0, vec![], 10);
    file.value_counts.insert(1, 10);
    nulls.into_iter().for_each(|n| file.null_value_counts.insert(1, n));
    nans.into_iter().for_each(|n| file.nan_value_counts.insert(1, n));
    lower.into_iter().for_each(|v| file.lower_bounds.insert(1, v.to_bytes().into()));
    upper.into_iter().for_each(|v| file.upper_bounds.insert(1, v.to_bytes().into()));
    file
}

fn ask(ty: T, file: &DataFile, op: LeafOp) -> Coverage {
    FileEvaluator::new(&Predicate::leaf(1, op), &table(column(ty), &[&[]])).evaluate(file)
}

/// Coverage of a leaf on one partition of a table partitioned by one transform.
fn of_partition(ty: T, transform: Transform, p: Option<Literal>, op: LeafOp) -> Coverage {
    let table = table(column(ty), &[&[(1, transform)]]);
    let evaluator = FileEvaluator::new(&Predicate::leaf(1, op), &table);
    let file = file(0, vec![p], 10);
    let coverage = evaluator.evaluate(&file);
    assert_eq!(evaluator.evaluate_partition(&file.partition_key()), coverage);
    coverage
}

fn int(v: i32) -> Literal {
    Literal::Int(v)
}

fn text(v: &str) -> Literal {
    Literal::String(v.into())
}
