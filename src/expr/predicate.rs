//! Predicates over columns by field id.
//!
//! Invariant: a predicate stands for the set of rows for which it is TRUE in SQL's three-valued logic. There is no negation:
//! whoever builds one pushes NOT down to the leaves, where each operator has its opposite.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use crate::spec::{Literal, PrimitiveType, Schema};

/// A set of rows: those for which this is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// Every row.
    AlwaysTrue,
    /// No row.
    AlwaysFalse,
    /// May be anything for any row: a condition that files' metadata says nothing about.
    Unknown,
    /// Rows in all of these.
    And(Vec<Predicate>),
    /// Rows in any of these.
    Or(Vec<Predicate>),
    /// A test of one column.
    Leaf {
        /// Field id of the column.
        field_id: i32,
        /// The test.
        op: LeafOp,
    },
}

/// A test of one column. Literals are of the column's current type. Every test but [`LeafOp::IsNull`] is true of non-null
/// values only, the negative ones included. Floats compare as in DataFusion: NaN equals NaN and is above infinity, -0.0 = 0.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeafOp {
    /// Is null.
    IsNull,
    /// Is not null.
    NotNull,
    /// Is NaN.
    IsNan,
    /// Is neither NaN nor null.
    NotNan,
    /// Less.
    Lt(Literal),
    /// Less or equal.
    LtEq(Literal),
    /// Greater.
    Gt(Literal),
    /// Greater or equal.
    GtEq(Literal),
    /// Equal.
    Eq(Literal),
    /// Not equal, and not null.
    NotEq(Literal),
    /// Equal to one of these.
    In(Vec<Literal>),
    /// Equal to none of these, and not null.
    NotIn(Vec<Literal>),
    /// A string with this prefix, byte for byte.
    StartsWith(String),
    /// A string without this prefix; not null.
    NotStartsWith(String),
}

impl Predicate {
    /// A test of one column.
    pub fn leaf(field_id: i32, op: LeafOp) -> Self {
        Self::Leaf { field_id, op }
    }

    /// Conjunction: nested conjunctions flattened, constants folded; [`Predicate::AlwaysTrue`] of nothing.
    pub fn and(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::AlwaysTrue => {}
                Self::AlwaysFalse => return Self::AlwaysFalse,
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::one_or(flat, Self::AlwaysTrue, Self::And)
    }

    /// Disjunction: nested disjunctions flattened, constants folded; [`Predicate::AlwaysFalse`] of nothing.
    pub fn or(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::AlwaysFalse => {}
                Self::AlwaysTrue => return Self::AlwaysTrue,
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::one_or(flat, Self::AlwaysFalse, Self::Or)
    }

    fn one_or(mut parts: Vec<Self>, empty: Self, many: fn(Vec<Self>) -> Self) -> Self {
        match parts.pop() {
            None => empty,
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                many(parts)
            }
        }
    }

    /// Field ids of the columns it tests.
    pub fn field_ids(&self) -> BTreeSet<i32> {
        let mut ids = BTreeSet::new();
        self.collect_field_ids(&mut ids);
        ids
    }

    fn collect_field_ids(&self, ids: &mut BTreeSet<i32>) {
        match self {
            Self::AlwaysTrue | Self::AlwaysFalse | Self::Unknown => {}
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|p| p.collect_field_ids(ids)),
            Self::Leaf { field_id, .. } => {
                ids.insert(*field_id);
            }
        }
    }

    /// Evaluates it on one row, whose column values `value` gives by field id (`None` is null). `None` is SQL's unknown, and
    /// also the answer where [`Predicate::Unknown`] decides, or where literal and value differ in type.
    pub fn matches_row(&self, value: &dyn Fn(i32) -> Option<Literal>) -> Option<bool> {
        match self {
            Self::AlwaysTrue => Some(true),
            Self::AlwaysFalse => Some(false),
            Self::Unknown => None,
            Self::And(parts) => kleene(parts, value, false),
            Self::Or(parts) => kleene(parts, value, true),
            Self::Leaf { field_id, op } => op.matches(value(*field_id).as_ref()),
        }
    }

    /// Shows it with the column names of `schema` and literals as their types spell them; columns the schema lacks show as
    /// `#` and the field id.
    pub fn display<'a>(&'a self, schema: &'a Schema) -> impl fmt::Display + 'a {
        Named { predicate: self, schema: Some(schema) }
    }
}

/// Three-valued AND (`decisive` false) and OR (`decisive` true): a decisive part decides, else an unknown one does.
fn kleene(parts: &[Predicate], value: &dyn Fn(i32) -> Option<Literal>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for part in parts {
        match part.matches_row(value) {
            Some(v) if v == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl LeafOp {
    /// The test on one value; `None` is null. Returns SQL's three values.
    fn matches(&self, value: Option<&Literal>) -> Option<bool> {
        match (self, value) {
            (Self::IsNull, v) => return Some(v.is_none()),
            (Self::NotNull, v) => return Some(v.is_some()),
            _ => {}
        }
        let value = value?;
        let any = |list: &[Literal]| {
            let mut found = Some(false);
            for v in list {
                match value.compare(v) {
                    Some(Ordering::Equal) => return Some(true),
                    Some(_) => {}
                    None => found = None,
                }
            }
            found
        };
        let prefixed = |prefix: &str| match value {
            Literal::String(text) => Some(text.starts_with(prefix)),
            _ => None,
        };
        match self {
            Self::IsNull | Self::NotNull => None,
            Self::IsNan => Some(value.is_nan()),
            Self::NotNan => Some(!value.is_nan()),
            Self::Lt(v) => value.compare(v).map(Ordering::is_lt),
            Self::LtEq(v) => value.compare(v).map(Ordering::is_le),
            Self::Gt(v) => value.compare(v).map(Ordering::is_gt),
            Self::GtEq(v) => value.compare(v).map(Ordering::is_ge),
            Self::Eq(v) => value.compare(v).map(Ordering::is_eq),
            Self::NotEq(v) => value.compare(v).map(Ordering::is_ne),
            Self::In(list) => any(list),
            Self::NotIn(list) => any(list).map(|found| !found),
            Self::StartsWith(prefix) => prefixed(prefix),
            Self::NotStartsWith(prefix) => prefixed(prefix).map(|found| !found),
        }
    }
}

/// Shows columns as `#` and the field id.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Named { predicate: self, schema: None })
    }
}

struct Named<'a> {
    predicate: &'a Predicate,
    schema: Option<&'a Schema>,
}

impl Named<'_> {
    fn list(&self, f: &mut fmt::Formatter<'_>, parts: &[Predicate], word: &str) -> fmt::Result {
        for (i, predicate) in parts.iter().enumerate() {
            if i > 0 {
                write!(f, " {word} ")?;
            }
            let part = Named { predicate, schema: self.schema };
            match predicate {
                Predicate::And(_) | Predicate::Or(_) => write!(f, "({part})")?,
                _ => write!(f, "{part}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field_id, op) = match self.predicate {
            Predicate::AlwaysTrue => return f.write_str("true"),
            Predicate::AlwaysFalse => return f.write_str("false"),
            Predicate::Unknown => return f.write_str("unknown"),
            Predicate::And(parts) => return self.list(f, parts, "AND"),
            Predicate::Or(parts) => return self.list(f, parts, "OR"),
            Predicate::Leaf { field_id, op } => (*field_id, op),
        };
        let ty = self.schema.and_then(|schema| schema.field_by_id(field_id)?.field_type.as_primitive());
        let name = self.schema.and_then(|schema| schema.name_of(field_id)).unwrap_or_else(|| format!("#{field_id}"));
        let text = |v: &Literal| literal_text(v, ty);
        let list = |values: &[Literal]| values.iter().map(text).collect::<Vec<_>>().join(", ");
        match op {
            LeafOp::IsNull => write!(f, "{name} IS NULL"),
            LeafOp::NotNull => write!(f, "{name} IS NOT NULL"),
            LeafOp::IsNan => write!(f, "isnan({name})"),
            LeafOp::NotNan => write!(f, "NOT isnan({name})"),
            LeafOp::Lt(v) => write!(f, "{name} < {}", text(v)),
            LeafOp::LtEq(v) => write!(f, "{name} <= {}", text(v)),
            LeafOp::Gt(v) => write!(f, "{name} > {}", text(v)),
            LeafOp::GtEq(v) => write!(f, "{name} >= {}", text(v)),
            LeafOp::Eq(v) => write!(f, "{name} = {}", text(v)),
            LeafOp::NotEq(v) => write!(f, "{name} <> {}", text(v)),
            LeafOp::In(values) => write!(f, "{name} IN ({})", list(values)),
            LeafOp::NotIn(values) => write!(f, "{name} NOT IN ({})", list(values)),
            LeafOp::StartsWith(prefix) => write!(f, "starts_with({name}, {})", quoted(prefix)),
            LeafOp::NotStartsWith(prefix) => write!(f, "NOT starts_with({name}, {})", quoted(prefix)),
        }
    }
}

/// Numbers and booleans bare, everything else in quotes.
fn literal_text(value: &Literal, ty: Option<&PrimitiveType>) -> String {
    // Without the type a decimal's scale is not known; its unscaled value is shown.
    let text = value.to_human(ty.unwrap_or(&PrimitiveType::Unknown));
    match value {
        Literal::Boolean(_)
        | Literal::Int(_)
        | Literal::Long(_)
        | Literal::Float(_)
        | Literal::Double(_)
        | Literal::Decimal(_) => text,
        _ => quoted(&text),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
