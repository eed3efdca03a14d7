//! The one way to change table metadata.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::parse::without_trailing_slash;
use super::{FormatVersion, TableMetadata, rules};
use crate::spec::partition::{LAST_UNASSIGNED_PARTITION_ID, PartitionSpec};
use crate::spec::properties::{self, TableProperties};
use crate::spec::schema::Schema;
use crate::spec::snapshot::{MAIN_BRANCH, RefKind, Snapshot, SnapshotRef};
use crate::spec::sort::SortOrder;
use crate::spec::update::{LAST_ADDED, TableUpdate};
use crate::{Error, Result};

/// What a new table is made of. Field ids of the schema only tie the spec and the order to it: the table gives its own.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// Identity of the table.
    pub uuid: Uuid,
    /// Base location.
    pub location: String,
    /// Format version.
    pub format_version: FormatVersion,
    /// Columns, with ids unique among them.
    pub schema: Schema,
    /// Partitioning, by the schema's ids; its own ids are ignored.
    pub spec: PartitionSpec,
    /// Order of new files, by the schema's ids; its own id is ignored.
    pub sort_order: SortOrder,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
}

/// Applies [`TableUpdate`]s to table metadata and keeps it consistent: ids, logs, refs, sequence numbers and row ids.
#[derive(Debug, Clone)]
pub struct TableMetadataBuilder {
    metadata: TableMetadata,
    base: Option<TableMetadata>,
    base_location: Option<String>,
    added_schema: Option<i32>,
    added_spec: Option<i32>,
    added_sort_order: Option<i32>,
    /// Timestamps of the snapshots added here.
    added_snapshots: HashMap<i64, i64>,
    removed_snapshots: bool,
}

impl TableMetadataBuilder {
    /// Starts a new table: field ids count from 1, partition field ids from 1000; schema and spec get id 0, the sort
    /// order 1, or 0 if it is unsorted. `InvalidInput` names what cannot be.
    pub fn new_table(table: NewTable) -> Result<Self> {
        rules::check_properties(&table.properties)?;
        table.schema.validate().map_err(|e| Error::invalid_input(e.message()))?;
        let (schema, new_ids) = table.schema.with_fresh_ids();
        let new_id = |what: &str, old: i32| {
            let id = new_ids.get(&old).copied();
            id.ok_or_else(|| Error::invalid_input(format!("{what}: the schema has no field with id {old}")))
        };
        let mut spec = table.spec;
        for field in &mut spec.fields {
            field.source_id = new_id("partition field", field.source_id)?;
            field.field_id = 0;
        }
        let mut sort_order = table.sort_order;
        for field in &mut sort_order.fields {
            field.source_id = new_id("sort field", field.source_id)?;
        }
        let metadata = TableMetadata {
            format_version: table.format_version,
            table_uuid: Some(table.uuid),
            location: without_trailing_slash(&table.location).to_string(),
            last_sequence_number: 0,
            last_updated_ms: i64::MIN,
            last_column_id: schema.highest_field_id(),
            schemas: vec![Arc::new(schema)],
            current_schema_id: 0,
            partition_specs: Vec::new(),
            default_spec_id: 0,
            last_partition_id: LAST_UNASSIGNED_PARTITION_ID,
            properties: table.properties,
            current_snapshot_id: None,
            snapshots: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            sort_orders: Vec::new(),
            default_sort_order_id: 0,
            refs: HashMap::new(),
            statistics: Vec::new(),
            partition_statistics: Vec::new(),
            next_row_id: 0,
            encryption_keys: Vec::new(),
            extra: serde_json::Map::new(),
        };
        let mut builder = Self::of(metadata, None, None);
        builder.metadata.default_spec_id = builder.add_spec(spec)?;
        builder.metadata.default_sort_order_id = builder.add_sort_order(sort_order)?;
        Ok(builder)
    }

    /// Starts from a table as it is. `base_location` is the metadata file it was read from, for the metadata log.
    pub fn from(base: TableMetadata, base_location: Option<&str>) -> Self {
        Self::of(base.clone(), Some(base), base_location.map(str::to_string))
    }

    fn of(metadata: TableMetadata, base: Option<TableMetadata>, base_location: Option<String>) -> Self {
        Self {
            metadata,
            base,
            base_location,
            added_schema: None,
            added_spec: None,
            added_sort_order: None,
            added_snapshots: HashMap::new(),
            removed_snapshots: false,
        }
    }

    /// The metadata as changed so far, before logs and checks.
    pub fn metadata(&self) -> &TableMetadata {
        &self.metadata
    }

    /// Applies one change. `InvalidInput` says why it cannot be.
    pub fn apply(mut self, update: TableUpdate) -> Result<Self> {
        match update {
            TableUpdate::AssignUuid { uuid } => self.assign_uuid(uuid)?,
            TableUpdate::UpgradeFormatVersion { format_version } => self.upgrade(format_version)?,
            TableUpdate::AddSchema { schema } => self.added_schema = Some(self.add_schema(schema)?),
            TableUpdate::SetCurrentSchema { schema_id } => {
                let id = last_added(schema_id, self.added_schema, "schema")?;
                known(self.metadata.schema_by_id(id).is_some(), "schema", id)?;
                self.metadata.current_schema_id = id;
            }
            TableUpdate::AddSpec { spec } => self.added_spec = Some(self.add_spec(spec)?),
            TableUpdate::SetDefaultSpec { spec_id } => {
                let id = last_added(spec_id, self.added_spec, "partition spec")?;
                known(self.metadata.spec_by_id(id).is_some(), "partition spec", id)?;
                self.metadata.default_spec_id = id;
            }
            TableUpdate::AddSortOrder { sort_order } => self.added_sort_order = Some(self.add_sort_order(sort_order)?),
            TableUpdate::SetDefaultSortOrder { sort_order_id } => {
                let id = last_added(sort_order_id, self.added_sort_order, "sort order")?;
                known(self.metadata.sort_order_by_id(id).is_some(), "sort order", id)?;
                self.metadata.default_sort_order_id = id;
            }
            TableUpdate::AddSnapshot { snapshot } => self.add_snapshot(snapshot)?,
            TableUpdate::SetSnapshotRef { ref_name, reference } => self.set_ref(ref_name, reference)?,
            TableUpdate::RemoveSnapshots { snapshot_ids } => self.remove_snapshots(&snapshot_ids)?,
            TableUpdate::RemoveSnapshotRef { ref_name } => {
                self.metadata.refs.remove(&ref_name);
                if ref_name == MAIN_BRANCH {
                    self.metadata.current_snapshot_id = None;
                }
            }
            TableUpdate::SetLocation { location } => {
                self.metadata.location = without_trailing_slash(&location).to_string();
            }
            TableUpdate::SetProperties { updates } => {
                rules::check_properties(&updates)?;
                self.metadata.properties.extend(updates);
            }
            TableUpdate::RemoveProperties { removals } => {
                self.metadata.properties.retain(|name, _| !removals.contains(name));
            }
            TableUpdate::SetStatistics { statistics } => set_statistics(&mut self.metadata.statistics, statistics)?,
            TableUpdate::RemoveStatistics { snapshot_id } => {
                self.metadata.statistics.retain(|s| statistics_snapshot(s) != Some(snapshot_id));
            }
            TableUpdate::SetPartitionStatistics { partition_statistics } => {
                set_statistics(&mut self.metadata.partition_statistics, partition_statistics)?;
            }
            TableUpdate::RemovePartitionStatistics { snapshot_id } => {
                self.metadata.partition_statistics.retain(|s| statistics_snapshot(s) != Some(snapshot_id));
            }
            TableUpdate::RemovePartitionSpecs { spec_ids } => {
                if spec_ids.contains(&self.metadata.default_spec_id) {
                    return Err(Error::invalid_input("the default partition spec cannot be removed"));
                }
                self.metadata.partition_specs.retain(|s| !spec_ids.contains(&s.spec_id));
            }
            TableUpdate::RemoveSchemas { schema_ids } => {
                if schema_ids.contains(&self.metadata.current_schema_id) {
                    return Err(Error::invalid_input("the current schema cannot be removed"));
                }
                self.metadata.schemas.retain(|s| !schema_ids.contains(&s.schema_id));
            }
        }
        Ok(self)
    }

    /// Applies changes in order.
    pub fn apply_all(self, updates: impl IntoIterator<Item = TableUpdate>) -> Result<Self> {
        updates.into_iter().try_fold(self, Self::apply)
    }

    /// The changed metadata, with logs and the time of change brought up to date; the base itself if nothing changed.
    /// `now_ms` is ignored when a snapshot was added (its timestamp counts), and time never goes back.
    pub fn build(self, now_ms: i64) -> Result<TableMetadata> {
        if self.base.as_ref() == Some(&self.metadata) {
            return Ok(self.metadata);
        }
        rules::check(&self.metadata, self.base.as_ref())?;
        let Self { mut metadata, base, base_location, added_snapshots, removed_snapshots, .. } = self;

        let changed_ms = added_snapshots.values().copied().max().unwrap_or(now_ms);
        metadata.last_updated_ms = match &base {
            Some(base) => changed_ms.max(base.last_updated_ms),
            None => changed_ms,
        };
        if removed_snapshots {
            drop_broken_history(&mut metadata);
        }
        // Heads that came and went within these changes leave no trace.
        if let Some(id) = metadata.current_snapshot_id
            && base.as_ref().and_then(|base| base.current_snapshot_id) != Some(id)
        {
            let ms = added_snapshots.get(&id).copied().unwrap_or(metadata.last_updated_ms);
            let last = metadata.snapshot_log.last().map_or(ms, |(last, _)| *last);
            metadata.snapshot_log.push((ms.max(last), id));
        }
        if let (Some(base), Some(location)) = (&base, base_location) {
            metadata.metadata_log.push((base.last_updated_ms, location));
        }
        // Read on its own: a bad value of another property must not stop the commit that mends it.
        let longest = metadata.properties.get(properties::METADATA_PREVIOUS_VERSIONS_MAX);
        let longest = longest.and_then(|text| text.trim().parse::<usize>().ok());
        let longest = longest.unwrap_or(TableProperties::DEFAULT_METADATA_PREVIOUS_VERSIONS_MAX).max(1);
        let surplus = metadata.metadata_log.len().saturating_sub(longest);
        metadata.metadata_log.drain(..surplus);
        Ok(metadata)
    }

    fn assign_uuid(&mut self, uuid: Uuid) -> Result<()> {
        match self.metadata.table_uuid {
            Some(present) if present != uuid => {
                Err(Error::invalid_input(format!("the table has uuid {present}; it cannot become {uuid}")))
            }
            _ => {
                self.metadata.table_uuid = Some(uuid);
                Ok(())
            }
        }
    }

    fn upgrade(&mut self, to: FormatVersion) -> Result<()> {
        let from = self.metadata.format_version;
        if to < from {
            return Err(Error::invalid_input(format!(
                "a table of format version {from} cannot go back to version {to}"
            )));
        }
        self.metadata.format_version = to;
        Ok(())
    }

    fn add_schema(&mut self, schema: Schema) -> Result<i32> {
        schema.validate().map_err(|e| Error::invalid_input(e.message()))?;
        let highest = schema.highest_field_id();
        if highest > rules::MAX_FIELD_ID {
            return Err(Error::invalid_input(format!(
                "field id {highest} is reserved; ids go up to {}",
                rules::MAX_FIELD_ID
            )));
        }
        if let Some(same) = self.metadata.schemas.iter().find(|s| s.same_columns(&schema)) {
            return Ok(same.schema_id);
        }
        let schema_id = next_id(self.metadata.schemas.iter().map(|s| s.schema_id), 0)?;
        self.metadata.last_column_id = self.metadata.last_column_id.max(highest);
        self.metadata.schemas.push(Arc::new(Schema { schema_id, ..schema }));
        Ok(schema_id)
    }

    fn add_spec(&mut self, mut spec: PartitionSpec) -> Result<i32> {
        rules::check_new_spec(&self.metadata, &spec)?;
        // Equal fields make the same spec, unless the request insists on other field ids.
        let same_ids = |present: &PartitionSpec| {
            let mut pairs = present.fields.iter().zip(&spec.fields);
            pairs.all(|(a, b)| b.field_id == 0 || a.field_id == b.field_id)
        };
        if let Some(same) = self.metadata.partition_specs.iter().find(|s| s.same_fields(&spec) && same_ids(s)) {
            return Ok(same.spec_id);
        }
        let mut taken: HashSet<i32> = spec.fields.iter().map(|f| f.field_id).filter(|id| *id != 0).collect();
        let mut last = self.metadata.last_partition_id;
        for (i, field) in (0i32..).zip(&mut spec.fields) {
            if field.field_id != 0 {
                last = last.max(field.field_id);
                continue;
            }
            // A field that was there before keeps its id, so that its values stay comparable across specs; v1 has no
            // ids in its files and counts by position.
            let earlier = self.metadata.partition_specs.iter().flat_map(|s| &s.fields).find(|f| {
                f.source_id == field.source_id
                    && f.transform == field.transform
                    && f.name == field.name
                    && !taken.contains(&f.field_id)
            });
            field.field_id = match (self.metadata.format_version, earlier) {
                (FormatVersion::V1, _) => LAST_UNASSIGNED_PARTITION_ID.saturating_add(1).saturating_add(i),
                (_, Some(earlier)) => earlier.field_id,
                (_, None) => {
                    last.checked_add(1).ok_or_else(|| Error::invalid_input("no partition field id is left"))?
                }
            };
            taken.insert(field.field_id);
            last = last.max(field.field_id);
        }
        rules::check_spec_ids(&self.metadata, &spec)?;
        spec.spec_id = next_id(self.metadata.partition_specs.iter().map(|s| s.spec_id), 0)?;
        self.metadata.last_partition_id = last;
        let id = spec.spec_id;
        self.metadata.partition_specs.push(Arc::new(spec));
        Ok(id)
    }

    fn add_sort_order(&mut self, mut order: SortOrder) -> Result<i32> {
        rules::check_new_sort_order(&self.metadata, &order)?;
        if let Some(same) = self.metadata.sort_orders.iter().find(|o| o.fields == order.fields) {
            return Ok(same.order_id);
        }
        order.order_id = match order.is_unsorted() {
            true => 0,
            false => next_id(self.metadata.sort_orders.iter().map(|o| o.order_id), 1)?,
        };
        let id = order.order_id;
        self.metadata.sort_orders.push(Arc::new(order));
        Ok(id)
    }

    fn add_snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        rules::check_new_snapshot(&self.metadata, &snapshot)?;
        if self.metadata.format_version >= FormatVersion::V2 {
            self.metadata.last_sequence_number = snapshot.sequence_number;
        }
        if let (Some(first), Some(rows)) = (snapshot.first_row_id, snapshot.added_rows) {
            let next = first.checked_add(rows).filter(|next| *next <= i64::MAX as u64);
            self.metadata.next_row_id = next.ok_or_else(|| Error::invalid_input("no row id is left"))?;
        }
        self.added_snapshots.insert(snapshot.snapshot_id, snapshot.timestamp_ms);
        self.metadata.snapshots.push(Arc::new(snapshot));
        Ok(())
    }

    fn set_ref(&mut self, name: String, reference: SnapshotRef) -> Result<()> {
        let id = reference.snapshot_id;
        if self.metadata.snapshot_by_id(id).is_none() {
            return Err(Error::invalid_input(format!("ref {name}: there is no snapshot {id}")));
        }
        if name.is_empty() {
            return Err(Error::invalid_input("a ref needs a name"));
        }
        let positive = match reference.kind {
            RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms } => {
                min_snapshots_to_keep.is_none_or(|n| n > 0)
                    && max_snapshot_age_ms.is_none_or(|ms| ms > 0)
                    && max_ref_age_ms.is_none_or(|ms| ms > 0)
            }
            RefKind::Tag { max_ref_age_ms } => max_ref_age_ms.is_none_or(|ms| ms > 0),
        };
        if !positive {
            return Err(Error::invalid_input(format!("ref {name}: retention settings must be above 0")));
        }
        if name == MAIN_BRANCH {
            if !reference.is_branch() {
                return Err(Error::invalid_input("main is a branch; it cannot become a tag"));
            }
            self.metadata.current_snapshot_id = Some(id);
        }
        self.metadata.refs.insert(name, reference);
        Ok(())
    }

    fn remove_snapshots(&mut self, ids: &[i64]) -> Result<()> {
        let ids: HashSet<i64> = ids.iter().copied().collect();
        if let Some(current) = self.metadata.current_snapshot_id.filter(|id| ids.contains(id)) {
            return Err(Error::invalid_input(format!("snapshot {current} is the head of main; it cannot be removed")));
        }
        let before = self.metadata.snapshots.len();
        self.metadata.snapshots.retain(|s| !ids.contains(&s.snapshot_id));
        self.removed_snapshots |= self.metadata.snapshots.len() < before;
        self.metadata.refs.retain(|_, r| !ids.contains(&r.snapshot_id));
        let gone = |s: &Value| statistics_snapshot(s).is_some_and(|id| ids.contains(&id));
        self.metadata.statistics.retain(|s| !gone(s));
        self.metadata.partition_statistics.retain(|s| !gone(s));
        Ok(())
    }
}

/// Removes log entries whose snapshot is gone, and all before them: what a log says must not have holes.
fn drop_broken_history(metadata: &mut TableMetadata) {
    let known: HashSet<i64> = metadata.snapshots.iter().map(|s| s.snapshot_id).collect();
    let hole = metadata.snapshot_log.iter().rposition(|(_, id)| !known.contains(id));
    metadata.snapshot_log.drain(..hole.map_or(0, |i| i + 1));
}

fn last_added(id: i32, added: Option<i32>, what: &str) -> Result<i32> {
    match id {
        LAST_ADDED => added.ok_or_else(|| Error::invalid_input(format!("no {what} was added in this commit"))),
        id => Ok(id),
    }
}

fn known(known: bool, what: &str, id: i32) -> Result<()> {
    if known { Ok(()) } else { Err(Error::invalid_input(format!("there is no {what} with id {id}"))) }
}

/// The id after the greatest, at least `first`.
fn next_id(ids: impl Iterator<Item = i32>, first: i32) -> Result<i32> {
    match ids.max() {
        None => Ok(first),
        Some(greatest) => {
            let next = greatest.checked_add(1).ok_or_else(|| Error::invalid_input("no id is left"))?;
            Ok(next.max(first))
        }
    }
}

fn statistics_snapshot(statistics: &Value) -> Option<i64> {
    statistics.get("snapshot-id")?.as_i64()
}

fn set_statistics(all: &mut Vec<Value>, statistics: Value) -> Result<()> {
    let id = statistics_snapshot(&statistics);
    let id = id.ok_or_else(|| Error::invalid_input("a statistics file needs a snapshot-id"))?;
    all.retain(|s| statistics_snapshot(s) != Some(id));
    all.push(statistics);
    Ok(())
}
