//! Integration tests, one binary.

mod csv;
mod delete;
mod golden;
mod support;
