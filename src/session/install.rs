//! Installing the extension into a DataFusion session while the session is built.
//!
//! A rule added to a live context would run after type coercion, so the one door is [`SessionStateBuilder`]. Invariant:
//! installing keeps what the builder already holds, except its query planner, which must know our plan nodes.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;

use super::CalveOptions;
use crate::dml::analyze::RowLevelDmlRule;
use crate::dml::physical::RowDeltaPlanner;
use crate::provider::guard_filter_pushdown;

/// Installs the extension with its defaults: the real clock, random ids, local files.
///
/// ```
/// use datafusion::execution::session_state::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
///
/// let state = calve::session::install(SessionStateBuilder::new().with_default_features()).build();
/// let session = calve::session::Calve::new(SessionContext::new_with_state(state))?;
/// # let _ = session;
/// # Ok::<(), calve::Error>(())
/// ```
pub fn install(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut config = builder.config().take().unwrap_or_else(SessionConfig::new);
    if config.options().extensions.get::<CalveOptions>().is_none() {
        config = config.with_option_extension(CalveOptions::default());
    }
    let mut analyzers = builder.analyzer_rules().take().unwrap_or_else(|| Analyzer::new().rules);
    // First, so that what it builds goes through type coercion like any query.
    analyzers.insert(0, Arc::new(RowLevelDmlRule));
    let optimizers = builder.physical_optimizers().take().unwrap_or_default().rules;
    builder
        .with_config(config)
        .with_analyzer_rules(analyzers)
        .with_physical_optimizer_rules(guard_filter_pushdown(optimizers))
        .with_query_planner(Arc::new(CalveQueryPlanner))
}

/// The planners of our plan nodes, for a session with a query planner of its own.
pub fn extension_planners() -> Vec<Arc<dyn ExtensionPlanner + Send + Sync>> {
    vec![Arc::new(RowDeltaPlanner)]
}

/// DataFusion's planner with the planners of our nodes.
#[derive(Debug)]
struct CalveQueryPlanner;

#[async_trait]
impl QueryPlanner for CalveQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(extension_planners())
            .create_physical_plan(logical_plan, session)
            .await
    }
}
