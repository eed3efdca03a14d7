//! Every kind of statement against every kind of commit that came in between.

use super::*;

/// What another commit does between the snapshot that a statement reads and its commit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Other {
    AppendMatching,
    AppendOutsideBounds,
    AppendInOtherPartition,
    DropFile,
    RewriteFile,
    CompactFile,
    /// Of the file alone.
    DeleteRows,
    /// In one file with rows of a neighbour.
    DeleteRowsWithNeighbour,
    /// Of two neighbours in the file's partition.
    DeleteNeighboursRows,
    EqualityDelete,
    EqualityDeleteInOtherPartition,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statement {
    DeleteRows,
    DeleteFile,
    DeleteByRewrite,
    UpdateRows,
}

use Other::*;

/// Outcomes under snapshot and serializable isolation: `+` a snapshot, `0` success without one, `!` conflict.
const RULES: &[(Statement, &[(Other, &str)])] = &[
    (
        Statement::DeleteRows,
        &[
            (AppendMatching, "+!"),
            (AppendOutsideBounds, "++"),
            (AppendInOtherPartition, "++"),
            (DropFile, "00"),
            (RewriteFile, "!!"),
            (CompactFile, "!!"),
            // In v3 there may be one vector a data file, so the later one must be planned again.
            (DeleteRows, "++ v3 !!"),
            (DeleteRowsWithNeighbour, "++ v3 !!"),
            (DeleteNeighboursRows, "++"),
            (EqualityDelete, "++"),
            (EqualityDeleteInOtherPartition, "++"),
        ],
    ),
    (
        Statement::DeleteFile,
        &[
            (AppendMatching, "+!"),
            (AppendOutsideBounds, "++"),
            (AppendInOtherPartition, "++"),
            (DropFile, "!!"),
            (RewriteFile, "!!"),
            (CompactFile, "!!"),
            (DeleteRows, "!!"),
            (DeleteRowsWithNeighbour, "!!"),
            (DeleteNeighboursRows, "++"),
            (EqualityDelete, "++"),
            (EqualityDeleteInOtherPartition, "++"),
        ],
    ),
    (
        Statement::DeleteByRewrite,
        &[
            (AppendMatching, "+!"),
            (AppendOutsideBounds, "++"),
            (AppendInOtherPartition, "++"),
            (DropFile, "!!"),
            (RewriteFile, "!!"),
            (CompactFile, "!!"),
            (DeleteRows, "!!"),
            (DeleteRowsWithNeighbour, "!!"),
            (DeleteNeighboursRows, "++"),
            (EqualityDelete, "!!"),
            (EqualityDeleteInOtherPartition, "++"),
        ],
    ),
    (
        Statement::UpdateRows,
        &[
            (AppendMatching, "+!"),
            (AppendOutsideBounds, "++"),
            (AppendInOtherPartition, "++"),
            (DropFile, "!!"),
            (RewriteFile, "!!"),
            (CompactFile, "!!"),
            (DeleteRows, "!!"),
            (DeleteRowsWithNeighbour, "!!"),
            // Whatever was deleted in the partition may have been read.
            (DeleteNeighboursRows, "!!"),
            (EqualityDelete, "!!"),
            (EqualityDeleteInOtherPartition, "++"),
        ],
    ),
];

async fn deletes_of(table: &Table, of: &[&DataFile], together: bool) -> Vec<DataFile> {
    if table.metadata.format_version >= FormatVersion::V3 {
        let puffin = format!("{}.puffin", table.env.uuid());
        let vectors =
            of.iter().zip(0..).map(|(file, i)| DataFile { content_offset: Some(4 + 40 * i), ..vector(&puffin, file) });
        return vectors.collect();
    }
    let granularity = if together { DeleteGranularity::Partition } else { DeleteGranularity::File };
    position_deletes(table, of, granularity).await
}

/// Commits `other` on the table with files `a`, `b`, `c` in partition 1, of ids from 0, and `d` in partition 2.
async fn interfere(table: &Table, other: Other) {
    let mut update = SnapshotUpdate::new(table.clone());
    let (a, b, c) = (file(table, "a").await, file(table, "b").await, file(table, "c").await);
    match other {
        AppendMatching => update.add_data(data("e", 1, 5)),
        AppendOutsideBounds => update.add_data(data("e", 1, 100)),
        AppendInOtherPartition => update.add_data(data("e", 2, 5)),
        DropFile => update.remove_data(a, Removal::Whole),
        RewriteFile => {
            update.remove_data(a, Removal::Rewritten);
            update.add_data(data("a2", 1, 0));
        }
        CompactFile => {
            update = update.kind(UpdateKind::Replace);
            update.remove_data(a, Removal::Rewritten);
            update.add_data(data("a3", 1, 0));
        }
        DeleteRows => deletes_of(table, &[&a], false).await.into_iter().for_each(|file| update.add_delete(file)),
        DeleteRowsWithNeighbour => {
            deletes_of(table, &[&a, &b], true).await.into_iter().for_each(|file| update.add_delete(file));
        }
        DeleteNeighboursRows => {
            deletes_of(table, &[&b, &c], true).await.into_iter().for_each(|file| update.add_delete(file));
        }
        EqualityDelete => update.add_delete(equality_delete("eq1", 1)),
        EqualityDeleteInOtherPartition => update.add_delete(equality_delete("eq2", 2)),
    }
    update.commit().await.unwrap();
}

/// A statement on file `a` with the condition `p = 1 AND id < 10`.
async fn statement(table: &Table, statement: Statement, isolation: IsolationLevel) -> SnapshotUpdate {
    let mut update = SnapshotUpdate::new(table.clone());
    let a = file(table, "a").await;
    let filter = Predicate::and([
        Predicate::leaf(2, LeafOp::Eq(Literal::Int(1))),
        Predicate::leaf(1, LeafOp::Lt(Literal::Long(10))),
    ]);
    let start = table.metadata.current_snapshot_id;
    let mut validation = match statement {
        Statement::UpdateRows => Validation::for_update(start, isolation, filter),
        _ => Validation::for_delete(start, isolation, filter),
    };
    match statement {
        Statement::DeleteFile => update.remove_data(a, Removal::Whole),
        Statement::DeleteByRewrite => {
            update.remove_data(a, Removal::Rewritten);
            update.add_data(data("mine", 1, 0));
        }
        Statement::DeleteRows | Statement::UpdateRows => {
            deletes_of(table, &[&a], false).await.into_iter().for_each(|file| update.add_delete(file));
            validation = validation.referencing([a.file_path.clone()]);
            if statement == Statement::UpdateRows {
                update.add_data(data("mine", 1, 0));
            }
        }
    }
    update.validate(validation)
}

async fn lake(version: u8) -> Lake {
    let lake = Lake::new(version, &[]).await;
    lake.commit(|update| {
        for (name, first) in [("a", 0), ("b", 10), ("c", 20)] {
            update.add_data(data(name, 1, first));
        }
        update.add_data(data("d", 2, 0));
    })
    .await;
    lake
}

#[tokio::test]
async fn statements_meet_other_commits_by_the_rules() {
    for version in [2, 3] {
        for (kind, others) in RULES {
            for (other, outcomes) in *others {
                let outcomes = match outcomes.split_once(" v3 ") {
                    Some((_, v3)) if version == 3 => v3,
                    Some((v2, _)) => v2,
                    None => outcomes,
                };
                for (isolation, expected) in
                    [IsolationLevel::Snapshot, IsolationLevel::Serializable].into_iter().zip(outcomes.chars())
                {
                    let what = format!("v{version}: {kind:?} after {other:?}, {isolation:?}");
                    let lake = lake(version).await;
                    let update = statement(&lake.table().await, *kind, isolation).await;
                    let own: BTreeSet<String> = update.added_paths().into_iter().map(str::to_string).collect();
                    interfere(&lake.fresh().await, *other).await;
                    let between = live(&lake.fresh().await).await;
                    let snapshots = lake.fresh().await.metadata.snapshots.len();
                    let outcome = update.commit().await;
                    let now = lake.fresh().await;
                    match expected {
                        '!' => {
                            let error = outcome.expect_err(&what);
                            assert_eq!(error.kind(), ErrorKind::Conflict, "{what}: {error}");
                            assert!(error.message().contains("run the statement again"), "{what}: {error}");
                        }
                        _ => drop(outcome.expect(&what)),
                    }
                    let committed = now.metadata.snapshots.len() - snapshots;
                    assert_eq!(committed, usize::from(expected == '+'), "{what}");
                    if expected != '+' {
                        assert_eq!(live(&now).await, between, "{what}");
                        assert!(lake.objects().await.is_disjoint(&own), "{what}: its own files stay");
                    }
                    assert_eq!(lake.strays().await, BTreeSet::new(), "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn conflicts_are_looked_for_in_all_history_since_the_start() {
    let lake = lake(2).await;
    let update = statement(&lake.table().await, Statement::DeleteFile, IsolationLevel::Snapshot).await;
    interfere(&lake.fresh().await, DeleteRows).await;
    for (name, first) in [("x", 200), ("y", 300)] {
        lake.commit(|update| update.add_data(data(name, 1, first))).await;
    }
    assert_eq!(update.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_start_that_is_no_ancestor_is_a_conflict() {
    let lake = lake(2).await;
    let first = lake.table().await.metadata.current_snapshot_id.unwrap();
    let second = lake.commit(|update| update.add_data(data("x", 1, 200))).await;
    let update = statement(&second, Statement::DeleteFile, IsolationLevel::Snapshot).await;
    let kind = second.metadata.refs[MAIN_BRANCH].kind.clone();
    let reference = crate::spec::SnapshotRef { snapshot_id: first, kind };
    lake.change(TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_string(), reference }).await;
    let error = update.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("no longer in the branch's history"), "{error}");

    // Expired: the chain breaks before the start is reached.
    let third = lake.commit(|update| update.add_data(data("y", 1, 200))).await;
    let update = statement(&third, Statement::DeleteFile, IsolationLevel::Snapshot).await;
    let fourth = lake.commit(|update| update.add_data(data("z", 1, 300))).await;
    lake.commit(|update| update.add_data(data("zz", 1, 300))).await;
    let snapshot_ids = vec![fourth.metadata.current_snapshot_id.unwrap()];
    lake.change(TableUpdate::RemoveSnapshots { snapshot_ids }).await;
    let error = update.commit().await.unwrap_err();
    assert!(error.message().contains("no longer in the branch's history"), "{error}");
}

#[tokio::test]
async fn a_statement_on_an_empty_table_sees_what_came_since() {
    for (isolation, conflict) in [(IsolationLevel::Snapshot, false), (IsolationLevel::Serializable, true)] {
        let lake = Lake::new(2, &[]).await;
        let mut update = SnapshotUpdate::new(lake.table().await);
        update.add_data(data("mine", 1, 0));
        let update = update.validate(Validation::for_update(None, isolation, Predicate::AlwaysTrue));
        lake.commit(|update| update.add_data(data("theirs", 1, 0))).await;
        assert_eq!(update.commit().await.is_err(), conflict, "{isolation:?}");
    }
}

#[tokio::test]
async fn deletes_that_cannot_be_read_count_as_conflicts() {
    let lake = lake(2).await;
    let table = lake.table().await;
    let update = statement(&table, Statement::DeleteFile, IsolationLevel::Snapshot).await;
    let (b, c) = (file(&table, "b").await, file(&table, "c").await);
    let deletes = position_deletes(&table, &[&b, &c], DeleteGranularity::Partition).await;
    lake.commit(|update| deletes.iter().cloned().for_each(|file| update.add_delete(file))).await;
    table.io.delete(&deletes[0].file_path).await.unwrap();
    assert_eq!(update.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn equal_bounds_that_are_cut_off_paths_do_not_hide_a_conflict() {
    let lake = lake(2).await;
    let table = lake.table().await;
    let update = statement(&table, Statement::DeleteFile, IsolationLevel::Snapshot).await;
    let (a, b) = (file(&table, "a").await, file(&table, "b").await);
    let mut deletes = position_deletes(&table, &[&a, &b], DeleteGranularity::Partition).await;
    for file in &mut deletes {
        for bounds in [&mut file.lower_bounds, &mut file.upper_bounds] {
            bounds.insert(crate::scan::FILE_PATH_ID, path("").into_bytes().into());
        }
    }
    lake.commit(|update| deletes.into_iter().for_each(|file| update.add_delete(file))).await;
    assert_eq!(update.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}
