//! WebSocket: the entrance for live connections, one task per socket.
//!
//! `upgrade` authenticates the handshake and finds the session; `connection` is the task, which a
//! `member` drives; `frame_writer` sends, `keepalive` finds dead clients, `control_frame_limits` and
//! `byte_limits` bound what comes in, `closing_handshake` ends a socket; `doctor_socket` serves `doctor`.
//! Touches `member`, `wire`, `auth`, `limits`, `session`, `domain`, `clock`, `telemetry`.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

mod byte_limits;
mod closing_handshake;
#[cfg(feature = "conformance")]
mod conformance_echo;
mod connection;
mod control_frame_limits;
mod doctor_socket;
mod frame_writer;
mod keepalive;
mod upgrade;

use crate::member::Shared;

/// `/ws`, and an echo in builds for conformance suites.
pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    let routes = Router::new().route("/ws", get(upgrade::upgrade));
    #[cfg(feature = "conformance")]
    let routes = routes.route("/echo", get(conformance_echo::echo));
    routes.with_state(shared)
}
