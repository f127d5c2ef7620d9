//! What every desk needs, shared by all of them.

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

use super::close::{CloseReason, SPREAD_MS};
use super::cursor::is_foreign;
use super::stack::{self, Stack};
use crate::auth::Auth;
use crate::bus::Notices;
use crate::clock::Clock;
use crate::domain::id::SessionId;
use crate::limits::{self, Aside, Pool, SessionBudgets};
use crate::session::{Entry, Sessions};
use crate::store::Failures;
use crate::telemetry::{Durations, Remote, Tracer};
use crate::wire::details::{Details, Limit};
use crate::wire::inbound::{Rejected, Rules};
use crate::wire::outbound::AckLimits;

/// How deep a message may nest, and how long a client's own ids may be.
const DEPTH: usize = 64;
const ID_BYTES: usize = 128;
/// What all sockets may hold together of messages that have not come to their end. An honest message
/// is a fraction of a megabyte and is there within a moment.
const UNFINISHED_BYTES: u64 = 128 * 1024 * 1024;

/// What every desk needs. Shared by all.
pub(crate) struct Reception {
    pub(crate) auth: Auth,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) clock: Clock,
    pub(crate) limits: limits::Config,
    /// After how much silence the other end is given, and asked for, a sign of life.
    pub(crate) ping: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    /// The gateway stops.
    pub(crate) stop: CancellationToken,
    pub(crate) connections: TaskTracker,
    /// What all sockets hold of messages that have not come to their end.
    pub(crate) unfinished: Pool,
    pub(super) budgets: Arc<SessionBudgets>,
    pub(super) rules: Rules,
    /// What every message passes through.
    pub(super) stack: Stack,
    /// Spreads what should not happen to everybody at once.
    turn: AtomicU64,
}

/// Counters of all connections.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    open: Family<ByDoor, Gauge>,
    pub(crate) frames_in: Counter,
    pub(crate) frames_out: Counter,
    pub(crate) isolation_violations: Counter,
    /// From the commit of the oldest event of a flush to its end.
    pub(crate) delivery: Durations,
    pub(super) resumes: Family<Verdict, Counter>,
    pub(super) failures: Failures,
}

/// Which door a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// A WebSocket.
    Socket,
    /// A stream of server-sent events.
    Stream,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByDoor {
    door: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Verdict {
    verdict: &'static str,
}

/// A connection that counts as open, until dropped.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Drop for Counted {
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
        // There from the start: what was never seen cannot be alerted on.
        for through in [Through::Socket, Through::Stream] {
            drop(metrics.opens(through));
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

    /// A connection opens.
    pub(crate) fn opens(&self, through: Through) -> Counted {
        let door = match through {
            Through::Socket => "ws",
            Through::Stream => "sse",
        };
        let gauge = self.open.get_or_create_owned(&ByDoor { door });
        gauge.inc();
        Counted(gauge)
    }

    /// How a connection begins.
    pub(super) fn begins(&self, verdict: &'static str) {
        self.resumes.get_or_create(&Verdict { verdict }).inc();
    }
}

/// What the gateway brings along to build it.
pub(crate) struct Parts {
    pub(crate) auth: Auth,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) clock: Clock,
    pub(crate) budgets: Arc<SessionBudgets>,
    pub(crate) limits: limits::Config,
    pub(crate) ping: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    pub(crate) stop: CancellationToken,
    pub(crate) connections: TaskTracker,
}

impl Reception {
    pub(crate) fn new(parts: Parts) -> Self {
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
            ping: parts.ping,
            metrics: parts.metrics,
            tracer: parts.tracer,
            stack: stack::stack(),
            stop: parts.stop,
            unfinished: Pool::new(UNFINISHED_BYTES),
            connections: parts.connections,
            turn: AtomicU64::new(0),
        }
    }

    /// The trace that a request belongs to, if it says so and anybody wants to know.
    pub(crate) fn remote(&self, headers: &HeaderMap) -> Option<Remote> {
        let header = headers.get("traceparent").filter(|_| self.tracer.is_on())?;
        Remote::parse(header.to_str().ok()?)
    }

    /// Those of the entries that are of this session; any other is counted and goes nowhere.
    pub(crate) fn own(&self, session: SessionId, entries: Vec<Entry>) -> Vec<Entry> {
        own(session, entries, &self.metrics.isolation_violations)
    }

    /// After how many milliseconds to come back, another value each time; nothing if that is not
    /// for the gateway to say.
    pub(crate) fn retry_ms(&self, reason: CloseReason) -> Option<u64> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let spread = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % SPREAD_MS;
        (reason == CloseReason::RESTART).then_some(spread)
    }

    /// Counts what was refused because of its size.
    pub(super) fn tally(&self, rejected: &Rejected) {
        match rejected.details.as_deref().and_then(Details::limit) {
            Some(Limit::MessageBytes) => self.budgets.refused_aside(Aside::MessageBytes),
            Some(Limit::PromptChars) => self.budgets.refused_aside(Aside::PromptChars),
            _ => {}
        }
    }

    pub(super) fn told_limits(&self) -> AckLimits {
        AckLimits {
            messages_per_minute: self.budgets.messages().limit(),
            state_requests_per_minute: self.budgets.states().limit(),
            heartbeats_per_minute: self.limits.heartbeats_per_minute.get(),
            message_bytes: self.rules.message_bytes,
            prompt_chars: self.rules.prompt_chars,
            attachment_bytes: self.limits.attachment_bytes.get(),
            depth: DEPTH,
            id_bytes: ID_BYTES,
        }
    }
}

fn own(session: SessionId, mut entries: Vec<Entry>, violations: &Counter) -> Vec<Entry> {
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
        let left = own(mine, page, &violations);
        let offsets: Vec<u64> = left.iter().map(|entry| entry.recorded.offset).collect();
        assert_eq!((offsets, violations.get()), (vec![1, 3], 1));
    }
}
