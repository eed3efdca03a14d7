//! The manifests of a snapshot and their entries, through the caches of the [`FileIo`](crate::io::FileIo).

use std::mem::size_of;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::spawn::spawned;
use crate::spec::manifest::{ManifestReader, read_manifest_list};
use crate::spec::{ColumnMap, DataFile, ManifestEntry, ManifestFile, ManifestSource, Snapshot};
use crate::table::Table;
use crate::{Error, Result};

/// Manifests fetched and decoded at a time.
pub(crate) const CONCURRENCY: usize = 16;

/// The snapshot to scan: `snapshot_id`, else the current one; `None` when the table has none.
pub(crate) fn snapshot_of(table: &Table, snapshot_id: Option<i64>) -> Result<Option<Arc<Snapshot>>> {
    let Some(id) = snapshot_id else { return Ok(table.metadata.current_snapshot().cloned()) };
    match table.metadata.snapshot_by_id(id) {
        Some(snapshot) => Ok(Some(Arc::clone(snapshot))),
        None => Err(Error::not_found(format!("snapshot {id}")).with_context("table", table.ident.to_string())),
    }
}

/// The manifests of a snapshot, in the order of its list.
pub(crate) async fn manifests_of(table: &Table, snapshot: &Snapshot) -> Result<Arc<Vec<ManifestFile>>> {
    match &snapshot.manifests {
        ManifestSource::List(location) => {
            let load = || async move {
                let bytes = table.io.read(location).await?;
                let manifests = read_manifest_list(&bytes, location)?;
                let size = manifests.iter().map(manifest_size).sum();
                Ok((manifests, size))
            };
            table.io.cache().manifest_lists.get_or_load(location, load).await
        }
        ManifestSource::Inline(locations) => {
            let describe = |location: String| {
                let (io, snapshot_id) = (table.io.clone(), snapshot.snapshot_id);
                spawned(async move { ManifestReader::describe(&io.read(&location).await?, &location, snapshot_id) })
            };
            let manifests = stream::iter(locations.clone()).map(describe).buffered(CONCURRENCY);
            manifests.try_collect().await.map(Arc::new)
        }
    }
}

/// All entries of a manifest, deleted ones included, in its order.
pub(crate) async fn entries_of(table: &Table, manifest: &ManifestFile) -> Result<Arc<Vec<ManifestEntry>>> {
    let path = &manifest.manifest_path;
    if manifest.key_metadata.is_some() {
        return Err(Error::unsupported("encrypted manifests").with_context("manifest", path.as_str()));
    }
    // Row ids are inherited from the list, and partition values take the types of the current schema.
    let key = format!("{path}#{:?}#{}", manifest.first_row_id, table.metadata.current_schema_id);
    let load = || async {
        let bytes = table.io.read(path).await?;
        let entries = ManifestReader::read(&bytes, manifest, &table.metadata)?;
        let size = entries.iter().map(entry_size).sum();
        Ok((entries, size))
    };
    table.io.cache().manifests.get_or_load(&key, load).await
}

/// Bytes of memory that a manifest of a list takes, about.
fn manifest_size(manifest: &ManifestFile) -> usize {
    let bounds = manifest.partitions.iter().flatten();
    size_of::<ManifestFile>() + manifest.manifest_path.len() + bounds.map(|_| 100).sum::<usize>()
}

/// Bytes of memory that an entry takes, about.
fn entry_size(entry: &ManifestEntry) -> usize {
    fn counts(map: &ColumnMap<u64>) -> usize {
        map.len() * size_of::<(i32, u64)>()
    }
    fn bounds(map: &ColumnMap<Box<[u8]>>) -> usize {
        map.iter().map(|(_, bytes)| size_of::<(i32, Box<[u8]>)>() + bytes.len().max(16)).sum()
    }
    let file = &entry.data_file;
    size_of::<ManifestEntry>()
        + size_of::<DataFile>()
        + file.file_path.len()
        + file.partition.0.len() * 48
        + [&file.column_sizes, &file.value_counts, &file.null_value_counts, &file.nan_value_counts]
            .into_iter()
            .map(counts)
            .sum::<usize>()
        + bounds(&file.lower_bounds)
        + bounds(&file.upper_bounds)
        + file.split_offsets.len() * size_of::<i64>()
}
