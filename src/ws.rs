//! The WebSocket door: who may come in, and one task per socket.
//!
//! `upgrade` decides who it is and which session; `connection` is the task, with its cursor into
//! that session's journal; `stack` is what every frame passes through on its way to the session;
//! `budget` is what it may send besides; `close` is every close code, `farewell` how they are said. Touches `wire`, `auth`, `limits`, `session`, `bus`, `domain`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::routing::get;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod budget;
mod close;
mod connection;
mod cursor;
mod desk;
mod ears;
#[cfg(feature = "conformance")]
mod echo;
mod farewell;
mod greeting;
mod meter;
mod pulse;
mod stack;
mod upgrade;
mod visit;

use crate::auth::Auth;
use crate::bus::Notices;
use crate::clock::Clock;
use crate::limits::{self, SessionBudgets};
use crate::session::Sessions;
use crate::wire::inbound::Rules;
use crate::wire::outbound::AckLimits;
use stack::Stack;

/// How deep a message may nest, and how long a client's own ids may be.
const DEPTH: usize = 64;
const ID_BYTES: usize = 128;

/// What every socket needs. Shared by all.
pub(crate) struct Door {
    auth: Auth,
    sessions: Sessions,
    budgets: Arc<SessionBudgets>,
    notices: Notices,
    clock: Clock,
    rules: Rules,
    limits: limits::Config,
    metrics: Metrics,
    /// What every frame passes through.
    stack: Stack,
    /// The gateway stops.
    stop: CancellationToken,
    connections: TaskTracker,
    /// Spreads what should not happen to everybody at once.
    turn: AtomicU64,
}

/// Counters of the door.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    open: Gauge,
    frames_in: Counter,
    frames_out: Counter,
    isolation_violations: Counter,
}

impl Metrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "ws_connections_open",
            "Sockets open now",
            metrics.open.clone(),
        );
        registry.register("ws_frames_in", "Frames received", metrics.frames_in.clone());
        registry.register("ws_frames_out", "Frames sent", metrics.frames_out.clone());
        registry.register(
            "isolation_violations",
            "Events stopped at a socket of another session; never anything but 0",
            metrics.isolation_violations.clone(),
        );
        metrics
    }
}

/// What the gateway brings along to build the door.
pub(crate) struct Parts {
    pub(crate) auth: Auth,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) clock: Clock,
    pub(crate) budgets: Arc<SessionBudgets>,
    pub(crate) limits: limits::Config,
    pub(crate) metrics: Metrics,
    pub(crate) stop: CancellationToken,
    pub(crate) connections: TaskTracker,
}

impl Door {
    fn new(parts: Parts) -> Self {
        let rules = Rules {
            message_bytes: parts.limits.message_bytes.get() as usize,
            prompt_chars: parts.limits.prompt_chars.get() as usize,
            depth: DEPTH,
            id_bytes: ID_BYTES,
        };
        Self {
            auth: parts.auth,
            sessions: parts.sessions,
            budgets: parts.budgets,
            notices: parts.notices,
            clock: parts.clock,
            rules,
            limits: parts.limits,
            metrics: parts.metrics,
            stack: stack::stack(),
            stop: parts.stop,
            connections: parts.connections,
            turn: AtomicU64::new(0),
        }
    }

    /// Between 0 and `most`, another value each time.
    fn spread(&self, most: u64) -> u64 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % most
    }

    fn told_limits(&self) -> AckLimits {
        AckLimits {
            messages_per_minute: self.limits.messages_per_minute.get(),
            state_requests_per_minute: self.limits.state_requests_per_minute.get(),
            heartbeats_per_minute: self.limits.heartbeats_per_minute.get(),
            message_bytes: self.rules.message_bytes,
            prompt_chars: self.rules.prompt_chars,
            depth: DEPTH,
            id_bytes: ID_BYTES,
        }
    }
}

/// The one route of this door, and an echo in builds made to be examined.
pub(crate) fn routes(parts: Parts) -> Router {
    let routes = Router::new().route("/ws", get(upgrade::upgrade));
    #[cfg(feature = "conformance")]
    let routes = routes.route("/echo", get(echo::echo));
    routes.with_state(Arc::new(Door::new(parts)))
}
