//! Plans a DELETE without SQL, looks at what would go, and commits it.
//!
//! `cargo run --example plan_delete`

use std::sync::Arc;

use calve::catalog::{Catalog, FilesystemCatalog, TableIdent};
use calve::dml::plan_delete;
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, install};
use calve::table::Table;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext, col, lit};

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let warehouse = folder.path().to_string_lossy();
    let catalog: Arc<dyn Catalog> =
        Arc::new(FilesystemCatalog::new("lake", &warehouse, FileIo::local(), Env::system())?);
    catalog.create_namespace(&["shop".to_string()], true).await?;
    let config = SessionConfig::new().with_default_catalog_and_schema("lake", "shop");
    let state = install(SessionStateBuilder::new().with_default_features().with_config(config)).build();
    let calve = Calve::new(SessionContext::new_with_state(state))?;
    calve.register_catalog("lake", Arc::clone(&catalog));
    for statement in [
        "CREATE TABLE events (id BIGINT, day DATE) PARTITIONED BY (day)
         TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')",
        "INSERT INTO events SELECT value, DATE '2026-01-01' + CAST(value / 100 AS INT) FROM generate_series(0, 299)",
    ] {
        calve.sql(statement).await?.collect().await?;
    }

    let ident = TableIdent { namespace: vec!["shop".to_string()], name: "events".to_string() };
    let table = Table::load(catalog, ident, Env::system()).await?;

    // Every row of the first day, and every tenth row of the others.
    let condition = col("day").eq(lit("2026-01-01")).or((col("id") % lit(10)).eq(lit(0)));
    let plan = plan_delete(&calve.context().state(), &table, Some(condition)).await?;
    println!("{} rows would go, by {}", plan.deleted_rows(), plan.mode());
    for delete in plan.deletes() {
        println!(
            "  {:?}: {} of {} live rows of {}",
            plan.action(delete),
            delete.deleted_rows(),
            delete.live_rows,
            delete.task.data_file.file_path
        );
    }

    // Writes the deletion vectors; nothing is visible until the commit.
    let update = plan.prepare().await?;
    println!(
        "{} delete files written, snapshot {} not committed yet",
        update.added_deletes().len(),
        update.snapshot_id()
    );
    let table = update.commit().await?;
    println!("current snapshot: {:?}", table.metadata.current_snapshot_id);
    calve.sql("SELECT count(*) FROM events").await?.show().await?;
    Ok(())
}
