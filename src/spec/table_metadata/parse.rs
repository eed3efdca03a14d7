//! Reading table metadata, leniently.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::Read;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use uuid::Uuid;

use super::{FormatVersion, TableMetadata};
use crate::spec::json::Node;
use crate::spec::partition::{LAST_UNASSIGNED_PARTITION_ID, PartitionSpec};
use crate::spec::schema::Schema;
use crate::spec::snapshot::{MAIN_BRANCH, Snapshot, SnapshotRef};
use crate::spec::sort::SortOrder;
use crate::{Error, Result};

/// Greatest size of a metadata file after decompression, so that a small hostile file cannot fill the memory.
const MAX_UNCOMPRESSED: u64 = 1 << 30;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const KNOWN_FIELDS: &[&str] = &[
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schema",
    "schemas",
    "current-schema-id",
    "partition-spec",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "properties",
    "current-snapshot-id",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "sort-orders",
    "default-sort-order-id",
    "refs",
    "statistics",
    "partition-statistics",
    "next-row-id",
    "encryption-keys",
];

impl TableMetadata {
    /// Reads a metadata file, plain or gzip (told by its magic). `location_hint` is the file's location, for errors.
    ///
    /// What old and other writers leave out is filled in: a v1 table's single `schema` and `partition-spec`, a missing or
    /// -1 `current-snapshot-id`, missing `refs` (then `main` is the current snapshot), logs, statistics and sort orders.
    /// `DataInvalid` names the field; `Unsupported` for a later format version.
    pub fn parse(bytes: &[u8], location_hint: &str) -> Result<Self> {
        let read = || {
            if bytes.starts_with(&GZIP_MAGIC) {
                return Self::parse_plain(&gunzip(bytes)?);
            }
            Self::parse_plain(bytes)
        };
        read().map_err(|e| e.with_context("path", location_hint))
    }

    fn parse_plain(bytes: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|e| Error::data_invalid("table metadata: not a JSON document").with_source(e))?;
        Self::from_json(&value)
    }

    /// Reads metadata from JSON, as [`TableMetadata::parse`] does.
    pub fn from_json(value: &Value) -> Result<Self> {
        let node = Node::root("table metadata", value);
        let version = node.req("format-version")?;
        let format_version = FormatVersion::from_number(version.i64()?).map_err(|e| match e.kind() {
            crate::ErrorKind::Unsupported => e,
            _ => version.error(e.message()),
        })?;
        let v1 = format_version == FormatVersion::V1;

        let (schemas, current_schema_id) = read_schemas(&node, v1)?;
        let (partition_specs, default_spec_id) = read_specs(&node, v1)?;
        let (sort_orders, default_sort_order_id) = read_sort_orders(&node)?;
        let highest_field = schemas.iter().map(|s| s.highest_field_id()).max().unwrap_or(0);
        let highest_partition =
            partition_specs.iter().map(|s| s.highest_field_id()).max().unwrap_or(LAST_UNASSIGNED_PARTITION_ID);

        let snapshots = match node.opt("snapshots")? {
            None => Vec::new(),
            Some(list) => list.items()?.map(|n| Snapshot::from_node(&n).map(Arc::new)).collect::<Result<Vec<_>>>()?,
        };
        unique(&node, "snapshots", snapshots.iter().map(|s| s.snapshot_id))?;
        let current_snapshot_id = node.opt_i64("current-snapshot-id")?.filter(|id| *id != -1);
        let refs = read_refs(&node, current_snapshot_id)?;
        if let Some(id) = current_snapshot_id
            && !snapshots.iter().any(|s| s.snapshot_id == id)
        {
            return Err(node.error(format_args!("current-snapshot-id {id} is not among the snapshots")));
        }

        let last_sequence_number = if v1 { 0 } else { node.req("last-sequence-number")?.unsigned()? as i64 };
        if !v1 && let Some(s) = snapshots.iter().find(|s| s.sequence_number > last_sequence_number) {
            return Err(node.error(format_args!(
                "snapshot {} has sequence number {}, above last-sequence-number {last_sequence_number}",
                s.snapshot_id, s.sequence_number
            )));
        }

        Ok(Self {
            format_version,
            table_uuid: read_uuid(&node, v1)?,
            location: without_trailing_slash(node.req("location")?.str()?).to_string(),
            last_sequence_number,
            last_updated_ms: node.req("last-updated-ms")?.i64()?,
            // Never below an id in use, or the next column would take an id that has data.
            last_column_id: node.req("last-column-id")?.i32()?.max(highest_field),
            schemas,
            current_schema_id,
            partition_specs,
            default_spec_id,
            last_partition_id: node.opt_i32("last-partition-id")?.unwrap_or(0).max(highest_partition),
            properties: node.opt("properties")?.map(|n| n.string_map()).transpose()?.unwrap_or_default(),
            current_snapshot_id,
            snapshots,
            snapshot_log: read_log(&node, "snapshot-log", |n| n.req("snapshot-id")?.i64())?,
            metadata_log: read_log(&node, "metadata-log", |n| Ok(n.req("metadata-file")?.str()?.to_string()))?,
            sort_orders,
            default_sort_order_id,
            refs,
            statistics: node.verbatim_list("statistics")?,
            partition_statistics: node.verbatim_list("partition-statistics")?,
            next_row_id: match format_version {
                FormatVersion::V3 => node.req("next-row-id")?.unsigned()?,
                _ => 0,
            },
            encryption_keys: node.verbatim_list("encryption-keys")?,
            extra: node.members_except(KNOWN_FIELDS)?,
        })
    }
}

/// The location without slashes at its end, unless they belong to an empty path (`file:///`).
pub(crate) fn without_trailing_slash(location: &str) -> &str {
    let trimmed = location.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.ends_with(':') { location } else { trimmed }
}

fn gunzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MAX_UNCOMPRESSED + 1).read_to_end(&mut plain);
    read.map_err(|e| Error::data_invalid("table metadata: broken gzip data").with_source(e))?;
    if plain.len() as u64 > MAX_UNCOMPRESSED {
        return Err(Error::data_invalid(format!(
            "table metadata: more than {MAX_UNCOMPRESSED} bytes after decompression"
        )));
    }
    Ok(plain)
}

fn read_uuid(node: &Node<'_, '_>, v1: bool) -> Result<Option<Uuid>> {
    let uuid = if v1 { node.opt("table-uuid")? } else { Some(node.req("table-uuid")?) };
    let Some(uuid) = uuid else { return Ok(None) };
    Uuid::parse_str(uuid.str()?).map(Some).map_err(|e| uuid.error(format_args!("not a uuid: {e}")))
}

fn read_schemas(node: &Node<'_, '_>, v1: bool) -> Result<(Vec<Arc<Schema>>, i32)> {
    let single = if v1 { node.opt("schema")? } else { None };
    if let Some(list) = node.opt("schemas")? {
        let schemas = list.items()?.map(|n| Schema::from_node(&n).map(Arc::new)).collect::<Result<Vec<_>>>()?;
        unique(node, "schemas", schemas.iter().map(|s| s.schema_id))?;
        let current = match (node.opt_i32("current-schema-id")?, &single) {
            (Some(id), _) => id,
            (None, Some(schema)) => schema.opt_i32("schema-id")?.unwrap_or(0),
            (None, None) => node.req("current-schema-id")?.i32()?,
        };
        if !schemas.iter().any(|s| s.schema_id == current) {
            return Err(node.error(format_args!("current-schema-id {current} is not among the schemas")));
        }
        return Ok((schemas, current));
    }
    let single = match single {
        Some(single) => single,
        None => node.req("schemas")?,
    };
    let schema = Schema::from_node(&single)?;
    let current = schema.schema_id;
    Ok((vec![Arc::new(schema)], current))
}

fn read_specs(node: &Node<'_, '_>, v1: bool) -> Result<(Vec<Arc<PartitionSpec>>, i32)> {
    if let Some(list) = node.opt("partition-specs")? {
        let specs = list.items()?.map(|n| PartitionSpec::from_node(&n).map(Arc::new)).collect::<Result<Vec<_>>>()?;
        unique(node, "partition-specs", specs.iter().map(|s| s.spec_id))?;
        let default = match node.opt_i32("default-spec-id")? {
            Some(id) => id,
            None if v1 => specs.last().map_or(0, |s| s.spec_id),
            None => node.req("default-spec-id")?.i32()?,
        };
        if !specs.iter().any(|s| s.spec_id == default) {
            return Err(node.error(format_args!("default-spec-id {default} is not among the partition-specs")));
        }
        return Ok((specs, default));
    }
    if !v1 {
        node.req("partition-specs")?;
    }
    let spec = match node.opt("partition-spec")? {
        Some(fields) => PartitionSpec::from_fields_node(0, &fields)?,
        None => PartitionSpec::unpartitioned(),
    };
    Ok((vec![Arc::new(spec)], 0))
}

fn read_sort_orders(node: &Node<'_, '_>) -> Result<(Vec<Arc<SortOrder>>, i32)> {
    let Some(list) = node.opt("sort-orders")? else {
        return Ok((vec![Arc::new(SortOrder::unsorted())], 0));
    };
    let mut orders = list.items()?.map(|n| SortOrder::from_node(&n).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    unique(node, "sort-orders", orders.iter().map(|o| o.order_id))?;
    let default = node.opt_i32("default-sort-order-id")?.unwrap_or(0);
    if !orders.iter().any(|o| o.order_id == default) {
        if default != 0 {
            return Err(node.error(format_args!("default-sort-order-id {default} is not among the sort-orders")));
        }
        orders.push(Arc::new(SortOrder::unsorted()));
    }
    Ok((orders, default))
}

fn read_refs(node: &Node<'_, '_>, current: Option<i64>) -> Result<HashMap<String, SnapshotRef>> {
    let mut refs = HashMap::new();
    if let Some(map) = node.opt("refs")? {
        for name in map.object()?.keys() {
            refs.insert(name.clone(), SnapshotRef::from_node(&map.req(name)?)?);
        }
    }
    match (refs.get(MAIN_BRANCH), current) {
        (None, Some(id)) => {
            refs.insert(MAIN_BRANCH.to_string(), SnapshotRef::branch(id));
        }
        (Some(main), current) if current != Some(main.snapshot_id) => {
            return Err(node.error(format_args!(
                "branch main is at snapshot {}, but current-snapshot-id is {}",
                main.snapshot_id,
                current.map_or("none".to_string(), |id| id.to_string())
            )));
        }
        _ => {}
    }
    Ok(refs)
}

fn read_log<T>(node: &Node<'_, '_>, key: &str, entry: impl Fn(&Node<'_, '_>) -> Result<T>) -> Result<Vec<(i64, T)>> {
    match node.opt(key)? {
        None => Ok(Vec::new()),
        Some(list) => list.items()?.map(|n| Ok((n.req("timestamp-ms")?.i64()?, entry(&n)?))).collect(),
    }
}

fn unique<T: Eq + Hash + std::fmt::Display + Copy>(
    node: &Node<'_, '_>,
    key: &str,
    ids: impl Iterator<Item = T>,
) -> Result<()> {
    let mut seen = HashSet::new();
    match ids.into_iter().find(|id| !seen.insert(*id)) {
        Some(id) => Err(node.error(format_args!("two {key} have id {id}"))),
        None => Ok(()),
    }
}
