//! Logs and the metrics of the process itself.

use std::io::IsTerminal as _;

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

mod process;

pub(crate) use process::Process;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// For programs, one object per line.
    Json,
}

/// The `[log]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How lines look.
    pub format: Format,
    /// From which level on, perhaps per module (`info`, `switchboard=debug,warn`).
    pub level: String,
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        EnvFilter::try_new(&self.level)
            .err()
            .map(|error| {
                (
                    "log.level",
                    format!(
                        "expected a level like info or a filter like switchboard=debug: {error}"
                    ),
                )
            })
            .into_iter()
            .collect()
    }
}

/// Sends log lines to standard error from now on. The first call in a process wins.
pub fn start_logging(config: &Config) {
    let filter = EnvFilter::try_new(&config.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let json = match config.format {
        Format::Auto => !terminal,
        Format::Text => false,
        Format::Json => true,
    };
    let started = if json {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init()
    } else {
        builder.with_ansi(terminal).with_target(false).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}
