//! Question parts: a question and its resolution, as clients see them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::event::Resolver;
use crate::domain::id::{QuestionId, RunId, UserId};
use crate::domain::question::{Answer, AnswerValue, Choice, OpenQuestion, Resolution, ToolUse};
use crate::wire::enums::{self, WireEnum};
use crate::wire::server_envelope::Moment;

/// A question that waits.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent options of the agent protocols"
)]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question<'a> {
    #[serde(rename = "questionId")]
    id: QuestionId,
    /// The run that asks; absent if the agent asks beside its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<RunId>,
    #[schema(schema_with = enums::question_kind)]
    kind: &'static str,
    title: &'a str,
    message: &'a str,
    #[schema(schema_with = enums::severity)]
    level: &'static str,
    options: Vec<Offer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_label: Option<&'a str>,
    allow_remember: bool,
    allow_reason: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_value: Option<&'a str>,
    multiline: bool,
    secret: bool,
    multi: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
}

impl<'a> From<&'a OpenQuestion> for Question<'a> {
    fn from(open: &'a OpenQuestion) -> Self {
        let asked = &open.question;
        Self {
            id: open.id,
            task_id: open.run,
            kind: asked.kind.word(),
            title: &asked.title,
            message: &asked.message,
            level: asked.severity.word(),
            options: asked.options.iter().map(Into::into).collect(),
            tool: asked.tool.as_ref().map(Into::into),
            confirm_label: asked.confirm_label.as_deref(),
            cancel_label: asked.cancel_label.as_deref(),
            allow_remember: asked.allow_remember,
            allow_reason: asked.allow_reason,
            default_value: asked.default_value.as_deref(),
            multiline: asked.multiline,
            secret: asked.secret,
            multi: asked.multi,
            expires_at: open.expires_at.map(|at: Timestamp| Moment(at)),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct Offer<'a> {
    id: &'a str,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = enums::choice_kind)]
    kind: Option<&'static str>,
}

impl<'a> From<&'a Choice> for Offer<'a> {
    fn from(choice: &'a Choice) -> Self {
        Self {
            id: &choice.id,
            label: &choice.label,
            detail: choice.detail.as_deref(),
            kind: choice.kind.map(WireEnum::word),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AskedTool)]
struct Tool<'a> {
    #[serde(rename = "toolCallId")]
    id: &'a str,
    name: &'a str,
    #[schema(value_type = Value)]
    args: &'a Value,
}

impl<'a> From<&'a ToolUse> for Tool<'a> {
    fn from(tool: &'a ToolUse) -> Self {
        Self {
            id: &tool.tool,
            name: &tool.name,
            args: &tool.args,
        }
    }
}

/// How a question ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved<'a> {
    pub(super) question_id: QuestionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task_id: Option<RunId>,
    pub(super) by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by_user_id: Option<UserId>,
    #[schema(schema_with = enums::outcome)]
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Given<'a>>,
}

impl<'a> Resolved<'a> {
    pub(super) fn new(
        question: QuestionId,
        run: Option<RunId>,
        by: &'a Resolver,
        granted: bool,
        resolution: &'a Resolution,
    ) -> Self {
        let (by, by_user_id) = match by {
            Resolver::User { id, name } => (name.as_str(), Some(*id)),
            Resolver::AutoApprove => ("autoApprove", None),
            Resolver::Timeout => ("timeout", None),
            Resolver::RunEnd => ("runEnd", None),
        };
        let (outcome, answer) = match resolution {
            Resolution::Answered(answer) => (outcome(answer, granted), Some(answer.into())),
            Resolution::Expired => ("expired", None),
            Resolution::Cancelled => ("cancelled", None),
        };
        Self {
            question_id: question,
            task_id: run,
            by,
            by_user_id,
            outcome,
            answer,
        }
    }
}

fn outcome(answer: &Answer, granted: bool) -> &'static str {
    match (&answer.value, granted) {
        (_, false) => "denied",
        (AnswerValue::Ok(_) | AnswerValue::Option(_), true) => "allowed",
        (AnswerValue::Text(_) | AnswerValue::Ids(_), true) => "answered",
    }
}

/// What was said.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Given<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    option_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<&'a [String]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    remember: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> From<&'a Answer> for Given<'a> {
    fn from(answer: &'a Answer) -> Self {
        let mut given = Self {
            ok: None,
            option_id: None,
            value: None,
            ids: None,
            remember: answer.remember,
            reason: answer.reason.as_deref(),
        };
        match &answer.value {
            AnswerValue::Ok(ok) => given.ok = Some(*ok),
            AnswerValue::Option(id) => given.option_id = Some(id),
            AnswerValue::Text(value) => given.value = value.as_deref(),
            AnswerValue::Ids(ids) => given.ids = Some(ids),
        }
        given
    }
}
