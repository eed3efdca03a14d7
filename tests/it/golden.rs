//! Every table of `fixtures/golden`, read through SQL and compared byte for byte with the rows its writer expects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve::catalog::{TableIdent, static_table};
use calve::env::Env;
use calve::io::FileIo;
use calve::provider::{IcebergTableProvider, guard_filter_pushdown};
use calve::spec::{NestedField, PrimitiveType, Type};
use calve::table::Table;
use calve::{Error, ErrorKind};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{Expr, SessionConfig, SessionContext, lit};
use serde_json::Value;

use crate::csv::to_csv;

/// The table in a format that is not read. Its expected files are not counted.
const REFUSED: &str = "fmt_orc";
/// Expected files of all other tables.
const EXPECTED_FILES: usize = 250;
/// The table with a file of 133,000 rows.
const LARGE: &str = "dv_containers";
/// Set to `all`, every setting is combined with every other.
const CELLS: &str = "CALVE_GOLDEN_CELLS";

/// Settings that must not matter.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Leave out row groups.
    pruning: bool,
    page_index: bool,
    pushdown: bool,
    partitions: usize,
    batch_size: usize,
    /// Read in two parts, each with a filter on the key.
    filtered: bool,
}

impl Cell {
    fn of([pruning, page_index, pushdown, many, single]: [bool; 5]) -> Self {
        let (partitions, batch_size) = (if many { 4 } else { 1 }, if single { 1 } else { 8192 });
        Self { pruning, page_index, pushdown, partitions, batch_size, filtered: true }
    }

    fn all() -> Vec<Self> {
        (0..32).map(|bits| Self::of([0, 1, 2, 3, 4].map(|bit| bits >> bit & 1 == 1))).collect()
    }

    /// Cells in which every two values of any two settings occur: in the rows after the first, each setting is on in
    /// another three of five.
    fn pairs() -> Vec<Self> {
        let on = |row: usize| {
            ["01110", "01101", "01011", "00111", "10101"].map(|c| row > 0 && c.as_bytes()[row - 1] == b'1')
        };
        (0..6).map(|row| Self::of(on(row))).collect()
    }

    fn chosen() -> Vec<Self> {
        if std::env::var(CELLS).is_ok_and(|cells| cells == "all") { Self::all() } else { Self::pairs() }
    }

    fn session(self) -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(self.partitions).with_batch_size(self.batch_size);
        let options = config.options_mut();
        options.execution.parquet.pruning = self.pruning;
        options.execution.parquet.pushdown_filters = self.pushdown;
        options.execution.parquet.enable_page_index = self.page_index;
        // Splits even the smallest file.
        options.optimizer.repartition_file_min_size = 1;
        let rules = guard_filter_pushdown(PhysicalOptimizer::new().rules);
        let state = SessionStateBuilder::new().with_config(config).with_default_features();
        SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build())
    }
}

const PLAIN: Cell =
    Cell { pruning: true, page_index: true, pushdown: false, partitions: 2, batch_size: 8192, filtered: false };

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden")
}

struct Golden {
    name: String,
    key: Vec<String>,
    expected: Vec<Expected>,
    metadata: String,
}

/// A file of expected rows and what it stands for.
struct Expected {
    file: String,
    /// `None` for the current snapshot.
    snapshot_id: Option<i64>,
    /// The branch or tag it is of.
    reference: Option<String>,
    /// With the row ids and sequence numbers.
    lineage: bool,
}

impl Expected {
    /// By the file's name, see `fixtures/README.md`; `about` is the table's entry in the index.
    fn new(file: &str, about: &Value) -> Self {
        let which = file.strip_prefix("expected").and_then(|rest| rest.strip_suffix(".csv")).expect("a name");
        let (which, lineage) = match which.strip_prefix("-lineage") {
            Some(rest) => (rest, true),
            None => (which, false),
        };
        let ids = |list: &str, name: &str, value: Value| -> i64 {
            let entry = about[list].as_array().expect("a list").iter().find(|e| e[name] == value);
            let entry = entry.unwrap_or_else(|| panic!("{} in no {list} of the index", file));
            entry[["id", "snapshot_id"][usize::from(list == "expected")]].as_i64().expect("an id")
        };
        let reference = which.strip_prefix("-branch-").or_else(|| which.strip_prefix("-tag-")).map(str::to_owned);
        let snapshot_id = match which.strip_prefix('-') {
            None => None,
            Some(_) if reference.is_some() => Some(ids("expected", "file", file.into())),
            Some(n) => Some(ids("snapshots", "ordinal", n.parse::<i64>().expect("a number").into())),
        };
        Self { file: file.to_owned(), snapshot_id, reference, lineage }
    }
}

/// The tables of the index, with the expected files that lie beside them.
fn golden_tables() -> Vec<Golden> {
    let index = std::fs::read_to_string(fixtures().join("index.json")).expect("index.json");
    let index: Value = serde_json::from_str(&index).expect("JSON");
    let text = |v: &Value| v.as_str().expect("text").to_owned();
    let tables = index.as_array().expect("a list").iter().map(|about| {
        let name = text(&about["table"]);
        let files = std::fs::read_dir(fixtures().join(&name)).expect("a folder");
        let files = files.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        let mut files: Vec<String> = files.filter(|f| f.starts_with("expected") && f.ends_with(".csv")).collect();
        files.sort();
        Golden {
            key: about["key"].as_array().expect("a list").iter().map(text).collect(),
            metadata: text(&about["current_metadata"]),
            expected: files.iter().map(|file| Expected::new(file, about)).collect(),
            name,
        }
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
            Some(_) if let Some(name) = &expected.reference => {
                IcebergTableProvider::at_version(table.clone(), table.version_named(name)?)?
            }
            Some(id) if Some(id) != current.snapshot_id() => current.with_snapshot(id)?,
            _ => current,
        };
        let schema = Arc::clone(provider.iceberg_schema());
        let mut fields = schema.fields.clone();
        let provider = if expected.lineage {
            for (id, name) in [(-1, "_row_id"), (-2, "_last_updated_sequence_number")] {
                fields.fields.push(Arc::new(NestedField::new(id, name, false, PrimitiveType::Long)));
            }
            provider.with_row_address()?
        } else {
            provider
        };
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
        let names: Vec<String> = fields.fields.iter().map(|f| format!("\"{}\"", f.name.replace('"', "\"\""))).collect();
        let columns = names.join(", ");
        let mut batches = Vec::new();
        for filter in filters {
            batches.extend(query(ctx, &format!("SELECT {columns} FROM {name} WHERE {filter}")).await?);
        }
        ctx.deregister_table(name.as_str()).map_err(own)?;
        let got = to_csv(&fields, &batches, &self.key);
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
    for golden in tables.iter().filter(|golden| golden.name != REFUSED) {
        files += golden.expected.len();
        match golden.load().await {
            Err(e) => wrong.push(format!("{}: {e}", golden.name)),
            Ok(table) => {
                for expected in &golden.expected {
                    if let Err(e) = golden.check(expected, &table, PLAIN, &ctx).await {
                        wrong.push(format!("{}/{}: {e}", golden.name, expected.file));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {files} files:\n{}", wrong.len(), wrong.join("\n"));
    assert!(files >= EXPECTED_FILES, "only {files} expected files");
}

#[tokio::test]
async fn orc_is_refused_by_file_format_and_table() {
    let tables = golden_tables();
    let golden = tables.iter().find(|golden| golden.name == REFUSED).expect("the table");
    let table = golden.load().await.expect("metadata is read");
    assert!(!golden.expected.is_empty());
    for expected in &golden.expected {
        let error = golden.check(expected, &table, PLAIN, &PLAIN.session()).await.expect_err("ORC is not read");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error}", expected.file);
        for part in ["/fmt_orc/data/", ".orc", "format ORC", "table: golden.fmt_orc"] {
            assert!(error.to_string().contains(part), "{}: {part} in {error}", expected.file);
        }
    }
}

#[test]
fn any_two_settings_meet_in_some_cell() {
    let settings = |c: &Cell| [c.pruning, c.page_index, c.pushdown, c.partitions > 1, c.batch_size == 1];
    for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let mut values: Vec<_> = Cell::pairs().iter().map(|c| (settings(c)[a], settings(c)[b])).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 4, "settings {a} and {b}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_do_not_matter() {
    let cells: Arc<[Cell]> = Cell::chosen().into();
    let tables = golden_tables().into_iter().filter(|golden| golden.name != REFUSED).map(|golden| {
        let cells = Arc::clone(&cells);
        tokio::spawn(async move {
            let table = golden.load().await.expect("a table");
            // A batch a row takes its time: of the large table, one cell does it.
            let mut skip_single = false;
            for cell in cells.iter() {
                let single = cell.batch_size == 1;
                if single && skip_single {
                    continue;
                }
                let ctx = cell.session();
                for expected in &golden.expected {
                    if let Err(e) = golden.check(expected, &table, *cell, &ctx).await {
                        panic!("{}/{} {cell:?}: {e}", golden.name, expected.file);
                    }
                }
                skip_single |= single && golden.name == LARGE && cells.len() < Cell::all().len();
            }
            golden.expected.len()
        })
    });
    let mut files = 0;
    for table in tables.collect::<Vec<_>>() {
        files += table.await.expect("the rows wanted");
    }
    assert!(files >= EXPECTED_FILES, "only {files} expected files");
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
