//! What a client says: one text frame read into one request, or refused with a reason.
//!
//! A frame that cannot be read is `INVALID_MESSAGE`; one that can be read but not accepted is
//! `VALIDATION_ERROR` and names the field. Nothing is repaired or silently changed: what is
//! accepted is what was sent. Touches `domain` and `limits` only.

mod essence;
mod fields;
mod request;
pub(super) mod shapes;
mod strict;
mod talk;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::Value;

use self::fields::Fields;
use super::details::{Details, Limit};
use crate::domain::code::Code;
use crate::domain::command::{Command, Inquiry};
use crate::domain::id::SessionId;
use crate::domain::surrogate::{MARK, without_lone_halves};
use crate::limits::nests_deeper_than;

/// Which budget a frame is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(field_identifier)]
pub(crate) enum Kind {
    /// Counted as a message and as a state request.
    #[serde(rename = "REQUEST_STATE")]
    StateRequest,
    /// Counted by connection.
    #[serde(rename = "HEARTBEAT")]
    Heartbeat,
    /// Everything else, also what cannot be read.
    #[serde(other)]
    Message,
}

/// Reads the `type` and nothing else, to be done before a frame is counted.
pub(crate) fn kind(frame: &str) -> Kind {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: Kind,
    }
    object::<Typed>(frame).map_or(Kind::Message, |typed| typed.kind)
}

/// What a frame may be at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Bytes of the whole frame.
    pub(crate) message_bytes: usize,
    /// Characters, not bytes, of a prompt's text.
    pub(crate) prompt_chars: usize,
    /// Levels of nesting.
    pub(crate) depth: usize,
    /// Bytes of an id that a client chooses.
    pub(crate) id_bytes: usize,
}

/// One request with what its answer is to carry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inbound {
    /// Comes back with every answer.
    pub(crate) message_id: Option<String>,
    /// Makes a changing command take effect once: its key, and the digest of the command.
    pub(crate) once: Option<(String, [u8; 32])>,
    /// The taking of control under which it was sent, if it says so.
    pub(crate) fence: Option<u64>,
    /// What is wanted.
    pub(crate) request: Request,
}

/// What a client wants.
#[derive(Clone, PartialEq)]
pub(crate) enum Request {
    /// Something of the session.
    Command(Command),
    /// Something of the agent itself.
    Inquiry(Inquiry),
    /// To see the state.
    State {
        /// With the conversation.
        include_history: bool,
        /// With the settings.
        include_settings: bool,
    },
    /// A sign of life.
    Heartbeat,
    /// To stay connected with a newer token.
    RefreshAuth {
        /// The newer token.
        token: String,
    },
    /// A new session with the past of this one.
    Branch {
        /// Up to which event; all of them if it does not say.
        from: Option<u64>,
    },
    /// To drive.
    TakeControl {
        /// Also if somebody else does.
        steal: bool,
    },
    /// To drive no more.
    ReleaseControl,
}

/// By hand, so that no log ever shows a token.
impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => formatter.debug_tuple("Command").field(command).finish(),
            Self::Inquiry(inquiry) => formatter.debug_tuple("Inquiry").field(inquiry).finish(),
            Self::State { .. } => formatter.write_str("State"),
            Self::Heartbeat => formatter.write_str("Heartbeat"),
            Self::RefreshAuth { .. } => formatter.write_str("RefreshAuth"),
            Self::Branch { from } => formatter.debug_tuple("Branch").field(from).finish(),
            Self::TakeControl { .. } => formatter.write_str("TakeControl"),
            Self::ReleaseControl => formatter.write_str("ReleaseControl"),
        }
    }
}

/// A frame that was not accepted, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejected {
    /// Which kind of failure.
    pub(crate) code: Code,
    /// What a person reads.
    pub(crate) message: String,
    /// The field or the limit, for programs.
    pub(crate) details: Option<Box<Details>>,
    /// The `messageId` of the frame, whenever it could be read.
    pub(crate) message_id: Option<String>,
}

impl Rejected {
    fn unreadable(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidMessage, message.into(), None)
    }

    /// A field that is not as it should be; `fault` completes the sentence that `path` begins.
    pub(crate) fn field(path: &str, fault: &str) -> Self {
        let details = Details::field(path);
        let message = format!("`{path}` {fault}");
        Self::new(Code::ValidationError, message, Some(details))
    }

    fn new(code: Code, message: String, details: Option<Details>) -> Self {
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
    let Value::Object(map) = tree else {
        return Err(Rejected::unreadable("The frame is not a JSON object"));
    };
    let digest = map.get("idempotencyKey").map(|_| essence::digest(&map));
    let mut envelope = Fields::new(map, "");
    let message_id = envelope.optional_id("messageId", rules.id_bytes);
    let readable_id = message_id.as_ref().ok().cloned().flatten();
    read(&mut envelope, joined, rules)
        .and_then(|(request, key, fence)| {
            Ok(Inbound {
                message_id: message_id?,
                once: key.zip(digest),
                fence,
                request,
            })
        })
        .map_err(|rejected| Rejected {
            message_id: readable_id,
            ..rejected
        })
}

/// The frame as a JSON value without anything ambiguous in it.
fn tree(frame: &str, rules: &Rules) -> Result<Value, Rejected> {
    if frame.len() > rules.message_bytes {
        let (max, actual) = (rules.message_bytes, frame.len());
        return Err(Rejected::new(
            Code::ValidationError,
            format!("The message has {actual} bytes, at most {max} are allowed"),
            Some(Details::default().too_large(Limit::MessageBytes, max, actual)),
        ));
    }
    if nests_deeper_than(frame.as_bytes(), rules.depth) {
        let message = format!("The message nests deeper than {} levels", rules.depth);
        return Err(Rejected::unreadable(message));
    }
    strict::from_str(frame).map_err(|error| {
        lone_surrogate(frame, rules).unwrap_or_else(|| {
            Rejected::unreadable(format!("The frame is not acceptable JSON: {error}"))
        })
    })
}

/// The refusal of a frame that could be read if there were no half of a character in it.
fn lone_surrogate(frame: &str, rules: &Rules) -> Option<Rejected> {
    let marked = without_lone_halves(frame.as_bytes(), MARK)?;
    let tree = strict::from_str(std::str::from_utf8(&marked).ok()?).ok()?;
    let path = fields::control_within(&tree)?.path_in("");
    // In a key of the message itself, or in a text that is no message at all.
    let path = if path.is_empty() { "message" } else { &path };
    let fault = "contains a lone surrogate: half of a character";
    let id = tree["messageId"].as_str();
    let id = id.filter(|id| fields::check_id("messageId", id, rules.id_bytes).is_ok());
    Some(Rejected {
        message_id: id.map(str::to_owned),
        ..Rejected::field(path, fault)
    })
}

/// The `messageId` of a frame that will not be read as a whole.
fn glimpsed_id(frame: &str, rules: &Rules) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "messageId")]
        message_id: String,
    }
    let id = object::<Named>(frame)?.message_id;
    fields::check_id("messageId", &id, rules.id_bytes).ok()?;
    Some(id)
}

/// Reads a few fields of an object, skipping the others without building them.
fn object<'de, T: Deserialize<'de>>(frame: &'de str) -> Option<T> {
    // serde would also take an array for a struct.
    if !frame.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(frame).ok()
}

/// Everything of an envelope but its `messageId`.
fn read(
    envelope: &mut Fields,
    joined: SessionId,
    rules: &Rules,
) -> Result<(Request, Option<String>, Option<u64>), Rejected> {
    let kind = match envelope.take("type") {
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(Rejected::unreadable("The `type` is not a string")),
        None => return Err(Rejected::unreadable("The message has no `type`")),
    };
    if let Some(session) = envelope.optional_text("sessionId")?
        && session.parse() != Ok(joined)
    {
        let fault = "is not the session that this connection has joined";
        return Err(Rejected::field("sessionId", fault));
    }
    let idempotency_key = envelope.optional_id("idempotencyKey", rules.id_bytes)?;
    if let Some(time) = envelope.optional_text("timestamp")?
        && time.parse::<Timestamp>().is_err()
        && time.parse::<DateTime>().is_err()
    {
        return Err(Rejected::field("timestamp", "is not an ISO-8601 time"));
    }
    let mut payload = envelope.optional_object("payload")?;
    // Beside the payload or in it: a client that repeats a message under its key keeps the payload.
    let fence = match envelope.optional_integer("fence")? {
        None => payload.optional_integer("fence")?,
        fence => fence,
    };
    Ok((
        request::read(&kind, payload, rules)?,
        idempotency_key,
        fence,
    ))
}
