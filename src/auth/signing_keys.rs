//! Signing keys: the one that signs, and those that still verify.

use std::collections::HashMap;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::{DecodingKey, EncodingKey};
use serde_json::json;

use super::random_secret::sha256;
use crate::domain::id::KeyId;
use crate::store::StoredKey;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a private key for Ed25519.
    #[error("expected an Ed25519 private key in PEM form (openssl genpkey -algorithm ed25519)")]
    NotEd25519,
    /// Published in a specification, or all zeros.
    #[error("this key is a published example; make your own (openssl genpkey -algorithm ed25519)")]
    Example,
    /// Its signature does not verify.
    #[error("a token signed with the key {0} does not verify with it")]
    SelfTest(KeyId),
    /// The private half is in a configuration that is not loaded.
    #[error(
        "the key that signs is given by auth.signing_key, which is not set here: set it, or go back \
         to a key in the database with `switchboard key rotate`"
    )]
    PrivateKeyMissing,
    /// No key signs.
    #[error("there is no signing key")]
    None,
}

/// Public halves of published private keys: RFC 8032 (tests 1 to 3), RFC 8037, and all zeros.
const PUBLISHED_KEYS: [&str; 4] = [
    "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw",
    "_FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU",
    "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik",
];

pub(super) fn generate_key(at: Timestamp) -> StoredKey {
    let document = Ed25519KeyPair::generate_pkcs8(&aws_lc_rs::rand::SystemRandom::new())
        .expect("the operating system has randomness");
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("the key was made just now");
    StoredKey {
        id: KeyId::new(),
        private_key: document.as_ref().to_vec(),
        public_key: pair.public_key().as_ref().to_vec(),
        created_at: at,
        retired_at: None,
        expires_at: None,
    }
}

/// Parses the operator's key. Its id is derived from the key, so every node agrees on it.
pub(super) fn parse_key(pem: &str, at: Timestamp) -> Result<StoredKey, KeyError> {
    let body: String = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .map(str::trim)
        .collect();
    let der = base64::engine::general_purpose::STANDARD
        .decode(body)
        .map_err(|_| KeyError::NotEd25519)?;
    let pair =
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| KeyError::NotEd25519)?;
    let public_key = pair.public_key().as_ref().to_vec();
    if PUBLISHED_KEYS.contains(&URL_SAFE_NO_PAD.encode(&public_key).as_str()) {
        return Err(KeyError::Example);
    }
    let digest = sha256(&public_key);
    Ok(StoredKey {
        id: KeyId::from_digest(&digest),
        private_key: der,
        public_key,
        created_at: at,
        retired_at: None,
        expires_at: None,
    })
}

/// A key of its own, so that the signing key signs tokens only.
fn successor_key(private_key: &[u8]) -> hmac::Key {
    let root = hmac::Key::new(hmac::HMAC_SHA256, private_key);
    let derived = hmac::sign(&root, b"switchboard refresh token successor");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

pub(super) struct KeyRing {
    pub(super) signing_id: KeyId,
    pub(super) signing: EncodingKey,
    /// Makes the refresh token that follows another one.
    pub(super) successor_key: hmac::Key,
    verifying: HashMap<KeyId, DecodingKey>,
    jwks: serde_json::Value,
}

impl KeyRing {
    /// The newest key that is not retired signs; all of them verify.
    pub(super) fn new(keys: &[StoredKey]) -> Result<Self, KeyError> {
        let signing = keys
            .iter()
            .find(|key| key.retired_at.is_none())
            .ok_or(KeyError::None)?;
        if signing.private_key.is_empty() {
            return Err(KeyError::PrivateKeyMissing);
        }
        Ok(Self {
            signing_id: signing.id,
            signing: EncodingKey::from_ed_der(&signing.private_key),
            successor_key: successor_key(&signing.private_key),
            verifying: keys
                .iter()
                .map(|key| (key.id, DecodingKey::from_ed_der(&key.public_key)))
                .collect(),
            jwks: json!({ "keys": keys.iter().map(jwk).collect::<Vec<_>>() }),
        })
    }

    pub(super) fn verifying(&self, id: KeyId) -> Option<&DecodingKey> {
        self.verifying.get(&id)
    }

    pub(super) fn jwks(&self) -> &serde_json::Value {
        &self.jwks
    }
}

fn jwk(key: &StoredKey) -> serde_json::Value {
    json!({
        "kty": "OKP",
        "crv": "Ed25519",
        "alg": "EdDSA",
        "use": "sig",
        "kid": key.id,
        "x": URL_SAFE_NO_PAD.encode(&key.public_key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(der: &[u8]) -> String {
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    }

    fn pkcs8(seed: [u8; 32]) -> Vec<u8> {
        let mut der = vec![
            0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
        ];
        der.extend(seed);
        der
    }

    #[test]
    fn an_operators_key_has_the_same_id_on_every_node() {
        let key = pem(&pkcs8([7; 32]));
        let one = parse_key(&key, Timestamp::UNIX_EPOCH).unwrap();
        let other = parse_key(&key, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(one.id, other.id);
    }

    #[test]
    fn published_keys_are_refused() {
        let rfc8037: [u8; 32] = URL_SAFE_NO_PAD
            .decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
            .unwrap()
            .try_into()
            .unwrap();
        for seed in [rfc8037, [0; 32]] {
            let refused = parse_key(&pem(&pkcs8(seed)), Timestamp::UNIX_EPOCH);
            assert!(matches!(refused, Err(KeyError::Example)));
        }
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        for text in ["", "secret", &pem(&[1, 2, 3])] {
            assert!(matches!(
                parse_key(text, Timestamp::UNIX_EPOCH),
                Err(KeyError::NotEd25519)
            ));
        }
    }
}
