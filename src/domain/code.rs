//! The error codes a client can meet, the same on every door and in the documents.

use std::fmt;

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
    /// Too much work at the moment; worth another try.
    Busy,
    /// The database cannot be reached or written.
    StorageUnavailable,
    /// A fault of the gateway itself.
    Internal,
}

impl Code {
    /// Every code there is.
    pub const ALL: [Self; 10] = [
        Self::AuthFailed,
        Self::SessionExpired,
        Self::Forbidden,
        Self::InvalidMessage,
        Self::ValidationError,
        Self::NotFound,
        Self::RateLimited,
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
            Self::Busy => "Too much work at the moment",
            Self::StorageUnavailable => "Storage is unavailable",
            Self::Internal => "Something went wrong here",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
