//! `/api/auth`: logging in and staying logged in.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::caller::{Anonymous, AnyToken, Authenticated};
use super::error::{ApiError, Problem};
use super::extract::{Json, PathParam};
use crate::auth::{LoginAttempt, LoginTokens, MAX_PASSWORD_BYTES};
use crate::domain::account::{Role, User, Username};
use crate::domain::id::{LoginId, SessionId, UserId};
use crate::store::{LoginRow, RefreshError};

/// A user name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginRequest {
    username: String,
    #[schema(format = Password)]
    password: String,
    /// Binds the token to this one session, your own or shared with you.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
}

/// A user.
#[derive(Serialize, ToSchema)]
pub(super) struct UserBody {
    #[schema(value_type = String, example = "usr_0199c0ffee0070008000000000000000")]
    id: UserId,
    #[schema(value_type = String)]
    username: Username,
    #[schema(value_type = String, example = "member")]
    role: Role,
}

impl From<&User> for UserBody {
    fn from(user: &User) -> Self {
        Self {
            id: user.id,
            username: user.username.clone(),
            role: user.role,
        }
    }
}

/// An access token and its user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoggedInBody {
    /// The access token, for `Authorization: Bearer`.
    token: String,
    /// When it expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    user: UserBody,
}

/// The response to a login: the access token in the body, the refresh token in a cookie.
pub(super) fn logged_in(state: &AppState, grant: LoginTokens) -> Response {
    let (cookies, now) = (&state.cookies, state.clock.wall());
    let refresh = grant
        .refresh
        .map(|(secret, expires_at)| cookies.set(&secret, expires_at, now));
    let device = grant.device.map(|device| cookies.set_device(&device, now));
    let body = LoggedInBody {
        token: grant.token,
        expires_at: whole_seconds(grant.expires_at),
        user: UserBody::from(&grant.user),
    };
    let cookies = refresh.into_iter().chain(device);
    let cookies = AppendHeaders(
        cookies
            .map(|cookie| (SET_COOKIE, cookie))
            .collect::<Vec<_>>(),
    );
    (no_store(), cookies, Json(body)).into_response()
}

fn no_store() -> [(axum::http::HeaderName, HeaderValue); 1] {
    [(CACHE_CONTROL, HeaderValue::from_static("no-store"))]
}

/// Tokens expire at whole seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Logs in with a user name and a password.
#[utoipa::path(
    post, path = "/api/auth/login", tag = "auth", request_body = LoginRequest,
    responses(
        (status = 200, description = "Logged in; sets the refresh cookie", body = LoggedInBody),
        (status = 401, description = "AUTH_FAILED: unknown user, wrong password or disabled account", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem),
        (status = 429, description = "RATE_LIMITED: too many attempts from this address or network, or too many on this account under way", body = Problem),
        (status = 503, description = "BUSY: too many passwords are being checked", body = Problem)
    )
)]
pub(super) async fn login(
    State(state): State<AppState>,
    Anonymous(caller): Anonymous,
    Json(request): Json<LoginRequest>,
) -> Result<Response, ApiError> {
    if request.password.len() > MAX_PASSWORD_BYTES || request.username.len() > MAX_PASSWORD_BYTES {
        return Err(ApiError::invalid(format!(
            "A user name or password has at most {MAX_PASSWORD_BYTES} bytes."
        )));
    }
    let attempt = LoginAttempt {
        username: request.username,
        password: request.password,
        session: request.session_id,
        caller,
    };
    let grant = state.auth.log_in(attempt).await?;
    Ok(logged_in(&state, grant))
}

/// Exchanges the refresh cookie for a new access token and the next cookie.
#[utoipa::path(
    post, path = "/api/auth/refresh", tag = "auth",
    responses(
        (status = 200, description = "Refreshed; sets the next refresh cookie", body = LoggedInBody),
        (status = 401, description = "AUTH_FAILED: no login, or its token was used twice", body = Problem)
    )
)]
pub(super) async fn refresh(
    State(state): State<AppState>,
    Anonymous(caller): Anonymous,
    headers: HeaderMap,
) -> Response {
    let outcome = match state.cookies.refresh_token(&headers) {
        Some(token) => state.auth.refresh(token, &caller).await,
        None => Err(RefreshError::Unknown),
    };
    match outcome {
        Ok(grant) => logged_in(&state, grant),
        // Keep the cookie: it may be valid once the database is back.
        Err(error @ RefreshError::Store(_)) => ApiError::from(error).into_response(),
        Err(error) => {
            let cleared = [(SET_COOKIE, state.cookies.clear())];
            (cleared, ApiError::from(error)).into_response()
        }
    }
}

/// Ends this login.
#[utoipa::path(
    post, path = "/api/auth/logout", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 204, description = "Logged out; clears the refresh cookie"),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn logout(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
) -> Result<Response, ApiError> {
    state
        .auth
        .log_out(&caller.principal, caller.address)
        .await?;
    let cleared = [(SET_COOKIE, state.cookies.clear())];
    Ok((StatusCode::NO_CONTENT, cleared).into_response())
}

/// A single-use ticket for one WebSocket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TicketBody {
    /// The value of `?ticket=`.
    ticket: String,
    /// When it expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

/// Issues a single-use ticket that opens a WebSocket within 30 seconds.
#[utoipa::path(
    post, path = "/api/auth/ticket", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 200, description = "The ticket", body = TicketBody),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn ticket(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
) -> Result<Response, ApiError> {
    let ticket = state.auth.issue_ticket(&caller.principal).await?;
    let (secret, expires_at) =
        ticket.ok_or_else(|| ApiError::unauthenticated("This login has ended; log in again."))?;
    let body = TicketBody {
        ticket: secret.expose().to_owned(),
        expires_at,
    };
    Ok((no_store(), Json(body)).into_response())
}

/// The user and the login behind a token.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MeBody {
    user: UserBody,
    login: MyLogin,
}

/// The login behind a token.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MyLogin {
    #[schema(value_type = String)]
    id: LoginId,
    /// When the token expires.
    #[schema(value_type = String, format = DateTime)]
    token_expires_at: Timestamp,
    /// The session that the token is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
}

/// Shows the user and the login behind the token.
#[utoipa::path(
    get, path = "/api/auth/me", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 200, description = "The user and the login", body = MeBody),
        (status = 401, description = "AUTH_FAILED or SESSION_EXPIRED", body = Problem)
    )
)]
pub(super) async fn me(AnyToken(caller): AnyToken) -> Json<MeBody> {
    let principal = caller.principal;
    Json(MeBody {
        user: UserBody {
            id: principal.user,
            username: principal.username,
            role: principal.role,
        },
        login: MyLogin {
            id: principal.login,
            token_expires_at: principal.expires_at,
            session_id: principal.session,
        },
    })
}

/// A change of your password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PasswordRequest {
    #[schema(format = Password)]
    current_password: String,
    #[schema(format = Password)]
    new_password: String,
}

/// Changes your password and ends your other logins.
#[utoipa::path(
    post, path = "/api/auth/password", tag = "auth", security(("bearer" = [])),
    request_body = PasswordRequest,
    responses(
        (status = 204, description = "Changed; the other logins have ended"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: the current password is wrong", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: the new password is not acceptable", body = Problem),
        (status = 429, description = "RATE_LIMITED: too many attempts from this address or network, or too many on this account under way", body = Problem)
    )
)]
pub(super) async fn change_password(
    State(state): State<AppState>,
    caller: Authenticated,
    Anonymous(client): Anonymous,
    Json(request): Json<PasswordRequest>,
) -> Result<StatusCode, ApiError> {
    if request.current_password.len() > MAX_PASSWORD_BYTES {
        return Err(ApiError::invalid(format!(
            "A password has at most {MAX_PASSWORD_BYTES} bytes."
        )));
    }
    state
        .auth
        .change_password(
            &caller.principal,
            request.current_password,
            &request.new_password,
            &client,
        )
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The active logins of an account.
#[derive(Serialize, ToSchema)]
pub(super) struct LoginsBody {
    logins: Vec<LoginBody>,
}

/// One active login.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginBody {
    #[schema(value_type = String)]
    id: LoginId,
    /// `browser` or `token`.
    kind: &'static str,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    last_used_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    address: Option<String>,
    user_agent: Option<String>,
    /// Whether it is the login of this request.
    current: bool,
}

impl LoginBody {
    fn new(row: LoginRow, current: LoginId) -> Self {
        Self {
            id: row.id,
            kind: row.kind.as_str(),
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
            address: row.address,
            user_agent: row.user_agent,
            current: row.id == current,
        }
    }
}

/// Lists your active logins.
#[utoipa::path(
    get, path = "/api/auth/logins", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 200, description = "Your active logins, newest first", body = LoginsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn list_logins(
    State(state): State<AppState>,
    caller: Authenticated,
) -> Result<Json<LoginsBody>, ApiError> {
    let rows = state.auth.logins(caller.principal.user).await?;
    let logins = rows
        .into_iter()
        .map(|row| LoginBody::new(row, caller.principal.login))
        .collect();
    Ok(Json(LoginsBody { logins }))
}

/// Ends one of your logins.
#[utoipa::path(
    delete, path = "/api/auth/logins/{id}", tag = "auth", security(("bearer" = [])),
    params(("id" = String, Path, description = "The login")),
    responses(
        (status = 204, description = "Ended"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(super) async fn revoke_login(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(login): PathParam<LoginId>,
) -> Result<StatusCode, ApiError> {
    let ended = state
        .auth
        .revoke_login(&caller.principal, login, caller.address)
        .await?;
    if ended {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("You have no such login."))
    }
}
