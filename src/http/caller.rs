//! Who is calling: the address behind the proxies, and the authenticated user.

use std::net::SocketAddr;

use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::HeaderName;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

use super::AppState;
use super::error::ApiError;
use crate::auth::{Auth, Caller, TokenError, bearer};
use crate::domain::account::{Principal, Role};
use crate::limits::{ClientAddress, TrustedProxies};

/// The other end of the TCP connection, put into every request by the accept loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Works out the client's address once, for every layer and handler after it. Only a trusted proxy
/// may also bring a request id.
pub(super) async fn resolve_address(
    State(proxies): State<TrustedProxies>,
    mut request: Request,
    next: Next,
) -> Response {
    let Peer(peer) = *request
        .extensions()
        .get()
        .expect("the accept loop names the peer of every request");
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

/// Somebody, known only by where they are and what their program calls itself.
pub(super) struct Anyone(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Anyone {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let user_agent = parts.headers.get(USER_AGENT);
        Ok(Self(Caller {
            address: address_of(parts).ip,
            user_agent: user_agent
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
        }))
    }
}

/// An authenticated user, and where they are.
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
        let Holder(caller) = Holder::from_request_parts(parts, state).await?;
        match caller.principal.session {
            None => Ok(caller),
            Some(_) => Err(ApiError::forbidden(
                "This token is good for one session only.",
            )),
        }
    }
}

/// Whoever holds a good token, be it bound to one session or not.
pub(super) struct Holder(pub(super) Authenticated);

impl<S: Send + Sync> FromRequestParts<S> for Holder
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

/// Asked again after a wait: has the login ended meanwhile?
pub(super) fn check_login(state: &AppState, principal: &Principal) -> Result<(), ApiError> {
    if state.auth.stands(principal) {
        return Ok(());
    }
    Err(ApiError::unauthenticated(
        "This login has ended; log in again.",
    ))
}

/// The same, and whether its token has expired.
pub(super) fn check_token(state: &AppState, principal: &Principal) -> Result<(), ApiError> {
    if principal.expires_at <= state.clock.wall() {
        return Err(TokenError::Expired.into());
    }
    check_login(state, principal)
}

/// An authenticated administrator.
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
