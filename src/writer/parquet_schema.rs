//! Iceberg types as Parquet types, and table properties as Parquet writer settings.
//!
//! The Parquet schema is built here rather than derived from Arrow's, so that logical types are those of the spec's
//! Appendix A (UUID, for one, has no Arrow type) and list and map parts have the names the spec gives.

use std::sync::Arc;

use parquet::basic::{
    BrotliLevel, Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type as ParquetType, TypePtr};

use crate::spec::properties::{MetricsMode, ParquetCodec, ParquetPageVersion, ParquetProperties};
use crate::spec::{NestedField, PrimitiveType, Type};
use crate::{Error, Result};

/// A column chunk's statistics keep this much more than the longest bound asked for, so that rounding up a cut value
/// never reaches into the bound's own characters.
const STATISTICS_SLACK_BYTES: usize = 8;
/// Shortest statistics kept: what other writers keep.
const MIN_STATISTICS_BYTES: usize = 64;

/// One primitive column of a file.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// Field id.
    pub(crate) id: i32,
    /// Its type.
    pub(crate) primitive: PrimitiveType,
    /// Path in the file, list and map parts included.
    pub(crate) path: ColumnPath,
    /// Dotted name in the table, as properties spell it.
    pub(crate) name: String,
    /// Whether it lies in a list or map; such columns have counts but no bounds.
    pub(crate) repeated: bool,
}

/// The Parquet schema of top-level `fields` (root `table`), and its leaves in column order.
pub(crate) fn parquet_schema(fields: &[Arc<NestedField>]) -> Result<(SchemaDescriptor, Vec<Leaf>)> {
    let mut leaves = Vec::new();
    let mut types = Vec::with_capacity(fields.len());
    for field in fields {
        let here = Place { path: Vec::new(), name: Vec::new(), repeated: false };
        types.push(parquet_field(field, &field.name, here, &mut leaves)?);
    }
    let root = ParquetType::group_type_builder("table").with_fields(types).build().map_err(schema_error)?;
    Ok((SchemaDescriptor::new(Arc::new(root)), leaves))
}

fn schema_error(e: parquet::errors::ParquetError) -> Error {
    Error::invalid_input("the table's schema cannot be stored in Parquet").with_source(e)
}

/// Where a field lies.
#[derive(Clone)]
struct Place {
    path: Vec<String>,
    name: Vec<String>,
    repeated: bool,
}

impl Place {
    fn enter(&self, parts: &[&str], name: &str, repeated: bool) -> Self {
        let mut inside = self.clone();
        inside.path.extend(parts.iter().map(|p| (*p).to_owned()));
        inside.name.push(name.to_owned());
        inside.repeated |= repeated;
        inside
    }
}

fn parquet_field(field: &NestedField, name: &str, outside: Place, leaves: &mut Vec<Leaf>) -> Result<TypePtr> {
    let here = outside.enter(&[name], name, false);
    let repetition = if field.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let group =
        |logical: Option<LogicalType>, fields: Vec<TypePtr>, repetition: Repetition, id: Option<i32>, name: &str| {
            ParquetType::group_type_builder(name)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .with_id(id)
                .with_fields(fields)
                .build()
                .map(Arc::new)
                .map_err(schema_error)
        };
    match &field.field_type {
        Type::Primitive(primitive) => {
            leaves.push(Leaf {
                id: field.id,
                primitive: primitive.clone(),
                path: ColumnPath::new(here.path),
                name: here.name.join("."),
                repeated: here.repeated,
            });
            parquet_primitive(field, name, primitive)
        }
        Type::Struct(s) => {
            let fields = s.fields.iter().map(|f| parquet_field(f, &f.name, here.clone(), leaves));
            group(None, fields.collect::<Result<_>>()?, repetition, Some(field.id), name)
        }
        Type::List(l) => {
            let mut inside = here;
            inside.path.push("list".to_owned());
            inside.repeated = true;
            let element = parquet_field(&l.element, "element", inside, leaves)?;
            let list = group(None, vec![element], Repetition::REPEATED, None, "list")?;
            group(Some(LogicalType::List), vec![list], repetition, Some(field.id), name)
        }
        Type::Map(m) => {
            let mut inside = here;
            inside.path.push("key_value".to_owned());
            inside.repeated = true;
            let key = parquet_field(&m.key, "key", inside.clone(), leaves)?;
            let value = parquet_field(&m.value, "value", inside, leaves)?;
            let entries = group(None, vec![key, value], Repetition::REPEATED, None, "key_value")?;
            group(Some(LogicalType::Map), vec![entries], repetition, Some(field.id), name)
        }
        Type::Variant => Err(Error::unsupported("columns of type variant cannot be written yet")
            .with_context("column", here.name.join("."))),
    }
}

fn parquet_primitive(field: &NestedField, name: &str, primitive: &PrimitiveType) -> Result<TypePtr> {
    use PhysicalType as P;
    use PrimitiveType as T;
    let timestamp = |unit: TimeUnit, utc: bool| {
        let logical = LogicalType::timestamp(utc, unit);
        (P::INT64, -1, Some(logical))
    };
    let (physical, length, logical) = match primitive {
        T::Boolean => (P::BOOLEAN, -1, None),
        T::Int => (P::INT32, -1, None),
        T::Long => (P::INT64, -1, None),
        T::Float => (P::FLOAT, -1, None),
        T::Double => (P::DOUBLE, -1, None),
        T::Decimal { precision, scale } => {
            let logical = Some(LogicalType::decimal(i32::from(*scale), i32::from(*precision)));
            match precision {
                0..=9 => (P::INT32, -1, logical),
                10..=18 => (P::INT64, -1, logical),
                _ => (P::FIXED_LEN_BYTE_ARRAY, decimal_bytes(*precision), logical),
            }
        }
        T::Date => (P::INT32, -1, Some(LogicalType::Date)),
        T::Time => (P::INT64, -1, Some(LogicalType::time(false, TimeUnit::MICROS))),
        T::Timestamp => timestamp(TimeUnit::MICROS, false),
        T::Timestamptz => timestamp(TimeUnit::MICROS, true),
        T::TimestampNs => timestamp(TimeUnit::NANOS, false),
        T::TimestamptzNs => timestamp(TimeUnit::NANOS, true),
        T::String => (P::BYTE_ARRAY, -1, Some(LogicalType::String)),
        T::Uuid => (P::FIXED_LEN_BYTE_ARRAY, 16, Some(LogicalType::Uuid)),
        T::Fixed(n) => {
            let length = i32::try_from(*n).map_err(|_| Error::data_invalid(format!("fixed[{n}] is too long")))?;
            (P::FIXED_LEN_BYTE_ARRAY, length, None)
        }
        T::Binary => (P::BYTE_ARRAY, -1, None),
        T::Geometry(_) | T::Geography(..) => (P::BYTE_ARRAY, -1, None),
        T::Unknown => (P::INT32, -1, Some(LogicalType::Unknown)),
    };
    let (precision, scale) = match primitive {
        T::Decimal { precision, scale } => (i32::from(*precision), i32::from(*scale)),
        _ => (-1, -1),
    };
    let required = field.required && *primitive != T::Unknown;
    ParquetType::primitive_type_builder(name, physical)
        .with_repetition(if required { Repetition::REQUIRED } else { Repetition::OPTIONAL })
        .with_logical_type(logical)
        .with_length(length)
        .with_precision(precision)
        .with_scale(scale)
        .with_id(Some(field.id))
        .build()
        .map(Arc::new)
        .map_err(schema_error)
}

/// Fewest bytes whose signed range holds `precision` digits.
fn decimal_bytes(precision: u8) -> i32 {
    let max = 10i128.pow(u32::from(precision.min(38))) - 1;
    let bits = 128 - max.leading_zeros() + 1;
    i32::try_from(bits.div_ceil(8)).unwrap_or(16)
}

/// Writer settings for a file with these leaves. `modes` are the leaves' metrics modes, in order.
///
/// # Errors
/// `InvalidInput` for a compression level the codec does not have.
pub(crate) fn writer_properties(
    parquet: &ParquetProperties,
    leaves: &[Leaf],
    modes: &[MetricsMode],
    key_values: Vec<KeyValue>,
) -> Result<WriterProperties> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let version = match parquet.page_version {
        ParquetPageVersion::V1 => WriterVersion::PARQUET_1_0,
        ParquetPageVersion::V2 => WriterVersion::PARQUET_2_0,
    };
    let mut builder = WriterProperties::builder()
        .set_writer_version(version)
        .set_created_by(created_by())
        .set_compression(compression(parquet)?)
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(Some(size(parquet.row_group_size_bytes)))
        .set_data_page_size_limit(size(parquet.page_size_bytes))
        .set_data_page_row_count_limit(size(parquet.page_row_limit))
        .set_dictionary_page_size_limit(size(parquet.dict_size_bytes))
        .set_statistics_truncate_length(statistics_length(leaves, modes))
        .set_key_value_metadata((!key_values.is_empty()).then_some(key_values));
    for leaf in leaves {
        builder = leaf_properties(builder, parquet, leaf);
    }
    Ok(builder.build())
}

fn leaf_properties(
    mut builder: WriterPropertiesBuilder,
    parquet: &ParquetProperties,
    leaf: &Leaf,
) -> WriterPropertiesBuilder {
    let path = || leaf.path.clone();
    if parquet.stats_enabled.get(&leaf.name) == Some(&false) {
        builder = builder.set_column_statistics_enabled(path(), EnabledStatistics::None);
    }
    if let Some(enabled) = parquet.dict_encoding_enabled.get(&leaf.name) {
        builder = builder.set_column_dictionary_enabled(path(), *enabled);
    }
    if parquet.bloom_filter_enabled.get(&leaf.name) == Some(&true) {
        let fpp = parquet.bloom_filter_fpp.get(&leaf.name).copied().unwrap_or(0.01);
        let most = max_distinct(parquet.bloom_filter_max_bytes, fpp);
        let distinct = parquet.bloom_filter_ndv.get(&leaf.name).copied().unwrap_or(most).clamp(1, most);
        builder = builder
            .set_column_bloom_filter_enabled(path(), true)
            .set_column_bloom_filter_fpp(path(), fpp)
            .set_column_bloom_filter_max_ndv(path(), distinct);
    }
    builder
}

/// Distinct values a split-block bloom filter of `bytes` holds at the false positive rate `fpp`.
fn max_distinct(bytes: u64, fpp: f64) -> u64 {
    let bits = bytes.clamp(32, 128 << 20) as f64 * 8.0;
    let per_value = -8.0 / (1.0 - fpp.powf(1.0 / 8.0)).ln();
    (bits / per_value).max(1.0) as u64
}

/// Bytes of a value that column chunk statistics keep: enough for the longest bound; `None` keeps all.
fn statistics_length(leaves: &[Leaf], modes: &[MetricsMode]) -> Option<usize> {
    let mut longest = MIN_STATISTICS_BYTES;
    for (leaf, mode) in leaves.iter().zip(modes) {
        let cut = matches!(leaf.primitive, PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_));
        match mode {
            MetricsMode::Full if cut && !leaf.repeated => return None,
            // A code point has at most 4 bytes.
            MetricsMode::Truncate(n) => {
                longest = longest.max(n.saturating_mul(4).saturating_add(STATISTICS_SLACK_BYTES));
            }
            _ => {}
        }
    }
    Some(longest)
}

/// What files of ours call their writer.
pub(crate) fn created_by() -> String {
    format!("calve version {}", env!("CARGO_PKG_VERSION"))
}

fn compression(parquet: &ParquetProperties) -> Result<Compression> {
    let level = parquet.compression_level;
    let wrong = |e: parquet::errors::ParquetError| {
        Error::invalid_input("table property write.parquet.compression-level is not a level of the codec")
            .with_source(e)
    };
    let unsigned = |level: i32| {
        u32::try_from(level)
            .map_err(|_| Error::invalid_input("table property write.parquet.compression-level is below 0"))
    };
    Ok(match parquet.compression_codec {
        ParquetCodec::Uncompressed => Compression::UNCOMPRESSED,
        ParquetCodec::Snappy => Compression::SNAPPY,
        ParquetCodec::Lz4 => Compression::LZ4_RAW,
        ParquetCodec::Zstd => {
            Compression::ZSTD(level.map_or(ZstdLevel::try_new(3), ZstdLevel::try_new).map_err(wrong)?)
        }
        ParquetCodec::Gzip => Compression::GZIP(match level {
            Some(level) => GzipLevel::try_new(unsigned(level)?).map_err(wrong)?,
            None => GzipLevel::default(),
        }),
        ParquetCodec::Brotli => Compression::BROTLI(match level {
            Some(level) => BrotliLevel::try_new(unsigned(level)?).map_err(wrong)?,
            None => BrotliLevel::default(),
        }),
    })
}
