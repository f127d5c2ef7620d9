//! Storage metrics: failures by operation, disk and database size.

use std::fmt;
use std::path::{Path, PathBuf};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreOperation {
    Commit,
    Read,
    Request,
    Probe,
}

impl StoreOperation {
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
    /// The label's name, which dashboards and alerts use.
    wanted: &'static str,
}

/// Storage failures, counted where they are reported to a caller. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Family<Labels, Counter>);

impl Failures {
    pub(crate) fn count(&self, operation: StoreOperation) {
        self.of(operation).inc();
    }

    fn of(&self, operation: StoreOperation) -> Counter {
        let wanted = operation.name();
        self.0.get_or_create_owned(&Labels { wanted })
    }
}

pub(crate) fn register(failures: &Failures, config: &Config, registry: &mut Registry) {
    for operation in StoreOperation::ALL {
        // Present from the start: an alert needs a series.
        failures.of(operation);
    }
    registry.register(
        "storage_errors",
        "Storage failures, by the operation that failed",
        failures.0.clone(),
    );
    let database = config.database_url.is_none().then(|| config.sqlite_path());
    registry.register_collector(Box::new(DiskUsage {
        dir: config.dir.clone(),
        database,
    }));
}

/// Disk and database size, read at each scrape.
#[derive(Debug)]
struct DiskUsage {
    dir: PathBuf,
    /// SQLite's file.
    database: Option<PathBuf>,
}

impl Collector for DiskUsage {
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
            "Free space on the disk of the data directory",
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
            self.database.as_deref().and_then(database_size),
        )
    }
}

/// The file and its WAL.
fn database_size(database: &Path) -> Option<u64> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = std::fs::metadata(log).map_or(0, |file| file.len());
    Some(std::fs::metadata(database).ok()?.len() + log)
}
