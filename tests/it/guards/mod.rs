//! Wrong answers of DataFusion 55.2 that a writing statement would store, by their names in the design notes: each through our
//! statement entry point and through plain `SessionContext::sql`, and each gives SQL's answer or a clear refusal.

mod expressions;
mod foreign;
mod fuzz;
mod plans;
mod subqueries;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use calve::env::Env;
use calve::provider::IcebergCatalogProvider;
use calve::session::{Calve, from_datafusion, install};
use calve::spec::PrimitiveType;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::handmade::{Lake, column};

/// How a statement gets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Entry,
    Plain,
}

pub const DOORS: [Door; 2] = [Door::Entry, Door::Plain];

/// A table: its name, its columns, its rows as SQL values; no rows make an empty table.
pub type Spec<'a> = (&'a str, &'a [(&'a str, PrimitiveType)], &'a str);

/// A lake of its own with a session on it.
pub struct World {
    door: Door,
    calve: Calve,
    _lake: Lake,
    dir: tempfile::TempDir,
}

impl World {
    pub async fn new(door: Door, tables: &[Spec<'_>]) -> Self {
        Self::with(door, tables, |_| {}).await
    }

    pub async fn with(door: Door, tables: &[Spec<'_>], configure: impl FnOnce(&mut ConfigOptions)) -> Self {
        let lake = Lake::new().await;
        let mut config = SessionConfig::new().with_default_catalog_and_schema("lake", "db");
        config.options_mut().execution.target_partitions = 4;
        configure(config.options_mut());
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let ctx = SessionContext::new_with_state(install(builder).build());
        let provider = IcebergCatalogProvider::new(Arc::clone(&lake.catalog), Env::system());
        ctx.register_catalog("lake", Arc::new(provider));
        let memory = MemoryCatalogProvider::new();
        memory.register_schema("s", Arc::new(MemorySchemaProvider::new())).unwrap();
        ctx.register_catalog("mem", Arc::new(memory));
        for (name, columns, rows) in tables {
            let columns = (1..).zip(*columns).map(|(id, (name, ty))| column(id, name, ty.clone())).collect();
            lake.create(name, columns).await;
            if !rows.is_empty() {
                let sql = format!("INSERT INTO {name} VALUES {rows}");
                ctx.sql(&sql).await.unwrap().collect().await.unwrap();
            }
        }
        Self { door, calve: Calve::new(ctx).unwrap(), _lake: lake, dir: tempfile::tempdir().unwrap() }
    }

    pub fn ctx(&self) -> &SessionContext {
        self.calve.context()
    }

    /// The rows of a statement, as text, sorted; cells apart by `|`.
    pub async fn try_rows(&self, sql: &str) -> calve::Result<Vec<String>> {
        let frame = match self.door {
            Door::Entry => self.calve.sql(sql).await?,
            Door::Plain => self.ctx().sql(sql).await.map_err(from_datafusion)?,
        };
        let batches = frame.collect().await.map_err(from_datafusion)?;
        let text = pretty_format_batches(&batches).unwrap().to_string();
        let cells = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join("|");
        let mut lines: Vec<String> = text.lines().filter(|l| l.starts_with('|')).skip(1).map(cells).collect();
        lines.sort();
        Ok(lines)
    }

    pub async fn rows(&self, sql: &str) -> Vec<String> {
        self.try_rows(sql).await.unwrap_or_else(|e| panic!("{:?} {sql}: {e}", self.door))
    }

    pub async fn refused(&self, sql: &str, words: &str) {
        match self.try_rows(sql).await {
            Ok(rows) => panic!("{:?} {sql} gives {rows:?}", self.door),
            Err(e) => assert!(e.to_string().contains(words), "{:?} {sql}: {e}", self.door),
        }
    }

    /// Registers a Parquet file of these rows as `mem.s.<name>`, with pruning of its own switched on.
    pub async fn parquet(&self, name: &str, batch: &RecordBatch, properties: WriterProperties) -> PathBuf {
        let path = self.dir.path().join(format!("{name}.parquet"));
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let options = ParquetReadOptions::default().parquet_pruning(true);
        self.ctx().register_parquet(format!("mem.s.{name}"), path.to_str().unwrap(), options).await.unwrap();
        path
    }
}

/// Deletes from the first table, whose first column is a key, through both doors: the rows with the keys `gone`, no other.
pub async fn assert_deletes(tables: &[Spec<'_>], condition: &str, gone: &[i64]) {
    for door in DOORS {
        let world = World::new(door, tables).await;
        let (name, columns, _) = tables[0];
        let key = columns[0].0;
        let before = world.rows(&format!("SELECT {key} FROM {name}")).await;
        let sorted = |mut keys: Vec<String>| {
            keys.sort();
            keys
        };
        let gone = sorted(gone.iter().map(i64::to_string).collect());
        let selected = world.rows(&format!("SELECT {key} FROM {name} WHERE {condition}")).await;
        assert_eq!(selected, gone, "SELECT, {door:?}: {condition}");
        let count = world.rows(&format!("DELETE FROM {name} WHERE {condition}")).await;
        assert_eq!(count, [gone.len().to_string()], "{door:?}: {condition}");
        let stay: Vec<String> = before.into_iter().filter(|k| !gone.contains(k)).collect();
        assert_eq!(world.rows(&format!("SELECT {key} FROM {name}")).await, stay, "{door:?}: {condition}");
    }
}

/// The DELETE is refused through both doors, and nothing is gone.
pub async fn assert_refuses_delete(tables: &[Spec<'_>], condition: &str, words: &str) {
    for door in DOORS {
        let world = World::new(door, tables).await;
        let (name, columns, _) = tables[0];
        let all = format!("SELECT {} FROM {name}", columns[0].0);
        let before = world.rows(&all).await;
        world.refused(&format!("DELETE FROM {name} WHERE {condition}"), words).await;
        assert_eq!(world.rows(&all).await, before);
    }
}
