//! The Iceberg catalogs of a session, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::catalog::Catalog;
use crate::env::Env;
use crate::io::FileIo;

/// What the statements of a session need beside DataFusion's own state. Kept in the session's configuration, so that every
/// clone of the session sees it.
#[derive(Debug)]
pub(crate) struct Catalogs {
    env: Env,
    io: FileIo,
    catalogs: RwLock<BTreeMap<String, Arc<dyn Catalog>>>,
}

impl Catalogs {
    pub(crate) fn new(env: Env, io: FileIo) -> Self {
        Self { env, io, catalogs: RwLock::default() }
    }

    /// Clock and ids of the session.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// Access to tables that are named by their location.
    pub(crate) fn file_io(&self) -> &FileIo {
        &self.io
    }

    pub(crate) fn register(&self, name: String, catalog: Arc<dyn Catalog>) {
        self.catalogs.write().insert(name, catalog);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Catalog>> {
        self.catalogs.read().get(name).cloned()
    }
}
