//! What the gateway says: every event of a journal, and every message that is none, as a frame.
//!
//! The names on the wire are all here and in `outbound/`: the domain may rename and store as it
//! likes. One event is one frame, so that offsets have no holes. Touches `session` and `domain`.

mod circle;
mod described;
mod event;
mod prompt;
mod question;
mod queue;
mod state;
#[cfg(test)]
mod tests;
mod tool;
mod words;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use utoipa::ToSchema;

use super::envelope::{Envelope, moment};
use crate::domain::code::Code;
use crate::domain::command::Topic;
use crate::domain::event::Level;
use crate::domain::id::{ConnectionId, Epoch, QuestionId, RunId, SessionId, UserId};
use crate::session::state::Ended;

pub(crate) use circle::{MemberBody, control_body, control_update, presence, revoked};
pub(super) use described::described;
pub(crate) use event::event;
pub(crate) use state::{StateParts, full_state};

/// The protocol spoken here.
const PROTOCOL_VERSION: &str = "1";

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Resume {
    /// There is nothing to resume.
    New,
    /// Everything after the client's position follows.
    Replayed,
    /// That position is gone: the whole state follows.
    Snapshot,
}

/// The limits that a client is told.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AckLimits {
    /// Messages of one session in any 60 seconds.
    pub(crate) messages_per_minute: u32,
    /// State requests of one session in any 60 seconds.
    pub(crate) state_requests_per_minute: u32,
    /// Heartbeats of one connection in any 60 seconds.
    pub(crate) heartbeats_per_minute: u32,
    /// Bytes of a whole frame.
    pub(crate) message_bytes: usize,
    /// Characters of a prompt.
    pub(crate) prompt_chars: usize,
    /// Bytes of an uploaded file.
    pub(crate) attachment_bytes: u64,
    /// Levels of nesting in a frame.
    pub(crate) depth: usize,
    /// Bytes of an id that the client chooses.
    pub(crate) id_bytes: usize,
}

/// The first thing a client is told.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ack<'a> {
    /// The session that was joined.
    #[serde(rename = "sessionId")]
    pub(crate) session: SessionId,
    /// The version of the gateway.
    pub(crate) server_version: &'a str,
    /// What can be done here beyond the core of the protocol.
    pub(crate) capabilities: &'a [&'a str],
    /// This connection.
    #[serde(rename = "connectionId")]
    pub(crate) connection: ConnectionId,
    /// Who works in the session.
    pub(crate) agent: &'a str,
    /// Which counting of offsets is in force.
    pub(crate) epoch: Epoch,
    /// The last offset of the journal.
    pub(crate) offset: u64,
    /// What follows.
    pub(crate) resume: Resume,
    /// How often the gateway asks for a sign of life.
    pub(crate) heartbeat_seconds: u64,
    /// What may be sent.
    pub(crate) limits: AckLimits,
    /// When the token that opened this connection expires.
    #[serde(serialize_with = "moment")]
    pub(crate) token_expires_at: Timestamp,
    /// Now.
    #[serde(skip)]
    pub(crate) at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConnectionAck<'a> {
    protocol_version: &'static str,
    #[serde(flatten)]
    ack: &'a Ack<'a>,
}

/// `CONNECTION_ACK`: the connection stands.
pub(crate) fn connection_ack(ack: &Ack<'_>) -> Utf8Bytes {
    let payload = ConnectionAck {
        protocol_version: PROTOCOL_VERSION,
        ack,
    };
    Envelope::new("CONNECTION_ACK", Some(ack.session), ack.at, &payload).frame()
}

#[derive(Serialize, ToSchema)]
struct Error<'a> {
    #[schema(schema_with = super::words::code)]
    code: Code,
    /// What a person reads.
    message: &'a str,
    /// The field or the limit, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Value>,
    /// Can the client go on as before?
    recoverable: bool,
}

/// `ERROR_MESSAGE`: something was refused, or failed.
pub(crate) fn error(
    session: Option<SessionId>,
    code: Code,
    message: &str,
    details: Option<&Value>,
    message_id: Option<&str>,
    at: Timestamp,
) -> Utf8Bytes {
    let payload = Error {
        code,
        message,
        details,
        recoverable: code.is_recoverable(),
    };
    Envelope::new("ERROR_MESSAGE", session, at, &payload)
        .answering(message_id)
        .frame()
}

/// `HEARTBEAT`: the answer to one.
pub(crate) fn heartbeat(session: SessionId, message_id: Option<&str>, at: Timestamp) -> Utf8Bytes {
    Envelope::new("HEARTBEAT", Some(session), at, &Map::new())
        .answering(message_id)
        .frame()
}

/// What the answers to different requests say; put together where the request is served.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "it is only described")]
struct Done {
    /// The task that it concerned.
    task_id: Option<RunId>,
    /// The task waits for its turn.
    queued: Option<bool>,
    /// It was carried out earlier, under the same key.
    repeated: Option<bool>,
    /// When the newer token expires.
    token_expires_at: Option<Timestamp>,
    /// What an agent said to an `EXTENSION`.
    #[schema(value_type = Option<Value>)]
    result: Option<Value>,
    /// The session that was branched off, and where its journal stands.
    session_id: Option<SessionId>,
    offset: Option<u64>,
    epoch: Option<Epoch>,
    /// The question that was answered, and how it ended.
    question_id: Option<QuestionId>,
    by: Option<String>,
    by_user_id: Option<UserId>,
    #[schema(schema_with = super::words::outcome, required = false)]
    outcome: Option<String>,
    answer: Option<question::Given<'static>>,
    /// Was it this answer that ended it?
    accepted: Option<bool>,
    /// Who drives now.
    control: Option<circle::Control<'static>>,
}

/// `ACK`: a request was carried out.
pub(crate) fn ack(
    session: SessionId,
    message_id: Option<&str>,
    payload: &Value,
    at: Timestamp,
) -> Utf8Bytes {
    Envelope::new("ACK", Some(session), at, payload)
        .answering(message_id)
        .frame()
}

/// `ACK` of an answer: how the question ended, and whether it was this answer that ended it.
pub(crate) fn answer_ack(
    session: SessionId,
    message_id: Option<&str>,
    ended: &Ended,
    accepted: bool,
    at: Timestamp,
) -> Utf8Bytes {
    let Ended {
        question,
        by,
        granted,
        resolution,
    } = ended;
    let resolved = question::Resolved::new(*question, None, by, *granted, resolution);
    Envelope::new("ACK", Some(session), at, &resolved.accepted(accepted))
        .answering(message_id)
        .frame()
}

#[derive(Serialize, ToSchema)]
struct QueryResult<'a> {
    #[schema(schema_with = super::words::topic)]
    kind: &'static str,
    #[schema(value_type = Value)]
    result: &'a Value,
}

/// `QUERY_RESULT`: what the agent told about itself.
pub(crate) fn query_result(
    session: SessionId,
    message_id: Option<&str>,
    kind: Topic,
    result: &Value,
    at: Timestamp,
) -> Utf8Bytes {
    let kind = words::topic(kind);
    let payload = QueryResult { kind, result };
    Envelope::new("QUERY_RESULT", Some(session), at, &payload)
        .answering(message_id)
        .frame()
}

#[derive(Serialize, ToSchema)]
struct Notice<'a> {
    #[schema(schema_with = super::words::level)]
    level: &'static str,
    message: &'a str,
}

/// `NOTICE`: something for everyone, whichever session they are in.
pub(crate) fn notice(level: Level, message: &str, at: Timestamp) -> Utf8Bytes {
    let level = words::level(level);
    Envelope::new("NOTICE", None, at, &Notice { level, message }).frame()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Expiring {
    #[serde(serialize_with = "moment")]
    expires_at: Timestamp,
}

/// `TOKEN_EXPIRING`: without a newer token this connection ends soon.
pub(crate) fn token_expiring(
    session: SessionId,
    expires_at: Timestamp,
    at: Timestamp,
) -> Utf8Bytes {
    Envelope::new(
        "TOKEN_EXPIRING",
        Some(session),
        at,
        &Expiring { expires_at },
    )
    .frame()
}
