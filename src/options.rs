//! Session options under the prefix `calve`, set with `SET calve.<name> = '…'`.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{Result, config_err};

use crate::spec::properties::RowLevelMode;

/// Options of the extension. A mode that is empty leaves the choice to the table's own property.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalveOptions {
    /// How DELETE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.delete.mode`.
    pub delete_mode: String,
    /// How UPDATE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.update.mode`.
    pub update_mode: String,
    /// How MERGE records removed rows: `copy-on-write`, `merge-on-read`, or empty for the table's `write.merge.mode`.
    pub merge_mode: String,
    /// Whether files whose every row provably matches are dropped, or those where none can match are skipped, by metadata.
    pub strict_pruning: bool,
    /// What INSERT OVERWRITE without a condition of its own replaces: `static`, the whole table or the partitions of its
    /// PARTITION clause, or `dynamic`, the partitions that new rows land in.
    pub partition_overwrite_mode: String,
}

/// What INSERT OVERWRITE replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionOverwriteMode {
    /// The whole table, or the partitions that its PARTITION clause names.
    Static,
    /// The partitions that new rows land in.
    Dynamic,
}

impl Default for CalveOptions {
    fn default() -> Self {
        Self {
            delete_mode: String::new(),
            update_mode: String::new(),
            merge_mode: String::new(),
            strict_pruning: true,
            partition_overwrite_mode: "static".to_owned(),
        }
    }
}

impl ConfigExtension for CalveOptions {
    const PREFIX: &'static str = "calve";
}

impl ExtensionOptions for CalveOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "delete_mode" => self.delete_mode = mode(key, value)?,
            "update_mode" => self.update_mode = mode(key, value)?,
            "merge_mode" => self.merge_mode = mode(key, value)?,
            "strict_pruning" => match value.trim().to_ascii_lowercase().as_str() {
                "true" => self.strict_pruning = true,
                "false" => self.strict_pruning = false,
                _ => return config_err!("calve.{key} takes true or false, not {value:?}"),
            },
            "partition_overwrite_mode" => match value.trim().to_ascii_lowercase().as_str() {
                mode @ ("static" | "dynamic") => self.partition_overwrite_mode = mode.to_owned(),
                _ => return config_err!("calve.{key} takes static or dynamic, not {value:?}"),
            },
            _ => {
                return config_err!(
                    "there is no option calve.{key}; options: delete_mode, update_mode, merge_mode, strict_pruning, partition_overwrite_mode"
                );
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        // With their prefix: SHOW and information_schema.df_settings list them as they are set.
        let entry = |name: &str, value: String, description: &'static str| ConfigEntry {
            key: format!("{}.{name}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry("delete_mode", self.delete_mode.clone(), "How DELETE records removed rows; empty: as the table says"),
            entry("update_mode", self.update_mode.clone(), "How UPDATE records removed rows; empty: as the table says"),
            entry("merge_mode", self.merge_mode.clone(), "How MERGE records removed rows; empty: as the table says"),
            entry(
                "strict_pruning",
                self.strict_pruning.to_string(),
                "Whether files are dropped or skipped by metadata",
            ),
        ]
    }
}

/// A mode's name as it is set; empty is allowed.
fn mode(key: &str, value: &str) -> Result<String> {
    if value.is_empty() || value.parse::<RowLevelMode>().is_ok() {
        return Ok(value.to_owned());
    }
    config_err!("calve.{key} takes copy-on-write, merge-on-read, or '' for what the table says, not {value:?}")
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
        for (name, value) in
            [("calve.no_such_option", "1"), ("calve.delete_mode", "quickly"), ("calve.strict_pruning", "perhaps")]
        {
            let error = config.options_mut().set(name, value).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let entries = config.options().entries();
        let listed = entries.iter().find(|e| e.key == "calve.delete_mode").and_then(|e| e.value.as_deref());
        assert_eq!(listed, Some("merge-on-read"));
    }
}
