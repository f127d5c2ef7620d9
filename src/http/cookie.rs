//! Cookies: the refresh token and the device, sent to the auth routes only, same-site, never readable by
//! script.
//!
//! With TLS their names begin with `__Secure-`, so that no page without TLS can have set them. `__Host-`
//! would need the path `/`, and with it every request would carry them.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use jiff::Timestamp;

use crate::auth::{DeviceCookie, OneTimeSecret};

const REFRESH: &str = "switchboard_refresh";
const DEVICE: &str = "switchboard_device";
const SECURE_PREFIX: &str = "__Secure-";

/// Makes the cookies with names and attributes that fit the public URL.
#[derive(Clone, Debug)]
pub(super) struct CookieJar {
    prefix: &'static str,
    attributes: String,
}

impl CookieJar {
    pub(super) fn new(base_path: &str, https: bool) -> Self {
        let (prefix, secure) = if https {
            (SECURE_PREFIX, "; Secure")
        } else {
            ("", "")
        };
        Self {
            prefix,
            attributes: format!("; Path={base_path}/api/auth; HttpOnly; SameSite=Strict{secure}"),
        }
    }

    pub(super) fn set(
        &self,
        secret: &OneTimeSecret,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> HeaderValue {
        self.cookie(REFRESH, secret.expose(), seconds(expires_at, now))
    }

    pub(super) fn set_device(&self, device: &DeviceCookie, now: Timestamp) -> HeaderValue {
        self.cookie(DEVICE, &device.value, seconds(device.expires_at, now))
    }

    /// The device stays known.
    pub(super) fn clear(&self) -> HeaderValue {
        self.cookie(REFRESH, "", 0)
    }

    pub(super) fn refresh_token<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.find(headers, REFRESH)
    }

    pub(super) fn device<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.find(headers, DEVICE)
    }

    /// A cookie by the one name that it is set under: with TLS, one without the prefix may come from a page
    /// of a neighbouring host without TLS.
    fn find<'a>(&self, headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
        let mut pairs = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.find(|(name, _)| name.strip_prefix(self.prefix) == Some(wanted));
        found.map(|(_, value)| value)
    }

    fn cookie(&self, name: &str, value: &str, max_age: i64) -> HeaderValue {
        let (prefix, attributes) = (self.prefix, &self.attributes);
        let text = format!("{prefix}{name}={value}; Max-Age={max_age}{attributes}");
        HeaderValue::from_str(&text).expect("the cookie is plain ASCII")
    }
}

fn seconds(expires_at: Timestamp, now: Timestamp) -> i64 {
    expires_at.duration_since(now).as_secs().max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_by_the_name_it_is_set_under_and_by_no_other() {
        let read = |https: bool, cookies: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookies.parse().unwrap());
            let jar = CookieJar::new("", https);
            jar.refresh_token(&headers).map(str::to_owned)
        };
        let both = "switchboard_refresh=x; __Secure-switchboard_refresh=y";
        assert_eq!(read(true, both).as_deref(), Some("y"));
        assert_eq!(read(false, both).as_deref(), Some("x"));
        assert_eq!(read(true, "a=b; switchboard_refresh=x"), None);
        assert_eq!(read(false, "__Secure-switchboard_refresh=y"), None);
        assert_eq!(read(false, "other=1"), None);
    }

    #[test]
    fn with_tls_the_cookie_is_secure_by_name_and_attribute() {
        let jar = CookieJar::new("/sb", true);
        let text = jar.clear().to_str().unwrap().to_owned();
        assert!(
            text.starts_with("__Secure-switchboard_refresh=; "),
            "{text}"
        );
        assert!(text.ends_with("; Path=/sb/api/auth; HttpOnly; SameSite=Strict; Secure"));
        let jar = CookieJar::new("", false);
        let text = jar.clear().to_str().unwrap().to_owned();
        assert!(text.starts_with("switchboard_refresh=; "), "{text}");
    }
}
