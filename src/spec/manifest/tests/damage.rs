//! Damaged and unusual files: an error with path, never a panic, never more memory than the bytes back.

use super::*;
use crate::ErrorKind;
use crate::spec::avro::{Container, write_container};
use crate::spec::manifest::ManifestReader;

/// A manifest list and a manifest of a few golden tables that differ in kind.
fn samples() -> Vec<(TableMetadata, Vec<u8>, ManifestFile, Vec<u8>)> {
    let names = ["v1_part", "p_multi", "eq_two_cols", "orders_v3_dv", "pyice_part"];
    let tables = catalogue().into_iter().filter(|t| names.contains(&t["table"].as_str().unwrap()));
    let samples: Vec<_> = tables
        .map(|table| {
            let metadata = metadata(&table);
            let ManifestSource::List(location) = &metadata.current_snapshot().unwrap().manifests else { panic!() };
            let list = read_location(location);
            let manifest = read_manifest_list(&list, location).unwrap().pop().unwrap();
            let bytes = read_location(&manifest.manifest_path);
            (metadata, list, manifest, bytes)
        })
        .collect();
    assert_eq!(samples.len(), names.len());
    samples
}

/// The error kinds that damage may lead to.
fn assert_named(error: &crate::Error, path: &str) {
    assert!(matches!(error.kind(), ErrorKind::DataInvalid | ErrorKind::Unsupported), "{error}");
    assert!(error.to_string().contains(path), "{error}");
}

#[test]
fn truncated_files_are_errors() {
    for (metadata, list, manifest, bytes) in samples() {
        for len in (0..bytes.len()).step_by(7).chain(bytes.len() - 20..bytes.len()) {
            let error = ManifestReader::read(&bytes[..len], &manifest, &metadata).unwrap_err();
            assert_named(&error, &manifest.manifest_path);
        }
        // Behind its header a list without rows is whole; nowhere else.
        let whole = (0..list.len()).filter(|len| read_manifest_list(&list[..*len], "list").is_ok());
        assert!(whole.count() <= 1 + read_manifest_list(&list, "list").unwrap().len());
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let mut rng = fastrand::Rng::with_seed(99);
    let (mut errors, mut total) = (0, 0);
    for (metadata, list, manifest, bytes) in samples() {
        for _ in 0..300 {
            let mut bad = bytes.clone();
            let at = rng.usize(0..bad.len());
            bad[at] ^= 1 << rng.u8(0..8);
            if let Err(error) = ManifestReader::read(&bad, &manifest, &metadata) {
                assert_named(&error, &manifest.manifest_path);
                errors += 1;
            }
            let mut bad = list.clone();
            let at = rng.usize(0..bad.len());
            bad[at] = rng.u8(..);
            if let Err(error) = read_manifest_list(&bad, "some-list") {
                assert_named(&error, "some-list");
            }
            total += 1;
        }
    }
    assert!(errors * 4 > total, "{errors} of {total}");
}

/// The file with its rows changed, in a frame that is right.
fn with_rows(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>, &mut usize)) -> Vec<u8> {
    let mut container = Container::open(bytes).unwrap();
    let (mut data, mut rows) = (Vec::new(), 0);
    while let Some(block) = container.next_block().unwrap() {
        data.extend_from_slice(&block.data);
        rows += block.rows as usize;
    }
    change(&mut data, &mut rows);
    let header: Vec<_> =
        container.keys().filter(|k| *k != "avro.codec").map(|k| (k, container.get(k).unwrap())).collect();
    write_container(&header, &data, &vec![data.len(); rows]).unwrap()
}

#[test]
fn damaged_rows_in_a_right_frame_never_panic() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (metadata, list, mut manifest, bytes) in samples() {
        manifest.manifest_length = 0;
        for round in 0..300 {
            let mut damage = |data: &mut Vec<u8>, rows: &mut usize| match round % 4 {
                0 => *rows += rng.usize(1..3),
                1 => data.truncate(rng.usize(0..data.len())),
                2 => data.push(rng.u8(..)),
                _ => {
                    for _ in 0..rng.usize(1..4) {
                        let at = rng.usize(0..data.len());
                        data[at] = rng.u8(..);
                    }
                }
            };
            let read = ManifestReader::read(&with_rows(&bytes, &mut damage), &manifest, &metadata);
            match read {
                Err(error) => assert_named(&error, &manifest.manifest_path),
                Ok(_) => assert_eq!(round % 4, 3, "only a changed value may go unnoticed"),
            }
            if let Err(error) = read_manifest_list(&with_rows(&list, &mut damage), "some-list") {
                assert_named(&error, "some-list");
            }
        }
    }
}

#[test]
fn messages_name_the_field() {
    let (metadata, _, mut manifest, bytes) = samples().remove(0);
    manifest.manifest_length = 0;
    let cut = with_rows(&bytes, |data, _| data.truncate(30));
    let message = ManifestReader::read(&cut, &manifest, &metadata).unwrap_err().to_string();
    assert!(message.contains("data_file: file_path: length"), "{message}");
    let message = ManifestReader::read(b"PAR1", &manifest, &metadata).unwrap_err().to_string();
    assert!(message.contains("magic") && message.contains(&manifest.manifest_path), "{message}");
    manifest.partition_spec_id = 99;
    assert!(ManifestReader::read(&bytes, &manifest, &metadata).unwrap_err().to_string().contains("spec 99"));
    manifest.key_metadata = Some(Box::from([1]));
    assert_eq!(ManifestReader::read(&bytes, &manifest, &metadata).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn fields_without_ids_match_by_name() {
    for (metadata, list, mut manifest, bytes) in samples() {
        manifest.manifest_length = 0;
        // Same length, so that the frame stays right; the partition spec in the header keeps its ids.
        let hide = |bytes: &[u8]| {
            let container = Container::open(bytes).unwrap();
            let schema = container.get("avro.schema").unwrap();
            let start = schema.as_ptr() as usize - bytes.as_ptr() as usize;
            let hidden = schema.replace("field-id", "field-xx");
            let mut bytes = bytes.to_vec();
            bytes[start..start + hidden.len()].copy_from_slice(hidden.as_bytes());
            bytes
        };
        let read = |bytes: &[u8]| ManifestReader::read(bytes, &manifest, &metadata).unwrap();
        assert_eq!(read(&hide(&bytes)), read(&bytes));
        assert_eq!(read_manifest_list(&hide(&list), "").unwrap(), read_manifest_list(&list, "").unwrap());
        // And with ids, names do not matter: writers of old called the counts otherwise.
        let text = String::from_utf8_lossy(&list).contains("added_files_count");
        assert!(text);
        let renamed: Vec<u8> = list
            .windows(17)
            .position(|w| w == b"added_files_count")
            .map(|at| [&list[..at], b"added_datas_count", &list[at + 17..]].concat())
            .unwrap();
        assert_eq!(read_manifest_list(&renamed, "").unwrap(), read_manifest_list(&list, "").unwrap());
    }
}
