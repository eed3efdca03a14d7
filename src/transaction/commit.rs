//! The commit loop.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::TableCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{entries_of, manifests_of};
use crate::spec::manifest::{assign_list_inheritance, write_manifest_list};
use crate::spec::properties::RetryProperties;
use crate::spec::{
    FormatVersion, MAIN_BRANCH, ManifestContent, ManifestFile, ManifestSource, Operation, RefKind, Snapshot,
    SnapshotRef, SnapshotSummaryBuilder, TableMetadata, TableMetadataBuilder, TableRequirement, TableUpdate,
};
use crate::table::Table;

use super::manifests::{self, ManifestCache};
use super::validate::{Changes, validate};
use super::{OPERATION_ID, SnapshotUpdate};

impl SnapshotUpdate {
    /// Commits the update and returns the table as it is then.
    ///
    /// # Errors
    /// `Conflict` when another commit made the update invalid, or retries ran out; `CommitUnknown` when nobody can tell
    /// whether it was committed; anything else means that it was not. After every error but `CommitUnknown` the files named
    /// as added are gone.
    pub async fn commit(self) -> Result<Table> {
        let mut cache = ManifestCache::default();
        let mut lists = Vec::new();
        let result = self.commit_with_retries(&mut cache, &mut lists).await;
        match &result {
            Ok(table) => self.remove_unused(table, cache.written, lists).await,
            Err(error) if error.kind() == ErrorKind::CommitUnknown => {}
            Err(_) => self.remove_everything(cache.written, lists).await,
        }
        result
    }

    /// Creates the table that the update was made on, with this snapshot as its first; an empty update creates it empty.
    /// The table must not exist yet: its metadata stands in the update alone.
    ///
    /// # Errors
    /// `AlreadyExists` when another came first; `CommitUnknown` as for [`commit`](Self::commit). After every other error
    /// the files named as added are gone.
    pub async fn create(self) -> Result<Table> {
        let mut cache = ManifestCache::default();
        let mut lists = Vec::new();
        let result = self.stage_and_create(&mut cache, &mut lists).await;
        if result.as_ref().is_err_and(|error| error.kind() != ErrorKind::CommitUnknown) {
            self.remove_everything(cache.written, lists).await;
        }
        result
    }

    async fn stage_and_create(&self, cache: &mut ManifestCache, lists: &mut Vec<String>) -> Result<Table> {
        let table = &self.table;
        let metadata = if self.is_empty() {
            (*table.metadata).clone()
        } else {
            let updates = self.attempt(table, 1, cache, lists).await?;
            TableMetadataBuilder::from((*table.metadata).clone(), None).apply_all(updates)?.build(table.env.now_ms())?
        };
        let loaded = table.catalog.create_table(&table.ident, metadata).await?;
        Ok(table.with_state(loaded))
    }

    /// Deletes the files named as added, for an update that will not be committed.
    pub async fn discard(self) {
        self.remove_everything(Vec::new(), Vec::new()).await;
    }

    async fn commit_with_retries(&self, cache: &mut ManifestCache, lists: &mut Vec<String>) -> Result<Table> {
        let properties = self.table.properties()?;
        let mut waited = Duration::ZERO;
        let mut attempt = 1u32;
        loop {
            let table = self.table.refresh().await?;
            if table.metadata.table_uuid != self.table.metadata.table_uuid {
                return Err(Error::conflict("the table was dropped and created again; run the statement again")
                    .with_context("table", table.ident.to_string()));
            }
            if self.is_committed(&table.metadata) {
                return Ok(table);
            }
            let updates = self.attempt(&table, attempt, cache, lists).await?;
            match self.swap(&table, updates).await {
                Ok(table) => return Ok(table),
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let wait = backoff(&properties.commit_retry, attempt);
                    if attempt > properties.commit_retry.num_retries
                        || waited + wait > properties.commit_retry.total_timeout
                    {
                        return Err(Error::conflict(format!(
                            "other commits came first {attempt} times; run the statement again"
                        ))
                        .with_context("table", table.ident.to_string())
                        .with_source(error));
                    }
                    tokio::time::sleep(wait).await;
                    waited += wait;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One attempt up to the swap: validate, apply, write the manifest list.
    async fn attempt(
        &self,
        table: &Table,
        attempt: u32,
        cache: &mut ManifestCache,
        lists: &mut Vec<String>,
    ) -> Result<Vec<TableUpdate>> {
        let metadata = &table.metadata;
        self.check(metadata.format_version)?;
        table.properties()?.check_writable()?;
        let head = self.head(metadata)?;
        let gone = self.validate_against(table, head.as_deref()).await?;
        let manifests = match &head {
            Some(snapshot) => manifests_of(table, snapshot).await?,
            None => Arc::new(Vec::new()),
        };
        let applied = manifests::apply(self, table, &manifests, &gone, cache).await?;
        let sequence_number = metadata.next_sequence_number();
        let (list, added_rows) =
            self.write_list(table, &head, applied.manifests, sequence_number, attempt, lists).await?;

        let mut summary = SnapshotSummaryBuilder::new(head.as_ref().map(|snapshot| &snapshot.summary));
        applied.added.iter().for_each(|file| summary.add_file(file));
        applied.removed.iter().for_each(|file| summary.remove_file(file));
        summarize_partitions(&mut summary, table)?;
        self.properties.iter().for_each(|(key, value)| summary.set(key, value));
        summary.set(OPERATION_ID, self.commit_id.to_string());
        summary.set("engine-name", "calve");
        summary.set("engine-version", env!("CARGO_PKG_VERSION"));

        let lineage = metadata.format_version >= FormatVersion::V3;
        let snapshot = Snapshot {
            snapshot_id: self.snapshot_id,
            parent_snapshot_id: head.as_ref().map(|snapshot| snapshot.snapshot_id),
            sequence_number,
            timestamp_ms: metadata.next_timestamp_ms(table.env.now_ms()),
            manifests: ManifestSource::List(list),
            operation: Some(self.operation()),
            summary: summary.build(),
            schema_id: Some(metadata.current_schema_id),
            first_row_id: lineage.then_some(metadata.next_row_id),
            added_rows: lineage.then_some(added_rows),
            key_id: None,
            extra: serde_json::Map::new(),
        };
        let kind = metadata.refs.get(&self.branch).map_or(
            RefKind::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None },
            |reference| reference.kind.clone(),
        );
        Ok(vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef {
                ref_name: self.branch.clone(),
                reference: SnapshotRef { snapshot_id: self.snapshot_id, kind },
            },
        ])
    }

    async fn write_list(
        &self,
        table: &Table,
        head: &Option<Arc<Snapshot>>,
        mut manifests: Vec<ManifestFile>,
        sequence_number: i64,
        attempt: u32,
        lists: &mut Vec<String>,
    ) -> Result<(String, u64)> {
        let metadata = &table.metadata;
        let next_row_id = (metadata.format_version >= FormatVersion::V3).then_some(metadata.next_row_id);
        let added_rows = assign_list_inheritance(&mut manifests, sequence_number, next_row_id);
        let parent = head.as_ref().map(|snapshot| snapshot.snapshot_id);
        let bytes = write_manifest_list(
            metadata.format_version,
            self.snapshot_id,
            parent,
            sequence_number,
            next_row_id,
            &manifests,
        )?;
        let name = format!("snap-{}-{attempt}-{}.avro", self.snapshot_id, self.commit_id);
        let location = table.new_metadata_file_location(&name);
        lists.push(location.clone());
        table.io.write(&location, bytes.into()).await?;
        Ok((location, added_rows))
    }

    async fn swap(&self, table: &Table, updates: Vec<TableUpdate>) -> Result<Table> {
        let metadata = &table.metadata;
        let mut requirements: Vec<TableRequirement> =
            metadata.table_uuid.map(|uuid| TableRequirement::AssertTableUuid { uuid }).into_iter().collect();
        requirements.push(TableRequirement::AssertRefSnapshotId {
            r#ref: self.branch.clone(),
            snapshot_id: metadata.refs.get(&self.branch).map(|reference| reference.snapshot_id),
        });
        let commit = TableCommit { ident: table.ident.clone(), base: table.loaded(), requirements, updates };
        match table.catalog.commit(commit).await {
            Ok(loaded) => Ok(table.with_state(loaded)),
            Err(error) if error.kind() == ErrorKind::CommitUnknown => self.check_status(table, error).await,
            Err(error) => Err(error),
        }
    }

    /// After an ambiguous answer: the commit succeeded if the table shows our snapshot; else nobody knows.
    async fn check_status(&self, table: &Table, error: Error) -> Result<Table> {
        let check = table.properties()?.commit_status_check;
        for retry in 0..=check.num_retries {
            if let Ok(current) = table.refresh().await
                && self.is_committed(&current.metadata)
            {
                return Ok(current);
            }
            if retry < check.num_retries {
                tokio::time::sleep(backoff(&check, retry + 1)).await;
            }
        }
        Err(Error::commit_unknown(format!(
            "the catalog did not say whether snapshot {} was committed; look for it in the table's snapshots before running the statement again; no file was removed",
            self.snapshot_id
        ))
        .with_context("table", table.ident.to_string())
        .with_source(error))
    }

    fn is_committed(&self, metadata: &TableMetadata) -> bool {
        let id = self.commit_id.to_string();
        metadata
            .snapshot_by_id(self.snapshot_id)
            .is_some_and(|snapshot| snapshot.summary.get(OPERATION_ID) == Some(&id))
    }

    /// Head of the target branch; `None` when the table has no snapshot on it.
    fn head(&self, metadata: &TableMetadata) -> Result<Option<Arc<Snapshot>>> {
        match metadata.snapshot_for_ref(&self.branch) {
            Some(snapshot) => Ok(Some(snapshot.clone())),
            None if self.branch == MAIN_BRANCH => Ok(None),
            None => Err(Error::not_found(format!("branch {} does not exist", self.branch))),
        }
    }

    async fn validate_against(&self, table: &Table, head: Option<&Snapshot>) -> Result<HashSet<Arc<str>>> {
        let Some(validation) = &self.validation else { return Ok(HashSet::new()) };
        let start = validation.start_snapshot_id();
        let Some(head) = head else {
            return match start {
                None => Ok(HashSet::new()),
                Some(_) => Err(lost_history(table)),
            };
        };
        if start == Some(head.snapshot_id) {
            return Ok(HashSet::new());
        }
        let changes = changes_since(table, head, start).await?;
        validate(validation, &changes, &table.metadata, &self.removed_data)
    }

    async fn remove_unused(&self, table: &Table, written: Vec<String>, lists: Vec<String>) {
        let Some(snapshot) = table.metadata.snapshot_by_id(self.snapshot_id) else { return };
        let ManifestSource::List(current) = &snapshot.manifests else { return };
        let Ok(manifests) = manifests_of(table, snapshot).await else { return };
        let used: HashSet<&str> = manifests.iter().map(|manifest| manifest.manifest_path.as_str()).collect();
        let mut unused: Vec<String> = written.into_iter().filter(|path| !used.contains(path.as_str())).collect();
        unused.extend(lists.into_iter().filter(|list| list != current));
        table.io.delete_all(unused).await;
    }

    async fn remove_everything(&self, written: Vec<String>, lists: Vec<String>) {
        let mut paths: HashSet<String> = written.into_iter().chain(lists).collect();
        paths.extend(self.added_data.iter().chain(&self.added_deletes).map(|file| file.file_path.to_string()));
        self.table.io.delete_all(paths.into_iter().collect()).await;
    }
}

/// The wait before retry number `attempt` (from 1): doubled each time, within bounds.
fn backoff(retry: &RetryProperties, attempt: u32) -> Duration {
    let factor = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    retry.min_wait.saturating_mul(factor).min(retry.max_wait)
}

fn lost_history(table: &Table) -> Error {
    Error::conflict(
        "the snapshot that the statement read is no longer in the branch's history (expired or rolled back), so conflicts cannot be ruled out; run the statement again",
    )
    .with_context("table", table.ident.to_string())
}

/// One entry a partition, as `write.summary.partition-limit` allows.
fn summarize_partitions(summary: &mut SnapshotSummaryBuilder<'_>, table: &Table) -> Result<()> {
    let metadata = &table.metadata;
    let limit = table.properties()?.partition_summary_limit;
    summary.summarize_partitions(limit, |key| {
        let Some(spec) = metadata.spec_by_id(key.spec_id) else { return String::new() };
        spec.partition_path(&key.tuple, &spec.partition_type(metadata))
    });
    Ok(())
}

/// What every snapshot between `start` (excluded) and `head` added and removed. Fails if `start` is not an ancestor.
async fn changes_since(table: &Table, head: &Snapshot, start: Option<i64>) -> Result<Changes> {
    let metadata = &table.metadata;
    let mut changes = Changes::default();
    let mut last_parent = Some(head.snapshot_id);
    for snapshot in metadata.ancestors_of(head.snapshot_id) {
        if Some(snapshot.snapshot_id) == start {
            break;
        }
        last_parent = snapshot.parent_snapshot_id;
        // An old writer's snapshot without operation may have done anything.
        let operation = snapshot.operation.unwrap_or(Operation::Overwrite);
        let manifests = manifests_of(table, snapshot).await?;
        for manifest in manifests.iter().filter(|manifest| manifest.added_snapshot_id == snapshot.snapshot_id) {
            if manifest.added_files_count == Some(0) && manifest.deleted_files_count == Some(0) {
                continue;
            }
            let entries = entries_of(table, manifest).await?;
            for entry in entries.iter().filter(|entry| entry.snapshot_id == Some(snapshot.snapshot_id)) {
                let change = (operation, Arc::new(entry.clone()));
                use crate::spec::EntryStatus::{Added, Deleted, Existing};
                match (manifest.content, entry.status) {
                    (ManifestContent::Data, Added) => changes.added_data.push(change),
                    (ManifestContent::Data, Deleted) => changes.deleted_data.push(change),
                    (ManifestContent::Deletes, Added) => changes.added_deletes.push(change),
                    (_, Existing) | (ManifestContent::Deletes, Deleted) => {}
                }
            }
        }
    }
    if last_parent != start {
        return Err(lost_history(table));
    }
    Ok(changes)
}
