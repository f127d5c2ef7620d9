//! Access tokens: short-lived, signed, checked without asking the database.
//!
//! One algorithm (`EdDSA`), one exact key by `kid`, every claim required and typed. The library's
//! own clock is not used, so that tests can set the time.

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};

use super::signing_keys::{KeyError, KeyRing};
use crate::domain::account::{Principal, Role, User, Username};
use crate::domain::id::{KeyId, LoginId, SessionId, TokenId, UserId};

pub(super) const ISSUER: &str = "switchboard";
const AUDIENCE: &str = "switchboard";
const ACCESS: &str = "access";
const FIRST_GENERATION: i64 = 1;
/// Longer texts are not parsed.
pub(super) const MAX_TOKEN_BYTES: usize = 4096;

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// It was valid once.
    #[error("the token has expired")]
    Expired,
    /// Never valid, or revoked.
    #[error("the token is not valid")]
    Invalid,
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    username: Username,
    role: Role,
    iat: i64,
    exp: i64,
    /// Never issued by us, but honoured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    iss: String,
    aud: String,
    jti: TokenId,
    typ: String,
    #[serde(rename = "loginId")]
    login: LoginId,
    #[serde(rename = "gen")]
    generation: i64,
    #[serde(rename = "sessionId", default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

pub(super) fn sign(
    ring: &KeyRing,
    user: &User,
    login: LoginId,
    session: Option<SessionId>,
    now: Timestamp,
    expires_at: Timestamp,
) -> String {
    let claims = Claims {
        sub: user.id,
        username: user.username.clone(),
        role: user.role,
        iat: now.as_second(),
        exp: expires_at.as_second(),
        nbf: None,
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        jti: TokenId::new(),
        typ: ACCESS.to_owned(),
        login,
        generation: user.generation,
        session,
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some(ring.signing_id.to_string());
    jsonwebtoken::encode(&header, &claims, &ring.signing).expect("the key has passed its self-test")
}

pub(super) fn verify(ring: &KeyRing, token: &str, now: Timestamp) -> Result<Principal, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::Invalid);
    }
    let key_id = key_id(token)?;
    let key = ring.verifying(key_id).ok_or(TokenError::Invalid)?;
    let claims = jsonwebtoken::decode::<Claims>(token, key, &validation())
        .map_err(|_| TokenError::Invalid)?
        .claims;
    accept(claims, now)
}

/// The header selects nothing but one of our keys by its id.
pub(super) fn key_id(token: &str) -> Result<KeyId, TokenError> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Invalid)?;
    let plain = header.alg == Algorithm::EdDSA
        && header.typ.as_deref() == Some("JWT")
        && header.crit.is_none()
        && header.jku.is_none()
        && header.jwk.is_none()
        && header.x5u.is_none()
        && header.x5c.is_none()
        && header.zip.is_none()
        && header.enc.is_none();
    let kid = header.kid.filter(|_| plain).ok_or(TokenError::Invalid)?;
    kid.parse().map_err(|_| TokenError::Invalid)
}

fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    // Checked below, with our own clock and no leeway.
    validation.validate_exp = false;
    validation
}

fn accept(claims: Claims, now: Timestamp) -> Result<Principal, TokenError> {
    let time = |seconds| Timestamp::from_second(seconds).map_err(|_| TokenError::Invalid);
    let issued_at = time(claims.iat)?;
    let expires_at = time(claims.exp)?;
    // Issued in the future only means that a clock was set back: we signed it.
    if claims.typ != ACCESS || issued_at > expires_at || claims.generation < FIRST_GENERATION {
        return Err(TokenError::Invalid);
    }
    if let Some(not_before) = claims.nbf
        && time(not_before)? > now
    {
        return Err(TokenError::Invalid);
    }
    if expires_at <= now {
        return Err(TokenError::Expired);
    }
    Ok(Principal {
        user: claims.sub,
        username: claims.username,
        role: claims.role,
        login: claims.login,
        generation: claims.generation,
        session: claims.session,
        expires_at,
    })
}

/// Signs and verifies a token, so that a broken key fails at start and not at the first login.
pub(super) fn self_test(ring: &KeyRing, now: Timestamp) -> Result<(), KeyError> {
    let user = User {
        id: UserId::new(),
        username: "self-test".parse().expect("a valid name"),
        role: Role::Member,
        disabled: false,
        invited: false,
        generation: 1,
        created_at: now,
    };
    let expires_at = now + SignedDuration::from_mins(1);
    let header = Header {
        kid: Some(ring.signing_id.to_string()),
        ..Header::new(Algorithm::EdDSA)
    };
    // Not `sign`, which relies on this test having passed.
    jsonwebtoken::encode(&header, &"probe", &ring.signing)
        .map_err(|_| KeyError::SelfTest(ring.signing_id))?;
    let token = sign(ring, &user, LoginId::new(), None, now, expires_at);
    match verify(ring, &token, now) {
        Ok(principal) if principal.user == user.id => Ok(()),
        _ => Err(KeyError::SelfTest(ring.signing_id)),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::EncodingKey;
    use serde_json::{Value, json};

    use super::super::signing_keys::generate_key;
    use super::*;
    use crate::store::StoredKey;

    struct TokenSigner {
        ring: KeyRing,
        key: StoredKey,
        now: Timestamp,
    }

    impl TokenSigner {
        fn new() -> Self {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let key = generate_key(now);
            let ring = KeyRing::new(std::slice::from_ref(&key)).unwrap();
            Self { ring, key, now }
        }

        fn claims(&self) -> Value {
            json!({
                "sub": UserId::new(), "username": "mia", "role": "member",
                "iat": self.now.as_second(), "exp": self.now.as_second() + 60,
                "iss": ISSUER, "aud": AUDIENCE, "jti": TokenId::new(), "typ": ACCESS,
                "loginId": LoginId::new(), "gen": 1,
            })
        }

        fn header(&self) -> Value {
            json!({ "alg": "EdDSA", "typ": "JWT", "kid": self.key.id })
        }

        /// Signs any header and claims with the real key.
        fn token(&self, header: &Value, claims: &Value) -> String {
            self.token_from_text(&header.to_string(), &claims.to_string())
        }

        fn token_from_text(&self, header: &str, claims: &str) -> String {
            let message = format!(
                "{}.{}",
                URL_SAFE_NO_PAD.encode(header),
                URL_SAFE_NO_PAD.encode(claims)
            );
            let signature = jsonwebtoken::crypto::sign(
                message.as_bytes(),
                &EncodingKey::from_ed_der(&self.key.private_key),
                Algorithm::EdDSA,
            )
            .unwrap();
            format!("{message}.{signature}")
        }

        fn check(&self, token: &str) -> Result<(), TokenError> {
            verify(&self.ring, token, self.now).map(drop)
        }
    }

    #[test]
    fn a_valid_token_is_accepted() {
        let signer = TokenSigner::new();
        let token = signer.token(&signer.header(), &signer.claims());
        assert_eq!(signer.check(&token), Ok(()));
    }

    #[test]
    fn a_token_is_valid_until_its_expiry() {
        let signer = TokenSigner::new();
        let token = signer.token(&signer.header(), &signer.claims());
        let end = signer.now + SignedDuration::from_secs(60);
        let before = end - SignedDuration::from_millis(1);
        assert!(verify(&signer.ring, &token, before).is_ok());
        assert_eq!(
            verify(&signer.ring, &token, end).map(drop),
            Err(TokenError::Expired)
        );
    }

    #[test]
    fn every_claim_is_required_and_typed() {
        let signer = TokenSigner::new();
        let names: Vec<String> = signer
            .claims()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for name in names {
            let mut missing = signer.claims();
            missing.as_object_mut().unwrap().remove(&name);
            let mut cases = vec![missing];
            for odd in [
                json!(null),
                json!([]),
                json!({}),
                json!(true),
                json!(-1.5),
                json!("x\u{0}"),
            ] {
                let mut claims = signer.claims();
                claims[&name] = odd;
                cases.push(claims);
            }
            for claims in cases {
                let token = signer.token(&signer.header(), &claims);
                assert_eq!(signer.check(&token), Err(TokenError::Invalid), "{claims}");
            }
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        let signer = TokenSigner::new();
        let soon = signer.now.as_second() + 60;
        for (name, value) in [
            ("exp", json!(soon.to_string())),
            ("exp", json!(1e30)),
            ("exp", json!(i64::MAX)),
            ("exp", json!(u64::MAX)),
            ("iat", json!(soon + 1)),
            ("iss", json!("somebody")),
            ("iss", json!(["switchboard"])),
            ("aud", json!("somebody")),
            ("typ", json!("refresh")),
            ("typ", json!("ACCESS")),
            ("role", json!("root")),
            ("sub", json!(LoginId::new())),
            ("username", json!("no such name!")),
            ("sessionId", json!("anything")),
            ("gen", json!(0)),
            ("gen", json!(-1)),
            ("nbf", json!(signer.now.as_second() + 1)),
            ("nbf", json!(i64::MAX)),
            ("nbf", json!("0")),
            ("nbf", json!([])),
        ] {
            let mut claims = signer.claims();
            claims[name] = value;
            let token = signer.token(&signer.header(), &claims);
            assert_eq!(signer.check(&token), Err(TokenError::Invalid), "{claims}");
        }
        let mut expired = signer.claims();
        expired["iat"] = json!(signer.now.as_second() - 100);
        expired["exp"] = json!(signer.now.as_second() - 1);
        let token = signer.token(&signer.header(), &expired);
        assert_eq!(signer.check(&token), Err(TokenError::Expired));
    }

    #[test]
    fn a_token_is_valid_from_its_nbf_on() {
        let signer = TokenSigner::new();
        let mut claims = signer.claims();
        claims["nbf"] = json!(signer.now.as_second());
        let token = signer.token(&signer.header(), &claims);
        assert_eq!(signer.check(&token), Ok(()));
        let before = signer.now - SignedDuration::from_millis(1);
        let check = verify(&signer.ring, &token, before).map(drop);
        assert_eq!(check, Err(TokenError::Invalid));
    }

    #[test]
    fn no_header_can_choose_how_it_is_checked() {
        let signer = TokenSigner::new();
        let other = generate_key(signer.now);
        for (name, value) in [
            ("alg", json!("none")),
            ("alg", json!("HS256")),
            ("alg", json!("eddsa")),
            ("alg", json!("ES256")),
            ("alg", json!(null)),
            ("typ", json!("at+jwt")),
            ("kid", json!(other.id)),
            ("kid", json!("../../etc/passwd")),
            ("kid", json!("' or 1=1 --")),
            ("kid", json!(null)),
            ("kid", json!([signer.key.id])),
            ("crit", json!(["exp"])),
            ("jku", json!("http://127.0.0.1/keys")),
            ("x5u", json!("http://127.0.0.1/keys")),
            (
                "jwk",
                json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(&other.public_key)}),
            ),
        ] {
            let mut header = signer.header();
            header[name] = value;
            let token = signer.token(&header, &signer.claims());
            assert_eq!(signer.check(&token), Err(TokenError::Invalid), "{header}");
        }
    }

    #[test]
    fn a_signature_of_another_kind_is_refused() {
        let signer = TokenSigner::new();
        let honest = signer.token(&signer.header(), &signer.claims());
        let (message, signature) = honest.rsplit_once('.').unwrap();
        let confused = jsonwebtoken::crypto::sign(
            message.as_bytes(),
            &EncodingKey::from_secret(&signer.key.public_key),
            Algorithm::HS256,
        )
        .unwrap();
        let other_signer = TokenSigner::new();
        let foreign = other_signer.token(&signer.header(), &signer.claims());
        let flipped = format!("{message}.{}", signature.chars().rev().collect::<String>());
        for token in [
            format!("{message}."),
            message.to_owned(),
            format!("{message}.{confused}"),
            format!("{honest}A"),
            format!("{honest}="),
            format!("{honest}."),
            format!(" {honest}"),
            flipped,
            foreign,
            String::new(),
            "..".to_owned(),
            "a".repeat(MAX_TOKEN_BYTES + 1),
        ] {
            assert_eq!(signer.check(&token), Err(TokenError::Invalid), "{token}");
        }
    }

    #[test]
    fn a_claim_given_twice_is_refused() {
        let signer = TokenSigner::new();
        let claims = signer.claims().to_string();
        let doubled = claims.replacen('{', r#"{"role":"admin","#, 1);
        let token = signer.token_from_text(&signer.header().to_string(), &doubled);
        assert_eq!(signer.check(&token), Err(TokenError::Invalid));
    }

    #[test]
    fn a_retired_key_still_verifies() {
        let signer = TokenSigner::new();
        let token = signer.token(&signer.header(), &signer.claims());
        let retired = StoredKey {
            retired_at: Some(signer.now),
            ..signer.key.clone()
        };
        let ring = KeyRing::new(&[generate_key(signer.now), retired]).unwrap();
        assert_ne!(ring.signing_id, signer.key.id);
        assert!(verify(&ring, &token, signer.now).is_ok());
        assert!(self_test(&ring, signer.now).is_ok());
    }
}
