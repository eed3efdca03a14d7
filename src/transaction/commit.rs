//! The commit loop.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::TableCommit;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::manifests_of;
use crate::spec::manifest::{assign_list_inheritance, write_manifest_list};
use crate::spec::properties::RetryProperties;
use crate::spec::{
    FormatVersion, MAIN_BRANCH, ManifestFile, ManifestSource, RefKind, Snapshot, SnapshotRef, SnapshotSummaryBuilder,
    TableMetadata, TableMetadataBuilder, TableRequirement, TableUpdate,
};
use crate::table::Table;

use super::history::{Changes, lost_history};
use super::manifests::{self, ManifestCache};
use super::queue::line_up;
use super::validate::validate;
use super::{OPERATION_ID, SnapshotUpdate};

/// What a commit did.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The table with the update in it.
    pub(crate) table: Table,
    /// Data files for which the update had deletes, but which a concurrent DELETE removed: their rows are not this
    /// update's doing.
    pub(crate) gone: HashSet<Arc<str>>,
}

/// What the attempts of one commit wrote, and share.
#[derive(Debug, Default)]
struct Attempts {
    cache: ManifestCache,
    lists: Vec<AttemptedList>,
}

/// A manifest list that an attempt wrote, or tried to, and what it makes part of the table.
#[derive(Debug)]
struct AttemptedList {
    location: String,
    manifests: HashSet<String>,
    added: HashSet<Arc<str>>,
    gone: HashSet<Arc<str>>,
}

/// What an attempt makes of the update.
enum Attempt {
    Swap(Vec<TableUpdate>),
    /// A concurrent DELETE did all that there was to do.
    Nothing(HashSet<Arc<str>>),
}

impl SnapshotUpdate {
    /// Commits the update and returns the table as it is then. Once begun, the commit runs to its end even if the returned
    /// future is dropped.
    ///
    /// An update that only deletes rows of data files which a concurrent DELETE removed has nothing left to do: it succeeds
    /// without a snapshot.
    ///
    /// # Errors
    /// `Conflict` when another commit made the update invalid, or retries ran out; `CommitUnknown` when nobody can tell
    /// whether it was committed; anything else means that it was not. After every error but `CommitUnknown` the files named
    /// as added are gone.
    pub async fn commit(self) -> Result<Table> {
        Ok(self.commit_counted().await?.table)
    }

    /// [`commit`](Self::commit), and what of the update turned out not to be its own doing.
    pub(crate) async fn commit_counted(self) -> Result<Committed> {
        self.run_to_the_end(|update| async move { update.commit_here().await }).await
    }

    /// Creates the table that the update was made on, with this snapshot as its first; an empty update creates it empty.
    /// The table must not exist yet: its metadata stands in the update alone. Once begun, it runs to its end.
    ///
    /// # Errors
    /// `AlreadyExists` when another came first; `CommitUnknown` as for [`commit`](Self::commit). After every other error
    /// the files named as added are gone.
    pub async fn create(self) -> Result<Table> {
        self.run_to_the_end(|update| async move { update.create_here().await }).await
    }

    /// Deletes the files named as added, for an update that will not be committed.
    pub async fn discard(mut self) {
        self.remove_everything(&Attempts::default()).await;
        self.owns_files = false;
    }

    /// Runs `work` as a task of its own, which goes on when the caller is dropped: a swap that was asked for must be followed
    /// up, or nobody knows which files are in use.
    async fn run_to_the_end<T, F>(self, work: impl FnOnce(Self) -> F + Send) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let unknown = unknown_outcome(&self.table, self.snapshot_id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return work(self).await };
        match runtime.spawn(work(self)).await {
            Ok(result) => result,
            Err(interrupted) => Err(unknown.with_source(interrupted)),
        }
    }

    async fn commit_here(mut self) -> Result<Committed> {
        let mut attempts = Attempts::default();
        // Until the outcome is known nothing may be removed: not by a panic's unwinding either.
        self.owns_files = false;
        let result = self.commit_with_retries(&mut attempts).await;
        match &result {
            Ok(committed) => self.remove_unused(&committed.table, &attempts).await,
            Err(error) if error.kind() == ErrorKind::CommitUnknown => {}
            Err(_) => self.remove_everything(&attempts).await,
        }
        result
    }

    async fn create_here(mut self) -> Result<Table> {
        let mut attempts = Attempts::default();
        self.owns_files = false;
        let result = self.stage_and_create(&mut attempts).await;
        match &result {
            Ok(table) => self.remove_unused(table, &attempts).await,
            Err(error) if error.kind() == ErrorKind::CommitUnknown => {}
            Err(_) => self.remove_everything(&attempts).await,
        }
        result
    }

    async fn stage_and_create(&self, attempts: &mut Attempts) -> Result<Table> {
        let table = &self.table;
        let mut metadata = (*table.metadata).clone();
        if !self.is_empty()
            && let Attempt::Swap(updates) = self.attempt(table, 1, attempts).await?
        {
            metadata = TableMetadataBuilder::from(metadata, None).apply_all(updates)?.build(table.env.now_ms())?;
        }
        match table.catalog.create_table(&table.ident, metadata).await {
            Ok(loaded) => Ok(table.with_state(loaded)),
            Err(error) if error.kind() == ErrorKind::CommitUnknown => match table.refresh().await {
                Ok(now) if now.metadata.table_uuid == table.metadata.table_uuid => Ok(now),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn commit_with_retries(&self, attempts: &mut Attempts) -> Result<Committed> {
        let retry = self.table.properties()?.commit_retry;
        let started = self.table.env.now_ms();
        let mut place = None;
        let mut lost: Option<Error> = None;
        for attempt in 1u32.. {
            if place.is_none()
                && let Some(uuid) = self.table.metadata.table_uuid
            {
                place = line_up(uuid, attempt > 1, retry.max_wait).await;
            }
            let table = self.table.refresh().await?;
            if table.metadata.table_uuid != self.table.metadata.table_uuid {
                return Err(Error::conflict("the table was dropped and created again; run the statement again")
                    .with_context("table", table.ident.to_string()));
            }
            // Even a refused swap may have been ours, when a client in between sent it twice.
            if self.is_committed(&table.metadata) {
                return Ok(attempts.committed(table, self.snapshot_id));
            }
            if let Some(error) = lost.take() {
                let elapsed = table.env.now_ms().saturating_sub(started);
                let elapsed = Duration::from_millis(u64::try_from(elapsed).unwrap_or(0));
                if attempt > retry.num_retries.saturating_add(1) || elapsed > retry.total_timeout {
                    return Err(Error::conflict(format!(
                        "other commits came first {} times; run the statement again",
                        attempt - 1
                    ))
                    .with_context("table", table.ident.to_string())
                    .with_source(error));
                }
            }
            let updates = match self.attempt(&table, attempt, attempts).await? {
                Attempt::Swap(updates) => updates,
                Attempt::Nothing(gone) => return Ok(Committed { table, gone }),
            };
            match self.swap(&table, updates).await {
                Ok(table) => return Ok(attempts.committed(table, self.snapshot_id)),
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    lost = Some(error);
                    // Whoever has a place already lost it to another process: that one gets time to finish.
                    if place.is_some() || self.table.metadata.table_uuid.is_none() {
                        tokio::time::sleep(jittered(backoff(&retry, attempt), &table.env)).await;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::internal("a commit was tried without end"))
    }

    /// One attempt up to the swap: validate, apply, write the manifest list.
    async fn attempt(&self, table: &Table, attempt: u32, attempts: &mut Attempts) -> Result<Attempt> {
        let metadata = &table.metadata;
        self.check(metadata.format_version)?;
        table.properties()?.check_writable()?;
        let head = self.head(metadata)?;
        let gone = self.validate_against(table, head.as_deref()).await?;
        let live_deletes = manifests::live_deletes(self, &gone);
        if live_deletes.is_empty() && !gone.is_empty() && self.added_data.is_empty() && self.removed_data.is_empty() {
            return Ok(Attempt::Nothing(gone));
        }
        let manifests = match &head {
            Some(snapshot) => manifests_of(table, snapshot).await?,
            None => Arc::new(Vec::new()),
        };
        let applied = manifests::apply(self, table, &manifests, &live_deletes, &mut attempts.cache).await?;
        let name = format!("snap-{}-{attempt}-{}.avro", self.snapshot_id, self.commit_id);
        let list = table.new_metadata_file_location(&name);
        attempts.lists.push(AttemptedList {
            location: list.clone(),
            manifests: applied.manifests.iter().map(|manifest| manifest.manifest_path.clone()).collect(),
            added: applied.added.iter().map(|file| file.file_path.clone()).collect(),
            gone,
        });
        let sequence_number = metadata.next_sequence_number();
        let added_rows = self.write_list(table, &head, applied.manifests, sequence_number, &list).await?;

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
        Ok(Attempt::Swap(vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef {
                ref_name: self.branch.clone(),
                reference: SnapshotRef { snapshot_id: self.snapshot_id, kind },
            },
        ]))
    }

    async fn write_list(
        &self,
        table: &Table,
        head: &Option<Arc<Snapshot>>,
        mut manifests: Vec<ManifestFile>,
        sequence_number: i64,
        location: &str,
    ) -> Result<u64> {
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
        table.io.write(location, bytes.into()).await?;
        Ok(added_rows)
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
        Err(unknown_outcome(table, self.snapshot_id).with_source(error))
    }

    fn is_committed(&self, metadata: &TableMetadata) -> bool {
        let id = self.commit_id.to_string();
        metadata
            .snapshot_by_id(self.snapshot_id)
            .is_some_and(|snapshot| snapshot.summary.get(OPERATION_ID) == Some(&id))
    }

    /// Head of the target branch; `None` when the table has no snapshot on it.
    fn head(&self, metadata: &TableMetadata) -> Result<Option<Arc<Snapshot>>> {
        if metadata.refs.get(&self.branch).is_some_and(|reference| matches!(reference.kind, RefKind::Tag { .. })) {
            return Err(Error::invalid_input(format!("{} is a tag; only a branch can be committed to", self.branch)));
        }
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
        let changes = Changes::since(table, head, start).await?;
        validate(validation, &changes, table, &self.removed_data).await
    }

    /// After success: manifests, lists and added files that the snapshot does not name.
    async fn remove_unused(&self, table: &Table, attempts: &Attempts) {
        let committed = attempts.committed_list(table, self.snapshot_id);
        let written = attempts.cache.written();
        let mut unused: Vec<String> = match committed {
            Some(list) => written.into_iter().filter(|path| !list.manifests.contains(path)).collect(),
            // Committed by a list we did not write: impossible, and nothing to be removed if it happens.
            None if table.metadata.snapshot_by_id(self.snapshot_id).is_some() => return,
            None => written,
        };
        let others = attempts.lists.iter().filter(|list| committed.is_none_or(|own| own.location != list.location));
        unused.extend(others.map(|list| list.location.clone()));
        let unused_files =
            self.added_paths().into_iter().filter(|path| committed.is_none_or(|list| !list.added.contains(*path)));
        unused.extend(unused_files.map(str::to_string));
        table.io.delete_all(unused).await;
    }

    async fn remove_everything(&self, attempts: &Attempts) {
        let mut paths = attempts.cache.written();
        paths.extend(attempts.lists.iter().map(|list| list.location.clone()));
        paths.extend(self.added_paths().into_iter().map(str::to_string));
        self.table.io.delete_all(paths).await;
    }
}

impl Attempts {
    /// The list that the committed snapshot names.
    fn committed_list(&self, table: &Table, snapshot_id: i64) -> Option<&AttemptedList> {
        let ManifestSource::List(location) = &table.metadata.snapshot_by_id(snapshot_id)?.manifests else {
            return None;
        };
        self.lists.iter().find(|list| list.location == *location)
    }

    fn committed(&self, table: Table, snapshot_id: i64) -> Committed {
        let gone = self.committed_list(&table, snapshot_id).map(|list| list.gone.clone()).unwrap_or_default();
        Committed { table, gone }
    }
}

fn unknown_outcome(table: &Table, snapshot_id: i64) -> Error {
    Error::commit_unknown(format!(
        "nobody can say whether snapshot {snapshot_id} was committed; look for it in the table's snapshots before running the statement again; no file was removed"
    ))
    .with_context("table", table.ident.to_string())
    .with_context("snapshot", snapshot_id.to_string())
}

/// Up to a tenth longer, so that two processes do not meet again and again.
pub(super) fn jittered(wait: Duration, env: &Env) -> Duration {
    let tenths = (env.uuid().as_u128() % 100) as u32;
    wait + wait / 1000 * tenths
}

/// The wait before retry number `attempt` (from 1): doubled each time, within bounds.
pub(super) fn backoff(retry: &RetryProperties, attempt: u32) -> Duration {
    let factor = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    retry.min_wait.saturating_mul(factor).min(retry.max_wait)
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
