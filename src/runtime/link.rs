//! A running agent of one session: the session's end, and how it is started and ended.

use std::future::Future;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::ToAgent;
use super::room::Room;

/// How many commands may wait. A sender waits while there are as many; an agent reads them also
/// while nobody reads what it says, so that such a wait is short.
const WAITING_COMMANDS: usize = 16;

/// A running agent of one session. Dropping it ends the agent.
#[derive(Debug)]
pub(crate) struct Link {
    commands: mpsc::Sender<ToAgent>,
    room: Option<Room>,
    /// Cancels the agent's token when the link is dropped.
    _guard: DropGuard,
}

/// The agent is gone, and does not hear any more.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the agent is gone")]
pub(crate) struct LinkLost;

impl Link {
    /// Runs an agent as a task that `tracker` awaits, until it returns or is told to stop, by `stop`
    /// or by dropping the link. What the agent holds is dropped with it, also when it panics.
    pub(super) fn start<A, F>(stop: &CancellationToken, tracker: &TaskTracker, agent: A) -> Self
    where
        A: FnOnce(mpsc::Receiver<ToAgent>) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::launch(stop, tracker, None, |commands, stop| {
            let agent = agent(commands);
            async move {
                stop.run_until_cancelled(agent).await;
            }
        })
    }

    /// The same for an agent that ends in its own way when its token is cancelled, and that says no
    /// more than fits into `room`.
    pub(super) fn launch<A, F>(
        stop: &CancellationToken,
        tracker: &TaskTracker,
        room: Option<Room>,
        agent: A,
    ) -> Self
    where
        A: FnOnce(mpsc::Receiver<ToAgent>, CancellationToken) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let (commands, received) = mpsc::channel(WAITING_COMMANDS);
        let stop = stop.child_token();
        let guard = stop.clone().drop_guard();
        // The tracker awaits the task; how it ended is seen by whoever listens to the agent.
        drop(tracker.spawn(agent(received, stop)));
        Self {
            commands,
            room,
            _guard: guard,
        }
    }

    /// Tells the agent something, after waiting for room if there is none.
    pub(crate) async fn send(&self, command: ToAgent) -> Result<(), LinkLost> {
        self.commands.send(command).await.map_err(|_| LinkLost)
    }

    /// The room that what it says takes until it is written down, if that is bounded.
    pub(crate) fn room(&self) -> Option<&Room> {
        self.room.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::RunId;

    #[tokio::test]
    async fn a_link_to_an_agent_that_panicked_is_lost_and_nobody_waits_for_it() {
        let (back, mut heard) = mpsc::channel::<()>(1);
        let tracker = TaskTracker::new();
        let link = Link::start(
            &CancellationToken::new(),
            &tracker,
            |mut commands| async move {
                let held = back;
                commands.recv().await;
                assert!(held.is_closed(), "a panic that a test asks for");
            },
        );
        let cancel = ToAgent::Cancel { run: RunId::new() };
        assert_eq!(link.send(cancel.clone()).await, Ok(()));
        assert_eq!(heard.recv().await, None);
        assert_eq!(link.send(cancel).await, Err(LinkLost));
        tracker.close();
        tracker.wait().await;
    }
}
