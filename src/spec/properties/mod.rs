//! Typed table properties.
//!
//! Implements the spec's table properties and the write settings of the Java reference implementation. An unknown property
//! is kept and ignored; a known one that changes results or contracts and is not honoured makes the table read-only
//! ([`TableProperties::check_writable`]). Values are read without regard to case.

pub mod names;
mod values;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

pub use names::*;
pub use values::{
    DeleteGranularity, DistributionMode, IsolationLevel, MetadataCompression, MetricsMode, ParquetCodec,
    ParquetPageVersion, RowLevelMode,
};

use super::data_file::FileFormat;
use super::name_mapping::NameMapping;
use super::table_metadata::TableMetadata;
use crate::{Error, Result};

/// Which metrics are kept, by column.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsProperties {
    /// Mode of columns not named; `None` when the table sets none: then `truncate(16)` for the first
    /// `max_inferred_column_defaults` fields, none for the rest.
    pub default: Option<MetricsMode>,
    /// Modes by dotted column name.
    pub columns: BTreeMap<String, MetricsMode>,
    /// Fields that get metrics when `default` is unset.
    pub max_inferred_column_defaults: usize,
}

impl MetricsProperties {
    /// The mode where nothing is set: `truncate(16)`.
    pub const INFERRED: MetricsMode = MetricsMode::Truncate(16);

    /// Mode of a column. `ordinal` is its place among the schema's fields at any depth, parents first, from 0.
    pub fn mode_of(&self, dotted_name: &str, ordinal: usize) -> MetricsMode {
        match (self.columns.get(dotted_name), self.default) {
            (Some(mode), _) => *mode,
            (None, Some(mode)) => mode,
            (None, None) if ordinal < self.max_inferred_column_defaults => Self::INFERRED,
            (None, None) => MetricsMode::None,
        }
    }
}

/// Settings of a Parquet writer; maps are by dotted column name.
#[derive(Debug, Clone, PartialEq)]
pub struct ParquetProperties {
    /// Bytes to close a row group at.
    pub row_group_size_bytes: u64,
    /// Rows before a row group's size is first looked at.
    pub row_group_check_min_record_count: u64,
    /// Rows between looks at a row group's size.
    pub row_group_check_max_record_count: u64,
    /// Bytes to close a page at.
    pub page_size_bytes: u64,
    /// Rows to close a page at.
    pub page_row_limit: u64,
    /// Version of data pages.
    pub page_version: ParquetPageVersion,
    /// Bytes at which a column gives up its dictionary.
    pub dict_size_bytes: u64,
    /// Compression.
    pub compression_codec: ParquetCodec,
    /// Level of the codec; `None` its own default.
    pub compression_level: Option<i32>,
    /// Greatest bytes of a bloom filter.
    pub bloom_filter_max_bytes: u64,
    /// Whether a column gets a bloom filter.
    pub bloom_filter_enabled: BTreeMap<String, bool>,
    /// False positive rate, between 0 and 1.
    pub bloom_filter_fpp: BTreeMap<String, f64>,
    /// Expected distinct values.
    pub bloom_filter_ndv: BTreeMap<String, u64>,
    /// Whether a column gets statistics.
    pub stats_enabled: BTreeMap<String, bool>,
    /// Whether a column tries a dictionary.
    pub dict_encoding_enabled: BTreeMap<String, bool>,
}

/// Attempts and waits of a loop with waits that double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryProperties {
    /// Attempts after the first.
    pub num_retries: u32,
    /// First wait.
    pub min_wait: Duration,
    /// Longest wait.
    pub max_wait: Duration,
    /// Time after which no attempt starts.
    pub total_timeout: Duration,
}

/// A table's settings, typed, with defaults filled in. The meaning of each is at its name's constant.
#[derive(Debug, Clone, PartialEq)]
pub struct TableProperties {
    /// [`DELETE_MODE`]
    pub delete_mode: RowLevelMode,
    /// [`UPDATE_MODE`]
    pub update_mode: RowLevelMode,
    /// [`MERGE_MODE`]
    pub merge_mode: RowLevelMode,
    /// [`DELETE_ISOLATION_LEVEL`]
    pub delete_isolation: IsolationLevel,
    /// [`UPDATE_ISOLATION_LEVEL`]
    pub update_isolation: IsolationLevel,
    /// [`MERGE_ISOLATION_LEVEL`]
    pub merge_isolation: IsolationLevel,
    /// [`DISTRIBUTION_MODE`]; `None` when unset: by the table's partitioning and order.
    pub distribution_mode: Option<DistributionMode>,
    /// [`DELETE_DISTRIBUTION_MODE`]
    pub delete_distribution_mode: DistributionMode,
    /// [`UPDATE_DISTRIBUTION_MODE`]
    pub update_distribution_mode: DistributionMode,
    /// [`MERGE_DISTRIBUTION_MODE`]; `None` when unset: as `distribution_mode`.
    pub merge_distribution_mode: Option<DistributionMode>,
    /// [`TARGET_FILE_SIZE_BYTES`]
    pub target_file_size_bytes: u64,
    /// [`DELETE_TARGET_FILE_SIZE_BYTES`]
    pub delete_target_file_size_bytes: u64,
    /// [`DELETE_GRANULARITY`]
    pub delete_granularity: DeleteGranularity,
    /// [`DEFAULT_FILE_FORMAT`]
    pub file_format: FileFormat,
    /// [`DELETE_DEFAULT_FILE_FORMAT`]
    pub delete_file_format: FileFormat,
    /// [`PARQUET_PREFIX`]
    pub parquet: ParquetProperties,
    /// [`DELETE_PARQUET_PREFIX`]
    pub delete_parquet: ParquetProperties,
    /// [`METRICS_DEFAULT`] and its kin
    pub metrics: MetricsProperties,
    /// [`OBJECT_STORE_ENABLED`]
    pub object_storage_enabled: bool,
    /// [`OBJECT_STORE_PARTITIONED_PATHS`]
    pub object_storage_partitioned_paths: bool,
    /// [`DATA_PATH`] or an older name of it, without trailing slash
    pub data_path: Option<String>,
    /// [`METADATA_PATH`], without trailing slash
    pub metadata_path: Option<String>,
    /// [`METADATA_DELETE_AFTER_COMMIT_ENABLED`]
    pub metadata_delete_after_commit: bool,
    /// [`METADATA_PREVIOUS_VERSIONS_MAX`], at least 1
    pub metadata_previous_versions_max: usize,
    /// [`METADATA_COMPRESSION`]
    pub metadata_compression: MetadataCompression,
    /// [`COMMIT_NUM_RETRIES`] and its kin
    pub commit_retry: RetryProperties,
    /// [`COMMIT_STATUS_CHECKS_NUM_RETRIES`] and its kin
    pub commit_status_check: RetryProperties,
    /// [`MANIFEST_TARGET_SIZE_BYTES`]
    pub manifest_target_size_bytes: u64,
    /// [`MANIFEST_MIN_MERGE_COUNT`]
    pub manifest_min_merge_count: usize,
    /// [`MANIFEST_MERGE_ENABLED`]
    pub manifest_merge_enabled: bool,
    /// [`MAX_SNAPSHOT_AGE_MS`]
    pub max_snapshot_age_ms: i64,
    /// [`MIN_SNAPSHOTS_TO_KEEP`]
    pub min_snapshots_to_keep: i32,
    /// [`MAX_REF_AGE_MS`]
    pub max_ref_age_ms: i64,
    /// [`GC_ENABLED`]
    pub gc_enabled: bool,
    /// [`WRITE_AUDIT_PUBLISH_ENABLED`]
    pub wap_enabled: bool,
    /// [`WRITE_PARTITION_SUMMARY_LIMIT`]
    pub partition_summary_limit: usize,
    /// [`SPARK_WRITE_PARTITIONED_FANOUT_ENABLED`]
    pub fanout_enabled: bool,
    /// [`DEFAULT_NAME_MAPPING`]
    pub name_mapping: Option<NameMapping>,
    /// [`ENCRYPTION_KEY_ID`]
    pub encryption_key_id: Option<String>,
    /// [`LOCATION_PROVIDER_IMPL`]
    pub location_provider_impl: Option<String>,
}

const MIB: u64 = 1 << 20;
const MINUTE_MS: u64 = 60_000;

impl TableProperties {
    /// Default of [`METADATA_PREVIOUS_VERSIONS_MAX`].
    pub const DEFAULT_METADATA_PREVIOUS_VERSIONS_MAX: usize = 100;

    /// Reads a table's settings. `InvalidInput` names the property, its value and what it may be.
    pub fn from_map(properties: &BTreeMap<String, String>) -> Result<Self> {
        let p = Reader(properties);
        let file_format = p.format(DEFAULT_FILE_FORMAT)?.unwrap_or(FileFormat::Parquet);
        let parquet = p.parquet(PARQUET_PREFIX, None)?;
        let delete_parquet = p.parquet(DELETE_PARQUET_PREFIX, Some(&parquet))?;
        let path =
            |name: &str| properties.get(name).map(|v| v.trim_end_matches('/').to_string()).filter(|v| !v.is_empty());
        Ok(Self {
            delete_mode: p.get(DELETE_MODE, RowLevelMode::CopyOnWrite)?,
            update_mode: p.get(UPDATE_MODE, RowLevelMode::CopyOnWrite)?,
            merge_mode: p.get(MERGE_MODE, RowLevelMode::CopyOnWrite)?,
            delete_isolation: p.get(DELETE_ISOLATION_LEVEL, IsolationLevel::Serializable)?,
            update_isolation: p.get(UPDATE_ISOLATION_LEVEL, IsolationLevel::Serializable)?,
            merge_isolation: p.get(MERGE_ISOLATION_LEVEL, IsolationLevel::Serializable)?,
            distribution_mode: p.opt(DISTRIBUTION_MODE)?,
            delete_distribution_mode: p.get(DELETE_DISTRIBUTION_MODE, DistributionMode::Hash)?,
            update_distribution_mode: p.get(UPDATE_DISTRIBUTION_MODE, DistributionMode::Hash)?,
            merge_distribution_mode: p.opt(MERGE_DISTRIBUTION_MODE)?,
            target_file_size_bytes: p.positive(TARGET_FILE_SIZE_BYTES, 512 * MIB)?,
            delete_target_file_size_bytes: p.positive(DELETE_TARGET_FILE_SIZE_BYTES, 64 * MIB)?,
            delete_granularity: p.get(DELETE_GRANULARITY, DeleteGranularity::Partition)?,
            file_format,
            delete_file_format: p.format(DELETE_DEFAULT_FILE_FORMAT)?.unwrap_or(file_format),
            parquet,
            delete_parquet,
            metrics: MetricsProperties {
                default: p.opt(METRICS_DEFAULT)?,
                columns: p.columns(METRICS_COLUMN_PREFIX)?,
                max_inferred_column_defaults: p.number(METRICS_MAX_INFERRED_COLUMN_DEFAULTS, 100)?,
            },
            object_storage_enabled: p.flag(OBJECT_STORE_ENABLED, false)?,
            object_storage_partitioned_paths: p.flag(OBJECT_STORE_PARTITIONED_PATHS, true)?,
            data_path: path(DATA_PATH).or_else(|| path(OBJECT_STORE_PATH)).or_else(|| path(FOLDER_STORAGE_PATH)),
            metadata_path: path(METADATA_PATH),
            metadata_delete_after_commit: p.flag(METADATA_DELETE_AFTER_COMMIT_ENABLED, false)?,
            metadata_previous_versions_max: p
                .number(METADATA_PREVIOUS_VERSIONS_MAX, Self::DEFAULT_METADATA_PREVIOUS_VERSIONS_MAX)?
                .max(1),
            metadata_compression: p.get(METADATA_COMPRESSION, MetadataCompression::None)?,
            commit_retry: RetryProperties {
                num_retries: p.number(COMMIT_NUM_RETRIES, 4)?,
                min_wait: p.millis(COMMIT_MIN_RETRY_WAIT_MS, 100)?,
                max_wait: p.millis(COMMIT_MAX_RETRY_WAIT_MS, MINUTE_MS)?,
                total_timeout: p.millis(COMMIT_TOTAL_RETRY_TIME_MS, 30 * MINUTE_MS)?,
            },
            commit_status_check: RetryProperties {
                num_retries: p.number(COMMIT_STATUS_CHECKS_NUM_RETRIES, 3)?,
                min_wait: p.millis(COMMIT_STATUS_CHECKS_MIN_WAIT_MS, 1000)?,
                max_wait: p.millis(COMMIT_STATUS_CHECKS_MAX_WAIT_MS, MINUTE_MS)?,
                total_timeout: p.millis(COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS, 30 * MINUTE_MS)?,
            },
            manifest_target_size_bytes: p.positive(MANIFEST_TARGET_SIZE_BYTES, 8 * MIB)?,
            manifest_min_merge_count: p.number(MANIFEST_MIN_MERGE_COUNT, 100)?,
            manifest_merge_enabled: p.flag(MANIFEST_MERGE_ENABLED, true)?,
            max_snapshot_age_ms: p.number(MAX_SNAPSHOT_AGE_MS, 5 * 24 * 60 * MINUTE_MS as i64)?,
            min_snapshots_to_keep: p.number(MIN_SNAPSHOTS_TO_KEEP, 1)?,
            max_ref_age_ms: p.number(MAX_REF_AGE_MS, i64::MAX)?,
            gc_enabled: p.flag(GC_ENABLED, true)?,
            wap_enabled: p.flag(WRITE_AUDIT_PUBLISH_ENABLED, false)?,
            partition_summary_limit: p.number(WRITE_PARTITION_SUMMARY_LIMIT, 0)?,
            fanout_enabled: p.flag(SPARK_WRITE_PARTITIONED_FANOUT_ENABLED, false)?,
            name_mapping: properties.get(DEFAULT_NAME_MAPPING).map(|text| NameMapping::parse(text)).transpose()?,
            encryption_key_id: properties.get(ENCRYPTION_KEY_ID).cloned(),
            location_provider_impl: properties.get(LOCATION_PROVIDER_IMPL).cloned(),
        })
    }

    /// Refuses to write to a table whose properties ask for what is not done here and would break its contract:
    /// another file format, encryption, file names of a Java class. `Unsupported` names the property.
    pub fn check_writable(&self) -> Result<()> {
        if self.file_format != FileFormat::Parquet {
            return refuse(DEFAULT_FILE_FORMAT, format!("{} data files are not written", self.file_format.name()));
        }
        if self.encryption_key_id.is_some() {
            return refuse(ENCRYPTION_KEY_ID, "encrypted files are not written".to_string());
        }
        match &self.location_provider_impl {
            Some(class) => refuse(LOCATION_PROVIDER_IMPL, format!("the file names of {class} are not known")),
            None => Ok(()),
        }
    }

    /// Refuses to write position delete files that the table wants in a format that is not written. Deletion vectors have a
    /// format of their own.
    pub fn check_position_deletes_writable(&self) -> Result<()> {
        match self.delete_file_format {
            FileFormat::Parquet => Ok(()),
            other => refuse(DELETE_DEFAULT_FILE_FORMAT, format!("{} delete files are not written", other.name())),
        }
    }
}

fn refuse(name: &str, what: String) -> Result<()> {
    Err(Error::unsupported(format!("table property {name}: {what}; change the property or write with another engine")))
}

impl TableMetadata {
    /// The typed settings of the table; see [`TableProperties::from_map`].
    pub fn typed_properties(&self) -> Result<TableProperties> {
        TableProperties::from_map(&self.properties)
    }
}

struct Reader<'a>(&'a BTreeMap<String, String>);

impl Reader<'_> {
    fn opt<T: FromStr<Err = Error>>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|e: Error| invalid(name, text, e.message()))
    }

    fn get<T: FromStr<Err = Error>>(&self, name: &str, default: T) -> Result<T> {
        Ok(self.opt(name)?.unwrap_or(default))
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool> {
        self.0.get(name).map_or(Ok(default), |text| parse_flag(name, text))
    }

    fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        self.0.get(name).map_or(Ok(default), |text| parse_number(name, text))
    }

    fn positive(&self, name: &str, default: u64) -> Result<u64> {
        match self.number(name, default)? {
            0 => Err(invalid(name, "0", "a number above 0")),
            n => Ok(n),
        }
    }

    fn millis(&self, name: &str, default: u64) -> Result<Duration> {
        self.number(name, default).map(Duration::from_millis)
    }

    fn format(&self, name: &str) -> Result<Option<FileFormat>> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "parquet" => Ok(Some(FileFormat::Parquet)),
            "avro" => Ok(Some(FileFormat::Avro)),
            "orc" => Ok(Some(FileFormat::Orc)),
            _ => Err(invalid(name, text, "parquet, avro, orc")),
        }
    }

    /// Values of the properties that start with `prefix`, by the rest of the name.
    fn by_column<T>(&self, prefix: &str, parse: impl Fn(&str, &str) -> Result<T>) -> Result<BTreeMap<String, T>> {
        let range = self.0.range(prefix.to_string()..).take_while(|(name, _)| name.starts_with(prefix));
        range.map(|(name, text)| Ok((name[prefix.len()..].to_string(), parse(name, text)?))).collect()
    }

    fn columns<T: FromStr<Err = Error>>(&self, prefix: &str) -> Result<BTreeMap<String, T>> {
        self.by_column(prefix, |name, text| text.parse().map_err(|e: Error| invalid(name, text, e.message())))
    }

    fn parquet(&self, prefix: &str, base: Option<&ParquetProperties>) -> Result<ParquetProperties> {
        let name = |suffix: &str| format!("{prefix}{suffix}");
        let size = |suffix: &str, of_base: fn(&ParquetProperties) -> u64, default: u64| {
            self.positive(&name(suffix), base.map_or(default, of_base))
        };
        let fpp = |name: &str, text: &str| match parse_number::<f64>(name, text)? {
            rate if rate > 0.0 && rate < 1.0 => Ok(rate),
            _ => Err(invalid(name, text, "a number between 0 and 1")),
        };
        let level = name(PARQUET_COMPRESSION_LEVEL);
        let mut read = ParquetProperties {
            row_group_size_bytes: size(PARQUET_ROW_GROUP_SIZE_BYTES, |b| b.row_group_size_bytes, 128 * MIB)?,
            row_group_check_min_record_count: size(
                PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT,
                |b| b.row_group_check_min_record_count,
                100,
            )?,
            row_group_check_max_record_count: size(
                PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT,
                |b| b.row_group_check_max_record_count,
                10_000,
            )?,
            page_size_bytes: size(PARQUET_PAGE_SIZE_BYTES, |b| b.page_size_bytes, MIB)?,
            page_row_limit: size(PARQUET_PAGE_ROW_LIMIT, |b| b.page_row_limit, 20_000)?,
            page_version: self
                .get(&name(PARQUET_PAGE_VERSION), base.map_or(ParquetPageVersion::V1, |b| b.page_version))?,
            dict_size_bytes: size(PARQUET_DICT_SIZE_BYTES, |b| b.dict_size_bytes, 2 * MIB)?,
            compression_codec: self
                .get(&name(PARQUET_COMPRESSION_CODEC), base.map_or(ParquetCodec::Zstd, |b| b.compression_codec))?,
            compression_level: match self.0.get(&level).map(String::as_str) {
                // Java spells "the codec's own" as the text "null".
                Some("null") => None,
                Some(text) => Some(parse_number(&level, text)?),
                None => base.and_then(|b| b.compression_level),
            },
            bloom_filter_max_bytes: size(PARQUET_BLOOM_FILTER_MAX_BYTES, |b| b.bloom_filter_max_bytes, MIB)?,
            bloom_filter_enabled: self.by_column(&name(PARQUET_BLOOM_FILTER_ENABLED_PREFIX), parse_flag)?,
            bloom_filter_fpp: self.by_column(&name(PARQUET_BLOOM_FILTER_FPP_PREFIX), fpp)?,
            bloom_filter_ndv: self.by_column(&name(PARQUET_BLOOM_FILTER_NDV_PREFIX), parse_number)?,
            stats_enabled: self.by_column(&name(PARQUET_STATS_ENABLED_PREFIX), parse_flag)?,
            dict_encoding_enabled: self.by_column(&name(PARQUET_DICT_ENCODING_ENABLED_PREFIX), parse_flag)?,
        };
        // A delete file with a codec of its own does not take the level of the data files' codec.
        if base.is_some_and(|b| b.compression_codec != read.compression_codec) && !self.0.contains_key(&level) {
            read.compression_level = None;
        }
        Ok(read)
    }
}

fn parse_flag(name: &str, text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, text, "true, false")),
    }
}

fn parse_number<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.trim().parse().map_err(|_| invalid(name, text, "a number in range"))
}

fn invalid(name: &str, value: &str, wanted: &str) -> Error {
    Error::invalid_input(format!("table property {name}: {value:?} is not one of: {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn read(pairs: &[(&str, &str)]) -> Result<TableProperties> {
        TableProperties::from_map(&pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
    }

    #[test]
    fn defaults_are_those_of_java() {
        let p = read(&[]).unwrap();
        assert_eq!(p.delete_mode, RowLevelMode::CopyOnWrite);
        assert_eq!(p.merge_isolation, IsolationLevel::Serializable);
        assert_eq!(p.target_file_size_bytes, 536_870_912);
        assert_eq!(p.delete_target_file_size_bytes, 67_108_864);
        assert_eq!(p.parquet.row_group_size_bytes, 134_217_728);
        assert_eq!(p.parquet.compression_codec, ParquetCodec::Zstd);
        assert_eq!(p.metrics.mode_of("a", 99), MetricsMode::Truncate(16));
        assert_eq!(p.metrics.mode_of("a", 100), MetricsMode::None);
        assert_eq!(p.max_snapshot_age_ms, 432_000_000);
        assert_eq!(p.commit_retry.total_timeout, Duration::from_secs(1800));
        assert_eq!(p.commit_status_check.min_wait, Duration::from_secs(1));
        assert_eq!(p.metadata_previous_versions_max, 100);
        p.check_writable().unwrap();
    }

    #[test]
    fn values_are_read() {
        let p = read(&[
            (DELETE_MODE, "Merge-On-Read"),
            (DELETE_ISOLATION_LEVEL, "SNAPSHOT"),
            ("write.metadata.metrics.column.a.b", "full"),
            (METRICS_DEFAULT, "truncate(3)"),
            ("write.parquet.bloom-filter-enabled.column.x", "true"),
            ("write.parquet.compression-level", "5"),
            ("write.delete.parquet.compression-codec", "snappy"),
            ("write.parquet.page-row-limit", "7"),
            (DATA_PATH, "s3://b/d/"),
            (METADATA_PREVIOUS_VERSIONS_MAX, "0"),
            ("unknown.property", "kept"),
        ])
        .unwrap();
        assert_eq!((p.delete_mode, p.update_mode), (RowLevelMode::MergeOnRead, RowLevelMode::CopyOnWrite));
        assert_eq!(p.delete_isolation, IsolationLevel::Snapshot);
        assert_eq!(p.metrics.mode_of("a.b", 500), MetricsMode::Full);
        assert_eq!(p.metrics.mode_of("c", 500), MetricsMode::Truncate(3));
        assert_eq!(p.parquet.bloom_filter_enabled, BTreeMap::from([("x".to_string(), true)]));
        assert_eq!((p.parquet.compression_level, p.delete_parquet.compression_level), (Some(5), None));
        assert_eq!(p.delete_parquet.compression_codec, ParquetCodec::Snappy);
        assert_eq!(p.delete_parquet.page_row_limit, 7);
        assert_eq!(p.data_path.as_deref(), Some("s3://b/d"));
        assert_eq!(p.metadata_previous_versions_max, 1);
    }

    #[test]
    fn bad_values_name_the_property() {
        for (name, value) in [
            (DELETE_MODE, "cow"),
            (GC_ENABLED, "yes"),
            (TARGET_FILE_SIZE_BYTES, "0"),
            (TARGET_FILE_SIZE_BYTES, "512MB"),
            (COMMIT_NUM_RETRIES, "-1"),
            (METRICS_DEFAULT, "truncate(0)"),
            (METRICS_DEFAULT, "truncate"),
            (DEFAULT_FILE_FORMAT, "csv"),
            ("write.parquet.bloom-filter-fpp.column.x", "1.5"),
            ("write.parquet.compression-codec", "lzo"),
        ] {
            let e = read(&[(name, value)]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput);
            assert!(e.message().contains(name) && e.message().contains(value), "{e}");
        }
    }

    #[test]
    fn contracts_not_honoured_make_a_table_read_only() {
        for (name, value) in
            [(DEFAULT_FILE_FORMAT, "orc"), (ENCRYPTION_KEY_ID, "k"), (LOCATION_PROVIDER_IMPL, "com.example.P")]
        {
            let e = read(&[(name, value)]).unwrap().check_writable().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported);
            assert!(e.message().contains(name), "{e}");
        }
        let p = read(&[(DELETE_DEFAULT_FILE_FORMAT, "avro")]).unwrap();
        p.check_writable().unwrap();
        let e = p.check_position_deletes_writable().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().contains(DELETE_DEFAULT_FILE_FORMAT), "{e}");
    }
}
