//! From the command line to a session.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use calve::Result;
use calve::catalog::{Catalog, FilesystemCatalog};
use calve::env::Env;
use calve::io::FileIo;
use calve::session::{Calve, Extension, from_datafusion};
use datafusion::common::format::ExplainFormat;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::args::{Args, PoolType};

/// The catalog of the warehouse.
pub(crate) const CATALOG: &str = "lake";
/// The namespace that is current at first.
pub(crate) const NAMESPACE: &str = "default";

/// Builds the session: warehouse, limits, options from `DATAFUSION_…` variables.
pub(crate) async fn session(args: &Args) -> Result<Calve> {
    let mut config = SessionConfig::from_env()
        .map_err(from_datafusion)?
        .with_default_catalog_and_schema(CATALOG, NAMESPACE)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    if std::env::var_os("DATAFUSION_EXPLAIN_FORMAT").is_none() {
        // As in datafusion-cli.
        config.options_mut().explain.format = ExplainFormat::Tree;
    }
    if let Some(rows) = args.batch_size {
        config = config.with_batch_size(rows);
    }
    let mut io = FileIo::builder();
    for (from, to) in &args.map {
        io = io.with_location_map(from, to)?;
    }
    let (io, env) = (io.build(), Env::system());
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(Arc::new(runtime(args)?));
    let state = Extension::new().with_env(env.clone()).with_file_io(io.clone()).install(builder).build();
    let session = Calve::new(SessionContext::new_with_state(state))?;
    let catalog = FilesystemCatalog::new(CATALOG, &args.warehouse, io, env)?;
    catalog.create_namespace(&[NAMESPACE.to_owned()], true).await?;
    session.register_catalog_with_files(CATALOG, Arc::new(catalog));
    Ok(session)
}

fn runtime(args: &Args) -> Result<datafusion::execution::runtime_env::RuntimeEnv> {
    let mut builder = RuntimeEnvBuilder::new();
    if let Some(limit) = args.memory_limit {
        let top = NonZeroUsize::new(args.top_memory_consumers).unwrap_or(NonZeroUsize::MIN);
        let pool: Arc<dyn MemoryPool> = match args.mem_pool_type {
            PoolType::Greedy => Arc::new(TrackConsumersPool::new(GreedyMemoryPool::new(limit), top)),
            PoolType::Fair => Arc::new(TrackConsumersPool::new(FairSpillPool::new(limit), top)),
        };
        builder = builder.with_memory_pool(pool);
    }
    if let Some(limit) = args.disk_limit {
        let disk = DiskManagerBuilder::default().with_max_temp_directory_size(limit as u64);
        builder = builder.with_disk_manager_builder(disk);
    }
    builder.build().map_err(from_datafusion)
}

/// The files to run first: those of `--rc`, else `~/.calverc` if it exists.
pub(crate) fn startup_files(args: &Args) -> Vec<PathBuf> {
    match &args.rc {
        Some(files) => files.clone(),
        None => home_file(".calverc").filter(|file| file.is_file()).into_iter().collect(),
    }
}

/// A file in the home directory.
pub(crate) fn home_file(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?).join(name))
}
