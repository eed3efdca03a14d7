//! Errors across the border to DataFusion.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use crate::{Error, ErrorKind};

/// Converts an error of DataFusion into one of ours: our own error that travelled through DataFusion comes back as it was;
/// the rest gets the kind that says what to do, and a message without DataFusion's wrapping.
pub fn from_datafusion(error: DataFusionError) -> Error {
    if let Some(own) = own_error(&error) {
        return own;
    }
    let (kind, message) = describe(&error);
    Error::new(kind, message)
}

/// Our own error inside, rebuilt because a shared cause cannot be moved out.
fn own_error(error: &DataFusionError) -> Option<Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(own) = current.downcast_ref::<Error>() {
            return Some(own.duplicate());
        }
        cause = match current.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ArrowError(inner, _)) => Some(inner.as_ref()),
            Some(DataFusionError::Collection(all)) => all.first().map(|e| e as _),
            _ => current.source(),
        };
    }
    None
}

fn describe(error: &DataFusionError) -> (ErrorKind, String) {
    match error {
        DataFusionError::SQL(e, _) => (ErrorKind::InvalidInput, parser_message(e)),
        DataFusionError::Plan(m) | DataFusionError::Configuration(m) => (kind_of_plan(m), m.clone()),
        DataFusionError::SchemaError(e, _) => (kind_of_schema(e), e.to_string()),
        DataFusionError::NotImplemented(m) => (ErrorKind::Unsupported, m.clone()),
        DataFusionError::Execution(m) => (ErrorKind::InvalidInput, m.clone()),
        DataFusionError::ArrowError(e, _) => (ErrorKind::InvalidInput, e.to_string()),
        DataFusionError::ResourcesExhausted(m) => (ErrorKind::Unavailable, format!("out of memory: {m}")),
        DataFusionError::ObjectStore(e) => match e.as_ref() {
            object_store::Error::NotFound { .. } => (ErrorKind::NotFound, e.to_string()),
            object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
                (ErrorKind::Unsupported, e.to_string())
            }
            _ => (ErrorKind::Unavailable, e.to_string()),
        },
        DataFusionError::IoError(e) => match e.kind() {
            std::io::ErrorKind::NotFound => (ErrorKind::NotFound, e.to_string()),
            _ => (ErrorKind::Unavailable, e.to_string()),
        },
        DataFusionError::ParquetError(e) => (ErrorKind::DataInvalid, e.to_string()),
        // The name of a planner's rule says nothing to a user.
        DataFusionError::Context(context, inner) if !context.contains(' ') => describe(inner),
        // Names were resolved before any rule ran: the rule has lost a column, and the statement is not at fault.
        DataFusionError::Context(context, inner)
            if context.starts_with("Optimizer rule ") && matches!(inner.as_ref(), DataFusionError::SchemaError(..)) =>
        {
            (ErrorKind::Unsupported, format!("DataFusion cannot plan this statement: {context}: {}", describe(inner).1))
        }
        DataFusionError::Context(context, inner) => {
            let (kind, message) = describe(inner);
            (kind, format!("{context}: {message}"))
        }
        DataFusionError::Diagnostic(_, inner) => describe(inner),
        DataFusionError::Shared(inner) => describe(inner),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => describe(first),
            None => (ErrorKind::Internal, "an empty list of errors".to_owned()),
        },
        DataFusionError::External(e) => (ErrorKind::Unavailable, e.to_string()),
        other => (ErrorKind::Internal, other.to_string()),
    }
}

fn parser_message(e: &ParserError) -> String {
    match e {
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => {
            // "Expected: x, found: y at Line: 1, Column: 2" in the words our own parser uses
            m.replace("Expected: ", "expected ")
                .replace("found: ", "found ")
                .replace("at Line: ", "at line ")
                .replace("Column: ", "column ")
                .replace("found EOF", "found the end of the statement")
        }
        ParserError::RecursionLimitExceeded => "the statement nests too deep".to_owned(),
    }
}

fn kind_of_plan(message: &str) -> ErrorKind {
    let missing = message.starts_with("table '") && message.ends_with("' not found");
    if missing { ErrorKind::NotFound } else { ErrorKind::InvalidInput }
}

fn kind_of_schema(error: &SchemaError) -> ErrorKind {
    match error {
        SchemaError::FieldNotFound { .. } => ErrorKind::NotFound,
        _ => ErrorKind::InvalidInput,
    }
}

impl From<Error> for DataFusionError {
    /// The error whole, as an external one; [`from_datafusion`] brings it back unchanged.
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

/// Converts an error of ours for a DataFusion interface; [`from_datafusion`] brings it back unchanged.
pub fn to_datafusion(error: Error) -> DataFusionError {
    error.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::Column;

    use super::*;

    #[test]
    fn own_errors_come_back_as_they_were() {
        let own = || Error::conflict("another writer won").with_context("table", "db.t");
        for wrapped in [
            to_datafusion(own()),
            DataFusionError::Shared(Arc::new(to_datafusion(own()))),
            to_datafusion(own()).context("while committing"),
            DataFusionError::Collection(vec![to_datafusion(own())]),
            DataFusionError::ArrowError(
                Box::new(arrow::error::ArrowError::ExternalError(Box::new(to_datafusion(own())))),
                None,
            ),
        ] {
            let back = from_datafusion(wrapped);
            assert_eq!((back.kind(), back.message()), (ErrorKind::Conflict, "another writer won"));
            assert_eq!(back.context("table"), Some("db.t"));
        }
    }

    #[test]
    fn datafusion_errors_say_what_to_do() {
        for (error, kind, message) in [
            (DataFusionError::Plan("table 'a.b.c' not found".into()), ErrorKind::NotFound, "table 'a.b.c' not found"),
            (DataFusionError::Plan("nonsense".into()), ErrorKind::InvalidInput, "nonsense"),
            (DataFusionError::NotImplemented("x".into()), ErrorKind::Unsupported, "x"),
            (
                DataFusionError::SQL(
                    Box::new(ParserError::ParserError("Expected: a, found: EOF at Line: 1, Column: 2".into())),
                    None,
                ),
                ErrorKind::InvalidInput,
                "expected a, found the end of the statement at line 1, column 2",
            ),
            (DataFusionError::ResourcesExhausted("x".into()), ErrorKind::Unavailable, "out of memory: x"),
            (DataFusionError::Plan("x".into()).context("some_rule"), ErrorKind::InvalidInput, "x"),
            (DataFusionError::Plan("x".into()).context("while reading"), ErrorKind::InvalidInput, "while reading: x"),
        ] {
            let e = from_datafusion(error);
            assert_eq!((e.kind(), e.message()), (kind, message));
        }
    }

    #[test]
    fn a_column_that_an_optimizer_rule_loses_is_not_the_statement_s_fault() {
        let lost = || {
            let field = Box::new(Column::from_name("mark"));
            DataFusionError::SchemaError(
                Box::new(SchemaError::FieldNotFound { field, valid_fields: Vec::new() }),
                Box::new(None),
            )
        };
        assert_eq!(from_datafusion(lost()).kind(), ErrorKind::NotFound);
        let e = from_datafusion(lost().context("Optimizer rule 'optimize_projections' failed"));
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().contains("optimize_projections"), "{e}");
    }
}
