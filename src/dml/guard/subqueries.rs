//! Subqueries that keep "unknown".
//!
//! DataFusion turns EXISTS and IN into joins. Its mark join, which stands for a subquery under OR, NOT or CASE, knows no
//! "unknown"; its correlated anti join counts nulls outside the correlation; and a correlated aggregate without GROUP BY has no
//! row where it should have one. So, before planning:
//!
//! - an ungrouped aggregate has exactly one row: EXISTS over it is true, IN over it is `=`, HAVING is a scalar condition;
//! - in a condition only truth matters: `x NOT IN (S)` is true where S has no row for which `x = y` is true or unknown;
//! - where the value matters, `x IN (S)` is spelled out with its three outcomes.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InList, InSubquery};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Case, Distinct, Expr, ExprSchemable, FetchType, LogicalPlan, LogicalPlanBuilder, Operator,
    SkipType, Subquery, lit,
};

use super::unsupported;

const ALIAS: &str = "__calve_rows";
/// The count of [`Rows::none`].
const COUNT: &str = "__calve_count";

/// Rewrites a subquery expression by the shape of its plan. Its own plan is done already.
pub(super) fn guard_shape(expr: Expr, writing: bool) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(exists) => guard_exists(exists, writing),
        Expr::InSubquery(in_subquery) => guard_in(in_subquery, writing),
        Expr::ScalarSubquery(subquery) => guard_scalar(subquery, writing),
        Expr::InList(InList { expr, mut list, negated }) if matches!(list.as_slice(), [Expr::ScalarSubquery(_)]) => {
            match list.pop() {
                Some(Expr::ScalarSubquery(subquery)) => {
                    let in_subquery = guard_in(InSubquery::new(expr, subquery, negated), writing)?;
                    Ok(Transformed::yes(in_subquery.data))
                }
                other => Ok(Transformed::no(Expr::InList(InList { expr, list: other.into_iter().collect(), negated }))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

/// What is known of a subquery's rows.
enum Shape {
    /// None.
    Empty,
    /// Exactly one: an aggregate without GROUP BY.
    OneRow,
    /// One if the condition holds: such an aggregate with HAVING. `plan` has the row without the condition.
    OneRowIf { plan: Arc<LogicalPlan>, having: Arc<LogicalPlan> },
    /// Rows were skipped or cut off below.
    Cut,
    /// Any.
    Rows,
}

fn shape(plan: &LogicalPlan) -> Result<Shape> {
    Ok(match plan {
        LogicalPlan::Subquery(subquery) => shape(&subquery.subquery)?,
        LogicalPlan::SubqueryAlias(alias) => match shape(&alias.input)? {
            Shape::OneRowIf { plan, having } => Shape::OneRowIf {
                plan: Arc::new(LogicalPlanBuilder::from(plan).alias(alias.alias.clone())?.build()?),
                having,
            },
            other => other,
        },
        LogicalPlan::Projection(projection) => match shape(&projection.input)? {
            Shape::OneRowIf { plan, having } => Shape::OneRowIf {
                plan: Arc::new(LogicalPlanBuilder::from(plan).project(projection.expr.clone())?.build()?),
                having,
            },
            other => other,
        },
        LogicalPlan::Sort(sort) => shape(&sort.input)?,
        LogicalPlan::Distinct(distinct) => shape(distinct.input())?,
        LogicalPlan::Limit(limit) => {
            let below = shape(&limit.input)?;
            let skip = matches!(limit.get_skip_type()?, SkipType::Literal(0));
            match (skip, limit.get_fetch_type()?, below) {
                (_, FetchType::Literal(Some(0)), _) => Shape::Empty,
                (true, FetchType::Literal(_), one @ (Shape::OneRow | Shape::OneRowIf { .. } | Shape::Empty)) => one,
                (true, FetchType::Literal(None), below) => below,
                (false, _, Shape::OneRow | Shape::Empty) if matches!(limit.get_skip_type()?, SkipType::Literal(_)) => {
                    Shape::Empty
                }
                _ => Shape::Cut,
            }
        }
        LogicalPlan::Aggregate(aggregate) if is_ungrouped(aggregate) => Shape::OneRow,
        LogicalPlan::Filter(filter) => match shape(&filter.input)? {
            Shape::OneRow => {
                let having = LogicalPlanBuilder::from(filter.input.as_ref().clone())
                    .project(vec![filter.predicate.clone().alias("__calve_having")])?
                    .build()?;
                Shape::OneRowIf { plan: Arc::clone(&filter.input), having: Arc::new(having) }
            }
            Shape::Empty => Shape::Empty,
            Shape::OneRowIf { .. } | Shape::Cut => Shape::Cut,
            Shape::Rows => Shape::Rows,
        },
        _ => Shape::Rows,
    })
}

fn is_ungrouped(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.is_empty() && !aggregate.aggr_expr.is_empty()
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

fn subquery(plan: impl Into<Arc<LogicalPlan>>) -> Subquery {
    let plan = plan.into();
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: plan, outer_ref_columns, spans: Spans::new() }
}

fn scalar(plan: impl Into<Arc<LogicalPlan>>) -> Expr {
    Expr::ScalarSubquery(subquery(plan))
}

fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// Peels off what changes neither whether there is a row, nor, for `skip` 0, which.
fn without_limit(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(limit) => match (limit.get_skip_type().ok()?, limit.get_fetch_type().ok()?) {
            (SkipType::Literal(0), FetchType::Literal(fetch)) if fetch != Some(0) => Some(limit.input.as_ref().clone()),
            _ => None,
        },
        _ => None,
    }
}

fn guard_exists(exists: Exists, writing: bool) -> Result<Transformed<Expr>> {
    let Exists { subquery: mut sub, negated } = exists;
    if is_correlated(&sub)
        && let LogicalPlan::Sort(sort) = sub.subquery.as_ref()
        && sort.fetch.is_none()
    {
        sub.subquery = Arc::clone(&sort.input);
        return Ok(Transformed::yes(guard_exists(Exists { subquery: sub, negated }, writing)?.data));
    }
    let keep = |sub: Subquery| Expr::Exists(Exists { subquery: sub, negated });
    match shape(&sub.subquery)? {
        Shape::Empty => Ok(Transformed::yes(lit(negated))),
        Shape::OneRow => Ok(Transformed::yes(lit(!negated))),
        Shape::OneRowIf { having, .. } if is_correlated(&sub) => {
            let holds = scalar(having);
            Ok(Transformed::yes(if negated { holds.is_not_true() } else { holds.is_true() }))
        }
        // Which rows are left does not matter where any row is left.
        Shape::Cut if is_correlated(&sub) => match without_limit(&sub.subquery) {
            Some(plan) => {
                sub.subquery = Arc::new(plan);
                let again = guard_exists(Exists { subquery: sub, negated }, writing)?;
                Ok(Transformed::yes(again.data))
            }
            None if writing => unsupported(
                "EXISTS over a correlated subquery with OFFSET: DataFusion ignores the OFFSET; count the rows instead, as in \
                 (SELECT count(*) FROM …) > n",
            ),
            None => Ok(Transformed::no(keep(sub))),
        },
        _ => {
            refuse_correlated_window(&sub, writing)?;
            Ok(Transformed::no(keep(sub)))
        }
    }
}

fn guard_in(in_subquery: InSubquery, writing: bool) -> Result<Transformed<Expr>> {
    let InSubquery { expr: operand, subquery: sub, negated } = in_subquery;
    if !is_correlated(&sub) {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr: operand, subquery: sub, negated })));
    }
    let compare = |value: Expr| if negated { (*operand).clone().not_eq(value) } else { (*operand).clone().eq(value) };
    match shape(&sub.subquery)? {
        Shape::Empty => Ok(Transformed::yes(lit(negated))),
        Shape::OneRow => Ok(Transformed::yes(compare(Expr::ScalarSubquery(sub)))),
        Shape::OneRowIf { plan, having } => Ok(Transformed::yes(Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(scalar(having)), Box::new(compare(scalar(plan))))],
            else_expr: Some(Box::new(lit(negated))),
        }))),
        Shape::Cut if writing => unsupported(
            "IN over a correlated subquery with LIMIT or OFFSET: DataFusion does not apply them per row; rank the rows with \
             row_number() in a derived table and compare the rank",
        ),
        _ => {
            refuse_correlated_window(&sub, writing)?;
            Ok(Transformed::no(Expr::InSubquery(InSubquery { expr: operand, subquery: sub, negated })))
        }
    }
}

fn guard_scalar(sub: Subquery, writing: bool) -> Result<Transformed<Expr>> {
    if !is_correlated(&sub) {
        return Ok(Transformed::no(Expr::ScalarSubquery(sub)));
    }
    match shape(&sub.subquery)? {
        Shape::OneRowIf { plan, having } => Ok(Transformed::yes(Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(scalar(having)), Box::new(scalar(plan)))],
            else_expr: None,
        }))),
        Shape::Cut if writing => unsupported(
            "a correlated scalar subquery with LIMIT or OFFSET: DataFusion does not apply them per row; use min, max or \
             first_value instead",
        ),
        _ => {
            refuse_correlated_window(&sub, writing)?;
            Ok(Transformed::no(Expr::ScalarSubquery(sub)))
        }
    }
}

/// DataFusion moves the condition on the outer row above the window functions and limits that it stands below, which then
/// count rows of other groups.
fn refuse_correlated_window(sub: &Subquery, writing: bool) -> Result<()> {
    if !writing || !is_correlated(sub) {
        return Ok(());
    }
    let moves_out = sub.subquery.exists(|node| {
        let over_rows = matches!(node, LogicalPlan::Window(_) | LogicalPlan::Limit(_));
        Ok(over_rows && !node.all_out_ref_exprs().is_empty())
    })?;
    if moves_out {
        return unsupported(
            "a window function, LIMIT or OFFSET over rows chosen by a condition on the outer row: DataFusion applies that \
             condition too late; number the rows in a derived table without it, PARTITION BY its columns, and compare there",
        );
    }
    Ok(())
}

/// Makes IN subqueries right in the predicate of a filter over `schema`, where only truth matters.
pub(super) fn guard_condition(predicate: Expr, schema: &DFSchema, writing: bool) -> Result<Transformed<Expr>> {
    if !has_in_subquery(&predicate) {
        return Ok(Transformed::no(predicate));
    }
    Condition { schema, writing }.truth(predicate, false, true).map(Transformed::yes)
}

/// Makes IN and EXISTS right where their value is stored or decides between values, outside of any filter: DataFusion plans
/// neither there. EXISTS becomes a count, and IN its three outcomes.
pub(super) fn guard_value(expr: Expr, schema: &DFSchema, writing: bool) -> Result<Transformed<Expr>> {
    let is_one = |e: &Expr| matches!(e, Expr::InSubquery(_) | Expr::Exists(_));
    if !expr.exists(|e| Ok(is_one(e)))? {
        return Ok(Transformed::no(expr));
    }
    let spelled = Condition { schema, writing }.value(expr)?;
    let counted = spelled.transform_up(|e| match e {
        Expr::Exists(Exists { subquery: rows, negated }) => {
            let plan = match without_limit(&rows.subquery) {
                Some(plan) => plan,
                None => rows.subquery.as_ref().clone(),
            };
            let counted = LogicalPlanBuilder::from(plan)
                .aggregate(Vec::<Expr>::new(), vec![count(lit(1i64)).alias(COUNT)])?
                .build()?;
            let count = scalar(counted);
            Ok(Transformed::yes(if negated { count.eq(lit(0i64)) } else { count.gt(lit(0i64)) }))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(Transformed::yes(counted.data))
}

fn has_in_subquery(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::InSubquery(_)))).unwrap_or(true)
}

struct Condition<'a> {
    schema: &'a DFSchema,
    writing: bool,
}

impl Condition<'_> {
    /// An expression that is true exactly where `expr` is true, or, if `negated`, false. `top` says that only AND stands above,
    /// so that DataFusion makes a semi or anti join of a subquery.
    fn truth(&self, expr: Expr, negated: bool, top: bool) -> Result<Expr> {
        if !has_in_subquery(&expr) {
            return Ok(if negated { Expr::Not(Box::new(expr)) } else { expr });
        }
        match expr {
            Expr::Not(inner) => self.truth(*inner, !negated, top),
            Expr::Alias(alias) => self.truth(*alias.expr, negated, top),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let op = match (op, negated) {
                    (op, false) => op,
                    (Operator::And, true) => Operator::Or,
                    (_, true) => Operator::And,
                };
                let top = top && op == Operator::And;
                let left = Box::new(self.truth(*left, negated, top)?);
                let right = Box::new(self.truth(*right, negated, top)?);
                Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::InSubquery(mut one) if !has_in_subquery(&one.expr) => {
                one.negated ^= negated;
                if !one.negated {
                    // A match is a match; without one it does not matter whether the answer is false or unknown.
                    return Ok(Expr::InSubquery(one));
                }
                if top && !is_correlated(&one.subquery) && is_column(&one.expr) {
                    // DataFusion's null-aware anti join.
                    return Ok(Expr::InSubquery(one));
                }
                match self.rows(&one)? {
                    Some(rows) => Ok(rows.never_matches()?),
                    None => Ok(Expr::InSubquery(one)),
                }
            }
            Expr::IsTrue(inner) if !negated => self.truth(*inner, false, top),
            Expr::IsFalse(inner) if !negated => self.truth(*inner, true, top),
            other => {
                let value = self.value(other)?;
                Ok(if negated { Expr::Not(Box::new(value)) } else { value })
            }
        }
    }

    /// `expr` with every IN subquery spelled out, so that its value is right.
    fn value(&self, expr: Expr) -> Result<Expr> {
        let spelled = expr.transform_up(|e| match e {
            Expr::InSubquery(one) => match self.rows(&one)? {
                Some(rows) => Ok(Transformed::yes(rows.value(one.negated)?)),
                None => Ok(Transformed::no(Expr::InSubquery(one))),
            },
            other => Ok(Transformed::no(other)),
        })?;
        Ok(spelled.data)
    }

    /// The rows of a subquery as [`Rows`]; `None` where it must be left alone.
    fn rows(&self, one: &InSubquery) -> Result<Option<Rows>> {
        let plan = one.subquery.subquery.as_ref();
        let operand = one.expr.as_ref();
        let reason = if operand.is_volatile() || is_volatile(plan)? {
            Some("NOT IN, or IN whose value matters, with a volatile function")
        } else if operand.contains_outer() || has_varying_subquery(operand)? {
            Some("NOT IN, or IN whose value matters, whose operand is itself from a subquery")
        } else if plan.schema().fields().len() != 1 {
            None
        } else if is_correlated(&one.subquery) && names_meet(operand, plan)? {
            Some("NOT IN, or IN whose value matters, over a correlated subquery with a table of the same name")
        } else {
            return self.outer_operand(one).map(Some);
        };
        match reason {
            Some(reason) if self.writing => unsupported(&format!(
                "{reason}: DataFusion takes unknown for false there; write it with EXISTS or NOT EXISTS and say what nulls mean"
            )),
            _ => Ok(None),
        }
    }

    fn outer_operand(&self, one: &InSubquery) -> Result<Rows> {
        let plan = one.subquery.subquery.as_ref().clone();
        // A scalar subquery without rows is null, whatever its column says.
        let nullable_operand = has_subquery(&one.expr) || one.expr.nullable(self.schema).unwrap_or(true);
        let outer = one.expr.as_ref().clone().transform_down(|e| match e {
            Expr::Column(column) => {
                let (_, field) = self.schema.qualified_field_from_column(&column)?;
                Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        let correlated = is_correlated(&one.subquery);
        // A filter above an alias would lose the columns of correlated conditions below it.
        let plan = if correlated { plan } else { LogicalPlanBuilder::from(plan).alias(ALIAS)?.build()? };
        let (plan, value) = split_output(plan);
        let nullable_value = value.nullable(plan.schema()).unwrap_or(true);
        Ok(Rows {
            plan,
            value,
            operand: one.expr.as_ref().clone(),
            outer: outer.data,
            correlated,
            nullable_operand,
            nullable_value,
        })
    }
}

/// The plan below the projection that makes the one column, and that column's expression.
fn split_output(plan: LogicalPlan) -> (LogicalPlan, Expr) {
    match plan {
        LogicalPlan::Projection(projection) => match projection.expr.as_slice() {
            [value] => {
                let value = value.clone().unalias();
                (projection.input.as_ref().clone(), value)
            }
            _ => column_of(LogicalPlan::Projection(projection)),
        },
        LogicalPlan::Distinct(Distinct::All(input)) => split_output(input.as_ref().clone()),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => split_output(sort.input.as_ref().clone()),
        other => column_of(other),
    }
}

fn column_of(plan: LogicalPlan) -> (LogicalPlan, Expr) {
    let (qualifier, field) = plan.schema().qualified_field(0);
    let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    (plan, value)
}

/// Whether a column of `expr` has the qualifier of a column inside `plan`.
fn names_meet(expr: &Expr, plan: &LogicalPlan) -> Result<bool> {
    let mut meet = false;
    let outer: Vec<_> = expr.column_refs().into_iter().map(|c| c.relation.clone()).collect();
    plan.apply(|node| {
        meet |= node.schema().iter().any(|(qualifier, _)| outer.iter().any(|o| o.as_ref() == qualifier));
        Ok(if meet { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(meet)
}

/// Whether a subquery stands anywhere in the expression.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let is_one = |e: &Expr| {
        matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_))
    };
    expr.exists(|e| Ok(is_one(e))).unwrap_or(true)
}

/// Whether the operand of NOT IN is sure to be a key of the anti join. One that is constant, or becomes so, is none: the join is
/// not null-aware then, and `NULL NOT IN (S)` is taken for true.
fn is_column(operand: &Expr) -> bool {
    match operand {
        Expr::Column(_) => true,
        Expr::Cast(cast) => is_column(&cast.expr),
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Whether `expr` has a subquery that is not one value for the whole statement.
fn has_varying_subquery(expr: &Expr) -> Result<bool> {
    let mut varying = false;
    expr.apply(|e| {
        varying |= match e {
            Expr::ScalarSubquery(one) => is_correlated(one) || is_volatile(&one.subquery)?,
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => true,
            _ => false,
        };
        Ok(if varying { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(varying)
}

/// Whether running a plan twice may give other rows.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut volatile = false;
    plan.apply_with_subqueries(|node| {
        // Which row it cuts off at does not matter to a test of ours whether there is one.
        if let LogicalPlan::Aggregate(aggregate) = node
            && aggregate.schema.fields().iter().any(|field| field.name() == COUNT)
            && let LogicalPlan::Limit(limit) = aggregate.input.as_ref()
        {
            volatile |= is_volatile(&limit.input)?;
            return Ok(if volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Jump });
        }
        node.apply_expressions(|expr| {
            volatile |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let LogicalPlan::Limit(limit) = node {
            volatile |= !matches!(limit.input.as_ref(), LogicalPlan::Sort(_));
        }
        Ok(if volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(volatile)
}

/// The rows of `x IN (S)`.
struct Rows {
    /// S, aliased.
    plan: LogicalPlan,
    /// Its column.
    value: Expr,
    /// x, outside.
    operand: Expr,
    /// x, as seen from within S.
    outer: Expr,
    correlated: bool,
    nullable_operand: bool,
    nullable_value: bool,
}

impl Rows {
    fn exists(&self, condition: Expr, negated: bool) -> Result<Expr> {
        // One filter: DataFusion forgets the correlated columns of one of two.
        let (input, condition) = match self.plan.clone() {
            LogicalPlan::Filter(filter) => (filter.input.as_ref().clone(), filter.predicate.and(condition)),
            other => (other, condition),
        };
        let plan = LogicalPlanBuilder::from(input).filter(condition)?.build()?;
        Ok(Expr::Exists(Exists { subquery: subquery(plan), negated }))
    }

    fn equal(&self) -> Expr {
        self.value.clone().eq(self.outer.clone())
    }

    /// `count(*) = 0` over an uncorrelated plan, cut at its first row.
    fn none(plan: LogicalPlanBuilder) -> Result<Expr> {
        let counted =
            plan.limit(0, Some(1))?.aggregate(Vec::<Expr>::new(), vec![count(lit(1i64)).alias(COUNT)])?.build()?;
        Ok(scalar(counted).eq(lit(0i64)))
    }

    fn no_null(&self) -> Result<Expr> {
        Self::none(LogicalPlanBuilder::from(self.plan.clone()).filter(self.value.clone().is_null())?)
    }

    fn no_row(&self) -> Result<Expr> {
        Self::none(LogicalPlanBuilder::from(self.plan.clone()))
    }

    /// Rows for which the comparison is unknown.
    fn unknown(&self) -> Option<Expr> {
        let value = self.nullable_value.then(|| self.value.clone().is_null());
        let operand = self.nullable_operand.then(|| self.outer.clone().is_null());
        [value, operand].into_iter().flatten().reduce(Expr::or)
    }

    /// True where `x NOT IN (S)` is true, else false.
    fn never_matches(&self) -> Result<Expr> {
        if self.correlated {
            let bad = self.unknown().map_or_else(|| self.equal(), |unknown| self.equal().or(unknown));
            return self.exists(bad, true);
        }
        let mut condition = self.exists(self.equal(), true)?;
        if self.nullable_value {
            condition = condition.and(self.no_null()?);
        }
        if self.nullable_operand {
            condition = condition.and(self.operand.clone().is_not_null().or(self.no_row()?));
        }
        Ok(condition)
    }

    /// `x [NOT] IN (S)` with its three outcomes.
    fn value(&self, negated: bool) -> Result<Expr> {
        let matches = self.exists(self.equal(), false)?;
        let unknown = if self.correlated {
            self.unknown().map(|unknown| self.exists(unknown, false)).transpose()?
        } else {
            let value = if self.nullable_value { Some(Expr::Not(Box::new(self.no_null()?))) } else { None };
            let operand = if self.nullable_operand {
                Some(self.operand.clone().is_null().and(Expr::Not(Box::new(self.no_row()?))))
            } else {
                None
            };
            [value, operand].into_iter().flatten().reduce(Expr::or)
        };
        let mut when_then_expr = vec![(Box::new(matches), Box::new(lit(!negated)))];
        when_then_expr.extend(unknown.map(|unknown| (Box::new(unknown), Box::new(null()))));
        Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(lit(negated))) }))
    }
}
