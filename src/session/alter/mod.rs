//! What ALTER TABLE makes of a table's metadata: pure, from metadata and statement to updates.
//!
//! Sources: Java `SchemaUpdate`, `BaseUpdatePartitionSpec`, `BaseReplaceSortOrder`; spec sections "Schema Evolution",
//! "Partition Evolution". What the specification forbids, or would make data unreadable, is `InvalidInput`.

mod partition;
mod schema;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use datafusion::scalar::ScalarValue;

use super::parser::{TableChange, quote_name};
use crate::spec::{FormatVersion, LAST_ADDED, Schema, TableMetadata, TableUpdate, properties};
use crate::{Error, Result};

pub(crate) use partition::{partition_field_name, sort_order, source_column};
pub(crate) use schema::default_literal;

/// The updates that carry `change` out; none when the table is so already. `constants` are the values of the statement's
/// DEFAULTs, in their order.
pub(crate) fn plan_change(
    metadata: &TableMetadata,
    change: &TableChange,
    constants: &[ScalarValue],
) -> Result<Vec<TableUpdate>> {
    match change {
        TableChange::SetProperties(properties) => set_properties(metadata, properties),
        TableChange::UnsetProperties { names, if_exists } => {
            let missing = names.iter().find(|name| !metadata.properties.contains_key(*name));
            if let (Some(name), false) = (missing, if_exists) {
                return Err(Error::invalid_input(format!(
                    "the table has no property {name}; UNSET TBLPROPERTIES IF EXISTS ignores that"
                )));
            }
            let removals: Vec<String> =
                names.iter().filter(|name| metadata.properties.contains_key(*name)).cloned().collect();
            Ok(if removals.is_empty() { Vec::new() } else { vec![TableUpdate::RemoveProperties { removals }] })
        }
        TableChange::SetLocation(location) => {
            let location = location.trim_end_matches('/').to_owned();
            let same = location == metadata.location;
            Ok(if same { Vec::new() } else { vec![TableUpdate::SetLocation { location }] })
        }
        TableChange::AddPartitionField(term) => partition::add_field(metadata, term),
        TableChange::DropPartitionField(term) => partition::drop_field(metadata, term),
        TableChange::ReplacePartitionField { from, to } => partition::replace_field(metadata, from, to),
        TableChange::Write { order, distribution } => partition::write_order(metadata, order, *distribution),
        TableChange::RenameTo(name) => Err(Error::internal(format!("{name} is no matter of metadata"))),
        columns => {
            let changed = schema::change(metadata, columns, constants)?;
            let mut updates = new_schema(metadata, changed.schema)?;
            updates.extend(changed.properties);
            Ok(updates)
        }
    }
}

fn new_schema(metadata: &TableMetadata, schema: Schema) -> Result<Vec<TableUpdate>> {
    if metadata.current_schema()?.same_columns(&schema) {
        return Ok(Vec::new());
    }
    Ok(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: LAST_ADDED }])
}

fn set_properties(metadata: &TableMetadata, given: &BTreeMap<String, String>) -> Result<Vec<TableUpdate>> {
    let mut updates = Vec::new();
    let mut given = given.clone();
    if let Some(text) = given.remove(properties::FORMAT_VERSION) {
        let format_version = match text.trim().parse() {
            Ok(number @ 1..) => FormatVersion::from_number(number)?,
            _ => return Err(Error::invalid_input(format!("format-version {text:?} is none of 1, 2 and 3"))),
        };
        if format_version != metadata.format_version {
            updates.push(TableUpdate::UpgradeFormatVersion { format_version });
        }
    }
    given.retain(|name, value| metadata.properties.get(name) != Some(value));
    if !given.is_empty() {
        updates.push(TableUpdate::SetProperties { updates: given });
    }
    Ok(updates)
}

/// A dotted name for people.
fn dotted(parts: &[String]) -> String {
    parts.iter().map(|part| quote_name(part)).collect::<Vec<_>>().join(".")
}
