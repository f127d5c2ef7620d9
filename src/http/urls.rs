//! Where people are sent: the addresses of pages and links.

use std::net::SocketAddr;

use super::Config;
use super::origin::Origins;

/// Where people are sent.
#[derive(Clone, Debug)]
pub struct Addresses {
    base: String,
}

impl Addresses {
    /// Addresses under the public URL, or under the address that is listened on.
    pub fn new(config: &Config, listening: SocketAddr) -> Self {
        let origins = Origins::new(config.public_url.as_ref(), &[], listening);
        Self::under(&format!("{}{}", origins.public(), config.base_path))
    }

    /// Addresses under a known base.
    pub fn under(base: &str) -> Self {
        Self {
            base: base.to_owned(),
        }
    }

    /// The page.
    pub fn page(&self) -> String {
        format!("{}/", self.base)
    }

    /// The base without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A setup link. The token is in the fragment: it reaches no server log and no `Referer`.
    pub fn setup(&self, token: &str) -> String {
        format!("{}/setup#t={token}", self.base)
    }

    /// An invite link.
    pub fn invite(&self, token: &str) -> String {
        format!("{}/invite#t={token}", self.base)
    }
}
