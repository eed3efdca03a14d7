//! Data and delete files as manifests describe them.
//!
//! Implements the spec sections "Manifests, Data File Fields" and "Manifest Entry Fields". Invariant: paths are opaque
//! strings, compared byte for byte.

use std::sync::Arc;

use super::partition::{PartitionKey, PartitionTuple};

/// What a file's rows mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataContent {
    /// Rows of the table (0).
    Data,
    /// Positions of deleted rows: a position delete file, or a deletion vector when the format is Puffin (1).
    PositionDeletes,
    /// Key values of deleted rows (2).
    EqualityDeletes,
}

/// Format of a data or delete file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache Avro.
    Avro,
    /// Apache ORC.
    Orc,
    /// Puffin: a deletion vector.
    Puffin,
}

impl FileFormat {
    /// The format's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::Avro => "Avro",
            Self::Orc => "ORC",
            Self::Puffin => "Puffin",
        }
    }
}

/// Values by column id, ascending and unique by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMap<V>(Vec<(i32, V)>);

impl<V> Default for ColumnMap<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> ColumnMap<V> {
    /// The value of column `id`.
    pub fn get(&self, id: i32) -> Option<&V> {
        self.0.binary_search_by_key(&id, |(k, _)| *k).ok().map(|i| &self.0[i].1)
    }

    /// Sets the value of column `id`.
    pub fn insert(&mut self, id: i32, value: V) {
        match self.0.binary_search_by_key(&id, |(k, _)| *k) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (id, value)),
        }
    }

    /// Whether no column has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of columns with a value.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Pairs in ascending id order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i32, &V)> {
        self.0.iter().map(|(k, v)| (*k, v))
    }
}

impl<V> FromIterator<(i32, V)> for ColumnMap<V> {
    /// Of two pairs with one id the later wins.
    fn from_iter<T: IntoIterator<Item = (i32, V)>>(iter: T) -> Self {
        let mut pairs: Vec<(i32, V)> = iter.into_iter().collect();
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs.sort_by_key(|(k, _)| *k);
            pairs.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self(pairs)
    }
}

/// One data or delete file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// What its rows mean.
    pub content: DataContent,
    /// Location as recorded; of the Puffin file for a deletion vector.
    pub file_path: Arc<str>,
    /// Format.
    pub file_format: FileFormat,
    /// Spec that made `partition`; from the manifest, not stored per entry.
    pub spec_id: i32,
    /// Partition values under that spec.
    pub partition: PartitionTuple,
    /// Rows in the file, deleted ones included; cardinality of a deletion vector.
    pub record_count: u64,
    /// Size of the whole file in bytes.
    pub file_size_in_bytes: u64,
    /// Bytes on disk by column.
    pub column_sizes: ColumnMap<u64>,
    /// Values by column, nulls and NaNs included.
    pub value_counts: ColumnMap<u64>,
    /// Nulls by column.
    pub null_value_counts: ColumnMap<u64>,
    /// NaNs by column.
    pub nan_value_counts: ColumnMap<u64>,
    /// Lower bounds by column, single-value binary; may be truncated.
    pub lower_bounds: ColumnMap<Box<[u8]>>,
    /// Upper bounds by column, single-value binary; may be truncated and incremented.
    pub upper_bounds: ColumnMap<Box<[u8]>>,
    /// Encryption key metadata; a file that has any cannot be read.
    pub key_metadata: Option<Box<[u8]>>,
    /// Offsets where the file may be split, ascending.
    pub split_offsets: Vec<i64>,
    /// Key columns of an equality delete file.
    pub equality_ids: Vec<i32>,
    /// Sort order the rows have.
    pub sort_order_id: Option<i32>,
    /// v3: row id of the first row.
    pub first_row_id: Option<u64>,
    /// The one data file a position delete file or vector addresses.
    pub referenced_data_file: Option<Arc<str>>,
    /// Offset of a deletion vector's blob.
    pub content_offset: Option<u64>,
    /// Length of a deletion vector's blob.
    pub content_size_in_bytes: Option<u64>,
}

impl DataFile {
    /// A file with only the required fields set.
    pub fn new(
        content: DataContent,
        file_path: impl Into<Arc<str>>,
        file_format: FileFormat,
        partition: PartitionKey,
    ) -> Self {
        Self {
            content,
            file_path: file_path.into(),
            file_format,
            spec_id: partition.spec_id,
            partition: partition.tuple,
            record_count: 0,
            file_size_in_bytes: 0,
            column_sizes: ColumnMap::default(),
            value_counts: ColumnMap::default(),
            null_value_counts: ColumnMap::default(),
            nan_value_counts: ColumnMap::default(),
            lower_bounds: ColumnMap::default(),
            upper_bounds: ColumnMap::default(),
            key_metadata: None,
            split_offsets: Vec::new(),
            equality_ids: Vec::new(),
            sort_order_id: None,
            first_row_id: None,
            referenced_data_file: None,
            content_offset: None,
            content_size_in_bytes: None,
        }
    }

    /// The partition the file lies in.
    pub fn partition_key(&self) -> PartitionKey {
        PartitionKey { spec_id: self.spec_id, tuple: self.partition.clone() }
    }

    /// Whether this is a deletion vector.
    pub fn is_deletion_vector(&self) -> bool {
        self.content == DataContent::PositionDeletes && self.file_format == FileFormat::Puffin
    }
}

/// Whether an entry's file was there before, came, or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryStatus {
    /// In the table before the snapshot that wrote the manifest (0).
    Existing,
    /// Added by that snapshot (1).
    Added,
    /// Removed by that snapshot (2).
    Deleted,
}

/// A file with its life in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Whether the file is live.
    pub status: EntryStatus,
    /// Snapshot that added the file, or deleted it for [`EntryStatus::Deleted`]; `None` inherits the manifest's.
    pub snapshot_id: Option<i64>,
    /// Data sequence number; `None` inherits (added entries only).
    pub sequence_number: Option<i64>,
    /// Sequence number of the commit that added the file; `None` inherits (added entries only).
    pub file_sequence_number: Option<i64>,
    /// The file.
    pub data_file: Arc<DataFile>,
}

impl ManifestEntry {
    /// Whether the file is part of the snapshot (existing or added).
    pub fn is_live(&self) -> bool {
        self.status != EntryStatus::Deleted
    }
}
