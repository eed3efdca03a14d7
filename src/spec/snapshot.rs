//! Snapshots, their summaries, and named references to them.
//!
//! Implements the spec sections "Snapshots" and "Snapshot References". Invariant: summaries are informational; nothing
//! derives rows from them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::json::{self, Node};
use super::table_metadata::FormatVersion;
use crate::Result;

/// What a snapshot did, as its summary says. Order of declaration carries no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Only added data files.
    Append,
    /// Rewrote files without changing rows.
    Replace,
    /// Added and removed rows.
    Overwrite,
    /// Only removed rows.
    Delete,
}

/// One state of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Unique id, positive for our own.
    pub snapshot_id: i64,
    /// The snapshot it was made from; may name an expired one.
    pub parent_snapshot_id: Option<i64>,
    /// Order of commits; 0 in v1 tables.
    pub sequence_number: i64,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Where its manifests are listed.
    pub manifests: ManifestSource,
    /// What it did; `None` when an old writer left it out.
    pub operation: Option<Operation>,
    /// The other summary entries, `operation` excluded (unless its value is none of [`Operation`], to keep it on rewrite).
    pub summary: BTreeMap<String, String>,
    /// Schema current when it was made.
    pub schema_id: Option<i32>,
    /// v3: first row id given to rows it added.
    pub first_row_id: Option<u64>,
    /// v3: number of row ids it took.
    pub added_rows: Option<u64>,
    /// v3: key id for an encrypted manifest list.
    pub key_id: Option<String>,
    /// JSON fields this version does not know, kept on rewrite.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Where a snapshot's manifests are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestSource {
    /// Location of a manifest list.
    List(String),
    /// v1: the manifests' own locations.
    Inline(Vec<String>),
}

/// Branch or tag, with its retention. `None` takes the table's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefKind {
    /// A movable head.
    Branch {
        /// Snapshots to keep at least, > 0.
        min_snapshots_to_keep: Option<i32>,
        /// Age to keep snapshots for, ms.
        max_snapshot_age_ms: Option<i64>,
        /// Age to keep the ref itself for, ms; never applies to `main`.
        max_ref_age_ms: Option<i64>,
    },
    /// A fixed name.
    Tag {
        /// Age to keep the ref for, ms.
        max_ref_age_ms: Option<i64>,
    },
}

/// A named reference to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRef {
    /// The snapshot named.
    pub snapshot_id: i64,
    /// Branch or tag.
    pub kind: RefKind,
}

/// The branch that a table's current state is.
pub const MAIN_BRANCH: &str = "main";

impl Operation {
    /// Name in a summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Overwrite => "overwrite",
            Self::Delete => "delete",
        }
    }

    /// The operation of this name, any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Append, Self::Replace, Self::Overwrite, Self::Delete]
            .into_iter()
            .find(|o| o.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const OPERATION: &str = "operation";

const SNAPSHOT_FIELDS: &[&str] = &[
    "snapshot-id",
    "parent-snapshot-id",
    "sequence-number",
    "timestamp-ms",
    "manifest-list",
    "manifests",
    "summary",
    "schema-id",
    "first-row-id",
    "added-rows",
    "key-id",
];

impl Snapshot {
    /// Location of the manifest list; `None` for a v1 snapshot that names its manifests itself.
    pub fn manifest_list(&self) -> Option<&str> {
        match &self.manifests {
            ManifestSource::List(location) => Some(location),
            ManifestSource::Inline(_) => None,
        }
    }

    /// Reads a snapshot as table metadata and the REST protocol hold it. `DataInvalid` names the field.
    pub fn from_json(value: &Value) -> Result<Self> {
        Self::from_node(&Node::root("snapshot", value))
    }

    pub(crate) fn from_node(node: &Node<'_, '_>) -> Result<Self> {
        let mut summary = match node.opt("summary")? {
            Some(summary) => summary.string_map()?,
            None => BTreeMap::new(),
        };
        let operation = summary.get(OPERATION).and_then(|name| Operation::from_name(name));
        if operation.is_some() {
            summary.remove(OPERATION);
        }
        // Some v1 writers gave both; the list is the later invention and holds the same manifests with their counts.
        let manifests = match (node.opt_string("manifest-list")?, node.opt("manifests")?) {
            (Some(list), _) => ManifestSource::List(list),
            (None, Some(manifests)) => ManifestSource::Inline(manifests.strings()?),
            (None, None) => ManifestSource::List(node.req("manifest-list")?.str()?.to_string()),
        };
        // Java once wrote -1 for "no parent".
        let parent_snapshot_id = node.opt_i64("parent-snapshot-id")?.filter(|id| *id != -1);
        Ok(Self {
            snapshot_id: node.req("snapshot-id")?.i64()?,
            parent_snapshot_id,
            sequence_number: node.opt_unsigned("sequence-number")?.map_or(0, |n| n as i64),
            timestamp_ms: node.req("timestamp-ms")?.i64()?,
            manifests,
            operation,
            summary,
            schema_id: node.opt_i32("schema-id")?,
            first_row_id: node.opt_unsigned("first-row-id")?,
            added_rows: node.opt_unsigned("added-rows")?,
            key_id: node.opt_string("key-id")?,
            extra: node.members_except(SNAPSHOT_FIELDS)?,
        })
    }

    /// The snapshot as JSON. Version 1 leaves out a sequence number of 0.
    pub fn to_json(&self, version: FormatVersion) -> Value {
        let mut summary = self.summary.clone();
        if let Some(operation) = self.operation {
            summary.insert(OPERATION.to_string(), operation.to_string());
        }
        let (list, inline) = match &self.manifests {
            ManifestSource::List(location) => (Some(json!(location)), None),
            ManifestSource::Inline(locations) => (None, Some(json!(locations))),
        };
        let sequence_number = version >= FormatVersion::V2 || self.sequence_number > 0;
        let mut object = self.extra.clone();
        object.extend(json::object([
            ("sequence-number", sequence_number.then(|| json!(self.sequence_number))),
            ("snapshot-id", Some(json!(self.snapshot_id))),
            ("parent-snapshot-id", self.parent_snapshot_id.map(|id| json!(id))),
            ("timestamp-ms", Some(json!(self.timestamp_ms))),
            ("summary", (!summary.is_empty()).then(|| json::from_string_map(&summary))),
            ("manifest-list", list),
            ("manifests", inline),
            ("schema-id", self.schema_id.map(|id| json!(id))),
            ("first-row-id", self.first_row_id.map(|id| json!(id))),
            ("added-rows", self.added_rows.map(|rows| json!(rows))),
            ("key-id", self.key_id.as_ref().map(|id| json!(id))),
        ]));
        Value::Object(object)
    }
}

impl SnapshotRef {
    /// A branch head with the table's retention.
    pub fn branch(snapshot_id: i64) -> Self {
        let kind = RefKind::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        Self { snapshot_id, kind }
    }

    /// A tag with the table's retention.
    pub fn tag(snapshot_id: i64) -> Self {
        Self { snapshot_id, kind: RefKind::Tag { max_ref_age_ms: None } }
    }

    /// Whether this is a branch.
    pub fn is_branch(&self) -> bool {
        matches!(self.kind, RefKind::Branch { .. })
    }

    pub(crate) fn from_node(node: &Node<'_, '_>) -> Result<Self> {
        let kind = node.req("type")?;
        let max_ref_age_ms = node.opt_i64("max-ref-age-ms")?;
        let kind = match kind.str()?.to_ascii_lowercase().as_str() {
            "branch" => RefKind::Branch {
                min_snapshots_to_keep: node.opt_i32("min-snapshots-to-keep")?,
                max_snapshot_age_ms: node.opt_i64("max-snapshot-age-ms")?,
                max_ref_age_ms,
            },
            "tag" => RefKind::Tag { max_ref_age_ms },
            other => return Err(kind.error(format_args!("expected branch or tag, found {other:?}"))),
        };
        Ok(Self { snapshot_id: node.req("snapshot-id")?.i64()?, kind })
    }

    /// The reference as JSON.
    pub fn to_json(&self) -> Value {
        let (kind, keep, snapshot_age, ref_age) = match self.kind {
            RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms } => {
                ("branch", min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
            }
            RefKind::Tag { max_ref_age_ms } => ("tag", None, None, max_ref_age_ms),
        };
        Value::Object(json::object([
            ("snapshot-id", Some(json!(self.snapshot_id))),
            ("type", Some(json!(kind))),
            ("min-snapshots-to-keep", keep.map(|v| json!(v))),
            ("max-snapshot-age-ms", snapshot_age.map(|v| json!(v))),
            ("max-ref-age-ms", ref_age.map(|v| json!(v))),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Value {
        json!({
            "snapshot-id": 7, "parent-snapshot-id": 6, "sequence-number": 3, "timestamp-ms": 99,
            "manifest-list": "m.avro", "summary": {"operation": "overwrite", "added-records": "1"}, "schema-id": 2,
            "first-row-id": 10, "added-rows": 5, "key-id": "k", "later-field": {"a": 1},
        })
    }

    #[test]
    fn snapshots_survive_with_unknown_fields() {
        let snapshot = Snapshot::from_json(&full()).unwrap();
        assert_eq!(snapshot.operation, Some(Operation::Overwrite));
        assert_eq!(snapshot.summary.len(), 1);
        assert_eq!(snapshot.to_json(FormatVersion::V3), full());
    }

    #[test]
    fn old_snapshots_read() {
        let value = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["a", "b"], "parent-snapshot-id": -1});
        let snapshot = Snapshot::from_json(&value).unwrap();
        assert_eq!(snapshot.manifests, ManifestSource::Inline(vec!["a".into(), "b".into()]));
        assert_eq!((snapshot.sequence_number, snapshot.operation, snapshot.parent_snapshot_id), (0, None, None));
        let written = snapshot.to_json(FormatVersion::V1);
        assert_eq!(written, json!({"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["a", "b"]}));
        assert_eq!(snapshot.to_json(FormatVersion::V2)["sequence-number"], json!(0));

        let both = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["a"], "manifest-list": "l"});
        assert_eq!(Snapshot::from_json(&both).unwrap().manifest_list(), Some("l"));
    }

    #[test]
    fn unknown_operations_survive() {
        let mut value = full();
        value["summary"]["operation"] = json!("optimize");
        let snapshot = Snapshot::from_json(&value).unwrap();
        assert_eq!(snapshot.operation, None);
        assert_eq!(snapshot.to_json(FormatVersion::V3), value);
    }

    #[test]
    fn bad_snapshots_name_the_field() {
        for (key, bad) in [
            ("snapshot-id", json!("7")),
            ("timestamp-ms", Value::Null),
            ("sequence-number", json!(-1)),
            ("manifest-list", Value::Null),
            ("summary", json!([])),
            ("first-row-id", json!(-5)),
        ] {
            let mut value = full();
            value[key] = bad;
            let e = Snapshot::from_json(&value).unwrap_err();
            assert!(e.message().contains(key), "{e}");
        }
    }

    #[test]
    fn references_survive() {
        for value in [
            json!({"snapshot-id": 1, "type": "branch"}),
            json!({"snapshot-id": 1, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4, "max-ref-age-ms": 5}),
            json!({"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 5}),
        ] {
            assert_eq!(SnapshotRef::from_node(&Node::root("ref", &value)).unwrap().to_json(), value);
        }
        assert!(SnapshotRef::from_node(&Node::root("ref", &json!({"snapshot-id": 1, "type": "x"}))).is_err());
    }
}
