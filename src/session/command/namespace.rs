//! `DROP SCHEMA`.

use crate::catalog::Catalog;
use crate::{Error, ErrorKind, Result};

/// Drops an empty namespace. CASCADE would drop tables, and so is refused unless there are none.
pub(super) async fn drop_namespace(
    catalog: &dyn Catalog,
    namespace: &[String],
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    if if_exists && !catalog.namespace_exists(namespace).await? {
        return Ok(());
    }
    if cascade && let Some(table) = catalog.list_tables(namespace).await?.first() {
        return Err(Error::unsupported(format!(
            "DROP SCHEMA … CASCADE of a schema with tables, such as {table}: drop its tables first"
        )));
    }
    match catalog.drop_namespace(namespace).await {
        Err(e) if if_exists && e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
