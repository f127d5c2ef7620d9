//! Attachments: metadata and quotas of uploaded files. Their bytes are in `blobs`.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::id::{AttachmentId, SessionId, UserId};

/// SHA-256 of a blob.
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
    /// SHA-256 of its bytes.
    pub hash: ContentHash,
    /// For display only.
    pub name: String,
    /// Sniffed from the content, never taken from the client.
    pub media_type: String,
    /// Size of the file.
    pub size_bytes: u64,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// Upload quotas.
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
    /// The session does not exist or has ended.
    #[error("there is no such session")]
    NoSession,
    /// A quota would be exceeded.
    #[error("{limit}: at most {max}, with this it would be {actual}")]
    OverQuota {
        /// Name of the quota.
        limit: &'static str,
        /// The quota.
        max: u64,
        /// The total with this file.
        actual: u64,
    },
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adding and finding files of sessions.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// Adds a file to a session, within its quotas. Concurrent uploads are counted one after the other.
    async fn add_attachment(&self, new: &AttachmentRow, quotas: Quotas) -> Result<(), AddError>;

    /// Would a file of this size fit the quotas now? Only [`add_attachment`](Self::add_attachment)
    /// decides.
    async fn check_quotas(
        &self,
        session: SessionId,
        owner: UserId,
        size_bytes: u64,
        quotas: Quotas,
    ) -> Result<(), AddError>;

    /// The files of a session, the oldest first.
    async fn attachments(&self, session: SessionId) -> Result<Vec<AttachmentRow>, StoreError>;

    /// Hashes with this first byte that some attachment refers to.
    async fn referenced_hashes(&self, first: u8) -> Result<Vec<ContentHash>, StoreError>;

    /// Hashes with this first byte whose last attachment was deleted recently.
    async fn released_hashes(&self, first: u8) -> Result<Vec<ContentHash>, StoreError>;
}
