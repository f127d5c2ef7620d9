//! Device cookie: recognises a browser on which an account has logged in before.
//!
//! Somebody who guesses at an account uses up the attempts of strangers, not those of its owner's own
//! devices; and a refresh whose answer got lost can be repeated from the same device only. The cookie is
//! signed like a token and good for nothing else: it proves no login.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};

use super::random_secret::OneTimeSecret;
use super::signing_keys::KeyRing;
use super::token::{ISSUER, MAX_TOKEN_BYTES, key_id};

const AUDIENCE: &str = "switchboard-device";
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    exp: i64,
    iss: String,
    aud: String,
    /// The account, as [`Device::account`].
    sub: String,
    jti: String,
}

/// A device on which an account has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// The account's name in lower case.
    pub(super) account: String,
    /// Names the device, and no person.
    pub(super) id: String,
}

/// A cookie to be set, and how long it lasts.
pub struct DeviceCookie {
    /// Its value.
    pub value: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Device {
    pub(super) fn new(account: String) -> Self {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).expect("the operating system has randomness");
        let id = URL_SAFE_NO_PAD.encode(bytes);
        Self { account, id }
    }

    pub(super) fn sign(&self, ring: &KeyRing, now: Timestamp) -> DeviceCookie {
        let expires_at = now + LIFE;
        let claims = Claims {
            exp: expires_at.as_second(),
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: self.account.clone(),
            jti: self.id.clone(),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(ring.signing_id.to_string());
        let value = jsonwebtoken::encode(&header, &claims, &ring.signing)
            .expect("the key has passed its self-test");
        DeviceCookie { value, expires_at }
    }

    /// The device of a cookie; `None` if it is not one of ours, or too old.
    pub(super) fn verify(ring: &KeyRing, cookie: &str, now: Timestamp) -> Option<Self> {
        if cookie.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // Checked below, with our own clock.
        validation.validate_exp = false;
        let key = ring.verifying(key_id(cookie).ok()?)?;
        let decoded = jsonwebtoken::decode::<Claims>(cookie, key, &validation).ok()?;
        let Claims { exp, sub, jti, .. } = decoded.claims;
        (now.as_second() < exp).then_some(Self {
            account: sub,
            id: jti,
        })
    }
}

/// The refresh token that follows another one: always the same, so that a lost answer can be repeated.
pub(super) fn successor(ring: &KeyRing, presented: &str) -> OneTimeSecret {
    let tag = hmac::sign(&ring.successor_key, presented.as_bytes());
    OneTimeSecret::from_bytes(tag.as_ref())
}

#[cfg(test)]
mod tests {
    use super::super::signing_keys::generate_key;
    use super::super::token;
    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new(&[generate_key(Timestamp::UNIX_EPOCH)]).unwrap()
    }

    #[test]
    fn a_cookie_names_its_account_and_device_for_a_year() {
        let (ring, now) = (ring(), Timestamp::UNIX_EPOCH);
        let device = Device::new("mia".into());
        let cookie = device.sign(&ring, now);
        assert_eq!(Device::verify(&ring, &cookie.value, now), Some(device));
        let late = cookie.expires_at;
        assert_eq!(Device::verify(&ring, &cookie.value, late), None);
        let other = KeyRing::new(&[generate_key(now)]).unwrap();
        assert_eq!(Device::verify(&other, &cookie.value, now), None);
        assert!(
            token::verify(&ring, &cookie.value, now).is_err(),
            "no token"
        );
    }

    #[test]
    fn a_successor_is_the_same_each_time_and_different_for_each_token() {
        let ring = ring();
        let first = successor(&ring, "a");
        assert_eq!(first.expose(), successor(&ring, "a").expose());
        assert_ne!(first.expose(), successor(&ring, "b").expose());
        let other = KeyRing::new(&[generate_key(Timestamp::UNIX_EPOCH)]).unwrap();
        assert_ne!(first.expose(), successor(&other, "a").expose());
    }
}
