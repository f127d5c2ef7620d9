//! Refresh cookie: sent to the auth routes only, same-site, never readable by script.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use jiff::Timestamp;

use crate::auth::OneTimeSecret;

const NAME: &str = "switchboard_refresh";

/// Makes the cookie with attributes that fit the public URL.
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

    pub(super) fn set(
        &self,
        secret: &OneTimeSecret,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> HeaderValue {
        let seconds = expires_at.duration_since(now).as_secs().max(0);
        self.cookie(secret.expose(), seconds)
    }

    pub(super) fn clear(&self) -> HeaderValue {
        self.cookie("", 0)
    }

    fn cookie(&self, value: &str, max_age: i64) -> HeaderValue {
        let text = format!("{NAME}={value}; Max-Age={max_age}{}", self.attributes);
        HeaderValue::from_str(&text).expect("the cookie is plain ASCII")
    }
}

pub(super) fn refresh_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == NAME).then_some(value))
}
