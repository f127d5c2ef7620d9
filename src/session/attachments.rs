//! Files of a session, as far as the registry has to do with them.

use super::Sessions;
use crate::domain::account::Principal;
use crate::domain::id::SessionId;
use crate::store::{AttachmentRow, StoreError};

impl Sessions {
    /// Stores a session that is in memory only, if it is one and the principal is in it: something
    /// is about to refer to it.
    pub(crate) async fn keep_draft(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<(), StoreError> {
        let draft = self
            .live(id)
            .filter(|session| session.access(principal).is_some())
            .and_then(|session| session.0.draft.clone());
        match draft {
            // Does nothing if it was stored since.
            Some(new) => self.parts.store.create_session(&new).await,
            None => Ok(()),
        }
    }

    /// The files of a session. Whoever asks has checked that it may.
    pub(crate) async fn attachments(
        &self,
        id: SessionId,
    ) -> Result<Vec<AttachmentRow>, StoreError> {
        self.parts.store.attachments(id).await
    }
}
