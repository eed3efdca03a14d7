//! Answers about files that other engines wrote, against the rows in them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use uuid::Uuid;

use super::*;
use crate::spec::manifest::read_manifest_list;
use crate::spec::{
    DataContent, DataFile, FileFormat, Literal, ManifestFile, ManifestReader, ManifestSource, PrimitiveType,
    TableMetadata, Transform,
};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

fn path_of(location: &str) -> PathBuf {
    golden().join(location.split_once("/warehouse/golden/").unwrap().1)
}

/// Every manifest of a table with its files, deleted ones included as long as they are there.
fn manifests(metadata: &TableMetadata) -> Vec<(ManifestFile, Vec<DataFile>)> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for snapshot in &metadata.snapshots {
        let ManifestSource::List(location) = &snapshot.manifests else { panic!("inline manifests") };
        for manifest in read_manifest_list(&std::fs::read(path_of(location)).unwrap(), location).unwrap() {
            if seen.insert(manifest.manifest_path.clone()) {
                let bytes = std::fs::read(path_of(&manifest.manifest_path)).unwrap();
                let entries = ManifestReader::read(&bytes, &manifest, metadata).unwrap();
                all.push((manifest, entries.iter().map(|entry| (*entry.data_file).clone()).collect()));
            }
        }
    }
    all
}

fn each_table(mut check: impl FnMut(&str, TableMetadata)) {
    let index = std::fs::read(golden().join("index.json")).unwrap();
    let index: Vec<serde_json::Value> = serde_json::from_slice(&index).unwrap();
    for entry in index {
        let name = entry["table"].as_str().unwrap();
        let path = golden().join(name).join("metadata").join(entry["current_metadata"].as_str().unwrap());
        check(name, TableMetadata::parse(&std::fs::read(path).unwrap(), name).unwrap());
    }
}

/// A column's primitive type, if it has one; position deletes and row lineage have reserved ones.
fn type_of(metadata: &TableMetadata, id: i32) -> Option<PrimitiveType> {
    match id {
        2_147_483_546 => Some(PrimitiveType::String),
        2_147_483_539 | 2_147_483_540 | 2_147_483_545 => Some(PrimitiveType::Long),
        _ => metadata.field_of_any_schema(id)?.field_type.as_primitive().cloned(),
    }
}

#[test]
fn every_bound_decodes_and_lies_in_order() {
    let mut bounds = 0;
    each_table(|name, metadata| {
        for (manifest, files) in manifests(&metadata) {
            let spec = metadata.spec_by_id(manifest.partition_spec_id).unwrap();
            for (field, summary) in
                spec.partition_type(&metadata).fields.iter().zip(manifest.partitions.iter().flatten())
            {
                for bound in [&summary.lower_bound, &summary.upper_bound].into_iter().flatten() {
                    Literal::from_bytes(field.field_type.as_primitive().unwrap(), bound).unwrap();
                    bounds += 1;
                }
            }
            for file in files {
                for (id, upper) in file.upper_bounds.iter() {
                    let ty = type_of(&metadata, id).unwrap_or_else(|| panic!("{name}: bound of {id}"));
                    let upper = Literal::from_bytes(&ty, upper).unwrap_or_else(|e| panic!("{name} {id}: {e}"));
                    let lower = Literal::from_bytes(&ty, file.lower_bounds.get(id).unwrap()).unwrap();
                    assert!(lower.compare(&upper).unwrap().is_le(), "{name} {id}: {lower:?} {upper:?}");
                    bounds += 2;
                }
            }
        }
    });
    assert!(bounds > 3000, "{bounds} bounds");
}

/// The values of a Parquet file's top-level primitive columns, by field id, under today's types. Files without ids give none.
fn rows(metadata: &TableMetadata, file: &DataFile) -> Option<HashMap<i32, Vec<Option<Literal>>>> {
    if file.content != DataContent::Data || file.file_format != FileFormat::Parquet || file.record_count > 1000 {
        return None;
    }
    let input = std::fs::File::open(path_of(&file.file_path)).ok()?;
    let mut columns: HashMap<i32, Vec<Option<Literal>>> = HashMap::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(input).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        for (field, values) in batch.schema().fields().iter().zip(batch.columns()) {
            let id = field.metadata().get("PARQUET:field_id")?.parse().unwrap();
            let Some(ty) = type_of(metadata, id) else { continue };
            columns.entry(id).or_default().extend(
                (0..values.len())
                    .map(|i| values.is_valid(i).then(|| value(values.as_ref(), i, &ty).promote_to(&ty).unwrap())),
            );
        }
    }
    Some(columns)
}

fn value(values: &dyn Array, i: usize, ty: &PrimitiveType) -> Literal {
    match values.data_type() {
        DataType::Boolean => Literal::Boolean(values.as_boolean().value(i)),
        DataType::Int32 => Literal::Int(values.as_primitive::<Int32Type>().value(i)),
        DataType::Int64 => Literal::Long(values.as_primitive::<Int64Type>().value(i)),
        DataType::Float32 => Literal::Float(values.as_primitive::<Float32Type>().value(i)),
        DataType::Float64 => Literal::Double(values.as_primitive::<Float64Type>().value(i)),
        DataType::Decimal128(..) => Literal::Decimal(values.as_primitive::<Decimal128Type>().value(i)),
        DataType::Date32 => Literal::Date(values.as_primitive::<Date32Type>().value(i)),
        DataType::Time64(_) => Literal::Time(values.as_primitive::<Time64MicrosecondType>().value(i)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let v = values.as_primitive::<TimestampMicrosecondType>().value(i);
            if zone.is_some() { Literal::Timestamptz(v) } else { Literal::Timestamp(v) }
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let v = values.as_primitive::<TimestampNanosecondType>().value(i);
            if zone.is_some() { Literal::TimestamptzNs(v) } else { Literal::TimestampNs(v) }
        }
        DataType::Utf8 => Literal::String(values.as_string::<i32>().value(i).into()),
        DataType::Binary => Literal::Binary(values.as_binary::<i32>().value(i).into()),
        DataType::FixedSizeBinary(_) => {
            let bytes = values.as_fixed_size_binary().value(i);
            match ty {
                PrimitiveType::Uuid => Literal::Uuid(Uuid::from_slice(bytes).unwrap()),
                _ => Literal::Fixed(bytes.into()),
            }
        }
        other => panic!("{other}"),
    }
}

/// Every test of a column against a few of its values.
fn tests(values: &[Literal]) -> Vec<LeafOp> {
    let mut ops = vec![LeafOp::IsNull, LeafOp::NotNull, LeafOp::IsNan, LeafOp::NotNan];
    for v in values {
        ops.extend(
            [LeafOp::Lt, LeafOp::LtEq, LeafOp::Gt, LeafOp::GtEq, LeafOp::Eq, LeafOp::NotEq].map(|op| op(v.clone())),
        );
        if let Literal::String(v) = v {
            let prefix: String = v.chars().take(2).collect();
            ops.extend([LeafOp::StartsWith(prefix.clone()), LeafOp::NotStartsWith(prefix)]);
        }
    }
    for pair in values.windows(2) {
        ops.extend([LeafOp::In(pair.to_vec()), LeafOp::NotIn(pair.to_vec())]);
    }
    ops
}

#[test]
fn answers_hold_for_rows_of_other_engines() {
    let (mut asked, mut all, mut none, mut by_partition) = (0, 0, 0, 0);
    each_table(|name, metadata| {
        let files: Vec<(DataFile, _)> = manifests(&metadata)
            .into_iter()
            .flat_map(|(_, files)| files)
            .filter_map(|file| rows(&metadata, &file).map(|rows| (file, rows)))
            .collect();
        for field in &metadata.current_schema().unwrap().fields.fields {
            let mut values: Vec<Literal> =
                files.iter().filter_map(|(_, rows)| rows.get(&field.id)).flatten().flatten().cloned().collect();
            values.sort_by(|a, b| a.compare(b).unwrap());
            values.dedup();
            let step = values.len().div_ceil(5).max(1);
            for op in tests(&values.into_iter().step_by(step).collect::<Vec<_>>()) {
                let predicate = Predicate::leaf(field.id, op);
                let evaluator = FileEvaluator::new(&predicate, &metadata);
                for (file, rows) in &files {
                    let default = vec![field.initial_default.clone(); file.record_count as usize];
                    let values = rows.get(&field.id).unwrap_or(&default);
                    let matches: Vec<_> = values.iter().map(|v| predicate.matches_row(&|_| v.clone())).collect();
                    let answers = [evaluator.evaluate(file), evaluator.evaluate_partition(&file.partition_key())];
                    for coverage in answers {
                        let held = match coverage {
                            Coverage::All => matches.iter().all(|m| *m == Some(true)),
                            Coverage::None => !matches.contains(&Some(true)),
                            Coverage::Some => true,
                        };
                        assert!(held, "{name}: {coverage:?} for {predicate} on {values:?}");
                    }
                    asked += 1;
                    all += u32::from(answers[0] == Coverage::All);
                    none += u32::from(answers[0] == Coverage::None);
                    by_partition += u32::from(answers[1] != Coverage::Some);
                }
            }
        }
    });
    assert!(
        asked > 20_000 && all * 4 > asked && none * 4 > asked && by_partition * 15 > asked,
        "{asked} {all} {none} {by_partition}"
    );
}

/// The partition value of every row is the one its file's entry has.
#[test]
fn transforms_agree_with_other_engines() {
    let mut compared: HashMap<String, u32> = HashMap::new();
    each_table(|name, metadata| {
        for (manifest, files) in manifests(&metadata) {
            let spec = metadata.spec_by_id(manifest.partition_spec_id).unwrap();
            for file in files {
                let Some(rows) = rows(&metadata, &file) else { continue };
                for (field, p) in spec.fields.iter().zip(file.partition.0.iter()) {
                    if field.transform == Transform::Void {
                        continue;
                    }
                    for v in rows.get(&field.source_id).into_iter().flatten() {
                        let made = v.as_ref().and_then(|v| field.transform.apply(v).unwrap());
                        assert_eq!(&made, p, "{name}: {} of {v:?}", field.transform);
                        *compared.entry(field.transform.to_string()).or_default() += 1;
                    }
                }
            }
        }
    });
    for transform in ["identity", "year", "month", "day", "hour"] {
        assert!(compared.get(transform).is_some_and(|n| *n >= 20), "{compared:?}");
    }
    for family in ["bucket", "truncate"] {
        assert!(compared.keys().filter(|name| name.starts_with(family)).count() >= 2, "{compared:?}");
    }
}
