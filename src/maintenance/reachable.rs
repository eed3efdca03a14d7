//! The files that a table's metadata reaches: everything that belongs to the table and nothing else.
//!
//! Follows Java's `CatalogUtil.dropTableData`: all snapshots, all entries of their manifests whatever their status, statistics, and
//! the metadata files of the log. Invariant: a location is taken as recorded, and a file that cannot be read is an error,
//! so that an answer is complete or none.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::Result;
use crate::scan::{entries_of, manifests_of};
use crate::spec::{ManifestFile, ManifestSource};
use crate::table::Table;

/// Manifests and lists read at a time.
const CONCURRENCY: usize = 8;

/// Locations that a table's metadata reaches, by kind; each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReachableFiles {
    /// Data files and delete files.
    pub content: BTreeSet<String>,
    /// Manifests.
    pub manifests: BTreeSet<String>,
    /// Manifest lists.
    pub manifest_lists: BTreeSet<String>,
    /// Table and partition statistics files.
    pub statistics: BTreeSet<String>,
    /// Metadata files: the current one and those of the log.
    pub metadata: BTreeSet<String>,
}

impl ReachableFiles {
    /// All locations, in an order in which they may be deleted: what others point to comes last.
    pub fn into_deletion_order(self) -> Vec<String> {
        let kinds = [self.content, self.manifests, self.manifest_lists, self.statistics, self.metadata];
        kinds.into_iter().flatten().collect()
    }
}

/// Reads the manifests of every snapshot of `table` and collects what they name.
///
/// # Errors
/// `DataInvalid` for a damaged file, `NotFound` for a missing one, `Unavailable` when storage does not answer.
pub async fn reachable_files(table: &Table) -> Result<ReachableFiles> {
    let metadata = &table.metadata;
    let mut files = ReachableFiles::default();
    files.metadata.insert(table.metadata_location.clone());
    files.metadata.extend(metadata.metadata_log.iter().map(|(_, location)| location.clone()));
    for statistics in metadata.statistics.iter().chain(&metadata.partition_statistics) {
        let path = statistics.get("statistics-path").and_then(serde_json::Value::as_str);
        files.statistics.extend(path.map(str::to_owned));
    }
    for snapshot in &metadata.snapshots {
        if let ManifestSource::List(location) = &snapshot.manifests {
            files.manifest_lists.insert(location.clone());
        }
    }
    let manifests = manifests_of_all(table).await?;
    let reads: Vec<_> = manifests.values().map(|manifest| content_files(table, manifest)).collect();
    let contents: Vec<Vec<String>> = stream::iter(reads).buffer_unordered(CONCURRENCY).try_collect().await?;
    files.content.extend(contents.into_iter().flatten());
    files.manifests.extend(manifests.into_keys());
    Ok(files)
}

/// The manifests of all snapshots, by location.
async fn manifests_of_all(table: &Table) -> Result<BTreeMap<String, ManifestFile>> {
    let mut manifests = BTreeMap::new();
    let reads: Vec<_> = table.metadata.snapshots.iter().map(|snapshot| manifests_of(table, snapshot)).collect();
    let mut lists = stream::iter(reads).buffer_unordered(CONCURRENCY);
    while let Some(list) = lists.try_next().await? {
        manifests.extend(list.iter().map(|manifest| (manifest.manifest_path.clone(), manifest.clone())));
    }
    Ok(manifests)
}

async fn content_files(table: &Table, manifest: &ManifestFile) -> Result<Vec<String>> {
    let entries = entries_of(table, manifest).await?;
    Ok(entries.iter().map(|entry| entry.data_file.file_path.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalog::{TableIdent, static_table};
    use crate::env::Env;
    use crate::io::FileIo;

    /// Opens a golden table, whose recorded locations begin with `file:/warehouse/golden`.
    async fn golden(name: &str) -> Table {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden");
        let io = FileIo::builder().with_location_map("file:/warehouse/golden", root).unwrap().build();
        let ident = TableIdent::new(["db"], name);
        let catalog = static_table(ident.clone(), &format!("{root}/{name}"), io, Env::system()).await.unwrap();
        Table::load(catalog, ident, Env::system()).await.unwrap()
    }

    /// Files in the table's folders, as recorded locations.
    fn on_disk(name: &str) -> BTreeSet<String> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden");
        let mut open = vec![root.join(name)];
        let mut files = BTreeSet::new();
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let relative = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    open.push(path);
                } else if !relative.ends_with("version-hint.text") && !relative.contains("expected") {
                    files.insert(relative);
                }
            }
        }
        files
    }

    #[tokio::test]
    async fn every_file_of_a_table_is_reached_and_no_other() {
        for name in
            ["orders_v2_cow", "orders_v3_dv", "eq_global", "stats_puffin", "v1_to_v2", "refs_table", "empty_table"]
        {
            let table = golden(name).await;
            let files = reachable_files(&table).await.unwrap();
            let reached: BTreeSet<String> = files
                .into_deletion_order()
                .iter()
                .map(|location| location.rsplit_once("/golden/").unwrap().1.to_owned())
                .collect();
            assert_eq!(reached, on_disk(name), "{name}");
        }
    }

    #[tokio::test]
    async fn pointers_come_after_what_they_point_to() {
        let files = reachable_files(&golden("orders_v2_mor").await).await.unwrap();
        assert!(!files.content.is_empty() && !files.manifests.is_empty() && !files.manifest_lists.is_empty());
        let order = files.clone().into_deletion_order();
        let at = |location: &String| order.iter().position(|l| l == location).unwrap();
        let last_content = files.content.iter().map(at).max().unwrap();
        let first_manifest = files.manifests.iter().map(at).min().unwrap();
        let first_list = files.manifest_lists.iter().map(at).min().unwrap();
        let first_metadata = files.metadata.iter().map(at).min().unwrap();
        assert!(last_content < first_manifest && first_manifest < first_list && first_list < first_metadata);
    }
}
