//! Changes of table metadata, as a commit asks for them.
//!
//! The set and the JSON spelling are those of the REST protocol's `TableUpdate`; every catalog takes them, and
//! [`TableMetadataBuilder`](super::TableMetadataBuilder) applies them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::json::{self, Node};
use super::partition::PartitionSpec;
use super::schema::Schema;
use super::snapshot::{Snapshot, SnapshotRef};
use super::sort::SortOrder;
use super::table_metadata::FormatVersion;
use crate::{Error, Result};

/// In place of a schema, spec or sort order id: the one added last in the same commit.
pub const LAST_ADDED: i32 = -1;

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum TableUpdate {
    /// Gives a table without uuid its identity; a table that has another is refused.
    AssignUuid {
        /// The identity.
        uuid: Uuid,
    },
    /// Raises the format version.
    UpgradeFormatVersion {
        /// The version, not below the present one.
        format_version: FormatVersion,
    },
    /// Adds a schema; its id is ignored, and equal columns give the schema that is there.
    AddSchema {
        /// The schema, with the table's field ids.
        schema: Schema,
    },
    /// Makes a schema the current one.
    SetCurrentSchema {
        /// Its id, or [`LAST_ADDED`].
        schema_id: i32,
    },
    /// Adds a partition spec; its id is ignored, and equal fields give the spec that is there.
    AddSpec {
        /// The spec; a field id of 0 is given by the table.
        spec: PartitionSpec,
    },
    /// Makes a spec the one new files are written under.
    SetDefaultSpec {
        /// Its id, or [`LAST_ADDED`].
        spec_id: i32,
    },
    /// Adds a sort order; its id is ignored, and equal fields give the order that is there.
    AddSortOrder {
        /// The order.
        sort_order: SortOrder,
    },
    /// Makes an order the one new files are sorted by.
    SetDefaultSortOrder {
        /// Its id, or [`LAST_ADDED`].
        sort_order_id: i32,
    },
    /// Adds a snapshot, to no branch yet.
    AddSnapshot {
        /// The snapshot.
        snapshot: Snapshot,
    },
    /// Creates or moves a branch or tag.
    SetSnapshotRef {
        /// Its name.
        ref_name: String,
        /// What it is from now on.
        reference: SnapshotRef,
    },
    /// Removes snapshots, with their statistics and the refs to them; a head of `main` is refused.
    RemoveSnapshots {
        /// Their ids; unknown ones are ignored.
        snapshot_ids: Vec<i64>,
    },
    /// Removes a branch or tag; for `main`, the table then shows no rows.
    RemoveSnapshotRef {
        /// Its name; an unknown one is ignored.
        ref_name: String,
    },
    /// Moves the table's base location; files stay where they are.
    SetLocation {
        /// The location.
        location: String,
    },
    /// Sets table properties.
    SetProperties {
        /// Names and values.
        updates: BTreeMap<String, String>,
    },
    /// Removes table properties.
    RemoveProperties {
        /// Their names.
        removals: Vec<String>,
    },
    /// Sets the statistics file of a snapshot.
    SetStatistics {
        /// The file as metadata holds it, with its `snapshot-id`.
        statistics: Value,
    },
    /// Removes the statistics file of a snapshot.
    RemoveStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Sets the partition statistics file of a snapshot.
    SetPartitionStatistics {
        /// The file as metadata holds it, with its `snapshot-id`.
        partition_statistics: Value,
    },
    /// Removes the partition statistics file of a snapshot.
    RemovePartitionStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Removes specs that no file uses any more; the default one is refused.
    RemovePartitionSpecs {
        /// Their ids.
        spec_ids: Vec<i32>,
    },
    /// Removes schemas that no snapshot uses any more; the current one is refused.
    RemoveSchemas {
        /// Their ids.
        schema_ids: Vec<i32>,
    },
}

impl TableUpdate {
    /// The change as the REST protocol spells it.
    pub fn to_json(&self) -> Value {
        let (action, members) = match self {
            Self::AssignUuid { uuid } => ("assign-uuid", member("uuid", json!(uuid.to_string()))),
            Self::UpgradeFormatVersion { format_version } => {
                ("upgrade-format-version", member("format-version", json!(format_version.number())))
            }
            Self::AddSchema { schema } => ("add-schema", member("schema", schema.to_json())),
            Self::SetCurrentSchema { schema_id } => ("set-current-schema", member("schema-id", json!(schema_id))),
            Self::AddSpec { spec } => ("add-spec", member("spec", spec.to_json())),
            Self::SetDefaultSpec { spec_id } => ("set-default-spec", member("spec-id", json!(spec_id))),
            Self::AddSortOrder { sort_order } => ("add-sort-order", member("sort-order", sort_order.to_json())),
            Self::SetDefaultSortOrder { sort_order_id } => {
                ("set-default-sort-order", member("sort-order-id", json!(sort_order_id)))
            }
            // The v1 form only leaves out a sequence number of 0.
            Self::AddSnapshot { snapshot } => ("add-snapshot", member("snapshot", snapshot.to_json(FormatVersion::V1))),
            Self::SetSnapshotRef { ref_name, reference } => {
                let mut members = member("ref-name", json!(ref_name));
                if let Value::Object(reference) = reference.to_json() {
                    members.extend(reference);
                }
                ("set-snapshot-ref", members)
            }
            Self::RemoveSnapshots { snapshot_ids } => ("remove-snapshots", member("snapshot-ids", json!(snapshot_ids))),
            Self::RemoveSnapshotRef { ref_name } => ("remove-snapshot-ref", member("ref-name", json!(ref_name))),
            Self::SetLocation { location } => ("set-location", member("location", json!(location))),
            Self::SetProperties { updates } => ("set-properties", member("updates", json::from_string_map(updates))),
            Self::RemoveProperties { removals } => ("remove-properties", member("removals", json!(removals))),
            Self::SetStatistics { statistics } => {
                let mut members = member("statistics", statistics.clone());
                // Older servers take the snapshot from here.
                if let Some(id) = statistics.get("snapshot-id") {
                    members.insert("snapshot-id".to_string(), id.clone());
                }
                ("set-statistics", members)
            }
            Self::RemoveStatistics { snapshot_id } => ("remove-statistics", member("snapshot-id", json!(snapshot_id))),
            Self::SetPartitionStatistics { partition_statistics } => {
                ("set-partition-statistics", member("partition-statistics", partition_statistics.clone()))
            }
            Self::RemovePartitionStatistics { snapshot_id } => {
                ("remove-partition-statistics", member("snapshot-id", json!(snapshot_id)))
            }
            Self::RemovePartitionSpecs { spec_ids } => ("remove-partition-specs", member("spec-ids", json!(spec_ids))),
            Self::RemoveSchemas { schema_ids } => ("remove-schemas", member("schema-ids", json!(schema_ids))),
        };
        tagged("action", action, members)
    }

    /// Reads the REST protocol's spelling. `DataInvalid` names the field; `Unsupported` for an action not known.
    pub fn from_json(value: &Value) -> Result<Self> {
        let node = Node::root("table update", value);
        let action = node.req("action")?;
        Ok(match action.str()?.to_ascii_lowercase().as_str() {
            "assign-uuid" => Self::AssignUuid { uuid: read_uuid(&node.req("uuid")?)? },
            "upgrade-format-version" => Self::UpgradeFormatVersion {
                format_version: FormatVersion::from_number(node.req("format-version")?.i64()?)?,
            },
            "add-schema" => Self::AddSchema { schema: Schema::from_node(&node.req("schema")?)? },
            "set-current-schema" => Self::SetCurrentSchema { schema_id: node.req("schema-id")?.i32()? },
            "add-spec" => Self::AddSpec { spec: PartitionSpec::from_unbound_node(&node.req("spec")?)? },
            "set-default-spec" => Self::SetDefaultSpec { spec_id: node.req("spec-id")?.i32()? },
            "add-sort-order" => Self::AddSortOrder { sort_order: SortOrder::from_node(&node.req("sort-order")?)? },
            "set-default-sort-order" => Self::SetDefaultSortOrder { sort_order_id: node.req("sort-order-id")?.i32()? },
            "add-snapshot" => Self::AddSnapshot { snapshot: Snapshot::from_node(&node.req("snapshot")?)? },
            "set-snapshot-ref" => Self::SetSnapshotRef {
                ref_name: node.req("ref-name")?.str()?.to_string(),
                reference: SnapshotRef::from_node(&node)?,
            },
            "remove-snapshots" => Self::RemoveSnapshots { snapshot_ids: node.req("snapshot-ids")?.i64s()? },
            "remove-snapshot-ref" => Self::RemoveSnapshotRef { ref_name: node.req("ref-name")?.str()?.to_string() },
            "set-location" => Self::SetLocation { location: node.req("location")?.str()?.to_string() },
            // Both spellings are in use: the protocol first had the participles.
            "set-properties" => Self::SetProperties {
                updates: match node.opt("updated")? {
                    Some(updates) => updates.string_map()?,
                    None => node.req("updates")?.string_map()?,
                },
            },
            "remove-properties" => Self::RemoveProperties {
                removals: match node.opt("removed")? {
                    Some(removals) => removals.strings()?,
                    None => node.req("removals")?.strings()?,
                },
            },
            "set-statistics" => Self::SetStatistics { statistics: statistics_file(&node.req("statistics")?)? },
            "remove-statistics" => Self::RemoveStatistics { snapshot_id: node.req("snapshot-id")?.i64()? },
            "set-partition-statistics" => Self::SetPartitionStatistics {
                partition_statistics: statistics_file(&node.req("partition-statistics")?)?,
            },
            "remove-partition-statistics" => {
                Self::RemovePartitionStatistics { snapshot_id: node.req("snapshot-id")?.i64()? }
            }
            "remove-partition-specs" => Self::RemovePartitionSpecs { spec_ids: node.i32_list("spec-ids")? },
            "remove-schemas" => Self::RemoveSchemas { schema_ids: node.i32_list("schema-ids")? },
            other => return Err(Error::unsupported(format!("table update {other:?}"))),
        })
    }
}

fn member(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_string(), value)])
}

/// An object with its kind under `tag`.
pub(crate) fn tagged(tag: &str, kind: &str, mut members: Map<String, Value>) -> Value {
    members.insert(tag.to_string(), json!(kind));
    Value::Object(members)
}

pub(crate) fn read_uuid(node: &Node<'_, '_>) -> Result<Uuid> {
    Uuid::parse_str(node.str()?).map_err(|e| node.error(format_args!("not a uuid: {e}")))
}

fn statistics_file(node: &Node<'_, '_>) -> Result<Value> {
    node.req("snapshot-id")?.i64()?;
    Ok(node.value().clone())
}

impl Serialize for TableUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TableUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn every_update_survives_in_the_spelling_of_the_protocol() {
        let schema = json!({"type": "struct", "schema-id": 1, "fields": []});
        let updates = json!([
            {"action": "assign-uuid", "uuid": "23c2e1f2-19cb-4846-9a32-4b9a457c9f8e"},
            {"action": "upgrade-format-version", "format-version": 3},
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": [
                {"name": "a", "transform": "day", "source-id": 1}, {"name": "b", "transform": "void", "source-id": 2, "field-id": 1001}]}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "sequence-number": 2, "timestamp-ms": 3,
                "manifest-list": "l", "summary": {"operation": "append"}}},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1, "max-ref-age-ms": 2},
            {"action": "remove-snapshots", "snapshot-ids": [1, 2]},
            {"action": "remove-snapshot-ref", "ref-name": "x"},
            {"action": "set-location", "location": "s3://b/t"},
            {"action": "set-properties", "updates": {"a": "b"}},
            {"action": "remove-properties", "removals": ["a"]},
            {"action": "set-statistics", "snapshot-id": 1, "statistics": {"snapshot-id": 1, "statistics-path": "p"}},
            {"action": "remove-statistics", "snapshot-id": 1},
            {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": 1}},
            {"action": "remove-partition-statistics", "snapshot-id": 1},
            {"action": "remove-partition-specs", "spec-ids": [1]},
            {"action": "remove-schemas", "schema-ids": [1]},
        ]);
        let read: Vec<TableUpdate> = serde_json::from_value(updates.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), updates);
        assert!(matches!(&read[4], TableUpdate::AddSpec { spec } if spec.fields[0].field_id == 0));
    }

    #[test]
    fn old_spellings_and_nonsense() {
        let read = TableUpdate::from_json(&json!({"action": "set-properties", "updated": {"a": "b"}})).unwrap();
        assert!(matches!(read, TableUpdate::SetProperties { updates } if updates["a"] == "b"));
        let e = TableUpdate::from_json(&json!({"action": "add-view-version"})).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        let e = TableUpdate::from_json(&json!({"action": "set-current-schema", "schema-id": "1"})).unwrap_err();
        assert!(e.message().contains("schema-id"), "{e}");
        assert!(TableUpdate::from_json(&json!({"action": "set-statistics", "statistics": {}})).is_err());
    }
}
