//! Command line: arguments and sub-commands, each in its file under `cli/`.
//!
//! Commands work on the database directly, with or without a running gateway, which notices within a second.
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration. The only user of `anyhow` beside `main`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

mod account_leftovers;
mod agent;
mod backup;
mod config;
mod context;
mod doctor;
mod health;
mod key;
mod local_health;
mod migrate;
mod move_to_postgres;
mod output;
mod restore;
mod serve;
mod session;
mod setup_url;
mod token;
mod user;

use crate::config::{ConfigError, Flags, Loaded};
use crate::runtime::{SANDBOX_PROBE, SUPERVISE, probe_sandbox, supervise};
use output::{Output, OutputError};

/// `EX_CONFIG` of sysexits.h.
const EXIT_CONFIG: u8 = 78;

/// Puts a team's coding agents behind a login.
///
/// Without a command it serves: on a fresh machine it creates its data directory, starts on
/// 127.0.0.1:7717 and prints a link with which you make the first account.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    args_conflicts_with_subcommands = false,
    propagate_version = true
)]
struct Arguments {
    #[command(flatten)]
    flags: GlobalFlags,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct GlobalFlags {
    /// Configuration file [default: the variable `SWITCHBOARD_CONFIG`, else switchboard.toml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on (server.listen)
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
    /// Where the database lives (data.dir)
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until stopped (the default command)
    Serve,
    /// Add, list and change users
    #[command(subcommand)]
    User(user::Command),
    /// Print a new one-time link that creates the first administrator
    SetupUrl,
    /// Create access tokens for programs
    #[command(subcommand)]
    Token(token::Command),
    /// List or replace the keys that sign tokens
    #[command(subcommand)]
    Key(key::Command),
    /// Check and print the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Bring the database's schema up to date
    Migrate(migrate::Options),
    /// Move everything from SQLite into an empty Postgres database, while no gateway runs
    Move(move_to_postgres::Options),
    /// Copy the SQLite database into FILE, and the uploaded files beside it, while the gateway runs
    Backup {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Put a backup in place, while no gateway runs
    Restore(restore::Options),
    /// Ask the running gateway whether it is ready
    Health,
    /// Diagnose problems and say how to fix them
    Doctor(doctor::Options),
    /// Print the description of an interface
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// List and test the configured agents
    #[command(subcommand)]
    Agent(agent::Command),
    /// List sessions and end one, without access to their content
    #[command(subcommand)]
    Session(session::Command),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum SchemaCommand {
    /// The HTTP API as an OpenAPI document
    Openapi,
    /// The WebSocket as an AsyncAPI document
    Asyncapi,
}

/// Runs the command.
pub fn main() -> ExitCode {
    // Not commands of the operator, and started with agents: nothing else is set up for them.
    match std::env::args_os().nth(1) {
        Some(word) if word == SUPERVISE => return supervise(),
        Some(word) if word == SANDBOX_PROBE => return probe_sandbox(),
        _ => {}
    }
    let arguments = Arguments::parse();
    match dispatch(arguments) {
        Ok(code) => code,
        Err(error) if reader_is_gone(&error) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

fn dispatch(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let flags = Flags {
        config: arguments.flags.config,
        listen: arguments.flags.listen,
        data_dir: arguments.flags.data_dir,
    };
    let load = || crate::config::load(&flags, environment());
    let out = Output::new();
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => serve::run(load()?, out),
        Command::User(command) => block_on(user::run(load()?, command, out)),
        Command::SetupUrl => block_on(setup_url::run(load()?, out)),
        Command::Token(command) => block_on(token::run(load()?, command, out)),
        Command::Key(command) => block_on(key::run(load()?, command, out)),
        Command::Config(command) => config::run(command, load, out),
        Command::Agent(command) => block_on(agent::run(load()?, command, out)),
        Command::Session(command) => block_on(session::run(load()?, command, out)),
        Command::Migrate(options) => block_on(migrate::run(load()?, options, out)),
        Command::Move(options) => block_on(move_to_postgres::run(load()?, options, out)),
        Command::Backup { file } => block_on(backup::run(load()?, file, out)),
        Command::Restore(options) => block_on(restore::run(load()?, options, out)),
        Command::Health => health::run(&load()?, out),
        Command::Doctor(options) => block_on(doctor::run(load()?, options, out)),
        Command::Schema(which) => schema(&which, &load()?, out),
        Command::Completions { shell } => completions(shell, out),
    }
}

/// Variables whose name or value is not UTF-8 are not ours.
fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Commands work sequentially; one thread is enough.
fn block_on(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

fn schema(which: &SchemaCommand, loaded: &Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let base_path = &loaded.config.server.base_path;
    match which {
        SchemaCommand::Openapi => out.json(&crate::http::openapi(base_path))?,
        SchemaCommand::Asyncapi => out.json(&crate::http::asyncapi(base_path))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell, mut out: Output) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "switchboard", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

fn reader_is_gone(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<OutputError>()
        .is_some_and(OutputError::reader_is_gone)
}

/// The error and its causes; a cause already contained in the text before is not repeated.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn complain(error: &anyhow::Error) -> ExitCode {
    let configuration = error.downcast_ref::<ConfigError>();
    let text = match configuration {
        Some(problems) => format!("switchboard: the configuration cannot be used\n{problems}"),
        None => format!("switchboard: {}", told(error)),
    };
    // Nothing left to do if standard error is closed.
    drop(writeln!(io::stderr(), "{}", text.trim_end()));
    match configuration {
        Some(_) => ExitCode::from(EXIT_CONFIG),
        None => ExitCode::FAILURE,
    }
}
