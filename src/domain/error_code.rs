//! Error codes: the failures that clients see, the same in every API.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The caller could not be authenticated.
    AuthFailed,
    /// The token has expired.
    SessionExpired,
    /// Authenticated, but not allowed.
    Forbidden,
    /// The message cannot be parsed.
    InvalidMessage,
    /// The message is parseable but invalid.
    ValidationError,
    /// Does not exist, or the caller may not see it.
    NotFound,
    /// Too many requests.
    RateLimited,
    /// The run failed.
    TaskFailed,
    /// The link to the agent is lost.
    ConnectionLost,
    /// The agent does not support it.
    Unsupported,
    /// Overloaded; retry later.
    Busy,
    /// The database is unavailable.
    StorageUnavailable,
    /// A bug in the gateway.
    Internal,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [Self; 13] = [
        Self::AuthFailed,
        Self::SessionExpired,
        Self::Forbidden,
        Self::InvalidMessage,
        Self::ValidationError,
        Self::NotFound,
        Self::RateLimited,
        Self::TaskFailed,
        Self::ConnectionLost,
        Self::Unsupported,
        Self::Busy,
        Self::StorageUnavailable,
        Self::Internal,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthFailed => "AUTH_FAILED",
            Self::SessionExpired => "SESSION_EXPIRED",
            Self::Forbidden => "FORBIDDEN",
            Self::InvalidMessage => "INVALID_MESSAGE",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::NotFound => "NOT_FOUND",
            Self::RateLimited => "RATE_LIMITED",
            Self::TaskFailed => "TASK_FAILED",
            Self::ConnectionLost => "CONNECTION_LOST",
            Self::Unsupported => "UNSUPPORTED",
            Self::Busy => "BUSY",
            Self::StorageUnavailable => "STORAGE_UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    /// Its meaning, in one sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::AuthFailed => "Authentication failed",
            Self::SessionExpired => "The token has expired",
            Self::Forbidden => "Not allowed",
            Self::InvalidMessage => "The message cannot be read",
            Self::ValidationError => "The input is not acceptable",
            Self::NotFound => "Not found",
            Self::RateLimited => "Too many requests",
            Self::TaskFailed => "The run failed",
            Self::ConnectionLost => "The link to the agent is lost",
            Self::Unsupported => "This agent cannot do that",
            Self::Busy => "Too much work at the moment",
            Self::StorageUnavailable => "Storage is unavailable",
            Self::Internal => "Something went wrong here",
        }
    }
}

impl ErrorCode {
    /// Can the client continue, perhaps by retrying?
    pub fn is_recoverable(self) -> bool {
        !matches!(self, Self::AuthFailed | Self::SessionExpired)
    }
}

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    fn from_str(text: &str) -> Result<Self, UnknownErrorCode> {
        Self::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
            .ok_or(UnknownErrorCode)
    }
}

/// A text that is no error code.
#[derive(Debug, thiserror::Error)]
#[error("an unknown error code")]
pub struct UnknownErrorCode;

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
