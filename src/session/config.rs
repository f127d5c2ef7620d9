//! What operators decide about sessions and journals.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::runtime;

/// The `[sessions]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The agent of a session whose client names none.
    pub default_agent: String,
    /// How long a session stays awake without anybody in it.
    pub idle_minutes: NonZeroU32,
    /// A question that nobody has answered for so long is denied; 0 lets it wait.
    pub question_timeout_minutes: u32,
    /// A session that nothing happened in for so many days is removed; 0 keeps all.
    pub retention_days: u32,
    /// A session that was ended is removed after so many days; 0 keeps all.
    pub ended_days: u32,
    /// How long somebody has control of a session without a sign of life.
    pub control_lease_secs: NonZeroU32,
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self, agents: &runtime::Config) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        if !agents.offers(&self.default_agent) {
            complaints.push((
                "sessions.default_agent",
                "expected the name of an agent that is configured and enabled".to_owned(),
            ));
        }
        complaints
    }
}

/// The `[journal]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JournalConfig {
    /// How much of the recent events of all sessions together is kept in memory.
    pub tail_bytes: u32,
    /// The pieces of an answer are joined when they are this old.
    pub compact_after_minutes: u32,
    /// Events older than this leave the journal; 0 keeps all.
    pub keep_days: u32,
    /// The oldest events leave a journal that is larger than this; 0 keeps all.
    pub keep_bytes: u64,
    /// A branch copies no more than this.
    pub branch_bytes: NonZeroU64,
}
