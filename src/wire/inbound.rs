//! Inbound: reads a client's text frame into one request, or refuses it with a reason.
//!
//! A frame that cannot be read is `INVALID_MESSAGE`; one that can be read but not accepted is
//! `VALIDATION_ERROR` and names the field. Nothing is repaired or silently changed: what is
//! accepted is what was sent. `strict_json` parses the JSON, `message` defines the types, `reader` reads
//! them, `checked_request` checks and maps them. Touches `domain` and `limits` only.

mod checked_request;
mod digest;
pub(super) mod message;
mod prompt_files;
mod reader;
mod strict_json;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::message::ClientEnvelope;
use super::error_details::{Details, Limit};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::SessionId;
use crate::domain::idempotency::IdempotencyKey;
use crate::domain::lone_surrogates::{MARK, replace_lone_surrogates};
use crate::limits::nests_deeper_than;

pub(crate) use checked_request::Request;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(field_identifier)]
pub(crate) enum Kind {
    /// Counted as a message and as a state request.
    #[serde(rename = "REQUEST_STATE")]
    StateRequest,
    /// Counted by connection.
    #[serde(rename = "HEARTBEAT")]
    Heartbeat,
    /// Everything else, also an unreadable frame.
    #[serde(other)]
    Message,
}

/// Reads the `type` and nothing else, before the frame is counted.
pub(crate) fn kind(frame: &str) -> Kind {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: Kind,
    }
    object::<Typed>(frame).map_or(Kind::Message, |typed| typed.kind)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) message_bytes: usize,
    /// Characters, not bytes, of a prompt's text.
    pub(crate) prompt_chars: usize,
    pub(crate) depth: usize,
    /// Bytes of an id that a client chooses.
    pub(crate) id_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inbound {
    /// Sent back with every answer.
    pub(crate) message_id: Option<String>,
    /// Makes a changing command take effect once: its key, and the digest of the command.
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// The fence of the control under which it was sent, if it names one.
    pub(crate) fence: Option<u64>,
    pub(crate) request: Request,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejected {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
    /// The `messageId` of the frame, whenever it could be read.
    pub(crate) message_id: Option<String>,
}

impl Rejected {
    fn unreadable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidMessage, message.into(), None)
    }

    /// A field that is not acceptable; `fault` completes the sentence that `path` begins.
    pub(crate) fn field(path: &str, fault: &str) -> Self {
        let details = Details::field(path);
        let message = format!("`{path}` {fault}");
        Self::new(ErrorCode::ValidationError, message, Some(details))
    }

    fn new(code: ErrorCode, message: String, details: Option<Details>) -> Self {
        Self {
            code,
            message,
            details: details.map(Box::new),
            message_id: None,
        }
    }
}

/// Reads a frame that came in on a connection to the session `joined`.
pub(crate) fn parse(frame: &str, joined: SessionId, rules: &Rules) -> Result<Inbound, Rejected> {
    let tree = tree(frame, rules).map_err(|rejected| {
        let known = rejected.message_id.clone();
        Rejected {
            message_id: known.or_else(|| glimpsed_id(frame, rules)),
            ..rejected
        }
    })?;
    let Value::Object(members) = tree else {
        return Err(Rejected::unreadable("The frame is not a JSON object"));
    };
    let message_id = acceptable_id(members.get("messageId").and_then(Value::as_str), rules);
    read(members, joined, rules).map_err(|rejected| Rejected {
        message_id,
        ..rejected
    })
}

fn read(
    mut members: Map<String, Value>,
    joined: SessionId,
    rules: &Rules,
) -> Result<Inbound, Rejected> {
    let digest = members
        .get("idempotencyKey")
        .map(|_| digest::digest(&members));
    let mut take = |name| members.get_mut(name).map(Value::take).unwrap_or_default();
    let kind = match take("type") {
        Value::String(kind) => kind,
        Value::Null => return Err(Rejected::unreadable("The message has no `type`")),
        _ => return Err(Rejected::unreadable("The `type` is not a string")),
    };
    let payload = take("payload");
    let envelope: ClientEnvelope = reader::read(Value::Object(members), "")?;
    envelope.check(joined, rules)?;
    let mut payload = match payload {
        Value::Object(payload) => payload,
        Value::Null => Map::new(),
        _ => return Err(Rejected::field("payload", "is not an object")),
    };
    // Beside the payload or in it: a client that repeats a message under its key keeps the payload.
    let fence = match envelope.fence {
        None => reader::read(payload.remove("fence").unwrap_or_default(), "payload.fence")?,
        fence => fence,
    };
    Ok(Inbound {
        message_id: envelope.message_id,
        idempotency_key: envelope
            .idempotency_key
            .zip(digest)
            .map(|(key, digest)| IdempotencyKey { key, digest }),
        fence,
        request: message::read(&kind, payload, rules)?,
    })
}

impl ClientEnvelope {
    fn check(&self, joined: SessionId, rules: &Rules) -> Result<(), Rejected> {
        if self.session_id.is_some_and(|session| session != joined) {
            let fault = "is not the session that this connection has joined";
            return Err(Rejected::field("sessionId", fault));
        }
        for (path, id) in [
            ("messageId", &self.message_id),
            ("idempotencyKey", &self.idempotency_key),
        ] {
            if let Some(id) = id {
                reader::check_id(path, id, rules.id_bytes)?;
            }
        }
        if let Some(time) = &self.timestamp
            && time.parse::<Timestamp>().is_err()
            && time.parse::<DateTime>().is_err()
        {
            return Err(Rejected::field("timestamp", "is not an ISO-8601 time"));
        }
        Ok(())
    }
}

/// The frame as a JSON value without duplicate keys.
fn tree(frame: &str, rules: &Rules) -> Result<Value, Rejected> {
    if frame.len() > rules.message_bytes {
        let (max, actual) = (rules.message_bytes, frame.len());
        return Err(Rejected::new(
            ErrorCode::ValidationError,
            format!("The message has {actual} bytes, at most {max} are allowed"),
            Some(Details::default().too_large(Limit::MessageBytes, max, actual)),
        ));
    }
    if nests_deeper_than(frame.as_bytes(), rules.depth) {
        let message = format!("The message nests deeper than {} levels", rules.depth);
        return Err(Rejected::unreadable(message));
    }
    strict_json::from_str(frame).map_err(|error| {
        lone_surrogate(frame, rules).unwrap_or_else(|| {
            Rejected::unreadable(format!("The frame is not acceptable JSON: {error}"))
        })
    })
}

/// The refusal of a frame that is unreadable only because of half a character in it.
fn lone_surrogate(frame: &str, rules: &Rules) -> Option<Rejected> {
    let marked = replace_lone_surrogates(frame.as_bytes(), MARK)?;
    let tree = strict_json::from_str(std::str::from_utf8(&marked).ok()?).ok()?;
    let message_id = acceptable_id(tree["messageId"].as_str(), rules);
    // The mark is a control character, which the reader finds.
    let fault = reader::read::<Value>(tree, "").err()?;
    // Without a path in a key of the message itself, or in a text that is no message at all.
    let path = match fault.path() {
        "" => "message",
        path => path,
    };
    let fault = "contains a lone surrogate: half of a character";
    Some(Rejected {
        message_id,
        ..Rejected::field(path, fault)
    })
}

fn acceptable_id(id: Option<&str>, rules: &Rules) -> Option<String> {
    reader::check_id("messageId", id?, rules.id_bytes).ok()?;
    id.map(str::to_owned)
}

/// The `messageId` of a frame that will not be read as a whole.
pub(crate) fn glimpsed_id(frame: &str, rules: &Rules) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "messageId")]
        message_id: String,
    }
    acceptable_id(Some(&object::<Named>(frame)?.message_id), rules)
}

/// Reads a few fields of an object, skipping the others without building them.
fn object<'de, T: Deserialize<'de>>(frame: &'de str) -> Option<T> {
    // serde would also take an array for a struct.
    if !frame.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(frame).ok()
}
