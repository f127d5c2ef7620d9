//! Running agent: the link to a session's agent process, and its events.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Parts;
use crate::runtime::{FromAgent, Link, Start, StartAgentError, ToAgent};

/// Agent events not yet committed. Full: the agent waits.
const EVENT_QUEUE: usize = 1_024;
/// Agent events of one commit.
const EVENT_BATCH: usize = 1_024;
/// Events read while a message to the agent is pending. Full: the agent must take the message, or
/// it is given up.
const MAX_PENDING_EVENTS: usize = 16 * 1_024;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Handle to a running agent; dropping it ends the agent.
pub(super) struct AgentHandle {
    link: Link,
    events: mpsc::Receiver<FromAgent>,
    /// Events read during a send, not recorded yet.
    pending: Vec<FromAgent>,
}

/// Why an agent did not get a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// The agent is gone; its last events can still be read.
    Gone,
    /// The agent runs but does not take messages.
    Timeout,
}

impl AgentHandle {
    pub(super) fn start(name: &str, start: Start, parts: &Parts) -> Result<Self, StartAgentError> {
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        let (stop, tracker) = (&parts.shutdown.stop, &parts.tracker);
        let link = parts.catalog.start(name, start, sender, stop, tracker)?;
        Ok(Self {
            link,
            events,
            pending: Vec::new(),
        })
    }

    /// Bytes of the agent's budget that these events hold until they are committed.
    pub(super) fn budget_used_by(&self, events: &[FromAgent]) -> usize {
        let sizes = events.iter().map(FromAgent::bytes);
        let budget = self.link.event_budget();
        budget.map_or(0, |budget| budget.taken_by(sizes))
    }

    pub(super) fn release_budget(&self, bytes: usize) {
        if let Some(budget) = self.link.event_budget() {
            budget.give_back(bytes);
        }
    }

    /// Sends a message. Reads events meanwhile: an agent that waits for its events to be read takes
    /// no messages, and both sides would wait for ever.
    pub(super) async fn send(&mut self, message: ToAgent) -> Result<(), SendError> {
        let mut sending = pin!(tokio::time::timeout(SEND_TIMEOUT, self.link.send(message)));
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return match sent {
                    Ok(sent) => sent.map_err(|_| SendError::Gone),
                    Err(_) => Err(SendError::Timeout),
                },
                count = self.events.recv_many(&mut self.pending, EVENT_BATCH),
                    if self.pending.len() < MAX_PENDING_EVENTS =>
                {
                    if count == 0 {
                        return Err(SendError::Gone);
                    }
                }
            }
        }
    }
}

/// Reads the agent's next events and returns how many; 0 when it is gone. Never returns without an
/// agent. Cancel-safe, as `recv_many` is.
pub(super) async fn next_events(
    agent: &mut Option<AgentHandle>,
    batch: &mut Vec<FromAgent>,
) -> usize {
    match agent {
        Some(agent) if !agent.pending.is_empty() => {
            batch.append(&mut agent.pending);
            batch.len()
        }
        Some(agent) => agent.events.recv_many(batch, EVENT_BATCH).await,
        None => std::future::pending().await,
    }
}
