//! Creating and committing: the create-if-absent of a version, and what an unclear answer means.

use std::time::Duration;

use bytes::Bytes;

use super::super::metadata_file::{delete_expired, encode, expired_files, wants_gzip};
use super::super::{LoadedTable, TableCommit, no_table, stale, table_exists};
use super::{Found, VersionedTable, is_tombstone, new_name, version_of_name};
use crate::spec::TableMetadata;
use crate::{Error, ErrorKind, Result};

/// Times a version is sent again, or read back, after an unclear answer.
const ATTEMPTS: u32 = 4;
/// Wait before the second attempt, doubled before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// What became of a version we tried to create.
pub(super) enum Written {
    /// It exists and is ours.
    Ours,
    /// It exists and is another's: these are its bytes.
    Others(Bytes),
    /// It does not exist, and never will by our doing.
    Failed(Error),
    /// It may exist, now or later.
    Unknown(Error),
}

impl VersionedTable {
    /// Makes the table with `metadata` as its first version: 1, or the one above the tombstone of a drop that is not done.
    pub(in super::super) async fn create(&self, metadata: TableMetadata) -> Result<LoadedTable> {
        self.check_state(&metadata)?;
        let bytes = encode(&metadata, false)?;
        for _ in 0..ATTEMPTS {
            let tombstone = match self.find().await? {
                Found::Nothing => None,
                Found::Table(..) => return Err(table_exists(&self.ident)),
                Found::Dropped(tombstone) => Some(tombstone),
            };
            let number = tombstone.as_ref().map_or(1, |t| t.number.saturating_add(1));
            let name = new_name(number, false);
            match self.write_version(&name, bytes.clone()).await {
                Written::Ours => {}
                Written::Others(_) => return Err(table_exists(&self.ident)),
                Written::Failed(e) => return Err(e),
                Written::Unknown(e) => {
                    let uuid = metadata.table_uuid.map(|u| u.to_string()).unwrap_or_default();
                    return Err(Error::commit_unknown(format!(
                        "whether table {} was created is not known: if it exists with table-uuid {uuid}, it was",
                        self.ident
                    ))
                    .with_source(e));
                }
            }
            if let Some(tombstone) = tombstone {
                // Once the tombstone is gone another table can start at version 1 without having seen this one. While it
                // is there, none can have.
                if !self.io.exists(&self.location_of(&tombstone.name)).await.unwrap_or(true) {
                    self.io.delete(&self.location_of(&name)).await?;
                    continue;
                }
            }
            self.write_hint(number).await;
            return self.loaded(&bytes, &name);
        }
        Err(Error::conflict(format!("table {} is being dropped: try again", self.ident)))
    }

    /// Carries `commit` out on top of its base.
    pub(in super::super) async fn commit(&self, commit: TableCommit) -> Result<LoadedTable> {
        let base = &commit.base;
        let base_name = base.metadata_location.rsplit('/').next().unwrap_or_default();
        let Some(number) = version_of_name(base_name) else {
            return Err(Error::invalid_input(format!(
                "{} is not a version of table {}",
                base.metadata_location, self.ident
            )));
        };
        self.check_base(base, base_name).await?;
        let next = number.checked_add(1).ok_or_else(|| Error::unsupported("version number overflow"))?;
        if let Some(newer) = self.probe(next).await? {
            let read = self.io.read(&self.location_of(&newer.name)).await;
            return Err(if read.is_ok_and(|b| is_tombstone(&b)) {
                no_table(&self.ident)
            } else {
                stale(&self.ident, base)
            });
        }
        let metadata = commit.new_metadata(self.env.now_ms())?;
        self.check_state(&metadata)?;
        let gzip = wants_gzip(&base.metadata);
        let name = new_name(next, gzip);
        let bytes = encode(&metadata, gzip)?;
        match self.write_version(&name, bytes.clone()).await {
            Written::Ours => {}
            Written::Others(other) if is_tombstone(&other) => return Err(no_table(&self.ident)),
            Written::Others(_) => return Err(stale(&self.ident, base)),
            Written::Failed(e) => return Err(e),
            Written::Unknown(e) => return Err(self.unknown(&base.metadata, &metadata, e)),
        }
        self.check_not_dropped(base, base_name, next, &name).await?;
        self.write_hint(next).await;
        delete_expired(&self.io, &expired_files(&self.io, &base.metadata, &metadata)).await;
        self.loaded(&bytes, &name)
    }

    /// Whether the base is still what the table's version of that name holds: a table dropped, or dropped and made anew, since
    /// the base was loaded must not come back.
    async fn check_base(&self, base: &LoadedTable, base_name: &str) -> Result<()> {
        let location = self.location_of(base_name);
        let same = match self.io.read(&location).await {
            Ok(bytes) if is_tombstone(&bytes) => false,
            Ok(bytes) => {
                let now = TableMetadata::parse(&bytes, &location)?;
                let key = |m: &TableMetadata| {
                    (m.table_uuid, m.last_updated_ms, m.last_sequence_number, m.current_snapshot_id)
                };
                key(&now) == key(&base.metadata)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            Err(e) => return Err(e),
        };
        if same {
            return Ok(());
        }
        match self.find().await? {
            Found::Table(_, now) if now.metadata.table_uuid == base.metadata.table_uuid => {
                Err(stale(&self.ident, base))
            }
            _ => Err(no_table(&self.ident)),
        }
    }

    /// After version `next` was created: undoes it when the table was dropped between the check of the base and the
    /// creation, which only a drop that ran from start to end in that moment can bring about.
    async fn check_not_dropped(&self, base: &LoadedTable, base_name: &str, next: u64, name: &str) -> Result<()> {
        match self.check_base(base, base_name).await {
            Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {}
            // The commit is done; that the check failed changes nothing.
            _ => return Ok(()),
        }
        let dropped = match self.find().await {
            // The base is gone although nothing newer replaced it, or the table is another one.
            Ok(Found::Table(now, t)) => now.number <= next || t.metadata.table_uuid != base.metadata.table_uuid,
            // Dropped with this commit in it.
            _ => false,
        };
        if dropped {
            self.io.delete(&self.location_of(name)).await?;
            return Err(no_table(&self.ident));
        }
        Ok(())
    }

    /// Creates the file `name` of a version if there is none, and finds out what happened when the answer does not say.
    ///
    /// To send the same bytes again is safe: either request may be the one that creates the file, the other one changes
    /// nothing, and both are told from another's by the bytes.
    pub(super) async fn write_version(&self, name: &str, bytes: Bytes) -> Written {
        let location = self.location_of(name);
        let local = self.io.resolve_location(&location).is_ok_and(|r| r.is_local());
        let mut unclear = None;
        let mut known_absent = false;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(FIRST_WAIT * 2u32.pow(attempt - 1)).await;
            }
            match self.io.create(&location, bytes.clone()).await {
                Ok(()) => return Written::Ours,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) if e.context(crate::io::AMBIGUOUS).is_some() => unclear = Some(e),
                Err(e) => {
                    return if unclear.is_none() { Written::Failed(e) } else { Written::Unknown(e) };
                }
            }
            // An answer that the file exists can be the answer to our own request, sent twice by the client.
            match self.io.read(&location).await {
                Ok(found) if found == bytes => return Written::Ours,
                Ok(found) => return Written::Others(found),
                Err(e) => {
                    known_absent = e.kind() == ErrorKind::NotFound;
                    unclear.get_or_insert(e);
                }
            }
        }
        let e = unclear.unwrap_or_else(|| Error::internal("no attempt was made"));
        // On the machine's own file system a failed request is over; elsewhere it can still be on its way.
        if local && known_absent { Written::Failed(e) } else { Written::Unknown(e) }
    }

    fn unknown(&self, base: &TableMetadata, new: &TableMetadata, cause: Error) -> Error {
        let snapshot = new.snapshots.iter().rev().find(|s| base.snapshot_by_id(s.snapshot_id).is_none());
        let look_for = match snapshot {
            Some(s) => format!("look for snapshot {} in its history", s.snapshot_id),
            None => format!("look whether its last-updated-ms is {} or later", new.last_updated_ms),
        };
        let e = Error::commit_unknown(format!(
            "whether the change to table {} was made is not known: {look_for}; no file was deleted",
            self.ident
        ));
        let e = match snapshot {
            Some(s) => e.with_context("snapshot", s.snapshot_id.to_string()),
            None => e,
        };
        e.with_source(cause)
    }
}
