//! DELETE on tables that other engines wrote.

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
