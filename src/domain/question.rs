//! Question: what an agent asks a person, and the one answer it gets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{QuestionId, RunId};

/// Kind of answer that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    /// Permission to use a tool.
    Permission,
    /// Yes or no.
    Confirm,
    /// A text.
    Prompt,
    /// One or several of the options.
    Pick,
}

/// Risk of a wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Low.
    Info,
    /// Medium.
    Warn,
    /// High: never answered by auto-approve.
    Critical,
}

/// Meaning of a permission's option, whatever its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
}

impl ChoiceKind {
    /// True if the option grants the permission.
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The agent's id of it.
    pub id: String,
    /// Text shown to people.
    pub label: String,
    /// Explanation, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its meaning, if the agent gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ChoiceKind>,
}

/// The tool call that a permission is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The agent's id of the call.
    pub tool: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
}

/// A question as the agent asks it.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent options of the agents' protocols"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Kind of answer.
    #[serde(rename = "answer")]
    pub kind: QuestionKind,
    /// Short form.
    pub title: String,
    /// Full text.
    pub message: String,
    /// Risk of a wrong answer.
    pub severity: Severity,
    /// Options to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The tool call that a permission is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse>,
    /// Label of "yes".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_label: Option<String>,
    /// Label of "no".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_label: Option<String>,
    /// The answer may be remembered.
    #[serde(default)]
    pub allow_remember: bool,
    /// The answer may give a reason.
    #[serde(default)]
    pub allow_reason: bool,
    /// Text that the input starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    /// The text may have several lines.
    #[serde(default)]
    pub multiline: bool,
    /// The answer is a secret: it is stored nowhere.
    #[serde(default)]
    pub secret: bool,
    /// Several options may be chosen.
    #[serde(default)]
    pub multi: bool,
}

/// A question without an answer yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its id.
    pub id: QuestionId,
    /// The agent's id of it.
    #[serde(rename = "asked_as")]
    pub native_id: String,
    /// The run that waits for the answer; none if the agent asks beside its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When the session expires it; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The question itself.
    #[serde(flatten)]
    pub question: Question,
}

/// The value of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerValue {
    /// Yes or no.
    Ok(bool),
    /// One option.
    Option(String),
    /// A text; `None` if none was given, or if it is a secret that is not stored.
    #[serde(rename = "value")]
    Text(Option<String>),
    /// Several options; an empty list is a no.
    Ids(Vec<String>),
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The value.
    #[serde(rename = "said")]
    pub value: AnswerValue,
    /// Use it for the next question of this kind, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
    /// Reason given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Answer {
    /// An answer with neither a reason nor a wish to remember it.
    pub fn new(value: AnswerValue) -> Self {
        Self {
            value,
            remember: false,
            reason: None,
        }
    }
}

/// End of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// A person or auto-approve answered.
    Answered(Answer),
    /// No answer before the deadline: a no.
    Expired,
    /// The run ended or was cancelled, or the agent went on by itself.
    Cancelled,
}

/// Why an answer does not fit its question; `reason` completes "`field` …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnswer {
    /// Part of the answer.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Question {
    /// A question without options.
    pub fn new(
        kind: QuestionKind,
        severity: Severity,
        title: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            title: title.into(),
            message: message.into(),
            severity,
            options: Vec::new(),
            tool: None,
            confirm_label: None,
            cancel_label: None,
            allow_remember: false,
            allow_reason: false,
            default_value: None,
            multiline: false,
            secret: false,
            multi: false,
        }
    }

    /// Checks that the answer fits the question.
    pub fn check(&self, answer: &Answer) -> Result<(), InvalidAnswer> {
        let invalid = |field, reason: &str| {
            let reason = reason.to_owned();
            Err(InvalidAnswer { field, reason })
        };
        if answer.remember && !self.allow_remember {
            return invalid("remember", "is not offered by this question");
        }
        if answer.reason.is_some() && !self.allow_reason {
            return invalid("reason", "is not offered by this question");
        }
        match (self.kind, &answer.value) {
            (_, AnswerValue::Option(id)) if !self.offers(id) => {
                invalid("optionId", "is none of the options")
            }
            (QuestionKind::Pick, AnswerValue::Ids(ids)) => {
                // Quadratic, so checked last: the list is no longer than the options then.
                let repeated = || {
                    let mut indexed = ids.iter().enumerate();
                    indexed.any(|(index, id)| ids[..index].contains(id))
                };
                if ids.len() > self.options.len() || !ids.iter().all(|id| self.offers(id)) {
                    invalid("ids", "names something that is none of the options")
                } else if repeated() {
                    invalid("ids", "names an option twice")
                } else if ids.len() != 1 && !self.multi {
                    invalid("ids", "does not have the one option that is asked for")
                } else {
                    Ok(())
                }
            }
            // Every question can be declined.
            (_, AnswerValue::Ok(false))
            | (QuestionKind::Permission | QuestionKind::Confirm, AnswerValue::Ok(_))
            | (QuestionKind::Permission | QuestionKind::Pick, AnswerValue::Option(_))
            | (QuestionKind::Prompt, AnswerValue::Text(None)) => Ok(()),
            (QuestionKind::Prompt, AnswerValue::Text(Some(text))) => {
                if self.multiline || !text.contains(['\n', '\r']) {
                    Ok(())
                } else {
                    invalid("value", "has more than one line, and one is asked for")
                }
            }
            (QuestionKind::Permission, _) => invalid("optionId", "or `ok` is missing"),
            (QuestionKind::Confirm, _) => invalid("ok", "is missing"),
            (QuestionKind::Prompt, _) => invalid("value", "is missing"),
            (QuestionKind::Pick, _) => invalid("ids", "is missing"),
        }
    }

    /// True if the answer is a yes. A text and a choice are; a permission's option without a stated
    /// meaning is not.
    pub fn is_granted_by(&self, answer: &Answer) -> bool {
        match &answer.value {
            AnswerValue::Ok(ok) => *ok,
            AnswerValue::Option(id) => self
                .options
                .iter()
                .find(|option| option.id == *id)
                .is_some_and(|option| match option.kind {
                    Some(kind) => kind.allows(),
                    None => self.kind != QuestionKind::Permission,
                }),
            AnswerValue::Text(value) => value.is_some() || self.secret,
            AnswerValue::Ids(ids) => !ids.is_empty(),
        }
    }

    /// The answer as it is stored: without a secret.
    #[must_use]
    pub fn storable(&self, answer: &Answer) -> Answer {
        let mut kept = answer.clone();
        if self.secret && matches!(kept.value, AnswerValue::Text(_)) {
            kept.value = AnswerValue::Text(None);
        }
        kept
    }

    fn offers(&self, id: &str) -> bool {
        self.options.iter().any(|option| option.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: QuestionKind) -> Question {
        let choice = |id: &str, kind| Choice {
            id: id.into(),
            label: id.into(),
            detail: None,
            kind: Some(kind),
        };
        Question {
            options: vec![
                choice("yes", ChoiceKind::AllowOnce),
                choice("no", ChoiceKind::RejectOnce),
            ],
            ..Question::new(kind, Severity::Info, "t", "m")
        }
    }

    fn field(question: &Question, answer: &Answer) -> Option<&'static str> {
        question.check(answer).err().map(|invalid| invalid.field)
    }

    #[test]
    fn each_kind_accepts_its_answer_and_names_the_wrong_field_of_others() {
        use QuestionKind::{Confirm, Permission, Pick, Prompt};
        let option = |id: &str| AnswerValue::Option(id.into());
        let ids = |ids: &[&str]| AnswerValue::Ids(ids.iter().map(|id| (*id).into()).collect());
        let text = |text: &str| AnswerValue::Text(Some(text.into()));
        for (kind, value, wrong) in [
            (Permission, option("yes"), None),
            (Permission, option("perhaps"), Some("optionId")),
            (Permission, AnswerValue::Ok(true), None),
            (Permission, text("yes"), Some("optionId")),
            (Confirm, AnswerValue::Ok(true), None),
            (Confirm, AnswerValue::Ok(false), None),
            (Confirm, option("yes"), Some("ok")),
            (Prompt, text("a"), None),
            (Prompt, text("a\nb"), Some("value")),
            (Prompt, AnswerValue::Text(None), None),
            (Prompt, AnswerValue::Ok(true), Some("value")),
            (Pick, ids(&["yes"]), None),
            (Pick, ids(&[]), Some("ids")),
            (Pick, ids(&["yes", "no"]), Some("ids")),
            (Pick, ids(&["other"]), Some("ids")),
            (Pick, option("no"), None),
        ] {
            let answer = Answer::new(value);
            assert_eq!(
                field(&question(kind), &answer),
                wrong,
                "{kind:?} {answer:?}"
            );
        }
        let mut several = question(Pick);
        several.multi = true;
        assert_eq!(field(&several, &Answer::new(ids(&[]))), None);
        assert_eq!(field(&several, &Answer::new(ids(&["yes", "no"]))), None);
        assert_eq!(
            field(&several, &Answer::new(ids(&["yes", "yes"]))),
            Some("ids")
        );
        let flood = (0..200_000).map(|number| number.to_string()).collect();
        assert_eq!(
            field(&several, &Answer::new(AnswerValue::Ids(flood))),
            Some("ids")
        );
    }

    #[test]
    fn what_a_question_does_not_offer_is_refused() {
        let mut asked = question(QuestionKind::Confirm);
        let mut answer = Answer::new(AnswerValue::Ok(true));
        answer.remember = true;
        assert_eq!(field(&asked, &answer), Some("remember"));
        asked.allow_remember = true;
        assert_eq!(field(&asked, &answer), None);
        answer.reason = Some("because".into());
        assert_eq!(field(&asked, &answer), Some("reason"));
    }

    #[test]
    fn a_secret_is_not_stored_and_still_counts_as_a_yes() {
        let mut asked = question(QuestionKind::Prompt);
        asked.secret = true;
        let kept = asked.storable(&Answer::new(AnswerValue::Text(Some("hunter2".into()))));
        assert_eq!(kept.value, AnswerValue::Text(None));
        assert!(asked.is_granted_by(&kept));
    }
}
