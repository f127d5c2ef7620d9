//! Sampler: which traces are kept.

use super::trace::Remote;

/// Which traces are kept, as `OTEL_TRACES_SAMPLER` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampler {
    /// Does the sender's decision count for a trace that began elsewhere?
    follows_parent: bool,
    /// Of the traces that begin here, keep those whose last eight bytes are below this.
    below: u64,
}

impl Default for Sampler {
    /// Keeps all traces, unless the sender does not sample.
    fn default() -> Self {
        Self {
            follows_parent: true,
            below: u64::MAX,
        }
    }
}

impl Sampler {
    pub(super) fn named(name: &str, argument: Option<&str>) -> Result<Self, String> {
        let (follows_parent, rest) = match name.strip_prefix("parentbased_") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let below = match rest {
            "always_on" => u64::MAX,
            "always_off" => 0,
            "traceidratio" => ratio(argument.unwrap_or("1"))?,
            _ => {
                return Err(
                    "OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, \
                     or one of them after parentbased_"
                        .to_owned(),
                );
            }
        };
        Ok(Self {
            follows_parent,
            below,
        })
    }

    pub(super) fn keeps(&self, trace: u128, remote: Option<Remote>) -> bool {
        if let Some(remote) = remote.filter(|_| self.follows_parent) {
            return remote.sampled;
        }
        #[allow(clippy::cast_possible_truncation, reason = "the random half of the id")]
        let drawn = trace as u64;
        self.below == u64::MAX || drawn < self.below
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of all ids, about"
)]
fn ratio(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok((share * u64::MAX as f64) as u64),
        _ => Err("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_kept_and_a_parent_decides_where_it_may() {
        let sampled = |flag| {
            let header = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0{flag}");
            Remote::parse(&header)
        };
        let named = |name, argument| Sampler::named(name, argument).unwrap();
        let (low, high) = (1, u128::from(u64::MAX));
        assert!(named("always_on", None).keeps(high, sampled(0)));
        assert!(!named("always_off", None).keeps(low, sampled(1)));
        assert!(named("parentbased_always_off", None).keeps(low, sampled(1)));
        assert!(!named("parentbased_always_on", None).keeps(low, sampled(0)));
        let half = named("traceidratio", Some("0.5"));
        assert!(half.keeps(low, None) && !half.keeps(high, None));
        assert!(!named("traceidratio", Some("0")).keeps(low, None));
        assert!(named("parentbased_traceidratio", None).keeps(high, None));
        assert!(Sampler::named("sometimes", None).is_err());
        assert!(Sampler::named("traceidratio", Some("2")).is_err());
    }
}
