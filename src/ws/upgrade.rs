//! Upgrade: authenticates a handshake, finds its session and starts the socket's task.
//!
//! Programs send the token in `Authorization` and read a refusal as an HTTP status. Browsers can
//! neither send that header nor read a status: they offer the token as a subprotocol or bring a
//! ticket, and a refusal is sent on the socket.

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
use tracing::Instrument as _;

use super::byte_limits::Meter;
use super::connection::{Socket, WebSocket};
use super::control_frame_limits::ControlFrameLimits;
use super::doctor_socket;
use super::frame_writer::FrameWriter;
use crate::auth::{TokenError, bearer};
use crate::domain::account::Principal;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::{SessionId, UserId};
use crate::limits::{ClientAddress, ConnectionPermit};
use crate::member::{CloseReason, Entrance, Joining, Position, Shared};
use crate::session::{JoinError, Session};
use crate::telemetry::Remote;

const PROTOCOL: &str = "switchboard.v1";
const BEARER: &str = "bearer.";
/// Between the HTTP answer and the socket.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(8);
/// A message above the configured limit is answered with an error; above this it is not even read.
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Of a message with the headers of all its fragments, however small they are.
const MAX_RAW_BYTES: u64 = 2 * MAX_FRAME_BYTES as u64 + 64 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct Params {
    session: Option<String>,
    after: Option<u64>,
    epoch: Option<String>,
    agent: Option<String>,
    ticket: Option<String>,
}

enum Credentials {
    /// In `Authorization`: a refusal is an HTTP status.
    Header(Result<Principal, TokenError>),
    /// By subprotocol or ticket: a refusal is sent on the socket.
    Browser(Result<Principal, TokenError>),
    None,
}

pub(super) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    params: Result<Query<Params>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    let Ok(Query(params)) = params else {
        return refuse(StatusCode::BAD_REQUEST, ErrorCode::ValidationError);
    };
    let Some(key) = websocket_key(request.headers()) else {
        return upgrade_required();
    };
    let offered = offered_protocols(request.headers());
    let principal = match credentials(&shared, request.headers(), &offered, &params).await {
        Credentials::Header(Err(error)) => {
            // No token; perhaps the pass of `switchboard doctor`.
            if bearer(request.headers()).is_some_and(|pass| shared.auth.accepts_doctor_pass(pass)) {
                let serving = Arc::clone(&shared);
                return accept(&shared, request, &key, &[], |upgrading| {
                    doctor_socket::serve(serving, upgrading)
                });
            }
            return refuse(StatusCode::UNAUTHORIZED, code_of(error));
        }
        Credentials::None => return refuse(StatusCode::UNAUTHORIZED, ErrorCode::AuthFailed),
        Credentials::Header(proved) | Credentials::Browser(proved) => proved,
    };
    let address = request.extensions().get::<ClientAddress>().copied();
    let trace = shared.client_trace(request.headers());
    let serving = Arc::clone(&shared);
    accept(&shared, request, &key, &offered, |upgrading| {
        serve(serving, upgrading, principal, params, (address, trace))
    })
}

/// Answers a well-formed handshake, and serves the socket in a task of its own.
pub(super) fn accept<Serving>(
    shared: &Shared,
    mut request: Request,
    key: &str,
    offered: &[String],
    serve: impl FnOnce(OnUpgrade) -> Serving,
) -> Response
where
    Serving: Future<Output = ()> + Send + 'static,
{
    let Some(upgrading) = request.extensions_mut().remove::<OnUpgrade>() else {
        return upgrade_required();
    };
    let permit = request.extensions().get::<Arc<ConnectionPermit>>().cloned();
    // Boxed: a future moved into another one takes its size twice there.
    let serving = Box::pin(serve(upgrading));
    shared.connections.spawn(async move {
        serving.await;
        // The connection counts against the caps until here.
        drop(permit);
    });
    accepted(key, offered)
}

/// The answer to a request that is no WebSocket handshake.
pub(super) fn upgrade_required() -> Response {
    let version = [(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))];
    let refusal = refuse(StatusCode::UPGRADE_REQUIRED, ErrorCode::InvalidMessage);
    (version, refusal).into_response()
}

fn refuse(status: StatusCode, code: ErrorCode) -> Response {
    let mut response = status.into_response();
    response.extensions_mut().insert(code);
    response
}

fn code_of(error: TokenError) -> ErrorCode {
    match error {
        TokenError::Expired => ErrorCode::SessionExpired,
        TokenError::Invalid => ErrorCode::AuthFailed,
    }
}

pub(super) fn websocket_key(headers: &HeaderMap) -> Option<String> {
    let has = |name: HeaderName, wanted: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|token| token.trim().eq_ignore_ascii_case(wanted))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    let is_complete = has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && has(SEC_WEBSOCKET_VERSION, "13")
        && key.len() == 24;
    is_complete.then(|| key.to_owned())
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
    shared: &Shared,
    headers: &HeaderMap,
    offered: &[String],
    params: &Params,
) -> Credentials {
    if headers.contains_key(AUTHORIZATION) {
        let token = bearer(headers).ok_or(TokenError::Invalid);
        return Credentials::Header(token.and_then(|token| shared.auth.verify(token)));
    }
    if let Some(token) = offered.iter().find_map(|offer| offer.strip_prefix(BEARER)) {
        return Credentials::Browser(shared.auth.verify(token));
    }
    match &params.ticket {
        None => Credentials::None,
        Some(ticket) => match shared.auth.redeem_ticket(ticket).await {
            Ok(found) => {
                let valid = found.filter(|principal| shared.auth.is_valid(principal));
                Credentials::Browser(valid.ok_or(TokenError::Invalid))
            }
            Err(error) => {
                tracing::warn!(%error, "a WebSocket ticket cannot be looked up");
                Credentials::Browser(Err(TokenError::Invalid))
            }
        },
    }
}

/// 101, with our protocol if it was offered; never with the token.
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
    shared: Arc<Shared>,
    upgrading: OnUpgrade,
    principal: Result<Principal, TokenError>,
    params: Params,
    (address, trace): (Option<ClientAddress>, Option<Remote>),
) {
    let user = principal.as_ref().ok().map(|principal| principal.user);
    let Some((socket, limits)) = Box::pin(open(&shared, upgrading, user)).await else {
        return;
    };
    let socket = WebSocket::new(Arc::clone(&shared), socket, limits);
    let principal = match principal {
        Ok(principal) => principal,
        Err(error) => {
            let message = "The token is not valid; log in again.";
            let reason = CloseReason::UNAUTHENTICATED;
            return Box::pin(socket.refuse(code_of(error), message, reason)).await;
        }
    };
    match Box::pin(find(&shared, &principal, &params)).await {
        Ok(session) => {
            let epoch = params.epoch.as_deref();
            let joining = Joining {
                connection: socket.id,
                entrance: Entrance::WebSocket,
                session,
                principal,
                address: address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip),
                trace,
                position: params.after.map(|after| Position::new(after, epoch)),
            };
            let span = joining.span();
            Box::pin(socket.run(joining).instrument(span)).await;
        }
        Err(JoinError::Store(error)) => {
            tracing::warn!(
                %error,
                connection.id = %socket.id,
                user.id = %principal.user,
                "a connection cannot join: its session cannot be looked up"
            );
            let message = "The database is unavailable at the moment.";
            let (code, reason) = (ErrorCode::StorageUnavailable, CloseReason::RESTART);
            Box::pin(socket.refuse(code, message, reason)).await;
        }
        Err(error) => {
            let message = error.to_string();
            let (code, reason) = (ErrorCode::NotFound, CloseReason::NO_SUCH_SESSION);
            Box::pin(socket.refuse(code, &message, reason)).await;
        }
    }
}

/// The socket of a handshake.
pub(super) async fn open(
    shared: &Shared,
    upgrading: OnUpgrade,
    user: Option<UserId>,
) -> Option<(Socket, ControlFrameLimits)> {
    let upgraded = match tokio::time::timeout(UPGRADE_TIMEOUT, upgrading).await {
        Ok(Ok(upgraded)) => upgraded,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a WebSocket upgrade failed");
            return None;
        }
        Err(_) => {
            tracing::debug!("a WebSocket upgrade timed out");
            return None;
        }
    };
    // The listeners accept nothing but TCP.
    let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
        return None;
    };
    let stream = parts.io.into_inner();
    // The kernel's timer does not tell a slow reader from a dead one: it runs as long as the window is
    // smaller than what waits at the front. The keepalive does.
    if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(None) {
        tracing::debug!(%error, "the TCP user timeout of a socket cannot be lifted");
    }
    let pool = shared.unfinished.of(user);
    let (stream, allowance) = Meter::new(stream, MAX_RAW_BYTES, pool);
    let (stream, first) = (FrameWriter::new(stream), parts.read_buf.to_vec());
    let socket =
        WebSocketStream::from_partially_read(stream, first, Role::Server, Some(config())).await;
    Some((
        socket,
        ControlFrameLimits::new(allowance, shared.clock.clone()),
    ))
}

/// The session in the query, else the one the token is bound to, else a new one.
async fn find(
    shared: &Shared,
    principal: &Principal,
    params: &Params,
) -> Result<Session, JoinError> {
    let wanted = match &params.session {
        Some(text) => Some(text.parse::<SessionId>().map_err(|_| JoinError::NotFound)?),
        None => principal.session,
    };
    match wanted {
        Some(id) => shared.sessions.join(principal, id).await,
        None => shared
            .sessions
            .draft(principal, params.agent.as_deref(), None),
    }
}

/// Small buffers: an idle connection costs a few KiB.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(1024)
        .write_buffer_size(64 * 1024)
        .max_write_buffer_size(2 * MAX_FRAME_BYTES)
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES))
}
