//! DELETE on tables that other engines wrote.

use crate::support::Lake;

/// Deletes from a copy of a golden table and compares with the rows that SQL says stay.
async fn delete_and_compare(name: &str, settings: &str, condition: &str) {
    let lake = Lake::new().await;
    lake.copy_golden(name);
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
