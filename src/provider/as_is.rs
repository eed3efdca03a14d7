//! `as_is(x)`: the identity, which DataFusion's simplifier cannot look through.
//!
//! The simplifier combines neighbouring IN lists, `x ^ x` and the like by rules that forget null. Wrapped in this function an
//! expression is left alone; [`to_predicate`](super::predicate::to_predicate) sees through it, so files are still chosen by it.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static AS_IS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(AsIs::new())));

/// The identity on values of every type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AsIs {
    signature: Signature,
}

impl AsIs {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// `as_is(expr)`; an expression that is one already is returned unchanged.
pub(crate) fn as_is(expr: Expr) -> Expr {
    match as_is_argument(&expr) {
        Some(_) => expr,
        None => wrap_as_is(expr),
    }
}

/// `as_is(expr)`, even if it is one already.
pub(crate) fn wrap_as_is(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&AS_IS), vec![expr]))
}

/// What `expr` wraps, if it is an `as_is`.
pub(crate) fn as_is_argument(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(function) => {
            let implementation: &dyn Any = function.func.inner().as_ref();
            implementation.downcast_ref::<AsIs>().and(function.args.first())
        }
        _ => None,
    }
}

impl ScalarUDFImpl for AsIs {
    fn name(&self) -> &str {
        "as_is"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] => Ok(one.clone()),
            _ => plan_err!("as_is takes one argument"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [one] => Ok(Arc::new(Field::new(self.name(), one.data_type().clone(), one.is_nullable()))),
            _ => plan_err!("as_is takes one argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => plan_err!("as_is takes one argument"),
        }
    }
}
