//! Open questions: each is resolved once, by an answer, by its deadline, or by the end of its run. One
//! that no run asked ends with the agent instead.
//!
//! The session alone decides when a question expires. An open question is part of the state; its
//! wall-clock expiry is stored with it, so that it survives a restart.

use std::collections::HashMap;

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::mailbox::{CommandError, CommandMeta, Refused, Reply, command_record};
use super::super::question_audit;
use super::super::state::{ResolvedQuestion, truncated};
use super::commit::Change;
use super::{Router, Terminated};
use crate::domain::audit::{Actor, AuditContext};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Event, Resolver};
use crate::domain::id::{QuestionId, RunId};
use crate::domain::question::{Answer, AnswerValue, OpenQuestion, Resolution};

/// Deadlines of the open questions, by a clock that does not jump.
#[derive(Default)]
pub(super) struct QuestionDeadlines(HashMap<QuestionId, Instant>);

impl QuestionDeadlines {
    /// Follows the open questions; returns the next deadline.
    fn update(&mut self, open: &[OpenQuestion], wall: Timestamp) -> Option<Instant> {
        let now = Instant::now();
        let deadline = |open: &OpenQuestion| {
            let known = self.0.get(&open.id).copied();
            let left = open.expires_at?.duration_since(wall);
            let deadline = known.unwrap_or(now + left.try_into().unwrap_or_default());
            Some((open.id, deadline))
        };
        self.0 = open.iter().filter_map(deadline).collect();
        self.0.values().min().copied()
    }

    fn is_past(&self, question: QuestionId, now: Instant) -> bool {
        self.0
            .get(&question)
            .is_some_and(|deadline| *deadline <= now)
    }
}

impl Router {
    /// Takes an answer. The first one counts; a later one is told how the question was resolved.
    pub(super) async fn answer_question(
        &mut self,
        id: QuestionId,
        answer: Answer,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let by = resolver(&meta.by);
        let Some(open) = self.state.questions.open(id).cloned() else {
            return self.late_answer(id, &answer, &by);
        };
        if let Err(invalid) = open.question.check(&answer) {
            let message = format!("`payload.{}` {}.", invalid.field, invalid.reason);
            return Err(Refused::new(ErrorCode::ValidationError, message).into());
        }
        let granted = open.question.is_granted_by(&answer);
        let resolution = Resolution::Answered(open.question.storable(&answer));
        let key = meta.idempotency_key;
        let change = Change {
            events: vec![resolved(&open, by.clone(), granted, resolution.clone())],
            command: key.map(|key| command_record(key, &None::<RunId>)),
            acts: vec![question_audit::act(meta.by, self.id, &open, granted)],
        };
        self.record(change).await?;
        // The agent gets the answer as it was given: a secret is stored nowhere.
        self.send_resolution(open.native_id, Resolution::Answered(answer))
            .await;
        let ended = ResolvedQuestion {
            question: id,
            by,
            granted,
            resolution,
        };
        let accepted = true;
        Ok(Reply::Resolved { ended, accepted })
    }

    fn late_answer(
        &self,
        id: QuestionId,
        answer: &Answer,
        by: &Resolver,
    ) -> Result<Reply, CommandError> {
        let Some(ended) = self.state.questions.ended(id).cloned() else {
            return Err(Refused::new(ErrorCode::NotFound, "There is no such question.").into());
        };
        // The same person may repeat the answer that was accepted. A secret is not stored and cannot
        // be compared.
        let is_secret = matches!(
            &ended.resolution,
            Resolution::Answered(Answer {
                value: AnswerValue::Text(None),
                ..
            })
        );
        let is_same = ended.resolution == truncated(&Resolution::Answered(answer.clone()));
        let accepted = ended.by == *by && (is_same || is_secret);
        Ok(Reply::Resolved { ended, accepted })
    }

    pub(super) fn next_question_deadline(&mut self) -> Option<Instant> {
        let open = &self.state.questions.open;
        if open.is_empty() {
            return None;
        }
        let wall = self.parts.clock.wall();
        self.question_deadlines.update(open, wall)
    }

    /// Cancels the questions that the agent asked beside its runs, once it is gone.
    pub(super) async fn close_session_questions(&mut self) -> Result<(), Terminated> {
        if self.agent.is_some() {
            return Ok(());
        }
        let cancelled =
            |open: &OpenQuestion| resolved(open, Resolver::RunEnd, false, Resolution::Cancelled);
        let events: Vec<Event> = self.state.questions.of_session().map(cancelled).collect();
        if events.is_empty() {
            return Ok(());
        }
        self.record_with_retry(events, Vec::new()).await
    }

    /// Resolves the questions past their deadline as denied, and tells the agent.
    pub(super) async fn expire_questions(&mut self) -> Result<(), Terminated> {
        let (now, wall) = (Instant::now(), self.parts.clock.wall());
        let open = self.state.questions.open.iter();
        let late: Vec<OpenQuestion> = open
            .filter(|open| self.question_deadlines.is_past(open.id, now))
            .cloned()
            .collect();
        let expired =
            |open: &OpenQuestion| resolved(open, Resolver::Timeout, false, Resolution::Expired);
        let act = |open| question_audit::act(AuditContext::gateway(wall), self.id, open, false);
        let events = late.iter().map(expired).collect();
        let acts = late.iter().map(act).collect();
        self.record_with_retry(events, acts).await?;
        for open in late {
            self.send_resolution(open.native_id, Resolution::Expired)
                .await;
        }
        Ok(())
    }
}

pub(super) fn resolved(
    open: &OpenQuestion,
    by: Resolver,
    granted: bool,
    resolution: Resolution,
) -> Event {
    Event::QuestionResolved {
        question: open.id,
        run: open.run,
        by,
        granted,
        resolution,
    }
}

pub(super) fn resolver(by: &AuditContext) -> Resolver {
    match &by.actor {
        Actor::User(id, name) => Resolver::User {
            id: *id,
            name: name.to_string(),
        },
        _ => Resolver::RunEnd,
    }
}
