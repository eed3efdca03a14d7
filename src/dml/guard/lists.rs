//! IN lists that keep "unknown" and both zeros.
//!
//! DataFusion's simplifier merges the IN lists (and chains of `=`) that stand on one operand under AND, OR and NOT, and gets
//! null wrong where the merged list is empty or a list held null: `j NOT IN (1, 2) OR j NOT IN (7, 8)` becomes true for a null
//! `j`. So null leaves the lists, and lists that could meet are wrapped in `as_is`. A list compares floats by their bits: it
//! gets both zeros.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};

use crate::provider::as_is;

/// Guards the lists of one expression. With `everywhere` each list is wrapped: the expression is not a condition itself, but
/// may be moved into one, next to lists that are not seen here.
pub(super) fn guard_lists(expr: Expr, schema: &DFSchema, everywhere: bool) -> Result<Expr> {
    let expr = expr.transform_up(|e| split_list(e, schema))?.data;
    let mut groups = Groups::default();
    groups.visit(&expr, None)?;
    if groups.leaves.is_empty() {
        return Ok(expr);
    }
    let wrapped = expr.transform_down(|e| {
        let Some(leaf) = Leaf::of(&e) else { return Ok(Transformed::no(e)) };
        let merges = everywhere && leaf.is_list || groups.may_merge_wrongly(&leaf.key);
        let zero = leaf.tests_zero && groups.leaves.get(&leaf.key).is_some_and(|l| l.len() > 1) && {
            leaf.key.get_type(schema).map_or(true, |t| t.is_floating())
        };
        if merges || zero {
            Ok(Transformed::new(as_is(e), true, TreeNodeRecursion::Jump))
        } else {
            Ok(Transformed::no(e))
        }
    })?;
    Ok(wrapped.data)
}

fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// Takes null, zeros of floats and values that are not literal yet out of a list.
fn split_list(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr: operand, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    // DataFusion takes a list of one subquery for that subquery.
    if list.iter().any(|item| matches!(item, Expr::ScalarSubquery(_))) {
        return Ok(Transformed::no(Expr::InList(InList { expr: operand, list, negated })));
    }
    let operand_type = operand.get_type(schema).ok();
    let is_float = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_floating());
    let floating = operand_type.as_ref().is_none_or(DataType::is_floating) || list.iter().any(is_float);
    let mut changed = false;
    let (mut kept, mut apart, mut with_null) = (Vec::new(), Vec::new(), false);
    for item in list {
        if is_null(&item) {
            with_null = true;
        } else if floating && is_zero(&item) {
            changed = true;
            let zeros = match operand_type {
                Some(DataType::Float32) => [ScalarValue::from(0f32), ScalarValue::from(-0f32)],
                _ => [ScalarValue::from(0f64), ScalarValue::from(-0f64)],
            };
            kept.extend(zeros.map(lit));
        } else if floating && literal(&item).is_none() {
            apart.push(item);
        } else {
            kept.push(item);
        }
    }
    if !with_null && !changed && apart.is_empty() {
        return Ok(Transformed::no(Expr::InList(InList { expr: operand, list: kept, negated })));
    }
    let mut parts = Vec::new();
    if !kept.is_empty() {
        parts.push(Expr::InList(InList { expr: operand.clone(), list: kept, negated }));
    }
    for item in apart {
        let item = item.clone();
        parts.push(as_is(if negated { (*operand).clone().not_eq(item) } else { (*operand).clone().eq(item) }));
    }
    if with_null {
        parts.push(null());
    }
    let joined = parts.into_iter().reduce(|a, b| if negated { a.and(b) } else { a.or(b) });
    Ok(Transformed::yes(joined.unwrap_or_else(null)))
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Cast(cast) => literal(&cast.expr),
        Expr::TryCast(cast) => literal(&cast.expr),
        Expr::Negative(inner) => literal(inner),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    literal(expr).is_some_and(ScalarValue::is_null)
}

/// Whether a literal is, or as a number would be, zero.
fn is_zero(expr: &Expr) -> bool {
    let Some(value) = literal(expr) else { return false };
    matches!(value.cast_to(&DataType::Float64), Ok(ScalarValue::Float64(Some(v))) if v == 0.0)
}

/// A list, or a comparison that DataFusion may gather into one.
struct Leaf {
    key: Expr,
    is_list: bool,
    negated: bool,
    tests_zero: bool,
}

impl Leaf {
    fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::InList(list) => {
                Some(Self { key: key(&list.expr), is_list: true, negated: list.negated, tests_zero: false })
            }
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
                let (operand, value) = match (literal(left), literal(right)) {
                    (None, Some(_)) => (left, right),
                    (Some(_), None) => (right, left),
                    _ => return None,
                };
                Some(Self {
                    key: key(operand),
                    is_list: false,
                    negated: *op == Operator::NotEq,
                    tests_zero: is_zero(value),
                })
            }
            _ => None,
        }
    }
}

/// The operand without casts, which coercion adds and takes away.
fn key(expr: &Expr) -> Expr {
    match expr {
        Expr::Cast(cast) => key(&cast.expr),
        Expr::TryCast(cast) => key(&cast.expr),
        Expr::Alias(alias) => key(&alias.expr),
        other => other.clone(),
    }
}

/// Where the lists of an expression stand.
#[derive(Default)]
struct Groups {
    leaves: HashMap<Expr, Vec<Place>>,
    next: usize,
}

struct Place {
    /// The run of one connective that it stands in.
    group: usize,
    /// Whether that run only ever widens lists: `IN … OR IN …`, `NOT IN … AND NOT IN …`.
    widens: bool,
    is_list: bool,
}

impl Groups {
    fn visit(&mut self, expr: &Expr, within: Option<(Operator, usize)>) -> Result<()> {
        if let Some(leaf) = Leaf::of(expr) {
            let op = within.map(|(op, _)| op);
            let widens = op == Some(if leaf.negated { Operator::And } else { Operator::Or });
            let group = within.map_or_else(|| self.fresh(), |(_, group)| group);
            self.leaves.entry(leaf.key).or_default().push(Place { group, widens, is_list: leaf.is_list });
        }
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let group = match within {
                    Some((outer, group)) if outer == *op => group,
                    _ => self.fresh(),
                };
                self.visit(left, Some((*op, group)))?;
                self.visit(right, Some((*op, group)))
            }
            other => {
                let mut result = Ok(());
                other.apply_children(|child| {
                    result = self.visit(child, None);
                    Ok(if result.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
                })?;
                result
            }
        }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn may_merge_wrongly(&self, key: &Expr) -> bool {
        let Some(places) = self.leaves.get(key) else { return false };
        let lists = places.iter().filter(|p| p.is_list).count();
        let comparisons = places.len() - lists;
        // Two comparisons make a list of their own.
        if lists < 2 && (lists < 1 || comparisons < 2) && comparisons < 4 {
            return false;
        }
        let first = places.first().map(|p| p.group);
        !places.iter().all(|p| p.widens && Some(p.group) == first)
    }
}
