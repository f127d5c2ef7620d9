//! Metrics: how much the limits remember, how often they refused, how many connections are open.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{ConnectionCaps, Limits};

/// Reads the counts when metrics are scraped.
#[derive(Debug)]
pub(super) struct LimitsCollector(pub(super) Limits);

impl Collector for LimitsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut descriptor = encoder.encode_descriptor(
            "limits_remembered",
            "Addresses and accounts that a limit remembers at the moment",
            None,
            MetricType::Gauge,
        )?;
        for (limit, count) in [
            ("logins", self.0.logins.len()),
            ("requests", self.0.requests.len()),
            ("accounts", self.0.accounts.len()),
        ] {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(descriptor.encode_family(&[("limit", limit)])?)?;
        }
        let mut descriptor = encoder.encode_descriptor(
            "limits_refused",
            "What a limit refused since the gateway started",
            None,
            MetricType::Counter,
        )?;
        for limit in self.0.report() {
            let counter = ConstCounter::new(limit.refused);
            counter.encode(descriptor.encode_family(&[("limit", limit.name)])?)?;
        }
        Ok(())
    }
}

/// Reads the open connections when metrics are scraped.
#[derive(Debug)]
pub(super) struct ConnectionsCollector(pub(super) ConnectionCaps);

impl Collector for ConnectionsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (taken, all) = self.0.usage();
        for (name, help, value) in [
            (
                "connection_places_taken",
                "TCP connections that are open, sockets and streams among them",
                taken,
            ),
            (
                "connection_places",
                "TCP connections that may be open (server.max_connections)",
                all,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
