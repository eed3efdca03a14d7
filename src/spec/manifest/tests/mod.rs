//! Tests of the manifest codec against other engines' files, against itself, and against damage.

mod damage;
mod golden;
mod round_trip;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ManifestFile, read_manifest_list};
use crate::spec::{ManifestSource, TableMetadata};

/// The folder of the golden tables.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

/// The catalogue of golden tables.
fn catalogue() -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(golden().join("index.json")).unwrap()).unwrap()
}

/// The bytes behind a location recorded in a golden table.
fn read_location(location: &str) -> Vec<u8> {
    let (_, relative) = location.split_once("/warehouse/golden/").unwrap_or_else(|| panic!("location {location}"));
    std::fs::read(golden().join(relative)).unwrap_or_else(|e| panic!("{relative}: {e}"))
}

/// The current metadata of a catalogue entry.
fn metadata(table: &Value) -> TableMetadata {
    let file = format!("{}/metadata/{}", table["table"].as_str().unwrap(), table["current_metadata"].as_str().unwrap());
    TableMetadata::parse(&std::fs::read(golden().join(&file)).unwrap(), &file).unwrap()
}

/// The manifest lists of a table's snapshots: snapshot id, and manifests.
fn manifest_lists(metadata: &TableMetadata) -> Vec<(i64, Vec<ManifestFile>)> {
    let mut lists = Vec::new();
    for snapshot in &metadata.snapshots {
        let ManifestSource::List(location) = &snapshot.manifests else { panic!("inline manifests") };
        lists.push((snapshot.snapshot_id, read_manifest_list(&read_location(location), location).unwrap()));
    }
    lists
}
