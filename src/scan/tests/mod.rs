//! Tests of planning and loading over whole tables: golden ones, and small ones built here.

mod equality;
mod golden;
mod loading;
mod planning;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde_json::json;

use crate::catalog::{LoadedTable, MemoryCatalog, TableIdent};
use crate::env::Env;
use crate::io::FileIo;
use crate::scan::DeleteLoader;
use crate::spec::manifest::{ManifestWriter, assign_list_inheritance, write_manifest_list};
use crate::spec::{
    DataContent, DataFile, EntryStatus, FileFormat, Literal, ManifestContent, ManifestEntry, ManifestFile,
    PartitionKey, PartitionTuple, TableMetadata,
};
use crate::table::Table;
use crate::testing::{CountingStore, FaultStore};

/// A table of one snapshot in memory, behind a store that counts and one that fails on demand.
struct Fixture {
    io: FileIo,
    counts: Arc<CountingStore>,
    faults: Arc<FaultStore>,
    manifests: Vec<ManifestFile>,
}

const SNAPSHOT: i64 = 77;

impl Fixture {
    fn new() -> Self {
        let faults = FaultStore::new(Arc::new(InMemory::new()));
        let counts = CountingStore::new(Arc::clone(&faults) as Arc<dyn ObjectStore>);
        let io = FileIo::builder().with_store("memory", Arc::clone(&counts) as Arc<dyn ObjectStore>).build();
        Self { io, counts, faults, manifests: Vec::new() }
    }

    /// A loader for the files of the table.
    fn loader(&self) -> DeleteLoader {
        DeleteLoader::new(&table(metadata("memory:/t/none.avro"), &self.io))
    }

    /// Adds a manifest of files, each with its data sequence number.
    async fn manifest(&mut self, name: &str, spec_id: i32, content: ManifestContent, files: Vec<(DataFile, i64)>) {
        let metadata = metadata("memory:/t/none.avro");
        let spec = metadata.spec_by_id(spec_id).unwrap();
        let schema = metadata.current_schema().unwrap();
        let partition_type = spec.partition_type(&metadata);
        let mut writer = ManifestWriter::new(metadata.format_version, spec, &partition_type, schema, content, SNAPSHOT);
        for (file, sequence_number) in files {
            writer.add(ManifestEntry {
                status: EntryStatus::Existing,
                snapshot_id: Some(SNAPSHOT),
                sequence_number: Some(sequence_number),
                file_sequence_number: Some(sequence_number),
                data_file: Arc::new(file),
            });
        }
        let path = format!("memory:/t/{name}.avro");
        let (bytes, manifest) = writer.finish(&path).unwrap();
        self.io.write(&path, bytes.into()).await.unwrap();
        self.manifests.push(manifest);
    }

    /// The table with the manifests added so far.
    async fn table(&mut self) -> Table {
        let list = "memory:/t/snap.avro";
        assign_list_inheritance(&mut self.manifests, 9, None);
        let metadata = metadata(list);
        let bytes = write_manifest_list(metadata.format_version, SNAPSHOT, None, 9, None, &self.manifests).unwrap();
        self.io.write(list, bytes.into()).await.unwrap();
        table(metadata, &self.io)
    }
}

fn table(metadata: TableMetadata, io: &FileIo) -> Table {
    let catalog = MemoryCatalog::new("test", "memory:/", io.clone(), Env::system()).unwrap();
    let loaded = LoadedTable { metadata: Arc::new(metadata), metadata_location: "memory:/t/v1.metadata.json".into() };
    Table::new(Arc::new(catalog), TableIdent::new(["ns"], "t"), loaded, Env::system())
}

/// Columns: 1 id long, 2 s string. Specs: 0 unpartitioned, 1 identity(s), 2 void(s).
fn metadata(manifest_list: &str) -> TableMetadata {
    let json = json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "memory:/t",
        "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 2, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "type": "long", "required": false},
            {"id": 2, "name": "s", "type": "string", "required": false}]}],
        "default-spec-id": 1, "last-partition-id": 1001,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "s", "transform": "identity"}]},
            {"spec-id": 2, "fields": [{"source-id": 2, "field-id": 1001, "name": "v", "transform": "void"}]}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": SNAPSHOT,
        "snapshots": [{"snapshot-id": SNAPSHOT, "sequence-number": 9, "timestamp-ms": 1, "schema-id": 0,
            "manifest-list": manifest_list, "summary": {"operation": "append"}}],
        "properties": {}
    });
    TableMetadata::parse(json.to_string().as_bytes(), "test").unwrap()
}

fn key(spec_id: i32, values: impl IntoIterator<Item = Option<Literal>>) -> PartitionKey {
    PartitionKey { spec_id, tuple: PartitionTuple(values.into_iter().collect()) }
}

fn s(value: &str) -> PartitionKey {
    key(1, [Some(Literal::String(value.into()))])
}

fn file(content: DataContent, path: &str, partition: PartitionKey) -> DataFile {
    let ids = if content == DataContent::EqualityDeletes { vec![1] } else { vec![] };
    DataFile {
        record_count: 10,
        file_size_in_bytes: 1000,
        equality_ids: ids,
        ..DataFile::new(content, path, FileFormat::Parquet, partition)
    }
}
