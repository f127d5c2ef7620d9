//! Errors: the only place where they become responses.
//!
//! A handler returns an [`ApiError`]; it travels as an extension of an empty response to the layer
//! [`render`], which writes it as `application/problem+json` (RFC 9457) with the request id. Empty
//! error responses of the layers in between are written the same way.

use std::any::Any;

use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::caller::no_such_session;
use super::request_id;
use crate::auth::{AdminError, ChangePasswordError, LoginError, TokenError};
use crate::domain::error_code::ErrorCode;
use crate::limits::{Budget, Refusal};
use crate::runtime::AgentTestError;
use crate::session::{QuotaError, QuotaExceeded, ReadError, SearchError};
use crate::store::{RefreshError, StoreError};
use crate::wire::error_details::Details;

#[derive(Clone, Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: ErrorCode,
    detail: String,
    details: Option<Value>,
    retry_after_secs: Option<u64>,
}

/// The body of an error response.
#[derive(Serialize, ToSchema)]
pub(super) struct Problem<'a> {
    /// A URN of the code.
    #[serde(rename = "type")]
    kind: String,
    /// The meaning of the code.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened this time, and what to do.
    detail: &'a str,
    /// The error code, the same as over WebSocket.
    #[schema(value_type = String, example = "AUTH_FAILED")]
    code: &'static str,
    /// The id of the request, to quote when asking for help.
    #[serde(rename = "requestId")]
    request_id: &'a str,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            details: None,
            retry_after_secs: None,
        }
    }

    /// 422: well-formed, but not acceptable.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::ValidationError,
            detail,
        )
    }

    /// 400: not what this route can read.
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidMessage, detail)
    }

    /// 408: the body did not arrive in time.
    pub(super) fn body_timeout(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            ErrorCode::InvalidMessage,
            detail,
        )
    }

    /// 404: does not exist, or the caller may not know of it.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, detail)
    }

    /// 403: the caller may not do this.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, detail)
    }

    /// 401: no valid token.
    pub(super) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::AuthFailed, detail)
    }

    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// May the change have been made all the same? A server error does not tell.
    pub(super) fn is_uncertain(&self) -> bool {
        self.status.is_server_error()
    }

    /// 503: worth another try in a second.
    pub(super) fn storage_unavailable(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after_secs: Some(2),
            ..Self::new(status, ErrorCode::StorageUnavailable, detail)
        }
    }

    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self {
            retry_after_secs: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, detail)
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after_secs {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(error) => {
                tracing::error!(%error, "the database is unavailable");
                Self::storage_unavailable(
                    "The database is unavailable at the moment; nothing was changed.",
                )
            }
            StoreError::Fault(error) => {
                tracing::error!(%error, "a database statement failed");
                Self::internal()
            }
        }
    }
}

impl ApiError {
    pub(super) fn no_such_path() -> Self {
        Self::not_found("There is nothing here. The routes are in /api/openapi.json.")
    }

    fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            "Something went wrong here. Quote the requestId when asking for help.",
        )
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Expired => Self::new(
                StatusCode::UNAUTHORIZED,
                ErrorCode::SessionExpired,
                "The token has expired; refresh it or log in again.",
            ),
            TokenError::Invalid => Self::unauthenticated("The token is not valid; log in again."),
        }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Refused => Self::unauthenticated("The user name or the password is wrong."),
            LoginError::NoSuchSession => Self::not_found("There is no such session."),
            LoginError::TooMany => Self {
                retry_after_secs: Some(4),
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    ErrorCode::RateLimited,
                    "Others are trying to log in as this user; try again in a few seconds, or from a \
                     browser in which you have logged in before.",
                )
            }
            .with_details(json!({ "limit": "loginsUnderWay" })),
            LoginError::Busy(error) => Self::busy(format!("{error}; try again in a moment")),
            LoginError::Store(error) => error.into(),
        }
    }
}

impl From<RefreshError> for ApiError {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Unknown => {
                Self::unauthenticated("There is no login to refresh; log in again.")
            }
            RefreshError::Reused { .. } => Self::unauthenticated(
                "This refresh token was used before, so its login has been ended; log in again.",
            ),
            RefreshError::Store(error) => error.into(),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        let detail = error.to_string();
        let conflict = |detail| Self::new(StatusCode::CONFLICT, ErrorCode::ValidationError, detail);
        match error {
            AdminError::NotFound => Self::not_found(detail),
            AdminError::UsernameTaken | AdminError::LastAdmin | AdminError::KeyIsGiven => {
                conflict(detail)
            }
            AdminError::AlreadySetUp | AdminError::BadLink => Self::forbidden(detail),
            AdminError::Password(_) => {
                Self::invalid(detail).with_details(json!({ "field": "password" }))
            }
            AdminError::Busy(_) => Self::busy(detail),
            AdminError::Store(error) => error.into(),
        }
    }
}

impl From<AgentTestError> for ApiError {
    fn from(error: AgentTestError) -> Self {
        let detail = error.to_string();
        match error {
            AgentTestError::Listens(_) => Self::invalid(detail),
            AgentTestError::Busy | AgentTestError::Start(_) => Self::busy(detail),
        }
    }
}

impl From<ChangePasswordError> for ApiError {
    fn from(error: ChangePasswordError) -> Self {
        match error {
            ChangePasswordError::Current(LoginError::Refused) => {
                Self::forbidden("The current password is wrong.")
                    .with_details(json!({ "field": "currentPassword" }))
            }
            ChangePasswordError::Current(error) => error.into(),
            ChangePasswordError::New(error) => error.into(),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound => no_such_session(),
            ReadError::Busy(_) => {
                Self::busy("You read too much at once at the moment; try again in a moment.")
            }
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(exceeded) => {
                let QuotaExceeded { limit, max, actual } = exceeded;
                Self::invalid(exceeded.sentence())
                    .with_details(json!({ "limit": limit, "max": max, "actual": actual }))
            }
            QuotaError::DiskLow(low) => Self::storage_unavailable(low.sentence()),
            QuotaError::Store(error) => error.into(),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Busy => {
                Self::busy("Too many searches at the moment; try again in a moment.")
            }
            SearchError::Store(error) => error.into(),
        }
    }
}

/// The status of a command whose response is an error envelope.
pub(super) fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::AuthFailed | ErrorCode::SessionExpired => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::InvalidMessage => StatusCode::BAD_REQUEST,
        ErrorCode::ValidationError | ErrorCode::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::TaskFailed | ErrorCode::ConnectionLost => StatusCode::BAD_GATEWAY,
        // The session is busy, not the gateway.
        ErrorCode::Busy => StatusCode::CONFLICT,
        ErrorCode::StorageUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The response of the rate limit layers.
pub(super) fn rate_limited(budget: Budget, refusal: Refusal) -> Response {
    let (counted, seconds) = (budget.counted(), refusal.retry_after_secs());
    let error = ApiError {
        retry_after_secs: Some(seconds),
        ..ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::RateLimited,
            format!("Too many {counted} from this address; try again in {seconds} s."),
        )
    }
    .with_details(json!(Details::too_often(budget.exceeded(refusal))));
    (refusal.headers(counted), error).into_response()
}

/// The response of the layer that catches panics.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the layer expects"
)]
pub(super) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("(no message)");
    tracing::error!(panic = message, "a handler panicked");
    ApiError::internal().into_response()
}

/// Gives every error response its body.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let id = request_id(&request).to_owned();
    let mut response = next.run(request).await;
    let Some(error) = take_error(&mut response) else {
        return response;
    };
    let problem = Problem {
        kind: format!("urn:switchboard:error:{}", error.code),
        title: error.code.meaning(),
        status: response.status().as_u16(),
        detail: &error.detail,
        code: error.code.as_str(),
        request_id: &id,
        details: error.details.as_ref(),
    };
    let body = serde_json::to_vec(&problem).expect("a problem is plain JSON");
    *response.body_mut() = body.into();
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
        .headers_mut()
        .remove(axum::http::header::CONTENT_LENGTH);
    // For the metrics layer.
    response.extensions_mut().insert(error.code);
    response
}

/// The handler's error, or one for the bare status of a layer.
fn take_error(response: &mut Response) -> Option<ApiError> {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        return Some(error);
    }
    let status = response.status();
    let is_bare = !response.headers().contains_key(CONTENT_TYPE);
    if !is_bare || !(status.is_client_error() || status.is_server_error()) {
        return None;
    }
    if let Some(code) = response.extensions_mut().remove::<ErrorCode>() {
        return Some(ApiError::new(status, code, upgrade_advice(code)));
    }
    let (code, detail) = match status {
        StatusCode::REQUEST_TIMEOUT => (ErrorCode::Busy, "The request took too long."),
        StatusCode::PAYLOAD_TOO_LARGE => (ErrorCode::ValidationError, "The body is too large."),
        StatusCode::NOT_FOUND => (ErrorCode::NotFound, "There is nothing here."),
        StatusCode::METHOD_NOT_ALLOWED => {
            (ErrorCode::InvalidMessage, "This path has other methods.")
        }
        _ => (ErrorCode::InvalidMessage, "The request cannot be served."),
    };
    Some(ApiError::new(status, code, detail))
}

/// The detail of a refused WebSocket upgrade, of which only the code is known here.
fn upgrade_advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::AuthFailed => "Log in and send the token, as header, subprotocol or ticket.",
        ErrorCode::SessionExpired => "The token has expired; refresh it or log in again.",
        ErrorCode::ValidationError => "A parameter in the query is not acceptable.",
        _ => "This path speaks WebSocket, version 13.",
    }
}
