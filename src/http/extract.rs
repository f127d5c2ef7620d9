//! Extractors: bodies, queries and path parameters, with errors that name the field.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_json::json;

use super::attachments::upload_body::is_timeout;
use super::error::ApiError;
use crate::domain::error_code::ErrorCode;
use crate::domain::lone_surrogates::{MARK, replace_lone_surrogates};
use crate::domain::shared_text::Text;
use crate::limits::nests_deeper_than;

const MAX_DEPTH: usize = 64;

pub(super) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        if let Some(name) = parts.uri.query().and_then(non_utf8_parameter) {
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

/// The name of the first parameter that is not UTF-8, as it came. The query parser would replace the
/// bytes silently.
fn non_utf8_parameter(query: &str) -> Option<&str> {
    let mut parameters = query.split('&');
    let invalid = |parameter: &&str| std::str::from_utf8(&percent_decoded(parameter)).is_err();
    parameters.find(invalid)?.split('=').next()
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digit = |index| char::from(*others.get(index)?).to_digit(16);
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

/// The parameter of a path. One that does not parse names nothing: 404, not 422.
pub(super) struct PathParam<T>(pub(super) T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for PathParam<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| no_such_id())?;
        text.parse().map(Self).map_err(|_| no_such_id())
    }
}

pub(super) struct PathParams<T, U>(pub(super) T, pub(super) U);

impl<S: Send + Sync, T: FromStr, U: FromStr> FromRequestParts<S> for PathParams<T, U> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path((outer, inner)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| no_such_id())?;
        match (outer.parse(), inner.parse()) {
            (Ok(outer), Ok(inner)) => Ok(Self(outer, inner)),
            _ => Err(no_such_id()),
        }
    }
}

fn no_such_id() -> ApiError {
    ApiError::not_found("There is nothing of that id.")
}

/// A JSON body, parsed as `T`; also a JSON response.
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&json_bytes(request, state).await?).map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// A JSON body as text, not parsed.
pub(super) struct RawJson(pub(super) Text);

impl<S: Send + Sync> FromRequest<S> for RawJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = json_bytes(request, state).await?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Self(text.into())),
            Err(_) => Err(ApiError::malformed("The body is not UTF-8.")),
        }
    }
}

async fn json_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    if !is_json(request.headers()) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::InvalidMessage,
            "Send a JSON body with `Content-Type: application/json`.",
        ));
    }
    Bytes::from_request(request, state)
        .await
        .map_err(|rejection| unreadable(&rejection))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn unreadable(rejection: &BytesRejection) -> ApiError {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::new(status, ErrorCode::ValidationError, "The body is too large.");
    }
    if is_timeout(rejection) {
        return ApiError::body_timeout("The body did not arrive in time.");
    }
    ApiError::malformed("The body is cut short or malformed.")
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if nests_deeper_than(body, MAX_DEPTH) {
        return Err(ApiError::invalid(format!(
            "The body nests deeper than {MAX_DEPTH} levels."
        )));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        match error.inner().classify() {
            Category::Syntax if has_lone_surrogate(body) => lone_surrogate(&field),
            _ => invalid_json(error.inner(), &field),
        }
    })?;
    reader.end().map_err(|error| invalid_json(&error, "."))?;
    Ok(value)
}

/// Would the body parse without its lone surrogates?
fn has_lone_surrogate(body: &[u8]) -> bool {
    let whole = replace_lone_surrogates(body, MARK);
    whole.is_some_and(|whole| serde_json::from_slice::<IgnoredAny>(&whole).is_ok())
}

fn lone_surrogate(field: &str) -> ApiError {
    let location = if field == "." { "the body" } else { field };
    ApiError::invalid(format!(
        "In {location}: a lone surrogate, half of a character."
    ))
    .with_details(json!({ "field": field }))
}

fn invalid_json(error: &serde_json::Error, field: &str) -> ApiError {
    match error.classify() {
        Category::Data => {
            let location = if field == "." { "the body" } else { field };
            ApiError::invalid(format!("In {location}: {error}"))
                .with_details(json!({ "field": field }))
        }
        _ => ApiError::malformed(format!("The body is not valid JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn a_parameter_that_is_not_utf8_is_named() {
        for (query, name) in [
            ("name=%ff", Some("name")),
            ("a=1&name=x%C3&b=%C3%A9", Some("name")),
            ("%ff=1", Some("%ff")),
            ("name=%C3%A9+%F0%9F%98%80", None),
            ("name=100%&b=%zz%f", None),
            ("", None),
        ] {
            assert_eq!(non_utf8_parameter(query), name, "{query}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_refused_with_its_field() {
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
