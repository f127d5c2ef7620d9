//! Server configuration: the sections `[server]` and `[metrics]`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Origin;
use crate::domain::secret::Secret;
use crate::limits::{Network, TrustedProxies};
use crate::web;

/// The `[server]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The origin that users open, if it is not the listen address.
    pub public_url: Option<Origin>,
    /// The path in front of every route, for a proxy that serves more than this gateway.
    pub base_path: String,
    /// Which pages are served.
    pub pages: web::Pages,
    /// Seconds of silence after which a socket or a stream is pinged.
    pub ping_secs: u32,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<Network>,
    /// Further origins whose pages may call the API.
    pub allowed_origins: Vec<Origin>,
    /// Maximum number of TCP connections.
    pub max_connections: NonZeroU32,
    /// Maximum number of TCP connections from one address.
    pub max_connections_per_address: NonZeroU32,
    /// Deadline for the head of a request, and for an idle connection.
    pub header_timeout_ms: NonZeroU32,
    /// Deadline for the body of a request.
    pub body_timeout_ms: NonZeroU32,
    /// Deadline for the response.
    pub request_timeout_ms: NonZeroU32,
    /// How long open requests may continue once shutdown has begun.
    pub shutdown_grace_secs: u32,
}

impl Config {
    /// Values that cannot work: the key and what is wrong with it.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        if !is_base_path(&self.base_path) {
            complaints.push((
                "server.base_path",
                "expected nothing, or a path like /agents that does not end with a slash".into(),
            ));
        }
        if self.max_connections_per_address > self.max_connections {
            complaints.push((
                "server.max_connections_per_address",
                "is larger than server.max_connections".into(),
            ));
        }
        if !(2..=25).contains(&self.ping_secs) {
            complaints.push((
                "server.ping_secs",
                format!("expected a number from 2 to 25, found {}", self.ping_secs),
            ));
        }
        complaints
    }

    pub(crate) fn proxies(&self) -> TrustedProxies {
        TrustedProxies(self.trusted_proxies.clone())
    }

    pub(super) fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms.get().into())
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms.get().into())
    }
}

fn is_base_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./~".contains(&byte);
    path.is_empty()
        || (path.starts_with('/')
            && !path.ends_with('/')
            && !path.contains("//")
            && !path.split('/').any(|step| step == "." || step == "..")
            && path.bytes().all(is_plain))
}

/// The `[metrics]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsConfig {
    /// A separate listener for `/metrics`, without authentication.
    pub listen: Option<SocketAddr>,
    /// The bearer token with which Prometheus scrapes the main listener.
    pub token: Option<Secret>,
    /// Further names in `Host` that the separate listener answers to.
    pub allowed_hosts: Vec<String>,
}

impl MetricsConfig {
    /// Values that cannot work: the key and what is wrong with it.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let is_short = |token: &Secret| token.expose().len() < 16;
        if self.token.as_ref().is_some_and(is_short) {
            vec![("metrics.token", "expected at least 16 characters".into())]
        } else {
            Vec::new()
        }
    }
}
