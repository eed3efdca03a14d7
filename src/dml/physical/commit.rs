//! The one node that commits.
//!
//! Gathers the messages of all writers, makes one snapshot or none, and yields one row, `count`. Invariant: it commits at
//! most once; a second execution of the same plan is an error.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

use crate::dml::delete_plan::{DeletePlan, position_deletes, whole_file_deletes};
use crate::dml::logical::ChangeKind;
use crate::dml::overwrite::{replace_partitions, replace_rows, replace_table};
use crate::dml::row_delete_planner::{Action, RowDelete};
use crate::dml::row_removal::RowRemoval;
use crate::expr::Predicate;
use crate::scan::{DeleteLoader, FileScanTask};
use crate::spec::deletion_vector::PositionBitmap;
use crate::spec::properties::RowLevelMode;
use crate::table::Table;
use crate::transaction::{Removal, SnapshotUpdate, Validation};

use super::changed_rows::two_matches;
use super::handover::{Handover, Receiver};
use super::message::{Messages, RowCounts};
use super::planner::Target;

/// What is committed.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    /// The files that the writers added.
    Append,
    /// A new table with the files that the writers added.
    Create,
    /// The rows that the writers found, and whole files.
    Delete(Arc<DeleteStatement>),
    /// The rows that the writers found, and the files they added.
    Change(Arc<ChangeStatement>),
    /// The files that the writers added, in the place of others.
    Overwrite(Arc<Overwrite>),
}

/// What an INSERT OVERWRITE replaces.
#[derive(Debug)]
pub(super) enum Overwrite {
    /// Every row of the table.
    Table,
    /// The partitions of the files that the writers added.
    Partitions,
    /// The rows that the writers found, and whole files.
    Matching(DeleteStatement),
}

/// An UPDATE or MERGE, as planned.
#[derive(Debug)]
pub(super) struct ChangeStatement {
    pub(super) kind: ChangeKind,
    pub(super) filter: Predicate,
    pub(super) mode: RowLevelMode,
    pub(super) one_match: bool,
    pub(super) inserts: bool,
    pub(super) scanned: Vec<Arc<FileScanTask>>,
    pub(super) pruned: u64,
    /// The scan's.
    pub(super) deletes: Arc<DeleteLoader>,
}

/// A DELETE, as planned.
#[derive(Debug)]
pub(super) struct DeleteStatement {
    pub(super) filter: Predicate,
    pub(super) mode: RowLevelMode,
    pub(super) dropped: Vec<Arc<FileScanTask>>,
    pub(super) scanned: Vec<Arc<FileScanTask>>,
    pub(super) pruned: u64,
    /// The scan's, so that old deletes are read once a statement.
    pub(super) deletes: Arc<DeleteLoader>,
}

impl DeleteStatement {
    pub(super) fn new(target: Target, mode: RowLevelMode) -> Self {
        let Target { filter, split, deletes, .. } = target;
        Self { filter, mode, dropped: split.dropped, scanned: split.scanned, pruned: split.pruned, deletes }
    }

    fn files(&self) -> String {
        format!("files: dropped={}, pruned={}, scanned={}", self.dropped.len(), self.pruned, self.scanned.len())
    }
}

/// Commits a statement.
#[derive(Debug)]
pub struct CommitExec {
    table: Table,
    statement: Statement,
    input: Arc<dyn ExecutionPlan>,
    handover: Handover,
    executed: Arc<AtomicBool>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CommitExec {
    /// `input` are the writers, which hand their files over by `handover`.
    pub(super) fn new(table: Table, statement: Statement, input: Arc<dyn ExecutionPlan>, handover: Handover) -> Self {
        Self::with_guard(table, statement, input, handover, Arc::new(AtomicBool::new(false)))
    }

    /// A DELETE as planned, and what looks for its rows; `None` for other statements.
    pub(super) fn search(&self) -> Option<(Arc<DeleteStatement>, Arc<dyn ExecutionPlan>)> {
        match &self.statement {
            Statement::Delete(delete) => Some((Arc::clone(delete), Arc::clone(&self.input))),
            _ => None,
        }
    }

    fn with_guard(
        table: Table,
        statement: Statement,
        input: Arc<dyn ExecutionPlan>,
        handover: Handover,
        executed: Arc<AtomicBool>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(count_schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { table, statement, input, handover, executed, properties: Arc::new(properties), metrics }
    }
}

fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

impl CommitExec {
    fn described(&self) -> String {
        match &self.statement {
            Statement::Append => format!("append to {}", self.table.ident),
            Statement::Create => format!("create {}", self.table.ident),
            Statement::Change(change) => format!(
                "{} {}, mode={}, files: pruned={}, scanned={}",
                change.kind,
                self.table.ident,
                change.mode,
                change.pruned,
                change.scanned.len()
            ),
            Statement::Delete(delete) => {
                format!("delete from {}, mode={}, {}", self.table.ident, delete.mode, delete.files())
            }
            Statement::Overwrite(overwrite) => match &**overwrite {
                Overwrite::Table => format!("overwrite {}", self.table.ident),
                Overwrite::Partitions => format!("overwrite partitions of {}", self.table.ident),
                Overwrite::Matching(rows) => {
                    format!("overwrite rows of {}, {}", self.table.ident, rows.files())
                }
            },
        }
    }
}

impl DisplayAs for CommitExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.described();
        if t != DisplayFormatType::TreeRender {
            return write!(f, "CommitExec: {text}");
        }
        // One line each: longer ones are cut anywhere.
        let (statement, files) = text.split_once(", files: ").unwrap_or((&text, ""));
        statement.split(", ").try_for_each(|part| writeln!(f, "{part}"))?;
        files.split(", ").filter(|part| !part.is_empty()).try_for_each(|part| writeln!(f, "files {part}"))
    }
}

impl ExecutionPlan for CommitExec {
    fn name(&self) -> &str {
        "CommitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::with_guard(
                self.table.clone(),
                self.statement.clone(),
                input,
                self.handover.clone(),
                Arc::clone(&self.executed),
            ))),
            _ => internal_err!("CommitExec takes one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(super::RECOMPUTE))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("CommitExec has one partition");
        }
        if self.executed.swap(true, Ordering::SeqCst) {
            let error =
                crate::Error::invalid_input("this statement was executed already; plan it again to run it again");
            return Err(error.into());
        }
        let files = self.handover.receive();
        let input = self.input.execute(0, context)?;
        let run = Run { table: self.table.clone(), statement: self.statement.clone(), metrics: self.metrics.clone() };
        let schema = count_schema();
        let batch = async move {
            let count = run.run(input, files).await?;
            Ok(RecordBatch::try_new(schema, vec![Arc::new(UInt64Array::from(vec![count]))])?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), futures::stream::once(batch))))
    }
}

/// One execution.
struct Run {
    table: Table,
    statement: Statement,
    metrics: ExecutionPlanMetricsSet,
}

impl Run {
    async fn run(&self, input: SendableRecordBatchStream, files: Receiver) -> Result<u64> {
        let messages = match self.gather(input).await {
            Ok(messages) => {
                files.take();
                messages
            }
            Err(error) => {
                files.abort().await;
                return Err(error);
            }
        };
        match &self.statement {
            Statement::Append | Statement::Create => self.append(messages).await,
            Statement::Delete(delete) => self.delete(delete, messages).await,
            Statement::Change(change) => self.change(change, messages).await,
            Statement::Overwrite(overwrite) => self.overwrite(overwrite, messages).await,
        }
        .map_err(DataFusionError::from)
    }

    async fn gather(&self, mut input: SendableRecordBatchStream) -> Result<Messages> {
        let mut messages = Messages::default();
        while let Some(batch) = input.next().await {
            messages.absorb(&batch?, &self.table.metadata)?;
        }
        Ok(messages)
    }

    async fn append(&self, messages: Messages) -> crate::Result<u64> {
        let rows = messages.added_data.iter().map(|file| file.record_count).sum();
        let mut update = SnapshotUpdate::new(self.table.clone());
        messages.added_data.into_iter().for_each(|file| update.add_data(file));
        match self.statement {
            Statement::Create => {
                update.create().await?;
            }
            _ if update.is_empty() => {}
            _ => {
                update.commit().await?;
            }
        }
        self.count("rows_added", rows);
        Ok(rows)
    }

    async fn delete(&self, statement: &DeleteStatement, messages: Messages) -> crate::Result<u64> {
        let mut deletes = whole_file_deletes(&statement.deletes, &statement.dropped).await?;
        deletes.extend(position_deletes(&statement.deletes, &statement.scanned, messages.matched).await?);
        let plan = DeletePlan::new(self.table.clone(), statement.filter.clone(), statement.mode, deletes)?;
        for (name, action) in [
            ("files_dropped", Action::Drop),
            ("files_rewritten", Action::Rewrite),
            ("deletion_vectors", Action::Vector),
        ] {
            let files = plan.deletes().iter().filter(|delete| plan.action(delete) == action).count();
            self.count(name, files as u64);
        }
        let rows = if plan.is_empty() { 0 } else { plan.commit_counted().await? };
        self.count("rows_deleted", rows);
        Ok(rows)
    }

    async fn change(&self, statement: &ChangeStatement, messages: Messages) -> crate::Result<u64> {
        let RowCounts { inserted, updated } = messages.counts;
        let mut update = SnapshotUpdate::new(self.table.clone());
        let twice = messages.row_twice().filter(|_| statement.one_match).map(two_matches);
        messages.added_data.into_iter().for_each(|file| update.add_data(file));
        let prepared = match twice {
            Some(error) => Err(error),
            None => self.take_rows(statement, messages.matched, updated, &mut update).await,
        };
        let (removed, referenced) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                update.discard().await;
                return Err(error);
            }
        };
        let deleted = removed - updated;
        for (name, value) in [("rows_inserted", inserted), ("rows_updated", updated), ("rows_deleted", deleted)] {
            self.count(name, value);
        }
        if update.is_empty() {
            return Ok(0);
        }
        let properties = self.table.properties()?;
        let isolation = match statement.kind {
            ChangeKind::Update => properties.update_isolation,
            ChangeKind::Merge => properties.merge_isolation,
        };
        let start = self.table.metadata.current_snapshot_id;
        let mut validation = Validation::for_update(start, isolation, statement.filter.clone());
        if statement.inserts {
            validation = validation.for_absent_rows();
        }
        let counts = [("inserted", inserted), ("updated", updated), ("deleted", deleted)];
        let update =
            counts.into_iter().fold(update.validate(validation.referencing(referenced)), |update, (what, n)| {
                update.property(format!("calve.rows-{what}"), n.to_string())
            });
        update.commit().await?;
        Ok(inserted + updated + deleted)
    }

    /// Takes the matched rows out of their files: how many went, `updated` of them into new ones, and the data files that new
    /// deletes address.
    async fn take_rows(
        &self,
        statement: &ChangeStatement,
        matched: HashMap<String, PositionBitmap>,
        updated: u64,
        update: &mut SnapshotUpdate,
    ) -> crate::Result<(u64, Vec<Arc<str>>)> {
        let deletes = position_deletes(&statement.deletes, &statement.scanned, matched).await?;
        let removal = RowRemoval::new(self.table.clone(), statement.mode, deletes)?;
        let removed = removal.deleted_rows();
        // Whatever plan the statement got: more new rows than old ones would be rows that nobody wrote.
        if removed < updated || statement.kind == ChangeKind::Update && removed != updated {
            return Err(crate::Error::internal(format!("{updated} rows were updated, but {removed} rows went"))
                .with_context("table", self.table.ident.to_string()));
        }
        // The rows live on in new files, so a delete that another commit made for them must not be lost.
        let referenced = removal.write(update, Removal::Rewritten).await?;
        Ok((removed, referenced))
    }

    async fn overwrite(&self, overwrite: &Overwrite, messages: Messages) -> crate::Result<u64> {
        let Messages { added_data, matched, .. } = messages;
        let rows = added_data.iter().map(|file| file.record_count).sum();
        let update = match overwrite {
            Overwrite::Table => replace_table(&self.table, added_data).await?,
            Overwrite::Partitions => replace_partitions(&self.table, added_data).await?,
            Overwrite::Matching(statement) => {
                // The rows that go are not counted, so nobody has to know how many there are in a file that goes whole.
                let whole = statement.dropped.iter().map(|task| RowDelete::of_file((**task).clone(), None));
                let found = position_deletes(&statement.deletes, &statement.scanned, matched);
                replace_rows(&self.table, statement.filter.clone(), whole.collect(), found, added_data).await?
            }
        };
        for (name, removal) in [("files_dropped", Removal::Whole), ("files_rewritten", Removal::Rewritten)] {
            self.count(name, update.removed_data().filter(|(_, why)| *why == removal).count() as u64);
        }
        if !update.is_empty() {
            update.commit().await?;
        }
        self.count("rows_added", rows);
        Ok(rows)
    }

    fn count(&self, name: &'static str, value: u64) {
        MetricBuilder::new(&self.metrics).global_counter(name).add(usize::try_from(value).unwrap_or(usize::MAX));
    }
}
