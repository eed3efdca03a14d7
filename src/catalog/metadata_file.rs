//! Names and contents of metadata files.

use bytes::Bytes;

use crate::io::{FileIo, join};
use crate::spec::TableMetadata;
use crate::spec::properties::{METADATA_COMPRESSION, METADATA_DELETE_AFTER_COMMIT_ENABLED, METADATA_PATH};
use crate::{Error, Result};

/// Whether the table wants its metadata gzipped. A codec we do not know, which [`check_compression`] keeps us from
/// setting, counts as none.
pub(super) fn wants_gzip(metadata: &TableMetadata) -> bool {
    metadata.properties.get(METADATA_COMPRESSION).is_some_and(|c| c.eq_ignore_ascii_case("gzip"))
}

/// Refuses a metadata codec other than none and gzip.
pub(super) fn check_compression(metadata: &TableMetadata) -> Result<()> {
    match metadata.properties.get(METADATA_COMPRESSION) {
        Some(c) if !c.eq_ignore_ascii_case("gzip") && !c.eq_ignore_ascii_case("none") => {
            Err(Error::invalid_input(format!("{METADATA_COMPRESSION} is none or gzip, not {c:?}")))
        }
        _ => Ok(()),
    }
}

/// The bytes of a metadata file.
pub(super) fn encode(metadata: &TableMetadata, gzip: bool) -> Result<Bytes> {
    let bytes = if gzip { metadata.to_gzip_bytes()? } else { metadata.to_json_bytes()? };
    Ok(Bytes::from(bytes))
}

/// Whether the table asks that metadata files which leave its log are deleted.
pub(super) fn deletes_after_commit(metadata: &TableMetadata) -> bool {
    metadata.properties.get(METADATA_DELETE_AFTER_COMMIT_ENABLED).is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

/// The metadata files that were in the log of `base` and are not in that of `new`, oldest first, as far as they are in the
/// table's own folder: a log may name files that belong to others. Empty unless the table asks that they go.
pub(super) fn expired_files(io: &FileIo, base: &TableMetadata, new: &TableMetadata) -> Vec<String> {
    if !deletes_after_commit(new) {
        return Vec::new();
    }
    let kept: std::collections::HashSet<_> = new.metadata_log.iter().map(|(_, location)| location).collect();
    own_logged_files(io, base).into_iter().filter(|l| !kept.contains(l)).collect()
}

/// The files of a table's metadata log that are in its own metadata folder, oldest first.
pub(super) fn own_logged_files(io: &FileIo, metadata: &TableMetadata) -> Vec<String> {
    let dir = metadata_dir(metadata);
    let own =
        |l: &&String| l.rsplit_once('/').is_some_and(|(d, _)| d == dir || io.same_object(d, &dir).unwrap_or(false));
    metadata.metadata_log.iter().map(|(_, location)| location).filter(own).cloned().collect()
}

/// Deletes metadata files that left the log, oldest first, stopping at the first that cannot be deleted: the commit is done
/// whatever becomes of them, and no gap may open below the current version (see [`super::versioned`]).
pub(super) async fn delete_expired(io: &FileIo, expired: &[String]) {
    for location in expired {
        if io.delete(location).await.is_err() {
            return;
        }
    }
}

/// The folder for a table's metadata files.
pub(crate) fn metadata_dir(metadata: &TableMetadata) -> String {
    match metadata.properties.get(METADATA_PATH) {
        Some(path) => path.trim_end_matches('/').to_string(),
        None => join(&metadata.location, "metadata"),
    }
}

/// The number in `<n>-<uuid>.metadata.json` (gzipped or not), the name that catalogs with a pointer of their own use.
pub(super) fn pointer_version(name: &str) -> Option<u64> {
    let stem =
        [".gz.metadata.json", ".metadata.json.gz", ".metadata.json"].iter().find_map(|s| name.strip_suffix(s))?;
    let (number, uuid) = stem.split_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (digits && !uuid.is_empty()).then(|| number.parse().ok())?
}

/// The name of version `number` with a fresh `uuid`.
pub(super) fn pointer_name(number: u64, uuid: uuid::Uuid, gzip: bool) -> String {
    format!("{number:05}-{uuid}{}.metadata.json", if gzip { ".gz" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointer_names_round_trip() {
        let uuid = uuid::Uuid::nil();
        for (number, gzip) in [(0, false), (7, true), (123_456, false)] {
            let name = pointer_name(number, uuid, gzip);
            assert_eq!(pointer_version(&name), Some(number), "{name}");
        }
        assert_eq!(pointer_name(3, uuid, true), "00003-00000000-0000-0000-0000-000000000000.gz.metadata.json");
        assert_eq!(pointer_version("00004-b3787603.metadata.json.gz"), Some(4));
        for name in ["v3.metadata.json", "-x.metadata.json", "3.metadata.json", "3-.metadata.json", "x-y.metadata.json"]
        {
            assert_eq!(pointer_version(name), None, "{name}");
        }
    }
}
