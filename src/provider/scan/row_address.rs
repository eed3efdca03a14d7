//! The hidden columns: where each row lies, and which row it is.
//!
//! `_file`, `_spec_id` and `_partition` are the same for all rows of a file, so they cost nothing; `_pos` is the row's
//! position in its file before any delete, from 0, whatever was pruned, skipped or split (bug-catalogue C2). `_row_id` and
//! `_last_updated_sequence_number` (format version 3) are those stored in the file, else those the file gives its rows (spec
//! section "Row Lineage").

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue};
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, RowNumber};
use uuid::Uuid;

use crate::provider::partition_struct::PartitionStruct;
use crate::spec::{DataFile, FormatVersion, PartitionSpec, TableMetadata};
use crate::writer::{LAST_UPDATED_SEQUENCE_NUMBER, LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID, ROW_ID_FIELD_ID};

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
    partition: Option<PartitionStruct>,
    pos: bool,
    row_id: bool,
    sequence_number: bool,
    target: bool,
    target_row_id: bool,
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
            partition: if free(PARTITION) { PartitionStruct::of(metadata)? } else { None },
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
        let partition =
            self.partition.as_ref().map(|partition| Arc::new(Field::new(PARTITION, partition.data_type(), false)));
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
        if let Some(partition) = &self.partition {
            let row = partition.array(&[partition.values(file, spec)])?;
            values.push(ScalarValue::try_from_array(&row, 0)?);
        }
        if self.target {
            values.push(dictionary(&file.file_path));
        }
        Ok(values)
    }
}
