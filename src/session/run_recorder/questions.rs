//! Questions of a run: opened with a deadline, granted by auto-approve, or settled by the agent.

use std::time::Duration;

use jiff::Timestamp;

use super::{Batch, RunRecorder};
use crate::domain::event::{Event, Resolver};
use crate::domain::id::QuestionId;
use crate::domain::question::{
    Answer, AnswerValue, Choice, ChoiceKind, OpenQuestion, Question, QuestionKind, Resolution,
    Severity,
};

/// One more of a run expires at once.
const MAX_OPEN_QUESTIONS: usize = 32;
const MAX_TEXT_BYTES: usize = 32 * 1024;
const MAX_OPTIONS: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct QuestionPolicy {
    pub(in crate::session) now: Timestamp,
    /// The operator's timeout; the agent may ask for a shorter one.
    pub(in crate::session) timeout: Option<Duration>,
    /// Grant permissions below critical severity.
    pub(in crate::session) auto_approve: bool,
}

impl RunRecorder {
    pub(super) fn ask(
        &mut self,
        native_id: String,
        question: Question,
        agent_timeout: Option<Duration>,
        policy: &QuestionPolicy,
        batch: &mut Batch,
    ) {
        if self.is_cancelled {
            batch.answers.push((native_id, Resolution::Cancelled));
            return;
        }
        let timeout = agent_timeout.into_iter().chain(policy.timeout).min();
        let open = OpenQuestion {
            id: QuestionId::new(),
            native_id,
            run: self.run,
            expires_at: timeout.and_then(|timeout| policy.now.checked_add(timeout).ok()),
            question: bounded(question),
        };
        batch.events.push(Event::QuestionAsked(open.clone()));
        if batch.open.len() >= MAX_OPEN_QUESTIONS {
            let expired = self.resolved(open.id, Resolver::Timeout, Resolution::Expired);
            batch.events.push(expired);
            batch.answers.push((open.native_id, Resolution::Expired));
            return;
        }
        let Some(answer) = approval(&open.question).filter(|_| policy.auto_approve) else {
            batch.open.push((open.id, open.native_id));
            return;
        };
        let resolution = Resolution::Answered(answer);
        let approved = self.resolved(open.id, Resolver::AutoApprove, resolution.clone());
        batch.events.push(approved);
        batch.answers.push((open.native_id.clone(), resolution));
        batch.auto_approved.push(open);
    }

    /// The agent went on without an answer.
    pub(super) fn settle(&self, native_id: &str, batch: &mut Batch) {
        let found = batch.open.iter().position(|(_, id)| id == native_id);
        if let Some(index) = found {
            let (question, _) = batch.open.remove(index);
            let cancelled = self.resolved(question, Resolver::RunEnd, Resolution::Cancelled);
            batch.events.push(cancelled);
        }
    }

    pub(super) fn resolved(
        &self,
        question: QuestionId,
        by: Resolver,
        resolution: Resolution,
    ) -> Event {
        Event::QuestionResolved {
            question,
            run: self.run,
            granted: by == Resolver::AutoApprove,
            by,
            resolution,
        }
    }
}

/// Bounds what is kept in the state, in every snapshot and on every screen.
fn bounded(mut question: Question) -> Question {
    for text in [&mut question.title, &mut question.message] {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    }
    question.options.truncate(MAX_OPTIONS);
    question
}

/// The answer with which auto-approve grants a permission, this time only.
fn approval(question: &Question) -> Option<Answer> {
    if question.kind != QuestionKind::Permission || question.severity == Severity::Critical {
        return None;
    }
    let allows_once = |option: &&Choice| option.kind == Some(ChoiceKind::AllowOnce);
    let value = match question.options.iter().find(allows_once) {
        Some(option) => AnswerValue::Option(option.id.clone()),
        None if question.options.is_empty() => AnswerValue::Ok(true),
        None => return None,
    };
    Some(Answer::new(value))
}
