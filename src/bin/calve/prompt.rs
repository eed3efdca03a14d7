//! The prompt.

use std::borrow::Cow;
use std::io::IsTerminal;

use calve::Error;
use calve::session::is_complete;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};

use crate::Failure;
use crate::color::colored;
use crate::run::{Shell, is_quit};
use crate::setup::home_file;

/// Name of the history file in the home directory.
const HISTORY: &str = ".calve_history";

/// Reads statements until the input ends: at a prompt, or, when they are piped in, as those of a file.
pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return shell.run_piped(std::io::stdin().lock());
    }
    let failed = |e: ReadlineError| Error::unavailable("cannot read from the terminal").with_source(e);
    let config = Config::builder().auto_add_history(true).build();
    let mut editor: Editor<Statements, FileHistory> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Statements { color: shell.is_colored() }));
    let history = home_file(HISTORY);
    if let Some(file) = &history {
        // there is none the first time
        let _ = editor.load_history(file);
    }
    if !shell.is_quiet() {
        println!("calve v{} (DataFusion {})", env!("CARGO_PKG_VERSION"), datafusion::DATAFUSION_VERSION);
    }
    loop {
        match editor.readline("> ") {
            Ok(text) => {
                let go_on = shell.run_typed(&text);
                if let Some(file) = &history
                    && let Err(e) = editor.append_history(file)
                {
                    eprintln!("warning: cannot write {}: {e}", file.display());
                }
                if !go_on {
                    return Ok(());
                }
            }
            Err(ReadlineError::Interrupted) => println!("^C"),
            Err(ReadlineError::Eof) => {
                println!("\\q");
                return Ok(());
            }
            Err(e) => return Err(failed(e).into()),
        }
    }
}

/// Submits a line when it is a command or a whole statement, and colours it if asked to.
struct Statements {
    color: bool,
}

impl Validator for Statements {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let submitted = text.trim_start().starts_with('\\') || is_quit(text) || is_complete(text);
        Ok(if submitted { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Statements {
    type Candidate = String;
}

impl Hinter for Statements {
    type Hint = String;
}

impl Highlighter for Statements {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if self.color { Cow::Owned(colored(line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.color
    }
}

impl Helper for Statements {}
