//! DELETE on tables that other engines wrote.

use std::collections::BTreeSet;

use crate::support::Lake;

/// Deletes from a copy of a golden table and compares with the rows that SQL says stay.
async fn delete_and_compare(name: &str, settings: &str, condition: &str) {
    let lake = Lake::new().await;
    lake.copy_golden(name);
    compare(&lake, name, settings, condition).await;
}

async fn compare(lake: &Lake, name: &str, settings: &str, condition: &str) {
    if !settings.is_empty() {
        lake.sql(settings).await.unwrap();
    }
    let before = lake.rows(&format!("SELECT * FROM {name}")).await.len() as u64;
    let stay = lake.rows(&format!("SELECT * FROM {name} WHERE ({condition}) IS NOT TRUE")).await;
    let count = lake.count(&format!("DELETE FROM {name} WHERE {condition}")).await;
    assert_eq!(lake.rows(&format!("SELECT * FROM {name}")).await, stay, "{name} {settings} {condition}");
    assert_eq!(count, before - stay.len() as u64, "{name} {settings} {condition}");
    assert!(count > 0, "{name}: {condition} deletes nothing, so nothing was tested");
    let snapshots = lake.table(name).await.metadata.snapshots.len();
    assert_eq!(lake.count(&format!("DELETE FROM {name} WHERE {condition}")).await, 0);
    assert_eq!(lake.table(name).await.metadata.snapshots.len(), snapshots, "a delete of nothing makes no snapshot");
}

const TABLES: &[(&str, &str)] = &[
    ("orders_v2_mor", "order_id % 7 = 3"),
    ("orders_v2_mor_partgran", "order_id % 7 = 3"),
    ("orders_v3_dv", "order_id % 7 = 3"),
    ("orders_v2_to_v3", "order_id % 5 = 1"),
    ("p_day_ts", "id % 3 = 0"),
    ("p_multi", "id % 3 = 0"),
    ("p_v3_bucket", "id % 3 = 0"),
    ("p_evolved_v3", "id % 3 = 0"),
    ("v1_to_v2", "order_id % 4 = 0"),
    ("types_v2", "id % 3 = 0"),
];

/// Tables with equality deletes.
const KEYED: &[(&str, &str)] = &[
    ("eq_added_col", "id % 3 = 0"),
    ("eq_dropped", "id % 3 = 0"),
    ("eq_global", "id % 3 = 0"),
    ("eq_mixed_pos", "id % 3 = 0"),
    ("eq_null_key", "id % 3 = 0"),
    ("eq_one_key", "id % 3 = 0"),
    ("eq_partition_scoped", "id % 3 = 0"),
    ("eq_partitioned_pos", "id % 3 = 0"),
    ("eq_renamed", "id % 3 = 0"),
    ("eq_two_cols", "id % 3 = 0"),
    ("eq_types", "id % 3 = 0"),
    ("eq_v3", "id % 3 = 0"),
    ("types_time", "id % 3 = 0"),
    ("types_uuid_fixed", "id % 3 = 0"),
];

/// Rows hidden by equality deletes are not counted, not deleted again, and do not come back with a rewritten file.
#[tokio::test(flavor = "multi_thread")]
async fn rows_hidden_by_equality_deletes_stay_hidden() {
    for (name, condition) in KEYED {
        for mode in ["merge-on-read", "copy-on-write"] {
            let settings = format!("SET calve.delete_mode = '{mode}'");
            delete_and_compare(name, &settings, condition).await;
        }
    }
}

/// Files that go whole count their live rows alone.
#[tokio::test(flavor = "multi_thread")]
async fn whole_tables_under_equality_deletes_count_their_live_rows() {
    for (name, _) in KEYED {
        for condition in ["true", "1 = 1 OR false"] {
            let lake = Lake::new().await;
            lake.copy_golden(name);
            let live = lake.rows(&format!("SELECT * FROM {name}")).await.len() as u64;
            assert!(live > 0, "{name}");
            assert_eq!(lake.count(&format!("DELETE FROM {name} WHERE {condition}")).await, live, "{name} {condition}");
            assert!(lake.rows(&format!("SELECT * FROM {name}")).await.is_empty(), "{name}");
        }
    }
}

/// Avro files lose rows by vectors and position deletes, or become Parquet files without them.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_avro_files_are_deleted() {
    for (name, property) in [("fmt_avro", "write.format.default"), ("fmt_mixed", "write.delete.format.default")] {
        for mode in ["merge-on-read", "copy-on-write"] {
            let lake = Lake::new().await;
            lake.copy_golden(name);
            // New files are to be in Parquet.
            let metadata = lake.dir.path().join(format!("default/{name}/metadata/v3.metadata.json"));
            let text = std::fs::read_to_string(&metadata).unwrap();
            assert!(text.contains(property), "{name}");
            std::fs::write(&metadata, text.replace(property, "former.format")).unwrap();
            compare(&lake, name, &format!("SET calve.delete_mode = '{mode}'"), "order_id % 3 = 0").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_on_read_deletes_what_matches() {
    for (name, condition) in TABLES {
        delete_and_compare(name, "SET calve.delete_mode = 'merge-on-read'", condition).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_on_write_deletes_what_matches() {
    for (name, condition) in TABLES {
        delete_and_compare(name, "SET calve.delete_mode = 'copy-on-write'", condition).await;
    }
}

/// Files from before a column existed have its initial default in every row: in what is found, in what is left out by
/// bounds, and in what is deleted.
#[tokio::test]
async fn initial_defaults_are_found_and_deleted() {
    let conditions = [
        ("n = 42", 5),
        ("s = 'dflt'", 5),
        ("dt = DATE '2024-03-01'", 5),
        ("de = 12.34", 5),
        ("ok", 5),
        ("tz = TIMESTAMP '2024-03-01T01:02:03.000004Z'", 5),
        ("n IS NOT NULL AND n < 50", 5),
        ("n = 77", 1),
        ("n IS NULL", 1),
        ("n <> 42", 1),
        ("NOT ok", 0),
        ("s > 'e'", 2),
        ("n = 42 AND id = 3", 1),
    ];
    for (condition, rows) in conditions {
        for strict in [true, false] {
            for mode in ["merge-on-read", "copy-on-write"] {
                let lake = Lake::new().await;
                lake.copy_golden("evo_default");
                let found = lake.rows(&format!("SELECT * FROM evo_default WHERE {condition}")).await;
                assert_eq!(found.len(), rows, "{condition}");
                if rows > 0 {
                    let settings = format!("SET calve.delete_mode = '{mode}'; SET calve.strict_pruning = {strict}");
                    compare(&lake, "evo_default", &settings, condition).await;
                }
            }
        }
    }
}

/// Survivors keep their row id and the sequence number of their last change, whatever the mode, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn deletes_on_copies_of_lineage_tables_keep_row_ids() {
    for name in ["lineage_v3", "lineage_upgraded"] {
        for modes in
            [["merge-on-read", "copy-on-write", "merge-on-read"], ["copy-on-write", "merge-on-read", "copy-on-write"]]
        {
            let lake = Lake::new().await;
            lake.copy_golden(name);
            let all = format!("SELECT *, _row_id, _last_updated_sequence_number FROM {name}");
            // Without the padding, which depends on the other rows.
            let plain = |rows: &[String]| -> BTreeSet<String> {
                rows.iter().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
            };
            let first = lake.rows(&all).await;
            let mut stay = first.clone();
            for (mode, condition) in modes.into_iter().zip(["id % 4 = 0", "id % 3 = 1", "_pos % 2 = 1"]) {
                lake.sql(&format!("SET calve.delete_mode = '{mode}'")).await.unwrap();
                let kept = lake.rows(&format!("{all} WHERE ({condition}) IS NOT TRUE")).await;
                let count = lake.count(&format!("DELETE FROM {name} WHERE {condition}")).await;
                assert_eq!(count as usize, stay.len() - kept.len(), "{name} {mode} {condition}");
                assert!(count > 0 && !kept.is_empty(), "{name} {mode} {condition}: nothing is tested");
                stay = kept;
                assert_eq!(lake.rows(&all).await, stay, "{name} {mode} {condition}");
                assert!(plain(&stay).is_subset(&plain(&first)), "{name} {mode} {condition}");
            }
            let ids = format!("SELECT count(*) - count(DISTINCT _row_id) AS twice FROM {name}");
            let twice = lake.rows(&ids).await;
            lake.sql(&format!("INSERT INTO {name} SELECT * FROM {name}")).await.unwrap();
            assert_eq!(lake.rows(&ids).await, twice, "{name}: new rows have ids of their own");
        }
    }
}

/// Partition folders and file names are opaque: whatever is in them, a second and third DELETE find the same files.
#[tokio::test(flavor = "multi_thread")]
async fn odd_names_and_partition_values_are_deleted_from_again_and_again() {
    let values = ["a b", "a+b", "a%20b", "a/b", "#?&=", "ünï ☃", "", " ", "null", "'q'\"", "a=b", "..", "%", "\\"];
    for (version, mode) in [(2, "merge-on-read"), (2, "copy-on-write"), (3, "merge-on-read"), (3, "copy-on-write")] {
        let lake = Lake::new().await;
        lake.sql(&format!(
            "CREATE TABLE \"odd table\" (\"select\" INT, \"p.q r%s/\" STRING, \"Ä\" INT, \"ä\" INT, count INT) \
             PARTITIONED BY (\"p.q r%s/\") TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}')"
        ))
        .await
        .unwrap();
        let quoted = |v: &str| format!("'{}'", v.replace('\'', "''"));
        let texts: Vec<String> = values.iter().map(|v| quoted(v)).chain(["NULL".to_owned()]).collect();
        let rows: Vec<String> =
            (0..4).flat_map(|i| texts.iter().map(move |v| format!("({i}, {v}, {i}, {}, {i})", 10 + i))).collect();
        lake.sql(&format!("INSERT INTO \"odd table\" VALUES {}", rows.join(", "))).await.unwrap();
        for (round, condition) in ["\"select\" = 0", "\"Ä\" = 1", "\"ä\" = 12"].into_iter().enumerate() {
            let count = lake.count(&format!("DELETE FROM \"odd table\" WHERE {condition}")).await;
            assert_eq!(count, texts.len() as u64, "v{version} {mode} {condition}");
            let left = lake.rows("SELECT \"p.q r%s/\", count FROM \"odd table\"").await;
            assert_eq!(left.len(), (3 - round) * texts.len(), "v{version} {mode} {condition}");
        }
        for (i, value) in values.iter().enumerate() {
            let sql =
                format!("DELETE FROM \"odd table\" AS o WHERE o.\"p.q r%s/\" = {} AND o.count = 3", quoted(value));
            assert_eq!(lake.count(&sql).await, 1, "v{version} {mode} {value:?}");
            assert_eq!(lake.rows("SELECT * FROM \"odd table\"").await.len(), values.len() - i, "{value:?}");
        }
        assert_eq!(lake.count("DELETE FROM \"odd table\" WHERE \"p.q r%s/\" IS NULL").await, 1);
    }
}

/// Only position delete files have that format: appends, vectors and rewritten files are not concerned.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_format_that_is_not_written_refuses_position_deletes_alone() {
    let properties = "'write.delete.format.default' = 'avro'";
    for (version, mode, fine) in [
        (2, "copy-on-write", true),
        (2, "merge-on-read", false),
        (3, "merge-on-read", true),
        (3, "copy-on-write", true),
    ] {
        let lake = Lake::new().await;
        lake.sql(&format!(
            "CREATE TABLE t (a INT) TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}', {properties})"
        ))
        .await
        .unwrap();
        assert_eq!(lake.count("INSERT INTO t VALUES (1), (2), (3)").await, 3);
        let outcome = lake.sql("DELETE FROM t WHERE a = 2").await;
        assert_eq!(lake.rows("SELECT a FROM t").await.len(), if fine { 2 } else { 3 }, "v{version} {mode}");
        match outcome {
            Ok(_) => assert!(fine, "v{version} {mode}"),
            Err(error) => assert!(!fine && error.to_string().contains("write.delete.format.default"), "{error}"),
        }
    }
}

/// A prepared statement reads its tables as they are when it is executed, not as they were when it was prepared.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_meet_the_table_as_it_is() {
    for mode in ["copy-on-write", "merge-on-read"] {
        let lake = Lake::new().await;
        lake.sql(&format!("CREATE TABLE t (a INT) TBLPROPERTIES ('write.delete.mode' = '{mode}')")).await.unwrap();
        lake.sql("INSERT INTO t VALUES (1), (2), (3), (4), (NULL)").await.unwrap();
        lake.sql("PREPARE gone(int) AS DELETE FROM t WHERE a = $1").await.unwrap();
        lake.sql("PREPARE more(int) AS INSERT INTO t VALUES ($1)").await.unwrap();
        lake.sql("PREPARE all_rows AS SELECT a FROM t").await.unwrap();
        for (statement, count, left) in [
            ("EXECUTE gone(1)", 1, 4),
            ("EXECUTE gone(1)", 0, 4),
            ("EXECUTE more(2)", 1, 5),
            ("EXECUTE gone(2)", 2, 3),
            ("EXECUTE gone(NULL)", 0, 3),
            ("EXECUTE gone(3)", 1, 2),
        ] {
            assert_eq!(lake.count(statement).await, count, "{mode} {statement}");
            assert_eq!(lake.rows("EXECUTE all_rows").await.len(), left, "{mode} {statement}");
        }
        let error = lake.sql("PREPARE gone AS SELECT 1").await.unwrap_err().to_string();
        assert!(error.contains("gone"), "{error}");
        assert_eq!(lake.count("EXECUTE gone(4)").await, 1, "a second PREPARE of the name changes nothing");
        lake.sql("DEALLOCATE gone").await.unwrap();
        assert!(lake.sql("EXECUTE gone(4)").await.is_err());
        lake.sql("PREPARE gone AS DELETE FROM t").await.unwrap();
        assert_eq!(lake.count("EXECUTE gone").await, 1);
        lake.sql("DROP TABLE t").await.unwrap();
        let error = lake.sql("EXECUTE all_rows").await.unwrap_err().to_string();
        assert!(error.contains("not found"), "{error}");
    }
}

/// What is no condition on one row, and what names more than one table, is refused in words.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_targets_that_cannot_be_are_refused_in_words() {
    let lake = Lake::new().await;
    lake.sql("CREATE TABLE t (a INT)").await.unwrap();
    lake.sql("CREATE TABLE u (a INT)").await.unwrap();
    lake.sql("INSERT INTO t VALUES (1), (2)").await.unwrap();
    for (sql, words) in [
        ("DELETE FROM t WHERE a > avg(a)", "aggregate function avg"),
        ("DELETE FROM t WHERE row_number() OVER () = 1", "window function row_number"),
        ("DELETE FROM t WHERE a IN (SELECT a FROM u WHERE a = max(a))", "Aggregate functions are not allowed"),
        ("DELETE FROM t, u WHERE t.a = u.a", "takes one table"),
        ("DELETE FROM t USING u WHERE t.a = u.a LIMIT 1", "takes one table"),
        ("DELETE FROM t JOIN u ON t.a = u.a", "takes one table"),
        ("DELETE FROM t LIMIT 1", "LIMIT"),
        ("DELETE FROM t WHERE a", "non-boolean"),
    ] {
        let error = lake.sql(sql).await.unwrap_err().to_string();
        assert!(error.contains(words) && error.len() < 300, "{sql}: {error}");
        assert_eq!(lake.rows("SELECT a FROM t").await.len(), 2, "{sql}");
    }
}
