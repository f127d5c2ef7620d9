//! Signing keys: stored with their private half, retired by rotation.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::audit::AuditEntry;
use crate::domain::id::KeyId;

/// A signing key.
#[derive(Clone)]
pub struct StoredKey {
    /// Its id, the `kid` of its tokens.
    pub id: KeyId,
    /// Private half, PKCS #8; empty if it is in the configuration.
    pub private_key: Vec<u8>,
    /// Public half, 32 bytes.
    pub public_key: Vec<u8>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it stopped signing.
    pub retired_at: Option<Timestamp>,
    /// When it stops verifying.
    pub expires_at: Option<Timestamp>,
}

/// What happens to the former keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldKeys {
    /// They verify until their last token expires.
    Verify,
    /// They and all their tokens are invalid at once.
    Drop,
}

/// Storing signing keys.
#[async_trait]
pub trait SigningKeys: Send + Sync {
    /// All keys that still sign or verify, newest first.
    async fn keys(&self, now: Timestamp) -> Result<Vec<StoredKey>, StoreError>;

    /// Stores the first key, unless another node was faster.
    async fn add_first_key(&self, key: &StoredKey, entry: &AuditEntry) -> Result<(), StoreError>;

    /// Stores a new key and retires the others.
    async fn rotate_key(
        &self,
        key: &StoredKey,
        old: OldKeys,
        entry: &AuditEntry,
    ) -> Result<(), StoreError>;
}
