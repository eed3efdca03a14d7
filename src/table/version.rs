//! Which state of a table is read: the current one, a snapshot, the head of a branch, a tag, or what was current at a time.
//!
//! Follows Java's `SnapshotUtil`: a snapshot, a tag and a time are read in the schema that the snapshot was made under, a
//! branch in the table's current schema; a time means the snapshot that the table's log says was current then.

use std::fmt;
use std::sync::Arc;

use super::Table;
use crate::spec::{Literal, MAIN_BRANCH, PrimitiveType, Schema, Snapshot, TableMetadata};
use crate::{Error, Result};

/// A state of a table, by what it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TableVersion {
    /// The state as it was loaded.
    #[default]
    Current,
    /// The snapshot of this id.
    Snapshot(i64),
    /// The head of the branch of this name.
    Branch(String),
    /// The snapshot that the tag of this name marks.
    Tag(String),
    /// The snapshot that was current at this time, in milliseconds since the epoch.
    Timestamp(i64),
}

const SNAPSHOT: &str = "snapshot_id_";
const BRANCH: &str = "branch_";
const TAG: &str = "tag_";
const TIMESTAMP: &str = "at_timestamp_";

impl TableVersion {
    /// The version that a suffix of a table's name means: `snapshot_id_<id>`, `branch_<name>`, `tag_<name>` or
    /// `at_timestamp_<ms>`; `None` when it is none of these.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        let name = |prefix: &str| suffix.strip_prefix(prefix).filter(|name| !name.is_empty());
        if let Some(id) = name(SNAPSHOT) {
            return id.parse().ok().map(Self::Snapshot);
        }
        if let Some(ms) = name(TIMESTAMP) {
            return ms.parse().ok().map(Self::Timestamp);
        }
        if let Some(branch) = name(BRANCH) {
            return Some(Self::Branch(branch.to_owned()));
        }
        name(TAG).map(|tag| Self::Tag(tag.to_owned()))
    }

    /// The suffix that [`from_suffix`](Self::from_suffix) reads; `None` for the current state, which has none.
    pub fn suffix(&self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Snapshot(id) => Some(format!("{SNAPSHOT}{id}")),
            Self::Branch(name) => Some(format!("{BRANCH}{name}")),
            Self::Tag(name) => Some(format!("{TAG}{name}")),
            Self::Timestamp(ms) => Some(format!("{TIMESTAMP}{ms}")),
        }
    }

    /// Whether this is the state that statements write to, and that a writing statement pins.
    pub fn is_current(&self) -> bool {
        match self {
            Self::Current => true,
            Self::Branch(name) => name == MAIN_BRANCH,
            _ => false,
        }
    }
}

impl fmt::Display for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("the current state"),
            Self::Snapshot(id) => write!(f, "snapshot {id}"),
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Timestamp(ms) => write!(f, "the state at {}", time_text(*ms)),
        }
    }
}

/// What a version of a table is read as.
#[derive(Debug, Clone)]
pub struct TableState {
    /// The snapshot; `None` for a table without one.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The schema to read it in.
    pub schema: Arc<Schema>,
}

impl Table {
    /// The snapshot and schema of a version.
    ///
    /// # Errors
    /// `NotFound` when the table has no such version; the message names those it has.
    pub fn at(&self, version: &TableVersion) -> Result<TableState> {
        let metadata = &self.metadata;
        let current = || Ok(Arc::clone(metadata.current_schema()?));
        let snapshot = match version {
            TableVersion::Current => {
                return Ok(TableState { snapshot: metadata.current_snapshot().cloned(), schema: current()? });
            }
            TableVersion::Branch(name) => {
                let snapshot = match metadata.refs.get(name) {
                    Some(branch) if branch.is_branch() => Some(self.snapshot(branch.snapshot_id)?),
                    None if name == MAIN_BRANCH => None,
                    _ => return Err(self.no_reference("branch", name)),
                };
                return Ok(TableState { snapshot: snapshot.cloned(), schema: current()? });
            }
            TableVersion::Snapshot(id) => self.snapshot(*id)?,
            TableVersion::Tag(name) => match metadata.refs.get(name) {
                Some(tag) if !tag.is_branch() => self.snapshot(tag.snapshot_id)?,
                _ => return Err(self.no_reference("tag", name)),
            },
            TableVersion::Timestamp(ms) => self.snapshot_at(*ms)?,
        };
        let schema = Arc::clone(metadata.schema_of_snapshot(snapshot)?);
        Ok(TableState { snapshot: Some(Arc::clone(snapshot)), schema })
    }

    /// What `VERSION AS OF 'name'` means: the snapshot of that id if there is one, else the branch or tag of that name.
    ///
    /// # Errors
    /// `NotFound` when it is neither; the message names what there is.
    pub fn version_named(&self, name: &str) -> Result<TableVersion> {
        if let Ok(id) = name.parse()
            && self.metadata.snapshot_by_id(id).is_some()
        {
            return Ok(TableVersion::Snapshot(id));
        }
        match self.metadata.refs.get(name) {
            Some(reference) if reference.is_branch() => Ok(TableVersion::Branch(name.to_owned())),
            Some(_) => Ok(TableVersion::Tag(name.to_owned())),
            None if name == MAIN_BRANCH => Ok(TableVersion::Branch(name.to_owned())),
            None => Err(self.no_reference("snapshot, branch or tag", name)),
        }
    }

    fn snapshot(&self, id: i64) -> Result<&Arc<Snapshot>> {
        self.metadata.snapshot_by_id(id).ok_or_else(|| {
            Error::not_found(format!("table {} has no snapshot {id}; {}", self.ident, known_snapshots(&self.metadata)))
        })
    }

    /// The snapshot that was current at a time, as the log of the table's current snapshots says (Java:
    /// `SnapshotUtil.snapshotIdAsOfTime`).
    fn snapshot_at(&self, ms: i64) -> Result<&Arc<Snapshot>> {
        let log = &self.metadata.snapshot_log;
        let Some((_, id)) = log.iter().rev().find(|(since, _)| *since <= ms) else {
            let reach = match (log.first(), log.last()) {
                (Some((first, _)), Some((last, _))) => {
                    format!("its history reaches from {} to {}", time_text(*first), time_text(*last))
                }
                _ => "it has no history".to_owned(),
            };
            let time = time_text(ms);
            return Err(Error::not_found(format!("table {} had no snapshot at {time}; {reach}", self.ident)));
        };
        self.metadata.snapshot_by_id(*id).ok_or_else(|| {
            Error::not_found(format!(
                "snapshot {id}, current in table {} at {}, has expired; {}",
                self.ident,
                time_text(ms),
                known_snapshots(&self.metadata)
            ))
        })
    }

    fn no_reference(&self, kind: &str, name: &str) -> Error {
        let names = |branches: bool| {
            let refs = self.metadata.refs.iter().filter(|(_, r)| r.is_branch() == branches);
            let mut names: Vec<&str> = refs.map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let (branches, tags) = (names(true), names(false));
        Error::not_found(format!("table {} has no {kind} {name}; branches: {branches}; tags: {tags}", self.ident))
    }
}

/// How many snapshots a message names.
const NAMED_SNAPSHOTS: usize = 5;

fn known_snapshots(metadata: &TableMetadata) -> String {
    let snapshots = &metadata.snapshots;
    if snapshots.is_empty() {
        return "it has none".to_owned();
    }
    let newest = snapshots.iter().rev().take(NAMED_SNAPSHOTS);
    let named: Vec<String> = newest.map(|s| format!("{} ({})", s.snapshot_id, time_text(s.timestamp_ms))).collect();
    match snapshots.len() - named.len() {
        0 => format!("snapshots: {}", named.join(", ")),
        more => format!("snapshots: {}, and {more} older", named.join(", ")),
    }
}

fn time_text(ms: i64) -> String {
    Literal::Timestamptz(ms.saturating_mul(1000)).to_human(&PrimitiveType::Timestamptz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_read_back() {
        for version in [
            TableVersion::Snapshot(447_522_725_379_374_418),
            TableVersion::Snapshot(-1),
            TableVersion::Branch("audit".into()),
            TableVersion::Branch("a$b/c.d".into()),
            TableVersion::Tag("first-tag".into()),
            TableVersion::Timestamp(-5),
        ] {
            assert_eq!(TableVersion::from_suffix(&version.suffix().unwrap()), Some(version));
        }
        for other in ["rows", "snapshot_id_", "snapshot_id_x", "snapshot_id_99999999999999999999", "branch_", "tag", ""]
        {
            assert_eq!(TableVersion::from_suffix(other), None, "{other}");
        }
        assert_eq!(TableVersion::Current.suffix(), None);
    }

    #[test]
    fn only_the_head_of_main_is_current() {
        assert!(TableVersion::Current.is_current() && TableVersion::Branch("main".into()).is_current());
        let others = [TableVersion::Snapshot(1), TableVersion::Branch("b".into()), TableVersion::Tag("main".into())];
        assert!(!others.iter().any(TableVersion::is_current));
    }
}
