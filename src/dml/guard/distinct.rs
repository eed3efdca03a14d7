//! Refuses `IS [NOT] DISTINCT FROM` that the parser may have read wrongly.
//!
//! The parser takes `a IS DISTINCT FROM b OR c` for `a IS DISTINCT FROM (b OR c)`. Our statement entry point repairs the parse
//! tree; in a plan the two cannot be told apart, so a writing statement that comes another way is refused.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use super::unsupported;

/// Refuses a plan that holds such a comparison.
pub(super) fn refuse_ambiguous(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Dml(dml) = node
            && let datafusion::logical_expr::WriteOp::MergeInto(merge) = &dml.op
        {
            merge.exprs().into_iter().try_for_each(check)?;
        }
        node.apply_expressions(|expr| check(expr).map(|()| TreeNodeRecursion::Continue))
    })?;
    Ok(())
}

fn check(expr: &Expr) -> Result<()> {
    expr.apply(|e| match e {
        Expr::BinaryExpr(BinaryExpr {
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
            ..
        }) if binds_weaker(right) => unsupported(&format!(
            "{op} over AND, OR or IS: the parser reads a {op} b OR c as a {op} (b OR c). Put parentheses around each \
                 comparison, as in (a {op} b) OR c, or, if the right side is meant, write (b OR c) {op} a"
        )),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

fn binds_weaker(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::And | Operator::Or | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
        }
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => true,
        _ => false,
    }
}
