//! Constants in statements of ours.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::Expr;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::statement::{StatementText, split_statements};
use super::{from_datafusion, plan};
use crate::{Error, Result};

/// The value of the expression `tokens`, which names no column and no volatile function.
pub(super) async fn constant(state: &SessionState, tokens: Vec<TokenWithSpan>) -> Result<ScalarValue> {
    let mut select = sql("SELECT")?;
    select.extend(tokens);
    let no_constant = || Error::invalid_input("a constant is expected");
    let plan = Box::pin(plan::plan_statement(state, &StatementText::of_tokens(select))).await?;
    let LogicalPlan::Projection(mut projection) = plan else { return Err(no_constant()) };
    let (Some(value), true) = (projection.expr.pop(), projection.expr.is_empty()) else { return Err(no_constant()) };
    let value = value.unalias();
    if value.is_volatile() {
        return Err(no_constant());
    }
    let schema = Arc::new(DFSchema::empty());
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
    let value = simplifier.coerce(value, &schema).and_then(|value| simplifier.simplify(value));
    match value.map_err(from_datafusion)? {
        Expr::Literal(value, _) => Ok(value),
        _ => Err(no_constant()),
    }
}

/// Tokens of a piece of SQL.
pub(super) fn sql(text: &str) -> Result<Vec<TokenWithSpan>> {
    let statement = split_statements(text)?.into_iter().next();
    Ok(statement.map(|s| s.tokens().to_vec()).unwrap_or_default())
}
