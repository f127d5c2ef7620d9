//! What storage counts: where it failed somebody, and how much room is left.

use std::fmt;
use std::path::{Path, PathBuf};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Config;

/// What somebody wanted of storage when it failed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// To commit events.
    Commit,
    /// To read a journal.
    Read,
    /// To answer a request.
    Request,
    /// To know whether storage is there.
    Probe,
}

impl Wanted {
    const ALL: [Self; 4] = [Self::Commit, Self::Read, Self::Request, Self::Probe];

    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Read => "read",
            Self::Request => "request",
            Self::Probe => "probe",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    wanted: &'static str,
}

/// How often storage failed, counted where somebody was told. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Family<Labels, Counter>);

impl Failures {
    /// Counts one.
    pub(crate) fn count(&self, wanted: Wanted) {
        self.of(wanted).inc();
    }

    fn of(&self, wanted: Wanted) -> Counter {
        let wanted = wanted.name();
        self.0.get_or_create_owned(&Labels { wanted })
    }
}

/// Puts what there is to know about storage under its names.
pub(crate) fn register(failures: &Failures, config: &Config, registry: &mut Registry) {
    for wanted in Wanted::ALL {
        // There from the start: what was never seen cannot be alerted on.
        failures.of(wanted);
    }
    registry.register(
        "storage_errors",
        "How often storage failed somebody, by what they wanted",
        failures.0.clone(),
    );
    let database = config.database_url.is_none().then(|| config.sqlite_path());
    registry.register_collector(Box::new(Room {
        dir: config.dir.clone(),
        database,
    }));
}

/// The room on the disk, looked at when somebody asks.
#[derive(Debug)]
struct Room {
    dir: PathBuf,
    /// The file of the database, if it is one.
    database: Option<PathBuf>,
}

impl Collector for Room {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, bytes: Option<u64>| {
            let Some(bytes) = bytes else {
                return Ok(());
            };
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        let disk = rustix::fs::statvfs(&self.dir).ok();
        gauge(
            "disk_free_bytes",
            "What may still be written to the disk of the data directory",
            disk.as_ref()
                .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        )?;
        gauge(
            "disk_size_bytes",
            "The size of the disk of the data directory",
            disk.as_ref()
                .map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize)),
        )?;
        gauge(
            "database_size_bytes",
            "The size of the SQLite database with its log; absent with Postgres",
            self.database.as_deref().and_then(size_of),
        )
    }
}

/// The database itself, and what is not yet in it.
fn size_of(database: &Path) -> Option<u64> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = std::fs::metadata(log).map_or(0, |file| file.len());
    Some(std::fs::metadata(database).ok()?.len() + log)
}
