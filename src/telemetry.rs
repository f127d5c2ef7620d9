//! Telemetry: logs, traces, and metrics of the process itself.

use std::io::IsTerminal as _;

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

mod exporter;
mod histogram;
mod otlp;
mod otlp_config;
mod process_metrics;
mod retry;
mod sampler;
mod trace;

pub(crate) use exporter::Traces;
pub(crate) use histogram::Durations;
pub use otlp_config::Destination;
pub(crate) use process_metrics::{Process, build_info};
pub(crate) use trace::{Context, Kind, Remote, Span, Tracer, operator_name};

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// The `[log]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Format of log lines.
    pub format: Format,
    /// Lowest level, also per module (`info`, `switchboard=debug,warn`).
    pub level: String,
}

impl Config {
    /// Invalid values, by key.
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

/// Starts logging to standard error. The first call in a process wins.
pub fn start_logging(config: &Config) {
    let filter = EnvFilter::try_new(&config.level).unwrap_or_else(|_| EnvFilter::new("info"));
    // At debug level libraries log frames and SQL statements, which hold what users wrote: their debug
    // lines are dropped at every level setting.
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
    // A global filter, not a per-layer one: with a per-layer filter, a library's check whether a line is
    // enabled would suppress our next line too.
    let subscriber = tracing_subscriber::registry().with(filter).with(discreet);
    if let Err(error) = subscriber.with(lines).try_init() {
        tracing::debug!(%error, "logging was started before");
    }
}
