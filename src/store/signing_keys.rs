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
    /// The private half, PKCS #8; empty if it is kept elsewhere.
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

/// What becomes of the keys that signed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldKeys {
    /// They verify until the last token they signed ends.
    Verify,
    /// They are worthless at once, and so is every token they signed.
    Drop,
}

/// Keeping signing keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// All keys that still sign or verify, newest first.
    async fn keys(&self, now: Timestamp) -> Result<Vec<StoredKey>, StoreError>;

    /// Stores the first key, unless another node was quicker.
    async fn add_first_key(&self, key: &StoredKey, act: &Act) -> Result<(), StoreError>;

    /// Stores a new key and retires the others.
    async fn rotate_key(&self, key: &StoredKey, old: OldKeys, act: &Act) -> Result<(), StoreError>;
}
