//! Puffin files: containers of blobs with a JSON footer.
//!
//! Implements the Puffin specification as far as deletion vectors need it. Invariant: offsets and lengths in the footer
//! are those of the blobs as stored; nothing is compressed on write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// First and last bytes of a file, and of the footer.
const MAGIC: [u8; 4] = *b"PFA1";
/// Payload length, flags and magic: the footer's end.
const FOOTER_TAIL_BYTES: usize = 4 + 4 + MAGIC.len();
/// Flag bit 0: the footer's payload is compressed.
const FLAG_COMPRESSED: u32 = 1;

/// Blob type of deletion vectors.
pub const DELETION_VECTOR_V1: &str = "deletion-vector-v1";
/// Field id of a row's position: the one field of a deletion vector's blob.
pub const ROW_POSITION_FIELD_ID: i32 = 2_147_483_645;
/// Blob property: location of the data file that a deletion vector addresses.
pub const REFERENCED_DATA_FILE: &str = "referenced-data-file";
/// Blob property: number of positions in a deletion vector.
pub const CARDINALITY: &str = "cardinality";

/// What the footer says of one blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BlobMetadata {
    /// Kind of the blob.
    #[serde(rename = "type")]
    pub blob_type: String,
    /// Field ids the blob was computed from.
    pub fields: Vec<i32>,
    /// Snapshot the blob was computed from; -1 for a deletion vector.
    pub snapshot_id: i64,
    /// Sequence number of that snapshot; -1 for a deletion vector.
    pub sequence_number: i64,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes stored.
    pub length: u64,
    /// Codec of the stored bytes; `None` is not compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_codec: Option<String>,
    /// Further facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// The footer of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// The blobs, in file order.
    pub blobs: Vec<BlobMetadata>,
    /// Properties of the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Reads the footer from a whole file, or from an end of it that holds the footer. Blobs of a whole file must lie
/// inside it. The caller adds the path to an error.
///
/// # Errors
/// [`crate::ErrorKind::DataInvalid`] for a malformed footer; [`crate::ErrorKind::Unsupported`] for a compressed one.
pub fn read_footer(bytes: &[u8]) -> Result<Footer> {
    let invalid = |what: &str| Error::data_invalid(format!("Puffin footer: {what}"));
    let Some((rest, tail)) = bytes.split_last_chunk::<FOOTER_TAIL_BYTES>() else {
        return Err(invalid("the file is too short"));
    };
    let [l0, l1, l2, l3, f0, f1, f2, f3, magic @ ..] = *tail;
    if magic != MAGIC {
        return Err(invalid("no magic at the end of the file"));
    }
    let flags = u32::from_le_bytes([f0, f1, f2, f3]);
    if flags & FLAG_COMPRESSED != 0 {
        return Err(Error::unsupported("Puffin footer compressed with LZ4"));
    }
    if flags != 0 {
        return Err(Error::unsupported(format!("Puffin footer with unknown flags {flags:#x}")));
    }
    let length =
        usize::try_from(i32::from_le_bytes([l0, l1, l2, l3])).map_err(|_| invalid("the payload length is negative"))?;
    let start = rest.len().checked_sub(length).ok_or_else(|| invalid("the payload length exceeds the file"))?;
    let (before, payload) = rest.split_at(start);
    let Some(blobs) = before.strip_suffix(&MAGIC) else {
        return Err(invalid("no magic before the payload"));
    };
    let footer: Footer =
        serde_json::from_slice(payload).map_err(|e| invalid("the payload is not valid").with_source(e))?;
    // Only the start of a whole file is its magic; of a part, the offsets are relative to something not seen here.
    if blobs.starts_with(&MAGIC) {
        let inside = |b: &BlobMetadata| b.offset.checked_add(b.length).is_some_and(|end| end <= blobs.len() as u64);
        if let Some(blob) = footer.blobs.iter().find(|b| !inside(b)) {
            return Err(invalid(&format!("blob at {} of {} bytes lies outside the file", blob.offset, blob.length)));
        }
    }
    Ok(footer)
}

/// Builds a file in memory, blob by blob.
#[derive(Debug)]
pub struct PuffinWriter {
    bytes: Vec<u8>,
    footer: Footer,
}

impl PuffinWriter {
    /// An empty file with the given file properties (`created-by`, …).
    pub fn new(properties: BTreeMap<String, String>) -> Self {
        Self { bytes: MAGIC.to_vec(), footer: Footer { blobs: Vec::new(), properties } }
    }

    /// Appends a blob and returns its metadata; `offset` and `length` of the given one are replaced.
    pub fn add(&mut self, metadata: BlobMetadata, blob: &[u8]) -> &BlobMetadata {
        let metadata = BlobMetadata { offset: self.bytes.len() as u64, length: blob.len() as u64, ..metadata };
        self.bytes.extend_from_slice(blob);
        let index = self.footer.blobs.len();
        self.footer.blobs.push(metadata);
        &self.footer.blobs[index]
    }

    /// Appends the blob of a deletion vector as [`super::deletion_vector::DeletionVector::encode`] made it.
    pub fn add_deletion_vector(&mut self, blob: &[u8], referenced_data_file: &str, cardinality: u64) -> &BlobMetadata {
        let properties = BTreeMap::from([
            (REFERENCED_DATA_FILE.to_owned(), referenced_data_file.to_owned()),
            (CARDINALITY.to_owned(), cardinality.to_string()),
        ]);
        let metadata = BlobMetadata {
            blob_type: DELETION_VECTOR_V1.to_owned(),
            fields: vec![ROW_POSITION_FIELD_ID],
            snapshot_id: -1,
            sequence_number: -1,
            offset: 0,
            length: 0,
            compression_codec: None,
            properties,
        };
        self.add(metadata, blob)
    }

    /// Bytes so far, without the footer.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether no blob was added.
    pub fn is_empty(&self) -> bool {
        self.footer.blobs.is_empty()
    }

    /// The whole file.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for a footer of 2 GiB or more.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        let payload = serde_json::to_vec(&self.footer)
            .map_err(|e| Error::internal("cannot serialise a Puffin footer").with_source(e))?;
        let length = i32::try_from(payload.len())
            .map_err(|_| Error::invalid_input("a Puffin footer exceeds 2 GiB: write fewer blobs to a file"))?;
        self.bytes.extend_from_slice(&MAGIC);
        self.bytes.extend_from_slice(&payload);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&0u32.to_le_bytes());
        self.bytes.extend_from_slice(&MAGIC);
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn sample() -> Vec<u8> {
        let mut writer = PuffinWriter::new(BTreeMap::from([("created-by".into(), "calve".into())]));
        assert_eq!(writer.add_deletion_vector(b"first", "file:/a.parquet", 3).offset, 4);
        let second = writer.add_deletion_vector(b"second!", "file:/b.parquet", 1);
        assert_eq!((second.offset, second.length), (9, 7));
        writer.finish().unwrap()
    }

    #[test]
    fn writes_what_it_reads() {
        let bytes = sample();
        assert!(bytes.starts_with(b"PFA1first") && bytes.ends_with(b"\0\0\0\0PFA1"));
        let footer = read_footer(&bytes).unwrap();
        assert_eq!(footer.properties["created-by"], "calve");
        assert_eq!(footer.blobs[1].properties[REFERENCED_DATA_FILE], "file:/b.parquet");
        assert_eq!(footer.blobs[1].fields, vec![2_147_483_645]);
        assert_eq!((footer.blobs[0].snapshot_id, footer.blobs[0].sequence_number), (-1, -1));
        // The end of a file is enough.
        assert_eq!(read_footer(&bytes[9..]).unwrap(), footer);
    }

    #[test]
    fn compressed_footer_is_unsupported() {
        let mut bytes = sample();
        let flags = bytes.len() - 8;
        bytes[flags] = 1;
        assert_eq!(read_footer(&bytes).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn damaged_files_are_errors() {
        let bytes = sample();
        for len in 0..bytes.len() {
            assert!(read_footer(&bytes[..len]).is_err(), "length {len}");
        }
        for i in 0..bytes.len() {
            for flip in [0x01, 0x80] {
                let mut bad = bytes.clone();
                bad[i] ^= flip;
                let _ = read_footer(&bad);
            }
        }
        let mut bad = bytes.clone();
        let at = bad.len() - 12;
        bad[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
        assert!(read_footer(&bad).unwrap_err().to_string().contains("exceeds"));
    }

    #[test]
    fn reads_table_statistics_of_other_engines() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/stats_puffin/metadata");
        let path = std::fs::read_dir(dir)
            .unwrap()
            .map(|f| f.unwrap().path())
            .find(|p| p.to_string_lossy().ends_with(".stats"))
            .unwrap();
        let footer = read_footer(&std::fs::read(path).unwrap()).unwrap();
        assert!(footer.blobs.iter().all(|b| b.blob_type == "apache-datasketches-theta-v1" && b.snapshot_id > 0));
        assert!(!footer.blobs.is_empty());
    }
}
