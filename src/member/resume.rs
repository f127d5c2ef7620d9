//! The first frames of a connection, and where its cursor begins.

use std::sync::Arc;

use super::Desk;
use super::cursor::{Cursor, Outgoing};
use crate::domain::account::Principal;
use crate::domain::id::Epoch;
use crate::session::Found;
use crate::wire::outbound::{self, Ack, Resume, StateParts};

/// From where a client reads on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) after: u64,
    /// Which counting it means; the present one if it does not say.
    pub(crate) epoch: Option<Epoch>,
}

impl Position {
    /// As a client writes it. An epoch that is none of ours is another epoch.
    pub(crate) fn new(after: u64, epoch: Option<&str>) -> Self {
        let epoch = epoch.map(|text| text.parse().unwrap_or_else(|_| Epoch::new()));
        Self { after, epoch }
    }
}

/// The cursor of a new connection and the first frames: the acknowledgement, perhaps the state.
pub(crate) async fn begin(
    desk: &Arc<Desk>,
    principal: &Principal,
    position: Option<Position>,
) -> Option<(Cursor, Vec<Outgoing>)> {
    let journal = desk.session.journal();
    let head = journal.head();
    let (resume, sent) = match position {
        None => (Resume::New, head),
        Some(position) if can_replay(desk, position, head).await => {
            (Resume::Replayed, position.after)
        }
        Some(_) => (Resume::Snapshot, head),
    };
    desk.reception.metrics.begins(match resume {
        Resume::New => "new",
        Resume::Replayed => "replayed",
        Resume::Snapshot => "snapshot",
    });
    let ack = Ack {
        session: desk.session.id(),
        server_version: env!("CARGO_PKG_VERSION"),
        capabilities: &desk.reception.sessions.capabilities(desk.session.agent()),
        connection: desk.connection,
        agent: desk.session.agent(),
        epoch: journal.epoch(),
        offset: head,
        resume,
        heartbeat_seconds: desk.reception.ping.as_secs(),
        limits: desk.reception.told_limits(),
        token_expires_at: principal.expires_at,
        at: desk.reception.clock.wall(),
    };
    let mut frames = vec![outbound::connection_ack(&ack).into()];
    let mut cursor = Cursor::new(desk.session.id(), journal.clone(), sent, head);
    if matches!(resume, Resume::Snapshot) {
        let state = desk.session.state().await?;
        cursor.jump(state.offset);
        frames.push(Outgoing {
            text: desk.full_state(&state, StateParts::WHOLE, None),
            offset: Some(state.offset),
            committed: None,
        });
    }
    Some((cursor, frames))
}

/// Is everything after that position there?
async fn can_replay(desk: &Arc<Desk>, position: Position, head: u64) -> bool {
    let journal = desk.session.journal();
    let same_epoch = position.epoch.is_none_or(|epoch| epoch == journal.epoch());
    same_epoch
        && position.after <= head
        && matches!(
            journal.after(position.after, 1).await,
            Ok(Found::Entries(_))
        )
}
