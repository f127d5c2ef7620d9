//! Report: medians, ratios and goals, printed one line per figure.

use crate::server::{self, Kind};

#[derive(Clone, Copy)]
pub(crate) enum Percentile {
    Median,
    P99,
}

pub(crate) fn percentile(values: &[f64], which: Percentile) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = match which {
        Percentile::Median => sorted.len() / 2,
        Percentile::P99 => sorted.len() * 99 / 100,
    };
    sorted[place]
}

/// The runs of all servers.
pub(crate) struct Runs<T> {
    pub(crate) gateway: Vec<T>,
    /// Empty if there is no baseline.
    pub(crate) baseline: Vec<T>,
    pub(crate) bare: Vec<T>,
}

impl<T> Runs<T> {
    /// Measures each server so many times, interleaved: whatever else the machine does hits all alike.
    pub(crate) async fn measure<F: Future<Output = T>>(
        rounds: usize,
        measure: impl Fn(Kind) -> F,
    ) -> Self {
        let (mut gateway, mut baseline, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare.push(measure(Kind::Bare).await);
            gateway.push(measure(Kind::Gateway).await);
            if server::baseline().is_some() {
                baseline.push(measure(Kind::Baseline).await);
            }
        }
        Self {
            gateway,
            baseline,
            bare,
        }
    }

    /// The medians of one figure.
    pub(crate) fn median(&self, figure: impl Fn(&T) -> f64) -> Figure {
        let median = |runs: &[T]| {
            let values: Vec<f64> = runs.iter().map(&figure).collect();
            percentile(&values, Percentile::Median)
        };
        let has_baseline = !self.baseline.is_empty();
        Figure {
            gateway: median(&self.gateway),
            baseline: has_baseline.then(|| median(&self.baseline)),
            bare: median(&self.bare),
        }
    }
}

/// One figure of all servers, in the same unit.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) gateway: f64,
    pub(crate) baseline: Option<f64>,
    pub(crate) bare: f64,
}

impl Figure {
    pub(crate) fn ratio(self) -> f64 {
        self.gateway / self.bare
    }

    /// How far the gateway is above the bare server.
    pub(crate) fn excess(self) -> f64 {
        self.gateway - self.bare
    }

    /// Prints one line; the goal comes with whether it is reached.
    pub(crate) fn print(self, what: &str, unit: &str, goal: Option<(&str, bool)>) {
        let Self {
            gateway,
            baseline,
            bare,
        } = self;
        let digits = if gateway < 1_000.0 { 2 } else { 0 };
        let verdict = match goal {
            Some((goal, true)) => format!("; goal {goal}: reached"),
            Some((goal, false)) => format!("; goal {goal}: MISSED"),
            None => String::new(),
        };
        let baseline = baseline.map_or(String::new(), |baseline| {
            let ratio = gateway / baseline;
            format!("; baseline {baseline:.digits$} {unit}, ratio {ratio:.2}")
        });
        println!(
            "{what}: {gateway:.digits$} {unit}; bare server {bare:.digits$} {unit}; ratio {:.2}{baseline}{verdict}",
            self.ratio()
        );
    }
}
