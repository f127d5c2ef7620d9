//! `/api/sessions/{id}/stream`: what a WebSocket would send, as server-sent events; and the wait for
//! more of a journal.
//!
//! One task per stream, with the same desk, cursor and stay as a socket. It prepares one page at a
//! time, and the next one only when the reader has taken that: a slow reader holds up nobody but
//! itself. The task is not the one that writes to the line, so it notices the end of somebody's
//! rights also while they read nothing.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::pin;
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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::AppState;
use super::accept::Line;
use super::caller::{Authenticated, Holder, check_token};
use super::error::{ApiError, Problem};
use super::extract::{Named, Query};
use super::sessions::find;
use crate::desk::{self, Cursor, Desk, Ears, Goodbye, Outgoing, Position, Stay, Through};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::{ConnectionId, Epoch, SessionId};
use crate::session::{Access, JoinError, Member, Session};

/// A quiet stream says so at least this often, or a proxy would take it for dead.
const PING: Duration = Duration::from_secs(15);
/// Of every stream.
pub(super) const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_TYPE, "text/event-stream"),
    (CACHE_CONTROL, "no-store"),
    // The line ends with the stream, so that it can be cut without harm to another request.
    (CONNECTION, "close"),
    // nginx does not buffer what says this.
    (HeaderName::from_static("x-accel-buffering"), "no"),
];
const PING_LINE: &[u8] = b": ping\n\n";
/// Text put together before the reader is asked to take it.
const PAGE_BYTES: usize = 60 * 1024;
/// How long a farewell may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest wait for more of a journal.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The answer must be there before the request counts as failed.
const MARGIN: Duration = Duration::from_secs(1);

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
    Holder(caller): Holder,
    Named(id): Named<SessionId>,
    Query(since): Query<Since>,
    Extension(line): Extension<Line>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let principal = caller.principal;
    let session = join(&state, &principal, id).await?;
    let connection = ConnectionId::new();
    let membership = state.sessions.members().join(Member {
        connection,
        session: id,
        user: principal.user,
        username: principal.username.clone(),
        address: caller.address,
        since: state.clock.wall(),
    });
    let desk = Arc::new(Desk::new(
        Arc::clone(&state.reception),
        session,
        connection,
        caller.address,
    ));
    let position = last_event(&headers).or_else(|| {
        let epoch = since.epoch.as_deref();
        since.after.map(|after| Position::new(after, epoch))
    });
    let (cursor, first) = Box::pin(desk::begin(&desk, &principal, position))
        .await
        .ok_or_else(|| ApiError::busy("The session does not answer at the moment; try again."))?;
    // One page under way, one being taken. Full: nothing more is prepared.
    let (pages, taken) = mpsc::channel(1);
    let mut reading = Box::new(Reading {
        stay: Stay::new(&desk, principal, first),
        epoch: desk.session.journal().epoch(),
        desk,
        cursor,
        pages,
    });
    state.reception.connections.spawn(async move {
        let open = reading.desk.reception.metrics.opens(Through::Stream);
        let goodbye = reading.serve(membership.leave().clone()).await;
        drop(membership);
        drop(open);
        if let Some(goodbye) = goodbye {
            reading.end(goodbye, &line).await;
        }
    });
    Ok((HEADERS, body(taken)).into_response())
}

/// The session, if the caller may join it. A foreign one and none at all are the same.
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

/// What the client has seen, as it was told in an event's `id`. What cannot be read is a place in
/// another counting: whoever brings it gets the state.
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

/// A stream that is being read.
struct Reading {
    desk: Arc<Desk>,
    stay: Stay,
    cursor: Cursor,
    epoch: Epoch,
    pages: mpsc::Sender<Bytes>,
}

impl Reading {
    /// Sends until there is a reason to end; `None` if the reader left.
    async fn serve(&mut self, leave: CancellationToken) -> Option<Goodbye> {
        let journal = self.desk.session.journal().clone();
        let mut ears = Ears::new(&self.desk, leave);
        // What happened between the look at the token and now woke nobody.
        if !self.desk.reception.auth.stands(&self.stay.principal) {
            return Some(Goodbye::unauthenticated(&self.desk, Code::AuthFailed));
        }
        if let Some(goodbye) = self.stay.shut_out(&self.desk) {
            return Some(goodbye);
        }
        let quiet = PING.min(self.desk.reception.ping);
        let mut ping = Instant::now() + quiet;
        let mut alarm = pin!(tokio::time::sleep_until(ping));
        loop {
            let due = self.stay.due().min(ping);
            if due != alarm.deadline() {
                alarm.as_mut().reset(due);
            }
            let has_more = self.cursor.sent() < journal.head() && self.stay.may_look();
            let news = self.stay.has_news_of_others(&self.desk);
            let is_ready = has_more || news || !self.stay.waiting.is_empty();
            tokio::select! {
                biased;
                // Rights first: nothing more is sent to somebody who lost them.
                signal = ears.hear() => {
                    if let Some(goodbye) = self.stay.heed(&self.desk, signal) {
                        return Some(goodbye);
                    }
                }
                () = &mut alarm => {
                    let now = Instant::now();
                    if let Some(goodbye) = self.stay.look_at_clock(&self.desk, now) {
                        return Some(goodbye);
                    }
                    if ping <= now {
                        ping = now + quiet;
                        // With a page under way, that is the sign of life.
                        self.pages.try_send(Bytes::from_static(PING_LINE)).ok();
                    }
                }
                () = self.pages.closed() => return None,
                permit = self.pages.reserve(), if is_ready => {
                    let permit = permit.ok()?;
                    if self.stay.waiting.is_empty() {
                        self.stay.hear_of_others(&self.desk);
                    }
                    if self.stay.waiting.is_empty() {
                        let head = journal.head();
                        self.stay.take_from(&self.desk, &mut self.cursor, head).await;
                    }
                    let oldest = self.stay.waiting.iter().find_map(|frame| frame.committed);
                    if let Some((page, frames)) = page(&mut self.stay, self.epoch) {
                        let metrics = &self.desk.reception.metrics;
                        metrics.frames_out.inc_by(frames);
                        permit.send(page);
                        if let Some(committed) = oldest {
                            metrics.delivery.observe(committed.elapsed());
                        }
                        ping = Instant::now() + quiet;
                    }
                }
                // Also while storage does not answer: another look is due by the clock.
                () = journal.grows_beyond(self.cursor.sent()), if !is_ready && self.stay.may_look() => {}
            }
        }
    }

    /// Says why it ends, and sees to it that the line does, whether or not somebody reads.
    async fn end(self: Box<Self>, goodbye: Goodbye, line: &Line) {
        let mut last = String::new();
        if let Some(word) = goodbye.word {
            write_event(&mut last, &word.into(), self.epoch);
        }
        let reason = goodbye.reason;
        let mut told = json!({ "code": reason.code, "reason": reason.reason });
        if let Some(millis) = self.desk.reception.retry_ms(reason) {
            told["retryAfterMs"] = millis.into();
        }
        write!(last, "event: close\ndata: {told}\n\n").expect("a string takes it");
        let farewell = async {
            // A reader that is gone does not need to know.
            drop(self.pages.send(last.into()).await);
            drop(self);
            line.closed().await;
        };
        if tokio::time::timeout(PATIENCE, farewell).await.is_err() {
            line.cut();
        }
    }
}

/// As much of what waits as is worth a write, and how many frames that is.
fn page(stay: &mut Stay, epoch: Epoch) -> Option<(Bytes, u64)> {
    let (mut page, mut frames) = (String::new(), 0);
    while let Some(frame) = stay.waiting.front()
        && (page.is_empty() || page.len() + frame.text.len() < PAGE_BYTES)
        && let Some(frame) = stay.waiting.pop_front()
    {
        frames += 1;
        write_event(&mut page, &frame, epoch);
    }
    (frames > 0).then(|| (page.into(), frames))
}

/// One envelope as one event; it has no line break in it. The id is where its reader stands then.
fn write_event(page: &mut String, frame: &Outgoing, epoch: Epoch) {
    let written = match frame.offset {
        Some(offset) => write!(page, "id: {epoch}:{offset}\ndata: {}\n\n", frame.text),
        None => write!(page, "data: {}\n\n", frame.text),
    };
    written.expect("a string takes it");
}

/// Returns once there is something in the journal after an offset, or the wait is over, or there is
/// nothing to wait for any more; an error if the caller may not have it any more.
pub(super) async fn wait_for_events(
    state: &AppState,
    caller: &Authenticated,
    id: SessionId,
    after: u64,
    wait: Duration,
) -> Result<(), ApiError> {
    let principal = &caller.principal;
    let longest = LONGEST_WAIT.min(state.request_timeout.saturating_sub(MARGIN));
    let until = Instant::now() + wait.min(longest);
    let session = join(state, principal, id).await?;
    let journal = session.journal().clone();
    let reception = Arc::clone(&state.reception);
    let desk = Desk::new(reception, session, ConnectionId::new(), caller.address);
    let mut stay = Stay::new(&desk, principal.clone(), Vec::new());
    let mut ears = Ears::new(&desk, CancellationToken::new());
    // What happened between the first look and now woke nobody.
    check_token(state, principal)?;
    let mut is_over = stay.shut_out(&desk).is_some();
    while !is_over {
        tokio::select! {
            biased;
            signal = ears.hear() => {
                is_over = stay.heed(&desk, signal).is_some();
                // A notice is for those who are connected.
                stay.waiting.clear();
            }
            () = tokio::time::sleep_until(stay.due()) => {
                is_over = stay.look_at_clock(&desk, Instant::now()).is_some();
                stay.waiting.clear();
            }
            () = journal.grows_beyond(after) => is_over = true,
            () = tokio::time::sleep_until(until) => is_over = true,
        }
    }
    check_token(state, principal)?;
    find(state, principal, id, Access::Viewer).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: &str) -> Option<(u64, bool)> {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", id.parse().unwrap());
        let epoch = "epo_0199c0ffee0070008000000000000000".parse().ok();
        last_event(&headers).map(|place| (place.after, place.epoch == epoch))
    }

    #[test]
    fn a_place_is_read_from_the_last_events_id() {
        let known = "epo_0199c0ffee0070008000000000000000";
        assert_eq!(told(&format!("{known}:17")), Some((17, true)));
        assert_eq!(told(&format!("{known}:x")), Some((u64::MAX, true)));
        assert_eq!(told("17").map(|(_, same)| same), Some(false));
        assert_eq!(told("a:b:c").map(|(_, same)| same), Some(false));
        assert_eq!(told(""), None);
    }
}
