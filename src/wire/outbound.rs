//! Outbound: makes the frames of the gateway, for events of a journal and for all other messages.
//!
//! All names on the wire are here, in `outbound/`, `enums` and `error_details`, and payloads are made
//! nowhere else: the domain may rename and store as it likes. One event is one frame, so that offsets
//! have no holes. Touches `session` and `domain`.

mod error;
mod event;
mod presence;
mod prompt;
mod question;
mod queue;
mod reply;
mod schema;
mod shared_objects;
mod state;
#[cfg(test)]
mod tests;
mod tool;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::enums::{self, WireEnum as _};
use super::server_envelope::{Envelope, moment};
use crate::domain::event::Level;
use crate::domain::id::{ConnectionId, Epoch, SessionId};
use crate::domain::shared_text::Text;

pub(crate) use error::{error, last_word};
pub(crate) use event::event;
pub(crate) use presence::{MemberBody, control_update, presence};
pub(crate) use reply::reply;
pub(super) use schema::message_schemas;
pub(crate) use state::{StateParts, full_state};

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
pub(crate) fn connection_ack(ack: &Ack<'_>) -> Text {
    let payload = ConnectionAck {
        protocol_version: PROTOCOL_VERSION,
        ack,
    };
    Envelope::new("CONNECTION_ACK", Some(ack.session), ack.at, &payload).frame()
}

#[derive(Serialize, ToSchema)]
struct Notice<'a> {
    #[schema(schema_with = enums::level)]
    level: &'static str,
    message: &'a str,
}

/// `NOTICE`: something for everyone, whichever session they are in.
pub(crate) fn notice(level: Level, message: &str, at: Timestamp) -> Text {
    let level = level.word();
    Envelope::new("NOTICE", None, at, &Notice { level, message }).frame()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Expiring {
    #[serde(serialize_with = "moment")]
    expires_at: Timestamp,
}

/// `TOKEN_EXPIRING`: without a newer token this connection ends soon.
pub(crate) fn token_expiring(session: SessionId, expires_at: Timestamp, at: Timestamp) -> Text {
    Envelope::new(
        "TOKEN_EXPIRING",
        Some(session),
        at,
        &Expiring { expires_at },
    )
    .frame()
}
