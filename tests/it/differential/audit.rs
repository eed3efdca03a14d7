//! What must hold of a table's metadata and files after every statement, read back from the files themselves.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use calve::spec::manifest::read_manifest_list;
use calve::spec::{
    ColumnMap, DataContent, EntryStatus, FormatVersion, Literal, ManifestContent, ManifestEntry, ManifestFile,
    ManifestReader, PrimitiveType, Schema, Snapshot, Type,
};
use calve::table::Table;

use super::files::{Deletes, FileRows, local, read};
use super::predicate::Row;
use super::random::Column;
use super::value::{Kind, Value};

/// Row id and last-updated sequence number by the row's `id`.
pub(super) type Lineage = BTreeMap<i64, (i64, i64)>;

/// A row as text that is equal exactly for equal rows.
pub(super) fn fingerprint(row: &Row) -> String {
    let mut text = String::new();
    row.iter().for_each(|value| value.fingerprint(&mut text));
    text
}

/// Checks everything and returns the lineage of the live rows.
pub(super) fn audit(table: &Table, columns: &[Column], model: &[Row]) -> Lineage {
    let audit = Audit { table, schema: table.metadata.current_schema().unwrap(), columns };
    audit.check_history();
    let Some(snapshot) = table.metadata.current_snapshot() else {
        assert!(model.is_empty(), "no snapshot, but rows");
        return Lineage::new();
    };
    let (data, deletes) = audit.live_entries(snapshot);
    audit.check_summary(snapshot, &data, &deletes);
    audit.check_rows(&data, &deletes, model)
}

struct Audit<'a> {
    table: &'a Table,
    schema: &'a Schema,
    columns: &'a [Column],
}

/// A primitive column, maybe in a struct, with its values in the rows of a file.
struct Leaf {
    id: i32,
    kind: Kind,
    values: Vec<Value>,
}

impl Audit<'_> {
    fn manifests(&self, snapshot: &Snapshot) -> Vec<ManifestFile> {
        let location = snapshot.manifest_list().expect("a manifest list");
        read_manifest_list(&read(location), location).unwrap()
    }

    fn entries(&self, manifest: &ManifestFile) -> Vec<ManifestEntry> {
        let bytes = read(&manifest.manifest_path);
        assert_eq!(bytes.len() as u64, manifest.manifest_length, "length of {}", manifest.manifest_path);
        ManifestReader::read(&bytes, manifest, &self.table.metadata).unwrap()
    }

    /// Sequence numbers rise; every file on disk is named by some snapshot, and every file named is there.
    fn check_history(&self) {
        let metadata = &self.table.metadata;
        let mut named: HashSet<String> = HashSet::new();
        let mut last = 0;
        for snapshot in &metadata.snapshots {
            if snapshot.sequence_number != 0 {
                assert!(snapshot.sequence_number > last, "sequence numbers do not rise");
                last = snapshot.sequence_number;
            }
            named.insert(local(snapshot.manifest_list().unwrap()).to_string());
            for manifest in self.manifests(snapshot) {
                if named.insert(local(&manifest.manifest_path).to_string()) {
                    let entries = self.entries(&manifest);
                    named.extend(entries.iter().map(|e| local(&e.data_file.file_path).to_string()));
                }
            }
        }
        assert!(metadata.last_sequence_number >= last);
        let root = Path::new(local(&metadata.location));
        let mut on_disk = Vec::new();
        walk(root, &mut on_disk);
        for path in &on_disk {
            let is_metadata = path.contains(".metadata.json") || path.ends_with("version-hint.text");
            assert!(is_metadata || named.contains(path), "{path} is left over");
        }
        let on_disk: HashSet<String> = on_disk.into_iter().collect();
        named.iter().for_each(|path| assert!(on_disk.contains(path), "{path} is gone"));
    }

    /// Live data and delete entries of a snapshot, with the manifests checked on the way.
    fn live_entries(&self, snapshot: &Snapshot) -> (Vec<ManifestEntry>, Vec<ManifestEntry>) {
        let (mut data, mut deletes) = (Vec::new(), Vec::new());
        for manifest in self.manifests(snapshot) {
            let entries = self.entries(&manifest);
            self.check_manifest(snapshot, &manifest, &entries);
            let live = entries.into_iter().filter(ManifestEntry::is_live);
            match manifest.content {
                ManifestContent::Data => data.extend(live),
                ManifestContent::Deletes => deletes.extend(live),
            }
        }
        let mut seen = HashSet::new();
        for entry in data.iter().chain(&deletes) {
            let file = &entry.data_file;
            assert!(seen.insert((file.file_path.clone(), file.content_offset)), "{} is live twice", file.file_path);
            assert!(entry.sequence_number.unwrap() <= snapshot.sequence_number);
            assert!(entry.file_sequence_number.unwrap() <= snapshot.sequence_number);
            let size = fs::metadata(local(&file.file_path)).unwrap().len();
            assert_eq!(size, file.file_size_in_bytes, "size of {}", file.file_path);
        }
        (data, deletes)
    }

    fn check_manifest(&self, snapshot: &Snapshot, manifest: &ManifestFile, entries: &[ManifestEntry]) {
        let path = &manifest.manifest_path;
        let of = |status: EntryStatus| entries.iter().filter(move |e| e.status == status);
        for (status, files, rows) in [
            (EntryStatus::Added, manifest.added_files_count, manifest.added_rows_count),
            (EntryStatus::Existing, manifest.existing_files_count, manifest.existing_rows_count),
            (EntryStatus::Deleted, manifest.deleted_files_count, manifest.deleted_rows_count),
        ] {
            assert_eq!(files, Some(of(status).count() as u32), "{status:?} files in {path}");
            assert_eq!(rows, Some(of(status).map(|e| e.data_file.record_count).sum()), "{status:?} rows in {path}");
        }
        let live = || entries.iter().filter(|e| e.is_live());
        let own = manifest.added_snapshot_id == snapshot.snapshot_id;
        assert!(own || live().next().is_some(), "{path} has nothing live and is still listed");
        for entry in entries {
            if entry.status != EntryStatus::Existing {
                assert_eq!(entry.snapshot_id, Some(manifest.added_snapshot_id), "{:?} in {path}", entry.status);
            }
            assert_eq!(entry.data_file.content == DataContent::Data, manifest.content == ManifestContent::Data);
            assert_eq!(entry.data_file.spec_id, manifest.partition_spec_id);
        }
        if let Some(least) = live().filter_map(|e| e.sequence_number).min() {
            assert_eq!(manifest.min_sequence_number, Some(least), "least sequence number of {path}");
        }
        let spec = self.table.metadata.spec_by_id(manifest.partition_spec_id).unwrap();
        let types = spec.partition_type(&self.table.metadata);
        let summaries = manifest.partitions.as_deref().unwrap_or_default();
        assert!(summaries.len() == spec.fields.len() || manifest.partitions.is_none(), "summaries of {path}");
        for (i, summary) in summaries.iter().enumerate() {
            let Type::Primitive(ty) = &types.fields[i].field_type else { panic!("a nested partition value") };
            for entry in live() {
                match &entry.data_file.partition.0[i] {
                    None => assert!(summary.contains_null, "{path} has a null in field {i}"),
                    Some(v) if v.is_nan() => assert_ne!(summary.contains_nan, Some(false), "{path} has a NaN"),
                    Some(v) => {
                        let bounds = (summary.lower_bound.as_deref(), summary.upper_bound.as_deref());
                        check_bounds(ty, bounds, v, &format!("partition field {i} of {path}"));
                        assert!(bounds.0.is_some() && bounds.1.is_some(), "{path} has no bounds of field {i}");
                    }
                }
            }
        }
    }

    fn check_summary(&self, snapshot: &Snapshot, data: &[ManifestEntry], deletes: &[ManifestEntry]) {
        let sum = |entries: &[ManifestEntry], of: fn(&ManifestEntry) -> u64| entries.iter().map(of).sum::<u64>();
        let size = |e: &ManifestEntry| e.data_file.content_size_in_bytes.unwrap_or(e.data_file.file_size_in_bytes);
        for (key, wanted) in [
            ("total-data-files", data.len() as u64),
            ("total-delete-files", deletes.len() as u64),
            ("total-records", sum(data, |e| e.data_file.record_count)),
            ("total-position-deletes", sum(deletes, |e| e.data_file.record_count)),
            ("total-equality-deletes", 0),
            ("total-files-size", sum(data, size) + sum(deletes, size)),
        ] {
            assert_eq!(snapshot.summary.get(key), Some(&wanted.to_string()), "{key}");
        }
    }

    /// The rows are the model's; lineage, partitions and metrics of every file hold.
    fn check_rows(&self, data: &[ManifestEntry], deletes: &[ManifestEntry], model: &[Row]) -> Lineage {
        let by_path = data.iter().map(|e| (e.data_file.file_path.to_string(), e.clone())).collect();
        let deletes = Deletes::read(deletes);
        deletes.check_targets(&by_path);
        let mut live: Vec<String> = Vec::new();
        let mut lineage = Lineage::new();
        let mut row_ids = HashSet::new();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for entry in data {
            let file = &entry.data_file;
            let read = FileRows::read(file, self.schema, self.columns);
            assert_eq!(read.rows.len() as u64, file.record_count, "rows of {}", file.file_path);
            self.check_file(entry, &read.rows);
            ranges.extend(file.first_row_id.map(|first| (first, first + file.record_count)));
            let deleted = deletes.of(entry);
            assert!(deleted.len() < file.record_count, "every row of {} is deleted, but it stays", file.file_path);
            for (position, row) in read.rows.iter().enumerate() {
                if deleted.contains(position as u64) {
                    continue;
                }
                live.push(fingerprint(row));
                if let Some((row_id, last_updated)) = read.lineage(entry, position) {
                    assert!(row_ids.insert(row_id), "row id {row_id} is given twice");
                    assert!((row_id as u64) < self.table.metadata.next_row_id, "row id {row_id} is not given out");
                    let Value::Int(id) = row[0] else { panic!("a row without id") };
                    lineage.insert(id, (row_id, last_updated));
                }
            }
        }
        ranges.sort_unstable();
        ranges.windows(2).for_each(|two| assert!(two[0].1 <= two[1].0, "row id ranges overlap: {two:?}"));
        let mut wanted: Vec<String> = model.iter().map(fingerprint).collect();
        live.sort();
        wanted.sort();
        assert_eq!(live, wanted, "rows in the files");
        let current = self.table.metadata.current_snapshot().unwrap();
        if self.table.metadata.format_version == FormatVersion::V3 && current.first_row_id.is_some() {
            assert_eq!(lineage.len(), live.len(), "rows without row id");
        }
        lineage
    }

    fn check_file(&self, entry: &ManifestEntry, rows: &[Row]) {
        let file = &entry.data_file;
        let leaves = self.leaves(rows);
        let spec = self.table.metadata.spec_by_id(file.spec_id).unwrap();
        for (field, value) in spec.fields.iter().zip(file.partition.0.iter()) {
            let leaf = leaves.iter().find(|leaf| leaf.id == field.source_id).unwrap();
            for source in &leaf.values {
                let wanted = source.literal(&leaf.kind).and_then(|v| field.transform.apply(&v).unwrap());
                assert_eq!(value, &wanted, "{} of {}: row with {source:?}", field.name, file.file_path);
            }
        }
        for leaf in &leaves {
            let count = |counts: &ColumnMap<u64>, what: &str, of: &dyn Fn(&Value) -> bool| {
                if let Some(count) = counts.get(leaf.id) {
                    let wanted = leaf.values.iter().filter(|v| of(v)).count() as u64;
                    assert_eq!(*count, wanted, "{what} of column {} in {}", leaf.id, file.file_path);
                }
            };
            count(&file.value_counts, "values", &|_| true);
            count(&file.null_value_counts, "nulls", &Value::is_null);
            count(&file.nan_value_counts, "NaNs", &|v| matches!(v, Value::Float(v) if v.is_nan()));
            let mut ids = 0;
            let Type::Primitive(ty) = leaf.kind.iceberg(&mut ids) else { panic!("a nested leaf") };
            let bounds = (file.lower_bounds.get(leaf.id), file.upper_bounds.get(leaf.id));
            let bounds = (bounds.0.map(AsRef::as_ref), bounds.1.map(AsRef::as_ref));
            for value in leaf.values.iter().filter_map(|v| v.literal(&leaf.kind)).filter(|v| !v.is_nan()) {
                check_bounds(&ty, bounds, &value, &format!("column {} of {}", leaf.id, file.file_path));
            }
        }
        assert!(file.split_offsets.is_sorted(), "split offsets of {}", file.file_path);
    }

    fn leaves(&self, rows: &[Row]) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            let id = |name: &str| self.schema.field_by_name(name).unwrap().id;
            match &column.kind {
                Kind::List(_) => {}
                Kind::Struct(fields) => leaves.extend(fields.iter().enumerate().map(|(n, (name, kind))| {
                    Leaf {
                        id: id(&format!("{}.{name}", column.name)),
                        kind: kind.clone(),
                        values: rows
                            .iter()
                            .map(|row| match &row[i] {
                                Value::Struct(values) => values[n].clone(),
                                _ => Value::Null,
                            })
                            .collect(),
                    }
                })),
                kind => leaves.push(Leaf {
                    id: id(&column.name),
                    kind: kind.clone(),
                    values: rows.iter().map(|row| row[i].clone()).collect(),
                }),
            }
        }
        leaves
    }
}

fn check_bounds(ty: &PrimitiveType, bounds: (Option<&[u8]>, Option<&[u8]>), value: &Literal, what: &str) {
    for (bound, below) in [(bounds.0, true), (bounds.1, false)] {
        if let Some(bytes) = bound {
            let bound = Literal::from_bytes(ty, bytes).unwrap();
            assert!(!bound.is_nan(), "{what}: a bound is NaN");
            let order = bound.compare(value).expect("of one type");
            assert!(if below { order.is_le() } else { order.is_ge() }, "{what}: bound {bound:?}, value {value:?}");
        }
    }
}

fn walk(dir: &Path, out: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, out) } else { out.push(path.to_str().unwrap().to_string()) }
    }
}
