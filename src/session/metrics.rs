//! What live sessions hold in memory.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;

use super::Parts;

/// Counted when somebody asks.
pub(super) struct Held(pub(super) Arc<Parts>);

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held")
    }
}

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let live = self.0.live.lock().len();
        for (name, help, value) in [
            ("sessions_live", "Sessions awake in memory", live),
            (
                "journal_tail_bytes",
                "Recent events of all sessions in memory, about",
                self.0.tails.bytes(),
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
