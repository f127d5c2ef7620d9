//! The plain pages: sign in, first setup, invitation.
//!
//! Embedded at build time from `web/plain/`. Touches nothing else.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A browser may keep a file but asks each time whether it is still the one.
const REVALIDATE: &str = "no-cache";
const THIS_BUILD: &str = concat!(
    "\"",
    env!("CARGO_PKG_VERSION"),
    "-",
    env!("SWITCHBOARD_WEB_HASH"),
    "\""
);

macro_rules! page {
    ($file:literal) => {
        include_str!(concat!("../web/plain/", $file))
    };
}

const ASSETS: [(&str, &str, &str); 7] = [
    ("style.css", STYLE, page!("style.css")),
    ("api.js", SCRIPT, page!("api.js")),
    ("form.js", SCRIPT, page!("form.js")),
    ("devices.js", SCRIPT, page!("devices.js")),
    ("index.js", SCRIPT, page!("index.js")),
    ("setup.js", SCRIPT, page!("setup.js")),
    ("invite.js", SCRIPT, page!("invite.js")),
];

/// What stands beside the page people open: other pages, and what they are made of.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/setup", get(setup))
        .route("/invite", get(invite))
        .route("/assets/{name}", get(asset))
}

/// The page people open.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    file(&headers, HTML, page!("index.html"))
}

async fn setup(headers: HeaderMap) -> Response {
    file(&headers, HTML, page!("setup.html"))
}

async fn invite(headers: HeaderMap) -> Response {
    file(&headers, HTML, page!("invite.html"))
}

async fn asset(headers: HeaderMap, request: Request) -> Response {
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    match ASSETS.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => file(&headers, kind, text),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn file(headers: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let caching = [(CACHE_CONTROL, REVALIDATE), (ETAG, THIS_BUILD)];
    if headers
        .get(IF_NONE_MATCH)
        .is_some_and(|tag| tag == THIS_BUILD)
    {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(CONTENT_TYPE, kind)], text).into_response()
}
