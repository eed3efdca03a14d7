//! Planning of writing statements under settings of our own.
//!
//! With its default settings DataFusion reads a Parquet column that has NaN beside equal bounds as a constant, leaves out row
//! groups whose bounds do not show their NaN, loses -0.0 by bloom filters, and hands filters to same-named columns of another
//! table; with others its sort-merge and piecewise joins lose rows. A statement that writes is planned with all of that off.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::{QueryPlanner, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::foreign::{self, ForeignChangePlanner};
use super::writes;
use crate::provider::IcebergTableProvider;

/// DataFusion's planner with planners of our nodes; it plans writing statements under guarded settings.
pub struct GuardedPlanner {
    planners: Vec<Arc<dyn ExtensionPlanner + Send + Sync>>,
}

impl std::fmt::Debug for GuardedPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedPlanner").field("planners", &self.planners.len()).finish()
    }
}

impl GuardedPlanner {
    /// With the planners of extension nodes.
    pub fn new(mut planners: Vec<Arc<dyn ExtensionPlanner + Send + Sync>>) -> Self {
        planners.push(Arc::new(ForeignChangePlanner));
        Self { planners }
    }
}

#[async_trait]
impl QueryPlanner for GuardedPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(self.planners.clone());
        if !writes(plan) {
            return planner.create_physical_plan(plan, session).await;
        }
        let plan = foreign::defer(plan)?;
        match session.as_any().downcast_ref::<SessionState>() {
            Some(state) => {
                let guarded = guarded(state.clone(), Scans::of(&plan)?);
                planner.create_physical_plan(&plan, &guarded).await
            }
            None => super::unsupported("planning a writing statement in a session that is not DataFusion's own"),
        }
    }
}

/// What reads the data of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scans {
    /// Iceberg tables, which guard themselves against filters that are not theirs, and tables in memory, which take none.
    Guarded,
    /// Also listed files, which take filters from the physical plan only.
    Listed,
    /// Also tables unknown here.
    Other,
}

impl Scans {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut scans = Self::Guarded;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                let found = match source_as_provider(&scan.source) {
                    Ok(provider) if provider.is::<IcebergTableProvider>() || provider.is::<MemTable>() => Self::Guarded,
                    Ok(provider) if provider.is::<ListingTable>() => Self::Listed,
                    _ => Self::Other,
                };
                scans = scans.max(found);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(scans)
    }
}

/// The session with settings under which every join and every Parquet scan is right. Filters are pushed down in the physical
/// plan only if every scan guards itself: a table may have been registered with pruning or push-down of its own.
fn guarded(state: SessionState, scans: Scans) -> SessionState {
    let mut config = state.config().clone();
    let options = config.options_mut();
    // Building a state would put an empty catalog in the place of the session's.
    options.catalog.create_default_catalog_and_schema = false;
    options.execution.collect_statistics = false;
    options.optimizer.prefer_hash_join = true;
    options.optimizer.enable_piecewise_merge_join = false;
    if scans == Scans::Guarded {
        // Columns that a condition does not look at are then decoded only where it holds.
        options.execution.parquet.pushdown_filters = true;
        return SessionStateBuilder::new_from_existing(state).with_config(config).build();
    }
    if scans == Scans::Other {
        options.execution.parquet.pruning = false;
        options.execution.parquet.bloom_filter_on_read = false;
        options.execution.parquet.pushdown_filters = false;
    }
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    let rules = state.physical_optimizers().iter().filter(|rule| !rule.name().starts_with("FilterPushdown"));
    let rules = rules.cloned().collect();
    SessionStateBuilder::new_from_existing(state).with_config(config).with_physical_optimizer_rules(rules).build()
}
