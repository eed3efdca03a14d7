//! What the metadata file alone says: snapshots, history, refs, metadata files.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field};

use super::columns::{Columns, map_type, maps};
use super::{Listing, MetadataRows, at_once};
use crate::spec::{RefKind, Snapshot, SnapshotRef};
use crate::table::Table;

/// Summary key that has a column of its own.
const OPERATION: &str = "operation";

/// Java: `SnapshotsTable`.
pub(super) fn snapshots(table: &Table) -> Arc<dyn MetadataRows> {
    let columns = Columns::<Arc<Snapshot>>::new()
        .instant("committed_at", true, |s| Some(s.timestamp_ms))
        .long("snapshot_id", true, |s| Some(s.snapshot_id))
        .long("parent_id", false, |s| s.parent_snapshot_id)
        .text("operation", false, |s| match s.operation {
            Some(operation) => Some(operation.name()),
            None => s.summary.get(OPERATION).map(String::as_str),
        })
        .text("manifest_list", false, |s| s.manifest_list())
        .column(Field::new("summary", map_type(DataType::Utf8, DataType::Utf8), true), |snapshots| {
            let entries = || snapshots.iter().flat_map(|s| &s.summary).filter(|(key, _)| *key != OPERATION);
            let keys: StringArray = entries().map(|(key, _)| Some(key)).collect();
            let values: StringArray = entries().map(|(_, value)| Some(value)).collect();
            let lengths = snapshots.iter().map(|s| {
                let count = s.summary.keys().filter(|key| *key != OPERATION).count();
                (count > 0 || s.operation.is_some()).then_some(count)
            });
            maps(Arc::new(keys), Arc::new(values), &lengths.collect::<Vec<_>>())
        });
    let metadata = Arc::clone(&table.metadata);
    Listing::rows(columns, move || at_once(metadata.snapshots.clone()))
}

struct HistoryEntry {
    made_current_at: i64,
    snapshot_id: i64,
    parent_id: Option<i64>,
    is_current_ancestor: bool,
}

/// Java: `HistoryTable`.
pub(super) fn history(table: &Table) -> Arc<dyn MetadataRows> {
    let columns = Columns::<HistoryEntry>::new()
        .instant("made_current_at", true, |e| Some(e.made_current_at))
        .long("snapshot_id", true, |e| Some(e.snapshot_id))
        .long("parent_id", false, |e| e.parent_id)
        .boolean("is_current_ancestor", |e| e.is_current_ancestor);
    let metadata = Arc::clone(&table.metadata);
    Listing::rows(columns, move || {
        let current = metadata.current_snapshot_id.into_iter();
        let ancestors: HashSet<i64> =
            current.flat_map(|id| metadata.ancestors_of(id)).map(|snapshot| snapshot.snapshot_id).collect();
        let entry = |(made_current_at, snapshot_id): &(i64, i64)| HistoryEntry {
            made_current_at: *made_current_at,
            snapshot_id: *snapshot_id,
            parent_id: metadata.snapshot_by_id(*snapshot_id).and_then(|s| s.parent_snapshot_id),
            is_current_ancestor: ancestors.contains(snapshot_id),
        };
        at_once(metadata.snapshot_log.iter().map(entry).collect())
    })
}

/// Java: `RefsTable`. In the order of their names.
pub(super) fn refs(table: &Table) -> Arc<dyn MetadataRows> {
    type Named = (String, SnapshotRef);
    let columns = Columns::<Named>::new()
        .text("name", true, |(name, _)| Some(name))
        .text("type", true, |(_, r)| Some(if r.is_branch() { "BRANCH" } else { "TAG" }))
        .long("snapshot_id", true, |(_, r)| Some(r.snapshot_id))
        .long("max_reference_age_in_ms", false, |(_, r)| match r.kind {
            RefKind::Branch { max_ref_age_ms, .. } | RefKind::Tag { max_ref_age_ms } => max_ref_age_ms,
        })
        .int("min_snapshots_to_keep", false, |(_, r)| match r.kind {
            RefKind::Branch { min_snapshots_to_keep, .. } => min_snapshots_to_keep,
            RefKind::Tag { .. } => None,
        })
        .long("max_snapshot_age_in_ms", false, |(_, r)| match r.kind {
            RefKind::Branch { max_snapshot_age_ms, .. } => max_snapshot_age_ms,
            RefKind::Tag { .. } => None,
        });
    let metadata = Arc::clone(&table.metadata);
    Listing::rows(columns, move || {
        let mut refs: Vec<Named> = metadata.refs.iter().map(|(name, r)| (name.clone(), r.clone())).collect();
        refs.sort_by(|a, b| a.0.cmp(&b.0));
        at_once(refs)
    })
}

struct MetadataFile {
    timestamp: i64,
    file: String,
    /// The snapshot that was current then, though it may have expired since.
    latest: Option<(i64, Option<Arc<Snapshot>>)>,
}

/// Java: `MetadataLogEntriesTable`: the earlier files, then the current one.
pub(super) fn metadata_log_entries(table: &Table) -> Arc<dyn MetadataRows> {
    let snapshot = |e: &MetadataFile| e.latest.as_ref().and_then(|(_, snapshot)| snapshot.clone());
    let columns = Columns::<MetadataFile>::new()
        .instant("timestamp", true, |e| Some(e.timestamp))
        .text("file", true, |e| Some(&e.file))
        .long("latest_snapshot_id", false, |e| e.latest.as_ref().map(|(id, _)| *id))
        .int("latest_schema_id", false, move |e| snapshot(e)?.schema_id)
        .long("latest_sequence_number", false, move |e| Some(snapshot(e)?.sequence_number));
    let table = table.clone();
    Listing::rows(columns, move || {
        let metadata = &table.metadata;
        let current = (metadata.last_updated_ms, table.metadata_location.clone());
        let entry = |(timestamp, file): &(i64, String)| {
            let latest = metadata.snapshot_log.iter().rev().find(|(since, _)| since <= timestamp);
            let latest = latest.map(|(_, id)| (*id, metadata.snapshot_by_id(*id).cloned()));
            MetadataFile { timestamp: *timestamp, file: file.clone(), latest }
        };
        at_once(metadata.metadata_log.iter().chain(std::iter::once(&current)).map(entry).collect())
    })
}
