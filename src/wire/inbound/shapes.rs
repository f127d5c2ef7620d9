//! What clients may say, as types, for the description.
//!
//! The parser reads fields by hand, so that it can name what is wrong; a test keeps it and these shapes
//! in step. Nothing here is ever made.
#![allow(dead_code, reason = "these are only described")]

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::id::{AttachmentId, QuestionId, RunId, SessionId};
use crate::wire::asyncapi::{Described, Place};
use crate::wire::words;

/// Every message of a client: one line each.
pub(in crate::wire) fn described() -> Vec<Described> {
    fn says<P: ToSchema>(kind: &'static str, summary: &'static str) -> Described {
        Described::new::<P>(kind, Place::Session, summary)
    }
    vec![
        says::<SubmitPrompt>("SUBMIT_PROMPT", "Gives the agent a task."),
        says::<CancelTask>("CANCEL_TASK", "Stops a task, by default the current one."),
        says::<RequestState>("REQUEST_STATE", "Asks for the whole state."),
        says::<UpdateSettings>("UPDATE_SETTINGS", "Changes settings of the session."),
        says::<Answer>("ANSWER", "Answers a question of the agent."),
        says::<Aloud>("STEER", "Says something to the agent while it works."),
        says::<Aloud>("FOLLOW_UP", "Says what comes after the current task."),
        says::<Aloud>("SUGGEST", "Proposes something to whoever drives."),
        says::<Withdraw>("WITHDRAW", "Takes back a task that waits."),
        says::<SetQueueMode>(
            "SET_QUEUE_MODE",
            "Changes how much of what waits is taken at once.",
        ),
        says::<SetTools>("SET_TOOLS", "Chooses the tools that the agent may use."),
        says::<Context>("UPDATE_CONTEXT", "Tells where the user is."),
        says::<Query>("QUERY", "Asks the agent about itself."),
        says::<Extension>("EXTENSION", "Something that only this agent understands."),
        says::<BranchSession>(
            "BRANCH_SESSION",
            "Makes a new session with the past of this one.",
        ),
        says::<TakeControl>("TAKE_CONTROL", "Wants to drive."),
        says::<Empty>("RELEASE_CONTROL", "Does not drive any more."),
        says::<Empty>("HEARTBEAT", "A sign of life; it is answered."),
        says::<AuthRefresh>("AUTH_REFRESH", "Brings a newer token for this connection."),
    ]
}

/// What is around every message of a client.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(in crate::wire) struct ClientEnvelope {
    #[schema(rename = "type")]
    kind: String,
    #[schema(value_type = Object)]
    payload: Empty,
    timestamp: Option<Timestamp>,
    /// The session that this connection has joined; no other is accepted.
    session_id: Option<SessionId>,
    /// Comes back with every answer.
    #[schema(min_length = 1, max_length = 128)]
    message_id: Option<String>,
    /// Makes a changing command take effect once in 24 hours.
    #[schema(min_length = 1, max_length = 128)]
    idempotency_key: Option<String>,
    /// The taking of control under which it is sent; it may also stand in the payload.
    fence: Option<u64>,
}

/// Nothing.
#[derive(ToSchema)]
pub(in crate::wire) struct Empty {}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SubmitPrompt {
    /// At most as many characters as the limits of the acknowledgement say.
    #[schema(min_length = 1, example = "Fix the failing test")]
    text: String,
    #[schema(schema_with = words::mode)]
    mode: String,
    /// What to do while another task runs; `queue` if absent.
    #[schema(schema_with = words::if_busy, required = false)]
    if_busy: Option<String>,
    /// Base64.
    images: Option<Vec<String>>,
    attachments: Option<Vec<AnyAttachment>>,
    /// Where the user is; at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    context: Option<Value>,
    /// Whatever the agent understands besides; at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    meta: Option<Value>,
}

/// A file that was uploaded before, or one that is in the message.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum AnyAttachment {
    #[serde(rename_all = "camelCase")]
    Uploaded { attachment_id: AttachmentId },
    Inline {
        /// 1 to 255 characters; of a path only what follows the last slash is kept.
        name: String,
        /// The media type.
        #[serde(rename = "type")]
        #[schema(example = "text/plain")]
        media_type: String,
        content: String,
    },
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct CancelTask {
    task_id: Option<RunId>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct RequestState {
    /// With the conversation; yes if absent.
    include_history: Option<bool>,
    /// Settings are part of the state either way.
    include_settings: Option<bool>,
}

#[derive(ToSchema)]
struct UpdateSettings {
    settings: SettingsToChange,
}

/// At least one of them; others are refused.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SettingsToChange {
    auto_approve: Option<bool>,
    #[schema(min_length = 1, max_length = 128)]
    model: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_tokens: Option<u32>,
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    #[schema(min_length = 1, max_length = 128)]
    mode: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    question_id: QuestionId,
    #[serde(flatten)]
    said: SaidOnce,
    /// Where the question allows it.
    remember: Option<bool>,
    /// At most 2000 characters.
    #[schema(max_length = 2_000)]
    reason: Option<String>,
}

/// Exactly one of them.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum SaidOnce {
    #[serde(rename_all = "camelCase")]
    Ok { ok: bool },
    #[serde(rename_all = "camelCase")]
    Option { option_id: String },
    #[serde(rename_all = "camelCase")]
    Value { value: String },
    #[serde(rename_all = "camelCase")]
    Ids { ids: Vec<String> },
}

#[derive(ToSchema)]
struct Aloud {
    /// At most as many characters as a prompt.
    #[schema(min_length = 1)]
    text: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct Withdraw {
    task_id: RunId,
}

/// At least one of them.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SetQueueMode {
    #[schema(schema_with = words::take, required = false)]
    steering: Option<String>,
    #[schema(schema_with = words::take, required = false)]
    follow_up: Option<String>,
}

#[derive(ToSchema)]
struct SetTools {
    /// At most 256.
    tools: Vec<String>,
}

/// Whatever the client knows about where its user is; at most 64 KiB.
#[derive(ToSchema)]
#[schema(value_type = Object)]
struct Context(Value);

#[derive(ToSchema)]
struct Query {
    #[schema(schema_with = words::topic)]
    kind: String,
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
}

#[derive(ToSchema)]
struct Extension {
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    #[schema(value_type = Option<Value>)]
    payload: Option<Value>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct BranchSession {
    /// Up to which event; all of them if absent.
    #[schema(minimum = 1)]
    from_offset: Option<u64>,
}

#[derive(ToSchema)]
struct TakeControl {
    /// Also from somebody who drives now.
    steal: Option<bool>,
}

#[derive(ToSchema)]
struct AuthRefresh {
    /// Of the same user.
    token: String,
}
