//! Signing keys, as stored.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::act::Act;
use crate::domain::id::KeyId;

/// A signing key.
#[derive(Clone)]
pub struct StoredKey {
    /// Its id, the `kid` of its tokens.
    pub id: KeyId,
    /// The private half, PKCS #8.
    pub private_key: Vec<u8>,
    /// The public half, 32 bytes.
    pub public_key: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stopped signing.
    pub retired_at: Option<Timestamp>,
    /// When it stops verifying.
    pub expires_at: Option<Timestamp>,
}

/// Keeping signing keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// All keys that still sign or verify, newest first.
    async fn keys(&self, now: Timestamp) -> Result<Vec<StoredKey>, StoreError>;

    /// Stores the first key, unless another node was quicker.
    async fn add_first_key(&self, key: &StoredKey) -> Result<(), StoreError>;

    /// Stores a new key and retires the others; they verify until the last token they signed ends.
    async fn rotate_key(&self, key: &StoredKey, act: &Act) -> Result<(), StoreError>;
}
