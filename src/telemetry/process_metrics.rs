//! Process metrics under Prometheus' usual names, and build information.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Clock ticks per second in `/proc/self/stat`; fixed in the kernel's interface.
const TICKS_PER_SECOND: f64 = 100.0;

/// Read again at every scrape.
#[derive(Debug)]
pub(crate) struct Process {
    /// Start time in seconds since 1970.
    pub(crate) started: f64,
}

/// Registers version, schema and database as labels.
pub(crate) fn build_info(registry: &mut Registry, schema: i64, database: &'static str) {
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("schema", schema.to_string()),
        ("database", database.to_owned()),
    ];
    registry.register(
        "build",
        "The version of the program and of its schema",
        Info::new(labels),
    );
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let resident = ConstGauge::new(resident_bytes().unwrap_or_default());
        resident.encode(encoder.encode_descriptor(
            "process_resident_memory_bytes",
            "Memory in use, in bytes",
            None,
            resident.metric_type(),
        )?)?;
        let descriptors = ConstGauge::new(open_descriptors().unwrap_or_default());
        descriptors.encode(encoder.encode_descriptor(
            "process_open_fds",
            "Open file descriptors",
            None,
            descriptors.metric_type(),
        )?)?;
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = most.and_then(|most| i64::try_from(most).ok());
        let most = ConstGauge::new(most.unwrap_or(i64::MAX));
        most.encode(encoder.encode_descriptor(
            "process_max_fds",
            "File descriptors that may be open",
            None,
            most.metric_type(),
        )?)?;
        let started = ConstGauge::new(self.started);
        started.encode(encoder.encode_descriptor(
            "process_start_time_seconds",
            "When the process began, in seconds since 1970",
            None,
            started.metric_type(),
        )?)?;
        let seconds = ConstCounter::new(cpu_seconds().unwrap_or_default());
        seconds.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "Time spent computing, in seconds",
            None,
            seconds.metric_type(),
        )?)
    }
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn open_descriptors() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

/// Fields 14 and 15 of the line; the second one, the program's name, may contain anything but ends with `)`.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}
