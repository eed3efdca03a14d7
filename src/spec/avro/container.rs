//! Avro object container files: the frame around manifests and manifest lists.
//!
//! Implements "Object Container Files" of the Avro specification. The frame is read here and not by arrow-avro, which
//! takes a file cut inside a block for a shorter one, ignores sync markers and unpacks blocks of any size. Invariant:
//! the blocks handed out are whole, lie between the file's own sync markers, and unpack to a bounded size.

use std::borrow::Cow;
use std::hash::Hasher;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::varint::{read_bytes, read_long, write_long};
use crate::{Error, Result};

/// First bytes of a file.
const MAGIC: [u8; 4] = *b"Obj\x01";
/// Greatest size of a block once unpacked; Java's are 64 KB.
const MAX_BLOCK_BYTES: u64 = 1 << 29;
/// Rows of a block written hold about this many bytes before packing.
const BLOCK_BYTES: usize = 256 * 1024;

/// How blocks are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

/// An open file: its header, and its blocks one after the other.
#[derive(Debug)]
pub(crate) struct Container<'a> {
    header: Vec<(&'a str, &'a [u8])>,
    codec: Codec,
    sync: [u8; 16],
    rest: &'a [u8],
}

/// One block: unpacked rows, and how many they are.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) rows: u64,
    pub(crate) data: Cow<'a, [u8]>,
}

impl<'a> Container<'a> {
    /// Reads the header. The caller adds the path to errors, here and below.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let Some(mut rest) = bytes.strip_prefix(&MAGIC) else {
            return Err(Error::data_invalid("not an Avro file: wrong magic number"));
        };
        let header = read_header(&mut rest).map_err(|e| Error::data_invalid(format!("Avro header: {e}")))?;
        let Some((sync, rest)) = rest.split_first_chunk::<16>() else {
            return Err(Error::data_invalid("Avro header: cut before the sync marker"));
        };
        let mut container = Self { header, codec: Codec::Null, sync: *sync, rest };
        container.codec = match container.get("avro.codec") {
            None | Some("null" | "") => Codec::Null,
            Some("deflate") => Codec::Deflate,
            Some("snappy") => Codec::Snappy,
            Some("zstandard") => Codec::Zstandard,
            Some(other) => return Err(Error::unsupported(format!("Avro codec {other:?}"))),
        };
        Ok(container)
    }

    /// The text of a header key, if it is there and is text.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        let (_, value) = self.header.iter().find(|(k, _)| *k == key)?;
        std::str::from_utf8(value).ok()
    }

    /// All header keys, in file order.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.header.iter().map(|(k, _)| *k)
    }

    /// The next block, or `None` at the end of the file.
    pub(crate) fn next_block(&mut self) -> Result<Option<Block<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let invalid = |what: String| Error::data_invalid(format!("Avro block: {what}"));
        let rows = read_long(&mut self.rest).map_err(invalid)?;
        let rows = u64::try_from(rows).map_err(|_| invalid(format!("negative row count {rows}")))?;
        let packed = read_bytes(&mut self.rest).map_err(invalid)?;
        let Some((sync, rest)) = self.rest.split_first_chunk::<16>() else {
            return Err(invalid("the file is cut before the sync marker".into()));
        };
        if *sync != self.sync {
            return Err(invalid("the sync marker is not the header's".into()));
        }
        self.rest = rest;
        let data = unpack(self.codec, packed).map_err(invalid)?;
        Ok(Some(Block { rows, data }))
    }
}

/// Reads the header map behind the magic number.
fn read_header<'a>(rest: &mut &'a [u8]) -> Result<Vec<(&'a str, &'a [u8])>, String> {
    let mut header = Vec::new();
    loop {
        let mut count = read_long(rest)?;
        if count == 0 {
            return Ok(header);
        }
        if count < 0 {
            count = count.checked_neg().ok_or("map count out of range")?;
            read_long(rest)?;
        }
        for _ in 0..count {
            let key = std::str::from_utf8(read_bytes(rest)?).map_err(|_| "a key is not text")?;
            header.push((key, read_bytes(rest)?));
        }
    }
}

/// Unpacks a block, to [`MAX_BLOCK_BYTES`] at most.
fn unpack(codec: Codec, packed: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let too_large = || format!("unpacks to more than {MAX_BLOCK_BYTES} bytes");
    let read_all = |reader: &mut dyn Read| {
        let mut data = Vec::new();
        reader.take(MAX_BLOCK_BYTES + 1).read_to_end(&mut data).map_err(|e| format!("cannot be unpacked: {e}"))?;
        if data.len() as u64 > MAX_BLOCK_BYTES { Err(too_large()) } else { Ok(Cow::Owned(data)) }
    };
    match codec {
        Codec::Null => Ok(Cow::Borrowed(packed)),
        Codec::Deflate => read_all(&mut DeflateDecoder::new(packed)),
        Codec::Zstandard => {
            let mut decoder = zstd::Decoder::with_buffer(packed).map_err(|e| format!("cannot be unpacked: {e}"))?;
            read_all(&mut decoder)
        }
        Codec::Snappy => {
            let (packed, checksum) = packed.split_last_chunk::<4>().ok_or("too short for snappy")?;
            let size = snap::raw::decompress_len(packed).map_err(|e| format!("cannot be unpacked: {e}"))?;
            // Snappy's densest element makes 64 bytes out of 3: a greater size is not backed by the data.
            if size as u64 > MAX_BLOCK_BYTES || size / 32 > packed.len() {
                return Err(too_large());
            }
            let data =
                snap::raw::Decoder::new().decompress_vec(packed).map_err(|e| format!("cannot be unpacked: {e}"))?;
            if crc32fast::hash(&data) != u32::from_be_bytes(*checksum) {
                return Err("checksum does not match".into());
            }
            Ok(Cow::Owned(data))
        }
    }
}

/// Writes a file packed with deflate.
///
/// `header` holds the keys but `avro.codec`; `data` the rows, of which row `i` ends at `ends[i]`.
pub(crate) fn write_container(header: &[(&str, &str)], data: &[u8], ends: &[usize]) -> std::io::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    write_long(&mut bytes, header.len() as i64 + 1);
    for (key, value) in header.iter().chain([&("avro.codec", "deflate")]) {
        for text in [key, value] {
            write_long(&mut bytes, text.len() as i64);
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    write_long(&mut bytes, 0);
    // Equal content gives equal bytes, so the marker is a hash: all it must do is not occur in the data by chance.
    let sync = sync_marker(&bytes, data);
    bytes.extend_from_slice(&sync);
    let (mut start, mut first) = (0, 0);
    for (row, end) in ends.iter().copied().enumerate() {
        if end.saturating_sub(start) < BLOCK_BYTES && row + 1 < ends.len() {
            continue;
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data.get(start..end).unwrap_or_default())?;
        let packed = encoder.finish()?;
        write_long(&mut bytes, (row + 1 - first) as i64);
        write_long(&mut bytes, packed.len() as i64);
        bytes.extend_from_slice(&packed);
        bytes.extend_from_slice(&sync);
        (start, first) = (end, row + 1);
    }
    Ok(bytes)
}

fn sync_marker(header: &[u8], data: &[u8]) -> [u8; 16] {
    let mut marker = [0; 16];
    for (seed, half) in marker.chunks_exact_mut(8).enumerate() {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_usize(seed);
        hasher.write(header);
        hasher.write(data);
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    marker
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one block of `rows` rows, packed as given.
    fn file(codec: &str, rows: i64, packed: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        write_long(&mut bytes, 1);
        for text in ["avro.codec", codec] {
            write_long(&mut bytes, text.len() as i64);
            bytes.extend_from_slice(text.as_bytes());
        }
        write_long(&mut bytes, 0);
        bytes.extend([9; 16]);
        write_long(&mut bytes, rows);
        write_long(&mut bytes, packed.len() as i64);
        bytes.extend_from_slice(packed);
        bytes.extend([9; 16]);
        bytes
    }

    fn snappy(data: &[u8]) -> Vec<u8> {
        let mut packed = snap::raw::Encoder::new().compress_vec(data).unwrap();
        packed.extend(crc32fast::hash(data).to_be_bytes());
        packed
    }

    #[test]
    fn unpacks_every_codec() {
        let data = vec![7u8; 5_000];
        let packed = [
            ("null", data.clone()),
            ("snappy", snappy(&data)),
            ("zstandard", zstd::encode_all(&data[..], 1).unwrap()),
            ("deflate", {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&data).unwrap();
                encoder.finish().unwrap()
            }),
        ];
        for (codec, packed) in packed {
            let bytes = file(codec, 5, &packed);
            let mut container = Container::open(&bytes).unwrap();
            let block = container.next_block().unwrap().unwrap();
            assert_eq!((block.rows, &block.data[..]), (5, &data[..]), "{codec}");
            assert!(container.next_block().unwrap().is_none());
            // Cut anywhere inside the block, it is an error and not an end.
            let header = bytes.len() - packed.len() - 16 - 3;
            for len in header + 1..bytes.len() {
                let mut cut = Container::open(&bytes[..len]).unwrap();
                if !cut.rest.is_empty() {
                    assert!(cut.next_block().is_err(), "{codec} cut at {len}");
                }
            }
        }
        assert_eq!(Container::open(&file("xz", 0, &[])).unwrap_err().kind(), crate::ErrorKind::Unsupported);
    }

    #[test]
    fn refuses_what_would_unpack_to_too_much() {
        let mut bomb = Vec::new();
        write_varint(&mut bomb, 1 << 28);
        bomb.extend([0; 12]);
        let bytes = file("snappy", 1, &bomb);
        assert!(Container::open(&bytes).unwrap().next_block().unwrap_err().to_string().contains("more than"));
    }

    fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    #[test]
    fn writes_blocks_at_row_ends() {
        let data = vec![1u8; 1_000_000];
        let ends: Vec<usize> = (1..=100).map(|i| i * 10_000).collect();
        let bytes = write_container(&[("k", "v")], &data, &ends).unwrap();
        let mut container = Container::open(&bytes).unwrap();
        assert_eq!((container.get("k"), container.get("avro.codec")), (Some("v"), Some("deflate")));
        let (mut rows, mut size, mut blocks) = (0, 0, 0);
        while let Some(block) = container.next_block().unwrap() {
            assert_eq!(block.data.len() as u64, block.rows * 10_000);
            (rows, size, blocks) = (rows + block.rows, size + block.data.len(), blocks + 1);
        }
        assert_eq!((rows, size, blocks), (100, 1_000_000, 4));
        let empty = write_container(&[], &[], &[]).unwrap();
        assert!(Container::open(&empty).unwrap().next_block().unwrap().is_none());
    }
}
