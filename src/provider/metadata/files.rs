//! Data and delete files: those of a snapshot, of every snapshot, and the manifest entries that name them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Field};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::columns::{Columns, list_type, lists, map_type, maps};
use super::metrics::readable_metrics;
use super::{Listing, MetadataRows, MetadataTable};
use crate::Result;
use crate::provider::from_datafusion;
use crate::provider::partition_struct::PartitionStruct;
use crate::scan::{CONCURRENCY, entries_of, manifests_of, spawned};
use crate::spec::{
    ColumnMap, DataContent, DataFile, EntryStatus, FileFormat, ManifestContent, ManifestEntry, ManifestFile, Snapshot,
};
use crate::table::Table;

/// Java: `FilesTable`, `DataFilesTable`, `DeleteFilesTable`, `AllDataFilesTable`.
pub(super) fn files(
    table: &Table,
    kind: MetadataTable,
    snapshot: Option<Arc<Snapshot>>,
) -> Result<Arc<dyn MetadataRows>> {
    let content = match kind {
        MetadataTable::DataFiles | MetadataTable::AllDataFiles => Some(ManifestContent::Data),
        MetadataTable::DeleteFiles => Some(ManifestContent::Deletes),
        _ => None,
    };
    let snapshots = match kind {
        MetadataTable::AllDataFiles => table.metadata.snapshots.clone(),
        _ => snapshot.into_iter().collect(),
    };
    let columns = file_columns(table)?;
    let columns = readable_metrics(columns, table.metadata.current_schema()?, |file: &Arc<DataFile>| file)?;
    let table = table.clone();
    Ok(Listing::rows(columns, move || {
        let wanted = move |m: &ManifestFile| m.has_live_files() && content.is_none_or(|content| m.content == content);
        let entries = entries_in(table.clone(), snapshots.clone(), wanted);
        let live = |entries: Arc<Vec<ManifestEntry>>| {
            entries.iter().filter(|e| e.is_live()).map(|e| Arc::clone(&e.data_file)).collect()
        };
        entries.map_ok(live).boxed()
    }))
}

/// Java: `ManifestEntriesTable`.
pub(super) fn entries(table: &Table, snapshot: Option<Arc<Snapshot>>) -> Result<Arc<dyn MetadataRows>> {
    let columns = Columns::<ManifestEntry>::new()
        .int("status", true, |e| {
            Some(match e.status {
                EntryStatus::Existing => 0,
                EntryStatus::Added => 1,
                EntryStatus::Deleted => 2,
            })
        })
        .long("snapshot_id", false, |e| e.snapshot_id)
        .long("sequence_number", false, |e| e.sequence_number)
        .long("file_sequence_number", false, |e| e.file_sequence_number)
        .structure("data_file", true, file_columns(table)?, |e| Arc::clone(&e.data_file));
    let columns = readable_metrics(columns, table.metadata.current_schema()?, |e: &ManifestEntry| &e.data_file)?;
    let (table, snapshots) = (table.clone(), snapshot.into_iter().collect::<Vec<_>>());
    Ok(Listing::rows(columns, move || {
        let entries = entries_in(table.clone(), snapshots.clone(), |_| true);
        entries.map_ok(|entries| entries.to_vec()).boxed()
    }))
}

/// The entries of each of the snapshots' manifests that are `wanted`, each manifest once.
pub(super) fn entries_in(
    table: Table,
    snapshots: Vec<Arc<Snapshot>>,
    wanted: impl Fn(&ManifestFile) -> bool + Send + 'static,
) -> impl Stream<Item = Result<Arc<Vec<ManifestEntry>>>> + Send + 'static {
    let of_table = table.clone();
    let lists = stream::iter(snapshots).map(move |snapshot| {
        let table = of_table.clone();
        async move { manifests_of(&table, &snapshot).await }
    });
    let mut seen = HashSet::new();
    let manifests = lists.buffered(CONCURRENCY).map_ok(move |list| {
        let new: Vec<ManifestFile> =
            list.iter().filter(|m| wanted(m) && seen.insert(m.manifest_path.clone())).cloned().collect();
        stream::iter(new.into_iter().map(Ok))
    });
    let read = move |manifest: ManifestFile| {
        let table = table.clone();
        Ok(spawned(async move { entries_of(&table, &manifest).await }))
    };
    manifests.try_flatten().and_then(move |manifest| std::future::ready(read(manifest))).try_buffered(CONCURRENCY)
}

/// The columns of Java's `DataFile`, in its order.
fn file_columns(table: &Table) -> Result<Columns<Arc<DataFile>>> {
    let columns = Columns::<Arc<DataFile>>::new()
        .int("content", false, |f| {
            Some(match f.content {
                DataContent::Data => 0,
                DataContent::PositionDeletes => 1,
                DataContent::EqualityDeletes => 2,
            })
        })
        .text("file_path", true, |f| Some(&f.file_path))
        .text("file_format", true, |f| {
            Some(match f.file_format {
                FileFormat::Parquet => "PARQUET",
                FileFormat::Avro => "AVRO",
                FileFormat::Orc => "ORC",
                FileFormat::Puffin => "PUFFIN",
            })
        })
        .int("spec_id", false, |f| Some(f.spec_id));
    let columns = match PartitionStruct::of(&table.metadata)? {
        None => columns,
        Some(partition) => {
            let metadata = Arc::clone(&table.metadata);
            columns.column(Field::new("partition", partition.data_type(), false), move |files| {
                let values = |f: &Arc<DataFile>| partition.values(f, metadata.spec_by_id(f.spec_id).map(Arc::as_ref));
                partition.array(&files.iter().map(values).collect::<Vec<_>>()).map_err(from_datafusion)
            })
        }
    };
    Ok(columns
        .unsigned("record_count", true, |f| Some(f.record_count))
        .unsigned("file_size_in_bytes", true, |f| Some(f.file_size_in_bytes))
        .column(counts("column_sizes"), |files| count_maps(files, |f| &f.column_sizes))
        .column(counts("value_counts"), |files| count_maps(files, |f| &f.value_counts))
        .column(counts("null_value_counts"), |files| count_maps(files, |f| &f.null_value_counts))
        .column(counts("nan_value_counts"), |files| count_maps(files, |f| &f.nan_value_counts))
        .column(bounds("lower_bounds"), |files| bound_maps(files, |f| &f.lower_bounds))
        .column(bounds("upper_bounds"), |files| bound_maps(files, |f| &f.upper_bounds))
        .bytes("key_metadata", |f| f.key_metadata.as_deref())
        .column(Field::new("split_offsets", list_type(DataType::Int64), true), |files| {
            let offsets: Int64Array = files.iter().flat_map(|f| &f.split_offsets).map(|v| Some(*v)).collect();
            lists(Arc::new(offsets), &lengths(files, |f| f.split_offsets.len()))
        })
        .column(Field::new("equality_ids", list_type(DataType::Int32), true), |files| {
            let ids: Int32Array = files.iter().flat_map(|f| &f.equality_ids).map(|v| Some(*v)).collect();
            lists(Arc::new(ids), &lengths(files, |f| f.equality_ids.len()))
        })
        .int("sort_order_id", false, |f| f.sort_order_id)
        .unsigned("first_row_id", false, |f| f.first_row_id)
        .text("referenced_data_file", false, |f| f.referenced_data_file.as_deref())
        .unsigned("content_offset", false, |f| f.content_offset)
        .unsigned("content_size_in_bytes", false, |f| f.content_size_in_bytes))
}

fn counts(name: &str) -> Field {
    Field::new(name, map_type(DataType::Int32, DataType::Int64), true)
}

fn bounds(name: &str) -> Field {
    Field::new(name, map_type(DataType::Int32, DataType::Binary), true)
}

/// A map without entries is one that the writer left out.
fn lengths(files: &[Arc<DataFile>], length: impl Fn(&DataFile) -> usize) -> Vec<Option<usize>> {
    files.iter().map(|f| Some(length(f)).filter(|n| *n > 0)).collect()
}

fn count_maps(files: &[Arc<DataFile>], get: fn(&DataFile) -> &ColumnMap<u64>) -> Result<ArrayRef> {
    let entries = || files.iter().flat_map(|f| get(f).iter());
    let keys: Int32Array = entries().map(|(id, _)| Some(id)).collect();
    let values: Int64Array = entries().map(|(_, n)| Some(i64::try_from(*n).unwrap_or(i64::MAX))).collect();
    maps(Arc::new(keys), Arc::new(values), &lengths(files, |f| get(f).len()))
}

fn bound_maps(files: &[Arc<DataFile>], get: fn(&DataFile) -> &ColumnMap<Box<[u8]>>) -> Result<ArrayRef> {
    let entries = || files.iter().flat_map(|f| get(f).iter());
    let keys: Int32Array = entries().map(|(id, _)| Some(id)).collect();
    let values: BinaryArray = entries().map(|(_, bytes)| Some(bytes.as_ref())).collect();
    maps(Arc::new(keys), Arc::new(values), &lengths(files, |f| get(f).len()))
}
