//! Embedded pages: the full page, and plain ones for a gateway built without npm. Touches nothing else.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};

mod page_bundle;
mod pages_without_npm;

/// Cached, but revalidated each time.
const REVALIDATE: &str = "no-cache";
/// Cached for good.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const THIS_BUILD: &str = concat!(
    "\"",
    env!("CARGO_PKG_VERSION"),
    "-",
    env!("SWITCHBOARD_WEB_HASH"),
    "\""
);

/// Which set of pages is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// The full page, if the gateway was built with it.
    Full,
    /// Plain pages for login, setup and invitations only.
    Plain,
}

#[derive(Clone, Copy)]
struct Page {
    name: &'static str,
    content: &'static [u8],
    packed: Option<&'static [u8]>,
}

impl Pages {
    /// The full page if it was built, else the plain ones.
    fn available(self) -> Self {
        if page_bundle::is_built() {
            self
        } else {
            Self::Plain
        }
    }

    fn document(self, name: &str) -> Option<Page> {
        match self.available() {
            // One document for all paths: its script reads the path.
            Self::Full => page_bundle::file("index.html"),
            Self::Plain => pages_without_npm::document(name),
        }
    }

    fn asset(self, name: &str) -> Option<Page> {
        match self.available() {
            Self::Full => page_bundle::file(&format!("assets/{name}")),
            Self::Plain => pages_without_npm::asset(name),
        }
    }
}

/// Routes of the other pages and of the assets.
pub(crate) fn routes(pages: Pages) -> Router {
    Router::new()
        .route("/setup", get(setup))
        .route("/invite", get(invite))
        .route("/assets/{name}", get(asset))
        .with_state(pages)
}

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
        // Asset names of the full page contain a hash of their content.
        Some(asset) if asset.packed.is_some() => {
            ([(CACHE_CONTROL, FOR_EVER)], body(asset, &headers)).into_response()
        }
        asset => checked(asset, &headers),
    }
}

/// A file that browsers revalidate each time.
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

/// Does `Accept-Encoding` allow gzip, with a weight above zero?
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
            let page = pages_without_npm::document(page).unwrap();
            let text = std::str::from_utf8(page.content).unwrap();
            let named = text.split("=\"assets/").skip(1);
            let named: Vec<_> = named.map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(named.len() >= 2, "{named:?}");
            assert!(
                named
                    .iter()
                    .all(|name| pages_without_npm::asset(name).is_some()),
                "{named:?}"
            );
        }
    }
}
