//! Clarification: a result that asks the user something; the answer is part of the next request.

use serde_json::Value;

use crate::domain::question::{Answer, AnswerValue, Choice, Question, QuestionKind, Severity};
use crate::runtime::dialect::text_of;

/// A question with options, or for free text if it has none.
#[derive(Debug)]
pub(super) struct Clarification {
    id: String,
    question: String,
    options: Vec<String>,
}

impl Clarification {
    pub(super) fn parse(id: String, result: &Value) -> Self {
        let options = result["options"].as_array().into_iter().flatten();
        let question = match text_of(&result["question"]) {
            question if question.is_empty() => "What exactly do you mean?".to_owned(),
            question => question,
        };
        Self {
            id,
            question,
            options: options.map(text_of).collect(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn question(&self) -> Question {
        let kind = if self.options.is_empty() {
            QuestionKind::Prompt
        } else {
            QuestionKind::Pick
        };
        let choice = |(index, label): (usize, &String)| Choice {
            id: index.to_string(),
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

    /// Question and answer for the next request; none if there is no answer.
    pub(super) fn answer_text(&self, answer: &Answer) -> Option<String> {
        let option = |id: &String| self.options.get(id.parse::<usize>().ok()?).cloned();
        let said = match &answer.value {
            AnswerValue::Option(id) => option(id),
            AnswerValue::Ids(ids) => ids.first().and_then(option),
            AnswerValue::Text(text) => text.clone().filter(|text| !text.trim().is_empty()),
            AnswerValue::Ok(_) => None,
        }?;
        Some(format!("{}\n{said}", self.question))
    }
}
