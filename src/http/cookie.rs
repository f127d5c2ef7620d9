//! The refresh cookie: only for us, only over our own pages, never readable by script.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use jiff::Timestamp;

use crate::auth::OneTimeSecret;

const NAME: &str = "switchboard_refresh";

/// How the cookie is marked, fixed by where the gateway is reached.
#[derive(Clone, Debug)]
pub(super) struct CookieJar {
    attributes: String,
}

impl CookieJar {
    pub(super) fn new(base_path: &str, https: bool) -> Self {
        let secure = if https { "; Secure" } else { "" };
        Self {
            attributes: format!("; Path={base_path}/api/auth; HttpOnly; SameSite=Strict{secure}"),
        }
    }

    /// Hands over a refresh token.
    pub(super) fn set(
        &self,
        secret: &OneTimeSecret,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> HeaderValue {
        let seconds = expires_at.duration_since(now).as_secs().max(0);
        self.cookie(secret.expose(), seconds)
    }

    /// Takes the refresh token back.
    pub(super) fn clear(&self) -> HeaderValue {
        self.cookie("", 0)
    }

    fn cookie(&self, value: &str, max_age: i64) -> HeaderValue {
        let text = format!("{NAME}={value}; Max-Age={max_age}{}", self.attributes);
        HeaderValue::from_str(&text).expect("a cookie of ours is plain ASCII")
    }
}

/// The refresh token that a request carries.
pub(super) fn refresh_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == NAME).then_some(value))
}
