//! Commands that begin with a backslash.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::Format;

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// `\q`
    Quit,
    /// `\?`
    Help,
    /// `\d`
    ListTables,
    /// `\d name`
    DescribeTable(String),
    /// `\h`
    ListFunctions,
    /// `\h name`
    DescribeFunction(String),
    /// `\i file`
    Include(PathBuf),
    /// `\quiet [true|false]`
    Quiet(Option<bool>),
    /// `\pset format`, without and with a value.
    Format(Option<Format>),
}

/// Commands with their descriptions, for `\?`.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("\\d", "list tables"),
    ("\\d name", "describe table"),
    ("\\h", "function list"),
    ("\\h function", "search function"),
    ("\\i file", "reads from the specified file"),
    ("\\pset [NAME [VALUE]]", "change printing format"),
    ("\\q", "quit calve"),
    ("\\quiet (true|false)?", "print or set quiet mode"),
    ("\\?", "help"),
];

impl Command {
    /// Parses a line that begins with a backslash. The error says what is expected.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("\\q", "") => Ok(Self::Quit),
            ("\\?", "") => Ok(Self::Help),
            ("\\d", "") => Ok(Self::ListTables),
            ("\\d", name) => Ok(Self::DescribeTable(name.to_owned())),
            ("\\h", "") => Ok(Self::ListFunctions),
            ("\\h", name) => Ok(Self::DescribeFunction(name.to_owned())),
            ("\\i", "") => Err("\\i needs a file".to_owned()),
            ("\\i", file) => Ok(Self::Include(PathBuf::from(file))),
            ("\\quiet", "") => Ok(Self::Quiet(None)),
            ("\\quiet", value) => match value.to_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "on" => Ok(Self::Quiet(Some(true))),
                "false" | "f" | "no" | "n" | "off" => Ok(Self::Quiet(Some(false))),
                _ => Err(format!("\\quiet takes true or false, not {value}")),
            },
            ("\\pset", "" | "format") => Ok(Self::Format(None)),
            ("\\pset", setting) => match setting.split_once(char::is_whitespace) {
                Some(("format", value)) => Format::from_str(value.trim(), true)
                    .map(|format| Self::Format(Some(format)))
                    .map_err(|_| format!("{} is no format: {}", value.trim(), formats())),
                _ => Err("\\pset sets format only".to_owned()),
            },
            _ => Err(format!("{word} is no command: \\? lists them")),
        }
    }
}

/// The names of all formats.
pub(crate) fn formats() -> String {
    let names = Format::value_variants().iter().filter_map(|f| Some(f.to_possible_value()?.get_name().to_owned()));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_parse() {
        for (line, expected) in [
            ("\\q", Command::Quit),
            ("\\q;", Command::Quit),
            ("\\?", Command::Help),
            ("\\d", Command::ListTables),
            ("\\d  lake.default.t ", Command::DescribeTable("lake.default.t".into())),
            ("\\h", Command::ListFunctions),
            ("\\h abs", Command::DescribeFunction("abs".into())),
            ("\\i a b.sql", Command::Include("a b.sql".into())),
            ("\\quiet", Command::Quiet(None)),
            ("\\quiet ON", Command::Quiet(Some(true))),
            ("\\pset", Command::Format(None)),
            ("\\pset format csv", Command::Format(Some(Format::Csv))),
            ("\\pset format ND-JSON", Command::Format(Some(Format::NdJson))),
        ] {
            assert_eq!(Command::parse(line), Ok(expected), "{line}");
        }
        for (line, part) in [
            ("\\x", "\\x is no command"),
            ("\\i", "needs a file"),
            ("\\quiet maybe", "true or false"),
            ("\\pset format xml", "csv, tsv, table, json, nd-json, automatic"),
            ("\\pset border 1", "format only"),
        ] {
            assert!(Command::parse(line).unwrap_err().contains(part), "{line}");
        }
    }
}
