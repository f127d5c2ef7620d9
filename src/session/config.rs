//! Configuration of sessions and journals.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::runtime;

/// The `[sessions]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Agent of a session whose client names none.
    pub default_agent: String,
    /// How long a session without members stays in memory.
    pub idle_minutes: NonZeroU32,
    /// A question without an answer expires after this; 0 is never.
    pub question_timeout_minutes: u32,
    /// Days without an event after which a session is removed; 0 keeps all.
    pub retention_days: u32,
    /// Days after which an ended session is removed; 0 keeps all.
    pub ended_days: u32,
    /// How long a driver without activity keeps control.
    pub control_lease_secs: NonZeroU32,
    /// Prompts that may wait in one session.
    pub queue_max: NonZeroU32,
}

impl Config {
    /// Invalid values, by key.
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
    /// Byte budget of all sessions' recent events in memory.
    pub tail_bytes: u32,
    /// Age at which the chunks of a message are joined.
    pub compact_after_minutes: u32,
    /// Days after which events are removed; 0 keeps all.
    pub keep_days: u32,
    /// Bytes of a journal above which its oldest events are removed; 0 keeps all.
    pub keep_bytes: u64,
    /// Bytes that a branch may copy.
    pub branch_bytes: NonZeroU64,
}
