//! Idempotency key: the client's name for a command that takes effect once, and a digest of the command.

/// A client's `idempotencyKey` with the digest of what was sent under it. The digest tells a repeated
/// command from another one under the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, as the client sent it.
    pub key: String,
    /// SHA-256 of the command.
    pub digest: [u8; 32],
}
