//! Integration tests, one binary.

mod alter;
mod catalog;
mod commit;
mod csv;
mod delete;
mod differential;
mod equality;
mod foreign_files;
mod golden;
mod guards;
mod handmade;
mod lineage;
mod metadata_tables;
mod overwrite;
mod positions;
mod reading;
mod scan;
#[cfg(feature = "cli")]
mod shell;
mod support;
mod time_travel;
mod wrong_answers;
