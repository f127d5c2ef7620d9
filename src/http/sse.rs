//! SSE: `/api/sessions/{id}/stream`, the envelopes of a WebSocket as server-sent events; and the
//! long poll for new events.
//!
//! One task per stream, served by the same `Member` as a socket. It prepares one page, and the next
//! one only when the client has taken that: a slow reader delays only itself.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use tracing::Instrument as _;
use utoipa::IntoParams;

use super::AppState;
use super::accept_loop::HttpConnection;
use super::caller::{AnyToken, Authenticated, check_token, require_access};
use super::error::{ApiError, Problem};
use super::extract::{PathParam, Query};
use crate::domain::account::Principal;
use crate::domain::id::{ConnectionId, Epoch, SessionId};
use crate::domain::shared_text::Text;
use crate::member::{
    Close, Connection, End, Entrance, Joining, Member, Outbox, Outgoing, Position, Shared,
};
use crate::session::{Access, JoinError, Journal, Session};

/// A quiet stream is pinged at least this often, or a proxy would take it for dead.
const MAX_PING_INTERVAL: Duration = Duration::from_secs(15);
pub(super) const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_TYPE, "text/event-stream"),
    (CACHE_CONTROL, "no-store"),
    // The connection ends with the stream, so that it can be cut without harm to another request.
    (CONNECTION, "close"),
    // Turns off nginx's buffering.
    (HeaderName::from_static("x-accel-buffering"), "no"),
];
const PING: &[u8] = b": ping\n\n";
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Of a long poll.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// A long poll is answered this long before the request timeout.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

/// From where to read on.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// The offset of the last event that is known already.
    after: Option<u64>,
    /// Which counting of offsets it belongs to.
    epoch: Option<String>,
}

/// Streams a session as server-sent events: the same envelopes that a WebSocket gets.
#[utoipa::path(
    get, path = "/api/sessions/{id}/stream", tag = "sessions", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        Since,
        ("Last-Event-ID" = Option<String>, Header, description = "`epoch:offset` of the last event; outranks the query")
    ),
    responses(
        (status = 200, description = "Envelopes as events, until one called `close`", body = String, content_type = "text/event-stream"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn stream(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
    PathParam(id): PathParam<SessionId>,
    Query(since): Query<Since>,
    Extension(line): Extension<HttpConnection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = join(&state, &caller.principal, id).await?;
    let epoch = session.journal().epoch();
    let position = last_event(&headers).or_else(|| {
        let epoch = since.epoch.as_deref();
        since.after.map(|after| Position::new(after, epoch))
    });
    let joining = Joining {
        connection: ConnectionId::new(),
        entrance: Entrance::Sse,
        session,
        principal: caller.principal,
        address: caller.address,
        trace: None,
        position,
    };
    let span = joining.span();
    let shared = &state.shared;
    let joined = Box::pin(Member::join(Arc::clone(shared), joining).instrument(span.clone()));
    let member = joined
        .await
        .ok_or_else(|| ApiError::busy("The session does not answer at the moment; try again."))?;
    let (stream, taken) = EventStream::new(Arc::clone(shared), epoch);
    shared
        .connections
        .spawn(Box::pin(stream.run(member, line)).instrument(span));
    Ok((HEADERS, body(taken)).into_response())
}

/// The session, if the caller may join it. Another user's and none at all give the same error.
pub(super) async fn join(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
) -> Result<Session, ApiError> {
    match Box::pin(state.sessions.join(principal, id)).await {
        Ok(session) => Ok(session),
        Err(JoinError::Store(error)) => Err(error.into()),
        Err(_) => Err(ApiError::not_found("There is no such session.")),
    }
}

/// The client's position, as the `id` of its last event. One that cannot be parsed counts as one of
/// another epoch: its client gets the state.
fn last_event(headers: &HeaderMap) -> Option<Position> {
    let id = headers.get("last-event-id")?.to_str().unwrap_or("?");
    if id.is_empty() {
        return None;
    }
    let (epoch, after) = id.rsplit_once(':').unwrap_or((id, "0"));
    let after = after.parse().unwrap_or(u64::MAX);
    Some(Position::new(after, Some(epoch)))
}

fn body(mut pages: mpsc::Receiver<Bytes>) -> Body {
    let pages = futures_util::stream::poll_fn(move |context| {
        let page = pages.poll_recv(context);
        page.map(|page| page.map(Ok::<_, Infallible>))
    });
    Body::from_stream(pages)
}

/// The pages that the body of a stream takes, one at a time: one is being taken, one waits.
struct Pages {
    sender: mpsc::Sender<Bytes>,
    /// A page waits. Changes only here, never while the client takes the page: the stream's loop looks at
    /// it twice, and would wait neither for the client nor for the journal if it changed in between.
    is_full: bool,
}

impl Pages {
    fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, taken) = mpsc::channel(1);
        let is_full = false;
        (Self { sender, is_full }, taken)
    }

    /// Hands over a page; drops it if one waits already.
    fn put(&mut self, page: Bytes) -> Result<(), End> {
        match self.sender.try_send(page) {
            Err(TrySendError::Closed(_)) => Err(End::Gone),
            Ok(()) | Err(TrySendError::Full(_)) => {
                self.is_full = true;
                Ok(())
            }
        }
    }

    /// Returns when the waiting page was taken; pending while none waits.
    async fn taken(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            () = self.sender.closed() => Err(End::Gone),
            permit = self.sender.reserve(), if self.is_full => {
                drop(permit);
                self.is_full = false;
                Ok(())
            }
        }
    }
}

/// The body of a stream. Its task is not the one that writes to the socket, so it sees revoked rights
/// also while the client reads nothing.
struct EventStream {
    shared: Arc<Shared>,
    epoch: Epoch,
    pages: Pages,
    ping_interval: Duration,
    ping_due: Instant,
}

impl EventStream {
    fn new(shared: Arc<Shared>, epoch: Epoch) -> (Self, mpsc::Receiver<Bytes>) {
        let (pages, taken) = Pages::new();
        let ping_interval = MAX_PING_INTERVAL.min(shared.ping_interval);
        let stream = Self {
            shared,
            epoch,
            pages,
            ping_interval,
            ping_due: Instant::now() + ping_interval,
        };
        (stream, taken)
    }

    async fn run(mut self, mut member: Box<Member>, line: HttpConnection) {
        let end = member.serve(&mut self).await;
        drop(member);
        if let End::Close(close) = end {
            self.close(close, &line).await;
        }
    }

    /// Sends the reason and ends the HTTP connection, whether or not the client reads.
    async fn close(self, close: Close, line: &HttpConnection) {
        let mut last = String::new();
        if let Some(message) = close.last_message {
            write_event(&mut last, &message.into(), self.epoch);
        }
        let reason = close.reason;
        let mut data = json!({ "code": reason.code, "reason": reason.reason });
        if let Some(millis) = self.shared.retry_after_ms(reason) {
            data["retryAfterMs"] = millis.into();
        }
        write!(last, "event: close\ndata: {data}\n\n").expect("a string takes it");
        let closed = async {
            // Fails only if the client is gone.
            drop(self.pages.sender.send(last.into()).await);
            drop(self);
            line.closed().await;
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            line.abort();
        }
    }
}

impl Connection for EventStream {
    fn can_write(&self) -> bool {
        !self.pages.is_full
    }

    async fn write(&mut self, outbox: &mut Outbox) -> Result<bool, End> {
        let (mut page, mut frames, mut oldest) = (String::new(), 0, None);
        while let Some(frame) = outbox.pop_for_batch(page.len()) {
            frames += 1;
            oldest = oldest.or(frame.committed);
            write_event(&mut page, &frame, self.epoch);
        }
        if frames == 0 {
            return Ok(false);
        }
        let metrics = &self.shared.metrics;
        metrics.frames_out.inc_by(frames);
        // There is room: this is the only sender.
        self.pages.put(page.into())?;
        if let Some(committed) = oldest {
            metrics.delivery.observe(committed.elapsed());
        }
        self.ping_due = Instant::now() + self.ping_interval;
        Ok(true)
    }

    /// Cancel-safe: a permit is given back at once.
    async fn next(&mut self, _can_read: bool) -> Result<Option<Text>, End> {
        self.pages.taken().await.map(|()| None)
    }

    fn due(&self) -> Instant {
        self.ping_due
    }

    async fn keep_alive(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if self.ping_due <= now {
            self.ping_due = now + self.ping_interval;
            // A page that waits is a sign of life itself.
            self.pages.put(Bytes::from_static(PING))?;
        }
        Ok(())
    }
}

/// One envelope as one event; it has no line break in it. The id is the client's position after it.
fn write_event(page: &mut String, frame: &Outgoing, epoch: Epoch) {
    let written = match frame.offset {
        Some(offset) => write!(page, "id: {epoch}:{offset}\ndata: {}\n\n", &*frame.text),
        None => write!(page, "data: {}\n\n", &*frame.text),
    };
    written.expect("a string takes it");
}

/// A request that waits for events: nothing is written, it ends with the first event or in time.
struct LongPoll {
    journal: Journal,
    after: u64,
    until: Instant,
}

impl Connection for LongPoll {
    fn can_write(&self) -> bool {
        false
    }

    async fn write(&mut self, _outbox: &mut Outbox) -> Result<bool, End> {
        Ok(false)
    }

    async fn next(&mut self, _can_read: bool) -> Result<Option<Text>, End> {
        self.journal.wait_beyond(self.after).await;
        Err(End::Gone)
    }

    fn due(&self) -> Instant {
        self.until
    }

    async fn keep_alive(&mut self) -> Result<(), End> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(End::Gone)
    }
}

/// Returns once the journal has an event after an offset, the wait is over, or the session is; an
/// error if the caller lost their rights meanwhile.
pub(super) async fn wait_for_events(
    state: &AppState,
    caller: &Authenticated,
    id: SessionId,
    after: u64,
    wait: Duration,
) -> Result<(), ApiError> {
    let principal = &caller.principal;
    let longest = MAX_WAIT.min(state.request_timeout.saturating_sub(ANSWER_MARGIN));
    let until = Instant::now() + wait.min(longest);
    let session = join(state, principal, id).await?;
    let mut poll = LongPoll {
        journal: session.journal().clone(),
        after,
        until,
    };
    let (shared, address) = (Arc::clone(&state.shared), caller.address);
    let mut member = Member::unregistered(shared, session, principal.clone(), address, after);
    Box::pin(member.serve(&mut poll)).await;
    check_token(state, principal)?;
    require_access(state, principal, id, Access::Viewer)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn position(id: &str) -> Option<(u64, bool)> {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", id.parse().unwrap());
        let epoch = "epo_0199c0ffee0070008000000000000000".parse().ok();
        last_event(&headers).map(|position| (position.after, position.epoch == epoch))
    }

    #[test]
    fn a_page_taken_between_two_looks_still_wakes_the_stream() {
        let (mut pages, mut taken) = Pages::new();
        assert!(pages.put(Bytes::from_static(b"one")).is_ok());
        assert!(
            pages.is_full,
            "the loop waits for the client, not for the journal"
        );
        taken.try_recv().unwrap();
        assert!(pages.is_full, "and must be told");
        let woken = pages.taken().now_or_never();
        assert!(matches!(woken, Some(Ok(()))));
        assert!(!pages.is_full);
        assert!(pages.taken().now_or_never().is_none());
        drop(taken);
        assert!(pages.put(Bytes::new()).is_err());
    }

    #[test]
    fn the_position_is_parsed_from_the_last_events_id() {
        let known = "epo_0199c0ffee0070008000000000000000";
        assert_eq!(position(&format!("{known}:17")), Some((17, true)));
        assert_eq!(position(&format!("{known}:x")), Some((u64::MAX, true)));
        assert_eq!(position("17").map(|(_, same)| same), Some(false));
        assert_eq!(position("a:b:c").map(|(_, same)| same), Some(false));
        assert_eq!(position(""), None);
    }
}
