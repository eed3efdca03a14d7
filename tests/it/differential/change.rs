//! UPDATE and MERGE, and what they make of the model's rows.

use std::collections::{BTreeMap, BTreeSet};

use super::predicate::{Condition, Row, World};
use super::random::{Column, Conditions};
use super::script::Script;
use super::value::Value;

/// One WHEN clause.
struct Clause {
    kind: Kind,
    /// On the target's row; never for a row that is new.
    condition: Option<Condition>,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Matched,
    NotMatched,
    BySource,
}

enum Action {
    /// Columns of the target, by index, and what is put into them.
    Update(Vec<(usize, Assigned)>),
    Delete,
    /// The source's row.
    Insert,
}

enum Assigned {
    Literal(Value),
    /// Of the old row.
    Column(usize),
    /// Of the source's row.
    Source(usize),
}

impl Script {
    /// Columns other than `id` to assign, each once, and what to.
    fn assignments(&mut self, from_source: bool) -> Vec<(usize, Assigned)> {
        let columns = self.definition.columns.clone();
        let mut chosen = Vec::new();
        for (index, column) in columns.iter().enumerate().skip(1) {
            if self.rng.u8(..3) != 0 {
                continue;
            }
            let like = |other: &Column| other.kind == column.kind && other.null_percent() <= column.null_percent();
            let alike: Vec<usize> = (1..columns.len()).filter(|i| like(&columns[*i])).collect();
            let assigned = match self.rng.u8(..3) {
                0 => Assigned::Literal(column.value(&mut self.rng)),
                1 if from_source => Assigned::Source(index),
                _ => Assigned::Column(alike[self.rng.usize(..alike.len())]),
            };
            chosen.push((index, assigned));
        }
        self.rng.shuffle(&mut chosen);
        chosen
    }

    fn set_sql(&self, assignments: &[(usize, Assigned)]) -> String {
        let columns = &self.definition.columns;
        let set = assignments.iter().map(|(index, assigned)| {
            let value = match assigned {
                Assigned::Literal(value) => value.sql(&columns[*index].kind),
                Assigned::Column(other) => format!("t.{}", columns[*other].name),
                Assigned::Source(other) => format!("u.u{other}"),
            };
            format!("{} = {value}", columns[*index].name)
        });
        set.collect::<Vec<_>>().join(", ")
    }

    pub(super) async fn update(&mut self) {
        let assignments = self.assignments(false);
        if assignments.is_empty() {
            return;
        }
        let condition = self.condition();
        let sql = format!("UPDATE t SET {} WHERE {}", self.set_sql(&assignments), condition.sql());
        let matches = self.matches(&condition);
        let rows = self.rows.iter().zip(&matches).map(|(row, matches)| match matches {
            true => changed(row, None, &assignments),
            false => row.clone(),
        });
        let rows = rows.collect();
        let ids = self.rows.iter().zip(&matches).filter(|(_, matches)| **matches).map(|(row, _)| id(row));
        let ids: BTreeSet<i64> = ids.collect();
        let count = ids.len();
        self.change(&sql, rows, ids, count).await;
    }

    /// Runs a statement that makes `rows` of the table, updating those of `updated`, and counts `count`.
    async fn change(&mut self, sql: &str, rows: Vec<Row>, updated: BTreeSet<i64>, count: usize) {
        let before = self.lake.table("t").await.metadata.snapshots.len();
        if let Some(counted) = self.count(sql).await {
            let snapshots = self.lake.table("t").await.metadata.snapshots.len() - before;
            assert_eq!(counted, count as u64, "rows changed");
            assert_eq!(snapshots, usize::from(count > 0), "snapshots made");
            self.rows = rows;
            self.updated = updated;
            self.outcome.changed_rows += count as u64;
        }
    }

    pub(super) async fn merge(&mut self) {
        let source = self.source_rows();
        let clauses = self.clauses();
        // With a further condition on the target, a new row could get the id of one that is there.
        let inserts = clauses.iter().any(|clause| clause.kind == Kind::NotMatched);
        let extra = if !inserts && self.rng.u8(..3) == 0 { Some(self.plain_condition()) } else { None };
        let sql = self.merge_sql(&source, &clauses, extra.as_ref());

        let holds = |condition: Option<&Condition>, row: &Row| {
            let world = World { target: &self.rows, other: &self.other_rows };
            condition.is_none_or(|condition| condition.eval(world, &[row]) == Some(true))
        };
        let acting =
            |kind: Kind, row: &Row| clauses.iter().find(|c| c.kind == kind && holds(c.condition.as_ref(), row));
        let matched: Vec<&Clause> = clauses.iter().filter(|c| c.kind == Kind::Matched).collect();
        let lone_delete = matches!(matched.as_slice(), [Clause { condition: None, action: Action::Delete, .. }])
            || matched.is_empty();
        let mut used = vec![false; source.len()];
        let (mut rows, mut updated, mut count, mut ambiguous) = (Vec::new(), BTreeSet::new(), 0, false);
        for row in &self.rows {
            let partners = source.iter().enumerate().filter(|(_, s)| s[0].compare(&row[0]).is_some_and(|o| o.is_eq()));
            let partners: Vec<usize> = partners.filter(|_| holds(extra.as_ref(), row)).map(|(i, _)| i).collect();
            partners.iter().for_each(|i| used[*i] = true);
            ambiguous |= partners.len() > 1 && !lone_delete;
            let clause = if partners.is_empty() { acting(Kind::BySource, row) } else { acting(Kind::Matched, row) };
            match clause.map(|clause| &clause.action) {
                None => rows.push(row.clone()),
                Some(Action::Update(assignments)) => {
                    rows.push(changed(row, partners.first().map(|i| &source[*i]), assignments));
                    updated.insert(id(row));
                    count += 1;
                }
                Some(_) => count += 1,
            }
        }
        if clauses.iter().any(|c| c.kind == Kind::NotMatched) {
            let new = source.iter().zip(&used).filter(|(_, used)| !**used).map(|(row, _)| row.clone());
            let before = rows.len();
            rows.extend(new);
            count += rows.len() - before;
        }
        if ambiguous {
            self.note(sql.clone());
            let error = self.lake.sql(&sql).await.expect_err("two matches of a row are an error");
            assert!(error.message().contains("more than one row"), "{error}");
            return;
        }
        self.change(&sql, rows, updated, count).await;
    }

    /// Rows with ids of the table, new ones, and perhaps one twice.
    fn source_rows(&mut self) -> Vec<Row> {
        let count = [1, 3, 10][self.rng.usize(..3)];
        let mut rows = self.definition.rows(&mut self.rng, self.next_id, count);
        self.next_id += count as i64;
        for row in &mut rows {
            if !self.rows.is_empty() && self.rng.u8(..3) != 0 {
                row[0] = self.rows[self.rng.usize(..self.rows.len())][0].clone();
            }
        }
        if self.rng.u8(..3) != 0 {
            let mut seen = BTreeMap::new();
            rows.retain(|row| seen.insert(id(row), ()).is_none());
        }
        rows
    }

    fn plain_condition(&mut self) -> Condition {
        let (target, other) = (&self.definition.columns, &self.other);
        Conditions { rng: &mut self.rng, target, other, subqueries: false }.random()
    }

    fn clauses(&mut self) -> Vec<Clause> {
        let mut clauses = Vec::new();
        for kind in [Kind::Matched, Kind::NotMatched, Kind::BySource] {
            let count = [0, 1, 1, 2][self.rng.usize(..4)];
            for nth in 0..count {
                if kind == Kind::NotMatched {
                    clauses.push(Clause { kind, condition: None, action: Action::Insert });
                    break;
                }
                let last = nth + 1 == count && self.rng.bool();
                let condition = if last { None } else { Some(self.plain_condition()) };
                let assignments = self.assignments(kind == Kind::Matched);
                let delete = assignments.is_empty() || self.rng.u8(..3) == 0;
                let action = if delete { Action::Delete } else { Action::Update(assignments) };
                clauses.push(Clause { kind, condition, action });
            }
        }
        if clauses.is_empty() {
            clauses.push(Clause { kind: Kind::NotMatched, condition: None, action: Action::Insert });
        }
        clauses
    }

    fn merge_sql(&self, source: &[Row], clauses: &[Clause], extra: Option<&Condition>) -> String {
        let columns = &self.definition.columns;
        let names: Vec<String> = (0..columns.len()).map(|i| format!("u{i}")).collect();
        let rows = source.iter().map(|row| {
            let values: Vec<String> = columns.iter().zip(row).map(|(c, value)| value.sql(&c.kind)).collect();
            format!("({})", values.join(", "))
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        let extra = extra.map(|condition| format!(" AND ({})", condition.sql())).unwrap_or_default();
        let mut sql = format!("MERGE INTO t USING (VALUES {rows}) AS u ({}) ON t.id = u.u0{extra}", names.join(", "));
        for clause in clauses {
            let kind = match clause.kind {
                Kind::Matched => "MATCHED",
                Kind::NotMatched => "NOT MATCHED",
                Kind::BySource => "NOT MATCHED BY SOURCE",
            };
            let condition = clause.condition.as_ref().map(|c| format!(" AND ({})", c.sql())).unwrap_or_default();
            let action = match &clause.action {
                Action::Update(assignments) => format!("UPDATE SET {}", self.set_sql(assignments)),
                Action::Delete => "DELETE".to_string(),
                Action::Insert => {
                    let into: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                    let from: Vec<String> = names.iter().map(|name| format!("u.{name}")).collect();
                    format!("INSERT ({}) VALUES ({})", into.join(", "), from.join(", "))
                }
            };
            sql += &format!(" WHEN {kind}{condition} THEN {action}");
        }
        sql
    }
}

fn id(row: &Row) -> i64 {
    let Value::Int(id) = row[0] else { panic!("a row without id") };
    id
}

fn changed(row: &Row, source: Option<&Row>, assignments: &[(usize, Assigned)]) -> Row {
    let mut new = row.clone();
    for (index, assigned) in assignments {
        new[*index] = match assigned {
            Assigned::Literal(value) => value.clone(),
            Assigned::Column(other) => row[*other].clone(),
            Assigned::Source(other) => source.expect("a matched row")[*other].clone(),
        };
    }
    new
}
