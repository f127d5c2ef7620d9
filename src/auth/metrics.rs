//! Authentication metrics: logins, refreshes, revocations.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::revocation::Revocations;

#[derive(Debug, Default)]
pub(super) struct Metrics {
    logins: Family<Outcome, Counter>,
    refreshes: Family<Outcome, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

impl Metrics {
    pub(super) fn login(&self, outcome: &'static str) {
        self.logins.get_or_create(&Outcome { outcome }).inc();
    }

    pub(super) fn refresh(&self, outcome: &'static str) {
        self.refreshes.get_or_create(&Outcome { outcome }).inc();
    }

    pub(super) fn register(&self, registry: &mut Registry, revocations: Arc<Revocations>) {
        // Present from the start: an alert needs a series.
        for outcome in ["started", "refused", "failed"] {
            drop(self.logins.get_or_create_owned(&Outcome { outcome }));
        }
        for outcome in ["renewed", "reused", "unknown", "failed"] {
            drop(self.refreshes.get_or_create_owned(&Outcome { outcome }));
        }
        registry.register(
            "auth_logins",
            "Attempts to log in: started, refused, or failed for a reason of ours",
            self.logins.clone(),
        );
        registry.register(
            "auth_refreshes",
            "Logins renewed; `reused` is a refresh token that was used twice",
            self.refreshes.clone(),
        );
        registry.register_collector(Box::new(RevocationGauge(revocations)));
    }
}

/// Read at each scrape.
#[derive(Debug)]
struct RevocationGauge(Arc<Revocations>);

impl Collector for RevocationGauge {
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
