//! How figures are condensed and printed.

/// A place in an ordered list.
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

/// One figure of both servers, in the same unit.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) gateway: f64,
    pub(crate) bare: f64,
}

impl Pair {
    /// The medians over several runs.
    pub(crate) fn median<T>(gateway: &[T], bare: &[T], figure: impl Fn(&T) -> f64) -> Self {
        let of = |runs: &[T]| {
            let values: Vec<f64> = runs.iter().map(&figure).collect();
            percentile(&values, Percentile::Median)
        };
        Self {
            gateway: of(gateway),
            bare: of(bare),
        }
    }

    pub(crate) fn ratio(self) -> f64 {
        self.gateway / self.bare
    }

    /// How far the gateway is above the bare server.
    pub(crate) fn excess(self) -> f64 {
        self.gateway - self.bare
    }

    /// One line; the goal says whether it is reached.
    pub(crate) fn print(self, what: &str, unit: &str, goal: Option<(&str, bool)>) {
        let Self { gateway, bare } = self;
        let digits = if gateway < 1_000.0 { 2 } else { 0 };
        let verdict = match goal {
            Some((goal, true)) => format!("; goal {goal}: reached"),
            Some((goal, false)) => format!("; goal {goal}: MISSED"),
            None => String::new(),
        };
        println!(
            "{what}: {gateway:.digits$} {unit}; bare server {bare:.digits$} {unit}; ratio {:.2}{verdict}",
            self.ratio()
        );
    }
}
