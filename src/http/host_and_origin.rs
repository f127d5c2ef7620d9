//! Host and origin: the `Host` and `Origin` headers that are accepted.
//!
//! An exact list: the public URL, the configured further origins, and this machine's own names with
//! the listen port. A request with another `Host` may come from a page whose name was made to
//! resolve here (DNS rebinding); one with another `Origin` comes from a foreign page.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::ApiError;
use crate::domain::error_code::ErrorCode;

/// Paths that need no known `Host`: health checks know only an address, and `/api/probe` reports to
/// the doctor what is wrong with the name.
const ANY_HOST_PATHS: [&str; 3] = ["/healthz", "/readyz", "/api/probe"];
/// Browsers send these without credentials, some with `Origin: null`. A report is only counted.
const CSP_REPORTS_PATH: &str = "/api/csp-reports";

/// Scheme, host and port of a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    https: bool,
    /// Lower case, IPv6 in brackets.
    host: String,
    port: u16,
}

/// A text that is not an origin.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected http:// or https://, a host, perhaps a port, and nothing more (like https://agents.example.org)"
)]
pub struct BadOrigin;

impl Origin {
    /// Whether it is served over HTTPS.
    pub fn is_https(&self) -> bool {
        self.https
    }

    fn new(https: bool, host: &str, port: Option<u16>) -> Self {
        Self {
            https,
            host: host.to_ascii_lowercase(),
            port: port.unwrap_or(if https { 443 } else { 80 }),
        }
    }
}

impl FromStr for Origin {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let uri: Uri = text.parse().map_err(|_| BadOrigin)?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BadOrigin),
        };
        let authority = uri.authority().ok_or(BadOrigin)?;
        let is_bare = matches!(uri.path(), "" | "/")
            && uri.query().is_none()
            && !authority.as_str().contains('@')
            && !text.contains('#')
            && (authority.as_str() == authority.host() || authority.port_u16().is_some());
        let host = authority.host();
        if !is_bare || host.is_empty() || host.contains('*') {
            return Err(BadOrigin);
        }
        Ok(Self::new(https, host, authority.port_u16()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.https {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(formatter, "{scheme}://{}", self.host)?;
        if self.port == default {
            Ok(())
        } else {
            write!(formatter, ":{}", self.port)
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Origins {
    public: Origin,
    allowed: BTreeSet<Origin>,
    base_path: String,
}

impl Origins {
    /// Without a public URL, the public origin is the listen address.
    pub(crate) fn new(public: Option<&Origin>, configured: &[Origin], listen: SocketAddr) -> Self {
        let ip = match listen {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        let port = Some(listen.port());
        let own = if listen.ip().is_unspecified() {
            "127.0.0.1"
        } else {
            &ip
        };
        let mut allowed: BTreeSet<Origin> = ["localhost", "127.0.0.1", "[::1]", own]
            .into_iter()
            .map(|host| Origin::new(false, host, port))
            .collect();
        let public = public
            .cloned()
            .unwrap_or_else(|| Origin::new(false, own, port));
        allowed.insert(public.clone());
        allowed.extend(configured.iter().cloned());
        Self {
            public,
            allowed,
            base_path: String::new(),
        }
    }

    /// With health checks under this path, too.
    pub(crate) fn with_base_path(self, base_path: &str) -> Self {
        Self {
            base_path: base_path.to_owned(),
            ..self
        }
    }

    fn accepts_any_host(&self, path: &str) -> bool {
        let relative = self.strip_base_path(path).unwrap_or(path);
        [path, relative]
            .iter()
            .any(|path| ANY_HOST_PATHS.contains(path))
    }

    fn is_csp_report(&self, request: &Request) -> bool {
        request.method() == Method::POST
            && self.strip_base_path(request.uri().path()) == Some(CSP_REPORTS_PATH)
    }

    fn strip_base_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.base_path)
    }

    /// The origin that users open.
    pub(crate) fn public(&self) -> &Origin {
        &self.public
    }

    fn allows_origin(&self, text: &str) -> bool {
        text.parse()
            .is_ok_and(|origin| self.allowed.contains(&origin))
    }

    /// A `Host` has no scheme: accepted if it is with either.
    pub(super) fn allows_host(&self, text: &str) -> bool {
        ["http", "https"]
            .iter()
            .any(|scheme| self.allows_origin(&format!("{scheme}://{text}")))
    }
}

/// Refuses requests with another `Host` or from a foreign page.
pub(super) async fn check(
    State(origins): State<Origins>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !origins.accepts_any_host(request.uri().path()) {
        check_host(&origins, &request)?;
    }
    if !origins.is_csp_report(&request) {
        check_origin(&origins, request.headers())?;
    }
    Ok(next.run(request).await)
}

/// Lets a request pass whose `Host` cannot be the name of a page: an address, `localhost`, a name without
/// a dot, or one of these.
pub(super) async fn check_private_host(
    State(allowed): State<Arc<[String]>>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    let host = request.headers().get(HOST);
    let host = host.and_then(|host| host.to_str().ok());
    match host {
        Some(host) if is_private_host(host, &allowed) => Ok(next.run(request).await),
        _ => Err(StatusCode::MISDIRECTED_REQUEST),
    }
}

fn is_private_host(host: &str, allowed: &[String]) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || (!name.is_empty() && !name.contains('.'))
        || allowed.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn check_host(origins: &Origins, request: &Request) -> Result<(), ApiError> {
    let from_uri = request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str);
    let mut values = request.headers().get_all(HOST).iter();
    let host = match (values.next(), values.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    };
    let is_known = |name: &str| origins.allows_host(name);
    if host.is_some_and(is_known) && from_uri.is_none_or(is_known) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::MISDIRECTED_REQUEST,
        ErrorCode::Forbidden,
        format!(
            "This gateway is not known under that name; use {} or set server.public_url.",
            origins.public
        ),
    ))
}

fn check_origin(origins: &Origins, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_allowed = |value: &axum::http::HeaderValue| {
        value.to_str().is_ok_and(|text| origins.allows_origin(text))
    };
    if headers.get_all(ORIGIN).iter().all(is_allowed) {
        Ok(())
    } else {
        Err(ApiError::forbidden(
            "Requests from that page are not accepted; see server.allowed_origins.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_listener_answers_to_no_name_that_a_page_could_have() {
        let allowed = ["metrics.example.org".to_owned()];
        for host in [
            "127.0.0.1:9717",
            "[::1]:9717",
            "localhost:9717",
            "switchboard:9717",
            "Metrics.example.org:9717",
            "10.0.0.7",
        ] {
            assert!(is_private_host(host, &allowed), "{host}");
        }
        for host in [
            "evil.example.org:9717",
            "evil.example",
            "",
            "127.0.0.1.evil.org",
        ] {
            assert!(!is_private_host(host, &allowed), "{host}");
        }
    }

    fn origins(public: Option<&str>) -> Origins {
        let public: Option<Origin> = public.map(|text| text.parse().unwrap());
        Origins::new(public.as_ref(), &[], "127.0.0.1:7717".parse().unwrap())
    }

    #[test]
    fn only_the_public_name_and_this_machine_are_accepted_as_host() {
        let known = origins(Some("https://agents.example.org"));
        for host in [
            "agents.example.org",
            "AGENTS.example.org:443",
            "localhost:7717",
            "127.0.0.1:7717",
            "[::1]:7717",
        ] {
            assert!(known.allows_host(host), "{host}");
        }
        for host in [
            "",
            "agents.example.org:8443",
            "example.org",
            "localhost",
            "localhost:80",
            "evil@localhost:7717",
            "127.0.0.1:7717/x",
            "127.0.0.1.evil.org:7717",
        ] {
            assert!(!known.allows_host(host), "{host}");
        }
    }

    #[test]
    fn an_origin_must_match_exactly() {
        let known = origins(Some("https://agents.example.org"));
        assert!(known.allows_origin("https://agents.example.org"));
        for origin in [
            "http://agents.example.org",
            "https://agents.example.org.evil.org",
            "null",
            "",
            "https://agents.example.org:444",
            "file://",
            "https://x.agents.example.org",
        ] {
            assert!(!known.allows_origin(origin), "{origin}");
        }
    }

    #[test]
    fn a_public_url_is_an_origin_without_a_path() {
        for text in [
            "agents.example.org",
            "ftp://x",
            "https://",
            "https://x/y",
            "https://x?y",
            "https://*.x",
            "https://u@x",
            "https://x:",
            "https://x:99999",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
        assert_eq!(
            "HTTP://Agents.Example.Org/"
                .parse::<Origin>()
                .unwrap()
                .to_string(),
            "http://agents.example.org"
        );
    }

    #[test]
    fn without_a_public_url_the_public_origin_is_this_machine() {
        assert_eq!(origins(None).public().to_string(), "http://127.0.0.1:7717");
        let everywhere = Origins::new(None, &[], "0.0.0.0:80".parse().unwrap());
        assert_eq!(everywhere.public().to_string(), "http://127.0.0.1");
    }
}
