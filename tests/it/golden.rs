//! Every table of `fixtures/golden`, read through SQL and compared byte for byte with the rows its writer expects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve::catalog::{TableIdent, static_table};
use calve::env::Env;
use calve::io::FileIo;
use calve::provider::{IcebergTableProvider, guard_filter_pushdown};
use calve::spec::{PrimitiveType, Type};
use calve::table::Table;
use calve::{Error, ErrorKind};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{Expr, SessionConfig, SessionContext, lit};
use serde_json::Value;

use crate::csv::to_csv;

/// Tables that cannot be read in full yet, and why. Every one of them has to fail with `Unsupported`, or it leaves the list.
const PENDING: &[(&str, &str)] = &[("fmt_orc", "ORC data files")];

/// Settings that must not matter.
#[derive(Debug, Clone, Copy)]
struct Cell {
    pushdown: bool,
    page_index: bool,
    partitions: usize,
    batch_size: usize,
    filtered: bool,
}

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        let both = [false, true];
        both.into_iter().flat_map(move |pushdown| {
            both.into_iter().flat_map(move |page_index| {
                [1, 4].into_iter().flat_map(move |partitions| {
                    [1, 8192].into_iter().map(move |batch_size| Self {
                        pushdown,
                        page_index,
                        partitions,
                        batch_size,
                        filtered: true,
                    })
                })
            })
        })
    }

    fn session(self) -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(self.partitions).with_batch_size(self.batch_size);
        let options = config.options_mut();
        options.execution.parquet.pushdown_filters = self.pushdown;
        options.execution.parquet.enable_page_index = self.page_index;
        // Splits even the smallest file.
        options.optimizer.repartition_file_min_size = 1;
        let rules = guard_filter_pushdown(PhysicalOptimizer::new().rules);
        let state = SessionStateBuilder::new().with_config(config).with_default_features();
        SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build())
    }
}

const PLAIN: Cell = Cell { pushdown: false, page_index: true, partitions: 2, batch_size: 8192, filtered: false };

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

fn is_pending(name: &str) -> bool {
    PENDING.iter().any(|(pending, _)| *pending == name)
}

struct Golden {
    name: String,
    key: Vec<String>,
    /// Expected file and the snapshot and schema it stands for.
    expected: Vec<Expected>,
    metadata: String,
}

struct Expected {
    file: String,
    snapshot_id: Option<i64>,
    is_ref: bool,
}

fn golden_tables() -> Vec<Golden> {
    let index = std::fs::read_to_string(fixtures().join("index.json")).expect("index.json");
    let index: Value = serde_json::from_str(&index).expect("JSON");
    let text = |v: &Value| v.as_str().expect("text").to_owned();
    let tables = index.as_array().expect("a list").iter().map(|t| Golden {
        name: text(&t["table"]),
        key: t["key"].as_array().expect("a list").iter().map(text).collect(),
        metadata: text(&t["current_metadata"]),
        expected: t["expected"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| Expected {
                file: text(&e["file"]),
                snapshot_id: e["snapshot_id"].as_i64(),
                is_ref: !e["ref"].is_null(),
            })
            .collect(),
    });
    tables.collect()
}

impl Golden {
    async fn load(&self) -> calve::Result<Table> {
        let to = fixtures();
        let io = FileIo::builder().with_location_map("file:/warehouse/golden", to.to_str().expect("UTF-8"))?.build();
        let location = format!("file:/warehouse/golden/{}/metadata/{}", self.name, self.metadata);
        let ident = TableIdent::new(["golden"], &self.name);
        let catalog = static_table(ident.clone(), &location, io, Env::system()).await?;
        Table::load(catalog, ident, Env::system()).await
    }

    /// `Err` when the rows cannot be read or are not those wanted.
    async fn check(&self, expected: &Expected, table: &Table, cell: Cell, ctx: &SessionContext) -> Result<(), Error> {
        let current = IcebergTableProvider::new(table.clone())?;
        let provider = match expected.snapshot_id {
            Some(id) if expected.is_ref => current.with_snapshot_in_same_schema(id)?,
            Some(id @ 0..) if Some(id) != current.snapshot_id() => current.with_snapshot(id)?,
            // -1 is the table without a snapshot.
            _ => current,
        };
        let schema = Arc::clone(provider.iceberg_schema());
        let name = format!(r#""{}/{}""#, self.name, expected.file);
        ctx.register_table(name.as_str(), Arc::new(provider)).map_err(own)?;
        let wanted = std::fs::read_to_string(fixtures().join(&self.name).join(&expected.file)).expect("expected file");
        let mut filters = vec!["true".to_owned()];
        if cell.filtered {
            let key = &self.key[0];
            let low =
                format!(r#""{key}" < {}"#, self.middle(&wanted, &schema.field_by_name(key).expect("key").field_type));
            filters = vec![format!(r#"NOT {low} OR "{key}" IS NULL"#), low];
        }
        let mut batches = Vec::new();
        for filter in filters {
            batches.extend(query(ctx, &format!("SELECT * FROM {name} WHERE {filter}")).await?);
        }
        ctx.deregister_table(name.as_str()).map_err(own)?;
        let got = to_csv(&schema.fields, &batches, &self.key);
        if got == wanted { Ok(()) } else { Err(Error::internal(format!("wrong rows: {}", difference(&got, &wanted)))) }
    }

    /// A literal about in the middle of the first key column of the rows wanted.
    fn middle(&self, wanted: &str, ty: &Type) -> String {
        let mut keys: Vec<&str> = wanted.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let number = matches!(ty, Type::Primitive(PrimitiveType::Int | PrimitiveType::Long));
        if number {
            keys.retain(|k| k.parse::<i64>().is_ok());
            keys.get(keys.len() / 2).map_or_else(|| "0".to_owned(), |k| (*k).to_owned())
        } else {
            keys.get(keys.len() / 2).map_or_else(|| "'m'".to_owned(), |k| format!("'{}'", k.replace('\'', "''")))
        }
    }
}

async fn query(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, Error> {
    ctx.sql(sql).await.map_err(own)?.collect().await.map_err(own)
}

/// The error of this crate inside, or else an internal one.
fn own(e: DataFusionError) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&e);
    while let Some(current) = cause {
        if let Some(own) = current.downcast_ref::<Error>() {
            return Error::new(own.kind(), own.to_string());
        }
        cause = match current.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            _ => current.source(),
        };
    }
    Error::internal(e.to_string())
}

fn difference(got: &str, wanted: &str) -> String {
    let (got_lines, wanted_lines) = (got.lines().count(), wanted.lines().count());
    let first = got.lines().zip(wanted.lines()).find(|(a, b)| a != b);
    format!("{got_lines} lines, wanted {wanted_lines}; first difference {first:#?}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_golden_table_has_the_expected_rows() {
    let tables = golden_tables();
    assert!(tables.len() >= 69, "found {} tables", tables.len());
    let mut files = 0;
    let mut wrong = Vec::new();
    let ctx = PLAIN.session();
    for golden in &tables {
        let pending = PENDING.iter().find(|(name, _)| *name == golden.name);
        let mut refused = 0;
        match golden.load().await {
            Err(e) => wrong.push(format!("{}: {e}", golden.name)),
            Ok(table) => {
                for expected in &golden.expected {
                    files += 1;
                    match golden.check(expected, &table, PLAIN, &ctx).await {
                        Ok(()) => {}
                        Err(e) if e.kind() == ErrorKind::Unsupported && pending.is_some() => refused += 1,
                        Err(e) => wrong.push(format!("{}/{}: {e}", golden.name, expected.file)),
                    }
                }
            }
        }
        if let (Some((name, why)), 0) = (pending, refused) {
            wrong.push(format!("{name} passes and is no longer pending ({why})"));
        }
    }
    assert!(wrong.is_empty(), "{} of {files} files:\n{}", wrong.len(), wrong.join("\n"));
    assert!(files >= 241, "only {files} expected files");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_do_not_matter() {
    let sessions: Arc<Vec<(Cell, SessionContext)>> = Arc::new(Cell::all().map(|cell| (cell, cell.session())).collect());
    let tables = golden_tables().into_iter().map(|golden| {
        let sessions = Arc::clone(&sessions);
        tokio::spawn(async move {
            let table = golden.load().await.expect("a table");
            for expected in &golden.expected {
                let rows = std::fs::read_to_string(fixtures().join(&golden.name).join(&expected.file)).expect("a file");
                for (cell, ctx) in sessions.iter() {
                    // A batch a row takes its time.
                    if cell.batch_size == 1 && rows.lines().count() > 500 {
                        continue;
                    }
                    match golden.check(expected, &table, *cell, ctx).await {
                        Ok(()) => {}
                        Err(e) if e.kind() == ErrorKind::Unsupported && is_pending(&golden.name) => break,
                        Err(e) => panic!("{}/{} {cell:?}: {e}", golden.name, expected.file),
                    }
                }
            }
        })
    });
    for table in tables.collect::<Vec<_>>() {
        table.await.expect("the rows wanted");
    }
}

/// Filters on every column leave out files, row groups and pages by bounds, partitions and defaults; together the parts are
/// the whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_on_every_column_lose_no_row() {
    let ctx = Cell { pushdown: true, filtered: false, ..PLAIN }.session();
    let mut compared = 0;
    for golden in golden_tables() {
        let table = golden.load().await.expect("a table");
        let provider = Arc::new(IcebergTableProvider::new(table).expect("a provider"));
        let schema = Arc::clone(provider.iceberg_schema());
        let wanted = std::fs::read_to_string(fixtures().join(&golden.name).join("expected.csv")).expect("a file");
        let read = |filter: Expr| {
            let frame = ctx.read_table(Arc::clone(&provider) as _).and_then(|f| f.filter(filter));
            async { frame.map_err(own)?.collect().await.map_err(own) }
        };
        let all = match read(lit(true)).await {
            Ok(all) => all,
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            Err(e) => panic!("{}: {e}", golden.name),
        };
        for (i, field) in schema.fields.fields.iter().enumerate() {
            let column = Expr::Column(Column::from_name(&field.name));
            let values = all.iter().flat_map(|b| {
                (0..b.num_rows()).map(|row| ScalarValue::try_from_array(b.column(i), row).expect("a value"))
            });
            let mut values: Vec<ScalarValue> = values.filter(|v| !v.is_null()).collect();
            if field.field_type.as_primitive().is_none() {
                values.clear();
            }
            let mut parts = vec![column.clone().is_null()];
            if values.is_empty() {
                parts.push(column.is_not_null());
            } else {
                values.sort_by(|a, b| a.partial_cmp(b).expect("comparable"));
                let middle = lit(values.swap_remove(values.len() / 2));
                parts.extend([column.clone().lt(middle.clone()), column.clone().eq(middle.clone()), column.gt(middle)]);
            }
            let mut rows = Vec::new();
            for part in parts {
                rows.extend(read(part).await.expect("rows"));
            }
            let got = to_csv(&schema.fields, &rows, &golden.key);
            assert!(got == wanted, "{} by {}: {}", golden.name, field.name, difference(&got, &wanted));
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
