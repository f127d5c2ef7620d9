//! `ERROR_MESSAGE`: what was refused or failed, and the last word before a close.

use jiff::Timestamp;
use serde::Serialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use utoipa::ToSchema;

use crate::domain::code::Code;
use crate::domain::id::SessionId;
use crate::wire::details::Details;
use crate::wire::envelope::Envelope;
use crate::wire::words;

#[derive(Serialize, ToSchema)]
pub(super) struct Error<'a> {
    #[schema(schema_with = words::code)]
    code: Code,
    /// What a person reads.
    message: &'a str,
    /// The field or the limit, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Details>,
    /// Can the client go on as before?
    recoverable: bool,
}

/// `ERROR_MESSAGE`: something was refused, or failed.
pub(crate) fn error(
    session: Option<SessionId>,
    code: Code,
    message: &str,
    details: Option<&Details>,
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

/// `ERROR_MESSAGE` before a close: whatever its code, this connection cannot go on.
pub(crate) fn last_word(
    session: Option<SessionId>,
    code: Code,
    message: &str,
    at: Timestamp,
) -> Utf8Bytes {
    let payload = Error {
        code,
        message,
        details: None,
        recoverable: false,
    };
    Envelope::new("ERROR_MESSAGE", session, at, &payload).frame()
}
