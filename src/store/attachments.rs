//! Files that were uploaded to a session: what is known about them. The contents themselves are in
//! `contents`.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::id::{AttachmentId, SessionId, UserId};

/// The SHA-256 of a content.
pub type ContentHash = [u8; 32];

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentRow {
    /// Its id.
    pub id: AttachmentId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// Who uploaded it.
    pub owner: UserId,
    /// What is in it.
    pub hash: ContentHash,
    /// For display only.
    pub name: String,
    /// By its content, not by what somebody claimed.
    pub media_type: String,
    /// How large it is.
    pub size_bytes: u64,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// How much may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Quotas {
    /// Files of one session.
    pub session_files: u64,
    /// Bytes of one session.
    pub session_bytes: u64,
    /// Bytes of one user, in all sessions.
    pub user_bytes: u64,
}

/// Why a file was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The session is not stored, or has ended.
    #[error("there is no such session")]
    NoSession,
    /// With it there would be too much.
    #[error("{limit}: at most {max}, with this it would be {actual}")]
    OverQuota {
        /// Of what.
        limit: &'static str,
        /// How much there may be.
        max: u64,
        /// How much there would be.
        actual: u64,
    },
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adding and finding files of sessions.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// Adds a file to a session, unless that would be too much. Those who add at the same time are
    /// counted one after the other.
    async fn add_attachment(&self, new: &AttachmentRow, quotas: Quotas) -> Result<(), AddError>;

    /// Would there be room for a file of this size, as things are? Says nothing about how they are
    /// when it is added.
    async fn check_quotas(
        &self,
        session: SessionId,
        owner: UserId,
        size_bytes: u64,
        quotas: Quotas,
    ) -> Result<(), AddError>;

    /// The files of a session, the oldest first.
    async fn attachments(&self, session: SessionId) -> Result<Vec<AttachmentRow>, StoreError>;

    /// Which contents that begin with this byte some file still has.
    async fn contents_with(&self, first: u8) -> Result<Vec<ContentHash>, StoreError>;

    /// Which contents that begin with this byte some file had not long ago.
    async fn released_with(&self, first: u8) -> Result<Vec<ContentHash>, StoreError>;
}
