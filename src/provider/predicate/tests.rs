//! Predicates against DataFusion's own evaluation of the expressions they were made from.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionContext;

use super::*;
use crate::spec::Type;
use crate::writer;

fn schema() -> Schema {
    let field = |id, name: &str, ty| NestedField::new(id, name, false, Type::Primitive(ty));
    Schema::new(
        0,
        vec![
            field(1, "i", PrimitiveType::Int),
            field(2, "l", PrimitiveType::Long),
            field(3, "d", PrimitiveType::Double),
            field(4, "s", PrimitiveType::String),
            field(5, "b", PrimitiveType::Boolean),
            field(6, "m", PrimitiveType::Decimal { precision: 9, scale: 2 }),
            field(7, "da", PrimitiveType::Date),
            field(8, "ts", PrimitiveType::Timestamp),
        ],
    )
}

/// Every column takes each of its values, null first, in step with the others.
fn rows() -> RecordBatch {
    let n = 12;
    let pick = |i: usize, len: usize| (i % (len + 1)).checked_sub(1);
    let i = [-1, 0, 3, 7, i32::MAX];
    let l = [i64::MIN, 3, 5_000_000_000, 7];
    let d = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -3.0];
    let s = ["", "a", "ab", "abc", "b%"];
    let m = [0, 150, -150, 999_999_999];
    let da = [0, 19_723, -1];
    let ts = [0, 1_704_067_200_000_000, -1];
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..n).map(|r| pick(r, i.len()).map(|k| i[k])).collect::<Int32Array>()),
        Arc::new((0..n).map(|r| pick(r + 1, l.len()).map(|k| l[k])).collect::<Int64Array>()),
        Arc::new((0..n).map(|r| pick(r + 2, d.len()).map(|k| d[k])).collect::<Float64Array>()),
        Arc::new((0..n).map(|r| pick(r + 3, s.len()).map(|k| s[k])).collect::<StringArray>()),
        Arc::new((0..n).map(|r| pick(r, 2).map(|k| k == 1)).collect::<BooleanArray>()),
        Arc::new(
            (0..n)
                .map(|r| pick(r, m.len()).map(|k| m[k]))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(9, 2)
                .unwrap(),
        ),
        Arc::new((0..n).map(|r| pick(r + 1, da.len()).map(|k| da[k])).collect::<Date32Array>()),
        Arc::new((0..n).map(|r| pick(r + 2, ts.len()).map(|k| ts[k])).collect::<TimestampMicrosecondArray>()),
    ];
    RecordBatch::try_new(writer::arrow_schema(&schema()).unwrap(), columns).unwrap()
}

struct Fixture {
    ctx: SessionContext,
    schema: Schema,
    df_schema: DFSchema,
    rows: RecordBatch,
}

impl Fixture {
    fn new() -> Self {
        let rows = rows();
        let df_schema = DFSchema::try_from(rows.schema()).unwrap();
        Self { ctx: SessionContext::new(), schema: schema(), df_schema, rows }
    }

    fn expr(&self, sql: &str) -> Expr {
        let parsed = self.ctx.parse_sql_expr(sql, &self.df_schema).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let context = SimplifyContext::builder().with_schema(Arc::new(self.df_schema.clone())).build();
        ExprSimplifier::new(context).coerce(parsed, &self.df_schema).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    fn predicate(&self, sql: &str) -> Predicate {
        to_predicate(&self.expr(sql), &self.schema)
    }

    /// Compares row by row; returns how many rows the predicate decided.
    fn check(&self, sql: &str) -> usize {
        let expr = self.expr(sql);
        let predicate = to_predicate(&expr, &self.schema);
        let physical = self.ctx.create_physical_expr(expr, &self.df_schema).unwrap();
        let result = physical.evaluate(&self.rows).unwrap().into_array(self.rows.num_rows()).unwrap();
        let mut decided = 0;
        for row in 0..self.rows.num_rows() {
            let value = |id: i32| {
                let index = self.schema.top_level_index_of(id).unwrap();
                let scalar = ScalarValue::try_from_array(self.rows.column(index), row).unwrap();
                let ty = self.schema.fields.fields[index].field_type.as_primitive().unwrap();
                to_literal(&scalar, ty)
            };
            let actual = ScalarValue::try_from_array(&result, row).unwrap() == ScalarValue::Boolean(Some(true));
            if let Some(expected) = predicate.matches_row(&value) {
                assert_eq!(actual, expected, "{sql} as {predicate:?} in row {row}");
                decided += 1;
            }
        }
        decided
    }
}

const LEAVES: &[&str] = &[
    "i = 3",
    "i <> 3",
    "7 < i",
    "i <= -1",
    "i > 2147483646",
    "l = 3",
    "l >= 5000000000",
    "i = 3.5",
    "CAST(i AS BIGINT) = 7",
    "TRY_CAST(l AS INT) = 7",
    "d = 0.0",
    "d > 100.0",
    "d <> 1.5",
    "d < -0.0",
    "d = 'NaN'::double",
    "isnan(d)",
    "NOT isnan(d)",
    "d IS NULL",
    "s LIKE 'ab%'",
    "s NOT LIKE 'ab%'",
    "s LIKE 'ab'",
    "s LIKE '%b'",
    "s LIKE 'a_'",
    "s LIKE 'b\\%'",
    "s ILIKE 'A%'",
    "s LIKE '%'",
    "starts_with(s, 'a')",
    "s >= 'ab'",
    "s = ''",
    "b",
    "NOT b",
    "b = true",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "b IS NOT FALSE",
    "b IS UNKNOWN",
    "b IS NOT UNKNOWN",
    "b IS NULL",
    "i IN (3, 7)",
    "i NOT IN (3, 7)",
    "i IN (3, NULL)",
    "i NOT IN (3, NULL)",
    "s IN ('a', 'b%')",
    "i IN (3, l)",
    "l BETWEEN 3 AND 7",
    "l NOT BETWEEN 3 AND 7",
    "m = 1.5",
    "m < 0",
    "m = 1.555",
    "da = DATE '2024-01-01'",
    "da < '1970-01-01'",
    "ts >= TIMESTAMP '2024-01-01T00:00:00'",
    "ts < DATE '1970-01-01'",
    "da < TIMESTAMP '1970-01-01T00:00:00'",
    "i IS DISTINCT FROM 3",
    "i IS NOT DISTINCT FROM 3",
    "i IS DISTINCT FROM NULL",
    "i IS NOT DISTINCT FROM NULL",
    "i = NULL",
    "i IS NOT NULL",
    "i = l",
    "i + 1 = 4",
    "(i = 3) IS NULL",
    "(i = 3 OR b) IS NOT NULL",
    "(l > 3) IS NOT TRUE",
    "(s LIKE 'a%') IS FALSE",
    "true",
    "false",
    "NULL",
    "CASE WHEN i = 3 THEN true ELSE b END",
];

#[test]
fn every_form_agrees_with_datafusion() {
    let fixture = Fixture::new();
    let undecided: Vec<&str> = LEAVES.iter().copied().filter(|sql| fixture.check(sql) == 0).collect();
    // What has no exact counterpart; anything else is to be decided for every row.
    assert_eq!(
        undecided,
        [
            "i = 3.5",
            "TRY_CAST(l AS INT) = 7",
            "s LIKE '%b'",
            "s LIKE 'a_'",
            "s LIKE 'b\\%'",
            "s ILIKE 'A%'",
            "i IN (3, l)",
            "m = 1.555",
            "i = l",
            "i + 1 = 4",
            "CASE WHEN i = 3 THEN true ELSE b END",
        ]
    );
}

#[test]
fn random_combinations_agree_with_datafusion() {
    let fixture = Fixture::new();
    let mut rng = fastrand::Rng::with_seed(7);
    fn combine(rng: &mut fastrand::Rng, depth: usize) -> String {
        if depth == 0 {
            return format!("({})", LEAVES[rng.usize(..LEAVES.len())]);
        }
        let a = combine(rng, depth - 1);
        match rng.u8(0..7) {
            0 => format!("(NOT {a})"),
            1 => format!("({a} IS NOT TRUE)"),
            2 => format!("({a} IS UNKNOWN)"),
            3 | 4 => format!("({a} AND {})", combine(rng, depth - 1)),
            _ => format!("({a} OR {})", combine(rng, depth - 1)),
        }
    }
    let mut decided = 0;
    for round in 0..400 {
        decided += fixture.check(&combine(&mut rng, 1 + round % 3));
    }
    assert!(decided > 1000, "{decided}");
}

#[test]
fn other_columns_are_unknown() {
    let fixture = Fixture::new();
    let of = |name: &str| Expr::Column(Column::from_name(name));
    let expr = of("_file").eq(datafusion::logical_expr::lit("x"));
    assert_eq!(to_predicate(&expr, &fixture.schema), Predicate::Unknown);
    assert_eq!(
        fixture.predicate("i = 3 AND s LIKE '%x'"),
        Predicate::And(vec![Predicate::leaf(1, LeafOp::Eq(Literal::Int(3))), Predicate::Unknown,])
    );
}

#[test]
fn long_chains_do_not_recurse() {
    let fixture = Fixture::new();
    let term = fixture.expr("i = 3");
    let chain = (0..50_000).fold(term.clone(), |chain, _| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(chain), op: Operator::Or, right: Box::new(term.clone()) })
    });
    let predicate = to_predicate(&chain, &fixture.schema);
    assert!(matches!(predicate, Predicate::Or(parts) if parts.len() == 50_001));
    // Dropping the chain would recurse.
    std::mem::forget(chain);
}
