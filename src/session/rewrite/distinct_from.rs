//! Precedence of `IS [NOT] DISTINCT FROM`.
//!
//! The parser reads its right operand with the lowest precedence, so `a IS DISTINCT FROM b OR c` comes out as
//! `a IS DISTINCT FROM (b OR c)`. This pass rebuilds what SQL means, as PostgreSQL binds: tighter than NOT, AND and OR, looser
//! than comparisons, LIKE, IN and BETWEEN, left-associative with the other IS tests. Parentheses are kept by the parser as a
//! node of their own, so what they enclose is never touched. Invariant: afterwards no operator without parentheses holds
//! an operand that binds looser.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut};

/// Repairs every expression below `node`, and marks the right operands that are meant as they stand.
pub(crate) fn repair<N: VisitMut>(node: &mut N) {
    reassociate(node);
    let ControlFlow::Continue(()) = node.visit(&mut Mark);
}

fn reassociate<N: VisitMut>(node: &mut N) {
    let ControlFlow::Continue(()) = node.visit(&mut Repair);
}

/// Writes `a IS DISTINCT FROM (b OR c)` as `a IS DISTINCT FROM NOT NOT (b OR c)`: a plan knows no parentheses, and one with AND
/// or OR there is refused for a writing statement, since it may come from a tree that was not repaired.
struct Mark;

impl VisitorMut for Mark {
    type Break = std::convert::Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) = expr
            && matches!(right.as_ref(), Expr::Nested(inner) if binding(unnested(inner)).is_some_and(|b| b != NOT))
        {
            let inner = std::mem::replace(right.as_mut(), placeholder());
            let not = |e: Expr| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(e) };
            **right = not(not(inner));
        }
        ControlFlow::Continue(())
    }
}

fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}

struct Repair;

impl VisitorMut for Repair {
    type Break = std::convert::Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        // operands are done already, so one lift brings the loosest operator below to its place
        if let Some(own) = right_binding(expr) {
            lift(expr, own);
        }
        ControlFlow::Continue(())
    }
}

const OR: u8 = 5;
const AND: u8 = 10;
const NOT: u8 = 15;
const IS: u8 = 17;

/// How tight the operator at the top of `expr` binds; `None` for what cannot be split (leaves, calls, parentheses, and
/// every operator tighter than IS).
fn binding(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => Some(OR),
        Expr::BinaryOp { op: BinaryOperator::And, .. } => Some(AND),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => Some(NOT),
        Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => Some(IS),
        _ => None,
    }
}

/// The binding of `expr` if it has an operand at its right end.
fn right_binding(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or | BinaryOperator::And, .. }
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..) => binding(expr),
        _ => None,
    }
}

fn right_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { right, .. } => Some(right),
        Expr::UnaryOp { expr, .. } => Some(expr),
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => Some(right),
        _ => None,
    }
}

/// The operand at the left end of `expr`, or `expr` itself when there is none that could be split off.
fn left_operand(expr: &mut Expr) -> Result<&mut Expr, &mut Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Or | BinaryOperator::And, .. } => Ok(left),
        Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _)
        | Expr::IsNull(left)
        | Expr::IsNotNull(left)
        | Expr::IsTrue(left)
        | Expr::IsNotTrue(left)
        | Expr::IsFalse(left)
        | Expr::IsNotFalse(left)
        | Expr::IsUnknown(left)
        | Expr::IsNotUnknown(left) => Ok(left),
        other => Err(other),
    }
}

/// Whether an operator of binding `own` may not hold `operand` at its right end without parentheses. An IS is
/// left-associative: it may not hold another one; AND and OR may hold their own kind, which means the same.
fn is_too_loose(own: u8, operand: &Expr) -> bool {
    match binding(operand) {
        // a prefix NOT has no left end to fall off at
        Some(NOT) => false,
        Some(theirs) if own == IS => theirs <= IS,
        Some(theirs) => theirs < own,
        None => false,
    }
}

/// If the right operand R of `expr` binds looser, puts `expr` with R's leftmost tight part in that part's place and R at
/// the top: `x IS DISTINCT FROM (y AND z)` becomes `(x IS DISTINCT FROM y) AND z`.
fn lift(expr: &mut Expr, own: u8) {
    let Some(operand) = right_operand(expr) else { return };
    if !is_too_loose(own, operand) {
        return;
    }
    let mut top = std::mem::replace(operand, placeholder());
    let mut hole = &mut top;
    while is_too_loose(own, hole) {
        match left_operand(hole) {
            Ok(left) => hole = left,
            Err(end) => {
                hole = end;
                break;
            }
        }
    }
    let tight = std::mem::replace(hole, placeholder());
    if let Some(operand) = right_operand(expr) {
        *operand = tight;
    }
    *hole = std::mem::replace(expr, placeholder());
    *expr = top;
}

fn placeholder() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn parse(sql: &str) -> Expr {
        Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap().parse_expr().unwrap()
    }

    /// The tree with one pair of parentheses around each operator.
    fn shape(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", shape(left), shape(right)),
            Expr::UnaryOp { op, expr } => format!("({op} {})", shape(expr)),
            Expr::IsDistinctFrom(l, r) => format!("({} IDF {})", shape(l), shape(r)),
            Expr::IsNotDistinctFrom(l, r) => format!("({} INDF {})", shape(l), shape(r)),
            Expr::IsNull(e) => format!("({} ISN)", shape(e)),
            Expr::IsNotTrue(e) => format!("({} INT)", shape(e)),
            Expr::Nested(e) => format!("[{}]", shape(e)),
            other => other.to_string(),
        }
    }

    fn repaired(sql: &str) -> String {
        let mut expr = parse(sql);
        reassociate(&mut expr);
        shape(&expr)
    }

    #[test]
    fn binds_tighter_than_and_or_not() {
        for (sql, expected) in [
            ("a IS DISTINCT FROM b OR c", "((a IDF b) OR c)"),
            ("a IS NOT DISTINCT FROM b AND c", "((a INDF b) AND c)"),
            ("p AND a IS DISTINCT FROM b OR c", "((p AND (a IDF b)) OR c)"),
            ("p OR a IS DISTINCT FROM b AND c", "(p OR ((a IDF b) AND c))"),
            ("a IS DISTINCT FROM b AND c OR d", "(((a IDF b) AND c) OR d)"),
            ("a IS DISTINCT FROM b OR c AND d", "((a IDF b) OR (c AND d))"),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a IDF b)) AND c)"),
            ("NOT NOT a IS DISTINCT FROM b OR c", "((NOT (NOT (a IDF b))) OR c)"),
            ("a IS DISTINCT FROM NOT b AND c", "((a IDF (NOT b)) AND c)"),
            ("a IS NOT DISTINCT FROM b AND c IS NOT DISTINCT FROM d AND e", "(((a INDF b) AND (c INDF d)) AND e)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e IS DISTINCT FROM f AND g",
                "(((a IDF b) AND (c IDF d)) OR ((e IDF f) AND g))",
            ),
        ] {
            // the shape of AND chains is right-leaning out of the parser's fault; only binding matters there
            let got = repaired(sql);
            let chain = expected.contains(") AND e)");
            if chain {
                assert_eq!(got.replace(['(', ')'], ""), expected.replace(['(', ')'], ""), "{sql}: {got}");
                assert!(got.contains("(a INDF b)") && got.contains("(c INDF d)"), "{got}");
            } else {
                assert_eq!(got, expected, "{sql}");
            }
        }
    }

    #[test]
    fn chains_with_other_is_tests_are_left_associative() {
        assert_eq!(repaired("a IS DISTINCT FROM b IS NULL"), "((a IDF b) ISN)");
        assert_eq!(repaired("a IS DISTINCT FROM b IS NOT TRUE OR c"), "(((a IDF b) INT) OR c)");
        assert_eq!(repaired("a IS DISTINCT FROM b IS DISTINCT FROM c OR d"), "(((a IDF b) IDF c) OR d)");
    }

    #[test]
    fn tighter_operators_and_parentheses_stay() {
        assert_eq!(repaired("a IS DISTINCT FROM b = c"), "(a IDF (b = c))");
        assert_eq!(repaired("a IS DISTINCT FROM b + 1 OR c"), "((a IDF (b + 1)) OR c)");
        assert_eq!(repaired("a IS DISTINCT FROM (b OR c)"), "(a IDF [(b OR c)])");
        assert_eq!(
            repaired("a IS DISTINCT FROM (b IS DISTINCT FROM c AND d) OR e"),
            "((a IDF [((b IDF c) AND d)]) OR e)"
        );
        assert_eq!(repaired("a IS DISTINCT FROM b BETWEEN 1 AND 2 OR c"), "((a IDF b BETWEEN 1 AND 2) OR c)");
        assert_eq!(repaired("a OR b AND NOT c"), "(a OR (b AND (NOT c)))");
    }

    #[test]
    fn reaches_subqueries_joins_and_case() {
        let sql = "SELECT CASE WHEN a IS DISTINCT FROM b OR c THEN 1 END FROM t JOIN s ON t.a IS NOT DISTINCT FROM s.a AND t.k = s.k \
                   WHERE EXISTS (SELECT 1 FROM u WHERE x IS DISTINCT FROM y AND z)";
        let mut statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap();
        reassociate(&mut statements);
        let expected = "SELECT CASE WHEN (a IS DISTINCT FROM b) OR c THEN 1 END FROM t JOIN s ON (t.a IS NOT DISTINCT FROM s.a) AND \
                        t.k = s.k WHERE EXISTS (SELECT 1 FROM u WHERE (x IS DISTINCT FROM y) AND z)";
        let mut wanted = Parser::parse_sql(&GenericDialect {}, expected).unwrap();
        strip(&mut wanted);
        assert_eq!(statements, wanted);
    }

    /// Takes parentheses out, to compare trees.
    fn strip(statements: &mut Vec<datafusion::sql::sqlparser::ast::Statement>) {
        struct Strip;
        impl VisitorMut for Strip {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Nested(inner) = expr {
                    *expr = (**inner).clone();
                }
                ControlFlow::Continue(())
            }
        }
        let _ = statements.visit(&mut Strip);
    }
}
