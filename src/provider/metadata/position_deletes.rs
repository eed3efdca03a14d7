//! The deleted positions that position delete files and deletion vectors hold.

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Field};
use futures::{StreamExt, TryStreamExt, stream};

use super::columns::Columns;
use super::files::entries_in;
use super::{Listing, MetadataRows};
use crate::provider::from_datafusion;
use crate::provider::partition_struct::PartitionStruct;
use crate::scan::{FILE_PATH_ID, POS_ID, positions_in};
use crate::spec::{DataContent, DataFile, DeletionVector, FormatVersion, ManifestContent, ManifestEntry, Snapshot};
use crate::table::Table;
use crate::writer::arrow_schema;
use crate::{Error, Result};

/// Positions made into rows at a time.
const CHUNK: usize = 8192;

struct Deleted {
    data_file: Arc<str>,
    position: u64,
    delete_file: Arc<DataFile>,
}

/// Java: `PositionDeletesTable`. Vectors and files are read as they stand, whether or not they still apply to a data file.
///
/// # Errors
/// `Unsupported` for a column type that Arrow cannot carry; reading `row` fails with it where a file holds deleted rows
/// beside their positions.
pub(super) fn position_deletes(table: &Table, snapshot: Option<Arc<Snapshot>>) -> Result<Arc<dyn MetadataRows>> {
    let row_type = DataType::Struct(arrow_schema(table.metadata.current_schema()?)?.fields().clone());
    let mut columns = Columns::<Deleted>::new()
        .text("file_path", true, |d| Some(&d.data_file))
        .unsigned("pos", true, |d| Some(d.position))
        .column(Field::new("row", row_type.clone(), true), move |rows| match rows.iter().find(|d| d.holds_row()) {
            Some(deleted) => Err(Error::unsupported("reading the deleted rows that a position delete file holds")
                .with_context("file", &*deleted.delete_file.file_path)),
            None => Ok(new_null_array(&row_type, rows.len())),
        });
    if let Some(partition) = PartitionStruct::of(&table.metadata)? {
        let metadata = Arc::clone(&table.metadata);
        columns = columns.column(Field::new("partition", partition.data_type(), false), move |rows| {
            let values = |d: &Deleted| {
                let spec = metadata.spec_by_id(d.delete_file.spec_id);
                partition.values(&d.delete_file, spec.map(Arc::as_ref))
            };
            partition.array(&rows.iter().map(values).collect::<Vec<_>>()).map_err(from_datafusion)
        });
    }
    columns = columns
        .int("spec_id", true, |d| Some(d.delete_file.spec_id))
        .text("delete_file_path", true, |d| Some(&d.delete_file.file_path));
    if table.metadata.format_version >= FormatVersion::V3 {
        columns = columns.unsigned("content_offset", false, |d| d.delete_file.content_offset).unsigned(
            "content_size_in_bytes",
            false,
            |d| d.delete_file.content_size_in_bytes,
        );
    }
    let (table, snapshots) = (table.clone(), snapshot.into_iter().collect::<Vec<_>>());
    Ok(Listing::rows(columns, move || {
        let entries = entries_in(table.clone(), snapshots.clone(), |manifest| {
            manifest.content == ManifestContent::Deletes && manifest.has_live_files()
        });
        let files = entries.map_ok(|entries| {
            let positional = |e: &&ManifestEntry| e.is_live() && e.data_file.content == DataContent::PositionDeletes;
            let files: Vec<_> = entries.iter().filter(positional).map(|e| Ok(Arc::clone(&e.data_file))).collect();
            stream::iter(files)
        });
        let io = table.io.clone();
        let chunks = files.try_flatten().and_then(move |delete_file| {
            let io = io.clone();
            async move {
                let positions = positions_in(&io, &delete_file).await?;
                Ok(stream::iter(chunks_of(delete_file, positions).map(Ok)))
            }
        });
        chunks.try_flatten().boxed()
    }))
}

/// The rows of one delete file, by data file and position.
fn chunks_of(
    delete_file: Arc<DataFile>,
    positions: Vec<(Arc<str>, Arc<DeletionVector>)>,
) -> impl Iterator<Item = Vec<Deleted>> + Send {
    let mut rows = positions.into_iter().flat_map(move |(data_file, vector)| {
        let delete_file = Arc::clone(&delete_file);
        vector.to_row_ranges().into_iter().flatten().map(move |position| Deleted {
            data_file: Arc::clone(&data_file),
            position,
            delete_file: Arc::clone(&delete_file),
        })
    });
    std::iter::from_fn(move || {
        let chunk: Vec<Deleted> = rows.by_ref().take(CHUNK).collect();
        (!chunk.is_empty()).then_some(chunk)
    })
}

impl Deleted {
    /// Whether the delete file has columns beside path and position.
    fn holds_row(&self) -> bool {
        let file = &self.delete_file;
        let ids = file.column_sizes.iter().chain(file.value_counts.iter()).map(|(id, _)| id);
        ids.into_iter().any(|id| id != FILE_PATH_ID && id != POS_ID)
    }
}
