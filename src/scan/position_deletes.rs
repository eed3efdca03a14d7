//! Position delete files in Parquet and Avro.
//!
//! Implements the spec section "Position Delete Files". Invariant: columns are found by field id, by name only in a file
//! without ids; a position is taken for exactly the path it stands beside.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int32Type, Int64Type, Schema};
use bytes::Bytes;
use futures::TryStreamExt;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::schema::types::SchemaDescriptor;

use super::footer::ParquetFile;
use super::task::{FILE_PATH_ID, POS_ID};
use crate::columns::{AvroFile, FIELD_ID_KEY};
use crate::io::FileIo;
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::{DataFile, FileFormat};
use crate::{Error, Result};

/// Rows decoded at a time.
const BATCH_SIZE: usize = 16 * 1024;

/// Deleted positions by data file path.
pub(crate) type PositionsByPath = HashMap<Arc<str>, Arc<DeletionVector>>;

/// Reads one position delete file, in one pass. Positions of paths outside `wanted`, if given, are dropped.
///
/// # Errors
/// `DataInvalid`, naming the file, for a file without the two columns, a null in them, or a negative position; storage
/// errors.
pub(crate) async fn read_position_deletes(
    io: &FileIo,
    file: &DataFile,
    wanted: Option<&HashSet<Arc<str>>>,
) -> Result<PositionsByPath> {
    let named = |e: Error| e.with_context("position delete file", &*file.file_path);
    let mut positions = Collector { wanted, by_path: HashMap::new() };
    match file.file_format {
        FileFormat::Parquet => read_parquet(io, file, &mut positions).await?,
        FileFormat::Avro => read_avro(io.read(&file.file_path).await?, &mut positions).map_err(named)?,
        FileFormat::Orc | FileFormat::Puffin => {
            let message = format!("reading position delete files in format {}", file.file_format.name());
            return Err(named(Error::unsupported(message)));
        }
    }
    Ok(positions.by_path.into_iter().map(|(path, vector)| (path, Arc::new(vector))).collect())
}

async fn read_parquet(io: &FileIo, file: &DataFile, positions: &mut Collector<'_>) -> Result<()> {
    let parquet = ParquetFile::new(io, file);
    let named = |e: Error| e.with_context("position delete file", &*file.file_path);
    // Types come from the Parquet schema alone: an embedded Arrow schema may spell the strings in several ways.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load_async(&mut parquet.clone(), options).await;
    let metadata = metadata.map_err(|e| parquet.error(e))?;
    let path_column = leaf(metadata.parquet_schema(), FILE_PATH_ID, "file_path").map_err(named)?;
    let pos_column = leaf(metadata.parquet_schema(), POS_ID, "pos").map_err(named)?;
    let metadata = paths_as_dictionary(metadata, path_column).map_err(|e| parquet.error(e))?;
    let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(parquet.clone(), metadata);
    let mask = ProjectionMask::leaves(builder.parquet_schema(), [path_column, pos_column]);
    let stream = builder.with_projection(mask).with_batch_size(BATCH_SIZE).build();
    let mut stream = stream.map_err(|e| parquet.error(e))?;
    while let Some(batch) = stream.try_next().await.map_err(|e| parquet.error(e))? {
        // The batch has both columns in file order.
        let (path, pos) = if path_column < pos_column { (0, 1) } else { (1, 0) };
        positions.add(&batch, path, pos).map_err(named)?;
    }
    Ok(())
}

fn read_avro(bytes: Bytes, positions: &mut Collector<'_>) -> Result<()> {
    let file = AvroFile::open(bytes)?;
    let fields = file.schema().fields();
    let id_of = |field: &Field| field.metadata().get(FIELD_ID_KEY)?.parse::<i32>().ok();
    let has_ids = fields.iter().any(|f| id_of(f).is_some());
    let column = |id: i32, name: &str| {
        let found = fields.iter().position(|f| if has_ids { id_of(f) == Some(id) } else { f.name() == name });
        found.ok_or_else(|| missing(id, name))
    };
    let (path, pos) = (column(FILE_PATH_ID, "file_path")?, column(POS_ID, "pos")?);
    let wanted = [path.min(pos), path.max(pos)];
    file.read(&wanted, BATCH_SIZE, |batch| {
        let (path, pos) = if path < pos { (0, 1) } else { (1, 0) };
        positions.add(&batch, path, pos).map(ControlFlow::Continue)
    })
}

fn missing(field_id: i32, name: &str) -> Error {
    Error::data_invalid(format!("position delete file without column {name} (field id {field_id})"))
}

/// Has a path column of strings read as a dictionary: a path is repeated for each of its rows, and where the file has a
/// dictionary, rows are then told apart by their keys.
fn paths_as_dictionary(metadata: ArrowReaderMetadata, leaf: usize) -> Result<ArrowReaderMetadata, ParquetError> {
    let column = metadata.parquet_schema().get_column_root_idx(leaf);
    let schema = metadata.schema();
    let of_strings = |(index, field): (usize, &FieldRef)| index == column && field.data_type() == &DataType::Utf8;
    if !schema.fields().iter().enumerate().any(of_strings) {
        return Ok(metadata);
    }
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = schema.fields().iter().enumerate().map(|(index, field)| match index == column {
        true => Arc::new(Field::clone(field).with_data_type(dictionary.clone())),
        false => Arc::clone(field),
    });
    let schema = Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

/// Index of the top-level leaf column of a field id; of a name when no top-level column has a field id.
fn leaf(schema: &SchemaDescriptor, field_id: i32, name: &str) -> Result<usize> {
    let top_level = || schema.columns().iter().enumerate().filter(|(_, column)| column.path().parts().len() == 1);
    let id_of = |index: usize| {
        let info = schema.column(index).self_type().get_basic_info().clone();
        info.has_id().then(|| info.id())
    };
    let by_id = top_level().find(|(index, _)| id_of(*index) == Some(field_id));
    let has_ids = top_level().any(|(index, _)| id_of(index).is_some());
    let by_name = || top_level().filter(|_| !has_ids).find(|(_, column)| column.name() == name);
    by_id.or_else(by_name).map(|(index, _)| index).ok_or_else(|| missing(field_id, name))
}

fn as_type(array: &ArrayRef, name: &str, data_type: &DataType) -> Result<ArrayRef> {
    cast(array, data_type)
        .map_err(|e| Error::data_invalid(format!("column {name} is not of type {data_type}")).with_source(e))
}

fn without_nulls(array: &ArrayRef, name: &str) -> Result<ArrayRef> {
    match array.null_count() {
        0 => Ok(Arc::clone(array)),
        _ => Err(Error::data_invalid(format!("null in column {name}"))),
    }
}

struct Collector<'a> {
    wanted: Option<&'a HashSet<Arc<str>>>,
    by_path: HashMap<Arc<str>, DeletionVector>,
}

impl Collector<'_> {
    fn add(&mut self, batch: &RecordBatch, path: usize, pos: usize) -> Result<()> {
        let positions = without_nulls(&as_type(batch.column(pos), "pos", &DataType::Int64)?, "pos")?;
        let positions = positions.as_primitive::<Int64Type>().values();
        let paths = without_nulls(batch.column(path), "file_path")?;
        if let Some(paths) = paths.as_dictionary_opt::<Int32Type>()
            && let Some(values) = paths.values().as_string_opt::<i32>()
        {
            let keys = paths.keys().values();
            return self.add_runs(
                positions,
                |row, other| keys.get(row) == keys.get(other),
                |row| {
                    let key = keys.get(row).and_then(|key| usize::try_from(*key).ok());
                    key.filter(|key| *key < values.len()).map(|key| values.value(key))
                },
            );
        }
        let paths = as_type(&paths, "file_path", &DataType::Utf8)?;
        let paths = paths.as_string::<i32>();
        self.add_runs(positions, |row, other| paths.value(row) == paths.value(other), |row| Some(paths.value(row)))
    }

    /// Adds each row's position. Rows are sorted by path: one look-up serves a run of equal paths.
    fn add_runs<'p>(
        &mut self,
        positions: &[i64],
        same_path: impl Fn(usize, usize) -> bool,
        path_of: impl Fn(usize) -> Option<&'p str>,
    ) -> Result<()> {
        let mut start = 0;
        while start < positions.len() {
            let path = path_of(start).ok_or_else(|| Error::data_invalid("file_path beyond its dictionary"))?;
            let end = (start + 1..positions.len()).find(|row| !same_path(start, *row)).unwrap_or(positions.len());
            if let Some(vector) = self.vector(path) {
                for &position in positions.get(start..end).unwrap_or_default() {
                    let position = u64::try_from(position)
                        .map_err(|_| Error::data_invalid(format!("negative position {position} of {path}")))?;
                    vector.insert(position);
                }
            }
            start = end;
        }
        Ok(())
    }

    fn vector(&mut self, path: &str) -> Option<&mut DeletionVector> {
        if !self.by_path.contains_key(path) {
            let key = match self.wanted {
                Some(wanted) => Arc::clone(wanted.get(path)?),
                None => path.into(),
            };
            self.by_path.insert(key, DeletionVector::default());
        }
        self.by_path.get_mut(path)
    }
}
