//! Questions of a session: the open ones, and the latest resolved ones.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::domain::event::Resolver;
use crate::domain::id::{QuestionId, RunId};
use crate::domain::question::{AnswerValue, OpenQuestion, Resolution};

/// Resolved questions that are kept, for answers that come too late.
const MAX_RESOLVED: usize = 64;
const MAX_TEXT_BYTES: usize = 1_000;
const MAX_IDS: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Questions {
    /// The oldest first.
    pub(crate) open: Vec<OpenQuestion>,
    ended: VecDeque<ResolvedQuestion>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResolvedQuestion {
    pub(crate) question: QuestionId,
    pub(crate) by: Resolver,
    pub(crate) granted: bool,
    pub(crate) resolution: Resolution,
}

impl Questions {
    pub(crate) fn open(&self, id: QuestionId) -> Option<&OpenQuestion> {
        self.open.iter().find(|open| open.id == id)
    }

    pub(crate) fn ended(&self, id: QuestionId) -> Option<&ResolvedQuestion> {
        self.ended.iter().rfind(|ended| ended.question == id)
    }

    pub(super) fn ask(&mut self, asked: &OpenQuestion) {
        let known = self.open(asked.id).is_some() || self.ended(asked.id).is_some();
        if !known {
            self.open.push(asked.clone());
        }
    }

    pub(super) fn resolve(&mut self, mut ended: ResolvedQuestion) {
        let before = self.open.len();
        self.open.retain(|open| open.id != ended.question);
        if self.open.len() < before {
            ended.resolution = truncated(&ended.resolution);
            self.ended.push_back(ended);
            let surplus = self.ended.len().saturating_sub(MAX_RESOLVED);
            self.ended.drain(..surplus);
        }
    }

    /// Those that a run asked. The others wait whatever becomes of runs.
    pub(crate) fn of_runs(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.open.iter().filter(|open| open.run.is_some())
    }

    /// Those that the agent asked beside its runs. They end with the agent.
    pub(crate) fn of_session(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.open.iter().filter(|open| open.run.is_none())
    }

    /// Drops the open questions of a run that has ended.
    pub(super) fn close_run(&mut self, run: RunId) {
        self.open.retain(|open| open.run != Some(run));
    }
}

/// A resolution as it is kept: a long answer is cut.
pub(crate) fn truncated(resolution: &Resolution) -> Resolution {
    let mut kept = resolution.clone();
    if let Resolution::Answered(answer) = &mut kept {
        match &mut answer.value {
            AnswerValue::Text(Some(text)) => {
                text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            }
            AnswerValue::Ids(ids) => ids.truncate(MAX_IDS),
            AnswerValue::Ok(_) | AnswerValue::Option(_) | AnswerValue::Text(None) => {}
        }
        if let Some(reason) = &mut answer.reason {
            reason.truncate(reason.floor_char_boundary(MAX_TEXT_BYTES));
        }
    }
    kept
}
