//! A table: its name, one state of it, and what is needed to read its files and to commit the next state.
//!
//! Invariant: a `Table` never changes; [`Table::refresh`] gives another one.

mod version;

use std::sync::Arc;

pub use version::{TableState, TableVersion};

use crate::Result;
use crate::catalog::{Catalog, LoadedTable, TableIdent, metadata_dir};
use crate::env::Env;
use crate::io::{FileIo, join};
use crate::spec::transform::bucket_hash;
use crate::spec::{Literal, TableMetadata, TableProperties};

/// One state of a table. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name in the catalog.
    pub ident: TableIdent,
    /// Its state.
    pub metadata: Arc<TableMetadata>,
    /// The metadata file that holds the state.
    pub metadata_location: String,
    /// Access to its files.
    pub io: FileIo,
    /// The catalog that commits to it.
    pub catalog: Arc<dyn Catalog>,
    /// Clock and ids for what is written to it.
    pub env: Env,
}

impl Table {
    /// The table `ident` in the state `loaded`.
    pub fn new(catalog: Arc<dyn Catalog>, ident: TableIdent, loaded: LoadedTable, env: Env) -> Self {
        let LoadedTable { metadata, metadata_location } = loaded;
        Self { ident, metadata, metadata_location, io: catalog.file_io().clone(), catalog, env }
    }

    /// The table's current state in `catalog`.
    pub async fn load(catalog: Arc<dyn Catalog>, ident: TableIdent, env: Env) -> Result<Self> {
        let loaded = catalog.load_table(&ident).await?;
        Ok(Self::new(catalog, ident, loaded, env))
    }

    /// The table's state now.
    pub async fn refresh(&self) -> Result<Self> {
        let loaded = self.catalog.load_table(&self.ident).await?;
        Ok(self.with_state(loaded))
    }

    /// The same table in another state.
    #[must_use]
    pub fn with_state(&self, loaded: LoadedTable) -> Self {
        Self { metadata: loaded.metadata, metadata_location: loaded.metadata_location, ..self.clone() }
    }

    /// State and file, as a base to commit on.
    pub fn loaded(&self) -> LoadedTable {
        LoadedTable { metadata: Arc::clone(&self.metadata), metadata_location: self.metadata_location.clone() }
    }

    /// The table's typed properties.
    pub fn properties(&self) -> Result<TableProperties> {
        self.metadata.typed_properties()
    }

    /// The folder for new data and delete files: `write.data.path`, or `data` in the table's location.
    pub fn data_dir(&self) -> Result<String> {
        Ok(self.properties()?.data_path.unwrap_or_else(|| join(&self.metadata.location, "data")))
    }

    /// Where a new data or delete file goes. `partition_path` is the form-encoded path of its partition, empty when
    /// unpartitioned; `file_name` must be unique.
    ///
    /// With `write.object-storage.enabled` the partition path follows, or by `partitioned-paths` is replaced by, folders
    /// named after the file's hash.
    pub fn new_data_location(&self, partition_path: &str, file_name: &str) -> Result<String> {
        let properties = self.properties()?;
        let dir = match properties.data_path {
            Some(path) => path,
            None => join(&self.metadata.location, "data"),
        };
        let partitioned =
            if partition_path.is_empty() { file_name.to_string() } else { format!("{partition_path}/{file_name}") };
        if !properties.object_storage_enabled {
            return Ok(join(&dir, &partitioned));
        }
        Ok(object_storage_location(&dir, partition_path, file_name, properties.object_storage_partitioned_paths))
    }

    /// Where a new manifest, manifest list or statistics file goes; `name` must be unique.
    pub fn new_metadata_file_location(&self, name: &str) -> String {
        join(&metadata_dir(&self.metadata), name)
    }
}

/// Java's object storage layout: 20 bits of the hash of the name, as three folders of 4 and one of 8, spread the files of a table
/// over the key space.
fn object_storage_location(dir: &str, partition_path: &str, file_name: &str, partitioned_paths: bool) -> String {
    let keep_partition = partitioned_paths && !partition_path.is_empty();
    let name = if keep_partition { format!("{partition_path}/{file_name}") } else { file_name.to_string() };
    let hash = bucket_hash(&Literal::String(name.clone())).unwrap_or_default() as u32 & 0xf_ffff;
    let (a, b, c, d) = (hash >> 16, (hash >> 12) & 0xf, (hash >> 8) & 0xf, hash & 0xff);
    let separator = if partitioned_paths { '/' } else { '-' };
    join(dir, &format!("{a:04b}/{b:04b}/{c:04b}/{d:08b}{separator}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_storage_folders_are_those_of_java() {
        for path in [
            "1000/1001/0110/00000011/00000-932-d6f17e4c-6b3b-41a1-9974-33942365ea69-0-00001.parquet",
            "0110/0011/1000/11111011/00000-929-857e33f2-40d8-42e8-a5cb-31563391735b-0-00001.parquet",
            "1111/0001/0101/00111010/00000-934-f94b34fa-d2b9-4bf0-94d8-df8eb2d0e862-00002-deletes.parquet",
        ] {
            let name = path.rsplit('/').next().unwrap();
            assert_eq!(object_storage_location("file:///t/data", "", name, true), format!("file:///t/data/{path}"));
        }
        let with = object_storage_location("d", "p=1", "f", true);
        assert!(with.starts_with("d/") && with.ends_with("/p=1/f"), "{with}");
        let without = object_storage_location("d", "p=1", "f", false);
        assert!(without.ends_with("-f") && !without.contains("p=1"), "{without}");
    }
}
