//! `switchboard config`: checks and prints the configuration.

use std::process::ExitCode;

use clap::Subcommand;

use super::EXIT_CONFIG;
use super::output::Output;
use crate::config::{ConfigError, DEFAULTS, Loaded, reference};
use crate::runtime::{AgentFinding, Preflight, preflight};

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Check whether the configuration is valid
    Check,
    /// Print the effective configuration and the origin of each value; secrets are hidden
    Print,
    /// Print every setting with its default and a comment
    Default,
    /// Print the reference page of all settings, in Markdown
    Reference,
}

/// Prints what keeps agents from working; what could be read is good otherwise.
fn check(loaded: &Loaded, out: &mut Output) -> anyhow::Result<ExitCode> {
    let from = match &loaded.file {
        Some(file) => format!("{} and the environment", file.display()),
        None => "defaults and the environment".to_owned(),
    };
    let config = &loaded.config;
    let mut has_problem = false;
    for AgentFinding { agent, verdict } in preflight(&config.agents, &config.data.dir) {
        match verdict {
            Preflight::Ready(_) => {}
            Preflight::Doubt { found, fix } => {
                out.line(format!("agents.{agent}: {found}: {fix}"))?;
            }
            Preflight::Problem { found, fix } => {
                has_problem = true;
                out.line(format!("agents.{agent}: cannot be used, {found}: {fix}"))?;
            }
        }
    }
    if has_problem {
        out.line(format!(
            "The configuration can be read ({from}), but not every agent can be used."
        ))?;
        return Ok(ExitCode::from(EXIT_CONFIG));
    }
    out.line(format!("The configuration is good ({from})."))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run(
    command: Command,
    load: impl FnOnce() -> Result<Loaded, ConfigError>,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check => return check(&load()?, &mut out),
        Command::Print => out.text(load()?.print())?,
        Command::Default => out.text(DEFAULTS)?,
        Command::Reference => out.text(&reference())?,
    }
    Ok(ExitCode::SUCCESS)
}
