//! The metadata tables, `t$files` and the like: what a table's metadata, manifest lists and manifests say, as rows.
//!
//! Names, columns and types are those of Java's metadata tables as Spark shows them. Invariant: nothing is read before the
//! plan runs, and then only what the rows are made of (`snapshots` reads no file at all).

mod columns;
mod files;
mod log;
mod manifests;
mod metrics;
mod partitions;
mod position_deletes;

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use self::columns::Columns;
use crate::Error;
use crate::table::{Table, TableVersion};

/// Which metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetadataTable {
    /// The snapshots in the metadata.
    Snapshots,
    /// Which snapshot was current from when on.
    History,
    /// Branches and tags.
    Refs,
    /// The metadata files.
    MetadataLogEntries,
    /// The manifests of a snapshot.
    Manifests,
    /// The manifests of every snapshot, once for each.
    AllManifests,
    /// Live data and delete files of a snapshot.
    Files,
    /// Live data files of a snapshot.
    DataFiles,
    /// Live delete files of a snapshot.
    DeleteFiles,
    /// Live data files of every snapshot.
    AllDataFiles,
    /// Manifest entries of a snapshot, deleted ones included.
    Entries,
    /// Partitions of a snapshot.
    Partitions,
    /// Positions that position delete files and vectors of a snapshot hold.
    PositionDeletes,
}

const NAMES: [(MetadataTable, &str); 13] = [
    (MetadataTable::Snapshots, "snapshots"),
    (MetadataTable::History, "history"),
    (MetadataTable::Refs, "refs"),
    (MetadataTable::MetadataLogEntries, "metadata_log_entries"),
    (MetadataTable::Manifests, "manifests"),
    (MetadataTable::AllManifests, "all_manifests"),
    (MetadataTable::Files, "files"),
    (MetadataTable::DataFiles, "data_files"),
    (MetadataTable::DeleteFiles, "delete_files"),
    (MetadataTable::AllDataFiles, "all_data_files"),
    (MetadataTable::Entries, "entries"),
    (MetadataTable::Partitions, "partitions"),
    (MetadataTable::PositionDeletes, "position_deletes"),
];

impl MetadataTable {
    /// The metadata table of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, n)| *n == name).map(|(table, _)| *table)
    }

    /// Its name, as it stands behind the `$`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(table, _)| *table == self).map_or("", |(_, name)| name)
    }

    /// Whether it shows one snapshot, so that it can be asked for at another version.
    pub fn has_versions(self) -> bool {
        !matches!(
            self,
            Self::Snapshots
                | Self::History
                | Self::Refs
                | Self::MetadataLogEntries
                | Self::AllManifests
                | Self::AllDataFiles
        )
    }
}

/// Reads a metadata table.
#[derive(Clone)]
pub struct MetadataTableProvider {
    table: Table,
    kind: MetadataTable,
    version: TableVersion,
    rows: Arc<dyn MetadataRows>,
    schema: SchemaRef,
}

impl MetadataTableProvider {
    /// The metadata table `kind` of a version of `table`.
    ///
    /// # Errors
    /// `InvalidInput` for a version of a table that has none, `NotFound` for one that does not exist, `Unsupported` for a
    /// column type that Arrow cannot carry.
    pub fn new(table: Table, kind: MetadataTable, version: TableVersion) -> crate::Result<Self> {
        if version != TableVersion::Current && !kind.has_versions() {
            return Err(Error::invalid_input(format!(
                "{}${} is about all of the table: it has no versions",
                table.ident,
                kind.name()
            )));
        }
        let snapshot = table.at(&version)?.snapshot;
        let rows = match kind {
            MetadataTable::Snapshots => log::snapshots(&table),
            MetadataTable::History => log::history(&table),
            MetadataTable::Refs => log::refs(&table),
            MetadataTable::MetadataLogEntries => log::metadata_log_entries(&table),
            MetadataTable::Manifests => manifests::manifests(&table, snapshot),
            MetadataTable::AllManifests => manifests::all_manifests(&table),
            MetadataTable::Files
            | MetadataTable::DataFiles
            | MetadataTable::DeleteFiles
            | MetadataTable::AllDataFiles => files::files(&table, kind, snapshot)?,
            MetadataTable::Entries => files::entries(&table, snapshot)?,
            MetadataTable::Partitions => partitions::partitions(&table, snapshot)?,
            MetadataTable::PositionDeletes => position_deletes::position_deletes(&table, snapshot)?,
        };
        let schema = rows.schema();
        Ok(Self { table, kind, version, rows, schema })
    }

    /// The table it is about, as it was loaded.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The version read.
    pub fn version(&self) -> &TableVersion {
        &self.version
    }

    /// Which metadata table it is.
    pub fn kind(&self) -> MetadataTable {
        self.kind
    }

    /// This provider over `table`'s state, if it reads the current state of the same table as loaded at another moment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn pinned_to(&self, table: &Table) -> crate::Result<Option<Self>> {
        let same = self.table.ident == table.ident && self.table.metadata.table_uuid == table.metadata.table_uuid;
        if !same || !self.version.is_current() {
            return Ok(None);
        }
        self.renewed(table).map(Some)
    }

    /// The same metadata table and version of `table`, another state of the same table.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn renewed(&self, table: &Table) -> crate::Result<Self> {
        Self::new(table.clone(), self.kind, self.version.clone())
    }
}

impl fmt::Debug for MetadataTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataTableProvider")
            .field("table", &self.table.ident)
            .field("kind", &self.kind)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for MetadataTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&projection)?);
        let rows = Arc::clone(&self.rows);
        let part = Arc::new(MetadataStream { rows, schema: Arc::clone(&schema), projection: projection.into() });
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![part], None, [], false, limit)?))
    }
}

/// The rows of one metadata table, in one partition.
struct MetadataStream {
    rows: Arc<dyn MetadataRows>,
    schema: SchemaRef,
    projection: Arc<[usize]>,
}

impl fmt::Debug for MetadataStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataStream").field("columns", &self.schema.fields().len()).finish_non_exhaustive()
    }
}

impl PartitionStream for MetadataStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_size = ctx.session_config().batch_size();
        let batches = Arc::clone(&self.rows).read(Arc::clone(&self.projection), batch_size);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches.map_err(Into::into)))
    }
}

/// Columns and rows of a metadata table.
trait MetadataRows: Send + Sync {
    /// All columns.
    fn schema(&self) -> SchemaRef;

    /// The columns at `projection`, in batches of at most `batch_size` rows.
    fn read(
        self: Arc<Self>,
        projection: Arc<[usize]>,
        batch_size: usize,
    ) -> BoxStream<'static, crate::Result<RecordBatch>>;
}

/// Rows made from values of type `R`, which come in chunks.
struct Listing<R> {
    columns: Columns<R>,
    chunks: Box<dyn Fn() -> Chunks<R> + Send + Sync>,
}

/// Chunks of values.
type Chunks<R> = BoxStream<'static, crate::Result<Vec<R>>>;

impl<R: Send + Sync + 'static> Listing<R> {
    fn rows(columns: Columns<R>, chunks: impl Fn() -> Chunks<R> + Send + Sync + 'static) -> Arc<dyn MetadataRows> {
        Arc::new(Self { columns, chunks: Box::new(chunks) })
    }
}

impl<R: Send + Sync + 'static> MetadataRows for Listing<R> {
    fn schema(&self) -> SchemaRef {
        self.columns.schema()
    }

    fn read(
        self: Arc<Self>,
        projection: Arc<[usize]>,
        batch_size: usize,
    ) -> BoxStream<'static, crate::Result<RecordBatch>> {
        let chunks = (self.chunks)();
        let batch_size = batch_size.max(1);
        let batches = chunks.map_ok(move |chunk| {
            let (table, projection) = (Arc::clone(&self), Arc::clone(&projection));
            let batch = move |from: usize| {
                let rows = chunk.get(from..chunk.len().min(from.saturating_add(batch_size))).unwrap_or_default();
                (from < chunk.len()).then(|| (table.columns.batch(&projection, rows), from.saturating_add(batch_size)))
            };
            stream::unfold(0, move |from| std::future::ready(batch(from)))
        });
        batches.try_flatten().boxed()
    }
}

/// All values at once.
fn at_once<R: Send + 'static>(values: Vec<R>) -> Chunks<R> {
    stream::once(async move { Ok(values) }).boxed()
}
