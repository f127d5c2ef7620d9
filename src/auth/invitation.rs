//! Invitation: what the holder of an invite link may see before accepting it.

use super::Auth;
use super::random_secret::hash_presented;
use crate::store::{Invitation, StoreError};

impl Auth {
    /// The invitation behind a link; `None` if the link is unknown, used or expired.
    pub async fn invitation(&self, link: &str) -> Result<Option<Invitation>, StoreError> {
        let Some(hash) = hash_presented(link) else {
            return Ok(None);
        };
        self.0.store.invitation(hash, self.0.clock.wall()).await
    }
}
