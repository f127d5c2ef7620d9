//! Caller: the client's address, the authenticated user, and the user's access to a session.
//!
//! A handler's extractor says which callers it accepts: [`Anonymous`], [`AnyToken`],
//! [`Authenticated`] or [`Administrator`].

use std::net::SocketAddr;

use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::HeaderName;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

use super::AppState;
use super::cookie::CookieJar;
use super::error::ApiError;
use crate::auth::{Auth, LoginClient, TokenError, bearer};
use crate::domain::account::{Principal, Role};
use crate::domain::id::SessionId;
use crate::limits::{ClientAddress, TrustedProxies};
use crate::session::{Access, JoinError};
use crate::store::SessionRow;

/// The other end of the TCP connection, set on every request by the accept loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Resolves the client's address once for all inner layers and handlers. Drops a request id that
/// does not come from a trusted proxy.
pub(super) async fn resolve_address(
    State(proxies): State<TrustedProxies>,
    mut request: Request,
    next: Next,
) -> Response {
    let Peer(peer) = *request
        .extensions()
        .get()
        .expect("the accept loop sets the peer of every request");
    let address = ClientAddress::resolve(peer.ip(), request.headers(), &proxies);
    if !proxies.contains(peer.ip()) {
        request
            .headers_mut()
            .remove(HeaderName::from_static("x-request-id"));
    }
    request.extensions_mut().insert(address);
    next.run(request).await
}

fn address_of(parts: &Parts) -> ClientAddress {
    *parts
        .extensions
        .get()
        .expect("the address layer is part of the stack")
}

/// A caller without a token: address and user agent only.
pub(super) struct Anonymous(pub(super) LoginClient);

impl<S: Send + Sync> FromRequestParts<S> for Anonymous
where
    CookieJar: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let cookies = CookieJar::from_ref(state);
        let user_agent = parts.headers.get(USER_AGENT);
        Ok(Self(LoginClient {
            address: address_of(parts).ip,
            user_agent: user_agent
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            device_cookie: cookies.device(&parts.headers).map(str::to_owned),
        }))
    }
}

/// An authenticated user with a token that is not bound to one session.
pub(super) struct Authenticated {
    pub(super) principal: Principal,
    pub(super) address: std::net::IpAddr,
}

impl<S: Send + Sync> FromRequestParts<S> for Authenticated
where
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let AnyToken(caller) = AnyToken::from_request_parts(parts, state).await?;
        match caller.principal.session {
            None => Ok(caller),
            Some(_) => Err(ApiError::forbidden(
                "This token is good for one session only.",
            )),
        }
    }
}

/// An authenticated user with any valid token, also one that is bound to a session: the handler
/// must check access to the session.
pub(super) struct AnyToken(pub(super) Authenticated);

impl<S: Send + Sync> FromRequestParts<S> for AnyToken
where
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let token = bearer(&parts.headers).ok_or_else(|| {
            ApiError::unauthenticated("Log in and send `Authorization: Bearer TOKEN`.")
        })?;
        Ok(Self(Authenticated {
            principal: Auth::from_ref(state).verify(token)?,
            address: address_of(parts).ip,
        }))
    }
}

/// Re-check after a wait: has the login ended meanwhile?
pub(super) fn check_login(state: &AppState, principal: &Principal) -> Result<(), ApiError> {
    if state.auth.is_valid(principal) {
        return Ok(());
    }
    Err(ApiError::unauthenticated(
        "This login has ended; log in again.",
    ))
}

/// Re-check after a wait: has the login ended or the token expired meanwhile?
pub(super) fn check_token(state: &AppState, principal: &Principal) -> Result<(), ApiError> {
    if principal.expires_at <= state.clock.wall() {
        return Err(TokenError::Expired.into());
    }
    check_login(state, principal)
}

pub(super) struct Administrator(pub(super) Authenticated);

impl<S: Send + Sync> FromRequestParts<S> for Administrator
where
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Authenticated::from_request_parts(parts, state).await?;
        match caller.principal.role {
            Role::Admin => Ok(Self(caller)),
            Role::Member => Err(ApiError::forbidden("Only administrators may do this.")),
        }
    }
}

/// Loads the session if the caller has at least this access to it. The response does not tell a
/// foreign session from one that does not exist.
pub(super) async fn require_access(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    least: Access,
) -> Result<SessionRow, ApiError> {
    match state.sessions.look_up(principal, id).await {
        Ok((row, access)) if access >= least => Ok(row),
        Ok(_) if least == Access::Owner => Err(ApiError::forbidden(
            "This session is shared with you; only its owner may do this.",
        )),
        Ok(_) => Err(ApiError::forbidden(
            "You may look at this session, not change it.",
        )),
        Err(JoinError::Store(error)) => Err(error.into()),
        Err(_) => Err(no_such_session()),
    }
}

pub(super) fn no_such_session() -> ApiError {
    ApiError::not_found("There is no such session.")
}
