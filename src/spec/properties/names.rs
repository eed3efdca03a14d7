//! Names of table properties, with their defaults.
//!
//! The names and defaults are those of Iceberg Java's `TableProperties`.

/// `format-version`: format version of a table to be created (`1`, `2` or `3`, default `2`). Never stored.
pub const FORMAT_VERSION: &str = "format-version";

/// `write.delete.mode`: how DELETE records removed rows, `copy-on-write` (default) or `merge-on-read`.
pub const DELETE_MODE: &str = "write.delete.mode";
/// `write.update.mode`: how UPDATE records removed rows, `copy-on-write` (default) or `merge-on-read`.
pub const UPDATE_MODE: &str = "write.update.mode";
/// `write.merge.mode`: how MERGE records removed rows, `copy-on-write` (default) or `merge-on-read`.
pub const MERGE_MODE: &str = "write.merge.mode";
/// `write.delete.isolation-level`: `serializable` (default) or `snapshot`.
pub const DELETE_ISOLATION_LEVEL: &str = "write.delete.isolation-level";
/// `write.update.isolation-level`: `serializable` (default) or `snapshot`.
pub const UPDATE_ISOLATION_LEVEL: &str = "write.update.isolation-level";
/// `write.merge.isolation-level`: `serializable` (default) or `snapshot`.
pub const MERGE_ISOLATION_LEVEL: &str = "write.merge.isolation-level";

/// `write.distribution-mode`: how rows are spread over writers, `none`, `hash` or `range` (default `hash` for a
/// partitioned table, `range` for a sorted one, else `none`).
pub const DISTRIBUTION_MODE: &str = "write.distribution-mode";
/// `write.delete.distribution-mode`: the same for rows a DELETE writes (default `hash`).
pub const DELETE_DISTRIBUTION_MODE: &str = "write.delete.distribution-mode";
/// `write.update.distribution-mode`: the same for rows an UPDATE writes (default `hash`).
pub const UPDATE_DISTRIBUTION_MODE: &str = "write.update.distribution-mode";
/// `write.merge.distribution-mode`: the same for rows a MERGE writes (default as `write.distribution-mode`).
pub const MERGE_DISTRIBUTION_MODE: &str = "write.merge.distribution-mode";

/// `write.target-file-size-bytes`: size to roll data files at (default 536870912, 512 MiB).
pub const TARGET_FILE_SIZE_BYTES: &str = "write.target-file-size-bytes";
/// `write.delete.target-file-size-bytes`: size to roll delete files at (default 67108864, 64 MiB).
pub const DELETE_TARGET_FILE_SIZE_BYTES: &str = "write.delete.target-file-size-bytes";
/// `write.delete.granularity`: one position delete file a `partition` (default) or a data `file`.
pub const DELETE_GRANULARITY: &str = "write.delete.granularity";
/// `write.format.default`: format of new data files, `parquet` (default), `avro` or `orc`; only Parquet is written.
pub const DEFAULT_FILE_FORMAT: &str = "write.format.default";
/// `write.delete.format.default`: format of new v2 delete files (default that of data files); only Parquet is written.
pub const DELETE_DEFAULT_FILE_FORMAT: &str = "write.delete.format.default";

/// Prefix of Parquet settings of data files; the settings are the `PARQUET_…` names.
pub const PARQUET_PREFIX: &str = "write.parquet.";
/// Prefix of Parquet settings of delete files, each by default that of data files.
pub const DELETE_PARQUET_PREFIX: &str = "write.delete.parquet.";
/// `write.parquet.row-group-size-bytes` (default 134217728, 128 MiB).
pub const PARQUET_ROW_GROUP_SIZE_BYTES: &str = "row-group-size-bytes";
/// `write.parquet.row-group-check-min-record-count`: rows before a row group's size is first looked at (default 100).
pub const PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT: &str = "row-group-check-min-record-count";
/// `write.parquet.row-group-check-max-record-count`: rows between looks at a row group's size (default 10000).
pub const PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT: &str = "row-group-check-max-record-count";
/// `write.parquet.page-size-bytes` (default 1048576, 1 MiB).
pub const PARQUET_PAGE_SIZE_BYTES: &str = "page-size-bytes";
/// `write.parquet.page-row-limit` (default 20000).
pub const PARQUET_PAGE_ROW_LIMIT: &str = "page-row-limit";
/// `write.parquet.page-version`: `v1` (default) or `v2`.
pub const PARQUET_PAGE_VERSION: &str = "page-version";
/// `write.parquet.dict-size-bytes`: size at which a column gives up its dictionary (default 2097152, 2 MiB).
pub const PARQUET_DICT_SIZE_BYTES: &str = "dict-size-bytes";
/// `write.parquet.compression-codec`: `zstd` (default), `snappy`, `gzip`, `brotli`, `lz4` or `uncompressed`.
pub const PARQUET_COMPRESSION_CODEC: &str = "compression-codec";
/// `write.parquet.compression-level`: level of the codec (default the codec's own).
pub const PARQUET_COMPRESSION_LEVEL: &str = "compression-level";
/// `write.parquet.bloom-filter-max-bytes`: greatest size of a column's bloom filter (default 1048576, 1 MiB).
pub const PARQUET_BLOOM_FILTER_MAX_BYTES: &str = "bloom-filter-max-bytes";
/// `write.parquet.bloom-filter-enabled.column.<name>`: whether to write a bloom filter (default false).
pub const PARQUET_BLOOM_FILTER_ENABLED_PREFIX: &str = "bloom-filter-enabled.column.";
/// `write.parquet.bloom-filter-fpp.column.<name>`: false positive rate, between 0 and 1 (default 0.01).
pub const PARQUET_BLOOM_FILTER_FPP_PREFIX: &str = "bloom-filter-fpp.column.";
/// `write.parquet.bloom-filter-ndv.column.<name>`: expected distinct values (default derived from the size limit).
pub const PARQUET_BLOOM_FILTER_NDV_PREFIX: &str = "bloom-filter-ndv.column.";
/// `write.parquet.stats-enabled.column.<name>`: whether to write column statistics (default true).
pub const PARQUET_STATS_ENABLED_PREFIX: &str = "stats-enabled.column.";
/// `write.parquet.dict-encoding-enabled.column.<name>`: whether to try a dictionary (default true).
pub const PARQUET_DICT_ENCODING_ENABLED_PREFIX: &str = "dict-encoding-enabled.column.";

/// `write.metadata.metrics.default`: `none`, `counts`, `truncate(n)` or `full` (default `truncate(16)`).
pub const METRICS_DEFAULT: &str = "write.metadata.metrics.default";
/// `write.metadata.metrics.column.<name>`: the same for one column.
pub const METRICS_COLUMN_PREFIX: &str = "write.metadata.metrics.column.";
/// `write.metadata.metrics.max-inferred-column-defaults`: columns that get metrics when no default is set (default 100).
pub const METRICS_MAX_INFERRED_COLUMN_DEFAULTS: &str = "write.metadata.metrics.max-inferred-column-defaults";

/// `write.object-storage.enabled`: hash folders in front of data files' paths (default false).
pub const OBJECT_STORE_ENABLED: &str = "write.object-storage.enabled";
/// `write.object-storage.partitioned-paths`: keep partition folders in those paths (default true).
pub const OBJECT_STORE_PARTITIONED_PATHS: &str = "write.object-storage.partitioned-paths";
/// `write.data.path`: base of data files (default `data` under the table's location).
pub const DATA_PATH: &str = "write.data.path";
/// `write.folder-storage.path`: older name of [`DATA_PATH`].
pub const FOLDER_STORAGE_PATH: &str = "write.folder-storage.path";
/// `write.object-storage.path`: older name of [`DATA_PATH`] for object storage layout.
pub const OBJECT_STORE_PATH: &str = "write.object-storage.path";
/// `write.metadata.path`: base of metadata files (default `metadata` under the table's location).
pub const METADATA_PATH: &str = "write.metadata.path";
/// `write.location-provider.impl`: a Java class that names data files; writing is refused.
pub const LOCATION_PROVIDER_IMPL: &str = "write.location-provider.impl";

/// `write.metadata.delete-after-commit.enabled`: delete metadata files that leave the log (default false).
pub const METADATA_DELETE_AFTER_COMMIT_ENABLED: &str = "write.metadata.delete-after-commit.enabled";
/// `write.metadata.previous-versions-max`: length of the metadata log, at least 1 (default 100).
pub const METADATA_PREVIOUS_VERSIONS_MAX: &str = "write.metadata.previous-versions-max";
/// `write.metadata.compression-codec`: `none` (default) or `gzip`.
pub const METADATA_COMPRESSION: &str = "write.metadata.compression-codec";

/// `commit.retry.num-retries`: attempts after the first (default 4).
pub const COMMIT_NUM_RETRIES: &str = "commit.retry.num-retries";
/// `commit.retry.min-wait-ms`: first wait (default 100).
pub const COMMIT_MIN_RETRY_WAIT_MS: &str = "commit.retry.min-wait-ms";
/// `commit.retry.max-wait-ms`: longest wait (default 60000).
pub const COMMIT_MAX_RETRY_WAIT_MS: &str = "commit.retry.max-wait-ms";
/// `commit.retry.total-timeout-ms`: time after which no attempt starts (default 1800000, 30 minutes).
pub const COMMIT_TOTAL_RETRY_TIME_MS: &str = "commit.retry.total-timeout-ms";
/// `commit.status-check.num-retries`: looks for a commit of unknown outcome (default 3).
pub const COMMIT_STATUS_CHECKS_NUM_RETRIES: &str = "commit.status-check.num-retries";
/// `commit.status-check.min-wait-ms`: first wait (default 1000).
pub const COMMIT_STATUS_CHECKS_MIN_WAIT_MS: &str = "commit.status-check.min-wait-ms";
/// `commit.status-check.max-wait-ms`: longest wait (default 60000).
pub const COMMIT_STATUS_CHECKS_MAX_WAIT_MS: &str = "commit.status-check.max-wait-ms";
/// `commit.status-check.total-timeout-ms`: time after which no look starts (default 1800000, 30 minutes).
pub const COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS: &str = "commit.status-check.total-timeout-ms";

/// `commit.manifest.target-size-bytes`: size to roll and merge manifests at (default 8388608, 8 MiB).
pub const MANIFEST_TARGET_SIZE_BYTES: &str = "commit.manifest.target-size-bytes";
/// `commit.manifest.min-count-to-merge`: manifests needed before the newest is merged (default 100).
pub const MANIFEST_MIN_MERGE_COUNT: &str = "commit.manifest.min-count-to-merge";
/// `commit.manifest-merge.enabled`: whether commits merge manifests (default true).
pub const MANIFEST_MERGE_ENABLED: &str = "commit.manifest-merge.enabled";

/// `history.expire.max-snapshot-age-ms`: age at which snapshots may expire (default 432000000, 5 days).
pub const MAX_SNAPSHOT_AGE_MS: &str = "history.expire.max-snapshot-age-ms";
/// `history.expire.min-snapshots-to-keep`: ancestors a branch keeps at any age (default 1).
pub const MIN_SNAPSHOTS_TO_KEEP: &str = "history.expire.min-snapshots-to-keep";
/// `history.expire.max-ref-age-ms`: age at which refs other than `main` may expire (default for ever).
pub const MAX_REF_AGE_MS: &str = "history.expire.max-ref-age-ms";
/// `gc.enabled`: whether expiry and orphan removal may delete files (default true).
pub const GC_ENABLED: &str = "gc.enabled";

/// `write.wap.enabled`: write-audit-publish by session id (default false).
pub const WRITE_AUDIT_PUBLISH_ENABLED: &str = "write.wap.enabled";
/// `write.summary.partition-limit`: partitions summarised one by one in a snapshot's summary (default 0).
pub const WRITE_PARTITION_SUMMARY_LIMIT: &str = "write.summary.partition-limit";
/// `write.upsert.enabled`: Flink's upsert sink (default false); no effect on SQL statements.
pub const UPSERT_ENABLED: &str = "write.upsert.enabled";
/// `write.spark.fanout.enabled`: one open file a partition instead of sorting first (default false).
pub const SPARK_WRITE_PARTITIONED_FANOUT_ENABLED: &str = "write.spark.fanout.enabled";
/// `write.spark.accept-any-schema`: let the engine match columns by name (default false).
pub const SPARK_WRITE_ACCEPT_ANY_SCHEMA: &str = "write.spark.accept-any-schema";
/// `schema.name-mapping.default`: names to field ids, as JSON, for files without field ids.
pub const DEFAULT_NAME_MAPPING: &str = "schema.name-mapping.default";
/// `encryption.key-id`: master key of an encrypted table; writing is refused.
pub const ENCRYPTION_KEY_ID: &str = "encryption.key-id";

/// Properties that are facts of the metadata, not settings; they cannot be set.
pub const RESERVED: &[&str] = &[
    FORMAT_VERSION,
    "uuid",
    "snapshot-count",
    "current-snapshot-summary",
    "current-snapshot-id",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
];
