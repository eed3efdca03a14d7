//! One seed: a random table and random statements on it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use calve::ErrorKind;
use calve::catalog::{TableCommit, TableIdent};
use calve::spec::{FormatVersion, LAST_ADDED, TableMetadataBuilder, TableUpdate};
use fastrand::Rng;

use crate::support::Lake;

use super::audit::{Lineage, audit, fingerprint};
use super::predicate::{Condition, Row, World};
use super::random::{Column, Conditions, Definition};
use super::value::Value;

/// The statements of a seed so far.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

/// What a seed did.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) statements: u64,
    /// Statements refused as unsupported.
    pub(super) refused: u64,
    pub(super) deleted_rows: u64,
    /// Rows changed by UPDATE and MERGE.
    pub(super) changed_rows: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: Self) {
        self.statements += other.statements;
        self.refused += other.refused;
        self.deleted_rows += other.deleted_rows;
        self.changed_rows += other.changed_rows;
    }
}

pub(super) struct Script {
    pub(super) rng: Rng,
    pub(super) lake: Lake,
    log: Log,
    pub(super) definition: Definition,
    /// Columns and rows of `s`.
    pub(super) other: Vec<Column>,
    pub(super) other_rows: Vec<Row>,
    pub(super) rows: Vec<Row>,
    pub(super) next_id: i64,
    version: FormatVersion,
    lineage: Lineage,
    /// Ids of the rows that the last statement updated.
    pub(super) updated: BTreeSet<i64>,
    pub(super) outcome: Outcome,
}

/// Runs one seed; panics where the table and the model differ.
pub(super) async fn run(seed: u64, log: Log) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    let version =
        [FormatVersion::V1, FormatVersion::V2, FormatVersion::V2, FormatVersion::V3, FormatVersion::V3][rng.usize(..5)];
    let definition = Definition::random(&mut rng, version);
    let mut other = Vec::new();
    for (i, column) in definition.columns.iter().filter(|c| c.kind.is_primitive()).enumerate() {
        other.push(column.renamed(format!("k{i}"), [0, 0, 30, 50][rng.usize(..4)]));
    }
    let lake = Lake::new().await;
    let mut script = Script {
        rng,
        lake,
        log,
        definition,
        other,
        other_rows: Vec::new(),
        rows: Vec::new(),
        next_id: 0,
        version,
        lineage: Lineage::new(),
        updated: BTreeSet::new(),
        outcome: Outcome::default(),
    };
    script.create().await;
    for _ in 0..script.rng.usize(6..=10) {
        script.step().await;
    }
    script.outcome
}

impl Script {
    async fn create(&mut self) {
        let other = Definition {
            version: FormatVersion::V2,
            columns: self.other.clone(),
            partitioning: Vec::new(),
            properties: Default::default(),
        };
        self.note(self.definition.create_sql());
        self.note(other.create_sql().replace("TABLE t", "TABLE s"));
        for (name, definition) in [("t", &self.definition), ("s", &other)] {
            let ident = TableIdent::new(["default"], name);
            let location = self.lake.catalog().default_location(&ident).unwrap();
            let metadata = TableMetadataBuilder::new_table(definition.new_table(location)).unwrap().build(1).unwrap();
            self.lake.catalog().create_table(&ident, metadata).await.unwrap();
        }
        let count = self.rng.usize(..=6);
        for _ in 0..count {
            let row = self.other.iter().map(|column| column.value(&mut self.rng)).collect();
            self.other_rows.push(row);
        }
        if count > 0 {
            let sql = format!("INSERT INTO s VALUES {}", values_sql(&self.other, &self.other_rows));
            self.count(&sql).await.expect("INSERT INTO s");
        }
        self.insert_values().await;
    }

    async fn step(&mut self) {
        self.settings().await;
        self.updated.clear();
        match self.rng.u8(..28) {
            0..=3 => self.insert_values().await,
            4 => self.insert_select().await,
            5..=14 => self.delete().await,
            // A spec of version 1 keeps every field that was there, in its place.
            15 if self.version != FormatVersion::V1 => self.evolve().await,
            16 => self.upgrade().await,
            20..=23 => self.update().await,
            24..=27 => self.merge().await,
            _ => self.select().await,
        }
        let table = self.lake.table("t").await;
        let lineage = audit(&table, &self.definition.columns, &self.rows);
        for (id, before) in &self.lineage {
            match lineage.get(id) {
                Some(now) if self.updated.contains(id) => {
                    assert_eq!(before.0, now.0, "row id of the row with id {id}, which was updated");
                    assert!(
                        before.1 < now.1,
                        "the row with id {id} was updated by an earlier commit: {before:?} {now:?}"
                    );
                }
                Some(now) => assert_eq!(before, now, "row id and last-updated sequence number of the row with id {id}"),
                None => {}
            }
        }
        self.lineage = lineage;
    }

    async fn settings(&mut self) {
        let rng = &mut self.rng;
        let mut settings: Vec<(&str, String)> = Vec::new();
        let mut maybe = |name, values: &[&str]| {
            if rng.u8(..3) == 0 {
                settings.push((name, values[rng.usize(..values.len())].to_string()));
            }
        };
        maybe("calve.strict_pruning", &["true", "false"]);
        maybe("datafusion.execution.target_partitions", &["1", "4"]);
        maybe("datafusion.execution.batch_size", &["1", "3", "8192"]);
        maybe("datafusion.execution.parquet.pushdown_filters", &["true", "false"]);
        maybe("datafusion.optimizer.repartition_file_min_size", &["1", "10485760"]);
        if self.version != FormatVersion::V1 {
            for mode in ["calve.delete_mode", "calve.update_mode", "calve.merge_mode"] {
                maybe(mode, &["copy-on-write", "merge-on-read", "merge-on-read"]);
            }
        }
        for (name, value) in settings {
            let sql = format!("SET {name} = '{value}'");
            self.note(sql.clone());
            self.lake.sql(&sql).await.unwrap();
        }
    }

    pub(super) fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    pub(super) fn condition(&mut self) -> Condition {
        let coarse = self.rng.u8(..3) == 0;
        let mut conditions =
            Conditions { rng: &mut self.rng, target: &self.definition.columns, other: &self.other, subqueries: true };
        if coarse { conditions.coarse() } else { conditions.random() }
    }

    pub(super) fn matches(&self, condition: &Condition) -> Vec<bool> {
        let world = World { target: &self.rows, other: &self.other_rows };
        self.rows.iter().map(|row| condition.eval(world, &[row]) == Some(true)).collect()
    }

    /// Runs a statement; `None` when it is refused.
    async fn execute(&mut self, sql: &str) -> Option<Vec<RecordBatch>> {
        self.note(sql.to_string());
        self.outcome.statements += 1;
        match self.lake.sql(sql).await {
            Ok(batches) => Some(batches),
            Err(error) if is_refusal(&error) => {
                self.note(format!("-- refused: {}", error.to_string().replace('\n', " ")));
                self.outcome.refused += 1;
                None
            }
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    pub(super) async fn count(&mut self, sql: &str) -> Option<u64> {
        use arrow::array::AsArray;
        use arrow::datatypes::UInt64Type;
        let batches = self.execute(sql).await?;
        Some(batches[0].column(0).as_primitive::<UInt64Type>().value(0))
    }

    async fn insert_values(&mut self) {
        let count = [1, 3, 10, 30][self.rng.usize(..4)];
        let rows = self.definition.rows(&mut self.rng, self.next_id, count);
        self.next_id += count as i64;
        let sql = format!("INSERT INTO t VALUES {}", values_sql(&self.definition.columns, &rows));
        if let Some(inserted) = self.count(&sql).await {
            assert_eq!(inserted, count as u64, "rows inserted");
            self.rows.extend(rows);
        }
    }

    async fn insert_select(&mut self) {
        let condition = self.condition();
        let shift = self.next_id;
        let names: Vec<_> = self.definition.columns[1..].iter().map(|c| c.name.as_str()).collect();
        let sql = format!("INSERT INTO t SELECT t.id + {shift}, {} FROM t WHERE {}", names.join(", "), condition.sql());
        let copies: Vec<Row> = self
            .rows
            .iter()
            .zip(self.matches(&condition))
            .filter(|(_, matches)| *matches)
            .map(|(row, _)| {
                let Value::Int(id) = row[0] else { panic!("a row without id") };
                std::iter::once(Value::Int(id + shift)).chain(row[1..].iter().cloned()).collect()
            })
            .collect();
        if let Some(count) = self.count(&sql).await {
            assert_eq!(count, copies.len() as u64, "rows inserted");
            self.rows.extend(copies);
            self.next_id *= 2;
        }
    }

    async fn delete(&mut self) {
        let (condition, sql) = match self.rng.u8(..30) {
            0 => (Condition::Constant(Some(true)), "DELETE FROM t".to_string()),
            _ => {
                let condition = self.condition();
                let sql = format!("DELETE FROM t WHERE {}", condition.sql());
                (condition, sql)
            }
        };
        let matches = self.matches(&condition);
        let wanted = matches.iter().filter(|m| **m).count() as u64;
        let before = self.lake.table("t").await.metadata.snapshots.len();
        if let Some(count) = self.count(&sql).await {
            let snapshots = self.lake.table("t").await.metadata.snapshots.len() - before;
            assert_eq!(count, wanted, "rows deleted");
            assert_eq!(snapshots, usize::from(wanted > 0), "snapshots made");
            let mut matches = matches.into_iter();
            self.rows.retain(|_| !matches.next().unwrap());
            self.outcome.deleted_rows += wanted;
        }
    }

    async fn select(&mut self) {
        let condition = self.condition();
        let sql = format!("SELECT * FROM t WHERE {}", condition.sql());
        let Some(batches) = self.execute(&sql).await else { return };
        let mut got = Vec::new();
        for batch in &batches {
            let columns: Vec<Vec<Value>> =
                self.definition.columns.iter().zip(batch.columns()).map(|(c, a)| c.kind.decode(a)).collect();
            got.extend((0..batch.num_rows()).map(|i| fingerprint(&columns.iter().map(|c| c[i].clone()).collect())));
        }
        let matches = self.rows.iter().zip(self.matches(&condition)).filter(|(_, matches)| *matches);
        let mut wanted: Vec<String> = matches.map(|(row, _)| fingerprint(row)).collect();
        got.sort();
        wanted.sort();
        assert_eq!(got, wanted, "rows selected");
    }

    /// Another partition spec for new files.
    async fn evolve(&mut self) {
        let terms = self.definition.random_partitioning(&mut self.rng);
        self.note(format!("-- partition by: {}", self.definition.partitioning_sql(&terms)));
        let table = self.lake.table("t").await;
        let spec = self.definition.spec(table.metadata.current_schema().unwrap(), &terms);
        self.commit(vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: LAST_ADDED }]).await;
    }

    /// The next format version.
    async fn upgrade(&mut self) {
        self.version = match self.version {
            FormatVersion::V1 => FormatVersion::V2,
            _ => FormatVersion::V3,
        };
        self.note(format!("-- upgrade to format version {}", self.version));
        self.commit(vec![TableUpdate::UpgradeFormatVersion { format_version: self.version }]).await;
    }

    async fn commit(&self, updates: Vec<TableUpdate>) {
        let table = self.lake.table("t").await;
        let commit =
            TableCommit { ident: table.ident.clone(), base: table.loaded(), requirements: Vec::new(), updates };
        self.lake.catalog().commit(commit).await.unwrap();
    }
}

/// What cannot be planned, and a value that truncation would take below the least of its type.
fn is_refusal(error: &calve::Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.message().contains("out of the range of partition transform")
}

fn values_sql(columns: &[Column], rows: &[Row]) -> String {
    let row = |row: &Row| {
        let values: Vec<_> = columns.iter().zip(row).map(|(column, value)| value.sql(&column.kind)).collect();
        format!("({})", values.join(", "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}
