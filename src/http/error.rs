//! The only place where errors become responses.
//!
//! A handler returns an [`ApiError`]; it travels as an extension of an empty response until
//! [`render`], the outermost layer but for the request id, writes it as `application/problem+json`
//! (RFC 9457) with that id. Empty error responses of the layers between get the same treatment.

use std::any::Any;

use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use tower_http::request_id::RequestId;
use utoipa::ToSchema;

use crate::auth::{AdminError, ChangePasswordError, LoginError, TokenError};
use crate::domain::code::Code;
use crate::limits::{Budget, Refusal};
use crate::runtime::TrialError;
use crate::store::{RefreshError, StoreError};
use crate::wire::details::Details;

/// A failure on its way to the client.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: Code,
    detail: String,
    details: Option<Value>,
    retry_after_secs: Option<u64>,
}

/// What a client reads when something went wrong.
#[derive(Serialize, ToSchema)]
pub(super) struct Problem<'a> {
    /// Where the code is explained.
    #[serde(rename = "type")]
    kind: String,
    /// What the code means.
    title: &'static str,
    /// The HTTP status again.
    status: u16,
    /// What happened this time, and what to do.
    detail: &'a str,
    /// The code, the same as on every other door.
    #[schema(value_type = String, example = "AUTH_FAILED")]
    code: &'static str,
    /// What to quote when asking for help.
    #[serde(rename = "requestId")]
    request_id: &'a str,
    /// More, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            details: None,
            retry_after_secs: None,
        }
    }

    /// Well-formed, but not acceptable.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            Code::ValidationError,
            detail,
        )
    }

    /// Nothing there, or nothing of the caller's.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, detail)
    }

    /// Known, but not allowed to.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Forbidden, detail)
    }

    /// Not authenticated.
    pub(super) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Code::AuthFailed, detail)
    }

    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Is there nothing of that name, as far as the caller may know?
    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Is it unknown whether it was done? What is behind did not answer.
    pub(super) fn is_uncertain(&self) -> bool {
        self.status.is_server_error()
    }

    /// Worth another try in a moment.
    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self {
            retry_after_secs: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail)
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
                Self {
                    retry_after_secs: Some(2),
                    ..Self::new(
                        StatusCode::SERVICE_UNAVAILABLE,
                        Code::StorageUnavailable,
                        "The database is unavailable at the moment; nothing was changed.",
                    )
                }
            }
            StoreError::Fault(error) => {
                tracing::error!(%error, "a statement failed");
                Self::internal()
            }
        }
    }
}

impl ApiError {
    fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Code::Internal,
            "Something went wrong here. Quote the requestId when asking for help.",
        )
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Expired => Self::new(
                StatusCode::UNAUTHORIZED,
                Code::SessionExpired,
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
            RefreshError::Reused => Self::unauthenticated(
                "This refresh token was used before, so its login has been ended; log in again.",
            ),
            RefreshError::Store(error) => error.into(),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        let detail = error.to_string();
        let conflict = |detail| Self::new(StatusCode::CONFLICT, Code::ValidationError, detail);
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

impl From<TrialError> for ApiError {
    fn from(error: TrialError) -> Self {
        let detail = error.to_string();
        match error {
            TrialError::Listens(_) => Self::invalid(detail),
            TrialError::Busy | TrialError::Start(_) => Self::busy(detail),
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

/// The status of an error that comes as an envelope.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::AuthFailed | Code::SessionExpired => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::InvalidMessage => StatusCode::BAD_REQUEST,
        Code::ValidationError | Code::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::TaskFailed | Code::ConnectionLost => StatusCode::BAD_GATEWAY,
        // Of a command: what is busy is the session, not the gateway.
        Code::Busy => StatusCode::CONFLICT,
        Code::StorageUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The answer of the limits' layers.
pub(super) fn rate_limited(budget: Budget, refusal: Refusal) -> Response {
    let (counted, seconds) = (budget.counted(), refusal.retry_after_secs());
    let error = ApiError {
        retry_after_secs: Some(seconds),
        ..ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            Code::RateLimited,
            format!("Too many {counted} from this address; try again in {seconds} s."),
        )
    }
    .with_details(json!(Details::too_often(budget.overdrawn(refusal))));
    (refusal.headers(counted), error).into_response()
}

/// The answer of the layer that catches panics.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands the panic over like this"
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
    let id = request
        .extensions()
        .get::<RequestId>()
        .and_then(|id| id.header_value().to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let mut response = next.run(request).await;
    let Some(error) = error_of(&mut response) else {
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
    // For whoever counts.
    response.extensions_mut().insert(error.code);
    response
}

/// Our own error, or one that stands for the bare status of a layer.
fn error_of(response: &mut Response) -> Option<ApiError> {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        return Some(error);
    }
    let status = response.status();
    let bare = !response.headers().contains_key(CONTENT_TYPE);
    if !bare || !(status.is_client_error() || status.is_server_error()) {
        return None;
    }
    if let Some(code) = response.extensions_mut().remove::<Code>() {
        return Some(ApiError::new(status, code, advice(code)));
    }
    let (code, detail) = match status {
        StatusCode::REQUEST_TIMEOUT => (Code::Busy, "The request took too long."),
        StatusCode::PAYLOAD_TOO_LARGE => (Code::ValidationError, "The body is too large."),
        StatusCode::NOT_FOUND => (Code::NotFound, "There is nothing here."),
        StatusCode::METHOD_NOT_ALLOWED => (Code::InvalidMessage, "This path has other methods."),
        _ => (Code::InvalidMessage, "The request cannot be served."),
    };
    Some(ApiError::new(status, code, detail))
}

/// For an error that the other door told only by its code.
fn advice(code: Code) -> &'static str {
    match code {
        Code::AuthFailed => "Log in and send the token, as header, subprotocol or ticket.",
        Code::SessionExpired => "The token has expired; refresh it or log in again.",
        Code::ValidationError => "A parameter in the query is not acceptable.",
        _ => "This path speaks WebSocket, version 13.",
    }
}
