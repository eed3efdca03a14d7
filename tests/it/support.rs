//! A session over a warehouse in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use arrow::util::pretty::pretty_format_batches;
use calve::catalog::{Catalog, FilesystemCatalog, TableIdent};
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, install};
use calve::table::Table;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

/// The folder of a warehouse.
pub enum Folder {
    /// Goes with the value.
    Own(TempDir),
    /// Stays.
    Others(PathBuf),
}

impl Folder {
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Others(path) => path,
        }
    }
}

/// Catalog `lake` with namespace `default`, both current, over a folder that goes with the value.
pub struct Lake {
    pub dir: Folder,
    pub calve: Calve,
    catalog: Arc<dyn Catalog>,
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

impl Lake {
    /// An empty warehouse.
    pub async fn new() -> Self {
        Self::with_config(SessionConfig::new()).await
    }

    /// An empty warehouse under a session of `config`. Locations in the golden warehouse lead to its `default` namespace.
    pub async fn with_config(config: SessionConfig) -> Self {
        Self::open(Folder::Own(tempfile::tempdir().unwrap()), config).await
    }

    /// A session of its own over the warehouse in `dir`, with nothing cached.
    pub async fn at(dir: &Path) -> Self {
        Self::open(Folder::Others(dir.to_path_buf()), SessionConfig::new()).await
    }

    async fn open(dir: Folder, config: SessionConfig) -> Self {
        let warehouse = dir.path().to_str().unwrap();
        let io = FileIo::builder()
            .with_location_map("file:/warehouse/golden", &format!("{warehouse}/default"))
            .unwrap()
            .build();
        let catalog: Arc<dyn Catalog> = Arc::new(FilesystemCatalog::new("lake", warehouse, io, Env::system()).unwrap());
        catalog.create_namespace(&["default".to_string()], true).await.unwrap();
        let calve = session(Arc::clone(&catalog), config);
        Self { dir, calve, catalog }
    }

    /// Copies a golden table in as `lake.default.<name>`, writable.
    pub fn copy_golden(&self, name: &str) {
        copy_dir(&fixtures().join("golden").join(name), &self.dir.path().join("default").join(name));
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.catalog
    }

    /// Runs statements and returns the last one's rows.
    pub async fn sql(&self, text: &str) -> calve::Result<Vec<RecordBatch>> {
        run(&self.calve, text).await
    }

    /// Runs one DML statement and returns its count.
    pub async fn count(&self, text: &str) -> u64 {
        let batches = self.sql(text).await.unwrap();
        batches[0].column(0).as_primitive::<UInt64Type>().value(0)
    }

    /// The rows of a query as text, sorted.
    pub async fn rows(&self, query: &str) -> Vec<String> {
        text_rows(&self.sql(query).await.unwrap())
    }

    /// A table as it is now.
    pub async fn table(&self, name: &str) -> Table {
        let ident = TableIdent { namespace: vec!["default".to_string()], name: name.to_string() };
        Table::load(Arc::clone(&self.catalog), ident, Env::system()).await.unwrap()
    }
}

/// A session on `catalog`, with the extension.
pub fn session(catalog: Arc<dyn Catalog>, config: SessionConfig) -> Calve {
    let config = config.with_default_catalog_and_schema("lake", "default").with_information_schema(true);
    let state = install(SessionStateBuilder::new().with_default_features().with_config(config)).build();
    let calve = Calve::new(SessionContext::new_with_state(state)).unwrap();
    calve.register_catalog("lake", catalog);
    calve
}

/// Runs statements in a session and returns the last one's rows.
pub async fn run(calve: &Calve, text: &str) -> calve::Result<Vec<RecordBatch>> {
    let mut last = Vec::new();
    for statement in calve.statements(text)? {
        last = calve.execute(&statement).await?.collect().await.map_err(calve::session::from_datafusion)?;
    }
    Ok(last)
}

/// Rows as text, sorted.
pub fn text_rows(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut rows: Vec<String> =
        text.lines().skip(3).filter(|line| !line.starts_with('+')).map(str::to_string).collect();
    rows.sort();
    rows
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_dir(&path, &target) } else { fs::copy(&path, &target).map(|_| ()).unwrap() }
    }
}
