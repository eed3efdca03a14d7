//! The partitions of a snapshot, with what they hold.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::datatypes::Field;
use futures::{StreamExt, TryStreamExt, stream};

use super::columns::Columns;
use super::files::entries_in;
use super::{Listing, MetadataRows};
use crate::Result;
use crate::provider::from_datafusion;
use crate::provider::partition_struct::PartitionStruct;
use crate::spec::{DataContent, DataFile, Literal, ManifestFile, Snapshot, TableMetadata};
use crate::table::Table;

#[derive(Default)]
struct Partition {
    values: Vec<Option<Literal>>,
    spec_id: i32,
    record_count: u64,
    file_count: i32,
    data_file_size: u64,
    position_delete_record_count: u64,
    position_delete_file_count: i32,
    equality_delete_record_count: u64,
    equality_delete_file_count: i32,
    /// Time and id of the snapshot that last changed it.
    last_updated: Option<(i64, i64)>,
}

/// Java: `PartitionsTable`. A table that was never partitioned has one row, without `partition` and `spec_id`.
pub(super) fn partitions(table: &Table, snapshot: Option<Arc<Snapshot>>) -> Result<Arc<dyn MetadataRows>> {
    let partition = PartitionStruct::of(&table.metadata)?.map(Arc::new);
    let mut columns = Columns::<Partition>::new();
    if let Some(partition) = &partition {
        let values = Arc::clone(partition);
        columns = columns
            .column(Field::new("partition", partition.data_type(), false), move |rows| {
                let rows: Vec<_> = rows.iter().map(|p: &Partition| p.values.clone()).collect();
                values.array(&rows).map_err(from_datafusion)
            })
            .int("spec_id", true, |p| Some(p.spec_id));
    }
    let columns = columns
        .unsigned("record_count", true, |p| Some(p.record_count))
        .int("file_count", true, |p| Some(p.file_count))
        .unsigned("total_data_file_size_in_bytes", true, |p| Some(p.data_file_size))
        .unsigned("position_delete_record_count", true, |p| Some(p.position_delete_record_count))
        .int("position_delete_file_count", true, |p| Some(p.position_delete_file_count))
        .unsigned("equality_delete_record_count", true, |p| Some(p.equality_delete_record_count))
        .int("equality_delete_file_count", true, |p| Some(p.equality_delete_file_count))
        .instant("last_updated_at", false, |p| p.last_updated.map(|(ms, _)| ms))
        .long("last_updated_snapshot_id", false, |p| p.last_updated.map(|(_, id)| id));
    let (table, snapshots) = (table.clone(), snapshot.into_iter().collect::<Vec<_>>());
    Ok(Listing::rows(columns, move || {
        let (table, snapshots, partition) = (table.clone(), snapshots.clone(), partition.clone());
        stream::once(async move { collect(&table, snapshots, partition.as_deref()).await }).boxed()
    }))
}

/// In the order in which the partitions are met.
async fn collect(
    table: &Table,
    snapshots: Vec<Arc<Snapshot>>,
    partition: Option<&PartitionStruct>,
) -> Result<Vec<Partition>> {
    let metadata = &table.metadata;
    let mut entries = std::pin::pin!(entries_in(table.clone(), snapshots, ManifestFile::has_live_files));
    let mut partitions: Vec<Partition> = Vec::new();
    let mut indexes: HashMap<(usize, Vec<Option<Literal>>), usize> = HashMap::new();
    while let Some(entries) = entries.try_next().await? {
        for entry in entries.iter().filter(|e| e.is_live()) {
            let file = &entry.data_file;
            let spec = metadata.spec_by_id(file.spec_id);
            let values = partition.map_or_else(Vec::new, |p| p.values(file, spec.map(Arc::as_ref)));
            // A field that a spec does not have is not the same as one that is null.
            let projected = spec.map_or(0, |spec| spec.fields.len());
            let index = match indexes.entry((projected, values)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    partitions.push(Partition { values: entry.key().1.clone(), ..Default::default() });
                    *entry.insert(partitions.len() - 1)
                }
            };
            if let Some(partition) = partitions.get_mut(index) {
                partition.add(file, entry.snapshot_id, metadata);
            }
        }
    }
    Ok(partitions)
}

impl Partition {
    fn add(&mut self, file: &DataFile, snapshot_id: Option<i64>, metadata: &TableMetadata) {
        if let Some(snapshot) = snapshot_id.and_then(|id| metadata.snapshot_by_id(id))
            && self.last_updated.is_none_or(|(ms, _)| snapshot.timestamp_ms > ms)
        {
            self.spec_id = file.spec_id;
            self.last_updated = Some((snapshot.timestamp_ms, snapshot.snapshot_id));
        }
        let (records, files) = match file.content {
            DataContent::Data => {
                self.data_file_size = self.data_file_size.saturating_add(file.file_size_in_bytes);
                (&mut self.record_count, &mut self.file_count)
            }
            DataContent::PositionDeletes => {
                (&mut self.position_delete_record_count, &mut self.position_delete_file_count)
            }
            DataContent::EqualityDeletes => {
                (&mut self.equality_delete_record_count, &mut self.equality_delete_file_count)
            }
        };
        *records = records.saturating_add(file.record_count);
        *files = files.saturating_add(1);
    }
}
