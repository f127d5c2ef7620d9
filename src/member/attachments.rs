//! Attachments: looks up the files that a prompt names by id, before it goes to the session.

use super::frame_handler::FrameHandler;
use crate::domain::command::{Attachment, Command};
use crate::domain::error_code::ErrorCode;
use crate::store::hex;
use crate::wire::inbound::Rejected;

impl FrameHandler {
    /// Replaces each file's id by its stored metadata; rejects a file of another session.
    pub(super) async fn resolve(&self, command: &mut Command) -> Result<(), Rejected> {
        let Command::SubmitPrompt { prompt, .. } = command else {
            return Ok(());
        };
        let is_named = |attachment: &Attachment| matches!(attachment, Attachment::Named { .. });
        if !prompt.attachments.iter().any(is_named) {
            return Ok(());
        }
        let found = self.shared.sessions.attachments(self.session.id()).await;
        let known = found.map_err(|error| {
            tracing::warn!(%error, session.id = %self.session.id(), connection.id = %self.connection, "the attachments of a prompt cannot be looked up");
            Rejected {
                code: ErrorCode::StorageUnavailable,
                message: "The database does not answer at the moment; try again.".to_owned(),
                details: None,
                message_id: None,
            }
        })?;
        for (index, attachment) in prompt.attachments.iter_mut().enumerate() {
            let Attachment::Named { id } = *attachment else {
                continue;
            };
            let Some(row) = known.iter().find(|row| row.id == id) else {
                let path = format!("payload.attachments[{index}].attachmentId");
                return Err(Rejected::field(&path, "is not a file of this session"));
            };
            *attachment = Attachment::Stored {
                id,
                name: row.name.clone(),
                media_type: row.media_type.clone(),
                size: row.size_bytes,
                sha256: hex(&row.hash),
            };
        }
        Ok(())
    }
}
