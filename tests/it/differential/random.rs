//! Random tables, values and conditions.

use std::collections::BTreeMap;

use calve::spec::{FormatVersion, NestedField, NewTable, PartitionField, PartitionSpec, Schema, SortOrder, Transform};
use fastrand::Rng;

use super::predicate::{Aggregate, ColumnRef, Condition, Op, Row, Scalar, Subquery};
use super::value::{Kind, Value};

/// A column with the values that come up in it.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    domain: Vec<Value>,
    null_percent: u8,
}

/// A random table. Column 0 is `id`, different in every row.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) version: FormatVersion,
    pub(super) columns: Vec<Column>,
    pub(super) partitioning: Vec<Term>,
    pub(super) properties: BTreeMap<String, String>,
}

/// One partition field: transform, column and field of a struct.
pub(super) type Term = (Transform, usize, Option<usize>);

fn choice<'a, T>(rng: &mut Rng, items: &'a [T]) -> &'a T {
    &items[rng.usize(..items.len())]
}

fn percent(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}

impl Column {
    fn new(rng: &mut Rng, name: String, kind: Kind) -> Self {
        let all = interesting(&kind);
        let size = rng.usize(2..=7).min(all.len());
        let domain = (0..size).map(|_| choice(rng, &all).clone()).collect();
        Self { name, kind, domain, null_percent: *choice(rng, &[0, 10, 30, 60]) }
    }

    /// How often it is null; 0 for a column that never is.
    pub(super) fn null_percent(&self) -> u8 {
        self.null_percent
    }

    pub(super) fn value(&self, rng: &mut Rng) -> Value {
        if percent(rng, self.null_percent) { Value::Null } else { choice(rng, &self.domain).clone() }
    }

    /// A value to compare with: mostly one that is in the column.
    fn probe(&self, rng: &mut Rng) -> Value {
        if percent(rng, 80) { choice(rng, &self.domain).clone() } else { choice(rng, &interesting(&self.kind)).clone() }
    }

    /// A struct's field as a column.
    fn field(&self, field: usize) -> Self {
        let Kind::Struct(fields) = &self.kind else { panic!("{} is no struct", self.name) };
        let (name, kind) = &fields[field];
        let pick = |value: &Value| match value {
            Value::Struct(values) => values[field].clone(),
            _ => Value::Null,
        };
        let mut domain: Vec<Value> = self.domain.iter().map(pick).filter(|v| !v.is_null()).collect();
        if domain.is_empty() {
            domain = interesting(kind);
        }
        Self { name: format!("{}['{name}']", self.name), kind: kind.clone(), domain, null_percent: self.null_percent }
    }
}

/// Values that have been trouble somewhere.
fn interesting(kind: &Kind) -> Vec<Value> {
    let ints = |values: &[i64]| values.iter().map(|v| Value::Int(*v)).collect();
    let micros = [
        -1,
        0,
        1,
        -86_400_000_000,
        -86_400_000_001,
        3_600_000_000,
        -62_135_596_800_000_000,
        253_402_300_799_999_999,
        1_700_000_000_123_456,
        -5_000_000_000_000_000,
        1_709_164_800_000_000,
    ];
    match kind {
        Kind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        Kind::Int => ints(&[0, 1, -1, 2, 3, 7, 8, 99, -100, i64::from(i32::MAX) - 9, i32::MIN.into()]),
        Kind::Long => ints(&[0, 1, -1, 2, 3, 10, -11, 1 << 40, i64::MAX, i64::MIN, 4_294_967_296]),
        Kind::Float | Kind::Double => [
            0.0,
            -0.0,
            1.5,
            -1.5,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.25,
            1024.0,
            if *kind == Kind::Float { f32::MAX.into() } else { 1e300 },
            if *kind == Kind::Float { f32::MIN_POSITIVE.into() } else { 5e-324 },
        ]
        .into_iter()
        .map(Value::Float)
        .collect(),
        Kind::Decimal(precision, _) => {
            let max = 10_i128.pow((*precision).into()) - 1;
            [0, 1, -1, 100, -128, 255, 12345, -99, max, -max].into_iter().map(Value::Decimal).collect()
        }
        Kind::Date => ints(&[0, -1, 1, 19_000, -719_162, 2_932_896, -365, 31, 59, 11_016]),
        Kind::Time => ints(&[0, 1, 86_399_999_999, 43_200_000_000, 3_600_000_000]),
        Kind::Timestamp | Kind::Timestamptz => ints(&micros),
        Kind::Text => [
            "",
            "a",
            "ab",
            "abc",
            "Abc",
            " a",
            "a b/c%#?=&+\n",
            "it's",
            "null",
            "日本語",
            "ä",
            "zz",
            "__HIVE_DEFAULT_PARTITION__",
            "\u{10ffff}\u{10ffff}",
            "abcdefghijklmnopqrstuvwxyz",
            "abcdefghijklmnopqrstuvwxyä",
            "%",
        ]
        .into_iter()
        .map(|v| Value::Text(v.to_string()))
        .collect(),
        Kind::Binary => [&[][..], &[0], &[0, 1], &[255], &[255; 20], b"abc", &[128, 127, 0]]
            .into_iter()
            .map(|v| Value::Bytes(v.to_vec()))
            .collect(),
        Kind::Uuid => [0_u128, 1, u128::MAX, 0x8000_0000_0000_0000_0000_0000_0000_0000, 0x1234_5678]
            .into_iter()
            .map(|v| Value::Bytes(v.to_be_bytes().to_vec()))
            .collect(),
        Kind::Struct(fields) => {
            let all: Vec<Vec<Value>> = fields.iter().map(|(_, kind)| interesting(kind)).collect();
            let field = |i: usize, values: &Vec<Value>| {
                if i % 4 == 3 { Value::Null } else { values[i % values.len()].clone() }
            };
            (0..9).map(|i| Value::Struct(all.iter().enumerate().map(|(n, v)| field(i + n, v)).collect())).collect()
        }
        Kind::List(element) => {
            let all = interesting(element);
            vec![
                Value::List(Vec::new()),
                Value::List(vec![all[0].clone()]),
                Value::List(vec![all[1].clone(), Value::Null, all[0].clone()]),
            ]
        }
    }
}

fn random_kind(rng: &mut Rng) -> Kind {
    match rng.u8(..17) {
        0 => Kind::Bool,
        1 | 2 => Kind::Int,
        3 => Kind::Long,
        4 => Kind::Float,
        5 | 6 => Kind::Double,
        7 => choice(rng, &[Kind::Decimal(9, 2), Kind::Decimal(18, 4), Kind::Decimal(38, 10)]).clone(),
        8 => Kind::Date,
        9 => Kind::Time,
        10 => Kind::Timestamp,
        11 => Kind::Timestamptz,
        12 | 13 => Kind::Text,
        14 => choice(rng, &[Kind::Binary, Kind::Uuid]).clone(),
        15 => Kind::Struct(vec![("a", choice(rng, &[Kind::Int, Kind::Date, Kind::Double]).clone()), ("b", Kind::Text)]),
        _ => Kind::List(Box::new(choice(rng, &[Kind::Int, Kind::Text]).clone())),
    }
}

/// The transforms a type takes.
fn transforms(rng: &mut Rng, kind: &Kind) -> Vec<Transform> {
    use Transform::{Bucket, Day, Hour, Identity, Month, Truncate, Void, Year};
    let bucket = Bucket(rng.u32(1..=4));
    let mut all = vec![Identity, Identity, Void];
    match kind {
        Kind::Bool | Kind::Float | Kind::Double => {}
        Kind::Int | Kind::Long | Kind::Decimal(..) => all.extend([bucket, Truncate(*choice(rng, &[1, 3, 10, 1000]))]),
        Kind::Text | Kind::Binary => all.extend([bucket, Truncate(rng.u32(1..=3))]),
        Kind::Date => all.extend([bucket, Year, Month, Day]),
        Kind::Timestamp | Kind::Timestamptz => all.extend([bucket, Year, Month, Day, Hour]),
        Kind::Time | Kind::Uuid => all.push(bucket),
        Kind::Struct(_) | Kind::List(_) => all.clear(),
    }
    all
}

impl Definition {
    pub(super) fn random(rng: &mut Rng, version: FormatVersion) -> Self {
        let id =
            Column { name: "id".into(), kind: Kind::Long, domain: (0..20).map(Value::Int).collect(), null_percent: 0 };
        let mut columns = vec![id];
        for i in 1..=rng.usize(2..=5) {
            let kind = random_kind(rng);
            columns.push(Column::new(rng, format!("c{i}"), kind));
        }
        let mut definition = Self { version, columns, partitioning: Vec::new(), properties: BTreeMap::new() };
        definition.partitioning = definition.random_partitioning(rng);
        let mut set = |rng: &mut Rng, likely: u8, name: &str, values: &[&str]| {
            if percent(rng, likely) {
                definition.properties.insert(name.to_string(), (*choice(rng, values)).to_string());
            }
        };
        set(rng, 60, "write.parquet.row-group-size-bytes", &["1", "200"]);
        set(rng, 60, "write.parquet.row-group-check-min-record-count", &["1", "3", "7"]);
        set(rng, 60, "write.parquet.row-group-check-max-record-count", &["3", "10"]);
        set(rng, 60, "write.parquet.page-row-limit", &["1", "2", "5"]);
        set(rng, 30, "write.parquet.page-size-bytes", &["1", "64"]);
        set(rng, 40, "write.target-file-size-bytes", &["1", "1500", "3000"]);
        set(rng, 50, "write.delete.target-file-size-bytes", &["1", "1500"]);
        set(rng, 50, "write.delete.granularity", &["file", "partition"]);
        set(rng, 30, "write.metadata.metrics.default", &["none", "counts", "full", "truncate(1)", "truncate(2)"]);
        set(rng, 20, "write.metadata.metrics.column.c1", &["none", "counts", "full", "truncate(1)"]);
        set(rng, 50, "commit.manifest.min-count-to-merge", &["2", "3"]);
        set(rng, 20, "commit.manifest.target-size-bytes", &["1", "9000"]);
        set(rng, 10, "commit.manifest-merge.enabled", &["false"]);
        set(rng, 20, "write.object-storage.enabled", &["true"]);
        set(rng, 30, "write.object-storage.partitioned-paths", &["false"]);
        set(rng, 20, "write.delete.isolation-level", &["snapshot"]);
        set(rng, 20, "write.metadata.compression-codec", &["gzip"]);
        definition
    }

    pub(super) fn random_partitioning(&self, rng: &mut Rng) -> Vec<Term> {
        let mut terms: Vec<Term> = Vec::new();
        for _ in 0..*choice(rng, &[0, 0, 1, 1, 1, 2, 3]) {
            let column = rng.usize(..self.columns.len());
            let (kind, field) = match &self.columns[column].kind {
                Kind::Struct(fields) => {
                    let field = rng.usize(..fields.len());
                    (fields[field].1.clone(), Some(field))
                }
                kind => (kind.clone(), None),
            };
            let all = transforms(rng, &kind);
            if all.is_empty() {
                continue;
            }
            let transform = choice(rng, &all).clone();
            // The format takes one time transform, and one field of each transform, a column.
            if !terms.iter().any(|(_, c, f)| *c == column && *f == field) {
                terms.push((transform, column, field));
            }
        }
        terms
    }

    /// Dotted name of a partition field's source.
    fn source(&self, column: usize, field: Option<usize>) -> String {
        match (&self.columns[column].kind, field) {
            (Kind::Struct(fields), Some(field)) => format!("{}.{}", self.columns[column].name, fields[field].0),
            _ => self.columns[column].name.clone(),
        }
    }

    /// The partition spec over a schema of these columns.
    pub(super) fn spec(&self, schema: &Schema, terms: &[Term]) -> PartitionSpec {
        let fields = terms.iter().map(|(transform, column, field)| PartitionField {
            source_id: schema.field_by_name(&self.source(*column, *field)).expect("a source").id,
            field_id: 0,
            name: field_name(self, transform, *column, *field),
            transform: transform.clone(),
        });
        PartitionSpec { spec_id: 0, fields: fields.collect() }
    }

    pub(super) fn new_table(&self, location: String) -> NewTable {
        let mut next = 0;
        let mut fields = Vec::new();
        for column in &self.columns {
            next += 1;
            let id = next;
            fields.push(NestedField::new(id, &column.name, false, column.kind.iceberg(&mut next)));
        }
        let schema = Schema::new(0, fields);
        NewTable {
            uuid: uuid::Uuid::from_u128(7),
            location,
            format_version: self.version,
            spec: self.spec(&schema, &self.partitioning),
            schema,
            sort_order: SortOrder::unsorted(),
            properties: self.properties.clone(),
        }
    }

    pub(super) fn partitioning_sql(&self, terms: &[Term]) -> String {
        let term = |(transform, column, field): &Term| {
            let source = self.source(*column, *field);
            let call = match transform {
                Transform::Bucket(n) => format!("bucket({n}, {source})"),
                Transform::Truncate(n) => format!("truncate({n}, {source})"),
                other => format!("{other}({source})"),
            };
            format!("{call} AS {}", field_name(self, transform, *column, *field))
        };
        terms.iter().map(term).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn create_sql(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(|c| format!("{} {}", c.name, c.kind.ddl())).collect();
        let mut sql = format!("CREATE TABLE t ({})", columns.join(", "));
        if !self.partitioning.is_empty() {
            sql.push_str(&format!(" PARTITIONED BY ({})", self.partitioning_sql(&self.partitioning)));
        }
        let mut properties = vec![format!("'format-version' = '{}'", self.version)];
        properties.extend(self.properties.iter().map(|(name, value)| format!("'{name}' = '{value}'")));
        format!("{sql} TBLPROPERTIES ({})", properties.join(", "))
    }

    pub(super) fn rows(&self, rng: &mut Rng, first_id: i64, count: usize) -> Vec<Row> {
        let row = |rng: &mut Rng, i: usize| {
            let rest = self.columns[1..].iter().map(|column| column.value(rng));
            std::iter::once(Value::Int(first_id + i as i64)).chain(rest).collect()
        };
        (0..count).map(|i| row(rng, i)).collect()
    }
}

fn field_name(definition: &Definition, transform: &Transform, column: usize, field: Option<usize>) -> String {
    let source = definition.source(column, field).replace('.', "_");
    let transform: String = transform.to_string().chars().filter(|c| c.is_alphanumeric()).collect();
    format!("{source}_{transform}")
}

/// Makes conditions over `t` and, in subqueries, `s`.
pub(super) struct Conditions<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) target: &'a [Column],
    pub(super) other: &'a [Column],
    pub(super) subqueries: bool,
}

/// Where a condition stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Target,
    OfTarget,
    OfOther,
}

impl Conditions<'_> {
    pub(super) fn random(&mut self) -> Condition {
        let depth = self.rng.usize(..=2);
        self.condition(Place::Target, depth)
    }

    /// A comparison of one column that whole files or partitions are likely to satisfy.
    pub(super) fn coarse(&mut self) -> Condition {
        self.leaf(Place::Target)
    }

    fn condition(&mut self, place: Place, depth: usize) -> Condition {
        if depth == 0 {
            return if percent(self.rng, 25) && self.subqueries && place == Place::Target {
                self.with_subquery()
            } else {
                self.leaf(place)
            };
        }
        let mut next = || Box::new(self.condition(place, depth - 1));
        let (a, b, c) = (next(), next(), next());
        match self.rng.u8(..12) {
            0..=2 => Condition::And(a, b),
            3..=5 => Condition::Or(a, b),
            6 | 7 => Condition::Not(a),
            8 => Condition::Case(a, b, Some(c)),
            9 => Condition::Case(a, b, None),
            10 => Condition::Is(a, *choice(self.rng, &[None, Some(true), Some(false)])),
            _ => Condition::Negated(Box::new(Condition::Is(a, *choice(self.rng, &[None, Some(true), Some(false)])))),
        }
    }

    fn columns(&self, place: Place) -> &[Column] {
        if place == Place::OfOther { self.other } else { self.target }
    }

    fn column_ref(&self, place: Place, index: usize, field: Option<usize>) -> (ColumnRef, Column) {
        let column = &self.columns(place)[index];
        let column = field.map_or(column.clone(), |field| column.field(field));
        let (depth, alias) = match place {
            Place::Target => (0, "t"),
            Place::OfTarget => (1, "y"),
            Place::OfOther => (1, "x"),
        };
        (ColumnRef { depth, index, field, sql: format!("{alias}.{}", column.name) }, column)
    }

    /// A primitive column, maybe within a struct, of one kind if one is given.
    fn primitive(&mut self, place: Place, kind: Option<&Kind>) -> Option<(ColumnRef, Column)> {
        let mut all = Vec::new();
        for (index, column) in self.columns(place).iter().enumerate() {
            match &column.kind {
                Kind::Struct(fields) => all.extend((0..fields.len()).map(|field| (index, Some(field)))),
                Kind::List(_) => {}
                _ => all.push((index, None)),
            }
        }
        let all: Vec<_> = all.into_iter().map(|(index, field)| self.column_ref(place, index, field)).collect();
        let all: Vec<_> = all.into_iter().filter(|(_, column)| kind.is_none_or(|kind| column.kind == *kind)).collect();
        (!all.is_empty()).then(|| choice(self.rng, &all).clone())
    }

    fn literal(&mut self, column: &Column) -> Scalar {
        Scalar::Literal(column.probe(self.rng), column.kind.clone(), percent(self.rng, 40))
    }

    fn leaf(&mut self, place: Place) -> Condition {
        let condition = self.positive_leaf(place);
        if percent(self.rng, 35) { Condition::Negated(Box::new(condition)) } else { condition }
    }

    fn positive_leaf(&mut self, place: Place) -> Condition {
        if percent(self.rng, 4) {
            return Condition::Constant(*choice(self.rng, &[None, Some(true), Some(false)]));
        }
        if percent(self.rng, 5) {
            let index = self.rng.usize(..self.columns(place).len());
            let (column, _) = self.column_ref(place, index, None);
            return Condition::IsNull(Scalar::Column(column));
        }
        let (column_ref, column) = self.primitive(place, None).expect("id at least");
        let scalar = Scalar::Column(column_ref);
        let op = *choice(self.rng, &[Op::Eq, Op::NotEq, Op::Lt, Op::LtEq, Op::Gt, Op::GtEq]);
        match (self.rng.u8(..20), &column.kind) {
            (0, _) => Condition::IsNull(scalar),
            (1 | 2, Kind::Float | Kind::Double) => Condition::IsNan(scalar),
            (1..=5, Kind::Bool) => Condition::Boolean(scalar),
            (1, Kind::Int | Kind::Long) => {
                let by = self.rng.i64(2..=4);
                let left = Scalar::Modulo(Box::new(scalar), by);
                Condition::Compare(op, left, Scalar::Literal(Value::Int(self.rng.i64(..by)), Kind::Long, true))
            }
            (2, Kind::Int) => {
                let right = self.literal(&column);
                Condition::Compare(op, Scalar::Plus(Box::new(scalar), self.rng.i64(-3..=3)), right)
            }
            (1..=3, Kind::Text) => {
                let Value::Text(text) = column.probe(self.rng) else { panic!("no text") };
                let part: String = text.chars().take(self.rng.usize(..4)).collect();
                let pattern = match self.rng.u8(..5) {
                    0 => format!("%{part}%"),
                    1 => format!("_{part}%"),
                    2 => part,
                    _ => format!("{part}%"),
                };
                Condition::Like(scalar, pattern)
            }
            (4, Kind::Text) => {
                let length = Scalar::Literal(Value::Int(self.rng.i64(..4)), Kind::Long, true);
                Condition::Compare(op, Scalar::Length(Box::new(scalar)), length)
            }
            (5, Kind::Text) => {
                let right = self.literal(&column);
                Condition::Compare(op, Scalar::Upper(Box::new(scalar)), right)
            }
            (6..=8, _) => {
                let mut items: Vec<_> = (0..self.rng.usize(1..6)).map(|_| self.literal(&column)).collect();
                if percent(self.rng, 30) {
                    items.push(Scalar::Literal(Value::Null, column.kind.clone(), true));
                }
                Condition::In(scalar, items)
            }
            (9 | 10, _) => Condition::Between(scalar, self.literal(&column), self.literal(&column)),
            (11, _) => Condition::Distinct(scalar, self.literal(&column)),
            (12, _) => match self.primitive(place, Some(&column.kind)) {
                Some((other, _)) => Condition::Compare(op, scalar, Scalar::Column(other)),
                None => Condition::IsNull(scalar),
            },
            (13, _) => {
                let otherwise = self.literal(&column);
                let right = self.literal(&column);
                Condition::Compare(op, Scalar::Coalesce(Box::new(scalar), Box::new(otherwise)), right)
            }
            (14, _) => {
                let when = Box::new(self.leaf(place));
                let otherwise = Box::new(self.literal(&column));
                let right = self.literal(&column);
                Condition::Compare(op, Scalar::Case(when, Box::new(scalar), otherwise), right)
            }
            (15, _) => Condition::Compare(op, scalar, Scalar::Literal(Value::Null, column.kind.clone(), false)),
            (16, _) => Condition::Compare(op, self.literal(&column), scalar),
            _ => Condition::Compare(op, scalar, self.literal(&column)),
        }
    }

    fn with_subquery(&mut self) -> Condition {
        let place = if percent(self.rng, 35) { Place::OfTarget } else { Place::OfOther };
        let (outer, kind) = {
            let (outer, column) = self.primitive(Place::Target, None).expect("id at least");
            (outer, column.kind)
        };
        // `s` has no column of every kind.
        let place = if self.primitive(place, Some(&kind)).is_some() { place } else { Place::OfTarget };
        let (inner, _) = self.primitive(place, Some(&kind)).expect("the target has the kind");
        let filter = percent(self.rng, 50).then(|| Box::new(self.leaf(place)));
        let correlation = percent(self.rng, 50).then(|| (inner.clone(), outer.clone()));
        let of_target = place == Place::OfTarget;
        let plain = Subquery { of_target, column: inner, correlation: None, filter };
        let op = *choice(self.rng, &[Op::Eq, Op::NotEq, Op::Lt, Op::LtEq, Op::Gt, Op::GtEq]);
        let condition = match self.rng.u8(..10) {
            0..=4 => Condition::InSubquery(Scalar::Column(outer), plain),
            5..=7 => Condition::Exists(Subquery { correlation, ..plain }),
            8 if kind != Kind::Bool && !matches!(kind, Kind::Binary | Kind::Uuid | Kind::Time) => {
                let aggregate = *choice(self.rng, &[Aggregate::Min, Aggregate::Max]);
                Condition::Compare(op, Scalar::Column(outer), Scalar::Aggregate(aggregate, plain))
            }
            _ => {
                let count = Scalar::Aggregate(Aggregate::Count, Subquery { correlation, ..plain });
                let number = Scalar::Literal(Value::Int(self.rng.i64(..4)), Kind::Long, true);
                Condition::Compare(op, count, number)
            }
        };
        if percent(self.rng, 45) { Condition::Negated(Box::new(condition)) } else { condition }
    }
}

impl Column {
    /// A column of another table with the same values.
    pub(super) fn renamed(&self, name: String, null_percent: u8) -> Self {
        Self { name, null_percent, ..self.clone() }
    }
}
