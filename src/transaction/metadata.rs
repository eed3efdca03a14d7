//! Commits that change a table's metadata alone: schema, partitioning, order, properties, refs.
//!
//! What changes is planned on the newest metadata and planned again whenever another commit came first. Source of the
//! requirements: Java `UpdateRequirements`.

use crate::catalog::{TableCommit, is_stale};
use crate::error::{Error, Result};
use crate::spec::{TableMetadata, TableRequirement, TableUpdate};
use crate::table::Table;

use super::commit::{backoff, jittered};

/// Commits the updates that `plan` makes of the table's newest metadata; none if there are none. Returns the table then.
///
/// # Errors
/// Those of `plan`; `Conflict` when other commits came first too often, or the table was dropped and created again;
/// `CommitUnknown` when nobody can tell whether it was committed.
pub async fn commit_metadata(
    table: &Table,
    plan: impl Fn(&TableMetadata) -> Result<Vec<TableUpdate>>,
) -> Result<Table> {
    let retry = table.properties()?.commit_retry;
    for attempt in 1u32.. {
        let now = table.refresh().await?;
        if now.metadata.table_uuid != table.metadata.table_uuid {
            return Err(Error::conflict("the table was dropped and created again; run the statement again")
                .with_context("table", table.ident.to_string()));
        }
        let updates = plan(&now.metadata)?;
        if updates.is_empty() {
            return Ok(now);
        }
        now.catalog.check_writable(&now.ident, &now.loaded())?;
        let requirements = requirements(&now.metadata, &updates);
        let commit = TableCommit { ident: now.ident.clone(), base: now.loaded(), requirements, updates };
        match now.catalog.commit(commit).await {
            Ok(loaded) => return Ok(now.with_state(loaded)),
            Err(error) if is_stale(&error) && attempt <= retry.num_retries => {
                tokio::time::sleep(jittered(backoff(&retry, attempt), &now.env)).await;
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::internal("a commit was tried without end"))
}

/// What must not have changed since `metadata` for `updates` still to mean the same.
fn requirements(metadata: &TableMetadata, updates: &[TableUpdate]) -> Vec<TableRequirement> {
    let mut all: Vec<TableRequirement> =
        metadata.table_uuid.map(|uuid| TableRequirement::AssertTableUuid { uuid }).into_iter().collect();
    let mut add = |requirement: TableRequirement| {
        if !all.contains(&requirement) {
            all.push(requirement);
        }
    };
    for update in updates {
        match update {
            TableUpdate::AddSchema { .. } => {
                add(TableRequirement::AssertLastAssignedFieldId { last_assigned_field_id: metadata.last_column_id })
            }
            TableUpdate::SetCurrentSchema { .. } => {
                add(TableRequirement::AssertCurrentSchemaId { current_schema_id: metadata.current_schema_id });
            }
            TableUpdate::AddSpec { .. } => add(TableRequirement::AssertLastAssignedPartitionId {
                last_assigned_partition_id: metadata.last_partition_id,
            }),
            TableUpdate::SetDefaultSpec { .. } => {
                add(TableRequirement::AssertDefaultSpecId { default_spec_id: metadata.default_spec_id });
            }
            TableUpdate::SetDefaultSortOrder { .. } => add(TableRequirement::AssertDefaultSortOrderId {
                default_sort_order_id: metadata.default_sort_order_id,
            }),
            TableUpdate::SetSnapshotRef { ref_name, .. } | TableUpdate::RemoveSnapshotRef { ref_name } => {
                add(TableRequirement::AssertRefSnapshotId {
                    r#ref: ref_name.clone(),
                    snapshot_id: metadata.refs.get(ref_name).map(|reference| reference.snapshot_id),
                });
            }
            _ => {}
        }
    }
    all
}
