//! What becomes of live sessions when the account of their owner changes.

use super::{Session, Sessions};
use crate::domain::id::{SessionId, UserId};
use crate::store::StoreError;

impl Sessions {
    /// Ends the live sessions of somebody who was removed, for everybody else in them, too. Whoever
    /// is only disabled leaves them as they are: those they were shared with may go on.
    pub(crate) async fn owner_changed(&self, owner: UserId) -> Result<(), StoreError> {
        let theirs: Vec<SessionId> = {
            let live = self.parts.live.lock();
            let is_theirs = |session: &&Session| session.0.owner == owner;
            live.values().filter(is_theirs).map(Session::id).collect()
        };
        if theirs.is_empty() {
            return Ok(());
        }
        let is_removed = self.parts.store.user(owner).await?.is_none();
        for id in theirs {
            let row = self.parts.store.session(id).await?;
            // What is not stored yet is missing there without being over.
            if is_removed || row.is_some_and(|row| row.ended_at.is_some()) {
                self.ended(id);
            }
        }
        Ok(())
    }
}
