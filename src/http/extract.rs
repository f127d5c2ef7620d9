//! Reading bodies, queries and paths, with errors that say where.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::error::ApiError;
use crate::domain::code::Code;
use crate::limits::nests_deeper_than;

/// How deep JSON may nest.
const DEPTH: usize = 64;

/// A query that was read as `T`.
pub(super) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| {
                ApiError::invalid(format!("In the query: {}", rejection.body_text()))
            })
    }
}

/// The one id in a path. What is no id names nothing.
pub(super) struct Named<T>(pub(super) T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        text.ok()
            .and_then(|axum::extract::Path(text)| text.parse().ok())
            .map(Self)
            .ok_or_else(|| ApiError::not_found("There is nothing of that id."))
    }
}

/// The id in a path, and what is named within it.
pub(super) struct NamedWithin<T, U>(pub(super) T, pub(super) U);

impl<S: Send + Sync, T: FromStr, U: FromStr> FromRequestParts<S> for NamedWithin<T, U> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        type Texts = axum::extract::Path<(String, String)>;
        let texts = Texts::from_request_parts(parts, state).await;
        texts
            .ok()
            .and_then(|axum::extract::Path((outer, inner))| {
                Some(Self(outer.parse().ok()?, inner.parse().ok()?))
            })
            .ok_or_else(|| ApiError::not_found("There is nothing of that id."))
    }
}

/// A body that was read as `T`.
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&json_bytes(request, state).await?).map(Self)
    }
}

/// A body that says that it is JSON, not read any further.
pub(super) struct JsonText(pub(super) Utf8Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = json_bytes(request, state).await?;
        Utf8Bytes::try_from(bytes).map(Self).map_err(|_| {
            let detail = "The body is not UTF-8.";
            ApiError::new(StatusCode::BAD_REQUEST, Code::InvalidMessage, detail)
        })
    }
}

async fn json_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    if !says_json(request.headers()) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::InvalidMessage,
            "Send a JSON body with `Content-Type: application/json`.",
        ));
    }
    Bytes::from_request(request, state)
        .await
        .map_err(|rejection| unread(&rejection))
}

fn says_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn unread(rejection: &BytesRejection) -> ApiError {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::new(status, Code::ValidationError, "The body is too large.");
    }
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        Code::InvalidMessage,
        "The body did not arrive completely or not in time.",
    )
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if nests_deeper_than(body, DEPTH) {
        return Err(ApiError::invalid(format!(
            "The body nests deeper than {DEPTH} levels."
        )));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        unacceptable(error.inner(), &field)
    })?;
    reader.end().map_err(|error| unacceptable(&error, "."))?;
    Ok(value)
}

fn unacceptable(error: &serde_json::Error, field: &str) -> ApiError {
    match error.classify() {
        Category::Data => {
            let place = if field == "." { "the body" } else { field };
            ApiError::invalid(format!("In {place}: {error}"))
                .with_details(json!({ "field": field }))
        }
        _ => ApiError::new(
            StatusCode::BAD_REQUEST,
            Code::InvalidMessage,
            format!("The body is not valid JSON: {error}"),
        ),
    }
}
