//! Rows by partition.
//!
//! Rows gather until there are enough of them for every partition to get a sizeable share, then each partition's rows are
//! copied out once, wherever in the gathered batches they lie. Invariant: the partition of a row is the one
//! [`Transform::apply`](crate::spec::Transform::apply) gives.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::row::{RowConverter, SortField};

use super::transform::{column_at, literal_at, transform_column};
use crate::columns::arrow_type;
use crate::spec::{PartitionSpec, PartitionTuple, PrimitiveType, Schema, Transform, Type};
use crate::{Error, Result};

/// Rows gathered before they are shared out.
const GATHER_ROWS: usize = 64 * 1024;
/// Bytes gathered before they are shared out.
const GATHER_BYTES: usize = 32 << 20;
/// Runs of one partition at least this long on average go on as slices, without a copy.
const SLICE_ROWS: usize = 256;

/// Index of a partition in the order in which it was first met.
pub(crate) type PartitionIndex = usize;

/// Splits batches of a table's rows by partition.
pub(crate) struct PartitionFanout {
    columns: Vec<PartitionColumn>,
    converter: RowConverter,
    by_key: HashMap<Box<[u8]>, PartitionIndex>,
    by_tuple: HashMap<PartitionTuple, PartitionIndex>,
    tuples: Vec<PartitionTuple>,
    gathered: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

struct PartitionColumn {
    /// Index of the source's column, then of the field in each struct.
    path: Vec<usize>,
    source: PrimitiveType,
    transform: Transform,
    result: PrimitiveType,
}

impl PartitionFanout {
    /// Splits rows of `schema` by `spec`.
    ///
    /// # Errors
    /// `InvalidInput` when a source column is gone, lies in a list or map, or has a type its transform does not take;
    /// `Unsupported` for an unknown transform.
    pub(crate) fn new(spec: &PartitionSpec, schema: &Schema) -> Result<Self> {
        let columns = spec.fields.iter().map(|field| {
            let wrong = |what: &str| {
                Error::invalid_input(format!("partition field {:?} cannot be written: {what}", field.name))
            };
            if let Transform::Unknown(name) = &field.transform {
                return Err(Error::unsupported(format!("writing under the unknown partition transform {name:?}")));
            }
            let source = schema.field_by_id(field.source_id);
            if source.is_none() && field.transform == Transform::Void {
                let (source, result) = (PrimitiveType::Unknown, PrimitiveType::Unknown);
                return Ok(PartitionColumn { path: Vec::new(), source, transform: Transform::Void, result });
            }
            let source = source.ok_or_else(|| wrong("its source column is not in the schema"))?;
            let Type::Primitive(primitive) = &source.field_type else {
                return Err(wrong("its source column is not of a primitive type"));
            };
            let path = column_path(schema, field.source_id).ok_or_else(|| wrong("its source lies in a list or map"))?;
            let result = field
                .transform
                .result_type(primitive)
                .ok_or_else(|| wrong("its transform does not take the source's type"))?;
            Ok(PartitionColumn { path, source: primitive.clone(), transform: field.transform.clone(), result })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let fields = columns
            .iter()
            .map(|c| Ok(SortField::new(arrow_type(&Type::Primitive(c.result.clone()))?)))
            .collect::<Result<Vec<_>>>()?;
        let converter = RowConverter::new(fields).map_err(internal)?;
        Ok(Self {
            columns,
            converter,
            by_key: HashMap::new(),
            by_tuple: HashMap::new(),
            tuples: Vec::new(),
            gathered: Vec::new(),
            rows: 0,
            bytes: 0,
        })
    }

    /// The partition's values.
    pub(crate) fn tuple(&self, index: PartitionIndex) -> PartitionTuple {
        self.tuples.get(index).cloned().unwrap_or_default()
    }

    /// Takes rows in; whether enough have gathered to [`share`](Self::share) them out.
    pub(crate) fn gather(&mut self, batch: RecordBatch) -> bool {
        self.rows += batch.num_rows();
        self.bytes += batch.columns().iter().map(slice_bytes).sum::<usize>();
        self.gathered.push(batch);
        self.rows >= GATHER_ROWS || self.bytes >= GATHER_BYTES
    }

    /// Bytes gathered.
    pub(crate) fn memory(&self) -> usize {
        self.bytes
    }

    /// The gathered rows by partition, those of one partition in the order they came.
    pub(crate) fn share(&mut self) -> Result<Vec<(PartitionIndex, Vec<RecordBatch>)>> {
        let batches = std::mem::take(&mut self.gathered);
        (self.rows, self.bytes) = (0, 0);
        let mut runs: HashMap<PartitionIndex, Vec<Run>> = HashMap::new();
        let mut order = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            self.runs(index, batch, &mut |partition, run| {
                let found = runs.entry(partition).or_default();
                if found.is_empty() {
                    order.push(partition);
                }
                found.push(run);
            })?;
        }
        let references: Vec<&RecordBatch> = batches.iter().collect();
        let mut shares = Vec::with_capacity(order.len());
        for partition in order {
            let runs = runs.remove(&partition).unwrap_or_default();
            let rows: usize = runs.iter().map(|r| r.rows).sum();
            let share = if runs.len() == 1 || rows / runs.len().max(1) >= SLICE_ROWS {
                runs.iter().filter_map(|r| Some(batches.get(r.batch)?.slice(r.start, r.rows))).collect()
            } else {
                let indices: Vec<(usize, usize)> =
                    runs.iter().flat_map(|r| (r.start..r.start + r.rows).map(|row| (r.batch, row))).collect();
                vec![interleave_record_batch(&references, &indices).map_err(internal)?]
            };
            shares.push((partition, share));
        }
        Ok(shares)
    }

    /// Calls `found` with each run of rows of one partition.
    fn runs(&mut self, index: usize, batch: &RecordBatch, found: &mut impl FnMut(PartitionIndex, Run)) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let keys = self
            .columns
            .iter()
            .map(|c| {
                let column = match c.path.is_empty() {
                    true => arrow::array::new_null_array(&arrow::datatypes::DataType::Null, rows),
                    false => column_at(batch.columns(), &c.path)
                        .ok_or_else(|| Error::internal("a batch lacks the source column of a partition field"))?,
                };
                transform_column(&c.transform, &c.source, &column)
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let encoded = self.converter.convert_columns(&keys).map_err(internal)?;
        let mut start = 0;
        while start < rows {
            let key = encoded.row(start);
            let mut end = start + 1;
            while end < rows && encoded.row(end) == key {
                end += 1;
            }
            let partition = match self.by_key.get(key.as_ref()) {
                Some(partition) => *partition,
                None => self.meet(key.as_ref(), &keys, start)?,
            };
            found(partition, Run { batch: index, start, rows: end - start });
            start = end;
        }
        Ok(())
    }

    /// Numbers a partition met for the first time, or under another spelling (two NaNs are one partition).
    fn meet(&mut self, key: &[u8], keys: &[ArrayRef], row: usize) -> Result<PartitionIndex> {
        let values = keys.iter().zip(&self.columns).map(|(array, c)| literal_at(array, row, &c.result));
        let tuple = PartitionTuple(values.collect::<Result<Arc<[_]>>>()?);
        let next = self.tuples.len();
        let partition = *self.by_tuple.entry(tuple.clone()).or_insert(next);
        if partition == next {
            self.tuples.push(tuple);
        }
        self.by_key.insert(key.into(), partition);
        Ok(partition)
    }
}

/// Rows of one partition that lie together.
struct Run {
    batch: usize,
    start: usize,
    rows: usize,
}

fn slice_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

fn internal(e: arrow::error::ArrowError) -> Error {
    Error::internal("cannot split rows by partition").with_source(e)
}

/// Index of the top-level column, then of the field in each struct, on the way to field `id`.
pub(crate) fn column_path(schema: &Schema, id: i32) -> Option<Vec<usize>> {
    let ids = schema.path_to(id)?;
    let mut fields = &schema.fields;
    let mut path = Vec::with_capacity(ids.len());
    for (depth, step) in ids.iter().enumerate() {
        let index = fields.fields.iter().position(|f| f.id == *step)?;
        path.push(index);
        if depth + 1 < ids.len() {
            let Type::Struct(inner) = &fields.fields.get(index)?.field_type else { return None };
            fields = inner;
        }
    }
    Some(path)
}
