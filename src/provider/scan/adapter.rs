//! Columns of a file by field id.
//!
//! Implements the spec section "Column Projection": a column of the table is the column of the file with its field id; a
//! file without field ids gets them by name mapping, or by position when the table has none (as Java does); a column that
//! the file lacks reads as the identity partition value of the file, else as its initial default, else as null.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, case, is_not_null, lit};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use datafusion::physical_plan::PhysicalExpr;
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, RowNumber};

use super::reshape::{Defaults, ReshapeExpr, Shape, entry_fields, field_id, missing_value};
use crate::Error;
use crate::spec::name_mapping::NameMapping;
use crate::writer::{LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID, ROW_ID_FIELD_ID};

/// What the files of a table have in common: how columns get their ids and what missing ones read as.
#[derive(Debug)]
pub(crate) struct TableColumns {
    /// The table's columns by field id, with ids at every level.
    pub(crate) fields: HashMap<i32, FieldRef>,
    /// Initial defaults of the schema read, by field id.
    pub(crate) defaults: Defaults,
    /// The table's name mapping, for files without field ids.
    pub(crate) name_mapping: Option<NameMapping>,
}

/// Makes the adapters of one data file.
#[derive(Debug)]
pub(crate) struct FieldIdAdapterFactory {
    /// Common to all files.
    pub(crate) columns: Arc<TableColumns>,
    /// Identity partition values of the file, by source field id, in the table's types.
    pub(crate) constants: HashMap<i32, ScalarValue>,
    /// What rows of the file inherit that store no lineage of their own.
    pub(crate) lineage: FileLineage,
    /// Location of the file, for messages.
    pub(crate) location: Arc<str>,
}

/// What a file gives its rows in format version 3; a file from before the upgrade gives nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLineage {
    /// Id of the file's first row.
    pub(crate) first_row_id: Option<i64>,
    /// The file's data sequence number.
    pub(crate) sequence_number: i64,
}

impl PhysicalExprAdapterFactory for FieldIdAdapterFactory {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let at_file = |e: Error| e.with_context("file", &*self.location);
        let relabel = !physical.fields().iter().any(|f| has_id(f));
        let file_columns = self.columns.with_ids(&physical).map_err(at_file)?;
        let mut columns = HashMap::with_capacity(logical.fields().len());
        for field in logical.fields() {
            let column = if is_row_number(field) {
                physical.index_of(field.name()).map(|i| FileColumn::Same(Column::new(field.name(), i)))?
            } else if matches!(field_id(field), Some(ROW_ID_FIELD_ID | LAST_UPDATED_SEQUENCE_NUMBER_FIELD_ID)) {
                self.lineage(field, &file_columns)?
            } else {
                self.resolve(field, &file_columns, relabel).map_err(at_file)?
            };
            columns.insert(field.name().clone(), column);
        }
        Ok(Arc::new(FieldIdAdapter { columns }))
    }
}

impl FieldIdAdapterFactory {
    /// What the file stores, and where that is null, what its rows inherit.
    fn lineage(&self, field: &FieldRef, file_columns: &[FieldRef]) -> Result<FileColumn> {
        let at = |is: &dyn Fn(&Field) -> bool| {
            let found = file_columns.iter().enumerate().find(|(_, f)| is(f));
            found.map(|(index, f)| Arc::new(Column::new(f.name(), index)) as Arc<dyn PhysicalExpr>)
        };
        let inherited: Option<Arc<dyn PhysicalExpr>> = match self.lineage.first_row_id {
            None => None,
            Some(first) if field_id(field) == Some(ROW_ID_FIELD_ID) => {
                let Some(position) = at(&is_row_number) else { return internal_err!("the scan has no row positions") };
                Some(Arc::new(BinaryExpr::new(position, Operator::Plus, lit(first))))
            }
            Some(_) => Some(lit(self.lineage.sequence_number)),
        };
        let stored = at(&|f| field_id(f) == field_id(field));
        Ok(match (stored, inherited) {
            (None, None) => FileColumn::Constant(ScalarValue::Int64(None)),
            (Some(only), None) | (None, Some(only)) => FileColumn::Made(only),
            (Some(stored), Some(inherited)) => {
                let has_own = is_not_null(Arc::clone(&stored))?;
                FileColumn::Made(case(None, vec![(has_own, stored)], Some(inherited))?)
            }
        })
    }

    fn resolve(&self, field: &FieldRef, file_columns: &[FieldRef], relabel: bool) -> crate::Result<FileColumn> {
        let Some(id) = field_id(field) else {
            return Err(Error::internal(format!("column {} of the table has no field id", field.name())));
        };
        let Some((index, from)) = file_columns.iter().enumerate().find(|(_, f)| field_id(f) == Some(id)) else {
            return Ok(match self.constants.get(&id) {
                Some(value) => FileColumn::Constant(value.clone()),
                // A required column without a value only fails when it is read.
                None => match missing_value(field, id, &self.columns.defaults) {
                    Ok(value) => FileColumn::Constant(value),
                    Err(e) => FileColumn::Unreadable(e.with_context("file", &*self.location)),
                },
            });
        };
        let column = Column::new(from.name(), index);
        let to = self.columns.fields.get(&id).unwrap_or(field);
        // What leaves the scan has no ids below the top level.
        let relabel = relabel || field.data_type().is_nested();
        Ok(match Shape::between(from, to, &self.columns.defaults, relabel) {
            Ok(Shape::Same) => FileColumn::Same(column),
            Ok(Shape::Cast) if is_plain_cast(from.data_type()) => FileColumn::Cast(column, Arc::clone(field)),
            Ok(shape) => FileColumn::Reshaped(column, shape, Arc::clone(field)),
            Err(e) => FileColumn::Unreadable(e.with_context("file", &*self.location)),
        })
    }
}

/// Casts which DataFusion's own cast does rightly, so that predicates on the column can still prune.
fn is_plain_cast(from: &DataType) -> bool {
    !matches!(from, DataType::Timestamp(_, _) | DataType::Null)
}

fn is_row_number(field: &Field) -> bool {
    field.try_extension_type::<RowNumber>().is_ok()
}

impl TableColumns {
    /// The file's top-level columns with field ids in their metadata, nested ones too; columns without an id keep none.
    fn with_ids(&self, physical: &Schema) -> crate::Result<Vec<FieldRef>> {
        let columns: Vec<FieldRef> = physical.fields().iter().cloned().collect();
        if columns.iter().any(|f| has_id(f)) {
            return Ok(columns);
        }
        if let Some(mapping) = &self.name_mapping {
            let mut path = Vec::new();
            return Ok(columns.iter().map(|f| with_mapped_ids(f, mapping, &mut path)).collect());
        }
        let mut by_position = Vec::with_capacity(columns.len());
        for (position, field) in (1..).zip(columns) {
            if is_row_number(&field) {
                by_position.push(field);
                continue;
            }
            if field.data_type().is_nested() {
                return Err(Error::unsupported(
                    "reading nested columns of a file without field ids in a table without name mapping: set the table \
                     property schema.name-mapping.default",
                ));
            }
            by_position.push(Arc::new(with_id(&field, position)));
        }
        Ok(by_position)
    }
}

fn has_id(field: &Field) -> bool {
    field_id(field).is_some()
        || match field.data_type() {
            DataType::Struct(children) => children.iter().any(|f| has_id(f)),
            DataType::List(f)
            | DataType::LargeList(f)
            | DataType::ListView(f)
            | DataType::LargeListView(f)
            | DataType::FixedSizeList(f, _)
            | DataType::Map(f, _) => has_id(f),
            _ => false,
        }
}

fn with_id(field: &Field, id: i32) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    field.clone().with_metadata(metadata)
}

/// `field` with the ids that `mapping` gives to it and to what it holds; `path` names its ancestors.
fn with_mapped_ids(field: &FieldRef, mapping: &NameMapping, path: &mut Vec<String>) -> FieldRef {
    if is_row_number(field) {
        return Arc::clone(field);
    }
    mapped(field, field.name(), mapping, path)
}

fn mapped(field: &FieldRef, name: &str, mapping: &NameMapping, path: &mut Vec<String>) -> FieldRef {
    path.push(name.to_owned());
    let data_type = match field.data_type() {
        DataType::Struct(children) => {
            DataType::Struct(children.iter().map(|c| mapped(c, c.name(), mapping, path)).collect())
        }
        DataType::List(e) => DataType::List(mapped(e, "element", mapping, path)),
        DataType::LargeList(e) => DataType::LargeList(mapped(e, "element", mapping, path)),
        DataType::FixedSizeList(e, n) => DataType::FixedSizeList(mapped(e, "element", mapping, path), *n),
        DataType::Map(entries, ordered) => match entry_fields(entries) {
            Some([key, value]) => {
                let fields =
                    Fields::from(vec![mapped(key, "key", mapping, path), mapped(value, "value", mapping, path)]);
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields))), *ordered)
            }
            None => field.data_type().clone(),
        },
        other => other.clone(),
    };
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let id = mapping.id_for(&names);
    path.pop();
    let typed = field.as_ref().clone().with_data_type(data_type);
    Arc::new(match id {
        Some(id) => with_id(&typed, id),
        None => typed,
    })
}

/// What a column of the table is in one file.
#[derive(Debug)]
enum FileColumn {
    Same(Column),
    Cast(Column, FieldRef),
    Reshaped(Column, Shape, FieldRef),
    Constant(ScalarValue),
    /// Computed from columns of the file.
    Made(Arc<dyn PhysicalExpr>),
    /// Only an error if the column is read.
    Unreadable(Error),
}

#[derive(Debug)]
struct FieldIdAdapter {
    columns: HashMap<String, FileColumn>,
}

impl PhysicalExprAdapter for FieldIdAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        // Bottom-up, so that the columns put in are not rewritten again.
        expr.transform_up(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            let replacement: Arc<dyn PhysicalExpr> = match self.columns.get(column.name()) {
                Some(FileColumn::Same(c)) => Arc::new(c.clone()),
                Some(FileColumn::Cast(c, field)) => {
                    Arc::new(CastExpr::new_with_target_field(Arc::new(c.clone()), Arc::clone(field), None))
                }
                Some(FileColumn::Reshaped(c, shape, field)) => {
                    Arc::new(ReshapeExpr::new(Arc::new(c.clone()), shape.clone(), Arc::clone(field)))
                }
                Some(FileColumn::Constant(value)) => lit(value.clone()),
                Some(FileColumn::Made(expr)) => Arc::clone(expr),
                Some(FileColumn::Unreadable(e)) => return Err(e.duplicate().into()),
                None => return internal_err!("column {} is not in the schema of the scan", column.name()),
            };
            Ok(Transformed::yes(replacement))
        })
        .data()
    }
}
