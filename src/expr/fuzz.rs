//! Random rows, the metadata writers would leave of them, and random predicates, against brute force over the rows.
//!
//! The model of writers is kept apart from the code under test: bounds, rounding and hashing into partitions follow Java,
//! faults of old and careless writers included (values before 1970 rounded towards zero, wrapped truncation, NaN bounds,
//! inverted bounds, counts left out, uuids in signed order).

mod values;

use std::collections::HashMap;

use fastrand::Rng;
use uuid::Uuid;

use self::values::{TYPES, cut_down, cut_up, near, random_value};
use super::tests::{file, manifest, schema, table};
use super::*;
use crate::spec::{
    DataFile, FieldSummary, Literal, NestedField, PrimitiveType as T, StructType, TableMetadata, Transform,
};

/// A column: the type files were written with, and today's.
struct Column {
    id: i32,
    nested: bool,
    then: T,
    now: T,
}

/// Values of one row by column, as they were written.
type Row = Vec<Option<Literal>>;

struct Case {
    columns: Vec<Column>,
    metadata: TableMetadata,
    spec: Vec<(i32, Transform)>,
}

/// Java's truncation, wrapping around where it leaves the type's range.
fn partition_value(transform: &Transform, value: &Literal, towards_zero: bool) -> Option<Literal> {
    let exact = match (transform, value) {
        (Transform::Truncate(w), Literal::Int(v)) => {
            let w = *w as i32;
            Some(Literal::Int(v.wrapping_sub(((v % w) + w) % w)))
        }
        (Transform::Truncate(w), Literal::Long(v)) => {
            let w = i64::from(*w);
            Some(Literal::Long(v.wrapping_sub(((v % w) + w) % w)))
        }
        (Transform::Unknown(_), _) => Some(Literal::String("?".into())),
        _ => transform.apply(value).ok()?,
    };
    // Up to Iceberg 0.10: a value before 1970 which is not the first of its unit lands in the next unit.
    let rounded = towards_zero && !matches!((transform, value), (Transform::Day, Literal::Date(_)));
    match (transform, exact) {
        (Transform::Year | Transform::Month | Transform::Day | Transform::Hour, Some(Literal::Int(p)))
            if rounded && p < 0 =>
        {
            Some(Literal::Int(if is_first_of_unit(transform, value) { p } else { p + 1 }))
        }
        (Transform::Day, Some(Literal::Date(p))) if rounded && p < 0 => {
            Some(Literal::Date(if is_first_of_unit(transform, value) { p } else { p + 1 }))
        }
        (_, exact) => exact,
    }
}

fn is_first_of_unit(transform: &Transform, value: &Literal) -> bool {
    let before = match value {
        Literal::Date(v) => Literal::Date(v - 1),
        Literal::Timestamp(v) => Literal::Timestamp(v - 1),
        Literal::Timestamptz(v) => Literal::Timestamptz(v - 1),
        Literal::TimestampNs(v) => Literal::TimestampNs(v - 1),
        Literal::TimestamptzNs(v) => Literal::TimestamptzNs(v - 1),
        _ => return true,
    };
    transform.apply(&before).ok() != transform.apply(value).ok()
}

fn random_transform(rng: &mut Rng, ty: &T) -> Transform {
    let candidates = [
        Transform::Identity,
        Transform::Identity,
        Transform::Bucket(rng.u32(1..6)),
        Transform::Truncate(*rng.choice(&[1, 2, 3, 7, 10, 100]).unwrap_or(&1)),
        Transform::Year,
        Transform::Month,
        Transform::Day,
        Transform::Hour,
        Transform::Void,
        Transform::Unknown("zorder[3]".into()),
    ];
    loop {
        let transform = candidates[rng.usize(..candidates.len())].clone();
        if matches!(transform, Transform::Unknown(_)) || transform.result_type(ty).is_some() {
            return transform;
        }
    }
}

impl Case {
    fn random(rng: &mut Rng) -> Self {
        let columns: Vec<Column> = (0..rng.i32(1..4))
            .map(|i| {
                let then = TYPES[rng.usize(..TYPES.len())].clone();
                let now = match &then {
                    T::Int if rng.bool() => T::Long,
                    T::Float if rng.bool() => T::Double,
                    T::Decimal { scale, .. } if rng.bool() => T::Decimal { precision: 38, scale: *scale },
                    T::Date if rng.u8(..4) == 0 => T::Timestamp,
                    same => same.clone(),
                };
                Column { id: i + 1, nested: rng.u8(..6) == 0, then, now }
            })
            .collect();
        let spec: Vec<(i32, Transform)> = (0..rng.usize(..4))
            .filter_map(|_| {
                let column = rng.choice(&columns)?;
                let transform = random_transform(rng, &column.then);
                // The spec allows no promotion that changes partition values in a way other than our table's.
                (column.now != T::Timestamp || column.then == T::Timestamp || transform != Transform::Hour)
                    .then_some((column.id, transform))
            })
            .collect();
        let fields = |old: bool| {
            let mut fields = Vec::new();
            for c in &columns {
                let ty = if old { &c.then } else { &c.now };
                let field = NestedField::new(c.id, format!("c{}", c.id), false, ty.clone());
                fields.push(if c.nested {
                    let inner = StructType { fields: vec![std::sync::Arc::new(field)] };
                    NestedField::new(50 + c.id, format!("s{}", c.id), false, inner)
                } else {
                    field
                });
            }
            fields
        };
        let mut metadata = table(fields(false), &[&spec]);
        metadata.schemas.push(schema(1, fields(true)));
        Self { columns, metadata, spec }
    }

    fn tuple(&self, row: &Row, towards_zero: bool) -> Vec<Option<Literal>> {
        self.spec
            .iter()
            .map(|(source, transform)| {
                let value = row[*source as usize - 1].as_ref()?;
                partition_value(transform, value, towards_zero)
            })
            .collect()
    }

    /// Rows of one partition, and the file's entry.
    fn random_file(&self, rng: &mut Rng) -> (Vec<Row>, DataFile) {
        let towards_zero = rng.u8(..5) == 0;
        let shape: Vec<u8> = self.columns.iter().map(|_| rng.u8(..8)).collect();
        let draw = |rng: &mut Rng, c: usize, first: Option<&Row>| -> Option<Literal> {
            if shape[c] == 0 || (shape[c] < 3 && rng.u8(..3) == 0) {
                return None;
            }
            match first.and_then(|row| row[c].as_ref()) {
                Some(v) if shape[c] == 3 || rng.u8(..4) == 0 => Some(v.clone()),
                Some(v) if rng.u8(..4) > 0 => Some(near(rng, v)),
                _ => Some(random_value(rng, &self.columns[c].then)),
            }
        };
        let first: Row = (0..self.columns.len()).map(|c| draw(rng, c, None)).collect();
        let tuple = self.tuple(&first, towards_zero);
        let mut rows = vec![first.clone()];
        for _ in 0..rng.usize(..6) {
            let mut row: Row = (0..self.columns.len()).map(|c| draw(rng, c, Some(&first))).collect();
            for (c, column) in self.columns.iter().enumerate() {
                let fits = |row: &Row| {
                    let here = self.tuple(row, towards_zero);
                    self.spec.iter().zip(here.iter().zip(&tuple)).all(|((id, _), (a, b))| *id != column.id || a == b)
                };
                let mut tries = 0;
                while !fits(&row) {
                    row[c] = if tries < 4 { draw(rng, c, Some(&first)) } else { first[c].clone() };
                    tries += 1;
                }
            }
            rows.push(row);
        }
        let mut entry = file(0, tuple, rows.len() as u64);
        for (c, column) in self.columns.iter().enumerate() {
            let values: Vec<Option<&Literal>> = rows.iter().map(|row| row[c].as_ref()).collect();
            measure(rng, column, &values, &mut entry);
        }
        (rows, entry)
    }

    fn value(&self, row: &Row, id: i32) -> Option<Literal> {
        let c = usize::try_from(id - 1).ok()?;
        row.get(c)?.clone()?.promote_to(&self.columns[c].now)
    }

    fn random_literal(&self, rng: &mut Rng, c: usize, rows: &[Row]) -> Literal {
        let column = &self.columns[c];
        loop {
            let value = match rng.choice(rows).and_then(|row| row[c].as_ref()) {
                Some(v) if rng.u8(..3) == 0 => v.clone(),
                Some(v) if rng.bool() => near(rng, v),
                _ => random_value(rng, &column.then),
            };
            let value = value.promote_to(&column.now);
            if let Some(value) = value {
                // Between two values of the older type, too.
                return if rng.u8(..4) == 0 { near(rng, &value) } else { value };
            }
        }
    }

    fn random_leaf(&self, rng: &mut Rng, rows: &[Row]) -> Predicate {
        let c = rng.usize(..self.columns.len());
        let one = |rng: &mut Rng| self.random_literal(rng, c, rows);
        let list = |rng: &mut Rng| (0..rng.usize(..6)).map(|_| one(rng)).collect::<Vec<_>>();
        let prefix = |rng: &mut Rng| match one(rng) {
            Literal::String(v) => v.chars().take(rng.usize(..5)).collect(),
            _ => String::new(),
        };
        let text = self.columns[c].now == T::String;
        let op = match rng.u8(..14) {
            0 => LeafOp::IsNull,
            1 => LeafOp::NotNull,
            2 => LeafOp::IsNan,
            3 => LeafOp::NotNan,
            4 => LeafOp::Lt(one(rng)),
            5 => LeafOp::LtEq(one(rng)),
            6 => LeafOp::Gt(one(rng)),
            7 => LeafOp::GtEq(one(rng)),
            8 => LeafOp::Eq(one(rng)),
            9 => LeafOp::NotEq(one(rng)),
            10 => LeafOp::In(list(rng)),
            11 => LeafOp::NotIn(list(rng)),
            12 if text => LeafOp::StartsWith(prefix(rng)),
            13 if text => LeafOp::NotStartsWith(prefix(rng)),
            _ => LeafOp::NotEq(one(rng)),
        };
        Predicate::leaf(self.columns[c].id, op)
    }

    fn random_predicate(&self, rng: &mut Rng, rows: &[Row], depth: u8) -> Predicate {
        match rng.u8(..10) {
            0 if depth > 0 => Predicate::Unknown,
            1..=2 if depth < 3 => {
                Predicate::And((0..rng.u8(1..4)).map(|_| self.random_predicate(rng, rows, depth + 1)).collect())
            }
            3..=4 if depth < 3 => {
                Predicate::Or((0..rng.u8(1..4)).map(|_| self.random_predicate(rng, rows, depth + 1)).collect())
            }
            _ => self.random_leaf(rng, rows),
        }
    }
}

/// The metrics of one column, as some writer leaves them.
fn measure(rng: &mut Rng, column: &Column, values: &[Option<&Literal>], entry: &mut DataFile) {
    if rng.u8(..8) == 0 {
        return;
    }
    let id = column.id;
    let known = |rng: &mut Rng| rng.u8(..8) > 0;
    let nulls = values.iter().filter(|v| v.is_none()).count() as u64;
    let nans = values.iter().flatten().filter(|v| v.is_nan()).count() as u64;
    if known(rng) {
        // Of nested columns some writers count otherwise.
        entry.value_counts.insert(id, if column.nested { rng.u64(..9) } else { values.len() as u64 });
    }
    if known(rng) {
        entry.null_value_counts.insert(id, if column.nested { rng.u64(..4) } else { nulls });
    }
    let float = matches!(column.then, T::Float | T::Double);
    if float && known(rng) {
        entry.nan_value_counts.insert(id, if column.nested { rng.u64(..4) } else { nans });
    }
    let ordinary = || values.iter().flatten().copied().filter(|v| !v.is_nan());
    let order = |a: &&Literal, b: &&Literal| a.compare(b).unwrap();
    let (Some(lower), Some(upper)) = (ordinary().min_by(order), ordinary().max_by(order)) else { return };
    let width = *rng.choice(&[1usize, 3, 16, 16, 16, 1000]).unwrap_or(&16);
    let mut lower = Some(cut_down(lower, width));
    let mut upper = cut_up(upper, width);
    for bound in [&mut lower, &mut upper].into_iter().flatten() {
        match bound {
            Literal::Float(v) if *v == 0.0 && rng.bool() => *v = -*v,
            Literal::Double(v) if *v == 0.0 && rng.bool() => *v = -*v,
            Literal::Float(v) if nans > 0 && rng.u8(..4) == 0 => *v = f32::NAN,
            Literal::Double(v) if nans > 0 && rng.u8(..4) == 0 => *v = f64::NAN,
            _ => {}
        }
    }
    let differ =
        lower.as_ref().zip(upper.as_ref()).is_some_and(|(l, u)| l.compare(u) != Some(std::cmp::Ordering::Equal));
    // Inverted bounds can be told only where there are two.
    let inverted = differ && rng.u8(..20) == 0;
    if inverted {
        std::mem::swap(&mut lower, &mut upper);
    }
    let known = |rng: &mut Rng| inverted || known(rng);
    lower.filter(|_| known(rng)).into_iter().for_each(|v| entry.lower_bounds.insert(id, v.to_bytes().into()));
    upper.filter(|_| known(rng)).into_iter().for_each(|v| entry.upper_bounds.insert(id, v.to_bytes().into()));
}

/// Partition summaries of these files, uuids in Java's signed order.
fn summaries(rng: &mut Rng, files: &[(Vec<Row>, DataFile)], fields: usize) -> Vec<FieldSummary> {
    let signed = |v: &Uuid| (v.as_u64_pair().0.cast_signed(), v.as_u64_pair().1.cast_signed());
    let order = |a: &&Literal, b: &&Literal| match (a, b) {
        (Literal::Uuid(a), Literal::Uuid(b)) => signed(a).cmp(&signed(b)),
        _ => a.compare(b).unwrap(),
    };
    (0..fields)
        .map(|i| {
            let values: Vec<Option<&Literal>> = files.iter().map(|(_, file)| file.partition.0[i].as_ref()).collect();
            let ordinary = || values.iter().flatten().copied().filter(|v| !v.is_nan());
            let nan = values.iter().flatten().any(|v| v.is_nan());
            FieldSummary {
                contains_null: values.iter().any(Option::is_none),
                contains_nan: rng.bool().then_some(nan),
                lower_bound: ordinary().min_by(order).map(|v| v.to_bytes().into()),
                upper_bound: ordinary().max_by(order).map(|v| v.to_bytes().into()),
            }
        })
        .collect()
}

/// The predicate with every [`Predicate::Unknown`] replaced.
fn resolved(predicate: &Predicate, with: &Predicate) -> Predicate {
    match predicate {
        Predicate::Unknown => with.clone(),
        Predicate::And(parts) => Predicate::And(parts.iter().map(|p| resolved(p, with)).collect()),
        Predicate::Or(parts) => Predicate::Or(parts.iter().map(|p| resolved(p, with)).collect()),
        other => other.clone(),
    }
}

/// How often each answer was given, and how often it could have been.
#[derive(Default, Debug)]
struct Tally {
    asked: u32,
    all: u32,
    none: u32,
    all_true: u32,
    none_true: u32,
}

impl Tally {
    fn add(&mut self, coverage: Coverage, matches: &[Option<bool>]) {
        self.asked += 1;
        self.all += u32::from(coverage == Coverage::All);
        self.none += u32::from(coverage == Coverage::None);
        self.all_true += u32::from(matches.iter().all(|m| *m == Some(true)));
        self.none_true += u32::from(!matches.contains(&Some(true)));
    }
}

/// Fails when the answer is not borne out by the rows, whatever the unknown parts are.
fn check(
    case: &Case,
    predicate: &Predicate,
    rows: &[&Row],
    coverage: Coverage,
    what: &str,
    seed: u64,
) -> Vec<Option<bool>> {
    let mut matches = Vec::new();
    for with in [Predicate::AlwaysTrue, Predicate::AlwaysFalse] {
        let predicate = resolved(predicate, &with);
        matches = rows.iter().map(|row| predicate.matches_row(&|id| case.value(row, id))).collect();
        let held = match coverage {
            Coverage::All => matches.iter().all(|m| *m == Some(true)),
            Coverage::None => !matches.contains(&Some(true)),
            Coverage::Some => true,
        };
        assert!(
            held,
            "seed {seed}: {what} answered {coverage:?} for {predicate}\nspec {:?}\nrows {rows:#?}",
            case.spec
        );
    }
    matches
}

#[test]
fn answers_hold_for_every_row() {
    let first: u64 = 1;
    let cases = std::env::var("CALVE_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(4000);
    let (mut files, mut partitions, mut manifests) = (Tally::default(), Tally::default(), Tally::default());
    let mut by_transform: HashMap<String, Tally> = HashMap::new();
    let mut by_op: HashMap<String, Tally> = HashMap::new();
    for seed in first..first + cases {
        let rng = &mut Rng::with_seed(seed);
        let case = Case::random(rng);
        let written: Vec<(Vec<Row>, DataFile)> = (0..rng.usize(1..4)).map(|_| case.random_file(rng)).collect();
        let listed = manifest(0, summaries(rng, &written, case.spec.len()));
        for _ in 0..8 {
            let rows_seen = &written[rng.usize(..written.len())].0;
            let predicate = case.random_predicate(rng, rows_seen, 0);
            let evaluator = FileEvaluator::new(&predicate, &case.metadata);
            for (rows, entry) in &written {
                let rows: Vec<&Row> = rows.iter().collect();
                let coverage = evaluator.evaluate(entry);
                let matches = check(&case, &predicate, &rows, coverage, "file", seed);
                files.add(coverage, &matches);
                let by_partition = evaluator.evaluate_partition(&entry.partition_key());
                check(&case, &predicate, &rows, by_partition, "partition", seed);
                partitions.add(by_partition, &matches);
                if let Predicate::Leaf { field_id, op } = &predicate {
                    let name = format!("{op:?}").chars().take_while(char::is_ascii_alphabetic).collect();
                    by_op.entry(name).or_default().add(coverage, &matches);
                    for (source, transform) in &case.spec {
                        if source == field_id && case.spec.iter().filter(|(id, _)| id == source).count() == 1 {
                            let name = transform.to_string().chars().take_while(char::is_ascii_alphabetic).collect();
                            by_transform.entry(name).or_default().add(by_partition, &matches);
                        }
                    }
                }
            }
            let coverage = evaluator.evaluate_manifest(&listed);
            let all_rows: Vec<&Row> = written.iter().flat_map(|(rows, _)| rows).collect();
            let matches = check(&case, &predicate, &all_rows, coverage, "manifest", seed);
            manifests.add(coverage, &matches);
        }
    }
    // An evaluator that answers Some to everything would pass so far.
    for (what, tally, all, none) in
        [("files", &files, 60, 60), ("partitions", &partitions, 30, 35), ("manifests", &manifests, 25, 25)]
    {
        assert!(tally.all * 100 > tally.all_true * all, "{what}: {tally:?}");
        assert!(tally.none * 100 > tally.none_true * none, "{what}: {tally:?}");
    }
    for (name, tally) in by_op {
        assert!(tally.all > 0 && tally.none > 0, "{name}: {tally:?}");
    }
    for (name, tally) in by_transform {
        let says_nothing = matches!(name.as_str(), "void" | "zorder");
        assert_eq!(says_nothing, tally.all == 0, "{name}: {tally:?}");
        assert!(says_nothing || tally.none > 0, "{name}: {tally:?}");
    }
}
