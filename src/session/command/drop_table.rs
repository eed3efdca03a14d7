//! `DROP TABLE`, with and without PURGE.

use std::sync::Arc;

use crate::catalog::{Catalog, TableIdent};
use crate::env::Env;
use crate::maintenance::reachable_files;
use crate::table::Table;
use crate::{Error, ErrorKind, Result};

/// Drops a table and says what went and what stays; `None` when there was none and that is allowed.
///
/// With `purge` the files are found before and deleted after the catalog has forgotten the table: a crash in between leaves
/// files behind, never a table without them.
pub(super) async fn drop_table(
    catalog: &Arc<dyn Catalog>,
    env: &Env,
    ident: &TableIdent,
    if_exists: bool,
    purge: bool,
) -> Result<Option<String>> {
    let files = if purge {
        let table = match Table::load(Arc::clone(catalog), ident.clone(), env.clone()).await {
            Err(e) if if_exists && e.kind() == ErrorKind::NotFound => return Ok(None),
            table => table?,
        };
        if !table.properties()?.gc_enabled {
            return Err(Error::invalid_input(format!(
                "cannot purge {ident}: its property gc.enabled is false, because other tables may share its files; drop it without PURGE"
            )));
        }
        Some(reachable_files(&table).await?.into_deletion_order())
    } else {
        None
    };
    let dropped = match catalog.drop_table(ident).await {
        Err(e) if if_exists && e.kind() == ErrorKind::NotFound => return Ok(None),
        dropped => dropped?,
    };
    let Some(files) = files else { return Ok(Some(dropped.message)) };
    let count = files.len();
    let io = catalog.file_io();
    let outcomes = io.delete_all(files).await;
    let mut failed = outcomes.into_iter().filter_map(|(location, outcome)| Some((location, outcome.err()?)));
    if let Some((location, error)) = failed.next() {
        let more = failed.count() + 1;
        return Err(Error::unavailable(format!(
            "table {ident} is dropped, but {more} of its {count} files could not be deleted"
        ))
        .with_context("file", location)
        .with_source(error));
    }
    io.prune_empty_dirs(&dropped.location).await;
    Ok(Some(format!("dropped table {ident} and deleted its {count} files")))
}
