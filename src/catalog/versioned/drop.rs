//! Dropping a table so that a crash leaves the table or no table, never an older state of it.
//!
//! The drop itself is one commit: a *tombstone* takes the name of the next version, so that of a drop and a commit that race one
//! loses. Then the files that were listed before it go, in an order in which every reader, of ours or not, ends at the
//! tombstone or above: the hint first, the versions from the oldest up (so that no gap opens below the tombstone), the
//! rest of the folder, and the tombstone last. A tombstone is no table metadata: a reader that does not know it reports
//! an error. Only the drop that made a tombstone removes files; a table created before it is done gets the version above the
//! tombstone, and none of its files was in the listing.

use bytes::Bytes;

use super::super::metadata_file::wants_gzip;
use super::super::{DroppedTable, dropped_message, no_table};
use super::write::Written;
use super::{Found, HINT, TOMBSTONE_KEY, VersionedTable, is_tombstone, new_name, version_of_name};
use crate::io::ListedFile;
use crate::{Error, Result};

/// Times a drop that loses to commits is tried.
const ATTEMPTS: u32 = 16;

impl VersionedTable {
    /// Drops the table: its metadata folder goes, its data stays.
    pub(in super::super) async fn drop_table(&self) -> Result<DroppedTable> {
        for _ in 0..ATTEMPTS {
            let Found::Table(version, loaded) = self.find().await? else { return Err(no_table(&self.ident)) };
            let files = self.io.list(&self.metadata_dir()).await?;
            let number = version.number.saturating_add(1);
            let tombstone = new_name(number, wants_gzip(&loaded.metadata));
            let text = serde_json::json!({ TOMBSTONE_KEY: self.env.uuid().to_string() }).to_string();
            match self.write_version(&tombstone, Bytes::from(text)).await {
                Written::Ours => {}
                Written::Others(other) if is_tombstone(&other) => return Err(no_table(&self.ident)),
                Written::Others(_) => continue,
                Written::Failed(e) => return Err(e),
                Written::Unknown(e) => {
                    return Err(Error::commit_unknown(format!(
                        "whether table {} was dropped is not known: look whether it exists",
                        self.ident
                    ))
                    .with_source(e));
                }
            }
            let location = loaded.metadata.location.clone();
            let mut message = dropped_message(&self.ident, &location);
            if let Err(e) = self.remove(files, &tombstone).await {
                message = format!("{message}; some files stay in {}: {e}", self.metadata_dir());
            }
            return Ok(DroppedTable { location, message });
        }
        Err(Error::conflict(format!("table {} changes too fast to be dropped: try again", self.ident)))
    }

    async fn remove(&self, files: Vec<ListedFile>, tombstone: &str) -> Result<()> {
        self.io.delete(&self.location_of(HINT)).await?;
        let (mut versions, mut others) = (Vec::new(), Vec::new());
        for file in files {
            match file.location.rsplit('/').next().and_then(version_of_name) {
                Some(number) => versions.push((number, file.location)),
                None => others.push(file.location),
            }
        }
        versions.sort_unstable();
        for (_, location) in versions {
            self.io.delete(&location).await?;
        }
        for (_, outcome) in self.io.delete_all(others).await {
            outcome?;
        }
        self.io.delete(&self.location_of(tombstone)).await?;
        self.io.prune_empty_dirs(&self.dir).await;
        Ok(())
    }
}
