//! Public URLs: the addresses of the pages and of one-time links.

use std::net::SocketAddr;

use super::Config;
use super::host_and_origin::Origins;

/// The URLs under which users reach the gateway.
#[derive(Clone, Debug)]
pub struct Urls {
    base: String,
}

impl Urls {
    /// URLs under the public URL, or under the listen address if there is none.
    pub fn new(config: &Config, listening: SocketAddr) -> Self {
        let origins = Origins::new(config.public_url.as_ref(), &[], listening);
        Self::under(&format!("{}{}", origins.public(), config.base_path))
    }

    /// URLs under a known base.
    pub fn under(base: &str) -> Self {
        Self {
            base: base.to_owned(),
        }
    }

    /// The start page.
    pub fn page(&self) -> String {
        format!("{}/", self.base)
    }

    /// The base, without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A setup link. The token is in the fragment, so that it reaches no server log and no `Referer`.
    pub fn setup(&self, token: &str) -> String {
        format!("{}/setup#t={token}", self.base)
    }

    /// An invite link.
    pub fn invite(&self, token: &str) -> String {
        format!("{}/invite#t={token}", self.base)
    }
}
