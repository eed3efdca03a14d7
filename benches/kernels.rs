//! Kernels, one by one: `cargo bench --features cli,testing --bench kernels`.

#[path = "common/synthetic.rs"]
mod synthetic;

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use calve::catalog::{Catalog, MemoryCatalog, TableIdent};
use calve::env::Env;
use calve::expr::{FileEvaluator, LeafOp, Predicate};
use calve::io::FileIo;
use calve::spec::deletion_vector::DeletionVector;
use calve::spec::{
    Columns, DataFile, EntryStatus, FormatVersion, Literal, ManifestContent, ManifestEntry, ManifestFile,
    ManifestReader, ManifestWriter, NestedField, NewTable, PartitionField, PartitionSpec, PrimitiveType, Schema,
    SortOrder, TableMetadata, TableMetadataBuilder, Transform,
};
use calve::table::Table;
use calve::writer::{DataFileWriter, DataWriterOptions};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const LOCATION: &str = "file:/warehouse/default/synthetic";
/// Rows of the file that the vectors belong to.
const FILE_ROWS: u64 = 500_000;
const ENTRIES: usize = 10_000;
const BATCH_ROWS: usize = 8192;

/// About one row in a hundred, in runs of four, as in lineitem.
fn scattered() -> Vec<u64> {
    (0..FILE_ROWS).filter(|position| position % 400 < 4).collect()
}

fn vectors(c: &mut Criterion) {
    let positions = scattered();
    let vector = DeletionVector::from_positions(positions.iter().copied());
    let other = DeletionVector::from_positions((0..FILE_ROWS).filter(|position| position % 300 < 2));
    let blob = vector.encode().expect("a blob");
    let mut group = c.benchmark_group("deletion_vector");
    group.throughput(Throughput::Elements(positions.len() as u64));
    group.bench_function("from_positions", |b| {
        b.iter(|| DeletionVector::from_positions(black_box(&positions).iter().copied()));
    });
    group.bench_function("encode", |b| b.iter(|| black_box(&vector).encode()));
    group.bench_function("decode", |b| b.iter(|| DeletionVector::decode(black_box(&blob))));
    group.bench_function("union", |b| {
        b.iter_batched(|| vector.clone(), |mut v| v.union_with(black_box(&other)), BatchSize::SmallInput);
    });
    group.bench_function("to_row_ranges", |b| b.iter(|| black_box(&vector).to_row_ranges()));
    group.finish();
}

struct Manifest {
    metadata: TableMetadata,
    files: Vec<Arc<DataFile>>,
}

impl Manifest {
    fn new() -> Self {
        let files = (0..ENTRIES).map(|number| Arc::new(synthetic::data_file(LOCATION, number))).collect();
        Self { metadata: synthetic::metadata(LOCATION, &[]), files }
    }

    fn encode(&self) -> (Vec<u8>, ManifestFile) {
        let spec = self.metadata.default_spec().expect("a spec");
        let schema = self.metadata.current_schema().expect("a schema");
        let partition_type = spec.partition_type(&self.metadata);
        let mut writer =
            ManifestWriter::new(FormatVersion::V3, spec, &partition_type, schema, ManifestContent::Data, 1);
        for file in &self.files {
            writer.add(ManifestEntry {
                status: EntryStatus::Added,
                snapshot_id: Some(1),
                sequence_number: None,
                file_sequence_number: None,
                data_file: Arc::clone(file),
            });
        }
        let (bytes, mut manifest) = writer.finish("manifest.avro").expect("a manifest");
        calve::spec::manifest::assign_list_inheritance(std::slice::from_mut(&mut manifest), 1, Some(0));
        (bytes, manifest)
    }
}

fn manifests(c: &mut Criterion) {
    let synthetic = Manifest::new();
    let (bytes, manifest) = synthetic.encode();
    let mut group = c.benchmark_group("manifest");
    group.sample_size(20);
    group.throughput(Throughput::Elements(ENTRIES as u64));
    group.bench_function("encode", |b| b.iter(|| synthetic.encode()));
    for (name, columns) in [("decode", Columns::All), ("decode_without_metrics", Columns::NoMetrics)] {
        group.bench_function(name, |b| {
            b.iter(|| ManifestReader::read_projected(black_box(&bytes), &manifest, &synthetic.metadata, columns));
        });
    }
    group.finish();
}

fn evaluator(c: &mut Criterion) {
    let synthetic = Manifest::new();
    let leaf = |field_id, op| Predicate::Leaf { field_id, op };
    let predicate = Predicate::And(vec![
        leaf(1, LeafOp::Gt(Literal::Int(3))),
        Predicate::Or(vec![
            leaf(2, LeafOp::Lt(Literal::Long(4_000_000))),
            leaf(7, LeafOp::In((0..8).map(|i| Literal::Long(i * 1_000_000)).collect())),
        ]),
    ]);
    let mut group = c.benchmark_group("file_evaluator");
    group.throughput(Throughput::Elements(ENTRIES as u64));
    group.bench_function("evaluate", |b| {
        let evaluator = FileEvaluator::new(&predicate, &synthetic.metadata);
        b.iter(|| synthetic.files.iter().map(|file| evaluator.evaluate(file) as usize).sum::<usize>());
    });
    group.finish();
}

/// Rows of a table with a text, a float and the two integers that partitioning is by.
fn batch(first: usize) -> RecordBatch {
    let rows = first..first + BATCH_ROWS;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row as i64)))),
        ("region", Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| (row * 7 % 32) as i32)))),
        ("price", Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| row as f64 / 3.0)))),
        ("note", Arc::new(StringArray::from_iter_values(rows.map(|row| format!("note {}", row % 1000))))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

async fn table(folder: &std::path::Path, transform: Option<Transform>) -> Table {
    let fields = vec![
        NestedField::new(1, "id", false, PrimitiveType::Long),
        NestedField::new(2, "region", false, PrimitiveType::Int),
        NestedField::new(3, "price", false, PrimitiveType::Double),
        NestedField::new(4, "note", false, PrimitiveType::String),
    ];
    let partition = |transform| PartitionField { source_id: 2, field_id: 0, name: "part".to_string(), transform };
    let warehouse = folder.to_str().expect("a path");
    let catalog = MemoryCatalog::new("lake", warehouse, FileIo::local(), Env::system()).expect("a catalog");
    let catalog: Arc<dyn Catalog> = Arc::new(catalog);
    catalog.create_namespace(&["default".to_string()], true).await.expect("a namespace");
    let ident = TableIdent { namespace: vec!["default".to_string()], name: "t".to_string() };
    let new = NewTable {
        uuid: Env::system().uuid(),
        location: catalog.default_location(&ident).expect("a location"),
        format_version: FormatVersion::V3,
        schema: Schema::new(0, fields),
        spec: PartitionSpec { spec_id: 0, fields: transform.map(partition).into_iter().collect() },
        sort_order: SortOrder::unsorted(),
        properties: std::collections::BTreeMap::new(),
    };
    let metadata = TableMetadataBuilder::new_table(new).and_then(|b| b.build(0)).expect("a valid table");
    catalog.create_table(&ident, metadata).await.expect("a table");
    Table::load(catalog, ident, Env::system()).await.expect("the table")
}

/// Encoding rows with all metrics, into one file and into 32 partitions.
fn writing(c: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let batches: Vec<RecordBatch> = (0..32).map(|i| batch(i * BATCH_ROWS)).collect();
    let mut group = c.benchmark_group("data_file_writer");
    group.sample_size(10);
    group.throughput(Throughput::Elements((batches.len() * BATCH_ROWS) as u64));
    for (name, transform) in [
        ("unpartitioned", None),
        ("identity_32", Some(Transform::Identity)),
        ("bucket_16", Some(Transform::Bucket(16))),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let table = runtime.block_on(table(folder.path(), transform));
        group.bench_function(name, |b| {
            b.iter(|| {
                runtime.block_on(async {
                    let mut writer = DataFileWriter::new(&table, DataWriterOptions::default()).expect("a writer");
                    for batch in &batches {
                        writer.write(batch).await.expect("rows written");
                    }
                    writer.finish().await.expect("files")
                })
            });
        });
    }
    group.finish();
}

criterion_group!(kernels, vectors, manifests, evaluator, writing);
criterion_main!(kernels);
