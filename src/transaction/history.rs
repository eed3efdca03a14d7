//! What other commits did since the snapshot that a statement read.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, Result};
use crate::scan::{entries_of, manifests_of};
use crate::spec::{EntryStatus, ManifestContent, ManifestEntry, ManifestFile, Operation, Snapshot};
use crate::table::Table;

/// Manifests fetched at a time.
const CONCURRENCY: usize = 16;

/// A file that a commit since start added or removed, with that commit's operation.
pub(super) type Change = (Operation, ManifestEntry);

/// Everything that commits since the start snapshot did.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) added_data: Vec<Change>,
    pub(super) deleted_data: Vec<Change>,
    pub(super) added_deletes: Vec<Change>,
}

impl Changes {
    /// What every snapshot between `start` (excluded) and `head` added and removed.
    ///
    /// # Errors
    /// `Conflict` if `start` is not an ancestor of `head`: then nobody can tell what happened since.
    pub(super) async fn since(table: &Table, head: &Snapshot, start: Option<i64>) -> Result<Self> {
        let metadata = &table.metadata;
        let mut snapshots = Vec::new();
        let mut last_parent = Some(head.snapshot_id);
        for snapshot in metadata.ancestors_of(head.snapshot_id) {
            if Some(snapshot.snapshot_id) == start {
                break;
            }
            last_parent = snapshot.parent_snapshot_id;
            snapshots.push(Arc::clone(snapshot));
        }
        if last_parent != start {
            return Err(lost_history(table));
        }
        let changes = futures::stream::iter(snapshots)
            .map(|snapshot| {
                let table = table.clone();
                async move { Self::of_snapshot(&table, &snapshot).await }
            })
            .buffered(CONCURRENCY);
        changes.try_fold(Self::default(), |all, one| std::future::ready(Ok(all.and(one)))).await
    }

    async fn of_snapshot(table: &Table, snapshot: &Snapshot) -> Result<Self> {
        // An old writer's snapshot without operation may have done anything.
        let operation = snapshot.operation.unwrap_or(Operation::Overwrite);
        let manifests = manifests_of(table, snapshot).await?;
        let mut changes = Self::default();
        for manifest in manifests.iter().filter(|manifest| may_change(manifest, snapshot)) {
            for entry in entries_of(table, manifest).await?.iter() {
                if entry.snapshot_id == Some(snapshot.snapshot_id) {
                    changes.add(operation, manifest.content, entry);
                }
            }
        }
        Ok(changes)
    }

    fn add(&mut self, operation: Operation, content: ManifestContent, entry: &ManifestEntry) {
        let list = match (content, entry.status) {
            (ManifestContent::Data, EntryStatus::Added) => &mut self.added_data,
            (ManifestContent::Data, EntryStatus::Deleted) => &mut self.deleted_data,
            (ManifestContent::Deletes, EntryStatus::Added) => &mut self.added_deletes,
            (_, EntryStatus::Existing) | (ManifestContent::Deletes, EntryStatus::Deleted) => return,
        };
        list.push((operation, entry.clone()));
    }

    fn and(mut self, other: Self) -> Self {
        self.added_data.extend(other.added_data);
        self.deleted_data.extend(other.deleted_data);
        self.added_deletes.extend(other.added_deletes);
        self
    }
}

/// Whether the snapshot itself wrote the manifest, with something added or deleted in it.
fn may_change(manifest: &ManifestFile, snapshot: &Snapshot) -> bool {
    manifest.added_snapshot_id == snapshot.snapshot_id
        && !(manifest.added_files_count == Some(0) && manifest.deleted_files_count == Some(0))
}

pub(super) fn lost_history(table: &Table) -> Error {
    Error::conflict(
        "the snapshot that the statement read is no longer in the branch's history (expired or rolled back), so conflicts cannot be ruled out; run the statement again",
    )
    .with_context("table", table.ident.to_string())
}
