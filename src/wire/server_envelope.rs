//! Server envelope: the wrapper around every message of the gateway.
//!
//! A frame is serialised once and then shared: cloning the text costs a reference count, whatever its
//! size. Doc comments of types and fields are part of the published description. Touches `domain` only.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::domain::id::SessionId;
use crate::domain::shared_text::Text;

/// One message to a client, around a payload that somebody else owns.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Envelope<'a, P> {
    /// What kind of message.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// What it says.
    #[schema(value_type = Object)]
    pub(crate) payload: &'a P,
    /// When.
    #[serde(serialize_with = "moment")]
    pub(crate) timestamp: Timestamp,
    /// The session it belongs to; notices of the gateway belong to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<SessionId>,
    /// The client's own id of what is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    /// The place in the journal, of what stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    /// Fields of the agent's own message that have no place in the payload, by its own names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) meta: Option<&'a Map<String, Value>>,
}

impl<'a, P: Serialize> Envelope<'a, P> {
    /// A message without `messageId` and `offset`.
    pub(crate) fn new(
        kind: &'static str,
        session: Option<SessionId>,
        at: Timestamp,
        payload: &'a P,
    ) -> Self {
        Self {
            kind,
            payload,
            timestamp: at,
            session_id: session,
            message_id: None,
            offset: None,
            meta: None,
        }
    }

    pub(crate) fn answering(self, message_id: Option<&'a str>) -> Self {
        Self { message_id, ..self }
    }

    pub(crate) fn at_offset(self, offset: u64) -> Self {
        let offset = Some(offset);
        Self { offset, ..self }
    }

    pub(crate) fn with_meta(self, meta: Option<&'a Map<String, Value>>) -> Self {
        Self { meta, ..self }
    }

    pub(crate) fn frame(&self) -> Text {
        serde_json::to_string(self)
            .expect("payloads have string keys and nothing that fails to serialise")
            .into()
    }
}

/// Writes ISO-8601 in UTC: whole seconds, or exactly three digits more, because JavaScript promises
/// to read nothing else.
pub(crate) fn moment<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(*at);
    if at.subsec_millisecond() == 0 {
        serializer.collect_str(&format_args!("{at:.0}"))
    } else {
        serializer.collect_str(&format_args!("{at:.3}"))
    }
}

/// A time that is written as [`moment`] does, where it may be absent.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
pub(crate) struct Moment(#[serde(serialize_with = "moment")] pub(crate) Timestamp);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sent(at: &str) -> Value {
        let frame = Envelope::new("X", None, at.parse().unwrap(), &json!({})).frame();
        serde_json::from_str(&frame).unwrap()
    }

    #[test]
    fn absent_members_are_left_out() {
        let expected = json!({ "type": "X", "payload": {}, "timestamp": "2024-12-31T10:00:00Z" });
        assert_eq!(sent("2024-12-31T10:00:00Z"), expected);
    }

    #[test]
    fn times_have_milliseconds_at_most() {
        for (at, expected) in [
            ("2024-12-31T10:00:00.000999Z", "2024-12-31T10:00:00Z"),
            ("2024-12-31T10:00:00.1Z", "2024-12-31T10:00:00.100Z"),
            ("2024-12-31T10:00:00.123456789Z", "2024-12-31T10:00:00.123Z"),
            ("2024-12-31T11:00:00+01:00", "2024-12-31T10:00:00Z"),
        ] {
            assert_eq!(sent(at)["timestamp"], expected);
        }
    }

    #[test]
    fn an_answer_carries_its_message_id_and_an_event_its_offset() {
        let session = SessionId::new();
        let frame = Envelope::new("X", Some(session), Timestamp::UNIX_EPOCH, &json!([1]))
            .answering(Some("m"))
            .at_offset(7)
            .frame();
        let sent: Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(sent["sessionId"], session.to_string());
        assert_eq!(sent["messageId"], "m");
        assert_eq!(sent["offset"], 7);
    }
}
