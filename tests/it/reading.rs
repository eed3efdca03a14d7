//! What reading must do by the bug catalogue, on tables that other engines wrote: whatever a filter leaves out, the rows
//! where it holds, does not hold and is unknown are together the table's.

use std::sync::Arc;

use calve::expr::Predicate;
use calve::scan::{plan_scan, position_delete_target};
use calve::spec::PrimitiveType::{Date, Decimal, Int, Long, String as Text, Timestamp, Timestamptz};
use datafusion::prelude::SessionConfig;

use crate::support::Lake;

/// Widths of a printed table depend on its rows.
fn squeezed(rows: Vec<String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|r| r.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    rows.sort();
    rows
}

/// Reads the table in three parts by each condition, with filters pushed down and not.
async fn three_parts(tables: &[&str], conditions: &[&str]) {
    for pushdown in [false, true] {
        let mut config = SessionConfig::new();
        config.options_mut().execution.parquet.pushdown_filters = pushdown;
        let lake = Lake::with_config(config).await;
        for table in tables {
            lake.copy_golden(table);
            let all = squeezed(lake.rows(&format!("SELECT * FROM {table}")).await);
            assert!(!all.is_empty(), "{table}");
            for condition in conditions {
                let mut parts = Vec::new();
                for truth in ["TRUE", "FALSE", "UNKNOWN"] {
                    parts.extend(lake.rows(&format!("SELECT * FROM {table} WHERE ({condition}) IS {truth}")).await);
                }
                assert_eq!(squeezed(parts), all, "{table} by {condition}, pushdown {pushdown}");
                // The same filter as the optimizer likes it best.
                let mut parts = lake.rows(&format!("SELECT * FROM {table} WHERE {condition}")).await;
                parts.extend(lake.rows(&format!("SELECT * FROM {table} WHERE NOT ({condition})")).await);
                parts.extend(lake.rows(&format!("SELECT * FROM {table} WHERE ({condition}) IS NULL")).await);
                assert_eq!(squeezed(parts), all, "{table} by {condition}, pushdown {pushdown}");
            }
        }
    }
}

/// Position deletes and vectors describe paths and positions, not the columns of a filter.
#[tokio::test(flavor = "multi_thread")]
async fn c1_8_no_filter_on_data_loses_a_position_delete() {
    let tables = ["orders_v2_mor", "orders_v2_mor_partgran", "orders_v3_dv", "orders_v2_to_v3", "codecs", "fmt_mixed"];
    let conditions =
        ["note IS NULL", "note IS NOT NULL", "customer IS NULL", "amount_cents < 0", "note = 'short'", "status < 'd'"];
    three_parts(&tables, &conditions).await;
}

/// StarRocks#76280: a cast or function of a string partition column must not leave out deletes.
#[tokio::test(flavor = "multi_thread")]
async fn c1_15_functions_of_partition_columns_keep_deletes() {
    three_parts(
        &["eq_partition_scoped", "eq_partitioned_pos", "eq_global"],
        &[
            "CAST(region AS VARCHAR) = 'eu'",
            "upper(region) = 'EU'",
            "coalesce(region, '') = ''",
            "region IN ('us', 'x')",
        ],
    )
    .await;
    three_parts(
        &["p_identity_str", "p_v3_identity", "p_trunc_str", "p_evolved_identity_unpart", "p_evolved_unpart_identity"],
        &["CAST(s AS VARCHAR) < 'm'", "upper(s) = 'A'", "length(s) > 1", "s IS NULL", "s LIKE 'a%'"],
    )
    .await;
}

/// Deletes made before an upgrade of the format or a change of the spec stay, and those made after it apply.
#[tokio::test(flavor = "multi_thread")]
async fn c1_16_and_17_upgrades_and_other_specs_keep_deletes() {
    three_parts(&["v1_to_v2", "orders_v2_to_v3"], &["order_id % 2 = 0", "order_id < 20", "status IS NULL"]).await;
    let evolved = [
        "p_evolved_add",
        "p_evolved_day_month",
        "p_evolved_identity_unpart",
        "p_evolved_unpart_identity",
        "p_evolved_v3",
    ];
    three_parts(&evolved, &["id % 2 = 0", "id < 100", "v IS NULL", "v = 'u'"]).await;
}

/// Two delete files over several data files each, for one data file.
#[tokio::test(flavor = "multi_thread")]
async fn c1_18_delete_files_over_several_data_files_add_up() {
    let lake = Lake::new().await;
    lake.copy_golden("orders_v2_mor_partgran");
    let plan = plan_scan(&lake.table("orders_v2_mor_partgran").await, None, &Predicate::AlwaysTrue).await.unwrap();
    let shared = plan.tasks.iter().map(|task| {
        let files = task.deletes.positions.iter().map(|delete| &delete.file);
        files.filter(|file| position_delete_target(file).is_none()).count()
    });
    assert!(shared.max() >= Some(2), "the fixture has no such file");
    assert_eq!(lake.rows("SELECT * FROM orders_v2_mor_partgran").await.len(), 189);
    assert_eq!(
        lake.rows("SELECT * FROM orders_v2_mor_partgran WHERE order_id IN (1, 2, 6, 7, 61, 106)").await.len(),
        0
    );
}

/// Daft#7428: files from before a partition field was added have no value for it.
#[tokio::test(flavor = "multi_thread")]
async fn c5_66_filters_on_a_partition_field_added_later_keep_old_files() {
    let ts = ["ts IS NULL", "ts < TIMESTAMP '2024-01-01T00:00:00Z'", "CAST(ts AS DATE) = DATE '2023-12-30'"];
    three_parts(&["p_evolved_add"], &ts).await;
}

/// Columns of the table called like those of delete files are the table's.
#[tokio::test(flavor = "multi_thread")]
async fn c8_106_columns_named_pos_and_file_path_are_the_tables() {
    for version in [2, 3] {
        let lake = Lake::new().await;
        let create = format!(
            "CREATE TABLE t (pos bigint, file_path varchar, ts timestamp) PARTITIONED BY (day(ts)) \
             TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
        );
        lake.sql(&create).await.unwrap();
        let insert = "INSERT INTO t VALUES (2, 'a', TIMESTAMP '2024-01-01'), (0, 'b', TIMESTAMP '2024-01-01')";
        lake.sql(insert).await.unwrap();
        assert_eq!(lake.count("DELETE FROM t WHERE pos = 2").await, 1);
        assert_eq!(lake.rows("SELECT pos, file_path FROM t").await.len(), 1);
        assert_eq!(lake.rows("SELECT * FROM t WHERE pos = 0 AND file_path = 'b'").await.len(), 1);
        assert_eq!(lake.rows("SELECT * FROM t WHERE pos = 2 OR file_path = 'a'").await.len(), 0);
    }
}

/// Characters that paths and URLs take for something else.
#[tokio::test(flavor = "multi_thread")]
async fn c9_110_strange_partition_values_are_read_and_deleted() {
    let values = ["a b", "a#b", "a?b", "a/b", "a%2Fb", "a%b", "a+b", "é", "", ".", "..", "a=b", "a:b", "\\"];
    for version in [2, 3] {
        let lake = Lake::new().await;
        let create = format!(
            "CREATE TABLE t (id bigint, s varchar) PARTITIONED BY (s) \
             TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
        );
        lake.sql(&create).await.unwrap();
        for (id, value) in values.iter().enumerate() {
            lake.sql(&format!("INSERT INTO t VALUES ({id}, '{value}'), ({}, '{value}')", id + 100)).await.unwrap();
        }
        assert_eq!(lake.count("DELETE FROM t WHERE id >= 100").await, values.len() as u64);
        assert_eq!(lake.rows("SELECT * FROM t").await.len(), values.len());
        for (id, value) in values.iter().enumerate() {
            let found = lake.rows(&format!("SELECT id FROM t WHERE s = '{value}'")).await;
            assert_eq!(squeezed(found), [format!("| {id} |")], "{value:?}");
        }
    }
}

/// The filter of a join, which comes up during execution, leaves out files by their bounds: of old types, by field id, and
/// never a file that lacks the column.
#[tokio::test(flavor = "multi_thread")]
async fn c5_filters_of_joins_keep_every_row_that_matches() {
    let tables = [
        "evo_default",
        "evo_all",
        "p_identity_types",
        "p_evolved_day_month",
        "types_v2",
        "eq_types",
        "eq_renamed",
        "orders_v3_dv",
        "import_hive_part",
        "import_noid",
        "metrics_none",
        "fmt_avro",
        "fmt_mixed",
        "v1_part",
    ];
    let mut compared = 0;
    for partitions in [1, 3] {
        let lake = Lake::with_config(SessionConfig::new().with_target_partitions(partitions)).await;
        for table in tables {
            lake.copy_golden(table);
            let schema = Arc::clone(lake.table(table).await.metadata.current_schema().unwrap());
            for field in &schema.fields.fields {
                if !matches!(
                    field.field_type.as_primitive(),
                    Some(Int | Long | Text | Date | Timestamp | Timestamptz | Decimal { .. })
                ) {
                    continue;
                }
                let column = format!("\"{}\"", field.name);
                for key in ["min", "max"] {
                    let joined = format!(
                        "SELECT count(*) FROM (SELECT {key}({column}) AS the_key FROM {table}) k \
                         JOIN {table} t ON k.the_key = t.{column}"
                    );
                    let windowed = format!(
                        "SELECT count(*) FROM (SELECT {column} AS c, {key}({column}) OVER () AS m FROM {table}) \
                         WHERE c = m"
                    );
                    let (joined, windowed) = (lake.rows(&joined).await, lake.rows(&windowed).await);
                    assert_eq!(joined, windowed, "{table} by {key}({column})");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 200, "{compared}");
}
