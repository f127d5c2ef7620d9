//! Sender recheck: asks again whether those whose prompts run or wait may still send them.
//!
//! A prompt may wait for hours. Its sender is asked about right before it starts, and whenever an account
//! or the session's grants change. The run of a disabled user is cancelled as well.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use tokio::time::Instant;

use super::super::access::{Access, access_of};
use super::questions::{resolved, resolver};
use super::runs::queue_updated;
use super::{Router, Terminated};
use crate::domain::audit::{Action, AuditContext, AuditEntry};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Event;
use crate::domain::id::{RunId, UserId};
use crate::domain::question::{OpenQuestion, Resolution};
use crate::domain::queue::QueuedPrompt;
use crate::domain::run::RunOutcome;
use crate::store::StoreError;

/// After this, rights that could not be read are asked for again.
const RECHECK_DELAY: Duration = Duration::from_secs(1);

/// What a sender may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    MaySend,
    /// The session is not shared with them any more, or only to look at.
    NoAccess,
    /// The account is disabled or was removed.
    Disabled,
}

impl Router {
    /// An account or the session's grants have changed.
    pub(super) async fn senders_changed(&mut self) -> Result<(), Terminated> {
        let run = self.state.live_run();
        let running = run.map(|run| run.senders.clone()).unwrap_or_default();
        let Some(standings) = self.standings_or_later(&running).await else {
            return Ok(());
        };
        if let Some(run) = self.live_run()
            && is_any_disabled(&running, &standings)
            && self.cancel_by.is_none()
        {
            let questions = self.record_cancellation(run).await?;
            self.stop_run(run, questions).await;
        }
        self.end_refused_prompts(&standings).await
    }

    /// Ends the run that was under way before a restart if one of its senders was disabled meanwhile;
    /// true if it did.
    pub(super) async fn end_run_of_disabled_sender(
        &mut self,
        senders: &[UserId],
    ) -> Result<bool, Terminated> {
        let Some(standings) = self.standings_or_later(senders).await else {
            return Ok(false);
        };
        let run = self.live_run();
        let Some(run) = run.filter(|_| is_any_disabled(senders, &standings)) else {
            return Ok(false);
        };
        self.record_cancellation(run).await?;
        self.end_run(RunOutcome::Cancelled, None).await?;
        Ok(true)
    }

    /// The standings, or none if they cannot be read: then they are asked for again soon.
    async fn standings_or_later(
        &mut self,
        running: &[UserId],
    ) -> Option<BTreeMap<UserId, Standing>> {
        let read = self.standings(running).await;
        self.recheck_senders_at = read.is_err().then(|| Instant::now() + RECHECK_DELAY);
        read.inspect_err(|error| {
            tracing::warn!(%error, session.id = %self.id, "the senders' rights cannot be read; asked again in a second");
        })
        .ok()
    }

    /// Ends the queued prompts whose senders may not send any more; false if that cannot be found out
    /// now.
    pub(super) async fn check_queued_senders(&mut self) -> Result<bool, Terminated> {
        match self.standings(&[]).await {
            Ok(standings) => {
                self.end_refused_prompts(&standings).await?;
                Ok(true)
            }
            Err(error) => {
                tracing::warn!(%error, session.id = %self.id, "the senders' rights cannot be read; queued prompts wait");
                Ok(false)
            }
        }
    }

    /// The standing of everybody whose prompt is queued, and of these.
    async fn standings(
        &self,
        running: &[UserId],
    ) -> Result<BTreeMap<UserId, Standing>, StoreError> {
        let queued = self.state.queue.entries.iter();
        let senders = queued.filter_map(|queued| queued.sender);
        let mut standings = BTreeMap::new();
        for user in senders.chain(running.iter().copied()) {
            if let Entry::Vacant(unknown) = standings.entry(user) {
                unknown.insert(self.standing(user).await?);
            }
        }
        Ok(standings)
    }

    async fn standing(&self, user: UserId) -> Result<Standing, StoreError> {
        let store = &self.parts.store;
        if store.user(user).await?.is_none_or(|user| user.disabled) {
            return Ok(Standing::Disabled);
        }
        let row = store.session_for(self.id, user).await?;
        let access = row.and_then(|row| access_of(user, row.owner, row.granted));
        Ok(match access {
            Some(Access::Editor | Access::Owner) => Standing::MaySend,
            Some(Access::Viewer) | None => Standing::NoAccess,
        })
    }

    async fn end_refused_prompts(
        &mut self,
        standings: &BTreeMap<UserId, Standing>,
    ) -> Result<(), Terminated> {
        let mut queue = self.state.queue.clone();
        let may_stay = |queued: &QueuedPrompt| {
            let standing = queued.sender.and_then(|sender| standings.get(&sender));
            // Prompts from before senders were recorded stay.
            standing.is_none_or(|standing| *standing == Standing::MaySend)
        };
        let (kept, refused): (Vec<_>, Vec<_>) = queue.entries.into_iter().partition(may_stay);
        if refused.is_empty() {
            return Ok(());
        }
        queue.entries = kept;
        let mut events = vec![queue_updated(&queue, Vec::new())];
        events.extend(refused.iter().map(refusal));
        let acts = refused.iter().map(|queued| self.cancellation(queued.run));
        let acts = acts.collect();
        self.record_with_retry(events, acts).await
    }

    /// Records that the run under way is cancelled because its sender was disabled, and its questions
    /// with it.
    async fn record_cancellation(&mut self, run: RunId) -> Result<Vec<OpenQuestion>, Terminated> {
        let questions: Vec<_> = self.state.questions.of_runs().cloned().collect();
        let by = resolver(&AuditContext::gateway(self.parts.clock.wall()));
        let cancelled =
            |open: &OpenQuestion| resolved(open, by.clone(), false, Resolution::Cancelled);
        let events: Vec<Event> = questions.iter().map(cancelled).collect();
        // The run's end comes later, from its agent: the decision is recorded now.
        let act = self.cancellation(run);
        self.record_with_retry(events, vec![act]).await?;
        Ok(questions)
    }

    fn cancellation(&self, run: RunId) -> AuditEntry {
        let by = AuditContext::gateway(self.parts.clock.wall());
        by.did(Action::RunCancelled, format!("{} {run}", self.id))
    }
}

fn is_any_disabled(senders: &[UserId], standings: &BTreeMap<UserId, Standing>) -> bool {
    senders
        .iter()
        .any(|user| standings.get(user) == Some(&Standing::Disabled))
}

fn refusal(queued: &QueuedPrompt) -> Event {
    let sender = queued.by.as_deref().unwrap_or("its sender");
    let message =
        format!("This prompt was not run: {sender} may not work in this session any more.");
    Event::RunEnded {
        run: queued.run,
        outcome: RunOutcome::Failed {
            code: ErrorCode::Forbidden,
            message,
        },
        usage: None,
        cause: None,
        agent_error: None,
    }
}
