//! The agent of one session, while it runs: the link to it, and what it says.

use tokio::sync::mpsc;

use super::Parts;
use crate::runtime::{FromAgent, Link, StartAgentError};

/// What an agent may say ahead of the journal. Full: the agent waits.
const QUEUE: usize = 1_024;
/// How much of it goes into one commit.
const BATCH: usize = 1_024;

/// A running agent; dropping it ends it.
pub(super) struct Agent {
    /// What it is told.
    pub(super) link: Link,
    says: mpsc::Receiver<FromAgent>,
}

impl Agent {
    pub(super) fn start(name: &str, parts: &Parts) -> Result<Self, StartAgentError> {
        let (back, says) = mpsc::channel(QUEUE);
        let link = parts
            .catalog
            .start(name, back, &parts.stopping.stop, &parts.tracker)?;
        Ok(Self { link, says })
    }
}

/// What the agent says next, many at once; 0 when it is gone. Waits for ever without an agent.
/// Cancel-safe, as `recv_many` is.
pub(super) async fn hear(agent: &mut Option<Agent>, batch: &mut Vec<FromAgent>) -> usize {
    match agent {
        Some(agent) => agent.says.recv_many(batch, BATCH).await,
        None => std::future::pending().await,
    }
}
