//! What must hold of a table for a commit to go through.
//!
//! The set and the JSON spelling are those of the REST protocol's `TableRequirement`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::json::{self, Node};
use super::table_metadata::TableMetadata;
use super::update::{read_uuid, tagged};
use crate::{Error, Result};

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRequirement {
    /// The table does not exist.
    AssertCreate,
    /// The table is this one, not another of its name.
    AssertTableUuid {
        /// Its identity.
        uuid: Uuid,
    },
    /// A branch or tag is where it was.
    AssertRefSnapshotId {
        /// Name of the branch or tag.
        r#ref: String,
        /// The snapshot; `None`: there is no such ref.
        snapshot_id: Option<i64>,
    },
    /// No field id has been given out.
    AssertLastAssignedFieldId {
        /// The last one given out.
        last_assigned_field_id: i32,
    },
    /// The current schema is the same.
    AssertCurrentSchemaId {
        /// Its id.
        current_schema_id: i32,
    },
    /// No partition field id has been given out.
    AssertLastAssignedPartitionId {
        /// The last one given out.
        last_assigned_partition_id: i32,
    },
    /// The default spec is the same.
    AssertDefaultSpecId {
        /// Its id.
        default_spec_id: i32,
    },
    /// The default sort order is the same.
    AssertDefaultSortOrderId {
        /// Its id.
        default_sort_order_id: i32,
    },
}

impl TableRequirement {
    /// Checks the requirement against the table as it is now (`None`: it does not exist). A requirement that does not
    /// hold is a `Conflict` with context `stale`: the commit may be made anew from the present state.
    pub fn check(&self, metadata: Option<&TableMetadata>) -> Result<()> {
        let stale = |message: String| Err(Error::conflict(message).with_context("stale", self.kind()));
        let metadata = match (self, metadata) {
            (Self::AssertCreate, None) => return Ok(()),
            (Self::AssertCreate, Some(_)) => return stale("the table exists already".to_string()),
            (_, None) => return stale("the table does not exist any more".to_string()),
            (_, Some(metadata)) => metadata,
        };
        let same = |what: &str, wanted: i32, found: i32| match wanted == found {
            true => Ok(()),
            false => stale(format!("{what} was {wanted} and is {found} now")),
        };
        match self {
            Self::AssertCreate => Ok(()),
            Self::AssertTableUuid { uuid } => match metadata.table_uuid {
                Some(found) if found == *uuid => Ok(()),
                found => stale(format!(
                    "the table was replaced: its uuid was {uuid} and is {} now",
                    found.map_or("none".to_string(), |uuid| uuid.to_string())
                )),
            },
            Self::AssertRefSnapshotId { r#ref, snapshot_id } => {
                let found = metadata.refs.get(r#ref).map(|r| r.snapshot_id);
                let shown = |id: Option<i64>| id.map_or("absent".to_string(), |id| format!("at snapshot {id}"));
                match found == *snapshot_id {
                    true => Ok(()),
                    false => stale(format!("ref {} was {} and is {} now", r#ref, shown(*snapshot_id), shown(found))),
                }
            }
            Self::AssertLastAssignedFieldId { last_assigned_field_id } => {
                same("the last assigned field id", *last_assigned_field_id, metadata.last_column_id)
            }
            Self::AssertCurrentSchemaId { current_schema_id } => {
                same("the current schema id", *current_schema_id, metadata.current_schema_id)
            }
            Self::AssertLastAssignedPartitionId { last_assigned_partition_id } => {
                same("the last assigned partition id", *last_assigned_partition_id, metadata.last_partition_id)
            }
            Self::AssertDefaultSpecId { default_spec_id } => {
                same("the default spec id", *default_spec_id, metadata.default_spec_id)
            }
            Self::AssertDefaultSortOrderId { default_sort_order_id } => {
                same("the default sort order id", *default_sort_order_id, metadata.default_sort_order_id)
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::AssertCreate => "assert-create",
            Self::AssertTableUuid { .. } => "assert-table-uuid",
            Self::AssertRefSnapshotId { .. } => "assert-ref-snapshot-id",
            Self::AssertLastAssignedFieldId { .. } => "assert-last-assigned-field-id",
            Self::AssertCurrentSchemaId { .. } => "assert-current-schema-id",
            Self::AssertLastAssignedPartitionId { .. } => "assert-last-assigned-partition-id",
            Self::AssertDefaultSpecId { .. } => "assert-default-spec-id",
            Self::AssertDefaultSortOrderId { .. } => "assert-default-sort-order-id",
        }
    }

    /// The requirement as the REST protocol spells it.
    pub fn to_json(&self) -> Value {
        let members = match self {
            Self::AssertCreate => Map::new(),
            Self::AssertTableUuid { uuid } => json::object([("uuid", Some(json!(uuid.to_string())))]),
            Self::AssertRefSnapshotId { r#ref, snapshot_id } => {
                json::object([("ref", Some(json!(r#ref))), ("snapshot-id", Some(json!(snapshot_id)))])
            }
            Self::AssertLastAssignedFieldId { last_assigned_field_id: id } => id_member("last-assigned-field-id", *id),
            Self::AssertCurrentSchemaId { current_schema_id: id } => id_member("current-schema-id", *id),
            Self::AssertLastAssignedPartitionId { last_assigned_partition_id: id } => {
                id_member("last-assigned-partition-id", *id)
            }
            Self::AssertDefaultSpecId { default_spec_id: id } => id_member("default-spec-id", *id),
            Self::AssertDefaultSortOrderId { default_sort_order_id: id } => id_member("default-sort-order-id", *id),
        };
        tagged("type", self.kind(), members)
    }

    /// Reads the REST protocol's spelling. `DataInvalid` names the field; `Unsupported` for a kind not known.
    pub fn from_json(value: &Value) -> Result<Self> {
        let node = Node::root("table requirement", value);
        let kind = node.req("type")?;
        let id = |key: &str| node.req(key)?.i32();
        Ok(match kind.str()?.to_ascii_lowercase().as_str() {
            "assert-create" => Self::AssertCreate,
            "assert-table-uuid" => Self::AssertTableUuid { uuid: read_uuid(&node.req("uuid")?)? },
            "assert-ref-snapshot-id" => Self::AssertRefSnapshotId {
                r#ref: node.req("ref")?.str()?.to_string(),
                snapshot_id: node.opt_i64("snapshot-id")?,
            },
            "assert-last-assigned-field-id" => {
                Self::AssertLastAssignedFieldId { last_assigned_field_id: id("last-assigned-field-id")? }
            }
            "assert-current-schema-id" => Self::AssertCurrentSchemaId { current_schema_id: id("current-schema-id")? },
            "assert-last-assigned-partition-id" => {
                Self::AssertLastAssignedPartitionId { last_assigned_partition_id: id("last-assigned-partition-id")? }
            }
            "assert-default-spec-id" => Self::AssertDefaultSpecId { default_spec_id: id("default-spec-id")? },
            "assert-default-sort-order-id" => {
                Self::AssertDefaultSortOrderId { default_sort_order_id: id("default-sort-order-id")? }
            }
            other => return Err(Error::unsupported(format!("table requirement {other:?}"))),
        })
    }
}

fn id_member(key: &str, id: i32) -> Map<String, Value> {
    json::object([(key, Some(json!(id)))])
}

impl Serialize for TableRequirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TableRequirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::spec::snapshot::MAIN_BRANCH;

    fn golden() -> TableMetadata {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden/refs_table/metadata/v8.metadata.json");
        TableMetadata::parse(&std::fs::read(path).unwrap(), path).unwrap()
    }

    fn requirements(base: &TableMetadata) -> Vec<TableRequirement> {
        vec![
            TableRequirement::AssertTableUuid { uuid: base.table_uuid.unwrap() },
            TableRequirement::AssertRefSnapshotId {
                r#ref: MAIN_BRANCH.to_string(),
                snapshot_id: Some(base.current_snapshot_id.unwrap()),
            },
            TableRequirement::AssertRefSnapshotId { r#ref: "none".to_string(), snapshot_id: None },
            TableRequirement::AssertLastAssignedFieldId { last_assigned_field_id: base.last_column_id },
            TableRequirement::AssertCurrentSchemaId { current_schema_id: base.current_schema_id },
            TableRequirement::AssertLastAssignedPartitionId { last_assigned_partition_id: base.last_partition_id },
            TableRequirement::AssertDefaultSpecId { default_spec_id: base.default_spec_id },
            TableRequirement::AssertDefaultSortOrderId { default_sort_order_id: base.default_sort_order_id },
        ]
    }

    #[test]
    fn hold_until_the_table_changes() {
        let base = golden();
        let mut changed = base.clone();
        changed.table_uuid = None;
        changed.refs.insert("none".to_string(), changed.refs[MAIN_BRANCH].clone());
        changed.refs.remove(MAIN_BRANCH);
        changed.last_column_id += 1;
        changed.current_schema_id += 1;
        changed.last_partition_id += 1;
        changed.default_spec_id += 1;
        changed.default_sort_order_id += 1;
        for requirement in requirements(&base) {
            requirement.check(Some(&base)).unwrap();
            for other in [Some(&changed), None] {
                let e = requirement.check(other).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Conflict, "{requirement:?}");
                assert!(e.context("stale").is_some());
            }
        }
        TableRequirement::AssertCreate.check(None).unwrap();
        assert_eq!(TableRequirement::AssertCreate.check(Some(&base)).unwrap_err().kind(), ErrorKind::Conflict);
    }

    #[test]
    fn survive_in_the_spelling_of_the_protocol() {
        let mut all = requirements(&golden());
        all.push(TableRequirement::AssertCreate);
        let json = serde_json::to_value(&all).unwrap();
        assert_eq!(serde_json::from_value::<Vec<TableRequirement>>(json.clone()).unwrap(), all);
        assert_eq!(json[2], json!({"type": "assert-ref-snapshot-id", "ref": "none", "snapshot-id": null}));
        assert_eq!(json[8], json!({"type": "assert-create"}));
        assert!(TableRequirement::from_json(&json!({"type": "assert-moon-phase"})).is_err());
    }
}
