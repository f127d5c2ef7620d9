//! The error codes a client can meet, the same on every door and in the documents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// One kind of failure, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The caller could not be authenticated.
    AuthFailed,
    /// The token was good once and has expired.
    SessionExpired,
    /// Known, but not allowed to do this.
    Forbidden,
    /// The message cannot be read at all.
    InvalidMessage,
    /// Readable, but not acceptable.
    ValidationError,
    /// No such thing, or not the caller's.
    NotFound,
    /// Too many requests.
    RateLimited,
    /// The run failed.
    TaskFailed,
    /// The link to the agent is lost.
    ConnectionLost,
    /// This agent cannot do that.
    Unsupported,
    /// Too much work at the moment; worth another try.
    Busy,
    /// The database cannot be reached or written.
    StorageUnavailable,
    /// A fault of the gateway itself.
    Internal,
}

impl Code {
    /// Every code there is.
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

    /// What the code means, in one sentence.
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

impl Code {
    /// Can the client go on as before, perhaps by asking again?
    pub fn is_recoverable(self) -> bool {
        !matches!(self, Self::AuthFailed | Self::SessionExpired)
    }
}

impl FromStr for Code {
    type Err = BadCode;

    fn from_str(text: &str) -> Result<Self, BadCode> {
        Self::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
            .ok_or(BadCode)
    }
}

/// A text that is no code.
#[derive(Debug, thiserror::Error)]
#[error("an unknown error code")]
pub struct BadCode;

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
