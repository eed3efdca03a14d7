//! Embeds calve in a DataFusion session: a warehouse folder as catalog, a table, rows, a DELETE.
//!
//! `cargo run --example embed`

use std::sync::Arc;

use calve::catalog::{Catalog, FilesystemCatalog};
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, install};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let warehouse = folder.path().to_string_lossy();

    let catalog: Arc<dyn Catalog> =
        Arc::new(FilesystemCatalog::new("lake", &warehouse, FileIo::local(), Env::system())?);
    catalog.create_namespace(&["shop".to_string()], true).await?;

    // The extension is installed while the session is built: a rule added later would run too late.
    let config = SessionConfig::new().with_default_catalog_and_schema("lake", "shop").with_information_schema(true);
    let state = install(SessionStateBuilder::new().with_default_features().with_config(config)).build();
    let calve = Calve::new(SessionContext::new_with_state(state))?;
    calve.register_catalog("lake", catalog);

    // `Calve::sql` takes every statement; plain `SessionContext::sql` those that DataFusion can plan.
    for statement in [
        "CREATE TABLE orders (id BIGINT NOT NULL, region STRING, amount DECIMAL(9, 2)) PARTITIONED BY (region)
         TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')",
        "INSERT INTO orders VALUES (1, 'eu', 10.00), (2, 'us', 20.50), (3, 'eu', 5.25), (4, NULL, 7.75)",
        "DELETE FROM orders WHERE region = 'us' OR amount < 6",
    ] {
        calve.sql(statement).await?.collect().await?;
    }
    calve.context().sql("SELECT * FROM orders ORDER BY id").await?.show().await?;
    Ok(())
}
