//! Client messages: the one definition of each, from which it is read and described.
//!
//! serde reads a payload into its type, utoipa describes the same type, and `checked_request` turns it into
//! what the gateway does. Doc comments of types and fields are part of the published description.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny};
use serde::{Deserialize as Read, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::{PartialSchema as _, ToSchema};

use super::checked_request::{self, Request};
use super::{Rejected, Rules, reader};
use crate::domain::command::{AgentRequest, Command, Encoding, IfBusy, Mode, Topic};
use crate::domain::file_name::{NAME_RULE, base_name};
use crate::domain::id::{AttachmentId, QuestionId, RunId, SessionId};
use crate::domain::queue::QueueMode;
use crate::wire::asyncapi::{MessageSchema, Scope};
use crate::wire::enums::{self, read_optional, read_word};

macro_rules! client_messages {
    ($($kind:literal: $payload:ty, $summary:literal, $request:expr;)+) => {
        pub(in crate::wire) fn message_schemas() -> Vec<MessageSchema> {
            vec![$(MessageSchema::new::<$payload>($kind, Scope::Session, $summary)),+]
        }

        pub(super) fn read(
            kind: &str,
            payload: Map<String, Value>,
            rules: &Rules,
        ) -> Result<Request, Rejected> {
            let payload = Value::Object(payload);
            match kind {
                $($kind => {
                    let message: $payload = reader::read(payload, "payload")?;
                    let request: fn($payload, &Rules) -> Result<Request, Rejected> = $request;
                    request(message, rules)
                })+
                unknown => {
                    let message = format!("The type {} is unknown", reader::shown(unknown));
                    Err(Rejected::unreadable(message))
                }
            }
        }
    };
}

client_messages! {
    "SUBMIT_PROMPT": SubmitPrompt, "Gives the agent a task.", checked_request::submit_prompt;
    "CANCEL_TASK": CancelTask, "Stops a task, by default the current one.",
        |message, _| Ok(Request::Command(Command::Cancel { run: message.task_id }));
    "REQUEST_STATE": RequestState, "Asks for the whole state.", |message, _| Ok(Request::State {
        include_history: message.include_history.unwrap_or(true),
        include_settings: message.include_settings.unwrap_or(true),
    });
    "UPDATE_SETTINGS": UpdateSettings, "Changes settings of the session.", checked_request::update_settings;
    "ANSWER": Answer, "Answers a question of the agent.", checked_request::answer;
    "STEER": Aloud, "Says something to the agent while it works.", checked_request::steer;
    "FOLLOW_UP": Aloud, "Says what comes after the current task.", checked_request::follow_up;
    "SUGGEST": Aloud, "Proposes something to whoever drives.", checked_request::suggest;
    "WITHDRAW": Withdraw, "Takes back a task that waits.",
        |message, _| Ok(Request::Command(Command::Withdraw { run: message.task_id }));
    "SET_QUEUE_MODE": SetQueueMode, "Changes how much of what waits is taken at once.",
        checked_request::set_queue_mode;
    "SET_TOOLS": SetTools, "Chooses the tools that the agent may use.", checked_request::set_tools;
    "UPDATE_CONTEXT": Context, "Tells where the user is.", checked_request::update_context;
    "QUERY": Query, "Asks the agent about itself.",
        |message, _| Ok(Request::AgentRequest(AgentRequest::Query {
            topic: message.kind,
            params: Value::Object(message.params.unwrap_or_default()),
        }));
    "EXTENSION": Extension, "Something that only this agent understands.", checked_request::extension;
    "BRANCH_SESSION": BranchSession, "Makes a new session with the past of this one.",
        checked_request::branch_session;
    "TAKE_CONTROL": TakeControl, "Wants to drive.",
        |message, _| Ok(Request::TakeControl { steal: message.steal.unwrap_or(false) });
    "RELEASE_CONTROL": Empty, "Does not drive any more.", |_, _| Ok(Request::ReleaseControl);
    "HEARTBEAT": Empty, "A sign of life; it is answered.", |_, _| Ok(Request::Heartbeat);
    "AUTH_REFRESH": AuthRefresh, "Brings a newer token for this connection.",
        |message, _| Ok(Request::RefreshAuth { token: message.token });
}

/// What is around every message of a client.
#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::wire) struct ClientEnvelope {
    #[expect(
        dead_code,
        reason = "taken out first, because it decides about the rest"
    )]
    #[serde(rename = "type", default)]
    #[schema(value_type = String)]
    kind: Option<IgnoredAny>,
    #[expect(dead_code, reason = "taken out first, to be read by its type")]
    #[serde(default)]
    #[schema(value_type = Object)]
    payload: Option<IgnoredAny>,
    #[schema(value_type = Option<Timestamp>)]
    pub(super) timestamp: Option<String>,
    /// The session that this connection has joined; no other is accepted.
    pub(super) session_id: Option<SessionId>,
    /// Comes back with every answer.
    #[schema(min_length = 1, max_length = 128)]
    pub(super) message_id: Option<String>,
    /// Makes a changing command take effect once in 24 hours.
    #[schema(min_length = 1, max_length = 128)]
    pub(super) idempotency_key: Option<String>,
    /// The taking of control under which it is sent; it may also stand in the payload.
    pub(super) fence: Option<u64>,
}

/// Nothing.
#[derive(Read, ToSchema)]
pub(in crate::wire) struct Empty {}

#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubmitPrompt {
    /// At most as many characters as the limits of the acknowledgement say.
    #[schema(min_length = 1, example = "Fix the failing test")]
    pub(super) text: String,
    #[serde(deserialize_with = "read_word")]
    #[schema(schema_with = enums::mode)]
    pub(super) mode: Mode,
    /// What to do while another task runs; `queue` if absent.
    #[serde(default, deserialize_with = "read_optional")]
    #[schema(schema_with = enums::if_busy, required = false)]
    pub(super) if_busy: Option<IfBusy>,
    /// PNG, JPEG, GIF or WebP in base64, or as a data URL.
    #[schema(example = json!(["iVBORw0KGgo="]))]
    pub(super) images: Option<Vec<String>>,
    pub(super) attachments: Option<Vec<AnyAttachment>>,
    /// Where the user is; at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub(super) context: Option<Map<String, Value>>,
    /// Whatever the agent understands besides; at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub(super) meta: Option<Map<String, Value>>,
}

/// A file that was uploaded before, or one that is in the message.
// `Serialize` brings the attributes that the description reads; reading is by hand, because serde
// does not say which field of an untagged choice is at fault.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum AnyAttachment {
    #[serde(rename_all = "camelCase")]
    Uploaded { attachment_id: AttachmentId },
    Inline {
        /// 1 to 255 characters; of a path only what follows the last slash is kept.
        name: String,
        /// The media type.
        #[serde(rename = "type")]
        #[schema(example = "text/plain")]
        media_type: String,
        /// Text, or base64 if `type` or `encoding` says so.
        content: String,
        /// Absent: base64 if `type` is one of images, sounds, films, fonts, PDF, archives or
        /// `application/octet-stream`, else text.
        #[schema(schema_with = enums::encoding, required = false)]
        encoding: Option<Encoding>,
    },
}

impl<'de> Deserialize<'de> for AnyAttachment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Read)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            attachment_id: Option<AttachmentId>,
            #[serde(default, deserialize_with = "file_name")]
            name: Option<String>,
            #[serde(rename = "type")]
            media_type: Option<String>,
            content: Option<String>,
            #[serde(default, deserialize_with = "read_optional")]
            encoding: Option<Encoding>,
        }
        let members = Members::deserialize(deserializer)?;
        if let Some(attachment_id) = members.attachment_id {
            return Ok(Self::Uploaded { attachment_id });
        }
        let required = |value: Option<String>, name| value.ok_or(D::Error::missing_field(name));
        Ok(Self::Inline {
            name: required(members.name, "name")?,
            media_type: required(members.media_type, "type")?,
            content: required(members.content, "content")?,
            encoding: members.encoding,
        })
    }
}

/// The name itself, without the way to the file.
fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(given) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let name = base_name(&given).ok_or_else(|| D::Error::custom(NAME_RULE))?;
    Ok(Some(name.to_owned()))
}

#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelTask {
    task_id: Option<RunId>,
}

#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestState {
    /// With the conversation; yes if absent.
    include_history: Option<bool>,
    /// With the settings; yes if absent.
    include_settings: Option<bool>,
}

#[derive(Read, ToSchema)]
pub(super) struct UpdateSettings {
    // A map, because an agent may have settings that only it knows.
    #[schema(schema_with = open_settings)]
    pub(super) settings: Map<String, Value>,
}

/// At least one of them, or settings by the agent's own names where it takes any; else others are refused.
#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsToChange {
    pub(super) auto_approve: Option<bool>,
    #[schema(min_length = 1, max_length = 128)]
    pub(super) model: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub(super) max_tokens: Option<u32>,
    #[schema(minimum = 0, maximum = 2)]
    pub(super) temperature: Option<f64>,
    #[schema(min_length = 1, max_length = 128)]
    pub(super) mode: Option<String>,
}

/// The described settings and any others.
fn open_settings() -> RefOr<Schema> {
    let mut described = SettingsToChange::schema();
    if let RefOr::T(Schema::Object(settings)) = &mut described {
        let any = AdditionalProperties::FreeForm(true);
        settings.additional_properties = Some(Box::new(any));
    }
    described
}

// MessageSchema as it is sent and read by hand, as `AnyAttachment` is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pub(super) question_id: QuestionId,
    #[serde(flatten)]
    pub(super) said: SaidOnce,
    /// Where the question allows it.
    pub(super) remember: Option<bool>,
    /// At most 2000 characters.
    #[schema(max_length = 2_000)]
    pub(super) reason: Option<String>,
}

/// Exactly one of them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum SaidOnce {
    #[serde(rename_all = "camelCase")]
    Ok { ok: bool },
    #[serde(rename_all = "camelCase")]
    Option { option_id: String },
    #[serde(rename_all = "camelCase")]
    Value { value: String },
    #[serde(rename_all = "camelCase")]
    Ids { ids: Vec<String> },
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Read)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            question_id: QuestionId,
            ok: Option<bool>,
            option_id: Option<String>,
            value: Option<String>,
            ids: Option<Vec<String>>,
            remember: Option<bool>,
            reason: Option<String>,
        }
        let members = Members::deserialize(deserializer)?;
        let mut said = [
            members.ok.map(|ok| SaidOnce::Ok { ok }),
            members
                .option_id
                .map(|option_id| SaidOnce::Option { option_id }),
            members.value.map(|value| SaidOnce::Value { value }),
            members.ids.map(|ids| SaidOnce::Ids { ids }),
        ]
        .into_iter()
        .flatten();
        let (Some(said), None) = (said.next(), said.next()) else {
            let fault = "has not exactly one of `ok`, `optionId`, `value` and `ids`";
            return Err(D::Error::custom(fault));
        };
        Ok(Self {
            question_id: members.question_id,
            said,
            remember: members.remember,
            reason: members.reason,
        })
    }
}

#[derive(Read, ToSchema)]
pub(super) struct Aloud {
    /// At most as many characters as a prompt.
    #[schema(min_length = 1)]
    pub(super) text: String,
}

#[derive(Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Withdraw {
    task_id: RunId,
}

/// At least one of them.
#[derive(Clone, Copy, Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetQueueMode {
    #[serde(default, deserialize_with = "read_optional")]
    #[schema(schema_with = enums::queue_mode, required = false)]
    pub(super) steering: Option<QueueMode>,
    #[serde(default, deserialize_with = "read_optional")]
    #[schema(schema_with = enums::queue_mode, required = false)]
    pub(super) follow_up: Option<QueueMode>,
}

#[derive(Read, ToSchema)]
pub(super) struct SetTools {
    /// At most 256.
    pub(super) tools: Vec<String>,
}

/// Whatever the client knows about where its user is; at most 64 KiB.
#[derive(Read, ToSchema)]
#[schema(value_type = Object)]
pub(super) struct Context(pub(super) Map<String, Value>);

#[derive(Read, ToSchema)]
pub(super) struct Query {
    #[serde(deserialize_with = "read_word")]
    #[schema(schema_with = enums::topic)]
    kind: Topic,
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
}

#[derive(Read, ToSchema)]
pub(super) struct Extension {
    #[schema(min_length = 1, max_length = 128)]
    pub(super) name: String,
    #[schema(value_type = Option<Value>)]
    pub(super) payload: Option<Value>,
}

#[derive(Clone, Copy, Read, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BranchSession {
    /// Up to which event; all of them if absent.
    #[schema(minimum = 1)]
    pub(super) from_offset: Option<u64>,
}

#[derive(Read, ToSchema)]
pub(super) struct TakeControl {
    /// Also from somebody who drives now.
    steal: Option<bool>,
}

#[derive(Read, ToSchema)]
pub(super) struct AuthRefresh {
    /// Of the same user.
    token: String,
}
