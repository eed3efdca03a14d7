//! Long chains of operators.
//!
//! The parser makes of `a OR b OR c …` a tree as deep as the chain is long. Passes over trees recurse, here and in DataFusion, so
//! that a long chain would end the process, and type coercion takes time by the square of the depth. AND and OR are
//! associative, also in three-valued logic, so their chains become trees of logarithmic depth with the operands in the same
//! order; chains of other operators have a greatest length. This pass runs first and never recurses along a chain.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value, VisitMut, VisitorMut};

use crate::{Error, Result};

/// Operands from which on a chain is rebuilt; shorter ones stay as they were written, and so does what is balanced already.
const LONG: usize = 64;
/// Operators in a row, other than AND and OR, that are taken at most.
const LONGEST: usize = 500;

/// Balances every chain of AND or OR below `node`.
///
/// # Errors
/// `InvalidInput` for a chain of other operators that is too long.
pub(crate) fn balance<N: VisitMut>(node: &mut N) -> Result<()> {
    match node.visit(&mut Balance) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Balance;

impl VisitorMut for Balance {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some(op) = logical(expr) {
            let length = spine(expr, |e| logical(e).as_ref() == Some(&op));
            if length >= LONG {
                let operands = take_operands(expr, length);
                if let Some(balanced) = join(&op, operands) {
                    *expr = balanced;
                }
            }
            return ControlFlow::Continue(());
        }
        if spine(expr, |e| logical(e).is_none()) <= LONGEST {
            return ControlFlow::Continue(());
        }
        // Dropped as a whole it would be dropped recursively.
        take_operands(expr, usize::MAX);
        ControlFlow::Break(Error::invalid_input(format!(
            "an expression has more than {LONGEST} operators in a row; put parts of it in parentheses, or use IN (…) or a table of the values"
        )))
    }
}

fn logical(expr: &Expr) -> Option<BinaryOperator> {
    match expr {
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => Some(op.clone()),
        _ => None,
    }
}

/// How many operators, each the left operand of the one before, begin at `expr` and satisfy `counted`.
fn spine(expr: &Expr, counted: impl Fn(&Expr) -> bool) -> usize {
    let (mut length, mut at) = (0, expr);
    while counted(at) {
        let Some(left) = left(at) else { break };
        length += 1;
        at = left;
    }
    length
}

/// The left operand of what the parser builds in a loop.
fn left(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::IsDistinctFrom(left, _) | Expr::IsNotDistinctFrom(left, _) => Some(left),
        Expr::IsNull(e)
        | Expr::IsNotNull(e)
        | Expr::IsTrue(e)
        | Expr::IsNotTrue(e)
        | Expr::IsFalse(e)
        | Expr::IsNotFalse(e)
        | Expr::IsUnknown(e)
        | Expr::IsNotUnknown(e) => Some(e),
        Expr::Cast { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Collate { expr, .. } => Some(expr),
        Expr::AtTimeZone { timestamp, .. } => Some(timestamp),
        _ => None,
    }
}

fn left_mut(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::IsDistinctFrom(left, _) | Expr::IsNotDistinctFrom(left, _) => Some(left),
        Expr::IsNull(e)
        | Expr::IsNotNull(e)
        | Expr::IsTrue(e)
        | Expr::IsNotTrue(e)
        | Expr::IsFalse(e)
        | Expr::IsNotFalse(e)
        | Expr::IsUnknown(e)
        | Expr::IsNotUnknown(e) => Some(e),
        Expr::Cast { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Collate { expr, .. } => Some(expr),
        Expr::AtTimeZone { timestamp, .. } => Some(timestamp),
        _ => None,
    }
}

/// Takes `length` operators of the chain at `expr` apart, without recursion: the leftmost operand, then the right ones in order.
/// Of operators that are not binary the right operands are dropped.
fn take_operands(expr: &mut Expr, length: usize) -> Vec<Expr> {
    let mut operands = Vec::new();
    let mut rest = std::mem::replace(expr, placeholder());
    for _ in 0..length {
        let Some(left) = left_mut(&mut rest) else { break };
        let left = std::mem::replace(left, placeholder());
        if let Expr::BinaryOp { right, .. } = std::mem::replace(&mut rest, left) {
            operands.push(*right);
        }
    }
    operands.push(rest);
    operands.reverse();
    operands
}

/// A balanced tree of the operands; `None` of none.
fn join(op: &BinaryOperator, mut operands: Vec<Expr>) -> Option<Expr> {
    while operands.len() > 1 {
        let mut joined = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) },
                None => left,
            });
        }
        operands = joined;
    }
    operands.pop()
}

fn placeholder() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn balanced(sql: &str) -> Result<Expr> {
        let mut expr = Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap().parse_expr().unwrap();
        balance(&mut expr).map(|()| expr)
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                1 + depth(left).max(depth(right))
            }
            _ => 0,
        }
    }

    /// Its operands, left to right.
    fn operands(expr: &Expr) -> Vec<String> {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                operands(left).into_iter().chain(operands(right)).collect()
            }
            other => vec![other.to_string()],
        }
    }

    #[test]
    fn chains_become_shallow_and_keep_their_order() {
        for (op, count) in [("OR", 100_000_usize), ("AND", 3_000), ("OR", 65)] {
            let terms: Vec<String> = (0..count).map(|i| format!("a = {i}")).collect();
            let expr = balanced(&terms.join(&format!(" {op} "))).unwrap();
            assert!(depth(&expr) <= count.ilog2() as usize + 1, "{count}: {}", depth(&expr));
            assert_eq!(operands(&expr), terms);
        }
    }

    #[test]
    fn precedence_and_parentheses_stay() {
        let terms: Vec<String> = (0..90).map(|i| format!("a = {i} AND (b = 1 OR b = 2)")).collect();
        let expr = balanced(&terms.join(" OR ")).unwrap();
        let mut ands = Vec::new();
        let mut open = vec![&expr];
        while let Some(e) = open.pop() {
            match e {
                Expr::BinaryOp { left, op: BinaryOperator::Or, right } => open.extend([&**right, &**left]),
                other => ands.push(other.to_string()),
            }
        }
        assert_eq!(ands, terms);
        let short = "a OR b AND c OR d";
        assert_eq!(balanced(short).unwrap().to_string(), short);
    }

    #[test]
    fn other_chains_are_bounded() {
        assert!(balanced(&vec!["a"; 400].join(" + ")).is_ok());
        for (first, link) in [
            ("a", " + a"),
            ("a", " || a"),
            ("a", " IS NULL"),
            ("a", "::INT"),
            ("a", " = a"),
            ("a", " IS DISTINCT FROM a"),
        ] {
            for count in [501, 50_000] {
                let sql = format!("b OR ({first}{} = 1)", link.repeat(count));
                let Ok(mut parser) = Parser::new(&GenericDialect {}).try_with_sql(&sql) else { continue };
                // What the parser itself finds too deep does not get here.
                let Ok(mut expr) = parser.parse_expr() else { continue };
                let error = balance(&mut expr).unwrap_err().to_string();
                assert!(error.contains("operators in a row"), "{link}: {error}");
            }
        }
    }
}
