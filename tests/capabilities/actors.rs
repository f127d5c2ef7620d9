//! Actors: a gateway process, its proxies and collector, and the clients that talk to it.

pub(crate) mod asyncapi;
mod certificate_authority;
mod codelia_peer;
mod copilot_peer;
mod gateway;
mod http_client;
pub(crate) mod nous_contract;
mod nous_peer;
mod openstarry_peer;
mod proxy;
mod raw_tcp;
mod remoteui_peer;
mod sse_client;
mod trace_collector;
mod ws_client;

pub(crate) use certificate_authority::CertificateAuthority;
pub(crate) use codelia_peer::CodeliaPeer;
pub(crate) use copilot_peer::CopilotPeer;
pub(crate) use gateway::{Gateway, PASSWORD, Settings, Storage, program};
pub(crate) use http_client::{HttpClient, HttpResponse};
pub(crate) use nous_peer::{NousPeer, nous_state};
pub(crate) use openstarry_peer::OpenStarryPeer;
pub(crate) use proxy::{Caddy, Nginx, Ports};
pub(crate) use raw_tcp::RawTcp;
pub(crate) use remoteui_peer::{RemoteUiPeer, remoteui_state};
pub(crate) use sse_client::{SseClient, SseEvent};
pub(crate) use trace_collector::{Collector, spans};
pub(crate) use ws_client::{WsClient, next_json};

/// The size of a load test: the default, or the number in an environment variable.
pub(crate) fn count_from_env(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(number) => number.parse().expect("a number"),
        Err(_) => default,
    }
}
