//! Folders: things of their own on a local file system, a matter of naming in an object store.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::local::LocalFileSystem;

use super::{FileIo, ResolvedLocation, join, store_error};
use crate::{Error, Result};

/// Object that stands for an empty folder where folders do not exist by themselves.
pub(crate) const FOLDER_MARKER: &str = ".folder";

impl FileIo {
    /// Makes a folder and those above it; one that exists is left as it is.
    pub async fn create_dir(&self, dir: &str) -> Result<()> {
        let r = self.resolve_location(dir)?;
        if let Some(path) = local_path(&r)? {
            return tokio::fs::create_dir_all(&path).await.map_err(|e| cannot("create folder", dir, e));
        }
        match self.create(&join(dir, FOLDER_MARKER), Bytes::new()).await {
            Err(e) if e.kind() != crate::ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        }
    }

    /// Whether a folder exists.
    pub async fn dir_exists(&self, dir: &str) -> Result<bool> {
        let r = self.resolve_location(dir)?;
        if let Some(path) = local_path(&r)? {
            return match tokio::fs::metadata(&path).await {
                Ok(meta) => Ok(meta.is_dir()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
                Err(e) => Err(cannot("look at", dir, e)),
            };
        }
        let (folders, files) = self.list_names(dir).await?;
        Ok(!folders.is_empty() || !files.is_empty())
    }

    /// Removes a folder that holds nothing. An error, and no change, when it holds something.
    pub async fn remove_dir(&self, dir: &str) -> Result<()> {
        let r = self.resolve_location(dir)?;
        if let Some(path) = local_path(&r)? {
            return tokio::fs::remove_dir(&path).await.map_err(|e| cannot("remove folder", dir, e));
        }
        let (folders, files) = self.list_names(dir).await?;
        if !folders.is_empty() || files.iter().any(|f| f != FOLDER_MARKER) {
            return Err(Error::invalid_input(format!("folder {dir} is not empty")));
        }
        let gone = r.store.delete(&r.path.clone().join(FOLDER_MARKER)).await;
        match gone {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(store_error::convert("remove folder", dir, e, false)),
        }
    }

    /// Removes `dir` and the folders below it as far as they hold nothing. Best effort; only local folders outlive their
    /// files.
    pub async fn prune_empty_dirs(&self, dir: &str) {
        let Ok(Some(path)) = self.resolve_location(dir).and_then(|r| local_path(&r)) else { return };
        let _ = tokio::task::spawn_blocking(move || prune(&path)).await;
    }
}

/// Removes empty folders bottom-up; `remove_dir` itself refuses a folder that is not empty, so nothing is lost to a race.
fn prune(root: &Path) {
    let mut found = vec![root.to_path_buf()];
    let mut next = 0;
    while let Some(dir) = found.get(next).cloned() {
        next += 1;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            // A symbolic link is not a folder here: its target is none of ours.
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                found.push(entry.path());
            }
        }
    }
    for dir in found.iter().rev() {
        let _ = std::fs::remove_dir(dir);
    }
}

/// The file or folder of a local location; `None` for one in another store.
pub(super) fn local_path(r: &ResolvedLocation) -> Result<Option<PathBuf>> {
    if !r.local {
        return Ok(None);
    }
    let path = LocalFileSystem::new().path_to_filesystem(&r.path);
    path.map(Some).map_err(|e| store_error::convert("address", r.path.as_ref(), e, true))
}

fn cannot(what: &str, dir: &str, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!("there is no folder {dir}")),
        std::io::ErrorKind::DirectoryNotEmpty => Error::invalid_input(format!("folder {dir} is not empty")),
        _ => Error::unavailable(format!("cannot {what} {dir}")).with_source(error),
    }
}
