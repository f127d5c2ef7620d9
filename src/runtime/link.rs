//! Link: the task between a session and its agent, and the session's handle to it.

mod drain;
mod events_out;
mod io_loop;
pub(super) mod task;

use std::future::Future;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::ToAgent;
use crate::limits::ByteBudget;

/// Commands that wait for the agent. Full: the sender waits, shortly, because an agent takes commands
/// also while its events are not taken.
const MAX_QUEUED_COMMANDS: usize = 16;

/// The handle to one session's running agent. Dropping it ends the agent.
#[derive(Debug)]
pub(crate) struct Link {
    commands: mpsc::Sender<ToAgent>,
    event_budget: Option<ByteBudget>,
    /// Cancels the task's token on drop.
    _guard: DropGuard,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the agent is gone")]
pub(crate) struct LinkLost;

impl Link {
    /// Runs an agent as a task that `tracker` awaits, until it returns, `stop` is cancelled or the
    /// handle is dropped. What the task holds is dropped with it, also when it panics.
    pub(super) fn start<A, F>(stop: &CancellationToken, tracker: &TaskTracker, agent: A) -> Self
    where
        A: FnOnce(mpsc::Receiver<ToAgent>) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_with_stop(stop, tracker, None, |commands, stop| {
            let agent = agent(commands);
            async move {
                stop.run_until_cancelled(agent).await;
            }
        })
    }

    /// The same for a task that ends in its own way when its token is cancelled, and whose events are
    /// bounded by `event_budget`.
    pub(super) fn start_with_stop<A, F>(
        stop: &CancellationToken,
        tracker: &TaskTracker,
        event_budget: Option<ByteBudget>,
        agent: A,
    ) -> Self
    where
        A: FnOnce(mpsc::Receiver<ToAgent>, CancellationToken) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let (commands, received) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let stop = stop.child_token();
        let guard = stop.clone().drop_guard();
        // The tracker awaits the task; the session sees its end as the end of the event channel.
        drop(tracker.spawn(agent(received, stop)));
        Self {
            commands,
            event_budget,
            _guard: guard,
        }
    }

    /// Sends a command, after waiting for room in the queue.
    pub(crate) async fn send(&self, command: ToAgent) -> Result<(), LinkLost> {
        self.commands.send(command).await.map_err(|_| LinkLost)
    }

    pub(crate) fn event_budget(&self) -> Option<&ByteBudget> {
        self.event_budget.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::RunId;

    #[tokio::test]
    async fn a_link_to_an_agent_that_panicked_is_lost_at_once() {
        let (events, mut received) = mpsc::channel::<()>(1);
        let tracker = TaskTracker::new();
        let link = Link::start(
            &CancellationToken::new(),
            &tracker,
            |mut commands| async move {
                let held = events;
                commands.recv().await;
                assert!(held.is_closed(), "a panic that a test asks for");
            },
        );
        let cancel = ToAgent::Cancel { run: RunId::new() };
        assert_eq!(link.send(cancel.clone()).await, Ok(()));
        assert_eq!(received.recv().await, None);
        assert_eq!(link.send(cancel).await, Err(LinkLost));
        tracker.close();
        tracker.wait().await;
    }
}
