//! Deletion vectors (v3), many to a Puffin file.
//!
//! Implements the spec section "Deletion Vectors". Invariant: a data file gets one vector a writer; offset and length in a
//! vector's description are those of its blob in the file's footer.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::created::{CreatedFiles, FileNames};
use super::parquet_schema::created_by;
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::puffin::PuffinWriter;
use crate::spec::{DataContent, DataFile, FileFormat, FormatVersion, PartitionKey};
use crate::table::Table;
use crate::{Error, Result};

/// Writes deletion vectors for a v3 table to as few Puffin files as `write.delete.target-file-size-bytes` allows. Memory
/// holds one file.
pub struct DeletionVectorWriter {
    table: Table,
    target: u64,
    names: FileNames,
    created: CreatedFiles,
    puffin: PuffinWriter,
    /// Vectors in `puffin`, path and size of the file still to be filled in.
    pending: Vec<DataFile>,
    addressed: HashSet<Arc<str>>,
    finished: Vec<DataFile>,
}

impl DeletionVectorWriter {
    /// A writer for `table`; `partition` and `task` go into file names.
    ///
    /// # Errors
    /// `Unsupported` for a table below format version 3.
    pub fn new(table: &Table, partition: usize, task: u64) -> Result<Self> {
        if table.metadata.format_version < FormatVersion::V3 {
            return Err(Error::unsupported("deletion vectors are written to format version 3 tables only"));
        }
        let properties = table.properties()?;
        properties.check_writable()?;
        Ok(Self {
            target: properties.delete_target_file_size_bytes,
            names: FileNames::new(partition, task, table.env.uuid()),
            created: CreatedFiles::new(table.io.clone()),
            puffin: new_puffin(),
            pending: Vec::new(),
            addressed: HashSet::new(),
            finished: Vec::new(),
            table: table.clone(),
        })
    }

    /// Adds the vector of the data file at `path`, which lies in `partition`: all its deleted positions, those deleted
    /// before included.
    ///
    /// # Errors
    /// `InvalidInput` for an empty vector, and for a second vector of one data file; storage errors.
    pub async fn add(&mut self, path: &Arc<str>, partition: &PartitionKey, vector: &DeletionVector) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid_input(what).with_context("data file", path.to_string()));
        if vector.is_empty() {
            return refuse("a deletion vector that deletes nothing");
        }
        if !self.addressed.insert(Arc::clone(path)) {
            return refuse("a second deletion vector for a data file");
        }
        let blob = vector.encode()?;
        let stored = self.puffin.add_deletion_vector(&blob, path, vector.len());
        let mut file = DataFile::new(DataContent::PositionDeletes, "", FileFormat::Puffin, partition.clone());
        file.record_count = vector.len();
        file.referenced_data_file = Some(Arc::clone(path));
        file.content_offset = Some(stored.offset);
        file.content_size_in_bytes = Some(stored.length);
        self.pending.push(file);
        if self.puffin.len() >= self.target { self.roll().await } else { Ok(()) }
    }

    async fn roll(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.puffin, new_puffin()).finish()?;
        let size = bytes.len() as u64;
        let location = self.table.new_data_location("", &self.names.deletes("puffin"))?;
        self.created.add(&location);
        self.table.io.write(&location, bytes.into()).await?;
        let location: Arc<str> = location.into();
        for mut file in self.pending.drain(..) {
            file.file_path = Arc::clone(&location);
            file.file_size_in_bytes = size;
            self.finished.push(file);
        }
        Ok(())
    }

    /// Writes what is left; one description a vector, in the order added. The files are the caller's from here on. On an
    /// error what was written is deleted, best effort.
    pub async fn finish(mut self) -> Result<Vec<DataFile>> {
        match self.roll().await {
            Ok(()) => {
                self.created.release();
                Ok(self.finished)
            }
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    /// Gives up: deletes the files made so far.
    pub async fn abort(self) {
        self.created.delete().await;
    }
}

fn new_puffin() -> PuffinWriter {
    PuffinWriter::new(BTreeMap::from([("created-by".to_owned(), created_by())]))
}
