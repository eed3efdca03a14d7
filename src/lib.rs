//! Row-level DML for Apache Iceberg tables as a DataFusion extension.
//!
//! calve takes writing statements out of DataFusion's hands while they are logical plans, because DataFusion's own DML hooks
//! forget subqueries and limits, and commits each as one Iceberg snapshot or none.
//!
//! # Layers
//!
//! Each module uses only those above it; a test keeps it so. DataFusion starts at [`options`].
//!
//! | module | what it is |
//! |---|---|
//! | [`error`], [`env`] | the error type; clock and ids, injected |
//! | [`spec`] | the table format, pure: metadata, schemas, manifests, Puffin, deletion vectors |
//! | [`expr`] | predicates, and what metadata says of them: no row, every row, or some |
//! | [`io`] | files by recorded location, over `object_store` |
//! | [`catalog`], [`table`] | where tables are found and committed; one state of a table |
//! | [`scan`] | from a snapshot to files and the deletes that apply to them; reads no rows |
//! | [`writer`] | from rows to data files, delete files and deletion vectors; commits nothing |
//! | [`transaction`] | from files to one snapshot: conflict rules and the only retry loop |
//! | [`options`], [`provider`] | session options; tables for DataFusion, and the scan |
//! | [`dml`] | statements to plans, plans to one commit |
//! | [`maintenance`] | which files a table reaches |
//! | [`session`] | installing the extension; the statements DataFusion does not plan |
//!
//! # One statement, followed end to end
//!
//! `DELETE FROM t WHERE id IN (SELECT id FROM gone)`:
//!
//! 1. [`session::Calve`] splits the text, repairs the parse tree and has DataFusion plan it. Plain `SessionContext::sql`
//!    does as well for statements that DataFusion can plan.
//! 2. [`dml::analyze`] replaces `Dml(Delete)` by a [`dml::logical::RowDeltaNode`] over a query for the addresses (file,
//!    position) of the rows, pinned to the snapshot that `t` was loaded at. The optimizer turns the subquery into a join
//!    and pushes filters and columns into the scan.
//! 3. [`dml::physical`] asks [`expr::FileEvaluator`] of every file of the scan: files where no row can match go
//!    unread, files whose every row matches are dropped by metadata ([`dml::strict_pruning`]), the rest is scanned. Rows
//!    that vectors and position deletes hide are skipped before they are decoded ([`provider`]).
//! 4. A [`dml::physical::RowDeltaWriterExec`] per partition gathers the addresses in one bitmap a file; the one
//!    [`dml::physical::CommitExec`] decides file by file ([`dml::row_delete_planner`]): drop it, write a deletion vector or
//!    position deletes, or rewrite it.
//! 5. [`transaction::SnapshotUpdate`] validates against every commit since the pinned snapshot, writes manifests and has
//!    the catalog swap. It is committed, retried, refused or unknown; after unknown nothing is deleted.
//!
//! UPDATE and MERGE go the same way: their rows carry an operation and new values beside the address
//! ([`dml::logical::Change`]), and the writers make data files of those. The path without SQL is [`dml::plan_delete`].

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
