//! The agent of one session, while it runs: the link to it, and what it says.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Parts;
use crate::runtime::{FromAgent, Link, Room, Start, StartAgentError, ToAgent};

/// What an agent may say ahead of the journal. Full: the agent waits.
const QUEUE: usize = 1_024;
/// How much of it goes into one commit.
const BATCH: usize = 1_024;
/// What is heard while the agent does not listen. Full: it must listen, or it is given up.
const OVERHEARD: usize = 16 * 1_024;
/// How long an agent may take to hear what it is told.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running agent; dropping it ends it.
pub(super) struct Agent {
    link: Link,
    says: mpsc::Receiver<FromAgent>,
    /// Heard while it was told something, and not taken down yet.
    overheard: Vec<FromAgent>,
}

/// Why an agent was not told something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    /// It is gone; what it said before can still be heard.
    Gone,
    /// It is there and does not listen.
    Deaf,
}

impl Agent {
    pub(super) fn start(name: &str, start: Start, parts: &Parts) -> Result<Self, StartAgentError> {
        let (back, says) = mpsc::channel(QUEUE);
        let (stop, tracker) = (&parts.stopping.stop, &parts.tracker);
        let link = parts.catalog.start(name, start, back, stop, tracker)?;
        Ok(Self {
            link,
            says,
            overheard: Vec::new(),
        })
    }

    /// How much room what it said takes until it is written down.
    pub(super) fn room_taken_by(&self, said: &[FromAgent]) -> usize {
        self.link.room().map_or(0, |_| Room::taken_by(said))
    }

    /// So much of what it said takes no room any more.
    pub(super) fn wrote_down(&self, taken: usize) {
        if let Some(room) = self.link.room() {
            room.give_back(taken);
        }
    }

    /// Tells it something. Listens meanwhile: an agent that waits to be heard does not listen itself,
    /// and both would wait for ever.
    pub(super) async fn tell(&mut self, said: ToAgent) -> Result<(), Unheard> {
        let mut telling = pin!(tokio::time::timeout(PATIENCE, self.link.send(said)));
        loop {
            tokio::select! {
                biased;
                told = &mut telling => return match told {
                    Ok(told) => told.map_err(|_| Unheard::Gone),
                    Err(_) => Err(Unheard::Deaf),
                },
                heard = self.says.recv_many(&mut self.overheard, BATCH),
                    if self.overheard.len() < OVERHEARD =>
                {
                    if heard == 0 {
                        return Err(Unheard::Gone);
                    }
                }
            }
        }
    }
}

/// What the agent says next, many at once; 0 when it is gone. Waits for ever without an agent.
/// Cancel-safe, as `recv_many` is.
pub(super) async fn hear(agent: &mut Option<Agent>, batch: &mut Vec<FromAgent>) -> usize {
    match agent {
        Some(agent) if !agent.overheard.is_empty() => {
            batch.append(&mut agent.overheard);
            batch.len()
        }
        Some(agent) => agent.says.recv_many(batch, BATCH).await,
        None => std::future::pending().await,
    }
}
