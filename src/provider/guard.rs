//! Opens scans to the filters of the physical plan, where those cannot go astray.
//!
//! DataFusion 55 maps a filter that passes a join (a condition above it, or the dynamic filter of another join) to the
//! join's inputs by column name alone. When both inputs have a column of one name the filter may reach the wrong table,
//! and rows are lost without a word. Our scans therefore take no filter from operators above them until this rule has
//! looked at the whole plan: it opens them in a plan where no node sees two columns of one name, and closes them in every
//! other. Filters which the logical plan gave to a scan are not affected; neither are the scans of other tables.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};

use super::scan::IcebergScan;

/// Puts the guard in front of every rule that pushes filters down. The result is for
/// `SessionStateBuilder::with_physical_optimizer_rules`; guarding rules twice is guarding them once.
pub fn guard_filter_pushdown(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let guard: Arc<dyn PhysicalOptimizerRule + Send + Sync> = Arc::new(FilterPushdownGuard);
    let guarded = |rule: &Arc<dyn PhysicalOptimizerRule + Send + Sync>| rule.name().starts_with("FilterPushdown");
    rules
        .into_iter()
        .filter(|rule| rule.name() != guard.name())
        .flat_map(|rule| if guarded(&rule) { vec![Arc::clone(&guard), rule] } else { vec![rule] })
        .collect()
}

/// Opens or closes the Iceberg scans of a plan to filters from above.
#[derive(Debug)]
pub struct FilterPushdownGuard;

impl PhysicalOptimizerRule for FilterPushdownGuard {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let open = !names_collide(&plan);
        plan.transform_up(|node| match IcebergScan::of(node.as_ref()) {
            Some(scan) if scan.open_to_filters() != open => Ok(Transformed::yes(scan.with_open_to_filters(open))),
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "IcebergFilterPushdownGuard"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether some node of the plan has two input columns of one name.
fn names_collide(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    // The inputs of a union are mapped to it by position, each on its own.
    let apart = plan.as_ref().is::<UnionExec>() || plan.as_ref().is::<InterleaveExec>();
    let mut seen: HashSet<String> = HashSet::new();
    for child in &children {
        if apart {
            seen.clear();
        }
        if child.schema().fields().iter().any(|f| !seen.insert(f.name().clone())) {
            return true;
        }
    }
    children.into_iter().any(names_collide)
}
