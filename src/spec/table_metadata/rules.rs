//! What a change of table metadata must keep to. Every fault is `InvalidInput` and names what is wrong.

use std::collections::{BTreeMap, HashSet};

use super::{FormatVersion, TableMetadata};
use crate::spec::partition::{LAST_UNASSIGNED_PARTITION_ID, PartitionField, PartitionSpec};
use crate::spec::properties::{RESERVED, TableProperties};
use crate::spec::schema::Schema;
use crate::spec::snapshot::Snapshot;
use crate::spec::sort::SortOrder;
use crate::spec::transform::Transform;
use crate::{Error, Result};

/// Greatest field id of a column; ids above are reserved for metadata columns.
pub(super) const MAX_FIELD_ID: i32 = i32::MAX - 200;

/// How far a snapshot's timestamp may lie before the last change; other readers refuse a table beyond that.
const CLOCK_TOLERANCE_MS: i64 = 60_000;

/// Checks properties that are being set.
pub(super) fn check_properties(updates: &BTreeMap<String, String>) -> Result<()> {
    if let Some(name) = updates.keys().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(Error::invalid_input(format!("property {name} is reserved; it follows from the table's state")));
    }
    TableProperties::from_map(updates).map(|_| ())
}

/// Checks the outcome of a commit against the state it started from.
pub(super) fn check(metadata: &TableMetadata, base: Option<&TableMetadata>) -> Result<()> {
    let version = metadata.format_version;
    if version > FormatVersion::V1 && metadata.table_uuid.is_none() {
        return Err(Error::invalid_input(format!(
            "a table of format version {version} needs a uuid; assign one first"
        )));
    }
    for schema in &metadata.schemas {
        if base.is_none_or(|base| !base.schemas.contains(schema)) {
            schema.check_compatible(version)?;
        }
    }
    let schema = metadata.current_schema()?;
    let spec = metadata.default_spec()?;
    let same_schema = base.is_some_and(|base| base.current_schema().is_ok_and(|s| s == schema));
    if !same_schema || base.is_none_or(|base| base.default_spec().is_ok_and(|s| s != spec)) {
        check_spec_of_schema(spec, schema)?;
        let before = base.and_then(|base| Some((base.default_spec().ok()?, base.current_schema().ok()?)));
        let old = before.and_then(|(spec, schema)| name_conflict(spec, schema));
        match name_conflict(spec, schema) {
            Some(new) if Some(new) != old => {
                return Err(Error::invalid_input(format!(
                    "partition field {new} has the name of a column it is not the identity of; rename one of them"
                )));
            }
            _ => {}
        }
    }
    if let Some(order) = metadata.default_sort_order()
        && (!same_schema || base.is_none_or(|base| base.default_sort_order() != Some(order)))
    {
        for field in order.fields.iter().filter(|f| f.transform != Transform::Void) {
            if schema.field_by_id(field.source_id).is_none() {
                return Err(Error::invalid_input(format!(
                    "the table is sorted by the column with id {}, which the schema does not have; change the order first",
                    field.source_id
                )));
            }
        }
    }
    Ok(())
}

/// A default spec must be computable from the current schema; older specs need not.
fn check_spec_of_schema(spec: &PartitionSpec, schema: &Schema) -> Result<()> {
    for field in spec.fields.iter().filter(|f| f.transform != Transform::Void) {
        let Some(source) = schema.field_by_id(field.source_id) else {
            return Err(Error::invalid_input(format!(
                "partition field {} comes from the column with id {}, which the schema does not have; drop the partition field first",
                field.name, field.source_id
            )));
        };
        let takes = source.field_type.as_primitive().and_then(|p| field.transform.result_type(p)).is_some();
        if !takes && !matches!(field.transform, Transform::Unknown(_)) {
            return Err(Error::invalid_input(format!(
                "partition field {}: {} does not take column {} of type {}",
                field.name, field.transform, source.name, source.field_type
            )));
        }
    }
    Ok(())
}

/// Name of a partition field that equals the name of a column other than its own source.
fn name_conflict<'a>(spec: &'a PartitionSpec, schema: &Schema) -> Option<&'a str> {
    let conflicts = |field: &&PartitionField| {
        let column = schema.fields.fields.iter().find(|c| c.name == field.name);
        let own = matches!(field.transform, Transform::Identity | Transform::Void);
        column.is_some_and(|column| !own || column.id != field.source_id)
    };
    spec.fields.iter().find(conflicts).map(|f| f.name.as_str())
}

/// Checks a spec to be added, whose field ids may be unassigned.
pub(super) fn check_new_spec(metadata: &TableMetadata, spec: &PartitionSpec) -> Result<()> {
    let mut names = HashSet::new();
    let mut made = HashSet::new();
    for field in &spec.fields {
        let invalid =
            |message: String| Err(Error::invalid_input(format!("partition field {:?}: {message}", field.name)));
        if field.name.is_empty() {
            return invalid("a name is needed".to_string());
        }
        if !names.insert(field.name.as_str()) {
            return invalid("two partition fields have this name".to_string());
        }
        let time = matches!(field.transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour);
        let kind = if time { "time".to_string() } else { field.transform.to_string() };
        if field.transform != Transform::Void && !made.insert((field.source_id, kind)) {
            return invalid("it says nothing that another partition field of the same column does not say".to_string());
        }
        let (source, under) = match source_of(metadata, field.source_id) {
            Some(found) => found,
            None => return invalid(format!("there is no column with id {}", field.source_id)),
        };
        if under {
            return invalid(format!("column {} lies inside a list or map", source.name));
        }
        match source.field_type.as_primitive() {
            _ if matches!(field.transform, Transform::Unknown(_)) => {
                return invalid(format!("transform {} is not known", field.transform));
            }
            Some(p) if field.transform.result_type(p).is_some() => {}
            None if field.transform == Transform::Void => {}
            _ => return invalid(format!("{} does not take type {}", field.transform, source.field_type)),
        }
    }
    Ok(())
}

/// Checks the field ids of a spec once all are assigned: unique, not those of other fields, in sequence for v1.
pub(super) fn check_spec_ids(metadata: &TableMetadata, spec: &PartitionSpec) -> Result<()> {
    let mut ids = HashSet::new();
    for (i, field) in (0i32..).zip(&spec.fields) {
        let invalid = |message: String| Err(Error::invalid_input(format!("partition field {}: {message}", field.name)));
        let id = field.field_id;
        if id <= LAST_UNASSIGNED_PARTITION_ID || !ids.insert(id) {
            return invalid(format!("id {id} is below 1000 or taken by another field of the spec"));
        }
        let other = metadata.partition_specs.iter().flat_map(|s| &s.fields).find(|f| {
            let void = f.transform == Transform::Void || field.transform == Transform::Void;
            f.field_id == id && (f.source_id != field.source_id || (f.transform != field.transform && !void))
        });
        if let Some(other) = other {
            return invalid(format!("id {id} belongs to field {} of an earlier spec", other.name));
        }
        if metadata.format_version == FormatVersion::V1 && id != LAST_UNASSIGNED_PARTITION_ID + 1 + i {
            return invalid(format!(
                "format version 1 needs ids in sequence from 1000, not {id}; replace dropped fields by void"
            ));
        }
    }
    Ok(())
}

/// Checks a sort order to be added.
pub(super) fn check_new_sort_order(metadata: &TableMetadata, order: &SortOrder) -> Result<()> {
    for field in &order.fields {
        let invalid = |message: String| Err(Error::invalid_input(format!("sort field {}: {message}", field.transform)));
        let (source, under) = match source_of(metadata, field.source_id) {
            Some(found) => found,
            None => return invalid(format!("there is no column with id {}", field.source_id)),
        };
        let takes = source.field_type.as_primitive().and_then(|p| field.transform.result_type(p)).is_some();
        if under || !takes {
            return invalid(format!("column {} of type {} cannot be sorted by so", source.name, source.field_type));
        }
    }
    Ok(())
}

/// The field with its place: whether it lies inside a list or map. Looks into the newest schema first, because a commit
/// adds the schema before the spec that needs it, and into all because a v1 spec keeps dropped columns.
fn source_of(metadata: &TableMetadata, id: i32) -> Option<(&crate::spec::types::NestedField, bool)> {
    metadata.schemas.iter().rev().find_map(|s| Some((s.field_by_id(id)?.as_ref(), s.is_under_list_or_map(id))))
}

/// Checks a snapshot to be added.
pub(super) fn check_new_snapshot(metadata: &TableMetadata, snapshot: &Snapshot) -> Result<()> {
    let id = snapshot.snapshot_id;
    let invalid = |message: String| Err(Error::invalid_input(format!("snapshot {id} cannot be added: {message}")));
    if metadata.snapshot_by_id(id).is_some() {
        return invalid("there is one of this id".to_string());
    }
    let (sequence, last) = (snapshot.sequence_number, metadata.last_sequence_number);
    match metadata.format_version {
        FormatVersion::V1 if sequence != 0 => {
            return invalid(format!("format version 1 has no sequence numbers, but it has {sequence}"));
        }
        FormatVersion::V2 | FormatVersion::V3 if sequence <= last => {
            return invalid(format!("its sequence number {sequence} is not above the table's last, {last}"));
        }
        _ => {}
    }
    if let Some(schema_id) = snapshot.schema_id
        && metadata.schema_by_id(schema_id).is_none()
    {
        return invalid(format!("there is no schema with id {schema_id}"));
    }
    let behind = metadata.last_updated_ms.saturating_sub(snapshot.timestamp_ms);
    if metadata.last_updated_ms != i64::MIN && behind > CLOCK_TOLERANCE_MS {
        return invalid(format!("its timestamp lies {behind} ms before the table's last change; check the clock"));
    }
    match (metadata.format_version, snapshot.first_row_id, snapshot.added_rows) {
        (FormatVersion::V3, Some(first), Some(_)) if first >= metadata.next_row_id => Ok(()),
        (FormatVersion::V3, Some(first), Some(_)) => {
            invalid(format!("its first row id {first} is below the table's next, {}", metadata.next_row_id))
        }
        (FormatVersion::V3, _, _) => invalid("format version 3 needs first-row-id and added-rows".to_string()),
        (_, None, None) => Ok(()),
        (version, _, _) => invalid(format!("format version {version} has no row ids")),
    }
}
