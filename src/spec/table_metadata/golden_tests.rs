//! Partition folders and snapshot summaries of golden tables, computed from their manifests.

use std::path::{Path, PathBuf};

use super::*;
use crate::spec::manifest::{ManifestReader, read_manifest_list};
use crate::spec::{EntryStatus, ManifestEntry, ManifestFile, SnapshotSummaryBuilder};

/// A file of a golden table by its recorded location.
fn local(table: &Path, location: &str) -> PathBuf {
    let name = table.file_name().unwrap().to_str().unwrap();
    let rest = location.split_once(&format!("/{name}/")).unwrap_or_else(|| panic!("{location} is not below {name}")).1;
    table.join(rest)
}

/// The newest metadata of every golden table made by SQL.
fn tables() -> Vec<(PathBuf, TableMetadata)> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden");
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(golden.join("index.json")).unwrap()).unwrap();
    // Imported files lie in the folders of their first owner, and Spark does not count the sizes of the manifests it makes
    // of them.
    let name = |entry: &serde_json::Value| entry["table"].as_str().unwrap().to_string();
    let tables = index.as_array().unwrap().iter().filter(|entry| !name(entry).starts_with("import_")).map(|entry| {
        let table = golden.join(name(entry));
        let file = table.join("metadata").join(entry["current_metadata"].as_str().unwrap());
        let metadata = TableMetadata::parse(&std::fs::read(&file).unwrap(), &file.display().to_string()).unwrap();
        (table, metadata)
    });
    tables.collect()
}

/// Manifests that `snapshot` itself wrote, with their entries.
fn own_manifests(
    table: &Path,
    metadata: &TableMetadata,
    snapshot: &Snapshot,
) -> Vec<(ManifestFile, Vec<ManifestEntry>)> {
    let list = local(table, snapshot.manifest_list().unwrap());
    let manifests = read_manifest_list(&std::fs::read(&list).unwrap(), "list").unwrap();
    let own = manifests.into_iter().filter(|m| m.added_snapshot_id == snapshot.snapshot_id).map(|m| {
        let bytes = std::fs::read(local(table, &m.manifest_path)).unwrap();
        let entries = ManifestReader::read(&bytes, &m, metadata).unwrap();
        (m, entries)
    });
    own.collect()
}

#[test]
fn partition_paths_name_the_folders_of_other_writers() {
    let mut compared = 0;
    for (table, metadata) in tables() {
        for snapshot in &metadata.snapshots {
            for (manifest, entries) in own_manifests(&table, &metadata, snapshot) {
                let spec = metadata.spec_by_id(manifest.partition_spec_id).unwrap();
                let types = spec.partition_type(&metadata);
                for entry in entries {
                    let file = &entry.data_file;
                    let path = spec.partition_path(&file.partition, &types);
                    let Some((_, rest)) = file.file_path.split_once("/data/") else { continue };
                    let folder = rest.rsplit_once('/').map_or("", |(folder, _)| folder);
                    // A vector's Puffin file may serve several partitions, and object storage paths are hashes.
                    if file.is_deletion_vector() || !folder.contains('=') {
                        continue;
                    }
                    assert_eq!(path, folder, "{}", file.file_path);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 400, "only {compared} files");
}

#[test]
fn summaries_count_as_other_writers_do() {
    let mut compared = 0;
    for (table, metadata) in tables() {
        for snapshot in &metadata.snapshots {
            let parent = snapshot.parent_snapshot_id.and_then(|id| metadata.snapshot_by_id(id));
            if parent.is_none() && snapshot.parent_snapshot_id.is_some() {
                continue;
            }
            let mut summary = SnapshotSummaryBuilder::new(parent.map(|p| &p.summary));
            for (_, entries) in own_manifests(&table, &metadata, snapshot) {
                for entry in entries {
                    match entry.status {
                        EntryStatus::Added => summary.add_file(&entry.data_file),
                        EntryStatus::Deleted => summary.remove_file(&entry.data_file),
                        EntryStatus::Existing => {}
                    }
                }
            }
            for (key, value) in summary.build() {
                // PyIceberg leaves the partition count out; everything else must be there and equal.
                if let Some(recorded) = snapshot.summary.get(&key) {
                    assert_eq!(&value, recorded, "{} {} {key}", table.display(), snapshot.snapshot_id);
                    compared += 1;
                } else {
                    assert_eq!(key, "changed-partition-count", "{} {}", table.display(), snapshot.snapshot_id);
                }
            }
        }
    }
    assert!(compared > 1000, "only {compared} entries");
}
