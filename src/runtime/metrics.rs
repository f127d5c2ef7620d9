//! Agent metrics: read from the catalog at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::catalog::{Catalog, Described};
use super::process_table;

/// Collects the metrics of a catalog. Agent names are labels: the operator configures them, so there
/// are few.
#[derive(Debug)]
pub(crate) struct Agents(pub(crate) Catalog);

/// A name, a help text, and the value.
type Count = (&'static str, &'static str, fn(&Described) -> u64);

const COUNTS: [Count; 4] = [
    (
        "agent_starts",
        "Processes of agents that were started",
        |agent| agent.starts,
    ),
    (
        "agent_crashes",
        "Agents that ended without being told to, or could not be started",
        |agent| agent.crashes,
    ),
    (
        "agent_strays",
        "What agents said about conversations of others; dropped",
        |agent| agent.misrouted,
    ),
    (
        "agent_odd_lines",
        "Lines of agents that made no sense; dropped",
        |agent| agent.unexpected,
    ),
];

impl Collector for Agents {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let agents = self.0.described();
        let kind = ConstGauge::new(0_i64).metric_type();
        let mut live = encoder.encode_descriptor("agents_live", "Agents that run", None, kind)?;
        for agent in &agents {
            let gauge = ConstGauge::new(i64::try_from(agent.live).unwrap_or(i64::MAX));
            gauge.encode(live.encode_family(&[("agent", agent.name.as_str())])?)?;
        }
        let wanted = agents.iter().flat_map(|agent| &agent.groups).copied();
        let held = process_table::resident_by_group(&wanted.collect());
        let help = "Memory of agents and of what they have started, in bytes";
        let mut memory = encoder.encode_descriptor("agent_memory_bytes", help, None, kind)?;
        for agent in &agents {
            let bytes: u64 = agent
                .groups
                .iter()
                .filter_map(|group| held.get(group))
                .sum();
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            gauge.encode(memory.encode_family(&[("agent", agent.name.as_str())])?)?;
        }
        let (taken, all) = self.0.slots();
        for (name, help, count) in [
            (
                "agent_places_taken",
                "Sessions whose agent has a place",
                taken,
            ),
            (
                "agent_places",
                "Agents that may run at once (runtime.max_agents)",
                all,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        for (name, help, count) in COUNTS {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for agent in &agents {
                let counter = ConstCounter::new(count(agent));
                counter.encode(family.encode_family(&[("agent", agent.name.as_str())])?)?;
            }
        }
        Ok(())
    }
}
