//! What the agent has to know before it goes on. It is an ordinary result; the answer is sent as a
//! part of the next request.

use serde_json::Value;

use crate::domain::question::{Answer, Choice, Question, QuestionKind, Said, Severity};
use crate::runtime::dialect::text_of;

/// A question, with one answer among its options, or in own words if it has none.
#[derive(Debug)]
pub(super) struct Clarification {
    name: String,
    question: String,
    options: Vec<String>,
}

impl Clarification {
    /// Reads the result that is a question.
    pub(super) fn read(name: String, result: &Value) -> Self {
        let options = result["options"].as_array().into_iter().flatten();
        let question = match text_of(&result["question"]) {
            question if question.is_empty() => "What exactly do you mean?".to_owned(),
            question => question,
        };
        Self {
            name,
            question,
            options: options.map(text_of).collect(),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// As it is asked.
    pub(super) fn question(&self) -> Question {
        let kind = if self.options.is_empty() {
            QuestionKind::Prompt
        } else {
            QuestionKind::Pick
        };
        let choice = |(place, label): (usize, &String)| Choice {
            id: place.to_string(),
            label: label.clone(),
            detail: None,
            kind: None,
        };
        let title = "The agent needs to know more";
        Question {
            options: self.options.iter().enumerate().map(choice).collect(),
            multiline: self.options.is_empty(),
            ..Question::new(kind, Severity::Info, title, self.question.as_str())
        }
    }

    /// Question and answer for the next request; nothing if nobody wanted to say anything.
    pub(super) fn cleared_up(&self, answer: &Answer) -> Option<String> {
        let option = |id: &String| self.options.get(id.parse::<usize>().ok()?).cloned();
        let said = match &answer.said {
            Said::Option(id) => option(id),
            Said::Ids(ids) => ids.first().and_then(option),
            Said::Value(text) => text.clone().filter(|text| !text.trim().is_empty()),
            Said::Ok(_) => None,
        }?;
        Some(format!("{}\n{said}", self.question))
    }
}
