//! Running statements and commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use calve::session::{Calve, StatementText, from_datafusion};
use calve::{Error, Result};
use datafusion::physical_plan::execute_stream;
use tokio::runtime::Runtime;

use crate::args::Args;
use crate::command::{Command, HELP, formats};
use crate::print::{PrintOptions, output_error, text_table};
use crate::progress::Progress;
use crate::{Failure, INTERRUPTED, one_line};

/// A session and how to print its results.
pub(crate) struct Shell {
    session: Calve,
    runtime: Runtime,
    options: PrintOptions,
    color: bool,
}

/// How a statement ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Failed(Error),
    Cancelled,
}

impl Shell {
    pub(crate) fn new(session: Calve, runtime: Runtime, args: &Args) -> Self {
        let options = PrintOptions { format: args.format, quiet: args.quiet, maxrows: args.maxrows };
        Self { session, runtime, options, color: args.color }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Whether what is typed is coloured.
    pub(crate) fn is_colored(&self) -> bool {
        self.color
    }

    /// Runs the statements and commands of a file, up to the first that fails.
    pub(crate) fn run_file(&mut self, file: &Path) -> Result<(), Failure> {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Error::not_found(format!("cannot read {}", file.display())).with_source(e))?;
        self.run_text(&text, Some(file)).map(|_| ())
    }

    /// Runs what is piped in as a file is run, each statement as soon as it is there. The last one needs no semicolon.
    pub(crate) fn run_piped(&mut self, input: impl Read) -> Result<(), Failure> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let (mut text, mut lines_done) = (String::new(), 0);
        loop {
            let from = text.len();
            let read = input
                .read_line(&mut text)
                .map_err(|e| Error::unavailable("cannot read the standard input").with_source(e))?;
            let last = text.get(from..).unwrap_or_default();
            // Whether a statement is open is asked only where one may end and the input may pause.
            let may_end = last.contains(';') || last.trim_start().starts_with('\\') || is_quit(last);
            let whole = may_end && input.buffer().is_empty() && (is_quit(last) || is_whole(&text));
            if read > 0 && !whole {
                continue;
            }
            let lines = text.matches('\n').count();
            let padded = "\n".repeat(lines_done) + &text;
            if !self.run_text(&padded, Some(Path::new("stdin")))? || read == 0 {
                return Ok(());
            }
            lines_done += lines;
            text.clear();
        }
    }

    /// Runs the statements and commands of a text, up to the first that fails; false when one ends the shell. A line that
    /// begins with a backslash, or says quit or exit, is a command between statements.
    pub(crate) fn run_text(&mut self, text: &str, file: Option<&Path>) -> Result<bool, Failure> {
        let place = |line: u64| file.map(|file| format!("{}:{line}: ", file.display())).unwrap_or_default();
        for (first_line, part) in parts(text) {
            let outcome = match part {
                Part::Command(line) => match self.run_line(line) {
                    Ok(true) => return Ok(false),
                    other => (first_line, other.map(|_| Outcome::Done)),
                },
                Part::Sql(sql) => self.run_statements(sql, first_line),
            };
            let failure = |line, error: &Error| Failure {
                message: Some(format!("{}{}", place(line), one_line(error))),
                status: 1,
            };
            match outcome {
                (_, Ok(Outcome::Done)) => {}
                (line, Ok(Outcome::Failed(error)) | Err(error)) => return Err(failure(line, &error)),
                (line, Ok(Outcome::Cancelled)) => {
                    return Err(Failure { message: Some(format!("{}cancelled", place(line))), status: INTERRUPTED });
                }
            }
        }
        Ok(true)
    }

    /// Runs SQL that begins on `first_line` of its file; also gives the line of the statement that ended it.
    fn run_statements(&self, sql: &str, first_line: u64) -> (u64, Result<Outcome>) {
        // statements name the line of the file when it is padded to it
        let padded = "\n".repeat(usize::try_from(first_line).unwrap_or(1).saturating_sub(1)) + sql;
        let statements = match self.session.statements(&padded) {
            Ok(statements) => statements,
            Err(error) => return (first_line, Err(error)),
        };
        for statement in &statements {
            match self.run_statement(statement) {
                Outcome::Done => {}
                other => return (statement.line(), Ok(other)),
            }
        }
        (first_line, Ok(Outcome::Done))
    }

    /// Runs what was typed at the prompt; failures are printed. False when the shell is to end.
    pub(crate) fn run_typed(&mut self, text: &str) -> bool {
        let trimmed = text.trim();
        let outcome = if trimmed.starts_with('\\') {
            match self.run_line(trimmed) {
                Ok(true) => return false,
                Ok(false) => Ok(Outcome::Done),
                Err(e) => Err(e),
            }
        } else if is_quit(trimmed) {
            return false;
        } else {
            self.run_statements(text, 1).1
        };
        match outcome {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Failed(error)) | Err(error) => eprintln!("error: {}", one_line(&error)),
            Ok(Outcome::Cancelled) => eprintln!("cancelled"),
        }
        true
    }

    /// Runs a command line; true when the shell is to end.
    fn run_line(&mut self, line: &str) -> Result<bool> {
        let mut out = std::io::stdout().lock();
        if is_quit(line) {
            return Ok(true);
        }
        match Command::parse(line).map_err(Error::invalid_input)? {
            Command::Quit => return Ok(true),
            Command::Help => {
                write!(out, "{}", text_table(["Command", "Description"], HELP)?).map_err(output_error)?;
            }
            Command::Quiet(None) => {
                writeln!(out, "Quiet mode is {}", self.options.quiet).map_err(output_error)?;
            }
            Command::Quiet(Some(quiet)) => self.options.quiet = quiet,
            Command::Format(None) => {
                writeln!(out, "Output format is {:?}; formats: {}", self.options.format, formats())
                    .map_err(output_error)?;
            }
            Command::Format(Some(format)) => self.options.format = format,
            Command::Include(file) => {
                drop(out);
                self.run_file(&file).map_err(|failure| Error::invalid_input(failure.message.unwrap_or_default()))?;
            }
            Command::ListTables => return self.run_sql("SHOW TABLES"),
            Command::DescribeTable(name) => return self.run_sql(&format!("DESCRIBE {name}")),
            Command::ListFunctions => return self.run_sql("SHOW FUNCTIONS"),
            Command::DescribeFunction(name) => {
                return self.run_sql(&format!("SHOW FUNCTIONS LIKE '{}'", name.replace('\'', "''")));
            }
        }
        Ok(false)
    }

    fn run_sql(&self, sql: &str) -> Result<bool> {
        match self.run_statements(sql, 1).1? {
            Outcome::Failed(error) => Err(error),
            Outcome::Done | Outcome::Cancelled => Ok(false),
        }
    }

    /// Runs one statement and prints its result. Ctrl-C cancels it.
    fn run_statement(&self, statement: &StatementText) -> Outcome {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => Outcome::Cancelled,
                result = self.print_statement(statement) => match result {
                    Ok(()) => Outcome::Done,
                    Err(error) => Outcome::Failed(error),
                },
            }
        })
    }

    async fn print_statement(&self, statement: &StatementText) -> Result<()> {
        #[allow(clippy::disallowed_methods, reason = "the time a person waits, not a time that is recorded")]
        let start = Instant::now();
        let plan = self.session.plan(statement).await?;
        let frame = self.session.start(plan).await?;
        let task = Arc::new(frame.task_ctx());
        let physical = frame.create_physical_plan().await.map_err(from_datafusion)?;
        let rows = {
            let progress = Progress::of(Arc::clone(&physical), start);
            let stream = execute_stream(physical, task).map_err(from_datafusion)?;
            self.print_rows(statement, stream, progress).await?
        };
        let mut out = std::io::stdout().lock();
        self.options.print_details(rows, start.elapsed(), &mut out)?;
        out.flush().map_err(output_error)
    }

    async fn print_rows(
        &self,
        statement: &StatementText,
        stream: datafusion::execution::SendableRecordBatchStream,
        progress: Progress,
    ) -> Result<usize> {
        let whole = ["EXPLAIN", "DESCRIBE", "DESC", "SHOW"].contains(&statement.first_word().as_str());
        let options = if whole { self.options.unlimited() } else { self.options };
        let mut text = std::io::BufWriter::new(std::io::stdout());
        let rows = options.print(stream, &mut text).await?;
        drop(progress);
        text.flush().map_err(output_error)?;
        Ok(rows)
    }
}

/// Whether a line ends the shell.
pub(crate) fn is_quit(line: &str) -> bool {
    ["quit", "exit"].contains(&line.trim().trim_end_matches(';').trim().to_lowercase().as_str())
}

/// Whether no statement is open at the end of a text of statements and commands.
fn is_whole(text: &str) -> bool {
    match parts(text).last() {
        Some((_, Part::Sql(sql))) => calve::session::is_complete(sql),
        Some((_, Part::Command(_))) | None => true,
    }
}

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Command(&'a str),
    Sql(&'a str),
}

/// Splits a text into commands and the SQL between them, each with the line that it begins on, from 1. A line is a command when
/// it begins with a backslash, or says quit or exit, and no statement is open before it.
fn parts(text: &str) -> Vec<(u64, Part<'_>)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    for (line, number) in text.split_inclusive('\n').zip(1u64..) {
        let before = text.get(start..at).unwrap_or_default();
        if (line.trim_start().starts_with('\\') || is_quit(line)) && calve::session::is_complete(before) {
            if !before.trim().is_empty() {
                parts.push((start_line, Part::Sql(before)));
            }
            parts.push((number, Part::Command(line.trim())));
            start = at + line.len();
            start_line = number + 1;
        }
        at += line.len();
    }
    let rest = text.get(start..).unwrap_or_default();
    if !rest.trim().is_empty() {
        parts.push((start_line, Part::Sql(rest)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_between_statements() {
        let text = "\\quiet on\nselect 1;\nselect\n'\n\\q\n';\n  \\pset format csv\nselect 2";
        assert_eq!(
            parts(text),
            [
                (1, Part::Command("\\quiet on")),
                (2, Part::Sql("select 1;\nselect\n'\n\\q\n';\n")),
                (7, Part::Command("\\pset format csv")),
                (8, Part::Sql("select 2")),
            ]
        );
        assert_eq!(parts(" \n"), []);
        assert_eq!(
            parts("select\nquit\n;\nQuit;\n"),
            [(1, Part::Sql("select\nquit\n;\n")), (4, Part::Command("Quit;"))]
        );
    }
}
