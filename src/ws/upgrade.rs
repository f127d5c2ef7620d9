//! From an HTTP request to a socket: who is it, and which session?
//!
//! Programs send the token in `Authorization` and read a refusal as an HTTP status. Browsers cannot
//! send that header nor read a status: they offer the token as a subprotocol or bring a ticket, and a
//! refusal is told on the socket.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::budget::Budget;
use super::connection::{Connection, Socket};
use super::freight::Freight;
use super::meter::{Meter, Written};
use super::probe;
use crate::auth::{TokenError, bearer};
use crate::desk::{CloseReason, Position, Reception};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::SessionId;
use crate::limits::{Admission, ClientAddress};
use crate::session::{JoinError, Session};
use crate::telemetry::Remote;

const PROTOCOL: &str = "switchboard.v1";
const BEARER: &str = "bearer.";
/// Between the answer and the first byte of the socket.
const DEADLINE: Duration = Duration::from_secs(8);
/// Above the limit a message is answered with an error; above this it is not even read.
const HARD_CAP_BYTES: usize = 4 * 1024 * 1024;
/// What a message may take with all its frames, however small they are.
const RAW_BYTES: u64 = 2 * HARD_CAP_BYTES as u64 + 64 * 1024;

/// Where a client wants to be.
#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    session: Option<String>,
    after: Option<u64>,
    epoch: Option<String>,
    agent: Option<String>,
    ticket: Option<String>,
}

/// How somebody came, and what came of it.
enum Credentials {
    /// In the header: a refusal is an HTTP status.
    Header(Result<Principal, TokenError>),
    /// In a way that a browser has: a refusal is told on the socket.
    Browser(Result<Principal, TokenError>),
    None,
}

/// `GET /ws`
pub(super) async fn upgrade(
    State(door): State<Arc<Reception>>,
    wish: Result<Query<Wish>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    let Ok(Query(wish)) = wish else {
        return refuse(StatusCode::BAD_REQUEST, Code::ValidationError);
    };
    let Some(key) = websocket_key(request.headers()) else {
        return no_handshake();
    };
    let offered = offered_protocols(request.headers());
    let principal = match credentials(&door, request.headers(), &offered, &wish).await {
        Credentials::Header(Err(error)) => {
            // No token; perhaps the pass of a doctor.
            if bearer(request.headers()).is_some_and(|pass| door.auth.accepts_probe(pass)) {
                let serving = Arc::clone(&door);
                return accept(&door, request, &key, &[], |upgrading| {
                    probe::serve(serving, upgrading)
                });
            }
            return refuse(StatusCode::UNAUTHORIZED, code_of(error));
        }
        Credentials::None => return refuse(StatusCode::UNAUTHORIZED, Code::AuthFailed),
        Credentials::Header(proved) | Credentials::Browser(proved) => proved,
    };
    let address = request.extensions().get::<ClientAddress>().copied();
    let remote = door.remote(request.headers());
    let serving = Arc::clone(&door);
    accept(&door, request, &key, &offered, |upgrading| {
        serve(serving, upgrading, principal, wish, (address, remote))
    })
}

/// Answers a good handshake, and serves what comes of it in a task of its own.
pub(super) fn accept<Serving>(
    door: &Reception,
    mut request: Request,
    key: &str,
    offered: &[String],
    serve: impl FnOnce(OnUpgrade) -> Serving,
) -> Response
where
    Serving: Future<Output = ()> + Send + 'static,
{
    let Some(upgrading) = request.extensions_mut().remove::<OnUpgrade>() else {
        return no_handshake();
    };
    let admission = request.extensions().get::<Arc<Admission>>().cloned();
    // Boxed: a future that is handed into another one takes its room twice there.
    let serving = Box::pin(serve(upgrading));
    door.connections.spawn(async move {
        serving.await;
        // The place among the open connections is kept until here.
        drop(admission);
    });
    accepted(key, offered)
}

/// The answer to a request that is no handshake.
pub(super) fn no_handshake() -> Response {
    let version = [(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))];
    let refusal = refuse(StatusCode::UPGRADE_REQUIRED, Code::InvalidMessage);
    (version, refusal).into_response()
}

/// The status, and the code that the body will carry.
fn refuse(status: StatusCode, code: Code) -> Response {
    let mut response = status.into_response();
    response.extensions_mut().insert(code);
    response
}

fn code_of(error: TokenError) -> Code {
    match error {
        TokenError::Expired => Code::SessionExpired,
        TokenError::Invalid => Code::AuthFailed,
    }
}

/// The key of a well-formed handshake.
pub(super) fn websocket_key(headers: &HeaderMap) -> Option<String> {
    let has = |name: HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    let whole = has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && has(SEC_WEBSOCKET_VERSION, "13")
        && key.len() == 24;
    whole.then(|| key.to_owned())
}

fn offered_protocols(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|protocol| protocol.trim().to_owned())
        .collect()
}

async fn credentials(
    door: &Reception,
    headers: &HeaderMap,
    offered: &[String],
    wish: &Wish,
) -> Credentials {
    if headers.contains_key(AUTHORIZATION) {
        let token = bearer(headers).ok_or(TokenError::Invalid);
        return Credentials::Header(token.and_then(|token| door.auth.verify(token)));
    }
    if let Some(token) = offered.iter().find_map(|offer| offer.strip_prefix(BEARER)) {
        return Credentials::Browser(door.auth.verify(token));
    }
    match &wish.ticket {
        None => Credentials::None,
        Some(ticket) => match door.auth.redeem_ticket(ticket).await {
            Ok(found) => {
                let standing = found.filter(|principal| door.auth.stands(principal));
                Credentials::Browser(standing.ok_or(TokenError::Invalid))
            }
            Err(error) => {
                tracing::warn!(%error, "a ticket could not be looked up");
                Credentials::Browser(Err(TokenError::Invalid))
            }
        },
    }
}

/// 101, with the one protocol that we speak if it was offered; never with a token.
fn accepted(key: &str, offered: &[String]) -> Response {
    let accept = derive_accept_key(key.as_bytes());
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if offered.iter().any(|protocol| protocol == PROTOCOL) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    response
}

/// The task of one socket, from its first byte to its last.
async fn serve(
    door: Arc<Reception>,
    upgrading: OnUpgrade,
    principal: Result<Principal, TokenError>,
    wish: Wish,
    (address, remote): (Option<ClientAddress>, Option<Remote>),
) {
    let Some((socket, written, budget)) = Box::pin(open(&door, upgrading)).await else {
        return;
    };
    let connection = Connection::new(Arc::clone(&door), socket, written, budget);
    let principal = match principal {
        Ok(principal) => principal,
        Err(error) => {
            let message = "The token is not valid; log in again.";
            let reason = CloseReason::UNAUTHENTICATED;
            return Box::pin(connection.turn_away(code_of(error), message, reason)).await;
        }
    };
    match Box::pin(find(&door, &principal, &wish)).await {
        Ok(session) => {
            let epoch = wish.epoch.as_deref();
            let position = wish.after.map(|after| Position::new(after, epoch));
            let address = address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip);
            Box::pin(connection.run(principal, session, position, (address, remote))).await;
        }
        Err(JoinError::Store(error)) => {
            tracing::warn!(%error, "a session could not be looked up");
            let message = "The database is unavailable at the moment.";
            let (code, reason) = (Code::StorageUnavailable, CloseReason::RESTART);
            Box::pin(connection.turn_away(code, message, reason)).await;
        }
        Err(error) => {
            let message = error.to_string();
            let (code, reason) = (Code::NotFound, CloseReason::NO_SUCH_SESSION);
            Box::pin(connection.turn_away(code, &message, reason)).await;
        }
    }
}

/// The socket behind a handshake.
pub(super) async fn open(
    door: &Reception,
    upgrading: OnUpgrade,
) -> Option<(Socket, Written, Budget)> {
    let upgraded = match tokio::time::timeout(DEADLINE, upgrading).await {
        Ok(Ok(upgraded)) => upgraded,
        Ok(Err(error)) => {
            tracing::debug!(%error, "an upgrade did not happen");
            return None;
        }
        Err(_) => {
            tracing::debug!("an upgrade took too long");
            return None;
        }
    };
    // What is behind the door is always a TCP connection.
    let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
        return None;
    };
    let stream = parts.io.into_inner();
    // A reader that is slow is not gone: the pulse of the connection tells them apart, the kernel's
    // timer does not. It goes on as long as the window is smaller than what waits at the front.
    if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(None) {
        tracing::debug!(%error, "a timeout could not be lifted");
    }
    let pool = door.unfinished.clone();
    let (stream, written, allowance) = Meter::new(stream, RAW_BYTES, pool);
    let (stream, first) = (Freight::new(stream), parts.read_buf.to_vec());
    let socket =
        WebSocketStream::from_partially_read(stream, first, Role::Server, Some(config())).await;
    Some((socket, written, Budget::new(allowance, door.clock.clone())))
}

/// The session in the query, else the one the token is bound to, else a new one.
async fn find(door: &Reception, principal: &Principal, wish: &Wish) -> Result<Session, JoinError> {
    let wanted = match &wish.session {
        Some(text) => Some(text.parse::<SessionId>().map_err(|_| JoinError::NotFound)?),
        None => principal.session,
    };
    match wanted {
        Some(id) => door.sessions.join(principal, id).await,
        None => door.sessions.draft(principal, wish.agent.as_deref(), None),
    }
}

/// Small while idle: an unused connection costs a few KiB.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(1024)
        .write_buffer_size(64 * 1024)
        .max_write_buffer_size(2 * HARD_CAP_BYTES)
        .max_message_size(Some(HARD_CAP_BYTES))
        .max_frame_size(Some(HARD_CAP_BYTES))
}
