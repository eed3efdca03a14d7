//! `CREATE EXTERNAL TABLE … STORED AS ICEBERG LOCATION '…'`: a table without a catalog.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use super::registry::Catalogs;
use super::to_datafusion;
use crate::Error;
use crate::catalog::{TableIdent, static_table};
use crate::provider::IcebergTableProvider;
use crate::table::Table;

/// The file type of an external Iceberg table.
pub(super) const FILE_TYPE: &str = "ICEBERG";

/// Opens the table at a location.
#[derive(Debug)]
pub(super) struct IcebergTableFactory;

#[async_trait]
impl TableProviderFactory for IcebergTableFactory {
    async fn create(&self, state: &dyn Session, cmd: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        open(state, cmd).await.map(|table| Arc::new(table) as _).map_err(to_datafusion)
    }
}

async fn open(state: &dyn Session, cmd: &CreateExternalTable) -> crate::Result<IcebergTableProvider> {
    let [location] = cmd.locations.as_slice() else {
        return Err(Error::invalid_input("an Iceberg table has one LOCATION: its folder or a metadata file"));
    };
    if !cmd.schema.fields().is_empty() || !cmd.table_partition_cols.is_empty() || !cmd.order_exprs.is_empty() {
        return Err(Error::invalid_input(
            "columns, partitioning and order of an external Iceberg table come from its metadata: leave them out",
        ));
    }
    let catalogs = state
        .config()
        .get_extension::<Catalogs>()
        .ok_or_else(|| Error::invalid_input("the session was not built with calve::session::install"))?;
    let namespace = cmd.name.schema().map(str::to_owned);
    let ident = TableIdent::new(namespace, cmd.name.table());
    let catalog = static_table(ident.clone(), location, catalogs.file_io().clone(), catalogs.env().clone()).await?;
    IcebergTableProvider::new(Table::load(catalog, ident, catalogs.env().clone()).await?)
}
