//! Deletion vectors: sets of row positions, and their blob in a Puffin file.
//!
//! Implements the spec's Puffin blob type `deletion-vector-v1`. Invariant: what is written is run-optimised, ascending
//! by key and sparse; what is read is checked for length, magic, checksum and order before a position is believed.

use std::ops::Range;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::{Error, Result};

/// First bytes of the vector, after the length prefix.
const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// Length prefix, magic, bitmap count and checksum: what every blob has.
const FRAME_BYTES: usize = 4 + MAGIC.len() + 8 + 4;
/// A key and the smallest serialised 32-bit bitmap: what every entry has at least.
const MIN_ENTRY_BYTES: u64 = 4 + 8;
/// Greatest position a vector may hold: Java reads keys (upper 32 bits) up to 2^31 - 2.
const MAX_POSITION: u64 = ((i32::MAX as u64 - 1) << 32) | u32::MAX as u64;

/// A set of row positions of one data file, wherever positions are kept.
pub type PositionBitmap = DeletionVector;

/// A set of row positions (0-based) of one data file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector {
    bitmap: RoaringTreemap,
}

impl DeletionVector {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of the given positions, in any order.
    pub fn from_positions(positions: impl IntoIterator<Item = u64>) -> Self {
        let mut set = Self::new();
        set.extend(positions);
        set
    }

    /// Adds a position; false when it was there already.
    pub fn insert(&mut self, position: u64) -> bool {
        self.bitmap.insert(position)
    }

    /// Adds every position of a half-open range.
    pub fn insert_range(&mut self, range: Range<u64>) {
        self.bitmap.insert_range(range);
    }

    /// Adds every position of `other`.
    pub fn union_with(&mut self, other: &Self) {
        self.bitmap |= &other.bitmap;
    }

    /// Removes every position of `other`.
    pub fn subtract(&mut self, other: &Self) {
        self.bitmap -= &other.bitmap;
    }

    /// Whether the position is in the set.
    pub fn contains(&self, position: u64) -> bool {
        self.bitmap.contains(position)
    }

    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.bitmap.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.bitmap.is_empty()
    }

    /// Number of positions in a half-open range.
    pub fn count_in(&self, range: Range<u64>) -> u64 {
        if range.is_empty() { 0 } else { self.rank_below(range.end) - self.rank_below(range.start) }
    }

    /// Number of positions below `end`.
    fn rank_below(&self, end: u64) -> u64 {
        end.checked_sub(1).map_or(0, |last| self.bitmap.rank(last))
    }

    /// Greatest position.
    pub fn max(&self) -> Option<u64> {
        self.bitmap.max()
    }

    /// Positions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.bitmap.iter()
    }

    /// The set as half-open ranges of positions: ascending, not touching, each as long as can be.
    pub fn to_row_ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for position in &self.bitmap {
            match ranges.last_mut() {
                Some(last) if last.end == position => last.end = position + 1,
                _ => ranges.push(position..position + 1),
            }
        }
        ranges
    }

    /// The blob: big-endian length of magic and vector, magic, vector (little-endian), big-endian CRC-32 of magic and
    /// vector.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for a position above the greatest a reader takes, or 2 GiB and more.
    pub fn encode(&self) -> Result<Vec<u8>> {
        if let Some(max) = self.bitmap.max().filter(|m| *m > MAX_POSITION) {
            return Err(Error::invalid_input(format!("position {max} is too great for a deletion vector")));
        }
        let bitmap = RoaringTreemap::from_bitmaps(self.bitmap.bitmaps().map(|(key, bitmap)| {
            let mut bitmap = bitmap.clone();
            bitmap.optimize();
            (key, bitmap)
        }));
        let size = MAGIC.len() + bitmap.serialized_size();
        let length = i32::try_from(size)
            .map_err(|_| Error::invalid_input(format!("a deletion vector of {size} bytes exceeds 2 GiB")))?;
        let mut blob = Vec::with_capacity(size + 8);
        blob.extend_from_slice(&length.to_be_bytes());
        blob.extend_from_slice(&MAGIC);
        bitmap
            .serialize_into(&mut blob)
            .map_err(|e| Error::internal("cannot serialise a deletion vector").with_source(e))?;
        let checksum = crc32fast::hash(blob.get(4..).unwrap_or_default());
        blob.extend_from_slice(&checksum.to_be_bytes());
        Ok(blob)
    }

    /// Reads a blob: exactly the bytes that the manifest's `content_offset` and `content_size_in_bytes` name, whatever
    /// surrounds them. Keys may be sparse and bitmaps empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::DataInvalid`] when length, magic, checksum or bitmap are wrong. The caller adds the path.
    pub fn decode(blob: &[u8]) -> Result<Self> {
        let invalid = |what: String| Error::data_invalid(format!("deletion vector: {what}"));
        if blob.len() < FRAME_BYTES {
            return Err(invalid(format!("{} bytes are too few", blob.len())));
        }
        let (Some((length, rest)), Some(checksum)) = (blob.split_first_chunk::<4>(), blob.last_chunk::<4>()) else {
            return Err(invalid("too short".into()));
        };
        let body = rest.get(..rest.len().saturating_sub(4)).unwrap_or_default();
        let length = u32::from_be_bytes(*length);
        if usize::try_from(length) != Ok(body.len()) {
            return Err(invalid(format!("length field says {length}, the blob holds {}", body.len())));
        }
        let Some(vector) = body.strip_prefix(&MAGIC) else {
            return Err(invalid("wrong magic number".into()));
        };
        if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
            return Err(invalid("checksum does not match".into()));
        }
        let bitmap = decode_treemap(vector).map_err(invalid)?;
        Ok(Self { bitmap })
    }

    /// [`Self::decode`], and checks that the vector has as many positions as the manifest entry's `record_count`.
    ///
    /// # Errors
    /// As [`Self::decode`], and [`crate::ErrorKind::DataInvalid`] for another number of positions.
    pub fn decode_checked(blob: &[u8], cardinality: u64) -> Result<Self> {
        let vector = Self::decode(blob)?;
        if vector.len() != cardinality {
            return Err(Error::data_invalid(format!(
                "deletion vector has {} positions, its manifest entry says {cardinality}",
                vector.len()
            )));
        }
        Ok(vector)
    }
}

/// Reads the 64-bit bitmap. Nothing is allocated on the word of a count: each bitmap must be backed by bytes.
fn decode_treemap(bytes: &[u8]) -> Result<RoaringTreemap, String> {
    let Some((count, mut rest)) = bytes.split_first_chunk::<8>() else {
        return Err("no bitmap count".into());
    };
    let count = u64::from_le_bytes(*count);
    if count > rest.len() as u64 / MIN_ENTRY_BYTES {
        return Err(format!("bitmap count {count} exceeds the blob"));
    }
    let mut bitmaps: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let Some((key, tail)) = rest.split_first_chunk::<4>() else {
            return Err("bitmap key missing".into());
        };
        let key = u32::from_le_bytes(*key);
        if key >= i32::MAX as u32 || bitmaps.last().is_some_and(|(last, _)| *last >= key) {
            return Err(format!("bitmap key {key} is out of range or order"));
        }
        rest = tail;
        let bitmap = RoaringBitmap::deserialize_from(&mut rest).map_err(|e| format!("bitmap of key {key}: {e}"))?;
        bitmaps.push((key, bitmap));
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes after the last bitmap", rest.len()));
    }
    Ok(RoaringTreemap::from_bitmaps(bitmaps.into_iter().filter(|(_, bitmap)| !bitmap.is_empty())))
}

impl Extend<u64> for DeletionVector {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, iter: T) {
        self.bitmap.extend(iter);
    }
}

impl FromIterator<u64> for DeletionVector {
    fn from_iter<T: IntoIterator<Item = u64>>(iter: T) -> Self {
        Self::from_positions(iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden_blobs() -> Vec<(std::path::PathBuf, Vec<u8>, u64)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden");
        let mut blobs = Vec::new();
        for table in std::fs::read_dir(root).unwrap() {
            let Ok(files) = std::fs::read_dir(table.unwrap().path().join("data")) else { continue };
            for file in files {
                let path = file.unwrap().path();
                if path.extension().is_none_or(|e| e != "puffin") {
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                for blob in crate::spec::puffin::read_footer(&bytes).unwrap().blobs {
                    let start = blob.offset as usize;
                    let cardinality = blob.properties["cardinality"].parse().unwrap();
                    blobs.push((path.clone(), bytes[start..start + blob.length as usize].to_vec(), cardinality));
                }
            }
        }
        blobs
    }

    #[test]
    fn golden_vectors_decode_and_encode_to_the_same_bytes() {
        let blobs = golden_blobs();
        assert!(blobs.len() > 10, "only {} golden vectors", blobs.len());
        for (path, bytes, cardinality) in blobs {
            let vector = DeletionVector::decode_checked(&bytes, cardinality).unwrap();
            // Once as read, once from bare positions: containers must not depend on the way the set was made.
            assert_eq!(vector.encode().unwrap(), bytes, "{}", path.display());
            assert_eq!(DeletionVector::from_positions(vector.iter()).encode().unwrap(), bytes, "{}", path.display());
        }
    }

    #[test]
    fn golden_vector_with_every_container_kind() {
        let (_, bytes, cardinality) =
            golden_blobs().into_iter().find(|(path, ..)| path.to_string_lossy().contains("dv_containers")).unwrap();
        assert_eq!(cardinality, 133_000 - 5_892);
        let vector = DeletionVector::decode_checked(&bytes, cardinality).unwrap();
        assert!(!vector.contains(4242) && vector.contains(4241) && !vector.contains(65_539));
    }

    #[test]
    fn round_trips_random_sets_over_several_keys() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            let mut vector = DeletionVector::new();
            for _ in 0..rng.usize(0..400) {
                let key = rng.u64(0..4) << 32;
                match rng.u8(0..3) {
                    0 => drop(vector.insert(key | rng.u64(0..200_000))),
                    1 => {
                        let start = key | rng.u64(0..200_000);
                        vector.insert_range(start..start + rng.u64(0..3_000));
                    }
                    _ => vector.extend((0..50).map(|i| key | (i * 3))),
                }
            }
            let back = DeletionVector::decode_checked(&vector.encode().unwrap(), vector.len()).unwrap();
            assert!(back.iter().eq(vector.iter()));
            let ranges = vector.to_row_ranges();
            assert!(ranges.iter().cloned().flatten().eq(vector.iter()));
            assert!(ranges.is_sorted_by(|a, b| a.end < b.start));
        }
    }

    #[test]
    fn counts_and_combines() {
        let mut a = DeletionVector::from_positions([1, 2, 3, 10]);
        assert_eq!((a.count_in(0..3), a.count_in(3..11), a.count_in(4..4), a.count_in(0..1)), (2, 2, 0, 0));
        assert!(!a.insert(3));
        a.union_with(&DeletionVector::from_positions([3, 4]));
        assert_eq!(a.to_row_ranges(), vec![1..5, 10..11]);
        a.subtract(&DeletionVector::from_positions([1, 10]));
        assert_eq!((a.len(), a.max()), (3, Some(4)));
    }

    #[test]
    fn refuses_damaged_blobs() {
        let blob = DeletionVector::from_positions((0..500).map(|i| i * 7)).encode().unwrap();
        for len in 0..blob.len() {
            assert_eq!(DeletionVector::decode(&blob[..len]).unwrap_err().kind(), crate::ErrorKind::DataInvalid);
        }
        for i in 0..blob.len() {
            let mut bad = blob.clone();
            bad[i] ^= 0x10;
            assert!(DeletionVector::decode(&bad).is_err(), "flipped byte {i}");
        }
        assert!(DeletionVector::decode_checked(&blob, 499).unwrap_err().to_string().contains("500"));
    }

    /// A blob around any vector bytes, with right length and checksum.
    fn framed(vector: &[u8]) -> Vec<u8> {
        let body = [&MAGIC[..], vector].concat();
        let checksum = crc32fast::hash(&body).to_be_bytes();
        [&(body.len() as u32).to_be_bytes()[..], &body, &checksum].concat()
    }

    #[test]
    fn damaged_bitmaps_behind_a_right_checksum_never_panic() {
        let blob = golden_blobs().into_iter().find(|(p, ..)| p.to_string_lossy().contains("dv_containers")).unwrap().1;
        let vector = &blob[8..blob.len() - 4];
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..2_000 {
            let mut bad = vector.to_vec();
            for _ in 0..rng.usize(1..4) {
                // The headers sit in front; damage them most.
                let span = if rng.bool() { bad.len().min(64) } else { bad.len() };
                bad[rng.usize(0..span)] = rng.u8(..);
            }
            bad.truncate(if rng.bool() { bad.len() } else { rng.usize(0..bad.len()) });
            let _ = DeletionVector::decode(&framed(&bad));
        }
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        huge.extend([0; 32]);
        assert!(DeletionVector::decode(&framed(&huge)).unwrap_err().to_string().contains("count"));
    }

    #[test]
    fn reads_sparse_and_empty_keys() {
        let mut empty = Vec::new();
        RoaringBitmap::new().serialize_into(&mut empty).unwrap();
        let mut one = Vec::new();
        RoaringBitmap::from_iter([9u32]).serialize_into(&mut one).unwrap();
        let bytes = [&2u64.to_le_bytes()[..], &0u32.to_le_bytes(), &empty, &5u32.to_le_bytes(), &one].concat();
        let vector = DeletionVector::decode(&framed(&bytes)).unwrap();
        assert_eq!(vector.iter().collect::<Vec<_>>(), vec![(5 << 32) | 9]);
    }
}
