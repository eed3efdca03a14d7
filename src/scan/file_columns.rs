//! Some columns of one data or delete file, as columns of the table.
//!
//! Invariant: columns are found by field id (spec section "Column Projection"); every batch says at which row of the file
//! it starts.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::TryStreamExt;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};

use super::footer::ParquetFile;
use crate::columns::{AvroFile, FileColumns};
use crate::io::FileIo;
use crate::spec::{DataFile, FileFormat, NestedField, TableMetadata};
use crate::{Error, Result};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 16 * 1024;

/// A column of the table to read: a column, or a field inside structs with its ancestors and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The top-level field, pruned to the one path.
    pub(crate) field: Arc<NestedField>,
    /// Field ids from the top-level field to the one wanted.
    pub(crate) path: Vec<i32>,
}

/// A file that is open.
pub(crate) struct OpenFile {
    content: Content,
    columns: FileColumns,
    targets: Arc<[Target]>,
    /// For each target, its place among the columns decoded; `None` when the file lacks it.
    sources: Vec<Option<usize>>,
    /// For each target, whether the file holds it.
    held: Vec<bool>,
    location: Arc<str>,
}

enum Content {
    Parquet { file: ParquetFile, metadata: ArrowReaderMetadata, mask: ProjectionMask },
    Avro { file: AvroFile, wanted: Vec<usize> },
}

/// A run of rows that can be read by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    index: usize,
    first_row: u64,
}

impl OpenFile {
    /// Opens `file` to read `targets`.
    ///
    /// # Errors
    /// `Unsupported` for a format other than Parquet and Avro, or a file without field ids in a table without name mapping;
    /// `DataInvalid` for a damaged file; storage errors.
    pub(crate) async fn open(
        io: &FileIo,
        metadata: &TableMetadata,
        file: &DataFile,
        targets: Arc<[Target]>,
    ) -> Result<Self> {
        match file.file_format {
            FileFormat::Parquet => {
                let parquet = ParquetFile::new(io, file);
                let footer = parquet.footer().await?;
                // Types come from the Parquet schema alone: an embedded Arrow schema may spell them in other ways.
                let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
                let reader = ArrowReaderMetadata::try_new(footer, options).map_err(|e| parquet.error(e))?;
                let schema = Arc::clone(reader.schema());
                let columns = FileColumns::new(metadata, file, &schema)?;
                let found = Found::new(&columns, &schema, &targets);
                let descriptor = reader.parquet_schema();
                let leaves =
                    (0..descriptor.num_columns()).filter(|i| found.holds(descriptor.column(*i).path().parts()));
                let mask = ProjectionMask::leaves(descriptor, leaves);
                let content = Content::Parquet { file: parquet, metadata: reader, mask };
                Ok(Self::new(content, columns, found, targets, file))
            }
            FileFormat::Avro => {
                let named = |e: Error| e.with_context("file", &*file.file_path);
                let avro = AvroFile::open(io.read(&file.file_path).await?).map_err(named)?;
                let schema = Arc::clone(avro.schema());
                let columns = FileColumns::new(metadata, file, &schema)?;
                let found = Found::new(&columns, &schema, &targets);
                let content = Content::Avro { file: avro, wanted: found.roots.clone() };
                Ok(Self::new(content, columns, found, targets, file))
            }
            FileFormat::Orc | FileFormat::Puffin => {
                Err(Error::unsupported(format!("reading files in format {}", file.file_format.name()))
                    .with_context("file", &*file.file_path))
            }
        }
    }

    fn new(content: Content, columns: FileColumns, found: Found, targets: Arc<[Target]>, file: &DataFile) -> Self {
        let held = found.paths.iter().zip(targets.iter());
        let held =
            held.map(|(path, target)| path.as_ref().is_some_and(|(_, n)| n.len() == target.path.len())).collect();
        let location = Arc::clone(&file.file_path);
        Self { content, columns, sources: found.sources(), held, targets, location }
    }

    /// Whether the file itself holds the target at this place.
    pub(crate) fn has(&self, target: usize) -> bool {
        self.held.get(target).copied().unwrap_or(false)
    }

    /// The parts of the file, in order.
    pub(crate) fn parts(&self) -> Vec<Part> {
        match &self.content {
            Content::Avro { .. } => vec![Part { index: 0, first_row: 0 }],
            Content::Parquet { metadata, .. } => {
                let mut first_row = 0;
                let groups = metadata.metadata().row_groups().iter().enumerate();
                groups
                    .map(|(index, group)| {
                        let part = Part { index, first_row };
                        first_row += u64::try_from(group.num_rows()).unwrap_or(0);
                        part
                    })
                    .collect()
            }
        }
    }

    /// Reads one part: passes on the position of each batch's first row, its rows, and the targets in their order.
    ///
    /// # Errors
    /// `DataInvalid`, naming the file, for damage or types that are not the table's; storage errors; those of `each`.
    pub(crate) async fn read(
        &self,
        part: Part,
        mut each: impl FnMut(u64, usize, Vec<ArrayRef>) -> Result<()> + Send,
    ) -> Result<()> {
        let mut row = part.first_row;
        let mut pass_on = |batch: &RecordBatch| {
            let arrays = self.arrays(batch)?;
            each(row, batch.num_rows(), arrays)?;
            row += batch.num_rows() as u64;
            Ok(())
        };
        match &self.content {
            Content::Parquet { file, metadata, mask } => {
                let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(file.clone(), metadata.clone());
                let stream = builder
                    .with_row_groups(vec![part.index])
                    .with_projection(mask.clone())
                    .with_batch_size(BATCH_ROWS)
                    .build();
                let mut stream = stream.map_err(|e| file.error(e))?;
                while let Some(batch) = stream.try_next().await.map_err(|e| file.error(e))? {
                    pass_on(&batch)?;
                }
                Ok(())
            }
            Content::Avro { file, wanted } => {
                file.read(wanted, BATCH_ROWS, |batch| pass_on(&batch).map(ControlFlow::Continue))
            }
        }
    }

    fn arrays(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let fields = batch.schema_ref().fields();
        let arrays = self.targets.iter().zip(&self.sources).map(|(target, source)| {
            let source = source.and_then(|i| Some((batch.columns().get(i)?, fields.get(i)?.as_ref())));
            let column = self.columns.column(source, &target.field, batch.num_rows());
            column.map_err(|e| e.with_context("file", &*self.location))
        });
        arrays.collect()
    }
}

/// The file's columns that hold the targets.
struct Found {
    /// Positions of the file's top-level columns to decode, ascending.
    roots: Vec<usize>,
    /// For each target, its top-level column and the names from there to the field.
    paths: Vec<Option<(usize, Vec<String>)>>,
}

impl Found {
    fn new(columns: &FileColumns, schema: &Schema, targets: &[Target]) -> Self {
        let paths: Vec<_> = targets
            .iter()
            .map(|target| {
                let id = *target.path.first()?;
                let mut fields = schema.fields().iter().enumerate();
                let (index, field) = fields.find(|(_, f)| columns.id_of(f, &[f.name()]) == Some(id))?;
                Some((index, names_of(columns, field, &target.path)))
            })
            .collect();
        let mut roots: Vec<usize> = paths.iter().flatten().map(|(root, _)| *root).collect();
        roots.sort_unstable();
        roots.dedup();
        Self { roots, paths }
    }

    fn sources(&self) -> Vec<Option<usize>> {
        let place = |root: usize| self.roots.iter().position(|r| *r == root);
        self.paths.iter().map(|path| path.as_ref().and_then(|(root, _)| place(*root))).collect()
    }

    /// Whether the leaf at this path belongs to a target: below it, or, where the file lacks the target itself, below the
    /// struct that should hold it.
    fn holds(&self, leaf: &[String]) -> bool {
        self.paths.iter().flatten().any(|(_, names)| leaf.starts_with(names))
    }
}

/// Names from `field` down along `path` (whose first id is the field's), as far as the file has them.
fn names_of(columns: &FileColumns, field: &Field, path: &[i32]) -> Vec<String> {
    let mut names = vec![field.name().clone()];
    let mut data_type = field.data_type();
    for id in path.iter().skip(1) {
        let DataType::Struct(children) = data_type else { break };
        let child = children.iter().find(|child| {
            let path: Vec<&str> = names.iter().map(String::as_str).chain([child.name().as_str()]).collect();
            columns.id_of(child, &path) == Some(*id)
        });
        let Some(child) = child else { break };
        names.push(child.name().clone());
        data_type = child.data_type();
    }
    names
}
