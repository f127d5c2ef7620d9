//! Follow-ups: given to an agent that takes them up within the run under way.
//!
//! They stay in the queue until the agent has begun with them: those that it refuses, or that a cancel
//! or the agent's end leaves over, become runs of their own.

use super::super::mailbox::{CommandError, CommandMeta, Reply};
use super::Router;
use crate::domain::id::RunId;
use crate::domain::queue::{PromptKind, QueuedPrompt};
use crate::runtime::ToAgent;

impl Router {
    /// Queues a follow-up, and gives it to the agent if that can go on with it by itself.
    pub(super) async fn follow_up(
        &mut self,
        text: String,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let submitted = self.submit_text(PromptKind::FollowUp, text.clone(), meta);
        let effect = submitted.await?;
        if let (Reply::Queued(queued), Some(run)) = (&effect, self.live_run()) {
            let queued = *queued;
            self.handed_over.retain(|(of, _)| *of == run);
            if self.can_hand_over(run, queued) {
                self.handed_over.push((run, queued));
                let follow_up = ToAgent::FollowUp { run, queued, text };
                self.send_to_agent(follow_up).await;
            }
        }
        Ok(effect)
    }

    /// Whether the agent has a queued prompt already.
    pub(super) fn is_handed_over(&self, queued: RunId) -> bool {
        let pair = self.live_run().map(|run| (run, queued));
        pair.is_some_and(|pair| self.handed_over.contains(&pair))
    }

    /// False if another prompt waits before it: that one comes first.
    fn can_hand_over(&self, run: RunId, queued: RunId) -> bool {
        let is_before = |entry: &&QueuedPrompt| entry.run != queued;
        let mut before = self.state.queue.entries.iter().filter(is_before);
        self.agent.is_some()
            && self.cancel_by.is_none()
            && self.parts.catalog.takes_follow_ups(&self.agent_info.name)
            && before.all(|entry| self.handed_over.contains(&(run, entry.run)))
    }
}
