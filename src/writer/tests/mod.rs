//! Tests of the writers: tables in a temporary folder, rows from seeds.

mod data_files;
mod deletes;
mod metrics;
mod partitions;
mod rewrites;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, make_array, new_null_array,
};
use arrow::buffer::NullBuffer;
use futures::TryStreamExt;
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;

use super::{arrow_schema, arrow_type};
use crate::catalog::{Catalog, LoadedTable, MemoryCatalog, TableIdent};
use crate::env::Env;
use crate::io::FileIo;
use crate::scan::footer::ParquetFile;
use crate::spec::table_metadata::{NewTable, TableMetadataBuilder};
use crate::spec::{
    DataFile, FormatVersion, NestedField, PartitionField, PartitionSpec, PrimitiveType, Schema, SortOrder, Transform,
    Type,
};
use crate::table::Table;

/// A table in a folder of its own, deleted with it. Nothing but its data files is written.
pub(crate) struct TestTable {
    pub(crate) table: Table,
    pub(crate) dir: tempfile::TempDir,
}

impl TestTable {
    /// A table of these columns (ids as given), partitioned by (name of a top-level column, transform).
    pub(crate) fn new(
        version: FormatVersion,
        fields: Vec<NestedField>,
        partitions: &[(&str, Transform)],
        properties: &[(&str, &str)],
    ) -> Self {
        Self::with_io(FileIo::local(), version, fields, partitions, properties)
    }

    pub(crate) fn with_io(
        io: FileIo,
        version: FormatVersion,
        fields: Vec<NestedField>,
        partitions: &[(&str, Transform)],
        properties: &[(&str, &str)],
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = format!("file://{}/t", dir.path().display());
        let schema = Schema::new(0, fields);
        let fields = partitions.iter().enumerate().map(|(i, (column, transform))| PartitionField {
            source_id: schema.field_by_name(column).unwrap().id,
            field_id: 1000 + i as i32,
            name: format!("{column}_{i}"),
            transform: transform.clone(),
        });
        let new = NewTable {
            uuid: Env::system().uuid(),
            location,
            format_version: version,
            spec: PartitionSpec { spec_id: 0, fields: fields.collect() },
            schema,
            sort_order: SortOrder { order_id: 0, fields: Vec::new() },
            properties: properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>(),
        };
        let metadata = TableMetadataBuilder::new_table(new).unwrap().build(0).unwrap();
        let env = Env::system();
        let warehouse = dir.path().display().to_string();
        let catalog: Arc<dyn Catalog> = Arc::new(MemoryCatalog::new("c", &warehouse, io, env.clone()).unwrap());
        let loaded = LoadedTable { metadata: Arc::new(metadata), metadata_location: String::new() };
        let ident = TableIdent { namespace: vec!["n".into()], name: "t".into() };
        Self { table: Table::new(catalog, ident, loaded, env), dir }
    }

    /// Files below the folder.
    pub(crate) fn files(&self) -> Vec<std::path::PathBuf> {
        fn walk(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { walk(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        walk(self.dir.path(), &mut found);
        found
    }
}

/// All rows of a file as the Parquet reader sees them, without help from an embedded Arrow schema.
pub(crate) async fn read_all(table: &Table, file: &DataFile) -> RecordBatch {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let parquet = ParquetFile::new(&table.io, file);
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(parquet, options).await.unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().try_collect().await.unwrap();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

/// One column of every primitive type a v3 table has, ids from 1, nullable.
pub(crate) fn all_primitives() -> Vec<NestedField> {
    use PrimitiveType as T;
    [
        ("boolean", T::Boolean),
        ("int", T::Int),
        ("long", T::Long),
        ("float", T::Float),
        ("double", T::Double),
        ("dec9", T::Decimal { precision: 9, scale: 2 }),
        ("dec18", T::Decimal { precision: 18, scale: 4 }),
        ("dec38", T::Decimal { precision: 38, scale: 10 }),
        ("date", T::Date),
        ("time", T::Time),
        ("ts", T::Timestamp),
        ("tstz", T::Timestamptz),
        ("ts_ns", T::TimestampNs),
        ("tstz_ns", T::TimestamptzNs),
        ("string", T::String),
        ("uuid", T::Uuid),
        ("fixed", T::Fixed(7)),
        ("binary", T::Binary),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, (name, primitive))| NestedField::new(i as i32 + 1, name, false, primitive))
    .collect()
}

/// Random values of a type, nulls among them: extremes, NaN, both zeros, long and many-byte text.
pub(crate) fn random_column(rng: &mut fastrand::Rng, primitive: &PrimitiveType, rows: usize) -> ArrayRef {
    use PrimitiveType as T;
    let nulls: Vec<bool> = match rng.u8(0..6) {
        0 => vec![true; rows],
        1 => vec![false; rows],
        _ => (0..rows).map(|_| rng.u8(0..5) > 0).collect(),
    };
    let long = |rng: &mut fastrand::Rng| match rng.u8(0..8) {
        0 => -1,
        1 => 0,
        2 => rng.i64(-3_000_000_000_000_000..3_000_000_000_000_000),
        _ => rng.i64(-1000..1000),
    };
    let decimal = |rng: &mut fastrand::Rng, precision: u32| {
        let max = 10i128.pow(precision) - 1;
        match rng.u8(0..5) {
            0 => max,
            1 => -max,
            2 => rng.i128(-max..=max),
            _ => rng.i128(-300..300),
        }
    };
    let text = |rng: &mut fastrand::Rng| {
        let length = rng.usize(0..25);
        let alphabet: &[char] = match rng.u8(0..3) {
            0 => &['a', 'b', 'z'],
            1 => &['\u{10FFFF}', '\u{D7FF}', 'x'],
            _ => &['é', '✓', '🎉', '\u{FFFF}', '\u{7F}', '\u{7FF}'],
        };
        (0..length).map(|_| *rng.choice(alphabet).unwrap()).collect::<String>()
    };
    let bytes = |rng: &mut fastrand::Rng, length: usize| {
        let all_ones = rng.bool();
        (0..length).map(|_| if all_ones { 0xFF } else { rng.u8(..) }).collect::<Vec<u8>>()
    };
    let double = |rng: &mut fastrand::Rng| match rng.u8(0..8) {
        0 => f64::NAN,
        1 => 0.0,
        2 => -0.0,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        _ => (rng.f64() - 0.5) * 1000.0,
    };
    macro_rules! make {
        ($array:ident, $value:expr) => {{ Arc::new($array::from((0..rows).map(|_| $value).collect::<Vec<_>>())) as ArrayRef }};
    }
    let array: ArrayRef = match primitive {
        T::Boolean => make!(BooleanArray, rng.bool()),
        T::Int => make!(Int32Array, if rng.u8(0..9) == 0 { rng.i32(..i32::MAX - 100) / 2 } else { rng.i32(-50..50) }),
        T::Long => make!(Int64Array, long(rng)),
        T::Float => make!(Float32Array, double(rng) as f32),
        T::Double => make!(Float64Array, double(rng)),
        T::Decimal { precision, scale } => {
            let array = Decimal128Array::from((0..rows).map(|_| decimal(rng, (*precision).into())).collect::<Vec<_>>());
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8).unwrap())
        }
        T::Date => make!(Date32Array, rng.i32(-800_000..3_000_000)),
        T::Time => make!(Time64MicrosecondArray, rng.i64(0..86_400_000_000)),
        T::Timestamp => make!(TimestampMicrosecondArray, long(rng)),
        T::Timestamptz => Arc::new(
            TimestampMicrosecondArray::from((0..rows).map(|_| long(rng)).collect::<Vec<_>>()).with_timezone("UTC"),
        ),
        T::TimestampNs => make!(TimestampNanosecondArray, long(rng)),
        T::TimestamptzNs => Arc::new(
            TimestampNanosecondArray::from((0..rows).map(|_| long(rng)).collect::<Vec<_>>()).with_timezone("UTC"),
        ),
        T::String => Arc::new(StringArray::from_iter_values((0..rows).map(|_| text(rng)))),
        T::Binary => Arc::new(BinaryArray::from_iter_values((0..rows).map(|_| {
            let length = rng.usize(0..25);
            bytes(rng, length)
        }))),
        T::Uuid => fixed(rows, 16, &mut |n| bytes(rng, n)),
        T::Fixed(n) => fixed(rows, *n as usize, &mut |n| bytes(rng, n)),
        _ => return new_null_array(&arrow_type(&Type::Primitive(primitive.clone())).unwrap(), rows),
    };
    make_array(array.to_data().into_builder().nulls(Some(NullBuffer::from(nulls))).build().unwrap())
}

fn fixed(rows: usize, length: usize, bytes: &mut dyn FnMut(usize) -> Vec<u8>) -> ArrayRef {
    let values: Vec<u8> = (0..rows).flat_map(|_| bytes(length)).collect();
    Arc::new(FixedSizeBinaryArray::new(length as i32, values.into(), None))
}

/// Random rows of primitive columns.
pub(crate) fn random_rows(rng: &mut fastrand::Rng, fields: &[NestedField], rows: usize) -> RecordBatch {
    let schema = arrow_schema(&Schema::new(0, fields.to_vec())).unwrap();
    let columns = fields.iter().map(|f| random_column(rng, f.field_type.as_primitive().unwrap(), rows)).collect();
    RecordBatch::try_new(schema, columns).unwrap()
}
