//! Partition fields and sort orders.

use super::dotted;
use crate::session::parser::{Name, PartitionTerm, SortTerm};
use crate::spec::properties::{self, DistributionMode};
use crate::spec::{
    FormatVersion, LAST_ADDED, PartitionField, PartitionSpec, Schema, SortField, SortOrder, TableMetadata, TableUpdate,
    Transform, Type,
};
use crate::{Error, Result};

/// Id and dotted name of the column that a term of `clause` is about; each part is matched as it is, else by the one field
/// that differs only in case.
pub(crate) fn source_column(schema: &Schema, path: &Name, clause: &str) -> Result<(i32, String)> {
    let unknown = || Error::invalid_input(format!("{clause}: there is no column {path}"));
    let mut fields = &schema.fields;
    let mut names = Vec::new();
    let mut parts = path.0.iter().peekable();
    while let Some(part) = parts.next() {
        let field = match fields.fields.iter().find(|f| f.name == *part) {
            Some(field) => field,
            None => {
                let folded = part.to_lowercase();
                let mut alike = fields.fields.iter().filter(|f| f.name.to_lowercase() == folded);
                match (alike.next(), alike.next()) {
                    (Some(only), None) => only,
                    _ => return Err(unknown()),
                }
            }
        };
        names.push(field.name.as_str());
        match (&field.field_type, parts.peek()) {
            (_, None) => return Ok((field.id, names.join("."))),
            (Type::Struct(inner), Some(_)) => fields = inner,
            _ => return Err(unknown()),
        }
    }
    Err(unknown())
}

/// The name that Java's `PartitionSpec.Builder` gives to a field of a new table.
pub(crate) fn partition_field_name(transform: &Transform, column: &str) -> String {
    let suffix = match transform {
        Transform::Identity | Transform::Unknown(_) => return column.to_owned(),
        Transform::Bucket(_) => "bucket",
        Transform::Truncate(_) => "trunc",
        Transform::Year => "year",
        Transform::Month => "month",
        Transform::Day => "day",
        Transform::Hour => "hour",
        Transform::Void => "null",
    };
    format!("{column}_{suffix}")
}

/// The name that Java's `BaseUpdatePartitionSpec` gives to a field that is added to a table.
fn added_field_name(transform: &Transform, column: &str) -> String {
    let name = partition_field_name(transform, column);
    match transform {
        Transform::Bucket(number) | Transform::Truncate(number) => format!("{name}_{number}"),
        _ => name,
    }
}

/// The sort order of `terms`; its id is given by the table.
pub(crate) fn sort_order(schema: &Schema, terms: &[SortTerm]) -> Result<SortOrder> {
    let field = |term: &SortTerm| {
        let (source_id, _) = source_column(schema, &term.term.column, "ORDERED BY")?;
        let (direction, null_order) = (term.direction, term.nulls);
        Ok(SortField { transform: term.term.transform.clone(), source_id, direction, null_order })
    };
    Ok(SortOrder { order_id: 0, fields: terms.iter().map(field).collect::<Result<_>>()? })
}

pub(super) fn add_field(metadata: &TableMetadata, term: &PartitionTerm) -> Result<Vec<TableUpdate>> {
    let spec = with_field(metadata, metadata.default_spec()?.as_ref().clone(), term)?;
    Ok(new_spec(spec))
}

pub(super) fn drop_field(metadata: &TableMetadata, term: &PartitionTerm) -> Result<Vec<TableUpdate>> {
    without_field(metadata, term).map(new_spec)
}

pub(super) fn replace_field(
    metadata: &TableMetadata,
    from: &PartitionTerm,
    to: &PartitionTerm,
) -> Result<Vec<TableUpdate>> {
    let spec = without_field(metadata, from)?;
    with_field(metadata, spec, to).map(new_spec)
}

fn new_spec(spec: PartitionSpec) -> Vec<TableUpdate> {
    vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: LAST_ADDED }]
}

fn with_field(metadata: &TableMetadata, mut spec: PartitionSpec, term: &PartitionTerm) -> Result<PartitionSpec> {
    let (source_id, column) = source_column(metadata.current_schema()?, &term.column, "PARTITION FIELD")?;
    let name = term.name.clone().unwrap_or_else(|| added_field_name(&term.transform, &column));
    let same = |f: &&PartitionField| f.source_id == source_id && f.transform == term.transform;
    if let Some(present) = spec.fields.iter().find(same) {
        return Err(Error::invalid_input(format!(
            "the table is partitioned by that already, as field {}",
            present.name
        )));
    }
    if let Some(taken) = spec.fields.iter_mut().find(|f| f.name == name) {
        if taken.transform != Transform::Void {
            return Err(Error::invalid_input(format!(
                "the table has a partition field {name}; name the new one by AS"
            )));
        }
        // What is left of a dropped field in version 1 makes room, as in Java.
        taken.name = format!("{name}_{}", taken.field_id);
    }
    spec.fields.push(PartitionField { source_id, field_id: 0, name, transform: term.transform.clone() });
    Ok(spec)
}

/// The default spec without the field that `term` is, or by its name is called.
fn without_field(metadata: &TableMetadata, term: &PartitionTerm) -> Result<PartitionSpec> {
    let mut spec = metadata.default_spec()?.as_ref().clone();
    let source = source_column(metadata.current_schema()?, &term.column, "PARTITION FIELD");
    let live = |f: &PartitionField| f.transform != Transform::Void;
    let by_term = source.ok().and_then(|(id, _)| {
        spec.fields.iter().position(|f| live(f) && f.source_id == id && f.transform == term.transform)
    });
    let place = by_term.or_else(|| {
        let named = |f: &PartitionField| term.transform == Transform::Identity && term.column.0 == [f.name.clone()];
        spec.fields.iter().position(|f| live(f) && named(f))
    });
    let Some(field) = place.and_then(|place| spec.fields.get_mut(place)) else {
        return Err(Error::invalid_input(format!(
            "the table has no partition field {}",
            match &term.transform {
                Transform::Identity => dotted(&term.column.0),
                transform => format!("{transform} of {}", term.column),
            }
        )));
    };
    if metadata.format_version == FormatVersion::V1 {
        // Version 1 counts fields by their place.
        field.transform = Transform::Void;
    } else {
        let id = field.field_id;
        spec.fields.retain(|f| f.field_id != id);
    }
    Ok(spec)
}

pub(super) fn write_order(
    metadata: &TableMetadata,
    terms: &[SortTerm],
    distribution: Option<DistributionMode>,
) -> Result<Vec<TableUpdate>> {
    let order = sort_order(metadata.current_schema()?, terms)?;
    let mut updates = Vec::new();
    if metadata.default_sort_order().is_none_or(|present| present.fields != order.fields) {
        updates.push(TableUpdate::AddSortOrder { sort_order: order });
        updates.push(TableUpdate::SetDefaultSortOrder { sort_order_id: LAST_ADDED });
    }
    if let Some(mode) = distribution {
        let mode = [(properties::DISTRIBUTION_MODE.to_owned(), mode.to_string())];
        updates.extend(super::set_properties(metadata, &mode.into())?);
    }
    Ok(updates)
}
