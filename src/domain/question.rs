//! A question: the agent asks a human, who answers once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{QuestionId, RunId};

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    /// May a tool be used?
    Permission,
    /// Yes or no.
    Confirm,
    /// A text.
    Prompt,
    /// Some of the options.
    Pick,
}

/// How much hangs on the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Little.
    Info,
    /// Worth a thought.
    Warn,
    /// Much: nobody but a human answers this.
    Critical,
}

/// What an option of a permission means, whatever it is called.
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
    /// Is it a yes?
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The agent's own id of it.
    pub id: String,
    /// What a person reads.
    pub label: String,
    /// What else there is to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it means, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ChoiceKind>,
}

/// The tool that a permission is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The agent's own id of this use.
    pub tool: String,
    /// What kind of tool.
    pub name: String,
    /// What it is to be given.
    pub args: Value,
}

/// What an agent asks.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a choice of its own, as agents make them"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What kind of answer is wanted.
    #[serde(rename = "answer")]
    pub kind: QuestionKind,
    /// In a few words.
    pub title: String,
    /// In full.
    pub message: String,
    /// How much hangs on it.
    pub severity: Severity,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// What the permission is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse>,
    /// What "yes" is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_label: Option<String>,
    /// What "no" is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_label: Option<String>,
    /// May the answer be remembered?
    #[serde(default)]
    pub allow_remember: bool,
    /// May a reason be given?
    #[serde(default)]
    pub allow_reason: bool,
    /// The text to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    /// More than one line of text?
    #[serde(default)]
    pub multiline: bool,
    /// The answer is nobody else's business: it is stored nowhere.
    #[serde(default)]
    pub secret: bool,
    /// More than one option?
    #[serde(default)]
    pub multi: bool,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its id.
    pub id: QuestionId,
    /// The agent's own name for it.
    pub asked_as: String,
    /// The run that waits for the answer.
    pub run: RunId,
    /// When it counts as denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
}

/// What was said: the essence of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Yes or no.
    Ok(bool),
    /// One option.
    Option(String),
    /// A text; none if nobody wanted to give one, or if it is a secret that is not kept.
    Value(Option<String>),
    /// Some options; none is a no.
    Ids(Vec<String>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was said.
    pub said: Said,
    /// Shall it hold for the next time, too?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Answer {
    /// Just that.
    pub fn new(said: Said) -> Self {
        Self {
            said,
            remember: false,
            reason: None,
        }
    }
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Somebody answered.
    Answered(Answer),
    /// Nobody did in time: that is a no.
    Expired,
    /// The run that asked is over.
    Cancelled,
}

/// Why an answer does not fit its question; completes "`field` …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Which part of the answer.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: String,
}

impl Question {
    /// A plain one: no options, nothing offered besides.
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

    /// Does the answer fit?
    pub fn check(&self, answer: &Answer) -> Result<(), Misfit> {
        let misfit = |field, fault: &str| {
            let fault = fault.to_owned();
            Err(Misfit { field, fault })
        };
        if answer.remember && !self.allow_remember {
            return misfit("remember", "is not offered by this question");
        }
        if answer.reason.is_some() && !self.allow_reason {
            return misfit("reason", "is not offered by this question");
        }
        match (self.kind, &answer.said) {
            (_, Said::Option(id)) if !self.offers(id) => {
                misfit("optionId", "is none of the options")
            }
            (QuestionKind::Pick, Said::Ids(ids)) => {
                // In this order: a list that is longer than what was offered is not looked through.
                let repeated = || {
                    let mut places = ids.iter().enumerate();
                    places.any(|(place, id)| ids[..place].contains(id))
                };
                if ids.len() > self.options.len() || !ids.iter().all(|id| self.offers(id)) {
                    misfit("ids", "names something that is none of the options")
                } else if repeated() {
                    misfit("ids", "names an option twice")
                } else if ids.len() != 1 && !self.multi {
                    misfit("ids", "does not have the one option that is asked for")
                } else {
                    Ok(())
                }
            }
            // Leaving it is always possible.
            (_, Said::Ok(false))
            | (QuestionKind::Permission | QuestionKind::Confirm, Said::Ok(_))
            | (QuestionKind::Permission | QuestionKind::Pick, Said::Option(_))
            | (QuestionKind::Prompt, Said::Value(None)) => Ok(()),
            (QuestionKind::Prompt, Said::Value(Some(text))) => {
                if self.multiline || !text.contains(['\n', '\r']) {
                    Ok(())
                } else {
                    misfit("value", "has more than one line, and one is asked for")
                }
            }
            (QuestionKind::Permission, _) => misfit("optionId", "or `ok` is missing"),
            (QuestionKind::Confirm, _) => misfit("ok", "is missing"),
            (QuestionKind::Prompt, _) => misfit("value", "is missing"),
            (QuestionKind::Pick, _) => misfit("ids", "is missing"),
        }
    }

    /// Is that answer a yes? A text and a choice are; an option of a permission that does not say what
    /// it means is not.
    pub fn is_granted_by(&self, answer: &Answer) -> bool {
        match &answer.said {
            Said::Ok(ok) => *ok,
            Said::Option(id) => self
                .options
                .iter()
                .find(|option| option.id == *id)
                .is_some_and(|option| match option.kind {
                    Some(kind) => kind.allows(),
                    None => self.kind != QuestionKind::Permission,
                }),
            Said::Value(value) => value.is_some() || self.secret,
            Said::Ids(ids) => !ids.is_empty(),
        }
    }

    /// The answer as it may be kept: without a secret.
    #[must_use]
    pub fn storable(&self, answer: &Answer) -> Answer {
        let mut kept = answer.clone();
        if self.secret && matches!(kept.said, Said::Value(_)) {
            kept.said = Said::Value(None);
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
        question.check(answer).err().map(|misfit| misfit.field)
    }

    #[test]
    fn each_kind_takes_its_answer_and_names_what_is_wrong_with_others() {
        use QuestionKind::{Confirm, Permission, Pick, Prompt};
        let option = |id: &str| Said::Option(id.into());
        let ids = |ids: &[&str]| Said::Ids(ids.iter().map(|id| (*id).into()).collect());
        let text = |text: &str| Said::Value(Some(text.into()));
        for (kind, said, wrong) in [
            (Permission, option("yes"), None),
            (Permission, option("perhaps"), Some("optionId")),
            (Permission, Said::Ok(true), None),
            (Permission, text("yes"), Some("optionId")),
            (Confirm, Said::Ok(true), None),
            (Confirm, Said::Ok(false), None),
            (Confirm, option("yes"), Some("ok")),
            (Prompt, text("a"), None),
            (Prompt, text("a\nb"), Some("value")),
            (Prompt, Said::Value(None), None),
            (Prompt, Said::Ok(true), Some("value")),
            (Pick, ids(&["yes"]), None),
            (Pick, ids(&[]), Some("ids")),
            (Pick, ids(&["yes", "no"]), Some("ids")),
            (Pick, ids(&["other"]), Some("ids")),
            (Pick, option("no"), None),
        ] {
            let answer = Answer::new(said);
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
        assert_eq!(field(&several, &Answer::new(Said::Ids(flood))), Some("ids"));
    }

    #[test]
    fn what_was_not_offered_cannot_be_said() {
        let mut asked = question(QuestionKind::Confirm);
        let mut answer = Answer::new(Said::Ok(true));
        answer.remember = true;
        assert_eq!(field(&asked, &answer), Some("remember"));
        asked.allow_remember = true;
        assert_eq!(field(&asked, &answer), None);
        answer.reason = Some("because".into());
        assert_eq!(field(&asked, &answer), Some("reason"));
    }

    #[test]
    fn a_secret_is_not_kept_and_still_counts_as_an_answer() {
        let mut asked = question(QuestionKind::Prompt);
        asked.secret = true;
        let kept = asked.storable(&Answer::new(Said::Value(Some("hunter2".into()))));
        assert_eq!(kept.said, Said::Value(None));
        assert!(asked.is_granted_by(&kept));
    }
}
