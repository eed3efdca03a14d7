//! The one error type of the crate.
//!
//! A kind says what the caller can *do*; the message says what happened, where, and what to do next. Invariant: no
//! secret (credential, signed URL) ever enters a message.

use std::fmt;

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is, by what the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: fix the statement or the arguments.
    InvalidInput,
    /// A table, namespace, column, snapshot, ref or file does not exist.
    NotFound,
    /// The thing to create exists already.
    AlreadyExists,
    /// A valid request for something this version does not do; the message names the feature.
    Unsupported,
    /// Another writer's commit makes this one invalid: run the statement again on the new state.
    Conflict,
    /// The commit may or may not have happened. Nothing was cleaned up; the message names the snapshot id to look for.
    CommitUnknown,
    /// Storage or catalog could not be reached, or answered with a transient error.
    Unavailable,
    /// A file breaks the specification; the message names the path and the field or section.
    DataInvalid,
    /// A bug in calve.
    Internal,
}

impl ErrorKind {
    /// Stable name of the kind, as printed in front of a message.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Unsupported => "unsupported",
            Self::Conflict => "conflict",
            Self::CommitUnknown => "commit state unknown",
            Self::Unavailable => "unavailable",
            Self::DataInvalid => "invalid data",
            Self::Internal => "internal error",
        }
    }
}

/// An error: kind, message, context pairs and an optional cause. One word wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Error {
            $($(#[$doc])*
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            })*
        }
    };
}

constructors! {
    /// An [`ErrorKind::InvalidInput`] error.
    invalid_input => InvalidInput;
    /// An [`ErrorKind::NotFound`] error.
    not_found => NotFound;
    /// An [`ErrorKind::AlreadyExists`] error.
    already_exists => AlreadyExists;
    /// An [`ErrorKind::Unsupported`] error.
    unsupported => Unsupported;
    /// An [`ErrorKind::Conflict`] error.
    conflict => Conflict;
    /// An [`ErrorKind::CommitUnknown`] error.
    commit_unknown => CommitUnknown;
    /// An [`ErrorKind::Unavailable`] error.
    unavailable => Unavailable;
    /// An [`ErrorKind::DataInvalid`] error.
    data_invalid => DataInvalid;
    /// An [`ErrorKind::Internal`] error.
    internal => Internal;
}

impl Error {
    /// An error of `kind` with a message that says what, where, and what to do next.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), context: Vec::new(), source: None }))
    }

    /// Adds a `name: value` pair, printed after the message. Never pass a secret.
    #[must_use]
    pub fn with_context(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.context.push((name, value.into()));
        self
    }

    /// Sets the cause, kept for [`std::error::Error::source`] and printed last.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same failure for another caller that waited for it: kind, message and context; the cause as text.
    pub(crate) fn duplicate(&self) -> Self {
        let source = self.0.source.as_ref().map(|source| source.to_string().into());
        let Inner { kind, message, context, .. } = &*self.0;
        Self(Box::new(Inner { kind: *kind, message: message.clone(), context: context.clone(), source }))
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without kind, context and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The value of the context pair `name`, if the error carries one.
    pub fn context(&self, name: &str) -> Option<&str> {
        self.0.context.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.name(), self.0.message)?;
        for (name, value) in &self.0.context {
            write!(f, " [{name}: {value}]")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_kind_message_context_and_cause() {
        let e = Error::data_invalid("manifest has no partition-spec")
            .with_context("path", "a.avro")
            .with_source(Error::internal("x"));
        assert_eq!(e.to_string(), "invalid data: manifest has no partition-spec [path: a.avro]: internal error: x");
        assert_eq!(e.kind(), ErrorKind::DataInvalid);
        assert_eq!(e.context("path"), Some("a.avro"));
    }

    #[test]
    fn is_one_word_wide() {
        assert_eq!(std::mem::size_of::<Error>(), std::mem::size_of::<usize>());
    }
}
