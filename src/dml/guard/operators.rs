//! Operators whose meaning DataFusion changes on the way.
//!
//! - `x ^ x` and `s ~ '.*'` are simplified to values that are not null where an operand is.
//! - `CASE d WHEN 0.0` and `nullif(d, 0.0)` tell -0.0 from 0.0, which `=` does not.
//! - A double meets a decimal as `DECIMAL(30, 15)`, which has no place for small, great and odd values.
//! - A date plus hours stays a date.
//! - `SIMILAR TO` reads its pattern as a regular expression.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Like, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, ExprSchemable, Operator, lit};

use super::unsupported;
use crate::provider::{as_is, wrap_as_is};

/// Rewrites one node of an expression whose children are done. `writing` refuses what cannot be made right.
pub(super) fn guard_operator(expr: Expr, schema: &DFSchema, writing: bool) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => Ok(guard_binary(binary, schema)),
        Expr::Case(case) => Ok(guard_case(case, schema)),
        Expr::ScalarFunction(function) if function.name() == "nullif" => Ok(guard_nullif(function, schema)),
        Expr::Between(between) => Ok(guard_between(between, schema)),
        Expr::SimilarTo(like) => similar_to(like, writing),
        other => Ok(Transformed::no(other)),
    }
}

fn guard_binary(binary: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let BinaryExpr { left, op, right } = binary;
    match op {
        Operator::BitwiseXor => {
            let is_xor = matches!(left.as_ref(), Expr::BinaryExpr(BinaryExpr { op: Operator::BitwiseXor, .. }));
            let left = if is_xor { as_is(*left) } else { *left };
            let mut right = as_is(*right);
            if left == right {
                right = wrap_as_is(right);
            }
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        Operator::RegexMatch | Operator::RegexIMatch if is_any(&right) => {
            Transformed::yes(left.is_not_null().or(lit(ScalarValue::Boolean(None))))
        }
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => {
            let (left, right, changed) = match meets_decimal(&left, &right, schema) {
                Some(Side::Left) => (to_double(left), right, true),
                Some(Side::Right) => (left, to_double(right), true),
                None => (left, right, false),
            };
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
        }
        Operator::Plus | Operator::Minus => {
            let date = |e: &Expr| matches!(e.get_type(schema), Ok(DataType::Date32 | DataType::Date64));
            if date(&left) && has_hours(&right) {
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: to_timestamp(left), op, right }))
            } else if op == Operator::Plus && date(&right) && has_hours(&left) {
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right: to_timestamp(right) }))
            } else {
                Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

fn is_any(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(value, _) if value.try_as_str().flatten() == Some(".*"))
}

enum Side {
    Left,
    Right,
}

/// Which operand is a decimal that is compared with a double.
fn meets_decimal(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Side> {
    let (l, r) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if l.is_decimal() && r.is_floating() && !fits_decimal(right) {
        Some(Side::Left)
    } else if r.is_decimal() && l.is_floating() && !fits_decimal(left) {
        Some(Side::Right)
    } else {
        None
    }
}

/// Whether a double is a literal that DECIMAL(30, 15) holds exactly enough: what was written with up to 15 places.
fn fits_decimal(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(Some(v))) => v == 0.0 || (v.abs() < 1e15 && v.abs() > 1e-9),
        _ => false,
    }
}

fn to_double(expr: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Cast(Cast::new(expr, DataType::Float64)))
}

fn to_timestamp(expr: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Cast(Cast::new(expr, DataType::Timestamp(TimeUnit::Microsecond, None))))
}

/// Whether an interval literal has a part smaller than a day.
fn has_hours(expr: &Expr) -> bool {
    const DAY: i64 = 86_400_000_000_000;
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(v)), _) => v.nanoseconds % DAY != 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(v)), _) => v.milliseconds % 86_400_000 != 0,
        Expr::Negative(inner) => has_hours(inner),
        _ => false,
    }
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|t| t.is_floating())
}

/// `CASE x WHEN v` as `CASE WHEN x = v`.
fn guard_case(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Case { expr: Some(base), when_then_expr, else_expr } = case else { return Transformed::no(Expr::Case(case)) };
    let floats = is_float(&base, schema) || when_then_expr.iter().any(|(when, _)| is_float(when, schema));
    if !floats || base.is_volatile() {
        return Transformed::no(Expr::Case(Case { expr: Some(base), when_then_expr, else_expr }));
    }
    let when_then_expr =
        when_then_expr.into_iter().map(|(when, then)| (Box::new((*base).clone().eq(*when)), then)).collect();
    Transformed::yes(Expr::Case(Case { expr: None, when_then_expr, else_expr }))
}

/// `nullif(a, b)` as `CASE WHEN a = b THEN NULL ELSE a END`.
fn guard_nullif(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    match function.args.as_slice() {
        [a, b] if (is_float(a, schema) || is_float(b, schema)) && !a.is_volatile() => {
            let when = Box::new(a.clone().eq(b.clone()));
            let null = a.get_type(schema).ok().and_then(|t| ScalarValue::try_new_null(&t).ok());
            let then = Box::new(lit(null.unwrap_or(ScalarValue::Null)));
            Transformed::yes(Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(when, then)],
                else_expr: Some(Box::new(a.clone())),
            }))
        }
        _ => Transformed::no(Expr::ScalarFunction(function)),
    }
}

fn guard_between(between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let Between { expr, negated, low, high } = between;
    let odd = [&low, &high].into_iter().any(|bound| meets_decimal(&expr, bound, schema).is_some());
    if !odd {
        return Transformed::no(Expr::Between(Between { expr, negated, low, high }));
    }
    let double = |e: Box<Expr>| if e.get_type(schema).is_ok_and(|t| t.is_decimal()) { to_double(e) } else { e };
    Transformed::yes(Expr::Between(Between { expr: double(expr), negated, low: double(low), high: double(high) }))
}

fn similar_to(like: Like, writing: bool) -> Result<Transformed<Expr>> {
    let pattern = match like.pattern.as_ref() {
        Expr::Literal(value, _) if value.is_null() => return Ok(Transformed::no(Expr::SimilarTo(like))),
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    };
    // What is anchored was rewritten before.
    if pattern.as_deref().is_some_and(|p| p.starts_with("^(?:")) {
        return Ok(Transformed::no(Expr::SimilarTo(like)));
    }
    let regex = pattern.as_deref().and_then(|p| similar_regex(p, like.escape_char.unwrap_or('\\')));
    match regex {
        Some(regex) => {
            Ok(Transformed::yes(Expr::SimilarTo(Like { pattern: Box::new(lit(regex)), escape_char: None, ..like })))
        }
        None if writing => unsupported(
            "SIMILAR TO with this pattern: DataFusion reads it as a regular expression; write LIKE, or the regular expression \
             with the operator ~",
        ),
        None => Ok(Transformed::no(Expr::SimilarTo(like))),
    }
}

/// The regular expression that an SQL pattern means.
fn similar_regex(pattern: &str, escape: char) -> Option<String> {
    let mut regex = String::from("^(?:");
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c == escape => {
                let next = chars.next()?;
                if !next.is_alphanumeric() {
                    regex.push('\\');
                }
                regex.push(next);
            }
            '[' if !in_class => {
                in_class = true;
                regex.push('[');
            }
            ']' if in_class => {
                in_class = false;
                regex.push(']');
            }
            '^' | '-' if in_class => regex.push(c),
            c if in_class && c.is_alphanumeric() => regex.push(c),
            _ if in_class => return None,
            '%' => regex.push_str("(?s:.*)"),
            '_' => regex.push_str("(?s:.)"),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => regex.push(c),
            '.' | '^' | '$' | '\\' | ']' => {
                regex.push('\\');
                regex.push(c);
            }
            c => regex.push(c),
        }
    }
    regex.push_str(")$");
    (!in_class).then_some(regex)
}

#[cfg(test)]
mod tests {
    use super::similar_regex;

    #[test]
    fn sql_patterns_become_anchored_regular_expressions() {
        assert_eq!(similar_regex("a%_b", '\\').as_deref(), Some("^(?:a(?s:.*)(?s:.)b)$"));
        assert_eq!(similar_regex("(a|b)+.c", '\\').as_deref(), Some("^(?:(a|b)+\\.c)$"));
        assert_eq!(similar_regex("a\\%", '\\').as_deref(), Some("^(?:a\\%)$"));
        assert_eq!(similar_regex("[a-c]x", '\\').as_deref(), Some("^(?:[a-c]x)$"));
        assert_eq!(similar_regex("[a", '\\'), None);
    }
}
