//! Shared services: handles, limits and metrics that all members of a gateway share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::close_reason::CloseReason;
use super::cursor::is_foreign;
use crate::auth::Auth;
use crate::bus::Notices;
use crate::clock::Clock;
use crate::domain::id::{SessionId, UserId};
use crate::limits::{self, FrameLimit, KeyedByteBudgets, SessionBudgets};
use crate::session::{Entry, Sessions};
use crate::store::Failures;
use crate::telemetry::{Durations, Remote, Tracer};
use crate::wire::error_details::{Details, Limit};
use crate::wire::inbound::{Rejected, Rules};
use crate::wire::outbound::AckLimits;

/// Levels of nesting in a message.
const MAX_DEPTH: usize = 64;
/// Of an id that a client chooses.
const MAX_ID_BYTES: usize = 128;
/// Unfinished messages of all sockets together. An honest message is a fraction of a megabyte and is
/// complete within a moment.
const MAX_UNFINISHED_BYTES: usize = 128 * 1024 * 1024;
/// The same of one user's sockets, and of sockets that have not authenticated.
const MAX_UNFINISHED_BYTES_PER_USER: usize = 32 * 1024 * 1024;
/// After a restart, clients come back within this, each after its own delay.
const RETRY_SPREAD_MS: u64 = 3_000;

pub(crate) struct Shared {
    pub(crate) auth: Auth,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) clock: Clock,
    pub(crate) limits: limits::Config,
    /// A client that was quiet for this long is pinged.
    pub(crate) ping_interval: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    /// Cancelled when the gateway shuts down.
    pub(crate) drain: CancellationToken,
    pub(crate) connections: TaskTracker,
    /// Bytes of unfinished messages, of each user and of all sockets.
    pub(crate) unfinished: KeyedByteBudgets<Option<UserId>>,
    pub(super) budgets: Arc<SessionBudgets>,
    pub(super) rules: Rules,
    /// Numbers the closes, so that clients come back at different times.
    closes: AtomicU64,
}

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    open: Family<ByEntrance, Gauge>,
    pub(crate) frames_in: Counter,
    pub(crate) frames_out: Counter,
    pub(crate) isolation_violations: Counter,
    /// From the commit of a flush's oldest event to the end of the flush.
    pub(crate) delivery: Durations,
    pub(super) resumes: Family<Verdict, Counter>,
    pub(super) failures: Failures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    WebSocket,
    Sse,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByEntrance {
    door: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Verdict {
    verdict: &'static str,
}

/// Counts one connection as open until dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new(registry: &mut Registry, failures: Failures) -> Self {
        let metrics = Self {
            open: Family::default(),
            frames_in: Counter::default(),
            frames_out: Counter::default(),
            isolation_violations: Counter::default(),
            delivery: Durations::short(),
            resumes: Family::default(),
            failures,
        };
        // Present from the start: an alert needs a series that exists.
        for entrance in [Entrance::WebSocket, Entrance::Sse] {
            drop(metrics.count_open(entrance));
        }
        registry.register(
            "connections_open",
            "Sockets and streams open now, by door",
            metrics.open.clone(),
        );
        registry.register(
            "delivery_seconds",
            "From the commit of the oldest event of a write to the moment it was handed to the kernel",
            metrics.delivery.clone(),
        );
        registry.register(
            "resumes",
            "How connections began: new, replayed, or with a snapshot",
            metrics.resumes.clone(),
        );
        registry.register("ws_frames_in", "Frames received", metrics.frames_in.clone());
        registry.register("ws_frames_out", "Frames sent", metrics.frames_out.clone());
        registry.register(
            "isolation_violations",
            "Events stopped on their way to somebody in another session; never anything but 0",
            metrics.isolation_violations.clone(),
        );
        metrics
    }

    pub(super) fn count_open(&self, entrance: Entrance) -> OpenConnection {
        let door = match entrance {
            Entrance::WebSocket => "ws",
            Entrance::Sse => "sse",
        };
        let gauge = self.open.get_or_create_owned(&ByEntrance { door });
        gauge.inc();
        OpenConnection(gauge)
    }

    pub(super) fn count_resume(&self, verdict: &'static str) {
        self.resumes.get_or_create(&Verdict { verdict }).inc();
    }
}

/// The gateway's parts of [`Shared`].
pub(crate) struct Parts {
    pub(crate) auth: Auth,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) clock: Clock,
    pub(crate) budgets: Arc<SessionBudgets>,
    pub(crate) limits: limits::Config,
    pub(crate) ping_interval: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    pub(crate) drain: CancellationToken,
    pub(crate) connections: TaskTracker,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let rules = Rules {
            message_bytes: parts.limits.message_bytes.get() as usize,
            prompt_chars: parts.limits.prompt_chars.get() as usize,
            depth: MAX_DEPTH,
            id_bytes: MAX_ID_BYTES,
        };
        Self {
            auth: parts.auth,
            sessions: parts.sessions,
            budgets: parts.budgets,
            notices: parts.notices,
            clock: parts.clock,
            rules,
            limits: parts.limits,
            ping_interval: parts.ping_interval,
            metrics: parts.metrics,
            tracer: parts.tracer,
            drain: parts.drain,
            unfinished: KeyedByteBudgets::new(MAX_UNFINISHED_BYTES, MAX_UNFINISHED_BYTES_PER_USER),
            connections: parts.connections,
            closes: AtomicU64::new(0),
        }
    }

    pub(crate) fn client_trace(&self, headers: &HeaderMap) -> Option<Remote> {
        let header = headers.get("traceparent").filter(|_| self.tracer.is_on())?;
        Remote::parse(header.to_str().ok()?)
    }

    /// Drops and counts entries of other sessions.
    pub(crate) fn retain_session(&self, session: SessionId, entries: Vec<Entry>) -> Vec<Entry> {
        retain_session(session, entries, &self.metrics.isolation_violations)
    }

    /// When a client should come back after a restart, spread over the clients.
    pub(crate) fn retry_after_ms(&self, reason: CloseReason) -> Option<u64> {
        let close = self.closes.fetch_add(1, Ordering::Relaxed);
        let spread = close.wrapping_mul(0x9e37_79b9_7f4a_7c15) % RETRY_SPREAD_MS;
        (reason == CloseReason::RESTART).then_some(spread)
    }

    pub(super) fn count_rejected(&self, rejected: &Rejected) {
        match rejected.details.as_deref().and_then(Details::limit) {
            Some(Limit::MessageBytes) => self.budgets.count_refusal(FrameLimit::MessageBytes),
            Some(Limit::PromptChars) => self.budgets.count_refusal(FrameLimit::PromptChars),
            _ => {}
        }
    }

    pub(super) fn ack_limits(&self) -> AckLimits {
        AckLimits {
            messages_per_minute: self.budgets.messages().limit(),
            state_requests_per_minute: self.budgets.states().limit(),
            heartbeats_per_minute: self.limits.heartbeats_per_minute.get(),
            message_bytes: self.rules.message_bytes,
            prompt_chars: self.rules.prompt_chars,
            attachment_bytes: self.limits.attachment_bytes.get(),
            depth: MAX_DEPTH,
            id_bytes: MAX_ID_BYTES,
        }
    }
}

fn retain_session(session: SessionId, mut entries: Vec<Entry>, violations: &Counter) -> Vec<Entry> {
    let before = entries.len();
    entries.retain(|entry| !is_foreign(session, entry));
    violations.inc_by((before - entries.len()) as u64);
    entries
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::event::{Event, Recorded};

    #[test]
    fn an_event_of_another_session_is_in_no_page_and_counted() {
        let (mine, other) = (SessionId::new(), SessionId::new());
        let entry = |session, offset| {
            let (at, title) = (Timestamp::UNIX_EPOCH, "x".to_owned());
            let event = Event::TitleChanged { title };
            Entry::new(session, Recorded { offset, at, event }, 1)
        };
        let violations = Counter::default();
        let page = vec![entry(mine, 1), entry(other, 2), entry(mine, 3)];
        let left = retain_session(mine, page, &violations);
        let offsets: Vec<u64> = left.iter().map(|entry| entry.recorded.offset).collect();
        assert_eq!((offsets, violations.get()), (vec![1, 3], 1));
    }
}
