//! Snapshot summaries: what a commit did, in numbers.
//!
//! Implements the spec section "Appendix F: Optional Snapshot Summary Fields" with the keys and rules of the Java reference
//! implementation. Invariant: summaries inform people; nothing derives rows from them.

use std::collections::{BTreeMap, HashMap};

use super::data_file::{DataContent, DataFile};
use super::partition::PartitionKey;

/// Counts of one direction: what was added, or what was removed.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    size: u64,
    data_files: u64,
    delete_files: u64,
    equality_delete_files: u64,
    position_delete_files: u64,
    dvs: u64,
    records: u64,
    position_deletes: u64,
    equality_deletes: u64,
}

impl Side {
    fn count(&mut self, file: &DataFile) {
        let add = |counter: &mut u64, n: u64| *counter = counter.saturating_add(n);
        // Many vectors share one Puffin file: each counts only its own blob.
        let size = if file.is_deletion_vector() { file.content_size_in_bytes } else { None };
        add(&mut self.size, size.unwrap_or(file.file_size_in_bytes));
        match file.content {
            DataContent::Data => {
                add(&mut self.data_files, 1);
                add(&mut self.records, file.record_count);
            }
            DataContent::PositionDeletes => {
                add(&mut self.delete_files, 1);
                add(&mut self.position_deletes, file.record_count);
                let kind = if file.is_deletion_vector() { &mut self.dvs } else { &mut self.position_delete_files };
                add(kind, 1);
            }
            DataContent::EqualityDeletes => {
                add(&mut self.delete_files, 1);
                add(&mut self.equality_delete_files, 1);
                add(&mut self.equality_deletes, file.record_count);
            }
        }
    }
}

/// Added and removed files of one partition or of the whole commit.
#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    added: Side,
    removed: Side,
}

impl Changes {
    /// Keys with their counts, zeros left out.
    fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (a, r) = (&self.added, &self.removed);
        [
            ("added-files-size", a.size),
            ("removed-files-size", r.size),
            ("added-data-files", a.data_files),
            ("deleted-data-files", r.data_files),
            ("added-delete-files", a.delete_files),
            ("removed-delete-files", r.delete_files),
            ("added-equality-delete-files", a.equality_delete_files),
            ("removed-equality-delete-files", r.equality_delete_files),
            ("added-position-delete-files", a.position_delete_files),
            ("removed-position-delete-files", r.position_delete_files),
            ("added-dvs", a.dvs),
            ("removed-dvs", r.dvs),
            ("added-records", a.records),
            ("deleted-records", r.records),
            ("added-position-deletes", a.position_deletes),
            ("removed-position-deletes", r.position_deletes),
            ("added-equality-deletes", a.equality_deletes),
            ("removed-equality-deletes", r.equality_deletes),
        ]
        .into_iter()
        .filter(|(_, n)| *n > 0)
    }

    /// Keys of totals with what was added to each and what was removed.
    fn totals(&self) -> [(&'static str, u64, u64); 6] {
        let (a, r) = (&self.added, &self.removed);
        [
            ("total-data-files", a.data_files, r.data_files),
            ("total-delete-files", a.delete_files, r.delete_files),
            ("total-records", a.records, r.records),
            ("total-files-size", a.size, r.size),
            ("total-position-deletes", a.position_deletes, r.position_deletes),
            ("total-equality-deletes", a.equality_deletes, r.equality_deletes),
        ]
    }
}

/// Makes the summary of a snapshot from the files it adds and removes.
#[derive(Debug)]
pub struct SnapshotSummaryBuilder<'a> {
    parent: Option<&'a BTreeMap<String, String>>,
    changes: Changes,
    partitions: HashMap<PartitionKey, Changes>,
    properties: BTreeMap<String, String>,
}

impl<'a> SnapshotSummaryBuilder<'a> {
    /// A summary of no changes. `parent` is the summary of the head the snapshot goes on top of; `None` for a first one.
    pub fn new(parent: Option<&'a BTreeMap<String, String>>) -> Self {
        Self { parent, changes: Changes::default(), partitions: HashMap::new(), properties: BTreeMap::new() }
    }

    /// Counts a data or delete file as added.
    pub fn add_file(&mut self, file: &DataFile) {
        self.changes.added.count(file);
        self.partitions.entry(file.partition_key()).or_default().added.count(file);
    }

    /// Counts a data or delete file as removed.
    pub fn remove_file(&mut self, file: &DataFile) {
        self.changes.removed.count(file);
        self.partitions.entry(file.partition_key()).or_default().removed.count(file);
    }

    /// Sets an entry of its own (`replace-partitions`, `engine-name`, …); wins over a computed one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.properties.insert(key.into(), value.into());
    }

    /// Adds one entry a partition, if there are at most `limit` (`write.summary.partition-limit`); `path` gives the
    /// folder of a partition.
    pub fn summarize_partitions(&mut self, limit: usize, path: impl Fn(&PartitionKey) -> String) {
        if self.partitions.is_empty() || self.partitions.len() > limit {
            return;
        }
        let mut entries = BTreeMap::from([("partition-summaries-included".to_string(), "true".to_string())]);
        for (key, changes) in &self.partitions {
            let path = path(key);
            if !path.is_empty() {
                let counts: Vec<String> = changes.entries().map(|(key, n)| format!("{key}={n}")).collect();
                entries.insert(format!("partitions.{path}"), counts.join(","));
            }
        }
        self.properties.extend(entries);
    }

    /// The summary, without `operation`. A total is left out when the parent has it not, has no number there, or would
    /// give a negative one.
    pub fn build(self) -> BTreeMap<String, String> {
        let mut summary: BTreeMap<String, String> =
            self.changes.entries().map(|(key, n)| (key.to_string(), n.to_string())).collect();
        summary.insert("changed-partition-count".to_string(), self.partitions.len().to_string());
        for (key, added, removed) in self.changes.totals() {
            let before = match self.parent {
                None => Some(0),
                Some(parent) => parent.get(key).and_then(|text| text.parse::<u64>().ok()),
            };
            if let Some(total) = before.and_then(|n| n.checked_add(added)).and_then(|n| n.checked_sub(removed)) {
                summary.insert(key.to_string(), total.to_string());
            }
        }
        summary.extend(self.properties);
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{FileFormat, Literal, PartitionTuple};

    fn file(content: DataContent, format: FileFormat, partition: i32, records: u64, size: u64) -> DataFile {
        let tuple = PartitionTuple([Some(Literal::Int(partition))].into());
        let mut file =
            DataFile::new(content, format!("{partition}-{records}"), format, PartitionKey { spec_id: 0, tuple });
        file.record_count = records;
        file.file_size_in_bytes = size;
        file
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn counts_what_java_counts() {
        let mut first = SnapshotSummaryBuilder::new(None);
        first.add_file(&file(DataContent::Data, FileFormat::Parquet, 1, 10, 100));
        first.add_file(&file(DataContent::Data, FileFormat::Parquet, 2, 20, 200));
        let first = first.build();
        let expected = map(&[
            ("added-data-files", "2"),
            ("added-records", "30"),
            ("added-files-size", "300"),
            ("changed-partition-count", "2"),
            ("total-data-files", "2"),
            ("total-records", "30"),
            ("total-files-size", "300"),
            ("total-delete-files", "0"),
            ("total-position-deletes", "0"),
            ("total-equality-deletes", "0"),
        ]);
        assert_eq!(first, expected);

        let mut second = SnapshotSummaryBuilder::new(Some(&first));
        let mut vector = file(DataContent::PositionDeletes, FileFormat::Puffin, 1, 3, 5000);
        vector.content_size_in_bytes = Some(44);
        second.add_file(&vector);
        second.add_file(&file(DataContent::PositionDeletes, FileFormat::Parquet, 1, 4, 6));
        second.add_file(&file(DataContent::EqualityDeletes, FileFormat::Parquet, 1, 2, 7));
        second.remove_file(&file(DataContent::Data, FileFormat::Parquet, 2, 20, 200));
        second.set("engine-name", "x");
        let second = second.build();
        for (key, value) in [
            ("added-files-size", "57"),
            ("added-dvs", "1"),
            ("added-position-delete-files", "1"),
            ("added-equality-delete-files", "1"),
            ("added-delete-files", "3"),
            ("added-position-deletes", "7"),
            ("added-equality-deletes", "2"),
            ("deleted-data-files", "1"),
            ("deleted-records", "20"),
            ("removed-files-size", "200"),
            ("changed-partition-count", "2"),
            ("total-records", "10"),
            ("total-delete-files", "3"),
            ("total-files-size", "157"),
            ("total-position-deletes", "7"),
            ("engine-name", "x"),
        ] {
            assert_eq!(second.get(key).map(String::as_str), Some(value), "{key}");
        }
    }

    #[test]
    fn totals_that_cannot_be_known_are_left_out() {
        let parent = map(&[
            ("total-records", "many"),
            ("total-data-files", "99999999999999999999999"),
            ("total-files-size", "18446744073709551615"),
            ("total-delete-files", "0"),
            ("total-position-deletes", "-3"),
        ]);
        let mut summary = SnapshotSummaryBuilder::new(Some(&parent));
        summary.add_file(&file(DataContent::Data, FileFormat::Parquet, 1, 10, 100));
        summary.remove_file(&file(DataContent::PositionDeletes, FileFormat::Parquet, 1, 10, 100));
        let summary = summary.build();
        assert!(!summary.keys().any(|key| key.starts_with("total-")), "{summary:?}");
    }

    #[test]
    fn partitions_are_summarised_up_to_a_limit() {
        let make = |limit| {
            let mut summary = SnapshotSummaryBuilder::new(None);
            summary.add_file(&file(DataContent::Data, FileFormat::Parquet, 1, 10, 100));
            summary.remove_file(&file(DataContent::Data, FileFormat::Parquet, 2, 5, 50));
            summary.summarize_partitions(limit, |key| {
                format!("p={}", if key.tuple.0[0] == Some(Literal::Int(1)) { 1 } else { 2 })
            });
            summary.build()
        };
        assert!(!make(1).keys().any(|k| k.starts_with("partition")));
        let summary = make(2);
        assert_eq!(summary["partition-summaries-included"], "true");
        assert_eq!(summary["partitions.p=1"], "added-files-size=100,added-data-files=1,added-records=10");
        assert_eq!(summary["partitions.p=2"], "removed-files-size=50,deleted-data-files=1,deleted-records=5");
    }

    #[test]
    fn an_empty_commit_keeps_the_totals() {
        let parent = map(&[("total-records", "7"), ("total-data-files", "1")]);
        let summary = SnapshotSummaryBuilder::new(Some(&parent)).build();
        assert_eq!(
            summary,
            map(&[("changed-partition-count", "0"), ("total-data-files", "1"), ("total-records", "7")])
        );
    }
}
