//! Metadata tables: what each reads, in any session, and at the snapshot of the statement they stand in.

use std::fs;

use calve::ErrorKind;
use calve::session::from_datafusion;

use crate::support::{Lake, text_rows};

/// Removes the files of a table's metadata whose names `goes` says.
fn remove(lake: &Lake, goes: impl Fn(&str) -> bool) {
    let dir = lake.dir.path().join("default/refs_table/metadata");
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if goes(path.file_name().unwrap().to_str().unwrap()) {
            fs::remove_file(path).unwrap();
        }
    }
}

async fn count(lake: &Lake, table: &str) -> calve::Result<String> {
    let rows = lake.sql(&format!("SELECT count(*) FROM refs_table${table}")).await?;
    Ok(text_rows(&rows)[0].trim_matches(['|', ' ']).to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_metadata_table_reads_only_what_its_rows_are_made_of() {
    let lake = Lake::new().await;
    lake.copy_golden("refs_table");
    remove(&lake, |name| name.ends_with(".avro") && !name.starts_with("snap-"));
    for (table, rows) in [("manifests", "3"), ("all_manifests", "11")] {
        assert_eq!(count(&lake, table).await.unwrap(), rows, "{table}");
    }
    remove(&lake, |name| name.ends_with(".avro"));
    let lake = Lake::at(lake.dir.path()).await;
    for (table, rows) in [("snapshots", "5"), ("history", "3"), ("refs", "3"), ("metadata_log_entries", "8")] {
        assert_eq!(count(&lake, table).await.unwrap(), rows, "{table}");
    }
    for table in ["manifests", "files", "entries", "partitions", "position_deletes", "all_data_files", "all_manifests"]
    {
        // Planned and explained without a file read.
        lake.sql(&format!("EXPLAIN SELECT * FROM refs_table${table}")).await.unwrap();
        let e = count(&lake, table).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound, "{table}: {e}");
        assert!(e.to_string().contains(".avro"), "{e}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_tables_are_read_in_any_session_and_never_written() {
    let lake = Lake::new().await;
    lake.copy_golden("eq_mixed_pos");
    let plain = |sql: &'static str| {
        let ctx = lake.calve.context().clone();
        async move { ctx.sql(sql).await?.collect().await }
    };
    let sql = "SELECT content, file_format, count(*) AS n FROM eq_mixed_pos$files GROUP BY content, file_format";
    let rows = text_rows(&plain(sql).await.unwrap());
    assert_eq!(
        rows,
        ["| 0       | PARQUET     | 3 |", "| 1       | PARQUET     | 1 |", "| 2       | PARQUET     | 3 |"]
    );
    assert_eq!(lake.rows(sql).await, rows);
    for sql in [
        "DELETE FROM eq_mixed_pos$files WHERE content = 0",
        "UPDATE eq_mixed_pos$files SET content = 1",
        "INSERT INTO eq_mixed_pos$refs (name) VALUES ('x')",
    ] {
        assert!(plain(sql).await.is_err(), "{sql}");
        assert!(lake.sql(sql).await.is_err(), "{sql}");
    }
    let e = from_datafusion(plain("SELECT * FROM eq_mixed_pos$nothing").await.unwrap_err());
    assert_eq!((e.kind(), e.message().contains("has no $nothing")), (ErrorKind::NotFound, true), "{e}");
    let shown = lake.rows("SHOW TABLES").await;
    assert!(shown.iter().all(|row| !row.contains('$')), "{shown:?}");
}

/// What the deletes hold is exactly what a scan of the data files leaves out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn position_deletes_are_the_rows_that_a_scan_leaves_out() {
    let lake = Lake::new().await;
    let mut deleted = 0;
    for table in ["refs_table", "orders_v2_mor", "orders_v3_dv", "p_evolved_v3", "p_v3_bucket"] {
        lake.copy_golden(table);
        let left = format!(
            "SELECT (SELECT sum(record_count) FROM {table}$data_files) - (SELECT count(*) FROM {table}),
                    (SELECT count(*) FROM {table}$rows r JOIN {table}$position_deletes d
                     ON r._file = d.file_path AND r._pos = d.pos),
                    (SELECT count(DISTINCT struct(d.file_path, d.pos)) FROM {table}$position_deletes d
                     JOIN {table}$data_files f ON d.file_path = f.file_path)"
        );
        let rows = lake.sql(&left).await.unwrap();
        let numbers = text_rows(&rows)[0].split('|').map(|n| n.trim().to_owned()).collect::<Vec<_>>();
        assert_eq!((&numbers[1], numbers[2].as_str()), (&numbers[3], "0"), "{table}");
        deleted += numbers[1].parse::<u64>().unwrap();
    }
    assert!(deleted > 20, "{deleted}");
}
