//! What clients may say, as types, for the description.
//!
//! The parser reads fields by hand, so that it can name what is wrong; a test keeps it and these shapes
//! in step. Nothing here is ever made.
#![allow(dead_code, reason = "these are only described")]

use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::domain::id::{RunId, SessionId};
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
    attachments: Option<Vec<InlineAttachment>>,
}

#[derive(ToSchema)]
struct InlineAttachment {
    name: String,
    /// The media type.
    #[schema(rename = "type", example = "text/plain")]
    media_type: String,
    content: String,
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
}

#[derive(ToSchema)]
struct AuthRefresh {
    /// Of the same user.
    token: String,
}
