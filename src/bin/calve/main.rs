//! `calve`: a SQL shell for Iceberg tables, with the options, commands and output of datafusion-cli.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod color;
mod command;
mod print;
mod progress;
mod prompt;
mod run;
mod setup;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use run::Shell;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit status of a statement that Ctrl-C ended, as shells give it.
const INTERRUPTED: u8 = 130;
/// Exit status after a panic, as Rust gives it.
const PANICKED: u8 = 101;

/// Stack of the thread that plans: plans of deep queries are walked recursively. Only what is used takes memory.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = std::thread::Builder::new().stack_size(STACK).spawn(|| start(args)).map(std::thread::JoinHandle::join);
    let ended = match ended {
        Ok(Ok(ended)) => ended,
        // A panic has printed its message.
        Ok(Err(_)) => Err(Failure { message: None, status: PANICKED }),
        Err(e) => Err(calve::Error::unavailable("cannot start a thread").with_source(e).into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message {
                eprintln!("error: {message}");
            }
            ExitCode::from(failure.status)
        }
    }
}

/// Why the shell ends otherwise than well.
#[derive(Debug)]
struct Failure {
    /// One line, or nothing when it is printed already.
    message: Option<String>,
    status: u8,
}

impl From<calve::Error> for Failure {
    fn from(error: calve::Error) -> Self {
        Self { message: Some(one_line(&error)), status: 1 }
    }
}

/// An error on one line.
fn one_line(error: &calve::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn start(args: Args) -> Result<(), Failure> {
    if let Some(path) = &args.data_path {
        std::env::set_current_dir(path).map_err(|e| {
            calve::Error::invalid_input(format!("cannot change to data path {}", path.display())).with_source(e)
        })?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // plans of deep queries are walked recursively
        .thread_stack_size(16 << 20)
        .build()
        .map_err(|e| calve::Error::unavailable("cannot start the runtime").with_source(e))?;
    let session = runtime.block_on(setup::session(&args))?;
    let mut shell = Shell::new(session, runtime, &args);
    for file in setup::startup_files(&args) {
        shell.run_file(&file)?;
    }
    if !args.command.is_empty() || !args.file.is_empty() {
        for command in &args.command {
            shell.run_text(command, None)?;
        }
        for file in &args.file {
            shell.run_file(file)?;
        }
        return Ok(());
    }
    prompt::run(&mut shell)
}
