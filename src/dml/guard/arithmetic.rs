//! Arithmetic that fails where it would wrap.
//!
//! DataFusion's `+`, `-` and `*` on integers wrap, decimals may grow more digits than their type has, and `sum` of integers
//! wraps too. In a writing statement the wrapped value would be stored, or would choose rows. After type coercion the operators
//! are replaced by functions that fail.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum};
use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

/// Makes the arithmetic of writing statements checked. Install it as the last analyzer rule: it needs the final types.
#[derive(Debug, Default)]
pub struct CheckedArithmeticRule;

impl AnalyzerRule for CheckedArithmeticRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !super::writes(&plan) || super::is_foreign_change(&plan)? {
            return Ok(plan);
        }
        Ok(plan.transform_up_with_subqueries(check_node)?.data)
    }

    fn name(&self) -> &str {
        "iceberg_checked_arithmetic"
    }
}

fn check_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) | LogicalPlan::Subquery(_) | LogicalPlan::Dml(_) => {
            return Ok(Transformed::no(node));
        }
        other => other,
    };
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let checked = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(checked(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    checked.transform_data(|node| match node {
        LogicalPlan::Aggregate(aggregate) => check_sums(aggregate),
        other => Ok(Transformed::no(other)),
    })
}

/// The expression, whose types are coerced, with checked arithmetic.
pub(crate) fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|e| match e {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let function = match op {
                Operator::Plus => &*ADD,
                Operator::Minus => &*SUBTRACT,
                Operator::Multiply => &*MULTIPLY,
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            let number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_integer() || t.is_decimal());
            if number(&left) && number(&right) {
                Ok(Transformed::yes(call(function, *left, *right)))
            } else {
                Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
            }
        }
        Expr::Negative(inner) if !matches!(inner.as_ref(), Expr::Literal(..)) => match inner.get_type(schema) {
            Ok(t) if t.is_integer() => Ok(Transformed::yes(call(&SUBTRACT, lit(ScalarValue::new_zero(&t)?), *inner))),
            _ => Ok(Transformed::no(Expr::Negative(inner))),
        },
        other => Ok(Transformed::no(other)),
    })
}

fn call(function: &Arc<ScalarUDF>, left: Expr, right: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), vec![left, right]))
}

/// Sums integers as decimals and casts the sum back, which fails where it does not fit.
fn check_sums(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(&aggregate.schema);
    let input_schema = Arc::clone(aggregate.input.schema());
    // What GROUP BY gives stands first.
    let first = schema.fields().len().saturating_sub(aggregate.aggr_expr.len());
    let mut sums = Vec::new();
    let mut aggr_expr = Vec::with_capacity(aggregate.aggr_expr.len());
    for (i, expr) in aggregate.aggr_expr.iter().enumerate() {
        match widened_sum(expr, &input_schema) {
            Some(sum) => {
                let (relation, field) = schema.qualified_field(first + i);
                aggr_expr.push(sum.alias_qualified(relation.cloned(), field.name()));
                sums.push(first + i);
            }
            None => aggr_expr.push(expr.clone()),
        }
    }
    if sums.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let summed = Aggregate::try_new(aggregate.input, aggregate.group_expr, aggr_expr)?;
    let columns = (0..schema.fields().len()).map(|i| {
        let (relation, field) = schema.qualified_field(i);
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        if sums.contains(&i) {
            let cast = Expr::Cast(Cast::new(Box::new(column), field.data_type().clone()));
            cast.alias_qualified(relation.cloned(), field.name())
        } else {
            column
        }
    });
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(summed)).project(columns)?.build()?;
    Ok(Transformed::yes(plan))
}

fn widened_sum(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::AggregateFunction(function) = expr.clone().unalias() else { return None };
    let AggregateFunction { func, mut params } = function;
    let [argument] = params.args.as_mut_slice() else { return None };
    if func.name() != "sum" || !argument.get_type(schema).is_ok_and(|t| t.is_integer()) {
        return None;
    }
    *argument = Expr::Cast(Cast::new(Box::new(argument.clone()), DataType::Decimal128(38, 0)));
    Some(Expr::AggregateFunction(AggregateFunction { func, params }))
}

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Plus));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Minus));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Multiply));

fn function(operator: Operator) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Checked { operator, signature: Signature::any(2, Volatility::Immutable) }))
}

/// One operator, checked.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: Operator,
    signature: Signature,
}

impl Checked {
    fn result_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] => BinaryTypeCoercer::new(left, &self.operator, right).get_result_type(),
            _ => plan_err!("{} takes two arguments", self.name()),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            _ => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.result_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("{} takes two arguments", self.name()) };
        let wanted = args.return_field.data_type();
        apply(left, right, |l, r| self.compute(l, r, wanted))
    }
}

impl Checked {
    fn compute(&self, left: &dyn Datum, right: &dyn Datum, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
        let result = match self.operator {
            Operator::Plus => add(left, right),
            Operator::Minus => sub(left, right),
            _ => mul(left, right),
        }?;
        let result = if result.data_type() == wanted { result } else { arrow::compute::cast(&result, wanted)? };
        match result.data_type() {
            DataType::Decimal128(precision, _) => {
                result.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
            }
            DataType::Decimal256(precision, _) => {
                result.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)?;
            }
            _ => {}
        }
        Ok(result)
    }
}
