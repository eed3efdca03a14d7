//! DataFusion expressions as [`Predicate`]s, for leaving out files.
//!
//! SQL's three truth values are kept apart: an expression has a set of rows where it is true, one where it is false and
//! one where it is null, and each is converted on its own, so that no negation is ever taken of a set. What has no exact
//! counterpart becomes [`Predicate::Unknown`].

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};

use super::as_is_argument;
use super::scalar::to_literal;
use crate::expr::{LeafOp, Predicate};
use crate::spec::{Literal, NestedField, PrimitiveType, Schema};

/// The rows of a table with `schema` for which `expr` is true.
///
/// Columns are matched by name; the hidden columns, columns of other tables and nested fields give
/// [`Predicate::Unknown`]. The expression should have gone through type coercion; a literal whose type differs from its
/// column's is taken only if its value is the same in both.
pub fn to_predicate(expr: &Expr, schema: &Schema) -> Predicate {
    Converter { schema }.rows(expr, Truth::True)
}

/// The rows for which all of `exprs` are true.
pub fn to_conjunction<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &Schema) -> Predicate {
    Predicate::and(exprs.into_iter().map(|e| to_predicate(e, schema)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Null,
}

struct Converter<'a> {
    schema: &'a Schema,
}

impl Converter<'_> {
    /// The rows for which `expr` is `truth`.
    fn rows(&self, expr: &Expr, truth: Truth) -> Predicate {
        if let Some(inner) = as_is_argument(expr) {
            return self.rows(inner, truth);
        }
        match expr {
            Expr::Alias(alias) => self.rows(&alias.expr, truth),
            Expr::Literal(ScalarValue::Boolean(value), _) => {
                let is = match value {
                    Some(true) => Truth::True,
                    Some(false) => Truth::False,
                    None => Truth::Null,
                };
                constant(is == truth)
            }
            Expr::Literal(value, _) if value.is_null() => constant(truth == Truth::Null),
            Expr::Column(column) => match self.primitive(column) {
                Some((field, PrimitiveType::Boolean)) => match truth {
                    Truth::True => leaf(field, LeafOp::Eq(Literal::Boolean(true))),
                    Truth::False => leaf(field, LeafOp::Eq(Literal::Boolean(false))),
                    Truth::Null => leaf(field, LeafOp::IsNull),
                },
                _ => Predicate::Unknown,
            },
            Expr::Not(inner) => self.rows(
                inner,
                match truth {
                    Truth::True => Truth::False,
                    Truth::False => Truth::True,
                    Truth::Null => Truth::Null,
                },
            ),
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                self.connective(&operands(expr, *op), *op, truth)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.comparison(left, *op, right, truth),
            Expr::IsNull(inner) => self.is_null(inner, truth),
            Expr::IsNotNull(inner) => self.is_null(inner, opposite(truth)),
            Expr::IsTrue(inner) => self.is(inner, &[Truth::True], truth),
            Expr::IsNotTrue(inner) => self.is(inner, &[Truth::False, Truth::Null], truth),
            Expr::IsFalse(inner) => self.is(inner, &[Truth::False], truth),
            Expr::IsNotFalse(inner) => self.is(inner, &[Truth::True, Truth::Null], truth),
            Expr::IsUnknown(inner) => self.is(inner, &[Truth::Null], truth),
            Expr::IsNotUnknown(inner) => self.is(inner, &[Truth::True, Truth::False], truth),
            Expr::Between(Between { expr, negated, low, high }) => {
                let truth = if *negated { opposite(truth) } else { truth };
                let parts = [(Operator::GtEq, low), (Operator::LtEq, high)]
                    .map(|(op, bound)| BinaryExpr { left: expr.clone(), op, right: bound.clone() })
                    .map(Expr::BinaryExpr);
                self.connective(&parts.iter().collect::<Vec<_>>(), Operator::And, truth)
            }
            Expr::InList(list) => self.in_list(list, truth),
            Expr::Like(like) => self.like(like, truth),
            Expr::ScalarFunction(function) => self.function(function, truth),
            _ => Predicate::Unknown,
        }
    }

    fn connective(&self, operands: &[&Expr], op: Operator, truth: Truth) -> Predicate {
        let all = |truth: Truth| -> Vec<Predicate> { operands.iter().map(|e| self.rows(e, truth)).collect() };
        // AND is false where one operand is, and OR true where one is.
        let deciding = if op == Operator::And { Truth::False } else { Truth::True };
        match truth {
            Truth::Null => {
                let undecided = operands
                    .iter()
                    .map(|e| Predicate::or(vec![self.rows(e, opposite(deciding)), self.rows(e, Truth::Null)]));
                Predicate::and(undecided.chain([Predicate::or(all(Truth::Null))]))
            }
            t if t == deciding => Predicate::or(all(t)),
            t => Predicate::and(all(t)),
        }
    }

    /// `inner IS` one of `wanted`, which is never null itself.
    fn is(&self, inner: &Expr, wanted: &[Truth], truth: Truth) -> Predicate {
        let rows = |pick: bool| {
            let truths = [Truth::True, Truth::False, Truth::Null].into_iter().filter(|t| wanted.contains(t) == pick);
            Predicate::or(truths.map(|t| self.rows(inner, t)))
        };
        match truth {
            Truth::True => rows(true),
            Truth::False => rows(false),
            Truth::Null => Predicate::AlwaysFalse,
        }
    }

    fn is_null(&self, inner: &Expr, truth: Truth) -> Predicate {
        if truth == Truth::Null {
            return Predicate::AlwaysFalse;
        }
        let op = if truth == Truth::True { LeafOp::IsNull } else { LeafOp::NotNull };
        match inner {
            Expr::Alias(alias) => self.is_null(&alias.expr, truth),
            Expr::Column(column) => self.field(column).map_or(Predicate::Unknown, |f| leaf(f, op)),
            Expr::Literal(value, _) => constant(value.is_null() == (truth == Truth::True)),
            _ => match self.operand(inner) {
                Some((field, _)) => leaf(field, op),
                None => match truth {
                    // Only of boolean expressions is it known where they are null.
                    Truth::True if is_boolean(inner) => self.rows(inner, Truth::Null),
                    _ if is_boolean(inner) => {
                        Predicate::or(vec![self.rows(inner, Truth::True), self.rows(inner, Truth::False)])
                    }
                    _ => Predicate::Unknown,
                },
            },
        }
    }

    fn comparison(&self, left: &Expr, op: Operator, right: &Expr, truth: Truth) -> Predicate {
        let (operand, op, value) = match (constant_value(left), constant_value(right)) {
            (None, Some(value)) => (left, op, value),
            (Some(value), None) => match op.swap() {
                Some(op) => (right, op, value),
                None => return Predicate::Unknown,
            },
            _ => return Predicate::Unknown,
        };
        let distinct = match op {
            Operator::IsDistinctFrom => Some(true),
            Operator::IsNotDistinctFrom => Some(false),
            _ => None,
        };
        if let Some(distinct) = distinct {
            return self.distinct(operand, &value, if distinct { truth } else { opposite(truth) });
        }
        type Test = fn(Literal) -> LeafOp;
        let (holds, fails): (Test, Test) = match op {
            Operator::Eq => (LeafOp::Eq, LeafOp::NotEq),
            Operator::NotEq => (LeafOp::NotEq, LeafOp::Eq),
            Operator::Lt => (LeafOp::Lt, LeafOp::GtEq),
            Operator::LtEq => (LeafOp::LtEq, LeafOp::Gt),
            Operator::Gt => (LeafOp::Gt, LeafOp::LtEq),
            Operator::GtEq => (LeafOp::GtEq, LeafOp::Lt),
            _ => return Predicate::Unknown,
        };
        if value.is_null() {
            return constant(truth == Truth::Null);
        }
        let Some((field, ty)) = self.operand(operand) else {
            return Predicate::Unknown;
        };
        if truth == Truth::Null {
            return leaf(field, LeafOp::IsNull);
        }
        match to_literal(&value, ty) {
            Some(literal) if truth == Truth::True => leaf(field, holds(literal)),
            Some(literal) => leaf(field, fails(literal)),
            None => Predicate::Unknown,
        }
    }

    /// The rows for which `operand IS DISTINCT FROM value` is `truth`.
    fn distinct(&self, operand: &Expr, value: &ScalarValue, truth: Truth) -> Predicate {
        if truth == Truth::Null {
            return Predicate::AlwaysFalse;
        }
        let Some((field, ty)) = self.operand(operand) else {
            return Predicate::Unknown;
        };
        if value.is_null() {
            return leaf(field, if truth == Truth::True { LeafOp::NotNull } else { LeafOp::IsNull });
        }
        match to_literal(value, ty) {
            None => Predicate::Unknown,
            Some(literal) if truth == Truth::True => {
                Predicate::or(vec![leaf(field, LeafOp::NotEq(literal)), leaf(field, LeafOp::IsNull)])
            }
            Some(literal) => leaf(field, LeafOp::Eq(literal)),
        }
    }

    fn in_list(&self, InList { expr, list, negated }: &InList, truth: Truth) -> Predicate {
        let truth = if *negated { opposite(truth) } else { truth };
        let (Some((field, ty)), false) = (self.operand(expr), list.is_empty()) else {
            return Predicate::Unknown;
        };
        let mut has_null = false;
        let mut literals = Vec::with_capacity(list.len());
        for item in list {
            match constant_value(item) {
                Some(value) if value.is_null() => has_null = true,
                Some(value) => match to_literal(&value, ty) {
                    Some(literal) => literals.push(literal),
                    None => return Predicate::Unknown,
                },
                None => return Predicate::Unknown,
            }
        }
        let contained = |literals: Vec<Literal>| match literals.is_empty() {
            true => Predicate::AlwaysFalse,
            false => leaf(field, LeafOp::In(literals)),
        };
        let absent = |literals: Vec<Literal>| match literals.is_empty() {
            true => leaf(field, LeafOp::NotNull),
            false => leaf(field, LeafOp::NotIn(literals)),
        };
        // A value that is not in a list with a null may or may not be: null, neither true nor false.
        match (truth, has_null) {
            (Truth::True, _) => contained(literals),
            (Truth::False, false) => absent(literals),
            (Truth::False, true) => Predicate::AlwaysFalse,
            (Truth::Null, false) => leaf(field, LeafOp::IsNull),
            (Truth::Null, true) => Predicate::or(vec![leaf(field, LeafOp::IsNull), absent(literals)]),
        }
    }

    fn like(&self, like: &Like, truth: Truth) -> Predicate {
        let truth = if like.negated { opposite(truth) } else { truth };
        let (Some((field, PrimitiveType::String)), Some(pattern), None, false) =
            (self.operand(&like.expr), constant_value(&like.pattern), like.escape_char, like.case_insensitive)
        else {
            return Predicate::Unknown;
        };
        let Some(Some(pattern)) = pattern.try_as_str() else {
            return if pattern.is_null() { constant(truth == Truth::Null) } else { Predicate::Unknown };
        };
        let (prefix, open_ended) = match pattern.strip_suffix('%') {
            Some(prefix) => (prefix.trim_end_matches('%'), true),
            None => (pattern, false),
        };
        if prefix.contains(['%', '_', '\\']) {
            return if truth == Truth::Null { leaf(field, LeafOp::IsNull) } else { Predicate::Unknown };
        }
        let text = prefix.to_owned();
        match (truth, open_ended) {
            (Truth::Null, _) => leaf(field, LeafOp::IsNull),
            (Truth::True, true) => leaf(field, LeafOp::StartsWith(text)),
            (Truth::False, true) => leaf(field, LeafOp::NotStartsWith(text)),
            (Truth::True, false) => leaf(field, LeafOp::Eq(Literal::String(text))),
            (Truth::False, false) => leaf(field, LeafOp::NotEq(Literal::String(text))),
        }
    }

    fn function(&self, function: &ScalarFunction, truth: Truth) -> Predicate {
        match (function.name(), function.args.as_slice()) {
            ("isnan", [argument]) => match (self.operand(argument), truth) {
                (Some((field, PrimitiveType::Float | PrimitiveType::Double)), Truth::True) => {
                    leaf(field, LeafOp::IsNan)
                }
                (Some((field, PrimitiveType::Float | PrimitiveType::Double)), Truth::False) => {
                    leaf(field, LeafOp::NotNan)
                }
                (Some((field, PrimitiveType::Float | PrimitiveType::Double)), Truth::Null) => {
                    leaf(field, LeafOp::IsNull)
                }
                _ => Predicate::Unknown,
            },
            ("starts_with", [text, prefix]) => {
                let (Some((field, PrimitiveType::String)), Some(prefix)) = (self.operand(text), constant_value(prefix))
                else {
                    return Predicate::Unknown;
                };
                let Some(Some(prefix)) = prefix.try_as_str() else {
                    return Predicate::Unknown;
                };
                match truth {
                    Truth::True => leaf(field, LeafOp::StartsWith(prefix.to_owned())),
                    Truth::False => leaf(field, LeafOp::NotStartsWith(prefix.to_owned())),
                    Truth::Null => leaf(field, LeafOp::IsNull),
                }
            }
            _ => Predicate::Unknown,
        }
    }

    fn field(&self, column: &Column) -> Option<&NestedField> {
        self.schema.fields.fields.iter().find(|f| f.name == column.name).map(AsRef::as_ref)
    }

    fn primitive(&self, column: &Column) -> Option<(&NestedField, &PrimitiveType)> {
        let field = self.field(column)?;
        Some((field, field.field_type.as_primitive()?))
    }

    /// The column that `expr` is, perhaps under a cast which keeps value and order.
    fn operand(&self, expr: &Expr) -> Option<(&NestedField, &PrimitiveType)> {
        match expr {
            Expr::Column(column) => self.primitive(column),
            Expr::Alias(alias) => self.operand(&alias.expr),
            Expr::Cast(Cast { expr, field }) => {
                let (column, ty) = self.operand(expr)?;
                keeps_value_and_order(ty, field.data_type()).then_some((column, ty))
            }
            _ => None,
        }
    }
}

/// Whether casting any value of `from` to `to` gives an equal value, if any, and keeps the order.
fn keeps_value_and_order(from: &PrimitiveType, to: &arrow::datatypes::DataType) -> bool {
    use arrow::datatypes::{DataType, TimeUnit};
    match (from, to) {
        (PrimitiveType::Boolean, DataType::Boolean) => true,
        (PrimitiveType::Int, DataType::Int32 | DataType::Int64 | DataType::Float64) => true,
        (PrimitiveType::Long, DataType::Int64) => true,
        (PrimitiveType::Int, DataType::Decimal128(p, s)) => *s >= 0 && i16::from(*p) - i16::from(*s) >= 10,
        (PrimitiveType::Long, DataType::Decimal128(p, s)) => *s >= 0 && i16::from(*p) - i16::from(*s) >= 19,
        (PrimitiveType::Float, DataType::Float32 | DataType::Float64) | (PrimitiveType::Double, DataType::Float64) => {
            true
        }
        (PrimitiveType::Decimal { precision, scale }, DataType::Decimal128(p, s)) => {
            let (precision, scale) = (i16::from(*precision), i16::from(*scale));
            i16::from(*s) >= scale && i16::from(*p) - i16::from(*s) >= precision - scale
        }
        (PrimitiveType::Date, DataType::Date32) | (PrimitiveType::Time, DataType::Time64(TimeUnit::Microsecond)) => {
            true
        }
        // DataFusion widens to nanoseconds beside a TIMESTAMP literal; values out of their range are an error there.
        (PrimitiveType::Timestamp | PrimitiveType::Date, DataType::Timestamp(unit, None))
        | (PrimitiveType::Timestamptz, DataType::Timestamp(unit, Some(_))) => {
            matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond)
        }
        (PrimitiveType::TimestampNs, DataType::Timestamp(TimeUnit::Nanosecond, None))
        | (PrimitiveType::TimestamptzNs, DataType::Timestamp(TimeUnit::Nanosecond, Some(_))) => true,
        (PrimitiveType::String, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => true,
        (PrimitiveType::Binary, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => true,
        _ => false,
    }
}

/// The value of a literal, perhaps under casts.
fn constant_value(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => constant_value(&alias.expr),
        Expr::Cast(Cast { expr, field }) => constant_value(expr)?.cast_to(field.data_type()).ok(),
        Expr::TryCast(TryCast { expr, field }) => {
            let value = constant_value(expr)?;
            value.cast_to(field.data_type()).or_else(|_| ScalarValue::try_new_null(field.data_type())).ok()
        }
        _ => None,
    }
}

fn is_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_boolean(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(
            op,
            Operator::And
                | Operator::Or
                | Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
        ),
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_) => true,
        _ => false,
    }
}

/// The operands of a chain of one connective; not by recursion, for chains are as long as users write them.
fn operands(expr: &Expr, op: Operator) -> Vec<&Expr> {
    let mut found = Vec::new();
    let mut stack = vec![expr];
    while let Some(next) = stack.pop() {
        match next {
            Expr::BinaryExpr(b) if b.op == op => {
                stack.push(&b.right);
                stack.push(&b.left);
            }
            other => found.push(other),
        }
    }
    found
}

fn opposite(truth: Truth) -> Truth {
    match truth {
        Truth::True => Truth::False,
        Truth::False => Truth::True,
        Truth::Null => Truth::Null,
    }
}

fn constant(holds: bool) -> Predicate {
    if holds { Predicate::AlwaysTrue } else { Predicate::AlwaysFalse }
}

fn leaf(field: &NestedField, op: LeafOp) -> Predicate {
    Predicate::leaf(field.id, op)
}

#[cfg(test)]
mod tests;
