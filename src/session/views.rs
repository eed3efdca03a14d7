//! Views over Iceberg tables, which show the newest state of their tables.
//!
//! DataFusion keeps the plan of a view with the tables as they were when it was made. Here every statement gets it with each
//! table in its newest state, the same one wherever the view reads the table. Invariant: a version that the view names
//! stays that version, and its columns stay those of its making.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use crate::provider::{IcebergTableProvider, MetadataTableProvider};
use crate::table::Table;

/// The view over its tables' newest states; `None` when it reads no Iceberg table.
pub(super) async fn newest_view(view: &ViewTable) -> Result<Option<ViewTable>> {
    let mut tables: Vec<Table> = Vec::new();
    view.logical_plan().apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = table_of(scan)
            && !tables.iter().any(|known| is_same(known, &table))
        {
            tables.push(table);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if tables.is_empty() {
        return Ok(None);
    }
    let mut newest = Vec::with_capacity(tables.len());
    for table in tables {
        newest.push(table.refresh().await?);
    }
    let plan = view.logical_plan().clone().transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => match renewed(&scan, &newest)? {
            Some(provider) => {
                let source = provider_as_source(provider);
                let TableScan { table_name, projection, filters, fetch, .. } = scan;
                let scan = TableScanBuilder::new(table_name, source)
                    .with_projection(projection)
                    .with_filters(filters)
                    .with_fetch(fetch)
                    .build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            None => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
        },
        other => Ok(Transformed::yes(other.recompute_schema()?)),
    });
    Ok(Some(ViewTable::new(plan.data()?, view.definition().cloned())))
}

fn table_of(scan: &TableScan) -> Option<Table> {
    let provider = source_as_provider(&scan.source).ok()?;
    match provider.downcast_ref::<IcebergTableProvider>() {
        Some(iceberg) => Some(iceberg.table().clone()),
        None => provider.downcast_ref::<MetadataTableProvider>().map(|metadata| metadata.table().clone()),
    }
}

/// Whether both are states of one table, as far as its catalog says; a table made anew under the name is that table too.
fn is_same(a: &Table, b: &Table) -> bool {
    a.ident == b.ident && Arc::ptr_eq(&a.catalog, &b.catalog)
}

/// The provider of a scan over the newest state of its table.
fn renewed(scan: &TableScan, newest: &[Table]) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(table) = table_of(scan) else { return Ok(None) };
    let Some(newest) = newest.iter().find(|other| is_same(other, &table)) else { return Ok(None) };
    let provider = source_as_provider(&scan.source)?;
    if let Some(metadata) = provider.downcast_ref::<MetadataTableProvider>() {
        return Ok(Some(Arc::new(metadata.renewed(newest)?)));
    }
    match provider.downcast_ref::<IcebergTableProvider>() {
        Some(iceberg) => Ok(Some(Arc::new(iceberg.renewed(newest)?))),
        None => Ok(None),
    }
}
