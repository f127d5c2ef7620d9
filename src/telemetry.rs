//! Logs, traces, and the metrics of the process itself.

use std::io::IsTerminal as _;

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

mod destination;
mod durations;
mod exporter;
mod otlp;
mod process;
mod retry;
mod sampler;
mod trace;

pub use destination::Destination;
pub(crate) use durations::Durations;
pub(crate) use exporter::Traces;
pub(crate) use process::{Process, build_info};
pub(crate) use trace::{Context, Kind, Remote, Span, Tracer, chosen};

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
    // Libraries write down what passes through them, frames and statements, once they are asked for
    // details: whatever the level, they are not asked.
    let discreet = filter_fn(|line| {
        line.target().starts_with(env!("CARGO_PKG_NAME")) || *line.level() <= tracing::Level::INFO
    });
    let terminal = std::io::stderr().is_terminal();
    let json = match config.format {
        Format::Auto => !terminal,
        Format::Text => false,
        Format::Json => true,
    };
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed()
    } else {
        lines.with_ansi(terminal).with_target(false).boxed()
    };
    // For all layers and not for one: a library that asks whether it is heard would, if it is not, take
    // the next line of ours with it.
    let subscriber = tracing_subscriber::registry().with(filter).with(discreet);
    if let Err(error) = subscriber.with(lines).try_init() {
        tracing::debug!(%error, "logging was started before");
    }
}
