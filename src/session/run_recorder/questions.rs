//! Questions of a run or of the session: opened with a deadline, granted by auto-approve, or settled
//! by the agent.

use std::time::Duration;

use jiff::Timestamp;

use super::{Batch, RunRecorder};
use crate::domain::event::{Event, Resolver};
use crate::domain::id::{QuestionId, RunId};
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

/// An open question, as far as a batch needs it.
#[derive(Debug)]
pub(super) struct OpenInBatch {
    id: QuestionId,
    native_id: String,
    run: Option<RunId>,
}

impl From<&OpenQuestion> for OpenInBatch {
    fn from(open: &OpenQuestion) -> Self {
        Self {
            id: open.id,
            native_id: open.native_id.clone(),
            run: open.run,
        }
    }
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
        batch.ask(Some(self.run), native_id, question, agent_timeout, policy);
    }
}

impl Batch {
    /// Opens a question of a run, or of the session if it names none.
    pub(in crate::session) fn ask(
        &mut self,
        run: Option<RunId>,
        native_id: String,
        question: Question,
        agent_timeout: Option<Duration>,
        policy: &QuestionPolicy,
    ) {
        let timeout = agent_timeout.into_iter().chain(policy.timeout).min();
        let open = OpenQuestion {
            id: QuestionId::new(),
            native_id,
            run,
            expires_at: timeout.and_then(|timeout| policy.now.checked_add(timeout).ok()),
            question: bounded(question),
        };
        self.events.push(Event::QuestionAsked(open.clone()));
        let entry = OpenInBatch::from(&open);
        if self.open.len() >= MAX_OPEN_QUESTIONS {
            let expired = entry.resolved(Resolver::Timeout, Resolution::Expired);
            self.events.push(expired);
            self.answers.push((open.native_id, Resolution::Expired));
            return;
        }
        let Some(answer) = approval(&open.question).filter(|_| policy.auto_approve) else {
            self.open.push(entry);
            return;
        };
        let resolution = Resolution::Answered(answer);
        let approved = entry.resolved(Resolver::AutoApprove, resolution.clone());
        self.events.push(approved);
        self.answers.push((open.native_id.clone(), resolution));
        self.auto_approved.push(open);
    }

    /// The agent went on without an answer.
    pub(in crate::session) fn settle(&mut self, native_id: &str) {
        let mut open = self.open.iter();
        if let Some(index) = open.position(|open| open.native_id == native_id) {
            let settled = self.open.remove(index);
            let cancelled = settled.resolved(Resolver::RunEnd, Resolution::Cancelled);
            self.events.push(cancelled);
        }
    }

    /// Cancels the open questions whose asker is one of these: a run, or the session.
    pub(in crate::session) fn close_questions(&mut self, is_one: fn(Option<RunId>) -> bool) {
        for open in self.open.extract_if(.., |open| is_one(open.run)) {
            let cancelled = open.resolved(Resolver::RunEnd, Resolution::Cancelled);
            self.events.push(cancelled);
        }
    }
}

impl OpenInBatch {
    fn resolved(&self, by: Resolver, resolution: Resolution) -> Event {
        Event::QuestionResolved {
            question: self.id,
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
