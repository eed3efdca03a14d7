//! From the head's manifests to the new snapshot's: filter, add, merge.
//!
//! Sources: Java `ManifestFilterManager`, `ManifestMergeManager`, `MergingSnapshotProducer.apply`. Invariants: a manifest
//! without a removed file is carried by reference; in a rewritten one removed files are DELETED by this snapshot, the rest
//! EXISTING with explicit sequence numbers and row ids, and older DELETED entries are dropped; a removed file that no
//! manifest holds is a conflict.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::scan::{entries_of, position_delete_target};
use crate::spec::{
    DataFile, EntryStatus, FormatVersion, Literal, ManifestContent, ManifestEntry, ManifestFile, ManifestWriter,
    PartitionTuple, PrimitiveType, TableMetadata,
};
use crate::table::Table;

use super::{DeleteIdentity, Removal, SnapshotUpdate, delete_identity};

/// Manifests fetched or written at a time.
const CONCURRENCY: usize = 16;

/// What attempts of one commit share, and every manifest they wrote.
///
/// A manifest depends on the format version, and a copy of one on the row ids that the list gives the original: another
/// commit may have upgraded the table, or been the first to give its old files row ids, between two attempts.
#[derive(Debug, Default)]
pub(super) struct ManifestCache {
    version: Option<FormatVersion>,
    added_data: Option<Vec<ManifestFile>>,
    added_deletes: Option<(Vec<DeleteIdentity>, Vec<ManifestFile>)>,
    filtered: HashMap<ManifestKey, Filtered>,
    merged: HashMap<Vec<ManifestKey>, ManifestFile>,
    /// Entries of manifests written here: before they are committed they have no sequence number and no row ids to
    /// inherit, so they cannot be read back.
    entries: HashMap<String, Arc<Vec<ManifestEntry>>>,
    written: Mutex<Vec<String>>,
}

/// What the entries of a manifest depend on: its path and the first row id that the list gives it.
type ManifestKey = (String, Option<u64>);

fn key_of(manifest: &ManifestFile) -> ManifestKey {
    (manifest.manifest_path.clone(), manifest.first_row_id)
}

impl ManifestCache {
    /// Paths of all manifests written, or tried to.
    pub(super) fn written(&self) -> Vec<String> {
        self.written.lock().clone()
    }

    /// Forgets what was made for another format version.
    fn prepare_for(&mut self, version: FormatVersion) {
        if self.version.replace(version).is_some_and(|before| before != version) {
            let written = Mutex::new(self.written());
            *self = Self { version: Some(version), written, ..Self::default() };
        }
    }
}

#[derive(Debug, Clone)]
struct Filtered {
    manifest: ManifestFile,
    entries: Arc<Vec<ManifestEntry>>,
    removed: Vec<Arc<DataFile>>,
}

/// The manifests of the new snapshot, and the files that this attempt adds and removes.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) manifests: Vec<ManifestFile>,
    pub(super) removed: Vec<Arc<DataFile>>,
    pub(super) added: Vec<Arc<DataFile>>,
}

/// The update's deletes without those that address only a data file in `gone`, which a concurrent DELETE removed.
pub(super) fn live_deletes<'a>(update: &'a SnapshotUpdate, gone: &HashSet<Arc<str>>) -> Vec<&'a DataFile> {
    let live = |file: &&DataFile| position_delete_target(file).is_none_or(|path| !gone.contains(path));
    update.added_deletes.iter().filter(live).collect()
}

/// Makes the manifests of the new snapshot on top of `head`'s, with `live_deletes` of the update's deletes.
pub(super) async fn apply(
    update: &SnapshotUpdate,
    table: &Table,
    head: &[ManifestFile],
    live_deletes: &[&DataFile],
    cache: &mut ManifestCache,
) -> Result<Applied> {
    cache.prepare_for(table.metadata.format_version);
    let filtered = filter_all(update, table, head, cache).await?;
    let removed: Vec<Arc<DataFile>> = filtered.iter().flat_map(|(_, removed)| removed.iter().cloned()).collect();
    require_all_found(update, &removed)?;
    require_known_row_ids(update, &removed)?;

    if cache.added_data.is_none() {
        let files: Vec<&DataFile> = update.added_data.iter().collect();
        cache.added_data = Some(write_added(update, table, ManifestContent::Data, &files, cache).await?);
    }
    let identities: Vec<DeleteIdentity> = live_deletes.iter().map(|file| delete_identity(file)).collect();
    if cache.added_deletes.as_ref().is_none_or(|(written, _)| *written != identities) {
        let manifests = write_added(update, table, ManifestContent::Deletes, live_deletes, cache).await?;
        cache.added_deletes = Some((identities, manifests));
    }

    let filtered = with_counts(table, filtered).await?;
    let mut data = cache.added_data.clone().unwrap_or_default();
    let mut deletes = cache.added_deletes.clone().map(|(_, manifests)| manifests).unwrap_or_default();
    for (manifest, _) in filtered {
        if manifest.has_live_files() || manifest.added_snapshot_id == update.snapshot_id {
            match manifest.content {
                ManifestContent::Data => data.push(manifest),
                ManifestContent::Deletes => deletes.push(manifest),
            }
        }
    }
    let properties = table.properties()?;
    if properties.manifest_merge_enabled {
        let (target, min_count) = (properties.manifest_target_size_bytes, properties.manifest_min_merge_count);
        data = merge(update, table, data, target, min_count, cache).await?;
        deletes = merge(update, table, deletes, target, min_count, cache).await?;
    }
    data.extend(deletes);
    let live_deletes = live_deletes.iter().copied();
    let added = update.added_data.iter().chain(live_deletes).map(|file| Arc::new(file.clone())).collect();
    Ok(Applied { manifests: data, removed, added })
}

/// Which manifests can hold a file that goes.
struct Targets<'a> {
    update: &'a SnapshotUpdate,
    data: HashMap<i32, HashSet<PartitionTuple>>,
    deletes: HashMap<i32, HashSet<PartitionTuple>>,
}

impl<'a> Targets<'a> {
    fn new(update: &'a SnapshotUpdate) -> Self {
        let mut data: HashMap<i32, HashSet<PartitionTuple>> = HashMap::new();
        for (file, _) in update.removed_data.values() {
            data.entry(file.spec_id).or_default().insert(file.partition.clone());
        }
        // A vector lies in the partition of its data file, so the hunt for dangling ones looks there as well.
        let mut deletes = data.clone();
        for file in update.removed_deletes.values() {
            deletes.entry(file.spec_id).or_default().insert(file.partition.clone());
        }
        Self { update, data, deletes }
    }

    fn may_hold(&self, manifest: &ManifestFile, metadata: &TableMetadata) -> bool {
        if !manifest.has_live_files() {
            return false;
        }
        let tuples = match manifest.content {
            ManifestContent::Data => self.data.get(&manifest.partition_spec_id),
            ManifestContent::Deletes => self.deletes.get(&manifest.partition_spec_id),
        };
        let Some(tuples) = tuples else { return false };
        let types = partition_types(metadata, manifest.partition_spec_id);
        tuples.iter().any(|tuple| may_contain(manifest, tuple, &types))
    }

    fn removes(&self, entry: &ManifestEntry, content: ManifestContent) -> bool {
        let file = &entry.data_file;
        match content {
            ManifestContent::Data => self.update.removed_data.contains_key(&file.file_path),
            ManifestContent::Deletes => {
                self.update.removed_deletes.contains_key(&delete_identity(file))
                    || file.is_deletion_vector()
                        && file
                            .referenced_data_file
                            .as_ref()
                            .is_some_and(|path| self.update.removed_data.contains_key(path))
            }
        }
    }
}

fn partition_types(metadata: &TableMetadata, spec_id: i32) -> Vec<Option<PrimitiveType>> {
    let Some(spec) = metadata.spec_by_id(spec_id) else { return Vec::new() };
    spec.partition_type(metadata).fields.iter().map(|field| field.field_type.as_primitive().cloned()).collect()
}

/// Whether the manifest's partition summary leaves room for `tuple`; doubt counts as yes.
fn may_contain(manifest: &ManifestFile, tuple: &PartitionTuple, types: &[Option<PrimitiveType>]) -> bool {
    let Some(summaries) = &manifest.partitions else { return true };
    if summaries.len() != tuple.0.len() || types.len() != tuple.0.len() {
        return true;
    }
    tuple.0.iter().zip(summaries).zip(types).all(|((value, summary), field_type)| {
        let Some(value) = value else { return summary.contains_null };
        if value.is_nan() {
            return summary.contains_nan != Some(false);
        }
        let (Some(field_type), Some(lower), Some(upper)) = (field_type, &summary.lower_bound, &summary.upper_bound)
        else {
            return true;
        };
        let outside = |bound: &[u8], beyond: std::cmp::Ordering| {
            Literal::from_bytes(field_type, bound).ok().and_then(|bound| value.compare(&bound)) == Some(beyond)
        };
        !outside(lower, std::cmp::Ordering::Less) && !outside(upper, std::cmp::Ordering::Greater)
    })
}

async fn filter_all(
    update: &SnapshotUpdate,
    table: &Table,
    head: &[ManifestFile],
    cache: &mut ManifestCache,
) -> Result<Vec<(ManifestFile, Vec<Arc<DataFile>>)>> {
    let targets = Targets::new(update);
    let (known, written) = (&cache.filtered, &cache.written);
    let results: Vec<Result<(ManifestFile, Option<Filtered>)>> = futures::stream::iter(head.to_vec())
        .map(|manifest| {
            let targets = &targets;
            async move {
                if let Some(filtered) = known.get(&key_of(&manifest)) {
                    let filtered = filtered.clone();
                    return Ok((manifest, Some(filtered)));
                }
                if !targets.may_hold(&manifest, &table.metadata) {
                    return Ok((manifest, None));
                }
                let filtered = filter_one(targets, table, &manifest, written).await?;
                Ok::<_, Error>((manifest, filtered))
            }
        })
        .buffered(CONCURRENCY)
        .collect()
        .await;
    // Every write has ended here, even when one failed, so that what they made can be removed.
    let mut out = Vec::with_capacity(results.len());
    for result in results {
        let (manifest, filtered) = result?;
        match filtered {
            None => out.push((manifest, Vec::new())),
            Some(filtered) => {
                out.push((filtered.manifest.clone(), filtered.removed.clone()));
                cache.entries.insert(filtered.manifest.manifest_path.clone(), Arc::clone(&filtered.entries));
                cache.filtered.insert(key_of(&manifest), filtered);
            }
        }
    }
    Ok(out)
}

async fn filter_one(
    targets: &Targets<'_>,
    table: &Table,
    manifest: &ManifestFile,
    written: &Mutex<Vec<String>>,
) -> Result<Option<Filtered>> {
    let entries = entries_of(table, manifest).await?;
    let removes = |entry: &ManifestEntry| entry.is_live() && targets.removes(entry, manifest.content);
    if !entries.iter().any(removes) {
        return Ok(None);
    }
    let mut removed = Vec::new();
    let kept = entries.iter().filter(|entry| entry.is_live()).map(|entry| {
        let mut entry = entry.clone();
        if targets.removes(&entry, manifest.content) {
            entry.status = EntryStatus::Deleted;
            entry.snapshot_id = Some(targets.update.snapshot_id);
            removed.push(entry.data_file.clone());
        } else {
            entry.status = EntryStatus::Existing;
        }
        entry
    });
    let entries = kept.collect();
    let (spec_id, content) = (manifest.partition_spec_id, manifest.content);
    let (manifest, entries) = write_manifest(targets.update, table, spec_id, content, entries, written).await?;
    Ok(Some(Filtered { manifest, entries, removed }))
}

/// Counts the entries of manifests whose counts an old list left out: from version 2 on a list must say them.
async fn with_counts(
    table: &Table,
    mut manifests: Vec<(ManifestFile, Vec<Arc<DataFile>>)>,
) -> Result<Vec<(ManifestFile, Vec<Arc<DataFile>>)>> {
    for (manifest, _) in &mut manifests {
        let files = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
        let rows = [manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count];
        if !files.contains(&None) && !rows.contains(&None) {
            continue;
        }
        let (mut files, mut rows) = ([0u32; 3], [0u64; 3]);
        for entry in entries_of(table, manifest).await?.iter() {
            let status = match entry.status {
                EntryStatus::Added => 0,
                EntryStatus::Existing => 1,
                EntryStatus::Deleted => 2,
            };
            files[status] = files[status].saturating_add(1);
            rows[status] = rows[status].saturating_add(entry.data_file.record_count);
        }
        let [added, existing, deleted] = files.map(Some);
        (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) =
            (added, existing, deleted);
        let [added, existing, deleted] = rows.map(Some);
        (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) =
            (added, existing, deleted);
    }
    Ok(manifests)
}

fn require_all_found(update: &SnapshotUpdate, removed: &[Arc<DataFile>]) -> Result<()> {
    let found: HashSet<DeleteIdentity> = removed.iter().map(|file| delete_identity(file)).collect();
    let data = update.removed_data.values().map(|(file, _)| file);
    match data.chain(update.removed_deletes.values()).find(|file| !found.contains(&delete_identity(file))) {
        None => Ok(()),
        Some(file) => {
            Err(Error::conflict("another commit removed a file that this statement removes; run the statement again")
                .with_context("file", &*file.file_path))
        }
    }
}

/// A rewritten file whose rows had no ids when it was read must not have got some since: the new files do not carry them.
/// The first commit after an upgrade to v3 gives ids to all old rows.
fn require_known_row_ids(update: &SnapshotUpdate, removed: &[Arc<DataFile>]) -> Result<()> {
    for now in removed {
        if let Some((read, Removal::Rewritten)) = update.removed_data.get(&now.file_path)
            && read.first_row_id != now.first_row_id
        {
            return Err(Error::conflict(
                "another commit gave row ids to a data file that this statement rewrites; run the statement again",
            )
            .with_context("file", &*now.file_path));
        }
    }
    Ok(())
}

/// Writes added files into new manifests, by spec, rolled at the target size.
async fn write_added(
    update: &SnapshotUpdate,
    table: &Table,
    content: ManifestContent,
    files: &[&DataFile],
    cache: &mut ManifestCache,
) -> Result<Vec<ManifestFile>> {
    let target = table.properties()?.manifest_target_size_bytes;
    let mut by_spec: Vec<(i32, Vec<&DataFile>)> = Vec::new();
    for file in files {
        match by_spec.iter_mut().find(|(spec_id, _)| *spec_id == file.spec_id) {
            Some((_, group)) => group.push(file),
            None => by_spec.push((file.spec_id, vec![file])),
        }
    }
    let mut manifests = Vec::new();
    for (spec_id, group) in by_spec {
        let mut rest = group.as_slice();
        while !rest.is_empty() {
            let (chunk, tail) = rest.split_at(entries_within(rest, target));
            rest = tail;
            let entries = chunk.iter().map(|file| ManifestEntry {
                status: EntryStatus::Added,
                snapshot_id: Some(update.snapshot_id),
                sequence_number: update.data_sequence_number.filter(|_| content == ManifestContent::Data),
                file_sequence_number: None,
                data_file: Arc::new((*file).clone()),
            });
            let entries = entries.collect();
            let (manifest, entries) = write_manifest(update, table, spec_id, content, entries, &cache.written).await?;
            cache.entries.insert(manifest.manifest_path.clone(), entries);
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

/// How many of the first files fill a manifest of `target` bytes, by a guess of their encoded size; at least one.
fn entries_within(files: &[&DataFile], target: u64) -> usize {
    let mut bytes = 0u64;
    for (index, file) in files.iter().enumerate() {
        let counts = file.value_counts.len() + file.null_value_counts.len() + file.column_sizes.len();
        let bounds: usize = file.lower_bounds.iter().chain(file.upper_bounds.iter()).map(|(_, b)| b.len() + 4).sum();
        // Deflate takes about two thirds of an entry.
        bytes += (64 + file.file_path.len() + counts * 6 + bounds) as u64 / 3;
        if bytes > target {
            return index.max(1);
        }
    }
    files.len()
}

async fn write_manifest(
    update: &SnapshotUpdate,
    table: &Table,
    spec_id: i32,
    content: ManifestContent,
    entries: Vec<ManifestEntry>,
    written: &Mutex<Vec<String>>,
) -> Result<(ManifestFile, Arc<Vec<ManifestEntry>>)> {
    let metadata = &table.metadata;
    let spec = metadata.spec_by_id(spec_id).ok_or_else(|| {
        Error::conflict(format!("the table has no partition spec {spec_id} any more; run the statement again"))
            .with_context("table", table.ident.to_string())
    })?;
    let partition_type = spec.partition_type(metadata);
    let mut writer = ManifestWriter::new(
        metadata.format_version,
        spec,
        &partition_type,
        metadata.current_schema()?,
        content,
        update.snapshot_id,
    );
    entries.iter().for_each(|entry| writer.add(entry.clone()));
    let path = table.new_metadata_file_location(&format!("{}-m0.avro", table.env.uuid()));
    let (bytes, manifest) = writer.finish(&path)?;
    // Noted first: a write that fails may still have made the file.
    written.lock().push(path.clone());
    table.io.write(&path, bytes.into()).await?;
    Ok((manifest, Arc::new(entries)))
}

/// Packs small manifests of one spec together, as Java's `ManifestMergeManager`: bins from the end of the list, so that the
/// newest manifests stay loose until there are `min_count` of them.
async fn merge(
    update: &SnapshotUpdate,
    table: &Table,
    manifests: Vec<ManifestFile>,
    target: u64,
    min_count: usize,
    cache: &mut ManifestCache,
) -> Result<Vec<ManifestFile>> {
    let Some(newest) = manifests.first().map(|manifest| manifest.manifest_path.clone()) else { return Ok(manifests) };
    let mut spec_ids: Vec<i32> = manifests.iter().map(|manifest| manifest.partition_spec_id).collect();
    spec_ids.sort_unstable_by(|a, b| b.cmp(a));
    spec_ids.dedup();
    let mut out = Vec::with_capacity(manifests.len());
    for spec_id in spec_ids {
        let group: Vec<&ManifestFile> =
            manifests.iter().filter(|manifest| manifest.partition_spec_id == spec_id).collect();
        for bin in bins_from_end(&group, target) {
            let holds_newest = bin.iter().any(|manifest| manifest.manifest_path == newest);
            if bin.len() == 1 || holds_newest && bin.len() < min_count {
                out.extend(bin.into_iter().cloned());
            } else {
                out.push(merge_bin(update, table, &bin, cache).await?);
            }
        }
    }
    Ok(out)
}

fn bins_from_end<'a>(group: &[&'a ManifestFile], target: u64) -> Vec<Vec<&'a ManifestFile>> {
    let mut bins: Vec<Vec<&ManifestFile>> = Vec::new();
    let mut size = 0u64;
    for manifest in group.iter().rev() {
        if bins.is_empty() || size.saturating_add(manifest.manifest_length) > target {
            bins.push(Vec::new());
            size = 0;
        }
        size = size.saturating_add(manifest.manifest_length);
        if let Some(bin) = bins.last_mut() {
            bin.push(manifest);
        }
    }
    for bin in &mut bins {
        bin.reverse();
    }
    bins.reverse();
    bins
}

async fn merge_bin(
    update: &SnapshotUpdate,
    table: &Table,
    bin: &[&ManifestFile],
    cache: &mut ManifestCache,
) -> Result<ManifestFile> {
    let key: Vec<ManifestKey> = bin.iter().map(|manifest| key_of(manifest)).collect();
    if let Some(merged) = cache.merged.get(&key) {
        return Ok(merged.clone());
    }
    let mut entries = Vec::new();
    for manifest in bin {
        let own = cache.entries.get(&manifest.manifest_path);
        let read = match own {
            Some(entries) => Arc::clone(entries),
            None => entries_of(table, manifest).await?,
        };
        for entry in read.iter() {
            let mut entry = entry.clone();
            let ours = entry.snapshot_id == Some(update.snapshot_id);
            match entry.status {
                EntryStatus::Deleted if !ours => continue,
                EntryStatus::Added if !ours => entry.status = EntryStatus::Existing,
                _ => {}
            }
            entries.push(entry);
        }
    }
    let Some(first) = bin.first() else { return Err(Error::internal("an empty bin of manifests")) };
    let (spec_id, content) = (first.partition_spec_id, first.content);
    let (merged, _) = write_manifest(update, table, spec_id, content, entries, &cache.written).await?;
    cache.merged.insert(key, merged.clone());
    Ok(merged)
}
