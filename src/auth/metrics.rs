//! What authentication counts.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::revocation::Revocations;

/// Counters of one gateway.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Logins that were started.
    pub(super) logins: Counter,
    /// Attempts that were refused.
    pub(super) failed_logins: Counter,
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registry, revocations: Arc<Revocations>) {
        registry.register("auth_logins", "Logins started", self.logins.clone());
        registry.register(
            "auth_logins_failed",
            "Login attempts refused",
            self.failed_logins.clone(),
        );
        registry.register_collector(Box::new(Held(revocations)));
    }
}

/// Counted when somebody asks.
#[derive(Debug)]
struct Held(Arc<Revocations>);

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let held = ConstGauge::new(i64::try_from(self.0.len()).unwrap_or(i64::MAX));
        held.encode(encoder.encode_descriptor(
            "auth_revocations",
            "Revoked logins and tokens held in memory until they expire",
            None,
            held.metric_type(),
        )?)
    }
}
