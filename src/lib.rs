//! Row-level DML for Apache Iceberg tables as a DataFusion extension.

#![warn(missing_docs, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod catalog;
pub mod columns;
pub mod dml;
pub mod env;
pub mod error;
pub mod expr;
pub mod io;
#[cfg(test)]
mod layers;
pub mod maintenance;
pub mod options;
pub mod provider;
pub mod scan;
pub mod session;
pub mod spec;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transaction;
pub mod writer;

pub use error::{Error, ErrorKind, Result};
