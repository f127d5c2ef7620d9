//! What the gateway says: every event of a journal, and every message that is none, as a frame.
//!
//! The names on the wire are all here, in `outbound/` and in `details`, and payloads are made nowhere
//! else: the domain may rename and store as it likes. One event is one frame, so that offsets have no
//! holes. Touches `session` and `domain`.

mod circle;
mod described;
mod done;
mod error;
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
use crate::domain::command::Topic;
use crate::domain::event::Level;
use crate::domain::id::{ConnectionId, Epoch, SessionId};

pub(crate) use circle::{MemberBody, control_update, presence};
pub(super) use described::described;
pub(crate) use done::{Done, ack};
pub(crate) use error::{error, last_word};
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

/// `HEARTBEAT`: the answer to one.
pub(crate) fn heartbeat(session: SessionId, message_id: Option<&str>, at: Timestamp) -> Utf8Bytes {
    Envelope::new("HEARTBEAT", Some(session), at, &Map::new())
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
