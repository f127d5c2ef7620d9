//! The pages: the one that people work with, and plain ones for a gateway that was built without it.
//!
//! Both are embedded. Touches nothing else.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};

mod full;
mod plain;

/// A browser may keep it but asks each time whether it is still the one.
const REVALIDATE: &str = "no-cache";
/// A browser need not ask again.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const THIS_BUILD: &str = concat!(
    "\"",
    env!("CARGO_PKG_VERSION"),
    "-",
    env!("SWITCHBOARD_WEB_HASH"),
    "\""
);

/// Which pages are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// The one that people work with, if the gateway was built with it.
    Full,
    /// Only those to sign in, set up, and accept an invitation.
    Plain,
}

/// One embedded file.
#[derive(Clone, Copy)]
struct Page {
    name: &'static str,
    content: &'static [u8],
    /// The same compressed.
    packed: Option<&'static [u8]>,
}

impl Pages {
    /// What there is: without the full page, the plain ones.
    fn available(self) -> Self {
        if full::is_built() { self } else { Self::Plain }
    }

    /// One of the documents that people open.
    fn document(self, name: &str) -> Option<Page> {
        match self.available() {
            // One for all: where it was opened tells it what to show.
            Self::Full => full::file("index.html"),
            Self::Plain => plain::document(name),
        }
    }

    /// What documents are made of.
    fn asset(self, name: &str) -> Option<Page> {
        match self.available() {
            Self::Full => full::file(&format!("assets/{name}")),
            Self::Plain => plain::asset(name),
        }
    }
}

/// What stands beside the page people open: other pages, and what they are made of.
pub(crate) fn routes(pages: Pages) -> Router {
    Router::new()
        .route("/setup", get(setup))
        .route("/invite", get(invite))
        .route("/assets/{name}", get(asset))
        .with_state(pages)
}

/// The page people open.
pub(crate) async fn index(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    checked(pages.document("index.html"), &headers)
}

async fn setup(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    checked(pages.document("setup.html"), &headers)
}

async fn invite(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    checked(pages.document("invite.html"), &headers)
}

async fn asset(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match pages.asset(&name) {
        // Names of the full page's assets change with what is in them.
        Some(asset) if asset.packed.is_some() => {
            ([(CACHE_CONTROL, FOR_EVER)], body(asset, &headers)).into_response()
        }
        asset => checked(asset, &headers),
    }
}

/// A file that a browser asks about each time.
fn checked(page: Option<Page>, headers: &HeaderMap) -> Response {
    let Some(page) = page else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = tag(page);
    let caching = [(CACHE_CONTROL, REVALIDATE), (ETAG, tag.as_str())];
    if headers
        .get(IF_NONE_MATCH)
        .is_some_and(|known| *known == tag)
    {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, body(page, headers)).into_response()
}

/// Tells one build of a document from another.
fn tag(page: Page) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    if page.packed.is_none() {
        return THIS_BUILD.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    page.content.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

fn body(page: Page, headers: &HeaderMap) -> Response {
    let kind = [(CONTENT_TYPE, kind(page.name)), (VARY, "Accept-Encoding")];
    match page.packed.filter(|_| takes_gzip(headers)) {
        Some(packed) => (kind, [(CONTENT_ENCODING, "gzip")], packed).into_response(),
        None => (kind, page.content).into_response(),
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Does whoever asks take `gzip`, and not with a weight of nothing?
fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(ACCEPT_ENCODING).iter();
    let mut offers = said
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    offers.any(|offer| {
        let (coding, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let is_refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse() == Ok(0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &'static str) -> bool {
        let header = axum::http::HeaderValue::from_static(value);
        takes_gzip(&[(ACCEPT_ENCODING, header)].into_iter().collect())
    }

    #[test]
    fn compressed_is_sent_only_to_those_who_take_it() {
        for yes in ["gzip", "deflate, GZIP;q=0.5, br", "br;q=1.0, gzip"] {
            assert!(accepting(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip;q=0.000", "xgzip"] {
            assert!(!accepting(no), "{no}");
        }
    }

    #[test]
    fn the_plain_pages_have_what_they_name() {
        for page in ["index.html", "setup.html", "invite.html"] {
            let page = plain::document(page).unwrap();
            let text = std::str::from_utf8(page.content).unwrap();
            let named = text.split("=\"assets/").skip(1);
            let named: Vec<_> = named.map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(named.len() >= 2, "{named:?}");
            assert!(
                named.iter().all(|name| plain::asset(name).is_some()),
                "{named:?}"
            );
        }
    }
}
