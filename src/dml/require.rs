//! A condition that every row has to satisfy.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::Error;

/// `value`, an expression that fails the statement with `message` in a row where `condition` is not true.
///
/// It is volatile, and has to stand in a projection: a rule may unite a filter with those below it, which leave out rows
/// that must not be looked at.
pub(crate) fn require_true(condition: Expr, value: Expr, message: &str) -> Expr {
    let signature = Signature::any(2, Volatility::Volatile);
    let function = RequireTrue { signature, message: message.to_owned() };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![condition, value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RequireTrue {
    signature: Signature,
    message: String,
}

impl ScalarUDFImpl for RequireTrue {
    fn name(&self) -> &str {
        "require_true"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [DataType::Boolean | DataType::Null, value] => Ok(value.clone()),
            _ => exec_err!("require_true takes a boolean and a value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [condition, value] = args.args.as_slice() else {
            return exec_err!("require_true takes a boolean and a value");
        };
        let satisfied = match condition {
            ColumnarValue::Scalar(value) => *value == ScalarValue::Boolean(Some(true)) || args.number_rows == 0,
            ColumnarValue::Array(values) => {
                values.as_boolean_opt().is_some_and(|v| v.null_count() == 0 && v.true_count() == v.len())
            }
        };
        if satisfied { Ok(value.clone()) } else { Err(Error::invalid_input(self.message.clone()).into()) }
    }
}
