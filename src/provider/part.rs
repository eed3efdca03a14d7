//! What a name behind `$` shows of a table: `t$rows`, `t$branch_audit`, `t$snapshot_id_7$rows`, ….

use std::sync::Arc;

use datafusion::catalog::TableProvider;

use super::metadata::{MetadataTable, MetadataTableProvider};
use super::table::IcebergTableProvider;
use crate::table::{Table, TableVersion};
use crate::{Error, Result};

/// Suffix of the name of a table with its hidden columns.
const ROWS: &str = "rows";

/// What is shown of a table, at which version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TablePart {
    shown: Shown,
    version: TableVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The rows.
    Table,
    /// The rows with their hidden columns.
    Rows,
    /// What the metadata says.
    Metadata(MetadataTable),
}

impl Shown {
    fn of(suffix: &str) -> Option<Self> {
        if suffix == ROWS { Some(Self::Rows) } else { MetadataTable::from_name(suffix).map(Self::Metadata) }
    }
}

/// The table that `name`, whose longest prefix before a `$` that is a table is `table`, means with the `suffix` behind it.
///
/// A suffix is a version, a part, or both in either order with a `$` between. Names of branches and tags may hold a `$`
/// themselves.
///
/// # Errors
/// `NotFound` when the table has no such version or part, `InvalidInput` when the suffix could mean two things.
pub(crate) fn table_part(table: Table, suffix: &str) -> Result<Arc<dyn TableProvider>> {
    let mut found: Vec<TablePart> = Vec::new();
    let mut missing = None;
    for part in readings(suffix) {
        match table.at(&part.version) {
            Ok(_) => found.push(part),
            Err(e) => missing = Some(e),
        }
    }
    let part = match found.as_slice() {
        [part] => part,
        [] => {
            let unknown = || Error::not_found(format!("table {} has no ${suffix}", table.ident));
            return Err(missing.unwrap_or_else(unknown));
        }
        _ => {
            return Err(Error::invalid_input(format!(
                "${suffix} of table {} could mean two things: rename the branch or tag with a $ in its name",
                table.ident
            )));
        }
    };
    let version = part.version.clone();
    Ok(match part.shown {
        Shown::Table => Arc::new(IcebergTableProvider::at_version(table, version)?),
        Shown::Rows => Arc::new(IcebergTableProvider::at_version(table, version)?.with_row_address()?),
        Shown::Metadata(kind) => Arc::new(MetadataTableProvider::new(table, kind, version)?),
    })
}

/// What a suffix may mean, the plainest reading first.
fn readings(suffix: &str) -> Vec<TablePart> {
    let mut readings = Vec::new();
    if let Some(shown) = Shown::of(suffix) {
        readings.push(TablePart { shown, version: TableVersion::Current });
    }
    if let Some(version) = TableVersion::from_suffix(suffix) {
        readings.push(TablePart { shown: Shown::Table, version });
    }
    for (at, _) in suffix.match_indices('$') {
        let (Some(head), Some(tail)) = (suffix.get(..at), suffix.get(at + 1..)) else { continue };
        for (shown, version) in [(head, tail), (tail, head)] {
            if let (Some(shown), Some(version)) = (Shown::of(shown), TableVersion::from_suffix(version)) {
                readings.push(TablePart { shown, version });
            }
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_name_a_part_and_a_version_in_either_order() {
        let part = |shown, version| TablePart { shown, version };
        let branch = |name: &str| TableVersion::Branch(name.to_owned());
        for (suffix, expected) in [
            ("rows", vec![part(Shown::Rows, TableVersion::Current)]),
            ("snapshot_id_7", vec![part(Shown::Table, TableVersion::Snapshot(7))]),
            ("snapshot_id_7$rows", vec![part(Shown::Rows, TableVersion::Snapshot(7))]),
            ("files", vec![part(Shown::Metadata(MetadataTable::Files), TableVersion::Current)]),
            ("files$tag_a", vec![part(Shown::Metadata(MetadataTable::Files), TableVersion::Tag("a".into()))]),
            ("rows$at_timestamp_9", vec![part(Shown::Rows, TableVersion::Timestamp(9))]),
            ("branch_b$rows", vec![part(Shown::Table, branch("b$rows")), part(Shown::Rows, branch("b"))]),
            ("rows$rows", vec![]),
            ("other", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(readings(suffix), expected, "{suffix}");
        }
    }
}
