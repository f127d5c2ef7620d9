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

    fn cookie(&self, name: &str, value: &str, max_age: i64) -> HeaderValue {
        let (prefix, attributes) = (self.prefix, &self.attributes);
        let text = format!("{prefix}{name}={value}; Max-Age={max_age}{attributes}");
        HeaderValue::from_str(&text).expect("the cookie is plain ASCII")
    }
}

fn seconds(expires_at: Timestamp, now: Timestamp) -> i64 {
    expires_at.duration_since(now).as_secs().max(0)
}

pub(super) fn refresh_token(headers: &HeaderMap) -> Option<&str> {
    find(headers, REFRESH)
}

pub(super) fn device(headers: &HeaderMap) -> Option<&str> {
    find(headers, DEVICE)
}

/// A cookie by its name with the prefix, or else without: from before the public URL was https.
fn find<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let pairs = || {
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
    };
    let secure = pairs().find(|(name, _)| name.strip_prefix(SECURE_PREFIX) == Some(wanted));
    let found = secure.or_else(|| pairs().find(|(name, _)| *name == wanted));
    found.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_with_the_prefix_is_preferred_and_one_without_still_read() {
        let read = |cookies: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookies.parse().unwrap());
            refresh_token(&headers).map(str::to_owned)
        };
        assert_eq!(read("a=b; switchboard_refresh=x").as_deref(), Some("x"));
        let both = "switchboard_refresh=x; __Secure-switchboard_refresh=y";
        assert_eq!(read(both).as_deref(), Some("y"));
        assert_eq!(read("other=1"), None);
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
