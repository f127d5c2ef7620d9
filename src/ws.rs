//! The WebSocket door: who may come in, and one task per socket.
//!
//! `upgrade` decides who it is and which session; `connection` is the task, with its cursor into
//! that session's journal and its `desk` for what comes in; `freight` is what it sends;
//! `budget` is what may come in besides; `farewell` is how it ends; `probe` is a socket for `doctor`.
//! Touches `desk`, `wire`, `auth`, `limits`, `session`, `domain`, `clock`, `telemetry`.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

mod budget;
mod connection;
#[cfg(feature = "conformance")]
mod echo;
mod farewell;
mod freight;
mod meter;
mod probe;
mod pulse;
mod upgrade;
mod visit;

use crate::desk::Reception;

/// The one route of this door, and an echo in builds made to be examined.
pub(crate) fn routes(reception: Arc<Reception>) -> Router {
    let routes = Router::new().route("/ws", get(upgrade::upgrade));
    #[cfg(feature = "conformance")]
    let routes = routes.route("/echo", get(echo::echo));
    routes.with_state(reception)
}
