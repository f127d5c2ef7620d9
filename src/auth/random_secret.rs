//! Random secrets: refresh tokens, links and tickets.
//!
//! Only their hashes are stored: the database reveals none of them.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const SECRET_BYTES: usize = 32;

/// A secret to be handed to its user.
#[derive(Clone)]
pub struct OneTimeSecret(String);

impl OneTimeSecret {
    pub(super) fn random() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        aws_lc_rs::rand::fill(&mut bytes).expect("the operating system has randomness");
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Of bytes that nobody can guess.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The secret text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> [u8; 32] {
        sha256(self.0.as_bytes())
    }
}

/// Hash of a presented secret; `None` if it cannot be one of ours.
pub(super) fn hash_presented(text: &str) -> Option<[u8; 32]> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (bytes.len() == SECRET_BYTES).then(|| sha256(text.as_bytes()))
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_again_by_its_hash() {
        let secret = OneTimeSecret::random();
        assert_eq!(hash_presented(secret.expose()), Some(secret.hash()));
        assert_ne!(secret.expose(), OneTimeSecret::random().expose());
    }

    #[test]
    fn a_malformed_secret_is_not_hashed() {
        for text in ["", "short", "not base64 ???", &"A".repeat(500)] {
            assert_eq!(hash_presented(text), None, "{text}");
        }
    }
}
