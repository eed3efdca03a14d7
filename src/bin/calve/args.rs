//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

/// A SQL shell for Apache Iceberg tables.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    /// Directory or URL of the tables; catalog `lake`, namespace `default`
    #[arg(long, value_name = "DIR_OR_URL", default_value = "./warehouse")]
    pub(crate) warehouse: String,

    /// Read and write what is recorded under FROM at TO instead; may be given several times
    #[arg(long, value_name = "FROM=TO", value_parser = location_map)]
    pub(crate) map: Vec<(String, String)>,

    /// Path to your data, default to current directory
    #[arg(short = 'p', long, value_name = "PATH")]
    pub(crate) data_path: Option<PathBuf>,

    /// The batch size of each query, or use DataFusion default
    #[arg(short = 'b', long, value_name = "ROWS", value_parser = positive)]
    pub(crate) batch_size: Option<usize>,

    /// Execute the given command string(s), then exit
    #[arg(short = 'c', long, value_name = "SQL", num_args = 0.., value_parser = not_empty)]
    pub(crate) command: Vec<String>,

    /// The memory pool limitation (e.g. '10g'), default to no limit
    #[arg(short = 'm', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory_limit: Option<usize>,

    /// Execute commands from file(s), then exit
    #[arg(short = 'f', long, value_name = "FILE", num_args = 0..)]
    pub(crate) file: Vec<PathBuf>,

    /// Run the provided files on startup instead of ~/.calverc
    #[arg(short = 'r', long, value_name = "FILE", num_args = 0..)]
    pub(crate) rc: Option<Vec<PathBuf>>,

    /// Format of results
    #[arg(long, value_enum, default_value_t = Format::Automatic)]
    pub(crate) format: Format,

    /// Colour what is typed at the prompt
    #[arg(long)]
    pub(crate) color: bool,

    /// Reduce printing other than the results and work quietly
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// How memory is shared among the operators of a query
    #[arg(long, value_enum, default_value_t = PoolType::Greedy)]
    pub(crate) mem_pool_type: PoolType,

    /// The number of memory consumers to name when memory runs out
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) top_memory_consumers: usize,

    /// The max number of rows to display for 'Table' format [possible values: numbers(0/10/...), inf(no limit)]
    #[arg(long, value_name = "ROWS", default_value = "40")]
    pub(crate) maxrows: MaxRows,

    /// Available disk space for spilling queries (e.g. '10g'), default to DataFusion's default of '100g'
    #[arg(short = 'd', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) disk_limit: Option<usize>,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Csv,
    Tsv,
    Table,
    Json,
    NdJson,
    /// As a table.
    Automatic,
}

/// How the memory limit is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolType {
    Greedy,
    Fair,
}

/// How many rows a printed table has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxRows {
    Unlimited,
    Limited(usize),
}

impl FromStr for MaxRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if ["inf", "infinite", "none"].contains(&text.to_lowercase().as_str()) {
            return Ok(Self::Unlimited);
        }
        text.parse().map(Self::Limited).map_err(|_| format!("{text:?} is neither a number of rows nor inf"))
    }
}

fn location_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected FROM=TO, as in file:/old/place=/new/place".to_owned()),
    }
}

fn not_empty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the command is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|rows| *rows > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// A size: a number with an optional unit b, k, m, g or t (powers of 1024; `kb` and so on as well).
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return Err(format!("{unit:?} is no unit of size (b, k, m, g, t)")),
    };
    let size = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift));
    size.filter(|size| *size > 0).ok_or_else(|| format!("{text:?} is no size, such as 512m or 10g"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("1", 1), ("10k", 10 << 10), ("3MB", 3 << 20), ("2g", 2 << 30), ("1T", 1 << 40)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "g", "0", "-1", "1x", "1.5g", "99999999999999t"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_options_of_datafusion_cli_parse() {
        let line = "calve -c a -c b -f x.sql y.sql -q --format nd-json -m 1g -b 100 --maxrows inf -d 5g -r rc \
                    --warehouse w --map file:/a=b --map c=d=e --mem-pool-type fair --color -p /tmp";
        let args = Args::try_parse_from(line.split_whitespace()).unwrap();
        assert_eq!(args.command, ["a", "b"]);
        assert_eq!(args.file.len(), 2);
        assert_eq!(args.format, Format::NdJson);
        assert!(args.color);
        assert_eq!(args.maxrows, MaxRows::Unlimited);
        assert_eq!(args.map, [("file:/a".to_owned(), "b".to_owned()), ("c".to_owned(), "d=e".to_owned())]);
        for line in ["calve --format xml", "calve -b 0", "calve --map a", "calve -c ''", "calve --maxrows x"] {
            assert!(Args::try_parse_from(line.replace("''", " ").split(' ')).is_err(), "{line}");
        }
    }
}
