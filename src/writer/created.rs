//! Names of new files, and the files made so far.

use uuid::Uuid;

use crate::io::FileIo;

/// Names that no other writer of the table gives: Java's `OutputFileFactory`, with a fresh uuid a writer.
#[derive(Debug)]
pub(crate) struct FileNames {
    partition: usize,
    task: u64,
    uuid: Uuid,
    next: u32,
}

impl FileNames {
    pub(crate) fn new(partition: usize, task: u64, uuid: Uuid) -> Self {
        Self { partition, task, uuid, next: 1 }
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The next data file's name.
    pub(crate) fn data(&mut self) -> String {
        let n = self.number();
        format!("{:05}-{}-{}-0-{n:05}.parquet", self.partition, self.task, self.uuid)
    }

    /// The next delete file's name.
    pub(crate) fn deletes(&mut self, extension: &str) -> String {
        let n = self.number();
        format!("{:05}-{}-{}-{n:05}-deletes.{extension}", self.partition, self.task, self.uuid)
    }
}

/// Files made and not yet handed over: deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct CreatedFiles {
    io: FileIo,
    locations: Vec<String>,
}

impl CreatedFiles {
    pub(crate) fn new(io: FileIo) -> Self {
        Self { io, locations: Vec::new() }
    }

    /// Notes a file that is about to exist.
    pub(crate) fn add(&mut self, location: &str) {
        self.locations.push(location.to_owned());
    }

    /// Leaves the files to the caller.
    pub(crate) fn release(mut self) {
        self.locations.clear();
    }

    /// Deletes the files now; those that cannot be deleted are left for orphan removal.
    pub(crate) async fn delete(mut self) {
        let locations = std::mem::take(&mut self.locations);
        if !locations.is_empty() {
            let _ = self.io.delete_all(locations).await;
        }
    }
}

impl Drop for CreatedFiles {
    fn drop(&mut self) {
        let locations = std::mem::take(&mut self.locations);
        if locations.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let io = self.io.clone();
            runtime.spawn(async move {
                let _ = io.delete_all(locations).await;
            });
        }
    }
}
