//! Physical plans of INSERT OVERWRITE.
//!
//! New rows go to data files, and where a condition selects only some rows of a file, those are looked up beside them;
//! both kinds of writers feed the one commit.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::dml::logical::{OverwriteNode, OverwriteScope};
use crate::spec::properties::RowLevelMode;

use super::commit::{CommitExec, DeleteStatement, Overwrite, Statement};
use super::handover::Handover;
use super::planner::{Files, plan_target};
use super::row_delta_writer::{RowDeltaWriterExec, RowKind};

/// Plans [`OverwriteNode`]s.
#[derive(Debug, Default)]
pub struct OverwritePlanner;

#[async_trait]
impl ExtensionPlanner for OverwritePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<OverwriteNode>() else { return Ok(None) };
        let Some((rows, addresses)) = physical_inputs.split_first() else { return Ok(None) };
        let table = &node.table;
        let handover = Handover::new(table.io.clone());
        let writer = |kind, input: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            Arc::new(RowDeltaWriterExec::new(table.clone(), kind, Arc::clone(input), handover.clone()))
        };
        let added = writer(RowKind::Added, rows);
        let (input, overwrite) = match (&node.scope, addresses) {
            (OverwriteScope::Table, []) => (added, Overwrite::Table),
            (OverwriteScope::Partitions, []) => (added, Overwrite::Partitions),
            (OverwriteScope::Matching(matching), [addresses]) => {
                let (condition, schema) = (Some(&matching.condition), &matching.target_schema);
                let (addresses, token) = (Arc::clone(addresses), matching.scan_token);
                let target = plan_target(
                    table,
                    Files::Droppable,
                    condition,
                    schema,
                    addresses,
                    token,
                    session.config_options(),
                )?;
                let input = match target.split.scanned.is_empty() {
                    true => added,
                    false => UnionExec::try_new(vec![added, writer(RowKind::Deleted, &target.input)])?,
                };
                (input, Overwrite::Matching(DeleteStatement::new(target, RowLevelMode::CopyOnWrite)))
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(CommitExec::new(table.clone(), Statement::Overwrite(Arc::new(overwrite)), input, handover))))
    }
}
