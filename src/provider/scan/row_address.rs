//! The hidden columns: where each row lies, and which row it is.
//!
//! `_file`, `_spec_id` and `_partition` are the same for all rows of a file, so they cost nothing; `_pos` is the row's
//! position in its file before any delete, from 0, whatever was pruned, skipped or split (bug-catalogue C2). `_row_id` and
//! `_last_updated_sequence_number` (format version 3) are those stored in the file, else those the file gives its rows (spec
//! section "Row Lineage").

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue};
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, RowNumber};
use uuid::Uuid;

use crate::provider::scalar::to_scalar;
use crate::spec::{DataFile, FormatVersion, PartitionSpec, PrimitiveType, TableMetadata, Transform};
use crate::writer::{
    self, LAST_UPDATED_SEQUENCE_NUMBER, LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID, ROW_ID_FIELD_ID,
};

/// Location of the data file, as recorded.
pub const FILE: &str = "_file";
/// Position of the row in its file, from 0, deleted rows counted.
pub const POS: &str = "_pos";
/// Id of the partition spec of the file.
pub const SPEC_ID: &str = "_spec_id";
/// Partition values of the file: a struct of the fields of every spec of the table, null where the file's spec has none.
pub const PARTITION: &str = "_partition";

/// Location of the data file, for the operators of a writing statement: one dictionary value a batch, an Int32 key a row.
pub const FILE_COLUMN: &str = "__calve_file";
/// Position of the row in its file, for the operators of a writing statement.
pub const POSITION_COLUMN: &str = "__calve_pos";

/// Id of the row, Int64, null where it has none, for the operators of a writing statement on a format version 3 table.
pub const ROW_ID_COLUMN: &str = "__calve_row_id";

/// Which columns a scan offers besides the table's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiddenColumns {
    /// `_file`, `_pos`, `_spec_id`, `_partition`, `_row_id` and `_last_updated_sequence_number`, for users.
    pub named: bool,
    /// [`FILE_COLUMN`], [`POSITION_COLUMN`] and, in format version 3, [`ROW_ID_COLUMN`], for the writing statement whose
    /// target's scan this token marks.
    pub target: Option<Uuid>,
}

fn dictionary(location: &str) -> ScalarValue {
    ScalarValue::Dictionary(Box::new(DataType::Int32), Box::new(ScalarValue::Utf8(Some(location.to_owned()))))
}

/// The hidden columns that a scan offers: those whose name no column of the table has.
#[derive(Debug, Clone)]
pub(crate) struct RowAddress {
    file: bool,
    spec_id: bool,
    partition: Option<Vec<PartitionColumn>>,
    pos: bool,
    row_id: bool,
    sequence_number: bool,
    target: bool,
    target_row_id: bool,
}

#[derive(Debug, Clone)]
struct PartitionColumn {
    field_id: i32,
    ty: PrimitiveType,
    field: FieldRef,
}

impl RowAddress {
    /// The hidden columns of a table whose columns have the names `taken`.
    ///
    /// # Errors
    /// `Unsupported` when a column of the table has the name of one that a writing statement needs.
    pub(crate) fn new(metadata: &TableMetadata, taken: &Fields, hidden: HiddenColumns) -> crate::Result<Self> {
        let free = |name: &str| hidden.named && taken.find(name).is_none();
        let lineage = metadata.format_version >= FormatVersion::V3;
        let pos = free(POS);
        // Ids are made from positions.
        let has_ids = lineage && (pos || hidden.target.is_some());
        if hidden.target.is_some()
            && let Some(name) =
                [FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN].into_iter().find(|name| taken.find(name).is_some())
        {
            return Err(crate::Error::unsupported(format!("writing to a table with a column named {name}; rename it")));
        }
        Ok(Self {
            file: free(FILE),
            spec_id: free(SPEC_ID),
            partition: if free(PARTITION) { partition_columns(metadata)? } else { None },
            pos,
            row_id: has_ids && free(ROW_ID),
            sequence_number: lineage && free(LAST_UPDATED_SEQUENCE_NUMBER),
            target: hidden.target.is_some(),
            target_row_id: lineage && hidden.target.is_some(),
        })
    }

    /// Columns that a file may store, with their field ids.
    pub(crate) fn stored_fields(&self) -> Vec<FieldRef> {
        [
            (self.row_id, ROW_ID, ROW_ID_FIELD_ID),
            (self.sequence_number, LAST_UPDATED_SEQUENCE_NUMBER, LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID),
            (self.target_row_id, ROW_ID_COLUMN, ROW_ID_FIELD_ID),
        ]
        .into_iter()
        .filter(|(offered, ..)| *offered)
        .map(|(_, name, id)| {
            let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
            Arc::new(Field::new(name, DataType::Int64, true).with_metadata(id))
        })
        .collect()
    }

    /// Columns with one value per file.
    pub(crate) fn constant_fields(&self) -> Vec<FieldRef> {
        let file = self.file.then(|| Arc::new(Field::new(FILE, DataType::Utf8, false)));
        let spec_id = self.spec_id.then(|| Arc::new(Field::new(SPEC_ID, DataType::Int32, false)));
        let partition = self.partition.as_ref().map(|columns| {
            let fields: Fields = columns.iter().map(|c| Arc::clone(&c.field)).collect();
            Arc::new(Field::new(PARTITION, DataType::Struct(fields), false))
        });
        let target = self.target.then(|| {
            let encoded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Arc::new(Field::new(FILE_COLUMN, encoded, false))
        });
        file.into_iter().chain(spec_id).chain(partition).chain(target).collect()
    }

    /// Columns that the Parquet reader makes.
    pub(crate) fn virtual_fields(&self) -> Vec<FieldRef> {
        [(self.pos, POS), (self.target, POSITION_COLUMN)]
            .into_iter()
            .filter(|(offered, _)| *offered)
            .map(|(_, name)| Arc::new(Field::new(name, DataType::Int64, false).with_extension_type(RowNumber)))
            .collect()
    }

    /// The values of [`RowAddress::constant_fields`] for one file under its spec.
    pub(crate) fn constants(&self, file: &DataFile, spec: Option<&PartitionSpec>) -> Result<Vec<ScalarValue>> {
        let mut values = Vec::with_capacity(3);
        if self.file {
            values.push(ScalarValue::Utf8(Some(file.file_path.to_string())));
        }
        if self.spec_id {
            values.push(ScalarValue::Int32(Some(file.spec_id)));
        }
        if let Some(columns) = &self.partition {
            let mut fields = Vec::with_capacity(columns.len());
            let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
            for column in columns {
                let position = spec.and_then(|s| s.fields.iter().position(|f| f.field_id == column.field_id));
                let literal = position.and_then(|i| file.partition.0.get(i)).and_then(Option::as_ref);
                let promoted = literal.and_then(|l| l.clone().promote_to(&column.ty));
                let null = || ScalarValue::try_from(column.field.data_type());
                let scalar = promoted.and_then(|l| to_scalar(Some(&l), &column.ty)).map_or_else(null, Ok)?;
                fields.push(Arc::clone(&column.field));
                arrays.push(scalar.to_array()?);
            }
            let row = StructArray::try_new_with_length(Fields::from(fields), arrays, None, 1)?;
            values.push(ScalarValue::Struct(Arc::new(row)));
        }
        if self.target {
            values.push(dictionary(&file.file_path));
        }
        Ok(values)
    }
}

/// The fields of `_partition`: those of every spec, by partition field id, void ones left out; `None` when the table was
/// never partitioned. A field that was renamed has the name of the newest spec that holds it.
fn partition_columns(metadata: &TableMetadata) -> crate::Result<Option<Vec<PartitionColumn>>> {
    let mut columns: Vec<PartitionColumn> = Vec::new();
    let newest_first = {
        let mut specs: Vec<_> = metadata.partition_specs.iter().collect();
        specs.sort_by_key(|s| std::cmp::Reverse((s.spec_id == metadata.default_spec_id, s.spec_id)));
        specs
    };
    for spec in newest_first {
        let types = spec.partition_type(metadata);
        for (field, ty) in spec.fields.iter().zip(&types.fields) {
            let seen = columns.iter().any(|c| c.field_id == field.field_id || c.field.name() == &field.name);
            let Some(primitive) = ty.field_type.as_primitive() else { continue };
            if field.transform == Transform::Void || seen {
                continue;
            }
            let data_type = writer::arrow_type(&ty.field_type)?;
            columns.push(PartitionColumn {
                field_id: field.field_id,
                ty: primitive.clone(),
                field: Arc::new(Field::new(&field.name, data_type, true)),
            });
        }
    }
    columns.sort_by_key(|c| c.field_id);
    Ok((!columns.is_empty()).then_some(columns))
}
