//! Conditions: their SQL text, and an evaluator of SQL's three-valued logic that knows nothing of DataFusion.

use std::cmp::Ordering;

use super::value::{Kind, Value, quoted};

pub(super) type Row = Vec<Value>;

/// The tables a condition may name.
#[derive(Debug, Clone, Copy)]
pub(super) struct World<'a> {
    /// Rows of `t`, the target.
    pub(super) target: &'a [Row],
    /// Rows of `s`.
    pub(super) other: &'a [Row],
}

#[derive(Debug, Clone)]
pub(super) struct ColumnRef {
    /// 0 for the target's row, 1 for the row of a subquery.
    pub(super) depth: usize,
    pub(super) index: usize,
    /// Field of a struct column.
    pub(super) field: Option<usize>,
    pub(super) sql: String,
}

#[derive(Debug, Clone)]
pub(super) enum Scalar {
    Column(ColumnRef),
    /// The flag asks for the plain spelling, whose type the planner has to find.
    Literal(Value, Kind, bool),
    Modulo(Box<Scalar>, i64),
    Plus(Box<Scalar>, i64),
    Length(Box<Scalar>),
    Upper(Box<Scalar>),
    Coalesce(Box<Scalar>, Box<Scalar>),
    Case(Box<Condition>, Box<Scalar>, Box<Scalar>),
    Aggregate(Aggregate, Subquery),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aggregate {
    Min,
    Max,
    Count,
}

#[derive(Debug, Clone)]
pub(super) struct Subquery {
    /// Whether it reads the target itself.
    pub(super) of_target: bool,
    pub(super) column: ColumnRef,
    /// Inner and outer column that are to be equal.
    pub(super) correlation: Option<(ColumnRef, ColumnRef)>,
    pub(super) filter: Option<Box<Condition>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

#[derive(Debug, Clone)]
pub(super) enum Condition {
    Constant(Option<bool>),
    Compare(Op, Scalar, Scalar),
    Boolean(Scalar),
    IsNull(Scalar),
    IsNan(Scalar),
    In(Scalar, Vec<Scalar>),
    Between(Scalar, Scalar, Scalar),
    Like(Scalar, String),
    Distinct(Scalar, Scalar),
    /// `IS TRUE`, `IS FALSE` or `IS UNKNOWN`.
    Is(Box<Condition>, Option<bool>),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Case(Box<Condition>, Box<Condition>, Option<Box<Condition>>),
    InSubquery(Scalar, Subquery),
    Exists(Subquery),
    /// The negated spelling (`NOT IN`, `IS NOT NULL`, …) of what is inside.
    Negated(Box<Condition>),
}

impl ColumnRef {
    fn eval(&self, rows: &[&Row]) -> Value {
        let value = &rows[self.depth][self.index];
        match (self.field, value) {
            (Some(field), Value::Struct(fields)) => fields[field].clone(),
            (Some(_), _) => Value::Null,
            (None, value) => value.clone(),
        }
    }
}

impl Scalar {
    fn eval(&self, world: World<'_>, rows: &[&Row]) -> Value {
        match self {
            Self::Column(column) => column.eval(rows),
            Self::Literal(value, ..) => value.clone(),
            Self::Modulo(inner, by) => match inner.eval(world, rows) {
                Value::Int(v) => Value::Int(v % by),
                _ => Value::Null,
            },
            Self::Plus(inner, by) => match inner.eval(world, rows) {
                Value::Int(v) => Value::Int(v + by),
                _ => Value::Null,
            },
            Self::Length(inner) => match inner.eval(world, rows) {
                Value::Text(v) => Value::Int(v.chars().count() as i64),
                _ => Value::Null,
            },
            Self::Upper(inner) => match inner.eval(world, rows) {
                Value::Text(v) => Value::Text(v.to_uppercase()),
                _ => Value::Null,
            },
            Self::Coalesce(first, second) => match first.eval(world, rows) {
                Value::Null => second.eval(world, rows),
                value => value,
            },
            Self::Case(when, then, otherwise) => {
                if when.eval(world, rows) == Some(true) { then } else { otherwise }.eval(world, rows)
            }
            Self::Aggregate(aggregate, subquery) => {
                let values = subquery.values(world, rows).into_iter().filter(|v| !v.is_null());
                let better = |a: Value, b: Value, wanted| if b.compare(&a) == Some(wanted) { b } else { a };
                match aggregate {
                    Aggregate::Count => Value::Int(values.count() as i64),
                    Aggregate::Min => values.reduce(|a, b| better(a, b, Ordering::Less)).unwrap_or(Value::Null),
                    Aggregate::Max => values.reduce(|a, b| better(a, b, Ordering::Greater)).unwrap_or(Value::Null),
                }
            }
        }
    }

    pub(super) fn sql(&self) -> String {
        match self {
            Self::Column(column) => column.sql.clone(),
            Self::Literal(Value::Int(v), Kind::Int | Kind::Long, true) => format!("({v})"),
            Self::Literal(Value::Float(v), _, true) if v.is_finite() => format!("({v:?})"),
            Self::Literal(Value::Null, _, true) => "NULL".into(),
            Self::Literal(value, kind, _) => value.sql(kind),
            Self::Modulo(inner, by) => format!("({} % {by})", inner.sql()),
            Self::Plus(inner, by) => format!("({} + {by})", inner.sql()),
            Self::Length(inner) => format!("character_length({})", inner.sql()),
            Self::Upper(inner) => format!("upper({})", inner.sql()),
            Self::Coalesce(first, second) => format!("coalesce({}, {})", first.sql(), second.sql()),
            Self::Case(when, then, otherwise) => {
                format!("CASE WHEN {} THEN {} ELSE {} END", when.sql(), then.sql(), otherwise.sql())
            }
            Self::Aggregate(aggregate, subquery) => {
                let name = format!("{aggregate:?}").to_lowercase();
                format!("(SELECT {name}({}) {})", subquery.column.sql, subquery.sql_from_table())
            }
        }
    }
}

impl Subquery {
    /// The selected values for one outer row.
    fn values(&self, world: World<'_>, outer: &[&Row]) -> Vec<Value> {
        let table = if self.of_target { world.target } else { world.other };
        let selected = table.iter().filter_map(|row| {
            let rows = [outer[0], row];
            let correlated = match &self.correlation {
                None => true,
                Some((inner, outer)) => inner.eval(&rows).compare(&outer.eval(&rows)) == Some(Ordering::Equal),
            };
            let kept = self.filter.as_ref().is_none_or(|filter| filter.eval(world, &rows) == Some(true));
            (correlated && kept).then(|| self.column.eval(&rows))
        });
        selected.collect()
    }

    fn sql_from_table(&self) -> String {
        let mut conditions: Vec<String> = Vec::new();
        conditions.extend(self.correlation.as_ref().map(|(inner, outer)| format!("{} = {}", inner.sql, outer.sql)));
        conditions.extend(self.filter.as_ref().map(|filter| filter.sql()));
        let (table, alias) = if self.of_target { ("t", "y") } else { ("s", "x") };
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        format!("FROM {table} AS {alias}{filter}")
    }
}

impl Op {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::NotEq => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::LtEq => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::GtEq => ordering.is_ge(),
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
        }
    }
}

impl Condition {
    /// True, false or (`None`) unknown for one row.
    pub(super) fn eval(&self, world: World<'_>, rows: &[&Row]) -> Option<bool> {
        let value = |scalar: &Scalar| scalar.eval(world, rows);
        match self {
            Self::Constant(constant) => *constant,
            Self::Compare(op, left, right) => value(left).compare(&value(right)).map(|o| op.holds(o)),
            Self::Boolean(scalar) => match value(scalar) {
                Value::Bool(v) => Some(v),
                _ => None,
            },
            Self::IsNull(scalar) => Some(value(scalar).is_null()),
            Self::IsNan(scalar) => match value(scalar) {
                Value::Float(v) => Some(v.is_nan()),
                _ => None,
            },
            Self::In(scalar, list) => in_list(&value(scalar), list.iter().map(value)),
            Self::Between(scalar, low, high) => {
                let scalar = value(scalar);
                let above = scalar.compare(&value(low)).map(|o| o.is_ge());
                and(above, scalar.compare(&value(high)).map(|o| o.is_le()))
            }
            Self::Like(scalar, pattern) => match value(scalar) {
                Value::Text(text) => {
                    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
                    Some(like(&text, &pattern))
                }
                _ => None,
            },
            Self::Distinct(left, right) => {
                let (left, right) = (value(left), value(right));
                Some(left.compare(&right).map_or(left.is_null() != right.is_null(), |o| o.is_ne()))
            }
            Self::Is(inner, wanted) => Some(inner.eval(world, rows) == *wanted),
            Self::Not(inner) | Self::Negated(inner) => inner.eval(world, rows).map(|v| !v),
            Self::And(left, right) => and(left.eval(world, rows), right.eval(world, rows)),
            Self::Or(left, right) => {
                and(left.eval(world, rows).map(|v| !v), right.eval(world, rows).map(|v| !v)).map(|v| !v)
            }
            Self::Case(when, then, otherwise) => {
                if when.eval(world, rows) == Some(true) {
                    then.eval(world, rows)
                } else {
                    otherwise.as_ref().and_then(|otherwise| otherwise.eval(world, rows))
                }
            }
            Self::InSubquery(scalar, subquery) => in_list(&value(scalar), subquery.values(world, rows).into_iter()),
            Self::Exists(subquery) => Some(!subquery.values(world, rows).is_empty()),
        }
    }

    pub(super) fn sql(&self) -> String {
        let list = |items: &[Scalar]| items.iter().map(Scalar::sql).collect::<Vec<_>>().join(", ");
        match self {
            Self::Constant(None) => "CAST(NULL AS BOOLEAN)".into(),
            Self::Constant(Some(constant)) => constant.to_string().to_uppercase(),
            Self::Compare(op, left, right) => format!("{} {} {}", left.sql(), op.sql(), right.sql()),
            Self::Boolean(scalar) => scalar.sql(),
            Self::IsNull(scalar) => format!("{} IS NULL", scalar.sql()),
            Self::IsNan(scalar) => format!("isnan({})", scalar.sql()),
            Self::In(scalar, items) => format!("{} IN ({})", scalar.sql(), list(items)),
            Self::Between(scalar, low, high) => format!("{} BETWEEN {} AND {}", scalar.sql(), low.sql(), high.sql()),
            Self::Like(scalar, pattern) => format!("{} LIKE {}", scalar.sql(), quoted(pattern)),
            Self::Distinct(left, right) => format!("{} IS DISTINCT FROM {}", left.sql(), right.sql()),
            Self::Is(inner, None) => format!("({}) IS UNKNOWN", inner.sql()),
            Self::Is(inner, Some(wanted)) => format!("({}) IS {}", inner.sql(), wanted.to_string().to_uppercase()),
            Self::Not(inner) => format!("NOT ({})", inner.sql()),
            Self::And(left, right) => format!("({}) AND ({})", left.sql(), right.sql()),
            Self::Or(left, right) => format!("({}) OR ({})", left.sql(), right.sql()),
            Self::Case(when, then, otherwise) => {
                let otherwise = otherwise.as_ref().map_or(String::new(), |o| format!(" ELSE {}", o.sql()));
                format!("CASE WHEN {} THEN {}{otherwise} END", when.sql(), then.sql())
            }
            Self::InSubquery(scalar, subquery) => {
                format!("{} IN (SELECT {} {})", scalar.sql(), subquery.column.sql, subquery.sql_from_table())
            }
            Self::Exists(subquery) => format!("EXISTS (SELECT {} {})", subquery.column.sql, subquery.sql_from_table()),
            Self::Negated(inner) => match inner.as_ref() {
                Self::IsNull(scalar) => format!("{} IS NOT NULL", scalar.sql()),
                Self::In(scalar, items) => format!("{} NOT IN ({})", scalar.sql(), list(items)),
                Self::Between(scalar, low, high) => {
                    format!("{} NOT BETWEEN {} AND {}", scalar.sql(), low.sql(), high.sql())
                }
                Self::Like(scalar, pattern) => format!("{} NOT LIKE {}", scalar.sql(), quoted(pattern)),
                Self::Distinct(left, right) => format!("{} IS NOT DISTINCT FROM {}", left.sql(), right.sql()),
                Self::Is(inner, None) => format!("({}) IS NOT UNKNOWN", inner.sql()),
                Self::Is(inner, Some(wanted)) => {
                    format!("({}) IS NOT {}", inner.sql(), wanted.to_string().to_uppercase())
                }
                Self::InSubquery(scalar, subquery) => {
                    format!("{} NOT IN (SELECT {} {})", scalar.sql(), subquery.column.sql, subquery.sql_from_table())
                }
                Self::Exists(subquery) => {
                    format!("NOT EXISTS (SELECT {} {})", subquery.column.sql, subquery.sql_from_table())
                }
                other => format!("NOT ({})", other.sql()),
            },
        }
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn in_list(value: &Value, mut items: impl Iterator<Item = Value>) -> Option<bool> {
    let mut result = Some(false);
    items
        .find_map(|item| match value.compare(&item) {
            Some(Ordering::Equal) => Some(Some(true)),
            Some(_) => None,
            None => {
                result = None;
                None
            }
        })
        .unwrap_or(result)
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skipped| like(&text[skipped..], rest)),
        Some(('_', rest)) => !text.is_empty() && like(&text[1..], rest),
        Some((wanted, rest)) => text.first() == Some(wanted) && like(&text[1..], rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_list_bug_shape() {
        assert_eq!(in_list(&Value::Null, std::iter::empty()), Some(false));
        assert_eq!(in_list(&Value::Int(1), [Value::Null, Value::Int(1)].into_iter()), Some(true));
        assert_eq!(in_list(&Value::Int(1), [Value::Null, Value::Int(2)].into_iter()), None);
        assert_eq!(in_list(&Value::Null, [Value::Int(2)].into_iter()), None);
    }
}
