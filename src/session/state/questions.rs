//! The questions that wait for an answer, and how the latest ones ended.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::domain::event::Resolver;
use crate::domain::id::{QuestionId, RunId};
use crate::domain::question::{OpenQuestion, Resolution, Said};

/// So many ended ones are remembered, for those who answer a moment too late.
const REMEMBERED: usize = 64;
const BRIEF_BYTES: usize = 1_000;
const BRIEF_IDS: usize = 20;

/// The questions of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Questions {
    /// The oldest first.
    pub(crate) open: Vec<OpenQuestion>,
    ended: VecDeque<Ended>,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Which.
    pub(crate) question: QuestionId,
    /// Who ended it.
    pub(crate) by: Resolver,
    /// Was it a yes?
    pub(crate) granted: bool,
    /// How.
    pub(crate) resolution: Resolution,
}

impl Questions {
    /// One that waits.
    pub(crate) fn open(&self, id: QuestionId) -> Option<&OpenQuestion> {
        self.open.iter().find(|open| open.id == id)
    }

    /// One that has ended not long ago.
    pub(crate) fn ended(&self, id: QuestionId) -> Option<&Ended> {
        self.ended.iter().rfind(|ended| ended.question == id)
    }

    pub(super) fn ask(&mut self, asked: &OpenQuestion) {
        let known = self.open(asked.id).is_some() || self.ended(asked.id).is_some();
        if !known {
            self.open.push(asked.clone());
        }
    }

    pub(super) fn resolve(&mut self, mut ended: Ended) {
        let before = self.open.len();
        self.open.retain(|open| open.id != ended.question);
        if self.open.len() < before {
            ended.resolution = brief(&ended.resolution);
            self.ended.push_back(ended);
            let surplus = self.ended.len().saturating_sub(REMEMBERED);
            self.ended.drain(..surplus);
        }
    }

    /// A run is over, and nobody waits for its answers any more.
    pub(super) fn forget(&mut self, run: RunId) {
        self.open.retain(|open| open.run != run);
    }
}

/// The end of a question as it is remembered: a long answer by its beginning.
pub(crate) fn brief(resolution: &Resolution) -> Resolution {
    let mut brief = resolution.clone();
    if let Resolution::Answered(answer) = &mut brief {
        match &mut answer.said {
            Said::Value(Some(text)) => text.truncate(text.floor_char_boundary(BRIEF_BYTES)),
            Said::Ids(ids) => ids.truncate(BRIEF_IDS),
            Said::Ok(_) | Said::Option(_) | Said::Value(None) => {}
        }
        if let Some(reason) = &mut answer.reason {
            reason.truncate(reason.floor_char_boundary(BRIEF_BYTES));
        }
    }
    brief
}
