//! INSERT with clauses of ours, planned by way of the INSERT that DataFusion knows.
//!
//! `INSERT INTO t (columns) query` does most of the work: names, types of `VALUES`, defaults, casts. What is left is to put
//! constants and defaults into its projection, and to say which rows the new ones replace.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Values, WriteOp, lit,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::constant::{constant, sql};
use super::parser::{Insert, is_keyword};
use super::statement::StatementText;
use super::{from_datafusion, plan};
use crate::dml::analyze::overwrite_matching;
use crate::dml::{partition_overwrite_mode, require_true};
use crate::options::PartitionOverwriteMode;
use crate::provider::IcebergTableProvider;
use crate::spec::Transform;
use crate::{Error, Result};

/// Plans an INSERT with clauses of ours.
pub(super) async fn plan_insert(state: &SessionState, insert: Insert) -> Result<LogicalPlan> {
    let (name, provider) = plan::named_table(state, &insert.table.0).await?;
    let iceberg = provider.downcast_ref::<IcebergTableProvider>().cloned();
    let Some(target) = iceberg else {
        let clauses = !insert.partition.is_empty() || insert.by_name || insert.replace_where.is_some();
        if clauses || !insert.defaults.is_empty() {
            return Err(Error::unsupported(format!(
                "PARTITION, BY NAME, REPLACE WHERE and DEFAULT are for Iceberg tables, and {} is none",
                insert.table
            )));
        }
        return plan_known(state, &insert, insert.columns.as_deref()).await.map(LogicalPlan::Dml);
    };
    if insert.overwrite && insert.replace_where.is_some() {
        return Err(Error::invalid_input("REPLACE WHERE is for INSERT INTO, which then replaces the rows it names"));
    }
    if insert.replace_where.is_some() && !insert.partition.is_empty() {
        return Err(Error::invalid_input("give PARTITION or REPLACE WHERE, not both"));
    }
    let constants = constants(state, &insert, &target).await?;
    let columns = columns(state, &insert, &target, &constants).await?;
    let mut dml = plan_plain(state, &insert, &target, name.into(), columns.as_deref()).await?;
    if !insert.defaults.is_empty() {
        dml.input = Arc::new(with_defaults(&insert, columns.as_deref(), &dml)?);
    }
    if !constants.is_empty() {
        dml.input = Arc::new(with_constants(&dml, &constants)?);
    }
    // The very state of the table that the plan is made for.
    let target = source_as_provider(&dml.target).map_err(from_datafusion)?;
    let Some(target) = target.downcast_ref::<IcebergTableProvider>() else {
        return Err(Error::internal("the target of an INSERT changed its kind"));
    };
    if let Some(condition) = &insert.replace_where {
        return replace_where(state, &insert, condition, &dml, target).await;
    }
    let dynamic = partition_overwrite_mode(state.config_options())? == PartitionOverwriteMode::Dynamic;
    if !insert.overwrite || dynamic || constants.is_empty() {
        return Ok(LogicalPlan::Dml(dml));
    }
    let name = &dml.table_name;
    let condition = constants.iter().map(|(column, value)| {
        let column = Expr::Column(Column::new(Some(name.clone()), column));
        if value.is_null() { column.is_null() } else { column.eq(lit(value.clone())) }
    });
    let condition = condition.reduce(Expr::and).unwrap_or_else(|| lit(true));
    overwrite_matching(target, name, condition, dml.input.as_ref().clone()).map_err(from_datafusion)
}

/// The statement without our clauses. Its rows are the table's columns, cast, with defaults for those not given.
async fn plan_plain(
    state: &SessionState,
    insert: &Insert,
    target: &IcebergTableProvider,
    name: TableReference,
    columns: Option<&[String]>,
) -> Result<DmlStatement> {
    if insert.query.first().is_some_and(|t| is_keyword(t, Keyword::VALUES)) {
        return plan_known(state, insert, columns).await;
    }
    let query = StatementText::of_tokens(insert.query.clone());
    let query = Box::pin(plan::plan_statement(state, &query)).await?;
    let source = provider_as_source(Arc::new(target.clone()));
    let schema = columns_of(target);
    let given: Vec<&str> = match columns {
        Some(columns) => columns.iter().map(String::as_str).collect(),
        None => schema.fields().iter().map(|f| f.name().as_str()).collect(),
    };
    let found = query.schema().columns();
    if given.len() != found.len() {
        return Err(Error::invalid_input(format!(
            "the query has {} columns, but {} are to be inserted",
            found.len(),
            given.len()
        )));
    }
    let column = |field: &FieldRef| {
        let value = match given.iter().position(|name| name == field.name()).and_then(|at| found.get(at)) {
            Some(column) => Expr::Column(column.clone()),
            None => source.get_column_default(field.name()).cloned().unwrap_or_else(|| lit(ScalarValue::Null)),
        };
        Ok(value.cast_to(field.data_type(), query.schema())?.alias(field.name()))
    };
    let rows = schema.fields().iter().map(column).collect::<datafusion::common::Result<Vec<_>>>();
    let rows = rows.and_then(|rows| LogicalPlanBuilder::from(query.clone()).project(rows)?.build());
    let op = WriteOp::Insert(if insert.overwrite { InsertOp::Overwrite } else { InsertOp::Append });
    Ok(DmlStatement::new(name, source, op, Arc::new(rows.map_err(from_datafusion)?)))
}

/// Plans the statement as DataFusion knows it: target, columns, query.
async fn plan_known(state: &SessionState, insert: &Insert, columns: Option<&[String]>) -> Result<DmlStatement> {
    let mut tokens = sql(if insert.overwrite { "INSERT OVERWRITE" } else { "INSERT INTO" })?;
    tokens.extend(insert.table_tokens.iter().cloned());
    if let Some(columns) = columns {
        let quoted = |name: &String| {
            TokenWithSpan::wrap(Token::Word(Word {
                value: name.clone(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            }))
        };
        tokens.push(TokenWithSpan::wrap(Token::LParen));
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                tokens.push(TokenWithSpan::wrap(Token::Comma));
            }
            tokens.push(quoted(column));
        }
        tokens.push(TokenWithSpan::wrap(Token::RParen));
    }
    tokens.extend(insert.query.iter().cloned());
    match Box::pin(plan::plan_statement(state, &StatementText::of_tokens(tokens))).await? {
        LogicalPlan::Dml(dml) => Ok(dml),
        _ => Err(unexpected()),
    }
}

/// The constants of PARTITION, by the column's own name, cast to its type.
async fn constants(
    state: &SessionState,
    insert: &Insert,
    target: &IcebergTableProvider,
) -> Result<Vec<(String, ScalarValue)>> {
    let metadata = &target.table().metadata;
    let (schema, spec) = (metadata.current_schema()?, metadata.default_spec()?);
    let mut constants = Vec::new();
    for (name, value) in &insert.partition {
        let column = table_column(target, name)?;
        let field = schema.fields.fields.iter().find(|f| f.name == column);
        let partitioned = |id: i32| spec.fields.iter().any(|f| f.source_id == id && f.transform == Transform::Identity);
        if !field.is_some_and(|field| partitioned(field.id)) {
            return Err(Error::invalid_input(format!(
                "PARTITION: the table is not partitioned by {column} itself; use INSERT INTO … REPLACE WHERE to replace rows by other columns"
            )));
        }
        let Some(tokens) = value else { continue };
        let schema = columns_of(target);
        let data_type = schema.field_with_name(&column).map_err(|_| unexpected())?.data_type().clone();
        let value = constant(state, tokens.clone()).await?;
        let cast = value
            .cast_to(&data_type)
            .map_err(|e| Error::invalid_input(format!("PARTITION: {value} is no value of {column}")).with_source(e))?;
        constants.push((column, cast));
    }
    Ok(constants)
}

/// The columns that the query's columns go to; `None` for all in order.
async fn columns(
    state: &SessionState,
    insert: &Insert,
    target: &IcebergTableProvider,
    constants: &[(String, ScalarValue)],
) -> Result<Option<Vec<String>>> {
    let is_constant = |name: &String| constants.iter().any(|(column, _)| column == name);
    let columns = if insert.by_name {
        let query = StatementText::of_tokens(insert.query.clone());
        let query = Box::pin(plan::plan_statement(state, &query)).await?;
        let names = query.schema().fields().iter().map(|f| table_column(target, f.name()));
        names.collect::<Result<Vec<_>>>()?
    } else if let Some(columns) = &insert.columns {
        columns.iter().map(|name| table_column(target, name)).collect::<Result<Vec<_>>>()?
    } else if constants.is_empty() {
        return Ok(None);
    } else {
        let names = columns_of(target);
        names.fields().iter().map(|f| f.name().clone()).filter(|name| !is_constant(name)).collect()
    };
    for (i, column) in columns.iter().enumerate() {
        if is_constant(column) {
            return Err(Error::invalid_input(format!("column {column} has its value from PARTITION already")));
        }
        if columns.iter().take(i).any(|other| other == column) {
            return Err(Error::invalid_input(format!("column {column} is there twice")));
        }
    }
    Ok(Some(columns))
}

/// The table's columns.
fn columns_of(target: &IcebergTableProvider) -> SchemaRef {
    TableProvider::schema(target)
}

/// The column of that name, else the one that differs only in case.
fn table_column(target: &IcebergTableProvider, name: &str) -> Result<String> {
    let schema = columns_of(target);
    let names = || schema.fields().iter().map(|f| f.name());
    if names().any(|n| n == name) {
        return Ok(name.to_owned());
    }
    let folded = name.to_lowercase();
    let mut alike = names().filter(|n| n.to_lowercase() == folded);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Ok(only.clone()),
        _ => Err(Error::invalid_input(format!("table {} has no column {name}", target.table().ident))),
    }
}

/// The input of `dml` with constants in the place of what it has for their columns.
fn with_constants(dml: &DmlStatement, constants: &[(String, ScalarValue)]) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = dml.input.as_ref() else { return Err(unexpected()) };
    let fields = projection.schema.fields().iter();
    let exprs = projection.expr.iter().zip(fields).map(|(expr, field)| {
        match constants.iter().find(|(column, _)| column == field.name()) {
            Some((column, value)) => lit(value.clone()).alias(column),
            None => expr.clone(),
        }
    });
    LogicalPlanBuilder::from(projection.input.as_ref().clone())
        .project(exprs.collect::<Vec<_>>())
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}

/// The input of `dml`, whose rows are `VALUES`, with the columns' defaults where the statement says so.
fn with_defaults(insert: &Insert, columns: Option<&[String]>, dml: &DmlStatement) -> Result<LogicalPlan> {
    let all: Vec<String> = dml.target.schema().fields().iter().map(|f| f.name().clone()).collect();
    let columns = columns.unwrap_or(&all);
    let mut places: HashMap<(usize, usize), Expr> = HashMap::new();
    for (row, column) in &insert.defaults {
        let name = columns.get(*column);
        let name = name.ok_or_else(|| Error::invalid_input("VALUES has more columns than the table"))?;
        let default = dml.target.get_column_default(name).cloned().unwrap_or_else(|| lit(ScalarValue::Null));
        places.insert((*row, *column), default);
    }
    let mut replaced = 0;
    let input = dml.input.as_ref().clone().transform_down(|node| {
        let LogicalPlan::Values(Values { schema, mut values }) = node else { return Ok(Transformed::no(node)) };
        for ((row, column), default) in &places {
            if let Some(value) = values.get_mut(*row).and_then(|row| row.get_mut(*column)) {
                *value = default.clone().cast_to(schema.field(*column).data_type(), &DFSchema::empty())?;
                replaced += 1;
            }
        }
        Ok(Transformed::yes(LogicalPlan::Values(Values { schema, values })))
    });
    let input = input.map_err(from_datafusion)?.data;
    if replaced == places.len() { Ok(input) } else { Err(unexpected()) }
}

/// `INSERT INTO … REPLACE WHERE`: every new row has to satisfy the condition.
async fn replace_where(
    state: &SessionState,
    insert: &Insert,
    condition: &[TokenWithSpan],
    dml: &DmlStatement,
    target: &IcebergTableProvider,
) -> Result<LogicalPlan> {
    let mut select = sql("SELECT * FROM")?;
    select.extend(insert.table_tokens.iter().cloned());
    select.extend(sql("WHERE")?);
    select.extend(condition.iter().cloned());
    let plan = Box::pin(plan::plan_statement(state, &StatementText::of_tokens(select))).await?;
    let LogicalPlan::Projection(projection) = plan else { return Err(unexpected()) };
    let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return Err(unexpected()) };
    let predicate = filter.predicate.clone();
    let subquery = |e: &Expr| {
        matches!(
            e,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        )
    };
    if predicate.exists(|e| Ok(subquery(e))).map_err(from_datafusion)? || predicate.is_volatile() {
        return Err(Error::unsupported(
            "REPLACE WHERE with a subquery or a volatile function: every new row has to be checked against the condition",
        ));
    }
    let columns = columns_of(target);
    let known = |column: &Column| columns.field_with_name(&column.name).is_ok();
    if let Some(hidden) = predicate.column_refs().into_iter().find(|column| !known(column)) {
        return Err(Error::invalid_input(format!(
            "REPLACE WHERE cannot use {}, which new rows do not have",
            hidden.name
        )));
    }
    let named = |relation: Option<TableReference>| {
        predicate.clone().transform(|e| {
            Ok(match e {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::new(relation.clone(), column.name))),
                other => Transformed::no(other),
            })
        })
    };
    let name = &dml.table_name;
    let of_new = named(None).map_err(from_datafusion)?.data;
    let of_old = named(Some(name.clone())).map_err(from_datafusion)?.data;
    let message = "a new row does not satisfy the condition of REPLACE WHERE";
    let mut of_new = Some(of_new);
    let columns = dml.input.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        match of_new.take() {
            Some(condition) => require_true(condition, Expr::Column(column), message).alias(name),
            None => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(dml.input.as_ref().clone())
        .project(columns)
        .and_then(LogicalPlanBuilder::build)
        .and_then(|rows| overwrite_matching(target, name, of_old, rows))
        .map_err(from_datafusion)
}

fn unexpected() -> Error {
    Error::internal("an INSERT is planned in another way than it used to be")
}
