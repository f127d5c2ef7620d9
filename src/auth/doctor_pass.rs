//! Doctor pass: lets `switchboard doctor --url` see how its requests reach the gateway.
//!
//! Signed like a token by a program that can open the database. Valid for two minutes and for
//! nothing else: it names no user, and its audience differs from that of access tokens.

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};

use super::signing_keys::KeyRing;
use super::token::{ISSUER, MAX_TOKEN_BYTES, key_id};

const AUDIENCE: &str = "switchboard-probe";
const PASS_LIFE: SignedDuration = SignedDuration::from_mins(2);

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iat: i64,
    exp: i64,
    iss: String,
    aud: String,
}

pub(super) fn sign(ring: &KeyRing, now: Timestamp) -> String {
    let claims = Claims {
        iat: now.as_second(),
        exp: (now + PASS_LIFE).as_second(),
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some(ring.signing_id.to_string());
    jsonwebtoken::encode(&header, &claims, &ring.signing).expect("the key has passed its self-test")
}

pub(super) fn is_valid(ring: &KeyRing, pass: &str, now: Timestamp) -> bool {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    // Checked below, with our own clock.
    validation.validate_exp = false;
    if pass.len() > MAX_TOKEN_BYTES {
        return false;
    }
    let key = key_id(pass).ok().and_then(|id| ring.verifying(id));
    let claims = key.and_then(|key| jsonwebtoken::decode::<Claims>(pass, key, &validation).ok());
    claims.is_some_and(|decoded| {
        let (issued_at, expires_at) = (decoded.claims.iat, decoded.claims.exp);
        now.as_second() < expires_at && expires_at.saturating_sub(issued_at) <= PASS_LIFE.as_secs()
    })
}

#[cfg(test)]
mod tests {
    use super::super::signing_keys::generate_key;
    use super::super::token;
    use super::*;
    use crate::domain::account::{Role, User};
    use crate::domain::id::{LoginId, UserId};

    fn ring(now: Timestamp) -> KeyRing {
        KeyRing::new(&[generate_key(now)]).unwrap()
    }

    #[test]
    fn a_pass_is_valid_for_two_minutes_at_its_own_gateway() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let ours = ring(now);
        let pass = sign(&ours, now);
        assert!(is_valid(&ours, &pass, now));
        assert!(!is_valid(&ours, &pass, now + PASS_LIFE));
        assert!(!is_valid(&ring(now), &pass, now), "another gateway's");
        assert!(!is_valid(&ours, &pass[..pass.len() - 2], now));
        assert!(!is_valid(&ours, "", now));
    }

    #[test]
    fn a_pass_is_no_token_and_a_token_is_no_pass() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let ours = ring(now);
        assert!(token::verify(&ours, &sign(&ours, now), now).is_err());
        let root = User {
            id: UserId::new(),
            username: "root".parse().unwrap(),
            role: Role::Admin,
            disabled: false,
            invited: false,
            generation: 1,
            created_at: now,
        };
        let token = token::sign(&ours, &root, LoginId::new(), None, now, now + PASS_LIFE);
        assert!(token::verify(&ours, &token, now).is_ok());
        assert!(!is_valid(&ours, &token, now));
    }
}
