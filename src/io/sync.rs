//! Local files on the disk, not only in the memory of the system.
//!
//! A commit is done once its metadata file exists. For it to outlive a power failure everything it names has to be on the disk
//! before, so every local file is forced there, with its name, before the write counts as done.

use std::fs::File;
use std::io;
use std::path::Path;

use super::directories::local_path;
use super::{FileIo, ResolvedLocation};
use crate::{Error, Result};

impl FileIo {
    /// Waits until a file just written is on the disk. Nothing to do for other stores, which answer when it is.
    pub(super) async fn settle(&self, r: &ResolvedLocation, location: &str) -> Result<()> {
        if self.0.sync { settle(r, location).await } else { Ok(()) }
    }
}

/// [`FileIo::settle`] without asking whether it is wanted.
pub(super) async fn settle(r: &ResolvedLocation, location: &str) -> Result<()> {
    let Some(path) = local_path(r)? else { return Ok(()) };
    let synced = tokio::task::spawn_blocking(move || sync(&path)).await;
    match synced.unwrap_or_else(|e| Err(io::Error::other(e))) {
        // Another store stands in for the local one, or the file is gone again.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::unavailable(format!("cannot force {location} to the disk")).with_source(e)),
        Ok(()) => Ok(()),
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    // Only there can a folder be opened as a file.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn files_are_synced_where_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let io = FileIo::builder().with_sync(true).build();
        let location = |name: &str| format!("{}/a b/{name}", dir.path().display());
        io.write(&location("w%20"), Bytes::from_static(b"w")).await.unwrap();
        io.create(&location("c"), Bytes::from_static(b"c")).await.unwrap();
        let mut upload = io.upload(&location("u")).await.unwrap();
        upload.write(Bytes::from_static(b"u")).await.unwrap();
        assert_eq!(upload.finish().await.unwrap(), 1);
        for (name, bytes) in [("w%20", "w"), ("c", "c"), ("u", "u")] {
            assert_eq!(io.read(&location(name)).await.unwrap(), bytes);
            let r = io.resolve_location(&location(name)).unwrap();
            assert!(sync(&local_path(&r).unwrap().unwrap()).is_ok(), "{name} is looked for elsewhere");
        }
        let r = io.resolve_location(&location("nowhere")).unwrap();
        assert_eq!(sync(&local_path(&r).unwrap().unwrap()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
