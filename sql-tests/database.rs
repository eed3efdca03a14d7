//! A session over a warehouse of its own, as sqllogictest sees it.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, UInt64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use calve::catalog::{Catalog, FilesystemCatalog};
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, CalveOptions, install};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};
use tempfile::TempDir;

use crate::Cell;
use crate::oracle::{self, Oracle};

/// One file's session.
pub struct Database {
    pub calve: Calve,
    cell: Cell,
    /// Goes with the value.
    _warehouse: TempDir,
}

impl Database {
    /// A session with catalog `lake` and namespace `default`, both current, under the settings of a cell; and the tables
    /// that other writers left, `golden.golden.<name>`, to read.
    pub async fn new(cell: Cell) -> calve::Result<Self> {
        let warehouse = tempfile::tempdir().expect("a folder");
        let location = warehouse.path().to_str().expect("UTF-8");
        let catalog: Arc<dyn Catalog> =
            Arc::new(FilesystemCatalog::new("lake", location, FileIo::local(), Env::system())?);
        catalog.create_namespace(&["default".to_string()], true).await?;
        let mut options = CalveOptions::default();
        options.delete_mode = cell.mode().to_string();
        options.update_mode = cell.mode().to_string();
        options.merge_mode = cell.mode().to_string();
        options.strict_pruning = cell.strict;
        let mut config = SessionConfig::new()
            .with_option_extension(options)
            .with_default_catalog_and_schema("lake", "default")
            .with_information_schema(true)
            .with_target_partitions(cell.partitions)
            .with_batch_size(cell.batch_size);
        config.options_mut().optimizer.repartition_file_min_size = 1;
        let state = install(SessionStateBuilder::new().with_default_features().with_config(config)).build();
        let calve = Calve::new(SessionContext::new_with_state(state))?;
        calve.register_catalog("lake", catalog);
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
        let io = FileIo::builder().with_location_map("file:/warehouse/golden", &format!("{fixtures}/golden"))?.build();
        calve.register_catalog("golden", Arc::new(FilesystemCatalog::new("golden", fixtures, io, Env::system())?));
        Ok(Self { calve, cell, _warehouse: warehouse })
    }

    /// Runs one statement. The schema stands beside the rows, because there may be no batch.
    pub async fn rows(&self, sql: &str) -> calve::Result<(Vec<DataType>, Vec<Vec<String>>)> {
        let frame = self.calve.sql(sql).await?;
        let types = frame.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let batches = frame.collect().await.map_err(calve::session::from_datafusion)?;
        Ok((types, text(&batches)))
    }

    async fn count(&self, sql: &str) -> calve::Result<u64> {
        let batches = self.calve.sql(sql).await?.collect().await.map_err(calve::session::from_datafusion)?;
        let count = batches.first().and_then(|b| b.column(0).as_primitive_opt::<UInt64Type>().map(|c| c.value(0)));
        Ok(count.expect("a count"))
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = calve::Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> calve::Result<DBOutput<DefaultColumnType>> {
        let sql = sql.replace("${version}", &self.cell.version.to_string());
        let oracle = Oracle::before(self, &sql).await;
        let output = if oracle::is_dml(&sql) {
            self.count(&sql).await.map(DBOutput::StatementComplete)
        } else {
            self.rows(&sql).await.map(|(types, rows)| {
                if types.is_empty() {
                    DBOutput::StatementComplete(0)
                } else {
                    DBOutput::Rows { types: types.iter().map(column_type).collect(), rows }
                }
            })
        };
        let count = match &output {
            Ok(DBOutput::StatementComplete(count)) => Some(*count),
            Ok(_) => None,
            Err(_) => Some(0),
        };
        if let Some(oracle) = oracle {
            oracle.check(self, count, output.is_err()).await;
        }
        output
    }

    async fn shutdown(&mut self) {}
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_floating() => DefaultColumnType::FloatingPoint,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DefaultColumnType::Text,
        _ => DefaultColumnType::Any,
    }
}

/// Cells as text: `NULL`, `(empty)`, `(blank)` for white space alone, `\n` for a line break.
fn text(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("a formatter"))
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayFormatter<'_>| {
                let text = column.value(row).to_string().replace('\n', "\\n");
                match text.trim() {
                    "" if text.is_empty() => "(empty)".to_string(),
                    "" => "(blank)".to_string(),
                    _ => text,
                }
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}
