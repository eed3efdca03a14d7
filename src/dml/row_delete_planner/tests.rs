use super::*;
use crate::scan::FileDeletes;
use crate::spec::{DataContent, FileFormat, PartitionKey, PartitionTuple};

const ROWS: u64 = 10;
const PATH: &str = "s3://b/t/data/a.parquet";

fn file(content: DataContent, path: &str, format: FileFormat) -> DataFile {
    let key = PartitionKey { spec_id: 0, tuple: PartitionTuple::default() };
    DataFile { record_count: ROWS, ..DataFile::new(content, path, format, key) }
}

fn delete_file(path: &str, format: FileFormat, target: Option<&str>) -> Arc<DeleteFile> {
    let mut file = file(DataContent::PositionDeletes, path, format);
    file.referenced_data_file = target.map(Into::into);
    Arc::new(DeleteFile { file: Arc::new(file), sequence_number: 1 })
}

/// What applied to the file before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    Vector,
    /// A position delete file of this data file alone.
    OwnFile,
    /// One of several data files.
    SharedFile,
    OwnAndSharedFile,
}

fn task(before: Before) -> FileScanTask {
    let (own, shared) = (
        delete_file("own.parquet", FileFormat::Parquet, Some(PATH)),
        delete_file("shared.parquet", FileFormat::Parquet, None),
    );
    let mut deletes = FileDeletes::default();
    match before {
        Before::Nothing => {}
        Before::Vector => deletes.vector = Some(delete_file("v.puffin", FileFormat::Puffin, Some(PATH))),
        Before::OwnFile => deletes.positions = vec![own].into(),
        Before::SharedFile => deletes.positions = vec![shared].into(),
        Before::OwnAndSharedFile => deletes.positions = vec![own, shared].into(),
    }
    let data_file = Arc::new(file(DataContent::Data, PATH, FileFormat::Parquet));
    FileScanTask { data_file, sequence_number: 1, deletes }
}

/// Positions 0 and 1 were deleted before, if anything was.
fn existing(before: Before) -> Option<Arc<PositionBitmap>> {
    (before != Before::Nothing).then(|| Arc::new(PositionBitmap::from_positions([0, 1])))
}

/// A delete where all earlier deletes were by position.
fn of_positions(task: FileScanTask, matched: PositionBitmap, existing: Option<Arc<PositionBitmap>>) -> RowDelete {
    RowDelete::of_positions(task, matched, existing.clone(), existing)
}

const BEFORE: [Before; 5] =
    [Before::Nothing, Before::Vector, Before::OwnFile, Before::SharedFile, Before::OwnAndSharedFile];
const MODES: [RowLevelMode; 2] = [RowLevelMode::CopyOnWrite, RowLevelMode::MergeOnRead];
const VERSIONS: [FormatVersion; 3] = [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3];
const GRANULARITIES: [DeleteGranularity; 2] = [DeleteGranularity::Partition, DeleteGranularity::File];

fn for_each(mut check: impl FnMut(Before, RowLevelMode, FormatVersion, DeleteGranularity)) {
    for before in BEFORE {
        for mode in MODES {
            for version in VERSIONS {
                for granularity in GRANULARITIES {
                    check(before, mode, version, granularity);
                }
            }
        }
    }
}

#[test]
fn some_rows_are_recorded_as_mode_version_and_granularity_ask() {
    for_each(|before, mode, version, granularity| {
        let delete = of_positions(task(before), PositionBitmap::from_positions([3, 7]), existing(before));
        let expected = match (mode, version, granularity) {
            (RowLevelMode::CopyOnWrite, ..) => Action::Rewrite,
            (_, FormatVersion::V3, _) => Action::Vector,
            (_, _, DeleteGranularity::Partition) => Action::PartitionPositions,
            (_, _, DeleteGranularity::File) => Action::FilePositions,
        };
        assert_eq!(decide(&delete, mode, version, granularity), expected, "{before:?} {mode} {version:?}");
        assert_eq!(delete.deleted_rows(), 2);
        assert!(!delete.whole_file);
    });
}

#[test]
fn all_live_rows_drop_the_file_in_every_mode() {
    for_each(|before, mode, version, granularity| {
        let all = PositionBitmap::from_positions(0..ROWS);
        let live = existing(before).map_or(ROWS, |deleted| ROWS - deleted.len());
        for delete in
            [of_positions(task(before), all, existing(before)), RowDelete::of_file(task(before), existing(before))]
        {
            assert_eq!(decide(&delete, mode, version, granularity), Action::Drop, "{before:?} {mode} {version:?}");
            assert_eq!((delete.deleted_rows(), delete.live_rows), (live, live), "{before:?}");
        }
    });
}

#[test]
fn no_row_and_no_live_row_keep_the_file() {
    for_each(|before, mode, version, granularity| {
        // Nothing matched; only rows deleted before matched.
        for matched in [PositionBitmap::default(), existing(before).as_deref().cloned().unwrap_or_default()] {
            let delete = of_positions(task(before), matched, existing(before));
            assert_eq!(decide(&delete, mode, version, granularity), Action::Keep, "{before:?} {mode} {version:?}");
            assert_eq!(delete.deleted_rows(), 0);
        }
        // No row was alive, so none can have matched: the file is no reason for a snapshot.
        let dead = Some(Arc::new(PositionBitmap::from_positions(0..ROWS)));
        let delete = of_positions(task(before), PositionBitmap::from_positions([4]), dead);
        assert_eq!(decide(&delete, mode, version, granularity), Action::Keep, "{before:?}");
        assert_eq!((delete.deleted_rows(), delete.live_rows), (0, 0));
    });
}

#[test]
fn rows_deleted_before_are_not_deleted_again() {
    let delete = of_positions(task(Before::Vector), PositionBitmap::from_positions([1, 2]), existing(Before::Vector));
    assert_eq!(delete.positions.iter().collect::<Vec<_>>(), [2]);
    assert_eq!(delete.all_positions().iter().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((delete.deleted_rows(), delete.live_rows), (1, 8));
}

#[test]
fn only_deletes_of_this_file_alone_are_superseded() {
    for (before, expected) in [
        (Before::Nothing, &[][..]),
        (Before::Vector, &["v.puffin"]),
        (Before::OwnFile, &["own.parquet"]),
        (Before::SharedFile, &[]),
        (Before::OwnAndSharedFile, &["own.parquet"]),
    ] {
        for delete in [
            of_positions(task(before), PositionBitmap::from_positions([3]), existing(before)),
            RowDelete::of_file(task(before), existing(before)),
        ] {
            let superseded: Vec<&str> = delete.superseded.iter().map(|delete| &*delete.file.file_path).collect();
            assert_eq!(superseded, expected, "{before:?}");
        }
    }
}

/// Rows that equality deletes hide are not live; a rewrite leaves them out, while a vector does not repeat them.
#[test]
fn rows_hidden_by_equality_deletes_are_not_live_and_not_in_vectors() {
    let positions = |positions: &[u64]| PositionBitmap::from_positions(positions.iter().copied());
    let delete = |matched: &[u64]| {
        let existing = Some(Arc::new(positions(&[0, 1, 5])));
        let positional = Some(Arc::new(positions(&[0, 1])));
        RowDelete::of_positions(task(Before::Vector), positions(matched), existing, positional)
    };
    let some = delete(&[2, 5]);
    assert_eq!((some.deleted_rows(), some.live_rows, some.whole_file), (1, ROWS - 3, false));
    assert_eq!(some.all_positions(), positions(&[0, 1, 2, 5]));
    assert_eq!(some.vector_positions(), positions(&[0, 1, 2]));
    let rest: Vec<u64> = (0..ROWS).filter(|row| ![0, 1, 5].contains(row)).collect();
    let all = delete(&rest);
    assert_eq!((all.deleted_rows(), all.whole_file), (ROWS - 3, true));
}
