//! Random conditions in three-valued logic over small tables with nulls, against an evaluator of the test's own.

use calve::spec::PrimitiveType::{self, Boolean, Int, Long};

use super::{DOORS, Door, Spec, World};

/// A truth value; `None` is unknown.
type Truth = Option<bool>;

#[derive(Debug, Clone)]
struct Row {
    j: Option<i64>,
    k: Option<i64>,
    b: Truth,
}

#[derive(Debug, Clone)]
enum Cond {
    Compare(&'static str, Op, i64),
    Columns(Op),
    List(&'static str, Vec<Option<i64>>, bool),
    Between(&'static str, i64, i64, bool),
    Column,
    IsNull(Box<Cond>, bool),
    Is(Box<Cond>, bool, bool),
    ColumnIsNull(&'static str, bool),
    Not(Box<Cond>),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Case(Box<Cond>, Box<Cond>, Box<Cond>),
    /// `x IN (SELECT v FROM s WHERE …)` with an operand of [`OPERANDS`], the number of the filter on `g`, and whether it is
    /// correlated by `s.g < t.id`.
    In(&'static str, Option<i64>, bool, bool),
    Exists(bool, i64),
    Distinct(&'static str, i64, bool),
    Xor(&'static str, i64),
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Eq,
    NotEq,
    Lt,
    GtEq,
}

struct Data {
    rows: Vec<Row>,
    /// `s(v, g)`.
    s: Vec<(Option<i64>, i64)>,
}

fn value(rng: &mut fastrand::Rng) -> Option<i64> {
    (rng.u8(..5) > 0).then(|| rng.i64(0..5))
}

/// What may stand before IN (SELECT …): columns, constants, and values of the whole statement.
const OPERANDS: [&str; 7] = ["j", "k", "j", "k", "CAST(NULL AS BIGINT)", "3", "(SELECT min(s.v) FROM s)"];

fn column_name(rng: &mut fastrand::Rng) -> &'static str {
    if rng.bool() { "j" } else { "k" }
}

impl Cond {
    fn random(rng: &mut fastrand::Rng, depth: u32) -> Self {
        let deeper = |rng: &mut fastrand::Rng| Box::new(Self::random(rng, depth - 1));
        if depth > 0 && rng.u8(..10) < 7 {
            return match rng.u8(..8) {
                0 | 1 => Self::And(deeper(rng), deeper(rng)),
                2 | 3 => Self::Or(deeper(rng), deeper(rng)),
                4 => Self::Not(deeper(rng)),
                5 => Self::IsNull(deeper(rng), rng.bool()),
                6 => Self::Is(deeper(rng), rng.bool(), rng.bool()),
                _ => Self::Case(deeper(rng), deeper(rng), deeper(rng)),
            };
        }
        let op = |rng: &mut fastrand::Rng| *rng.choice(&[Op::Eq, Op::NotEq, Op::Lt, Op::GtEq][..]).unwrap_or(&Op::Eq);
        let column = column_name(rng);
        match rng.u8(..14) {
            0 | 1 => Self::Compare(column, op(rng), rng.i64(0..5)),
            2 => Self::Columns(op(rng)),
            3..=6 => Self::List(column, (0..rng.usize(1..6)).map(|_| value(rng)).collect(), rng.bool()),
            7 => Self::Between(column, rng.i64(0..5), rng.i64(0..5), rng.bool()),
            8 => Self::Column,
            9 => Self::ColumnIsNull(column, rng.bool()),
            10 => {
                Self::In(rng.choice(OPERANDS).unwrap_or("j"), rng.bool().then(|| rng.i64(0..8)), rng.bool(), rng.bool())
            }
            11 => Self::Exists(rng.bool(), rng.i64(0..8)),
            12 => Self::Distinct(column, rng.i64(0..5), rng.bool()),
            _ => Self::Xor(column, rng.i64(0..3)),
        }
    }

    fn sql(&self) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Self::Compare(column, op, v) => format!("{column} {} {v}", op.sql()),
            Self::Columns(op) => format!("j {} k", op.sql()),
            Self::List(column, list, negated) => {
                let list: Vec<String> = list.iter().map(|v| v.map_or("NULL".to_owned(), |v| v.to_string())).collect();
                format!("{column} {}IN ({})", not(negated), list.join(", "))
            }
            Self::Between(column, low, high, negated) => format!("{column} {}BETWEEN {low} AND {high}", not(negated)),
            Self::Column => "b".to_owned(),
            Self::IsNull(inner, negated) => format!("({}) IS {}NULL", inner.sql(), not(negated)),
            Self::Is(inner, truth, negated) => format!("({}) IS {}{truth}", inner.sql(), not(negated)),
            Self::ColumnIsNull(column, negated) => format!("{column} IS {}NULL", not(negated)),
            Self::Not(inner) => format!("NOT ({})", inner.sql()),
            Self::And(a, b) => format!("({}) AND ({})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({}) OR ({})", a.sql(), b.sql()),
            Self::Case(a, b, c) => format!("CASE WHEN {} THEN {} ELSE {} END", a.sql(), b.sql(), c.sql()),
            Self::In(column, bound, correlated, negated) => {
                let mut conditions = Vec::new();
                conditions.extend(bound.map(|g| format!("s.g < {g}")));
                conditions.extend(correlated.then(|| "s.g < t.id".to_owned()));
                let filter = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
                format!("{column} {}IN (SELECT s.v FROM s WHERE {filter})", not(negated))
            }
            Self::Exists(negated, g) => {
                format!("{}EXISTS (SELECT 1 FROM s WHERE s.v = t.j AND s.g < {g})", not(negated))
            }
            Self::Distinct(column, v, negated) => format!("({column} IS {}DISTINCT FROM {v})", not(negated)),
            Self::Xor(column, v) => format!("{column} ^ ({column} ^ {v}) = {v}"),
        }
    }

    fn truth(&self, id: i64, row: &Row, data: &Data) -> Truth {
        let column = |name: &str| if name == "j" { row.j } else { row.k };
        let of = |c: &Self| c.truth(id, row, data);
        let flip = |truth: Truth, negated: bool| truth.map(|t| t != negated);
        let member = |x: Option<i64>, list: &[Option<i64>]| -> Truth {
            let equal: Vec<Truth> = list.iter().map(|v| Some(x? == (*v)?)).collect();
            if equal.contains(&Some(true)) {
                Some(true)
            } else if equal.contains(&None) {
                None
            } else {
                Some(false)
            }
        };
        match self {
            Self::Compare(name, op, v) => op.compare(column(name), Some(*v)),
            Self::Columns(op) => op.compare(row.j, row.k),
            Self::List(name, list, negated) => flip(member(column(name), list), *negated),
            Self::Between(name, low, high, negated) => {
                let x = column(name);
                let (a, b) = (x.map(|x| x >= *low), x.map(|x| x <= *high));
                flip(and(a, b), *negated)
            }
            Self::Column => row.b,
            Self::IsNull(inner, negated) => Some(of(inner).is_none() != *negated),
            Self::Is(inner, truth, negated) => Some((of(inner) == Some(*truth)) != *negated),
            Self::ColumnIsNull(name, negated) => Some(column(name).is_none() != *negated),
            Self::Not(inner) => of(inner).map(|t| !t),
            Self::And(a, b) => and(of(a), of(b)),
            Self::Or(a, b) => and(of(a).map(|t| !t), of(b).map(|t| !t)).map(|t| !t),
            Self::Case(a, b, c) => {
                if of(a) == Some(true) {
                    of(b)
                } else {
                    of(c)
                }
            }
            Self::In(name, bound, correlated, negated) => {
                let rows = data.s.iter().filter(|(_, g)| bound.is_none_or(|b| *g < b) && (!correlated || *g < id));
                let list: Vec<_> = rows.map(|(v, _)| *v).collect();
                let operand = match *name {
                    "3" => Some(3),
                    name if name.starts_with("CAST") => None,
                    name if name.starts_with('(') => data.s.iter().filter_map(|(v, _)| *v).min(),
                    name => column(name),
                };
                flip(member(operand, &list), *negated)
            }
            Self::Exists(negated, bound) => {
                let found = data.s.iter().any(|(v, g)| v.is_some() && *v == row.j && g < bound);
                Some(found != *negated)
            }
            Self::Distinct(name, v, negated) => Some((column(name) != Some(*v)) != *negated),
            Self::Xor(name, _) => column(name).map(|_| true),
        }
    }
}

impl Op {
    fn sql(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::GtEq => ">=",
        }
    }

    fn compare(self, a: Option<i64>, b: Option<i64>) -> Truth {
        let (a, b) = (a?, b?);
        Some(match self {
            Self::Eq => a == b,
            Self::NotEq => a != b,
            Self::Lt => a < b,
            Self::GtEq => a >= b,
        })
    }
}

fn and(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or("NULL".to_owned(), |v| v.to_string())
}

async fn world(door: Door, data: &Data) -> World {
    let rows: Vec<String> = (1..)
        .zip(&data.rows)
        .map(|(id, row)| format!("({id}, {}, {}, {})", text(row.j), text(row.k), text(row.b)))
        .collect();
    let s: Vec<String> = data.s.iter().map(|(v, g)| format!("({}, {g})", text(*v))).collect();
    let (rows, s) = (rows.join(", "), s.join(", "));
    let columns: &[(&str, PrimitiveType)] = &[("id", Long), ("j", Int), ("k", Long), ("b", Boolean)];
    let tables: [Spec<'_>; 2] = [("t", columns, &rows), ("s", &[("v", Int), ("g", Long)], &s)];
    World::new(door, &tables).await
}

/// Errors are no wrong answers, but there must be few of them.
fn fails_closed(sql: &str, error: &calve::Error) -> bool {
    let known = error.to_string();
    assert!(!known.contains("panic"), "{sql}: {known}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_have_three_values() {
    let seed = std::env::var("CALVE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_201);
    let conditions: usize = std::env::var("CALVE_CONDITIONS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut errors = Vec::new();
    for round in 0..3 {
        let rows = (0..12)
            .map(|_| Row { j: value(&mut rng), k: value(&mut rng), b: (rng.u8(..3) > 0).then(|| rng.bool()) })
            .collect();
        let s = (0..rng.i64(if round == 0 { 0..1 } else { 1..5 })).map(|g| (value(&mut rng), g)).collect();
        let data = Data { rows, s };
        let door = DOORS[round % 2];
        let selecting = world(door, &data).await;
        for i in 0..conditions {
            let condition = Cond::random(&mut rng, 3);
            let sql = condition.sql();
            let mut wanted: Vec<String> = (1..)
                .zip(&data.rows)
                .filter(|(id, row)| condition.truth(*id, row, &data) == Some(true))
                .map(|(id, _)| id.to_string())
                .collect();
            wanted.sort();
            match selecting.try_rows(&format!("SELECT id FROM t WHERE {sql}")).await {
                Ok(got) => assert_eq!(got, wanted, "seed {seed}: SELECT {sql}\n{:?}\n{:?}", data.rows, data.s),
                Err(e) if fails_closed(&sql, &e) => errors.push(format!("{sql}: {e}")),
                Err(_) => {}
            }
            if i % 6 == 0 {
                let deleting = world(door, &data).await;
                match deleting.try_rows(&format!("DELETE FROM t WHERE {sql}")).await {
                    Ok(count) => {
                        assert_eq!(count, [wanted.len().to_string()], "seed {seed}: DELETE {sql}");
                        let stay = deleting.rows("SELECT id FROM t").await;
                        assert!(stay.iter().all(|id| !wanted.contains(id)), "seed {seed}: DELETE {sql}: {stay:?}");
                        assert_eq!(stay.len() + wanted.len(), data.rows.len(), "seed {seed}: DELETE {sql}");
                    }
                    Err(e) if fails_closed(&sql, &e) => errors.push(format!("DELETE {sql}: {e}")),
                    Err(_) => {}
                }
            }
        }
    }
    assert!(errors.len() * 20 < conditions * 3, "{} errors:\n{}", errors.len(), errors.join("\n"));
}
