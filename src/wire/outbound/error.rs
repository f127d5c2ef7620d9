//! Error frames: a refusal or a failure, and the last error before a close.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::error_code::ErrorCode;
use crate::domain::id::SessionId;
use crate::domain::shared_text::Text;
use crate::wire::enums;
use crate::wire::error_details::Details;
use crate::wire::server_envelope::Envelope;

#[derive(Serialize, ToSchema)]
pub(super) struct Error<'a> {
    #[schema(schema_with = enums::code)]
    code: ErrorCode,
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
    code: ErrorCode,
    message: &str,
    details: Option<&Details>,
    message_id: Option<&str>,
    at: Timestamp,
) -> Text {
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

/// `ERROR_MESSAGE` before a close: never recoverable, whatever its code.
pub(crate) fn last_word(
    session: Option<SessionId>,
    code: ErrorCode,
    message: &str,
    at: Timestamp,
) -> Text {
    let payload = Error {
        code,
        message,
        details: None,
        recoverable: false,
    };
    Envelope::new("ERROR_MESSAGE", session, at, &payload).frame()
}
