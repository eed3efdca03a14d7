//! From a snapshot and a row filter to the files to read.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::delete_index::DeleteFileIndex;
use super::manifests::{CONCURRENCY, entries_of, manifests_of, snapshot_of};
use super::spawn::spawned;
use super::task::{DeleteFile, FileScanTask, ScanPlan, ScanPlanMetrics};
use crate::expr::{Coverage, FileEvaluator, Predicate};
use crate::spec::{DataContent, DataFile, ManifestContent, ManifestEntry, ManifestFile};
use crate::table::Table;
use crate::{Error, Result};

/// Plans a scan of `snapshot_id` (`None`: the current snapshot) for the rows on which `predicate` is true.
///
/// A data file is left out only when it is proven that no row matches. Delete manifests and delete files are left out only
/// by their partition, under which the data files they apply to are left out as well; never by the filter on columns,
/// which the metrics of delete files do not describe.
///
/// # Errors
/// `NotFound` for an unknown snapshot, `DataInvalid` for metadata that breaks the specification, storage errors.
pub async fn plan_scan(table: &Table, snapshot_id: Option<i64>, predicate: &Predicate) -> Result<ScanPlan> {
    let Some(snapshot) = snapshot_of(table, snapshot_id)? else { return Ok(ScanPlan::default()) };
    let manifests = manifests_of(table, &snapshot).await?;
    let evaluator = Arc::new(FileEvaluator::new(predicate, &table.metadata));
    let mut metrics = ScanPlanMetrics { manifests_total: manifests.len() as u64, ..Default::default() };
    let mut selected = Vec::new();
    for manifest in manifests.iter().filter(|manifest| manifest.has_live_files()) {
        if evaluator.evaluate_manifest(manifest) == Coverage::None {
            let count = |n: Option<u32>| u64::from(n.unwrap_or(0));
            let files = count(manifest.added_files_count) + count(manifest.existing_files_count);
            metrics.count(manifest.content, files, files);
        } else {
            metrics.manifests_read += 1;
            selected.push(manifest.clone());
        }
    }
    let read = |manifest: ManifestFile| {
        let (table, evaluator) = (table.clone(), Arc::clone(&evaluator));
        spawned(async move { read_manifest(&table, &manifest, &evaluator).await })
    };
    let read: Vec<LiveFiles> = stream::iter(selected).map(read).buffered(CONCURRENCY).try_collect().await?;
    let (mut data, mut deletes) = (Vec::new(), Vec::new());
    for manifest in read {
        metrics.count(manifest.content, manifest.total, manifest.total - manifest.files.len() as u64);
        match manifest.content {
            ManifestContent::Data => data.extend(manifest.files),
            ManifestContent::Deletes => deletes.extend(manifest.files),
        }
    }
    let deletes = deletes.into_iter().map(|(file, sequence_number)| DeleteFile { file, sequence_number });
    let index = DeleteFileIndex::new(deletes, &table.metadata)?;
    let task = |(data_file, sequence_number): (Arc<DataFile>, i64)| {
        let deletes = index.for_data_file(&data_file, sequence_number)?;
        Ok(FileScanTask { data_file, sequence_number, deletes })
    };
    let tasks = data.into_iter().map(task).collect::<Result<_>>()?;
    Ok(ScanPlan { snapshot_id: Some(snapshot.snapshot_id), tasks, metrics })
}

/// Every live data and delete file of `snapshot_id` (`None`: the current snapshot), in manifest order.
///
/// # Errors
/// As [`plan_scan`].
pub async fn live_files(table: &Table, snapshot_id: Option<i64>) -> Result<Vec<ManifestEntry>> {
    let Some(snapshot) = snapshot_of(table, snapshot_id)? else { return Ok(Vec::new()) };
    let manifests = manifests_of(table, &snapshot).await?;
    let selected: Vec<_> = manifests.iter().filter(|manifest| manifest.has_live_files()).cloned().collect();
    let read = |manifest: ManifestFile| {
        let table = table.clone();
        spawned(async move { entries_of(&table, &manifest).await })
    };
    let read: Vec<_> = stream::iter(selected).map(read).buffered(CONCURRENCY).try_collect().await?;
    Ok(read.iter().flat_map(|entries| entries.iter()).filter(|entry| entry.is_live()).cloned().collect())
}

/// Live files of one manifest that may matter, with their data sequence numbers.
struct LiveFiles {
    content: ManifestContent,
    /// Live files, those included that do not matter.
    total: u64,
    files: Vec<(Arc<DataFile>, i64)>,
}

async fn read_manifest(table: &Table, manifest: &ManifestFile, evaluator: &FileEvaluator) -> Result<LiveFiles> {
    let entries = entries_of(table, manifest).await?;
    let invalid = |message: &str, file: &DataFile| {
        Err(Error::data_invalid(message)
            .with_context("manifest", manifest.manifest_path.as_str())
            .with_context("file", &*file.file_path))
    };
    let mut live = LiveFiles { content: manifest.content, total: 0, files: Vec::new() };
    for entry in entries.iter().filter(|entry| entry.is_live()) {
        let file = &entry.data_file;
        let Some(sequence_number) = entry.sequence_number else {
            return invalid("live entry without a sequence number", file);
        };
        live.total += 1;
        let coverage = match (manifest.content, file.content) {
            (ManifestContent::Data, DataContent::Data) => evaluator.evaluate(file),
            (ManifestContent::Data, _) => return invalid("delete file in a data manifest", file),
            (ManifestContent::Deletes, DataContent::Data) => return invalid("data file in a delete manifest", file),
            (ManifestContent::Deletes, _) => evaluator.evaluate_partition(&file.partition_key()),
        };
        if coverage != Coverage::None {
            live.files.push((Arc::clone(file), sequence_number));
        }
    }
    Ok(live)
}

impl ScanPlanMetrics {
    fn count(&mut self, content: ManifestContent, total: u64, pruned: u64) {
        let (all, left_out) = match content {
            ManifestContent::Data => (&mut self.data_files_total, &mut self.data_files_pruned),
            ManifestContent::Deletes => (&mut self.delete_files_total, &mut self.delete_files_pruned),
        };
        *all += total;
        *left_out += pruned;
    }
}
