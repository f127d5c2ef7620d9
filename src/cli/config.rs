//! `switchboard config`: checks and prints the configuration.

use std::process::ExitCode;

use clap::Subcommand;

use super::output::Output;
use crate::config::{ConfigError, DEFAULTS, Loaded, reference};

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

pub(super) fn run(
    command: Command,
    load: impl FnOnce() -> Result<Loaded, ConfigError>,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check => {
            let from = match load()?.file {
                Some(file) => format!("{} and the environment", file.display()),
                None => "defaults and the environment".to_owned(),
            };
            out.line(format!("The configuration is good ({from})."))?;
        }
        Command::Print => out.text(load()?.print())?,
        Command::Default => out.text(DEFAULTS)?,
        Command::Reference => out.text(&reference())?,
    }
    Ok(ExitCode::SUCCESS)
}
