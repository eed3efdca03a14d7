//! Writing manifests.

use super::{ManifestContent, ManifestFile};
use crate::spec::{FormatVersion, ManifestEntry, PartitionSpec, Schema, StructType};
use crate::{Error, Result};

/// Collects entries of one spec and content, and writes them as one manifest.
#[derive(Debug)]
pub struct ManifestWriter {
    entries: Vec<ManifestEntry>,
}

impl ManifestWriter {
    /// A manifest without entries. `partition_type` is `spec`'s; `schema` is recorded in the header.
    pub fn new(
        _format_version: FormatVersion,
        _spec: &PartitionSpec,
        _partition_type: &StructType,
        _schema: &Schema,
        _content: ManifestContent,
        _snapshot_id: i64,
    ) -> Self {
        Self { entries: Vec::new() }
    }

    /// Adds an entry, its status and sequence numbers as given.
    pub fn add(&mut self, entry: ManifestEntry) {
        self.entries.push(entry);
    }

    /// The file's bytes, and its entry for the manifest list: counts, summaries and length filled in, sequence numbers
    /// open until the list is written.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for an entry that does not belong into the manifest.
    pub fn finish(self, path: &str) -> Result<(Vec<u8>, ManifestFile)> {
        Err(Error::unsupported(format!("writing a manifest of {} entries", self.entries.len()))
            .with_context("path", path))
    }
}
