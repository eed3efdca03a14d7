//! Integration tests, one binary.

mod csv;
mod golden;
