//! Reading manifests.

use super::ManifestFile;
use crate::spec::{ManifestEntry, TableMetadata};
use crate::{Error, Result};

/// Which columns of a manifest to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Columns {
    /// All.
    All,
    /// All but the six maps of column metrics, which come out empty.
    NoMetrics,
}

/// Reads manifests.
#[derive(Debug)]
pub struct ManifestReader;

impl ManifestReader {
    /// Reads every entry of a manifest, deleted ones included, with inheritance applied.
    ///
    /// # Errors
    /// As [`Self::read_projected`].
    pub fn read(bytes: &[u8], manifest: &ManifestFile, metadata: &TableMetadata) -> Result<Vec<ManifestEntry>> {
        Self::read_projected(bytes, manifest, metadata, Columns::All)
    }

    /// [`Self::read`] of some columns.
    ///
    /// # Errors
    /// [`crate::ErrorKind::DataInvalid`] for a damaged file or one that breaks the specification.
    pub fn read_projected(
        _bytes: &[u8],
        manifest: &ManifestFile,
        _metadata: &TableMetadata,
        _columns: Columns,
    ) -> Result<Vec<ManifestEntry>> {
        Err(Error::unsupported("reading manifests").with_context("path", manifest.manifest_path.as_str()))
    }
}
