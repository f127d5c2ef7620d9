//! Agent events: has a batch of them recorded, commits it, and answers the agent.

use super::super::question_audit;
use super::super::run_recorder::{Batch, QuestionPolicy, session_event};
use super::{Router, Terminated};
use crate::domain::audit::AuditContext;
use crate::domain::event::Event;
use crate::domain::question::Resolution;
use crate::domain::run::FailureCause;
use crate::runtime::{FromAgent, SessionQuestion};

impl Router {
    /// Records what the agent has sent; a count of 0 means that the agent is gone.
    pub(super) async fn record_agent_events(
        &mut self,
        count: usize,
        events: &mut Vec<FromAgent>,
    ) -> Result<(), Terminated> {
        if count == 0 {
            self.agent = None;
            self.queries.fail_all();
            let message = "The agent ended unexpectedly; ask again.";
            return self.fail_run(FailureCause::Crashed, message).await;
        }
        if self.recorder.is_some() {
            self.agent_info.touch();
        }
        let agent = self.agent.as_ref();
        let budget = agent.map_or(0, |agent| agent.budget_used_by(events));
        let policy = self.question_policy();
        let mut batch = Batch::new(&self.state.questions.open);
        let mut undelivered = None;
        let mut queue = None;
        for event in events.drain(..) {
            let (event, meta) = event.split_meta();
            let first = batch.events.len();
            match (event, &mut self.recorder) {
                (FromAgent::Undelivered { run, .. }, Some(recorder))
                    if recorder.run() == run && self.unconfirmed.is_some() =>
                {
                    undelivered = self.unconfirmed.take();
                }
                (FromAgent::FollowUpTaken { run, queued }, Some(recorder))
                    if recorder.run() == run =>
                {
                    let queue = queue.get_or_insert_with(|| self.state.queue.clone());
                    batch.events.extend(recorder.take_up(queue, queued));
                }
                (FromAgent::Response { id, result: answer }, _) => self.queries.answer(id, answer),
                (FromAgent::Thread(thread), _) => self.agent_info.set_thread(thread),
                (FromAgent::Settings(report), _) if self.writer.is_stored() => {
                    let news = self.state.settings.news_in(report);
                    batch
                        .events
                        .extend(session_event(FromAgent::Settings(news)));
                }
                (FromAgent::SessionQuestion(asked), _) => {
                    let SessionQuestion {
                        question,
                        content,
                        timeout,
                    } = *asked;
                    // A draft has no journal that could hold it.
                    if self.writer.is_stored() {
                        batch.ask(None, question, content, timeout, &policy);
                    } else {
                        batch.answers.push((question, Resolution::Cancelled));
                    }
                }
                (FromAgent::QuestionWithdrawn { question }, None) => batch.settle(&question),
                (event, Some(recorder)) => {
                    if event.follows_prompt() {
                        self.unconfirmed = None;
                    }
                    recorder.record(event, &policy, &mut batch);
                    if matches!(batch.events.last(), Some(Event::RunEnded { .. })) {
                        self.recorder = None;
                        self.cancel_by = None;
                    }
                }
                // An agent that only introduces itself does not store a draft.
                (event, None) if self.writer.is_stored() => {
                    batch.events.extend(session_event(event));
                }
                (_, None) => {}
            }
            if let Some(meta) = meta {
                batch.attach(first, meta);
            }
        }
        let decisions = batch.auto_approved.iter();
        let acts = decisions
            .map(|open| question_audit::act(AuditContext::gateway(policy.now), self.id, open, true))
            .collect();
        self.record_with_retry(batch.events, acts).await?;
        if let Some(agent) = &self.agent {
            agent.release_budget(budget);
        }
        self.save_thread().await;
        for (question, resolution) in batch.answers {
            self.send_resolution(question, resolution).await;
        }
        self.end_run_over_quota().await?;
        match undelivered {
            Some(prompt) => self.redispatch(prompt).await,
            None => Ok(()),
        }
    }

    fn question_policy(&self) -> QuestionPolicy {
        let catalog = &self.parts.catalog;
        QuestionPolicy {
            now: self.parts.clock.wall(),
            timeout: self.question_timeout,
            auto_approve: self.state.settings.auto_approve()
                && catalog.permits_auto_approve(&self.agent_info.name),
        }
    }
}
