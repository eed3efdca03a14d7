//! Values that properties choose from.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal $(| $alias:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl FromStr for $name {
            type Err = Error;

            /// `InvalidInput` names the choices.
            fn from_str(text: &str) -> Result<Self> {
                match text.trim().to_ascii_lowercase().as_str() {
                    $($text $(| $alias)* => Ok(Self::$variant),)*
                    _ => Err(Error::invalid_input([$($text),*].join(", "))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)* })
            }
        }
    };
}

choices! {
    /// How a statement records the rows it removes.
    RowLevelMode {
        /// Rewrite the files that hold them.
        CopyOnWrite => "copy-on-write",
        /// Write delete files or deletion vectors.
        MergeOnRead => "merge-on-read",
    }
}

choices! {
    /// What concurrent commits a statement tolerates.
    IsolationLevel {
        /// None that added rows the statement would have acted on.
        Serializable => "serializable",
        /// Those that only added rows.
        Snapshot => "snapshot",
    }
}

choices! {
    /// How rows are spread over writers.
    DistributionMode {
        /// As they come.
        None => "none",
        /// By partition.
        Hash => "hash",
        /// By range of the sort order.
        Range => "range",
    }
}

choices! {
    /// Which data files share a position delete file.
    DeleteGranularity {
        /// Those of one partition.
        Partition => "partition",
        /// None: one delete file a data file.
        File => "file",
    }
}

choices! {
    /// Compression of metadata files.
    MetadataCompression {
        /// Plain JSON.
        None => "none" | "uncompressed",
        /// One gzip member.
        Gzip => "gzip",
    }
}

choices! {
    /// Compression of Parquet pages.
    ParquetCodec {
        /// Zstandard.
        Zstd => "zstd",
        /// Snappy.
        Snappy => "snappy",
        /// gzip.
        Gzip => "gzip",
        /// Brotli.
        Brotli => "brotli",
        /// LZ4 blocks (`LZ4_RAW`).
        Lz4 => "lz4" | "lz4_raw",
        /// No compression.
        Uncompressed => "uncompressed" | "none",
    }
}

choices! {
    /// Version of Parquet data pages.
    ParquetPageVersion {
        /// Data page v1.
        V1 => "v1",
        /// Data page v2.
        V2 => "v2",
    }
}

/// Which metrics of a column go into manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricsMode {
    /// None.
    None,
    /// Value, null and NaN counts.
    Counts,
    /// Counts, and bounds of at most this many characters or bytes (1..).
    Truncate(usize),
    /// Counts, and whole bounds.
    Full,
}

impl FromStr for MetricsMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let truncate = || lower.strip_prefix("truncate(")?.strip_suffix(')')?.trim().parse().ok().filter(|n| *n > 0);
        match lower.as_str() {
            "none" => Ok(Self::None),
            "counts" => Ok(Self::Counts),
            "full" => Ok(Self::Full),
            _ => truncate()
                .map(Self::Truncate)
                .ok_or_else(|| Error::invalid_input("none, counts, truncate(n) with n above 0, full")),
        }
    }
}

impl fmt::Display for MetricsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Counts => f.write_str("counts"),
            Self::Truncate(n) => write!(f, "truncate({n})"),
            Self::Full => f.write_str("full"),
        }
    }
}
