//! Histogram of durations. Two atomic additions per observation and no lock: it is on the path of every event.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Bounds in microseconds for work of the machine; one more bucket follows the last bound.
const BOUNDS_MICROS: [u64; 17] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Bounds for work of users and agents.
const LONG_BOUNDS_MICROS: [u64; 12] = [
    100_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    180_000_000,
    600_000_000,
    1_800_000_000,
    7_200_000_000,
];

/// A histogram of durations; clones share their counts.
#[derive(Clone)]
pub(crate) struct Durations(Arc<Inner>);

struct Inner {
    bounds: &'static [u64],
    /// One more than there are bounds.
    counts: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
}

impl Durations {
    /// With bounds for work of the machine.
    pub(crate) fn short() -> Self {
        Self::within(&BOUNDS_MICROS)
    }

    /// With bounds for work of agents.
    pub(crate) fn long() -> Self {
        Self::within(&LONG_BOUNDS_MICROS)
    }

    fn within(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner {
            bounds,
            counts,
            sum_micros: AtomicU64::new(0),
        }))
    }

    pub(crate) fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let Inner {
            bounds,
            counts,
            sum_micros,
        } = &*self.0;
        let bucket = bounds.partition_point(|bound| *bound < micros);
        counts[bucket].fetch_add(1, Ordering::Relaxed);
        sum_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl fmt::Debug for Durations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Durations")
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a metric is a float, and nothing here takes ages"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let bounds = self.0.bounds.iter().map(|bound| seconds(*bound));
        let bounds = bounds.chain([f64::INFINITY]);
        let counts = self.0.counts.iter();
        let buckets: Vec<(f64, u64)> = bounds
            .zip(counts.map(|count| count.load(Ordering::Relaxed)))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = seconds(self.0.sum_micros.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_duration_equal_to_a_bound_is_within_its_bucket() {
        let durations = Durations::short();
        for micros in [1, 100, 101, 30_000_000, 60_000_000] {
            durations.observe(Duration::from_micros(micros));
        }
        let mut registry = Registry::default();
        registry.register("took_seconds", "x", durations);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "took_seconds_bucket{le=\"0.0001\"} 2\n",
            "took_seconds_bucket{le=\"0.00025\"} 3\n",
            "took_seconds_bucket{le=\"30.0\"} 4\n",
            "took_seconds_bucket{le=\"+Inf\"} 5\n",
            "took_seconds_count 5\n",
            "took_seconds_sum 90.000202\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
