//! Manifest lists.

use super::{ManifestContent, ManifestFile};
use crate::spec::FormatVersion;
use crate::{Error, Result};

/// Reads a manifest list. `path` only names it in errors.
///
/// # Errors
/// [`crate::ErrorKind::DataInvalid`] for a damaged file.
pub fn read_manifest_list(_bytes: &[u8], path: &str) -> Result<Vec<ManifestFile>> {
    Err(Error::unsupported("reading manifest lists").with_context("path", path))
}

/// Writes a manifest list.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] for a manifest that the version cannot hold.
pub fn write_manifest_list(
    _format_version: FormatVersion,
    _snapshot_id: i64,
    _parent_snapshot_id: Option<i64>,
    _sequence_number: i64,
    _manifests: &[ManifestFile],
) -> Result<Vec<u8>> {
    Err(Error::unsupported("writing manifest lists"))
}

/// Gives manifests that were just written their sequence numbers, and data manifests without one their first row id.
/// Returns the number of row ids taken, by which the table's next row id advances.
///
/// `sequence_number` is the commit's; `next_row_id` is the table's at this attempt, `None` before v3. A manifest carried
/// over keeps what it has. A manifest takes the rows of its added and existing files; one whose counts are unknown
/// (v1) takes no row ids.
pub fn assign_list_inheritance(manifests: &mut [ManifestFile], sequence_number: i64, next_row_id: Option<u64>) -> u64 {
    let mut assigned = 0u64;
    for manifest in manifests {
        manifest.sequence_number.get_or_insert(sequence_number);
        manifest.min_sequence_number.get_or_insert(sequence_number);
        let (Some(start), ManifestContent::Data, None) = (next_row_id, manifest.content, manifest.first_row_id) else {
            continue;
        };
        if let (Some(added), Some(existing)) = (manifest.added_rows_count, manifest.existing_rows_count) {
            manifest.first_row_id = Some(start.saturating_add(assigned));
            assigned = assigned.saturating_add(added).saturating_add(existing);
        }
    }
    assigned
}
