//! Resume: where a new connection's cursor starts, and its first frames.

use super::cursor::Cursor;
use super::frame_handler::FrameHandler;
use super::outbox::{Outgoing, snapshot};
use crate::domain::account::Principal;
use crate::domain::id::{Epoch, UserId};
use crate::wire::outbound::{self, Ack, Resume};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) after: u64,
    /// The present one if the client does not say.
    pub(crate) epoch: Option<Epoch>,
}

impl Position {
    /// As a client writes it. Text that is no epoch counts as an epoch of another journal.
    pub(crate) fn new(after: u64, epoch: Option<&str>) -> Self {
        let epoch = epoch.map(|text| text.parse().unwrap_or_else(|_| Epoch::new()));
        Self { after, epoch }
    }
}

/// The cursor, and the first frames: `CONNECTION_ACK`, then the state if the position is gone. `None`
/// if the session does not answer.
pub(super) async fn resume(
    handler: &FrameHandler,
    principal: &Principal,
    position: Option<Position>,
) -> Option<(Cursor, Vec<Outgoing>)> {
    let journal = handler.session.journal();
    let head = journal.head();
    let (resume, sent) = match position {
        None => (Resume::New, head),
        Some(position) if can_replay(handler, principal.user, position, head).await => {
            (Resume::Replayed, position.after)
        }
        Some(_) => (Resume::Snapshot, head),
    };
    handler.shared.metrics.count_resume(match resume {
        Resume::New => "new",
        Resume::Replayed => "replayed",
        Resume::Snapshot => "snapshot",
    });
    let ack = Ack {
        session: handler.session.id(),
        server_version: env!("CARGO_PKG_VERSION"),
        capabilities: &handler
            .shared
            .sessions
            .capabilities(handler.session.agent()),
        connection: handler.connection,
        agent: handler.session.agent(),
        epoch: journal.epoch(),
        offset: head,
        resume,
        heartbeat_seconds: handler.shared.ping_interval.as_secs(),
        limits: handler.shared.ack_limits(),
        token_expires_at: principal.expires_at,
        at: handler.shared.clock.wall(),
    };
    let mut frames = vec![outbound::connection_ack(&ack).into()];
    let mut cursor = Cursor::new(journal.clone(), principal.user, sent, head);
    if resume == Resume::Snapshot {
        frames.push(snapshot(handler, &mut cursor).await?);
    }
    Some((cursor, frames))
}

/// True if the journal still has everything after the position.
async fn can_replay(handler: &FrameHandler, user: UserId, position: Position, head: u64) -> bool {
    let journal = handler.session.journal();
    let is_same_epoch = position.epoch.is_none_or(|epoch| epoch == journal.epoch());
    is_same_epoch && position.after <= head && journal.has_all_after(position.after, user).await
}
