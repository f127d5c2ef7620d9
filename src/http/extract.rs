//! Reading bodies, queries and paths, with errors that say where.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::arrival::is_late;
use super::error::ApiError;
use crate::domain::code::Code;
use crate::domain::surrogate::{MARK, without_lone_halves};
use crate::limits::nests_deeper_than;

/// How deep JSON may nest.
const DEPTH: usize = 64;

/// A query that was read as `T`.
pub(super) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        if let Some(name) = parts.uri.query().and_then(not_utf8) {
            return Err(
                ApiError::invalid(format!("In the query: `{name}` is not UTF-8."))
                    .with_details(json!({ "field": name })),
            );
        }
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| {
                ApiError::invalid(format!("In the query: {}", rejection.body_text()))
            })
    }
}

/// The first parameter that holds bytes which are no text; its reader would change them silently.
fn not_utf8(query: &str) -> Option<&str> {
    let mut parameters = query.split('&');
    let odd = parameters.find(|parameter| std::str::from_utf8(&decoded(parameter)).is_err())?;
    let name = odd.split('=').next().unwrap_or_default();
    // A name that is odd itself is shown as it came.
    Some(name)
}

/// What the escapes of a query stand for.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digit = |place| char::from(*others.get(place)?).to_digit(16);
        let escaped = (*first == b'%').then(|| Some(digit(0)? * 16 + digit(1)?));
        if let Some(byte) = escaped.flatten().and_then(|byte| u8::try_from(byte).ok()) {
            bytes.push(byte);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    bytes
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
    if is_late(rejection) {
        return ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            Code::InvalidMessage,
            "The body did not arrive in time.",
        );
    }
    ApiError::new(
        StatusCode::BAD_REQUEST,
        Code::InvalidMessage,
        "The body is cut short or malformed.",
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
        match error.inner().classify() {
            Category::Syntax if has_lone_surrogate(body) => half_of_a_character(&field),
            _ => unacceptable(error.inner(), &field),
        }
    })?;
    reader.end().map_err(|error| unacceptable(&error, "."))?;
    Ok(value)
}

/// Could it be read if there were no half of a character in it?
fn has_lone_surrogate(body: &[u8]) -> bool {
    let whole = without_lone_halves(body, MARK);
    whole.is_some_and(|whole| serde_json::from_slice::<IgnoredAny>(&whole).is_ok())
}

fn half_of_a_character(field: &str) -> ApiError {
    let place = if field == "." { "the body" } else { field };
    ApiError::invalid(format!(
        "In {place}: a lone surrogate, half of a character."
    ))
    .with_details(json!({ "field": field }))
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_found_with_their_name() {
        for (query, name) in [
            ("name=%ff", Some("name")),
            ("a=1&name=x%C3&b=%C3%A9", Some("name")),
            ("%ff=1", Some("%ff")),
            ("name=%C3%A9+%F0%9F%98%80", None),
            ("name=100%&b=%zz%f", None),
            ("", None),
        ] {
            assert_eq!(not_utf8(query), name, "{query}");
        }
    }

    #[test]
    fn half_of_a_character_is_refused_with_its_field() {
        #[derive(Debug, Deserialize)]
        struct Body {
            title: String,
        }
        let refused = |body: &str| parse::<Body>(body.as_bytes()).unwrap_err();
        let error = format!("{:?}", refused(r#"{"title":"a\ud83d"}"#));
        assert!(error.contains("422") && error.contains("title"), "{error}");
        let error = format!("{:?}", refused(r#"{"title":"a\ud83d""#));
        assert!(error.contains("400"), "{error}");
        let good = parse::<Body>(br#"{"title":"\ud83d\ude00"}"#).unwrap();
        assert_eq!(good.title, "😀");
    }
}
