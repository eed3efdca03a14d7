//! The manifests of snapshots, as their manifest lists name them.

use std::sync::Arc;

use arrow::array::{BooleanArray, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use futures::{StreamExt, stream};

use super::columns::{Columns, failed, list_type, lists};
use super::{Listing, MetadataRows};
use crate::scan::{CONCURRENCY, manifests_of};
use crate::spec::{FieldSummary, Literal, ManifestContent, ManifestFile, PrimitiveType, Snapshot, TableMetadata};
use crate::table::Table;

/// A manifest, and the snapshot in whose list it stands.
struct Listed {
    manifest: ManifestFile,
    snapshot_id: i64,
}

/// Java: `ManifestsTable`.
pub(super) fn manifests(table: &Table, snapshot: Option<Arc<Snapshot>>) -> Arc<dyn MetadataRows> {
    listing(columns(table), table, snapshot.into_iter().collect())
}

/// Java: `AllManifestsTable`.
pub(super) fn all_manifests(table: &Table) -> Arc<dyn MetadataRows> {
    let columns = columns(table)
        .long("reference_snapshot_id", true, |m| Some(m.snapshot_id))
        .bytes("key_metadata", |m| m.manifest.key_metadata.as_deref());
    listing(columns, table, table.metadata.snapshots.clone())
}

fn listing(columns: Columns<Listed>, table: &Table, snapshots: Vec<Arc<Snapshot>>) -> Arc<dyn MetadataRows> {
    let table = table.clone();
    Listing::rows(columns, move || {
        let table = table.clone();
        let lists = stream::iter(snapshots.clone()).map(move |snapshot| {
            let table = table.clone();
            async move {
                let manifests = manifests_of(&table, &snapshot).await?;
                let listed =
                    |manifest: &ManifestFile| Listed { manifest: manifest.clone(), snapshot_id: snapshot.snapshot_id };
                Ok(manifests.iter().map(listed).collect())
            }
        });
        lists.buffered(CONCURRENCY).boxed()
    })
}

/// Counts that a v1 list leaves out are null.
///
/// # Deviation
/// A bound that a summary does not have is null, where Java shows the text `null`.
fn columns(table: &Table) -> Columns<Listed> {
    let count = |of: ManifestContent, get: fn(&ManifestFile) -> Option<u32>| {
        move |m: &Listed| match m.manifest.content == of {
            true => get(&m.manifest).and_then(|n| i32::try_from(n).ok()),
            false => Some(0),
        }
    };
    let (data, deletes) = (ManifestContent::Data, ManifestContent::Deletes);
    let metadata = Arc::clone(&table.metadata);
    Columns::<Listed>::new()
        .int("content", true, |m| Some(i32::from(m.manifest.content == ManifestContent::Deletes)))
        .text("path", true, |m| Some(&m.manifest.manifest_path))
        .unsigned("length", true, |m| Some(m.manifest.manifest_length))
        .int("partition_spec_id", true, |m| Some(m.manifest.partition_spec_id))
        .long("added_snapshot_id", true, |m| Some(m.manifest.added_snapshot_id))
        .int("added_data_files_count", false, count(data, |m| m.added_files_count))
        .int("existing_data_files_count", false, count(data, |m| m.existing_files_count))
        .int("deleted_data_files_count", false, count(data, |m| m.deleted_files_count))
        .int("added_delete_files_count", false, count(deletes, |m| m.added_files_count))
        .int("existing_delete_files_count", false, count(deletes, |m| m.existing_files_count))
        .int("deleted_delete_files_count", false, count(deletes, |m| m.deleted_files_count))
        .column(Field::new("partition_summaries", list_type(DataType::Struct(summary_fields())), true), move |rows| {
            let mut summaries: Vec<Summary> = Vec::new();
            let mut lengths = Vec::with_capacity(rows.len());
            for row in rows {
                lengths.push(row.manifest.partitions.as_ref().map(Vec::len));
                summaries.extend(readable(&row.manifest, &metadata));
            }
            let columns: Vec<Arc<dyn arrow::array::Array>> = vec![
                Arc::new(summaries.iter().map(|s| Some(s.contains_null)).collect::<BooleanArray>()),
                Arc::new(summaries.iter().map(|s| s.contains_nan).collect::<BooleanArray>()),
                Arc::new(summaries.iter().map(|s| s.lower.as_deref()).collect::<StringArray>()),
                Arc::new(summaries.iter().map(|s| s.upper.as_deref()).collect::<StringArray>()),
            ];
            let items = StructArray::try_new(summary_fields(), columns, None).map_err(failed)?;
            lists(Arc::new(items), &lengths)
        })
}

fn summary_fields() -> Fields {
    Fields::from(vec![
        Field::new("contains_null", DataType::Boolean, false),
        Field::new("contains_nan", DataType::Boolean, true),
        Field::new("lower_bound", DataType::Utf8, true),
        Field::new("upper_bound", DataType::Utf8, true),
    ])
}

struct Summary {
    contains_null: bool,
    contains_nan: Option<bool>,
    lower: Option<String>,
    upper: Option<String>,
}

/// The summaries of a manifest, bounds as partition folders spell them; null where they cannot be read.
fn readable(manifest: &ManifestFile, metadata: &TableMetadata) -> Vec<Summary> {
    let spec = metadata.spec_by_id(manifest.partition_spec_id);
    let types = spec.map(|spec| spec.partition_type(metadata));
    let summary = |(i, summary): (usize, &FieldSummary)| {
        let transform = spec.and_then(|spec| spec.fields.get(i)).map(|field| &field.transform);
        let ty = types.as_ref().and_then(|types| types.fields.get(i)?.field_type.as_primitive());
        let human = |bound: &Option<Box<[u8]>>| {
            let ty: &PrimitiveType = ty?;
            let value = Literal::from_bytes(ty, bound.as_deref()?).ok()?;
            Some(transform?.to_human(Some(&value), ty))
        };
        Summary {
            contains_null: summary.contains_null,
            contains_nan: summary.contains_nan,
            lower: human(&summary.lower_bound),
            upper: human(&summary.upper_bound),
        }
    };
    manifest.partitions.iter().flatten().enumerate().map(summary).collect()
}
