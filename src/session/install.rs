//! Installing the extension into a DataFusion session while the session is built.
//!
//! A rule added to a live context would run after type coercion, so the one door is [`SessionStateBuilder`]. Invariant:
//! installing keeps what the builder already holds, except its query planner, which must know our plan nodes.

use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_planner::ExtensionPlanner;

use super::command::CommandPlanner;
use super::registry::Catalogs;
use super::time_travel::VersionRefusal;
use super::{CalveOptions, external};
use crate::dml::guard::{GuardedPlanner, guarded_analyzer_rules};
use crate::dml::physical::{OverwritePlanner, RowDeltaPlanner};
use crate::env::Env;
use crate::io::FileIo;
use crate::provider::guard_filter_pushdown;

/// What the extension needs from its surroundings.
#[derive(Debug, Clone)]
pub struct Extension {
    env: Env,
    io: FileIo,
}

impl Default for Extension {
    fn default() -> Self {
        Self { env: Env::system(), io: FileIo::local() }
    }
}

impl Extension {
    /// The real clock, random ids, and local files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes time and ids from `env`.
    #[must_use]
    pub fn with_env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Reads tables that are named by location through `io`.
    #[must_use]
    pub fn with_file_io(mut self, io: FileIo) -> Self {
        self.io = io;
        self
    }

    /// Installs options, planner and rules into a session that is being built.
    pub fn install(self, mut builder: SessionStateBuilder) -> SessionStateBuilder {
        let mut config = builder.config().take().unwrap_or_default();
        // It moves filters on the result of a subquery below the join that makes it, when nested fields are compared.
        config.options_mut().optimizer.enable_leaf_expression_pushdown = false;
        if config.options().extensions.get::<CalveOptions>().is_none() {
            config = config.with_option_extension(CalveOptions::default());
        }
        if config.get_extension::<Catalogs>().is_none() {
            config.set_extension(Arc::new(Catalogs::new(self.env, self.io)));
        }
        let analyzer_rules = builder.analyzer().take().unwrap_or_default().rules;
        let physical_rules = builder.physical_optimizers().take().unwrap_or_default().rules;
        let mut relation_planners = builder.relation_planners().take().unwrap_or_default();
        relation_planners.insert(0, Arc::new(VersionRefusal));
        builder
            .with_config(config)
            .with_relation_planners(relation_planners)
            .with_analyzer_rules(guarded_analyzer_rules(analyzer_rules))
            .with_physical_optimizer_rules(guard_filter_pushdown(physical_rules))
            .with_query_planner(Arc::new(GuardedPlanner::new(extension_planners())))
            .with_table_factory(external::FILE_TYPE.to_owned(), Arc::new(external::IcebergTableFactory))
    }
}

/// Installs the extension with its defaults: the real clock, random ids, local files.
///
/// ```
/// use datafusion::execution::session_state::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
///
/// let state = calve::session::install(SessionStateBuilder::new().with_default_features()).build();
/// let session = calve::session::Calve::new(SessionContext::new_with_state(state))?;
/// # let _ = session;
/// # Ok::<(), calve::Error>(())
/// ```
pub fn install(builder: SessionStateBuilder) -> SessionStateBuilder {
    Extension::default().install(builder)
}

/// The planners of our plan nodes, for a session with a query planner of its own.
pub fn extension_planners() -> Vec<Arc<dyn ExtensionPlanner + Send + Sync>> {
    vec![Arc::new(RowDeltaPlanner), Arc::new(OverwritePlanner), Arc::new(CommandPlanner)]
}
