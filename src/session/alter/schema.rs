//! Columns: added, dropped, renamed, moved, and changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::scalar::ScalarValue;

use super::dotted;
use crate::columns::arrow_type;
use crate::provider::to_literal;
use crate::session::parser::{AddedColumn, ColumnChange, ColumnPosition, Name, TableChange};
use crate::spec::properties::METRICS_COLUMN_PREFIX;
use crate::spec::{
    FormatVersion, Literal, NestedField, PrimitiveType, Schema, StructType, TableMetadata, TableUpdate, Transform, Type,
};
use crate::{Error, Result};

/// Prefixes of properties that name a column.
const COLUMN_PROPERTIES: &[&str] = &[
    METRICS_COLUMN_PREFIX,
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.stats-enabled.column.",
    "write.parquet.dict-encoding-enabled.column.",
];

/// A changed schema, and what follows from it for properties that name columns.
pub(super) struct Changed {
    pub(super) schema: Schema,
    pub(super) properties: Vec<TableUpdate>,
}

type Fields = Vec<Arc<NestedField>>;

/// The table's columns while they are changed.
struct Columns<'a> {
    metadata: &'a TableMetadata,
    schema: Schema,
    last_id: i32,
}

/// Applies a change of columns or of the identifier.
pub(super) fn change(metadata: &TableMetadata, change: &TableChange, constants: &[ScalarValue]) -> Result<Changed> {
    let schema = metadata.current_schema()?.as_ref().clone();
    let mut columns = Columns { metadata, schema, last_id: metadata.last_column_id };
    let mut constants = constants.iter();
    let mut properties = Vec::new();
    match change {
        TableChange::AddColumns(added) => {
            for column in added {
                let default = column.default.as_ref().and_then(|_| constants.next());
                columns.add(column, default)?;
            }
        }
        TableChange::DropColumns { columns: dropped, if_exists } => {
            for column in dropped {
                if *if_exists && columns.find(&column.0).is_none() {
                    continue;
                }
                let name = columns.drop(column)?;
                properties.extend(move_properties(metadata, &name, None));
            }
        }
        TableChange::RenameColumn { column, to } => {
            let (from, to) = columns.rename(column, to)?;
            if from != to {
                properties.extend(move_properties(metadata, &from, Some(&to)));
            }
        }
        TableChange::AlterColumn { column, change } => columns.alter(column, change, constants.next())?,
        TableChange::SetIdentifier(names) => {
            columns.schema.identifier_field_ids = columns.ids(names)?;
        }
        TableChange::DropIdentifier(names) => {
            let ids = columns.ids(names)?;
            let identifier = &mut columns.schema.identifier_field_ids;
            if let Some((name, _)) = names.iter().zip(&ids).find(|(_, id)| !identifier.contains(id)) {
                return Err(Error::invalid_input(format!("{name} is no identifier field")));
            }
            identifier.retain(|id| !ids.contains(id));
        }
        _ => return Err(Error::internal("a change of no column")),
    }
    Ok(Changed { schema: columns.schema, properties })
}

impl Columns<'_> {
    /// The fields from the column down to the one that `path` names.
    fn find(&self, path: &[String]) -> Option<Vec<Arc<NestedField>>> {
        let mut found: Vec<Arc<NestedField>> = Vec::new();
        for part in path {
            let next = match found.last().map(|field| &field.field_type) {
                None => child(&self.schema.fields.fields, part)?,
                Some(Type::Struct(inner)) => child(&inner.fields, part)?,
                Some(Type::List(list)) => child(std::slice::from_ref(&list.element), part)?,
                Some(Type::Map(map)) => child(&[Arc::clone(&map.key), Arc::clone(&map.value)], part)?,
                Some(Type::Primitive(_) | Type::Variant) => return None,
            };
            found.push(next);
        }
        Some(found)
    }

    /// As [`find`](Self::find), of what may be changed: nothing within the key of a map, whose values would no longer equal.
    fn get(&self, path: &Name) -> Result<Vec<Arc<NestedField>>> {
        let Some(found) = self.find(&path.0) else {
            return Err(Error::invalid_input(format!("there is no column {path}")));
        };
        let within_key = found.windows(2).any(|pair| match pair {
            [outer, inner] => matches!(&outer.field_type, Type::Map(map) if map.key.id == inner.id),
            _ => false,
        });
        if within_key {
            return Err(Error::invalid_input(format!("{path}: the key of a map cannot be changed")));
        }
        Ok(found)
    }

    fn field(&self, path: &Name) -> Result<Arc<NestedField>> {
        self.get(path)?.pop().ok_or_else(|| Error::invalid_input("a column is named by at least one part"))
    }

    fn ids(&self, names: &[Name]) -> Result<Vec<i32>> {
        let mut ids = Vec::new();
        for name in names {
            let id = self.field(name)?.id;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// The own dotted name of the field.
    fn name_of(&self, id: i32) -> String {
        self.schema.name_of(id).unwrap_or_default()
    }

    fn has_data(&self) -> bool {
        !self.metadata.snapshots.is_empty()
    }

    /// Changes the field with this id.
    fn edit(&mut self, id: i32, f: &mut dyn FnMut(&NestedField) -> Result<NestedField>) -> Result<()> {
        self.schema.fields = edit_struct(&self.schema.fields, id, f)?;
        Ok(())
    }

    /// Changes the fields directly within the struct with this id, `None` for the columns.
    fn edit_children(&mut self, parent: Option<i32>, f: impl Fn(&mut Fields) -> Result<()>) -> Result<()> {
        let Some(id) = parent else { return f(&mut self.schema.fields.fields) };
        self.edit(id, &mut |field| {
            let Type::Struct(inner) = &field.field_type else {
                return Err(Error::invalid_input(format!("{} is no struct", field.name)));
            };
            let mut fields = inner.fields.clone();
            f(&mut fields)?;
            Ok(NestedField { field_type: Type::Struct(StructType { fields }), ..field.clone() })
        })
    }

    fn add(&mut self, column: &AddedColumn, default: Option<&ScalarValue>) -> Result<()> {
        let Some((name, parent)) = column.path.0.split_last() else {
            return Err(Error::invalid_input("a column needs a name"));
        };
        let parent = match parent {
            [] => None,
            parent => {
                let parent = self.field(&Name(parent.to_vec()))?;
                let Type::Struct(_) = &parent.field_type else {
                    let hint = match parent.field_type {
                        Type::List(_) => ": name its element, as in points.element.x",
                        Type::Map(_) => ": name its value, as in points.value.x",
                        _ => "",
                    };
                    return Err(Error::invalid_input(format!("{} is no struct{hint}", self.name_of(parent.id))));
                };
                Some(parent.id)
            }
        };
        let default = match default {
            None => None,
            Some(value) => {
                self.check_default_version(name)?;
                default_literal(value, &column.column_type, name)?
            }
        };
        if column.required && default.is_none() && self.has_data() {
            return Err(Error::invalid_input(format!(
                "column {}: rows that are there have no value for it; give it a DEFAULT (format version 3), or leave NOT NULL out",
                column.path
            )));
        }
        self.last_id = self.last_id.checked_add(1).ok_or_else(|| Error::invalid_input("no field id is left"))?;
        let id = self.last_id;
        let field_type = column.column_type.with_fresh_ids(&mut self.last_id);
        let mut field = NestedField::new(id, name.clone(), column.required, field_type);
        field.doc.clone_from(&column.comment);
        field.initial_default.clone_from(&default);
        field.write_default = default;
        let (field, path, position) = (Arc::new(field), &column.path, &column.position);
        self.edit_children(parent, |fields| {
            if fields.iter().any(|f| f.name == field.name) {
                return Err(Error::already_exists(format!("column {path} exists already")));
            }
            fields.push(Arc::clone(&field));
            match position {
                Some(position) => move_to(fields, field.id, position),
                None => Ok(()),
            }
        })
    }

    /// Drops a column and returns its own name.
    fn drop(&mut self, path: &Name) -> Result<String> {
        let found = self.get(path)?;
        let Some((field, parents)) = found.split_last() else {
            return Err(Error::invalid_input("a column is named by at least one part"));
        };
        let name = self.name_of(field.id);
        let mut ids = vec![field.id];
        Schema::new(0, vec![field.as_ref().clone()]).visit(&mut |inner| ids.push(inner.id));
        let spec = self.metadata.default_spec()?;
        let partition = spec.fields.iter().find(|f| f.transform != Transform::Void && ids.contains(&f.source_id));
        if let Some(partition) = partition {
            return Err(Error::invalid_input(format!(
                "column {name} is the source of partition field {}; drop that first",
                partition.name
            )));
        }
        let order = self.metadata.default_sort_order();
        if order.is_some_and(|order| order.fields.iter().any(|f| ids.contains(&f.source_id))) {
            return Err(Error::invalid_input(format!(
                "the table is sorted by column {name}; change that first, by ALTER TABLE … WRITE UNORDERED or ORDERED BY"
            )));
        }
        if self.schema.identifier_field_ids.iter().any(|id| ids.contains(id)) {
            return Err(Error::invalid_input(format!(
                "column {name} is an identifier field; drop it from those first"
            )));
        }
        let parent = parents.last();
        if parent.is_some_and(|parent| !matches!(parent.field_type, Type::Struct(_))) {
            return Err(Error::invalid_input(format!("{name} is a part of a list or map; it cannot be dropped")));
        }
        let id = field.id;
        self.edit_children(parent.map(|parent| parent.id), |fields| {
            fields.retain(|f| f.id != id);
            if fields.is_empty() {
                Err(Error::invalid_input(format!("{name} is the last field there is")))
            } else {
                Ok(())
            }
        })?;
        Ok(name)
    }

    /// Renames a column and returns its own name before and after.
    fn rename(&mut self, path: &Name, to: &str) -> Result<(String, String)> {
        let found = self.get(path)?;
        let Some((field, parents)) = found.split_last() else {
            return Err(Error::invalid_input("a column is named by at least one part"));
        };
        let before = self.name_of(field.id);
        let siblings = match parents.last().map(|parent| &parent.field_type) {
            None => &self.schema.fields.fields,
            Some(Type::Struct(inner)) => &inner.fields,
            Some(_) => {
                return Err(Error::invalid_input(format!("{before} is a part of a list or map; it has no other name")));
            }
        };
        if siblings.iter().any(|other| other.id != field.id && other.name == to) {
            return Err(Error::already_exists(format!("there is a field {to} already")));
        }
        if to.is_empty() {
            return Err(Error::invalid_input("a column needs a name"));
        }
        let id = field.id;
        self.edit(id, &mut |field| Ok(NestedField { name: to.to_owned(), ..field.clone() }))?;
        Ok((before, self.name_of(id)))
    }

    fn alter(&mut self, path: &Name, change: &ColumnChange, constant: Option<&ScalarValue>) -> Result<()> {
        let found = self.get(path)?;
        let Some((field, parents)) = found.split_last() else {
            return Err(Error::invalid_input("a column is named by at least one part"));
        };
        let (id, name) = (field.id, self.name_of(field.id));
        match change {
            ColumnChange::Comment(text) => {
                let doc = (!text.is_empty()).then(|| text.clone());
                self.edit(id, &mut |field| Ok(NestedField { doc: doc.clone(), ..field.clone() }))
            }
            ColumnChange::Move(position) => {
                if parents.last().is_some_and(|parent| !matches!(parent.field_type, Type::Struct(_))) {
                    return Err(Error::invalid_input(format!("{name} is a part of a list or map; it has one place")));
                }
                self.edit_children(parents.last().map(|parent| parent.id), |fields| move_to(fields, id, position))
            }
            ColumnChange::SetRequired => {
                if !field.required && self.has_data() {
                    return Err(Error::invalid_input(format!(
                        "column {name} may hold nulls; it cannot become NOT NULL"
                    )));
                }
                self.edit(id, &mut |field| Ok(NestedField { required: true, ..field.clone() }))
            }
            ColumnChange::SetOptional => {
                if self.schema.identifier_field_ids.contains(&id) {
                    return Err(Error::invalid_input(format!(
                        "column {name} is an identifier field, which has to be NOT NULL; drop it from those first"
                    )));
                }
                self.edit(id, &mut |field| Ok(NestedField { required: false, ..field.clone() }))
            }
            ColumnChange::SetDefault(_) => {
                self.check_default_version(&name)?;
                let value = constant.ok_or_else(|| Error::internal("the value of a DEFAULT"))?;
                let default = default_literal(value, &field.field_type, &name)?;
                self.edit(id, &mut |field| Ok(NestedField { write_default: default.clone(), ..field.clone() }))
            }
            ColumnChange::DropDefault => {
                self.edit(id, &mut |field| Ok(NestedField { write_default: None, ..field.clone() }))
            }
            ColumnChange::Type(to) => {
                let to = self.promoted(field, to, &name)?;
                self.edit(id, &mut |field| promote(field, &to, &name))
            }
        }
    }

    /// The type that the field may become, checked.
    fn promoted(&self, field: &NestedField, to: &Type, name: &str) -> Result<PrimitiveType> {
        let (Type::Primitive(from), Type::Primitive(to)) = (&field.field_type, to) else {
            return Err(Error::invalid_input(format!(
                "column {name} is of type {}; only primitive types change as a whole, the others field by field",
                field.field_type
            )));
        };
        if !from.can_promote_to(to) {
            return Err(Error::invalid_input(format!(
                "column {name} cannot become {to}: {from} only widens to a type that holds all its values"
            )));
        }
        if from == to {
            return Ok(to.clone());
        }
        let later = matches!(from, PrimitiveType::Date | PrimitiveType::Unknown);
        if later && self.metadata.format_version < FormatVersion::V3 {
            return Err(Error::invalid_input(format!("column {name}: {from} becomes {to} in format version 3 only")));
        }
        let changes_value = |transform: &Transform| {
            use Transform::{Bucket, Identity, Truncate, Unknown};
            matches!(from, PrimitiveType::Date) && matches!(transform, Identity | Bucket(_) | Truncate(_) | Unknown(_))
        };
        let specs = self.metadata.partition_specs.iter().flat_map(|spec| &spec.fields);
        if let Some(partition) = specs.into_iter().find(|f| f.source_id == field.id && changes_value(&f.transform)) {
            return Err(Error::invalid_input(format!(
                "column {name}: partition field {} would get other values from {to}",
                partition.name
            )));
        }
        Ok(to.clone())
    }

    fn check_default_version(&self, name: &str) -> Result<()> {
        if self.metadata.format_version < FormatVersion::V3 {
            return Err(Error::invalid_input(format!("column {name}: DEFAULT needs format version 3")));
        }
        Ok(())
    }
}

/// The field of that name, else the one that differs only in case.
fn child(fields: &[Arc<NestedField>], name: &str) -> Option<Arc<NestedField>> {
    if let Some(field) = fields.iter().find(|f| f.name == name) {
        return Some(Arc::clone(field));
    }
    let folded = name.to_lowercase();
    let mut alike = fields.iter().filter(|f| f.name.to_lowercase() == folded);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(Arc::clone(only)),
        _ => None,
    }
}

fn edit_struct(
    fields: &StructType,
    id: i32,
    f: &mut dyn FnMut(&NestedField) -> Result<NestedField>,
) -> Result<StructType> {
    let fields = fields.fields.iter().map(|field| edit_field(field, id, f)).collect::<Result<_>>()?;
    Ok(StructType { fields })
}

fn edit_field(
    field: &Arc<NestedField>,
    id: i32,
    f: &mut dyn FnMut(&NestedField) -> Result<NestedField>,
) -> Result<Arc<NestedField>> {
    if field.id == id {
        return f(field).map(Arc::new);
    }
    let field_type = match &field.field_type {
        Type::Primitive(_) | Type::Variant => return Ok(Arc::clone(field)),
        Type::Struct(inner) => Type::Struct(edit_struct(inner, id, f)?),
        Type::List(list) => {
            let mut list = list.clone();
            list.element = edit_field(&list.element, id, f)?;
            Type::List(list)
        }
        Type::Map(map) => {
            let mut map = map.clone();
            map.key = edit_field(&map.key, id, f)?;
            map.value = edit_field(&map.value, id, f)?;
            Type::Map(map)
        }
    };
    Ok(Arc::new(NestedField { field_type, ..field.as_ref().clone() }))
}

/// The field under a type that its own may be promoted to, with its defaults.
fn promote(field: &NestedField, to: &PrimitiveType, name: &str) -> Result<NestedField> {
    let default = |value: &Option<Literal>| match value {
        None => Ok(None),
        Some(value) => match value.clone().promote_to(to) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::invalid_input(format!("column {name}: its default is no value of {to}"))),
        },
    };
    Ok(NestedField {
        field_type: Type::Primitive(to.clone()),
        initial_default: default(&field.initial_default)?,
        write_default: default(&field.write_default)?,
        ..field.clone()
    })
}

fn move_to(fields: &mut Fields, id: i32, position: &ColumnPosition) -> Result<()> {
    let Some(from) = fields.iter().position(|f| f.id == id) else {
        return Err(Error::internal("a column to move is not where it was"));
    };
    let field = fields.remove(from);
    let to = match position {
        ColumnPosition::First => 0,
        ColumnPosition::After(other) => {
            let other = child(fields, other).ok_or_else(|| {
                Error::invalid_input(format!(
                    "AFTER {}: there is no such field beside {}",
                    dotted(std::slice::from_ref(other)),
                    field.name
                ))
            })?;
            fields.iter().position(|f| f.id == other.id).map_or(fields.len(), |place| place + 1)
        }
    };
    fields.insert(to, field);
    Ok(())
}

/// `value` as a default of a column of type `to`; `None` for null.
pub(crate) fn default_literal(value: &ScalarValue, to: &Type, name: &str) -> Result<Option<Literal>> {
    if value.is_null() {
        return Ok(None);
    }
    let Type::Primitive(primitive) = to else {
        return Err(Error::unsupported(format!("column {name}: a DEFAULT of type {to}")));
    };
    let lossy = || Error::invalid_input(format!("column {name}: DEFAULT {value} is no value of {to}"));
    let cast = value.cast_to(&arrow_type(to)?).map_err(|e| lossy().with_source(e))?;
    let exact = match value.data_type().is_numeric() && cast.data_type().is_numeric() {
        // A fraction would be cut off without a word.
        true => cast.cast_to(&value.data_type()).is_ok_and(|back| back == *value),
        false => true,
    };
    match to_literal(&cast, primitive) {
        Some(literal) if exact => Ok(Some(literal)),
        _ => Err(lossy()),
    }
}

/// Properties that name the column `from`, or a part of it, under its name `to`; gone with the column for `None`.
fn move_properties(metadata: &TableMetadata, from: &str, to: Option<&str>) -> Vec<TableUpdate> {
    let mut removals = Vec::new();
    let mut updates = BTreeMap::new();
    for (name, value) in &metadata.properties {
        let column = COLUMN_PROPERTIES.iter().find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)));
        let Some((prefix, column)) = column else { continue };
        let Some(rest) = column.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('.')) else {
            continue;
        };
        removals.push(name.clone());
        if let Some(to) = to {
            updates.insert(format!("{prefix}{to}{rest}"), value.clone());
        }
    }
    let mut moved = Vec::new();
    if !removals.is_empty() {
        moved.push(TableUpdate::RemoveProperties { removals });
    }
    if !updates.is_empty() {
        moved.push(TableUpdate::SetProperties { updates });
    }
    moved
}
