//! `_row_id` and `_last_updated_sequence_number` of every row, as Spark reads them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve::catalog::{TableIdent, static_table};
use calve::env::Env;
use calve::io::FileIo;
use calve::provider::{IcebergTableProvider, guard_filter_pushdown};
use calve::spec::{NestedField, PrimitiveType, StructType};
use calve::table::Table;
use datafusion::common::cast::as_int64_array;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::csv::to_csv;

const LINEAGE: &str = "_row_id, _last_updated_sequence_number";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

async fn load(name: &str, metadata: &str) -> Table {
    let to = fixtures();
    let io = FileIo::builder().with_location_map("file:/warehouse/golden", to.to_str().expect("UTF-8"));
    let io = io.expect("a map").build();
    let ident = TableIdent::new(["golden"], name);
    let location = format!("file:/warehouse/golden/{name}/metadata/{metadata}");
    let catalog = static_table(ident.clone(), &location, io, Env::system()).await.expect("a table");
    Table::load(catalog, ident, Env::system()).await.expect("a table")
}

fn session(pushdown: bool, batch_size: usize) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(3).with_batch_size(batch_size);
    config.options_mut().execution.parquet.pushdown_filters = pushdown;
    config.options_mut().optimizer.repartition_file_min_size = 1;
    let rules = guard_filter_pushdown(PhysicalOptimizer::new().rules);
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build())
}

/// The columns of an expected file: the table's, and the two of lineage.
fn columns(own: &StructType) -> StructType {
    let mut fields = own.fields.clone();
    for (id, name) in [(-1, "_row_id"), (-2, "_last_updated_sequence_number")] {
        fields.push(Arc::new(NestedField::new(id, name, false, PrimitiveType::Long)));
    }
    StructType { fields }
}

#[tokio::test]
async fn rows_have_the_ids_and_sequence_numbers_that_spark_reads() {
    let mut compared = 0;
    for (name, metadata) in [("lineage_v3", "v8.metadata.json"), ("lineage_upgraded", "v9.metadata.json")] {
        let table = load(name, metadata).await;
        let mut snapshots: Vec<_> = table.metadata.snapshots.iter().collect();
        snapshots.sort_by_key(|s| s.sequence_number);
        for entry in std::fs::read_dir(fixtures().join(name)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
            let Some(which) = file.strip_prefix("expected-lineage").and_then(|rest| rest.strip_suffix(".csv")) else {
                continue;
            };
            let current = IcebergTableProvider::new(table.clone()).expect("a provider");
            let provider = match which.strip_prefix('-') {
                Some(number) => {
                    let number: usize = number.parse().expect("a number");
                    current.with_snapshot(snapshots[number - 1].snapshot_id).expect("a snapshot")
                }
                None => current,
            };
            let columns = columns(&provider.iceberg_schema().fields);
            let provider = Arc::new(provider.with_row_address().expect("hidden columns"));
            let wanted = std::fs::read_to_string(&path).expect("an expected file");
            for (pushdown, batch_size) in [(false, 8192), (true, 8192), (true, 1)] {
                let ctx = session(pushdown, batch_size);
                ctx.register_table("t", Arc::clone(&provider) as _).expect("a table");
                let sql = format!("SELECT id, v, q, {LINEAGE} FROM t");
                let rows = ctx.sql(&sql).await.expect("a plan").collect().await.expect("rows");
                assert_eq!(to_csv(&columns, &rows, &["id".to_owned()]), wanted, "{name}/{file}");
                let ids: BTreeSet<&str> = wanted.lines().skip(1).filter_map(|line| line.split(',').nth(3)).collect();
                for id in ids.into_iter().filter(|id| !id.is_empty()) {
                    let sql = format!("SELECT count(*) FROM t WHERE _row_id = {id}");
                    let rows = ctx.sql(&sql).await.expect("a plan").collect().await.expect("rows");
                    let count = as_int64_array(rows[0].column(0)).expect("a count").value(0);
                    assert_eq!(count, 1, "{name}/{file}: rows with id {id}");
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 11, "expected files");
}

#[tokio::test]
async fn a_table_without_lineage_has_no_such_columns() {
    let table = load("orders_v2_mor", "v17.metadata.json").await;
    let provider = IcebergTableProvider::new(table).expect("a provider").with_row_address().expect("hidden columns");
    let ctx = session(false, 8192);
    ctx.register_table("t", Arc::new(provider)).expect("a table");
    assert!(ctx.sql("SELECT _file FROM t").await.is_ok());
    assert!(ctx.sql("SELECT _row_id FROM t").await.is_err());
}
