//! Session options under the prefix `calve`, set with `SET calve.<name> = '…'`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Options of the extension. A mode that is empty leaves the choice to the table's own property.
    pub struct CalveOptions {
        /// How DELETE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.delete.mode`.
        pub delete_mode: String, default = String::new()
        /// How UPDATE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.update.mode`.
        pub update_mode: String, default = String::new()
        /// How MERGE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.merge.mode`.
        pub merge_mode: String, default = String::new()
        /// What INSERT OVERWRITE without a condition of its own replaces: `static`, the whole table or the partitions of its
        /// PARTITION clause, or `dynamic`, the partitions that new rows land in.
        pub partition_overwrite_mode: String, default = "static".to_string()
        /// Whether files whose every row provably matches are dropped, or those where none can match are skipped, by metadata.
        pub strict_pruning: bool, default = true
    }
}

/// What INSERT OVERWRITE replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionOverwriteMode {
    /// The whole table, or the partitions that its PARTITION clause names.
    Static,
    /// The partitions that new rows land in.
    Dynamic,
}

impl ConfigExtension for CalveOptions {
    const PREFIX: &'static str = "calve";
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;

    use super::*;

    #[test]
    fn options_have_defaults_and_are_set_by_name() {
        let mut config = SessionConfig::new().with_option_extension(CalveOptions::default());
        config.options_mut().set("calve.strict_pruning", "false").unwrap();
        config.options_mut().set("calve.delete_mode", "merge-on-read").unwrap();
        let options = config.options().extensions.get::<CalveOptions>().unwrap();
        assert!(!options.strict_pruning);
        assert_eq!((options.delete_mode.as_str(), options.merge_mode.as_str()), ("merge-on-read", ""));
        assert!(config.options_mut().set("calve.no_such_option", "1").is_err());
    }
}
