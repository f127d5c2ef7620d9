//! The first frames of a connection, and where its cursor begins.

use std::sync::Arc;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::cursor::Cursor;
use super::desk::Desk;
use super::pulse::PING_EVERY;
use super::upgrade::Position;
use super::visit::WHOLE;
use crate::domain::account::Principal;
use crate::session::Found;
use crate::wire::outbound::{self, Ack, Resume};

/// The cursor of a new connection and the first frames: the acknowledgement, perhaps the state.
pub(super) async fn begin(
    desk: &Arc<Desk>,
    principal: &Principal,
    position: Option<Position>,
) -> Option<(Cursor, Vec<Utf8Bytes>)> {
    let journal = desk.session.journal();
    let head = journal.head();
    let (resume, sent) = match position {
        None => (Resume::New, head),
        Some(position) if can_replay(desk, position, head).await => {
            (Resume::Replayed, position.after)
        }
        Some(_) => (Resume::Snapshot, head),
    };
    let ack = Ack {
        session: desk.session.id(),
        server_version: env!("CARGO_PKG_VERSION"),
        capabilities: desk.door.sessions.capabilities(desk.session.agent()),
        connection: desk.connection,
        agent: desk.session.agent(),
        epoch: journal.epoch(),
        offset: head,
        resume,
        heartbeat_seconds: PING_EVERY.as_secs(),
        limits: desk.door.told_limits(),
        token_expires_at: principal.expires_at,
        at: desk.door.clock.wall(),
    };
    let mut frames = vec![outbound::connection_ack(&ack)];
    let mut cursor = Cursor::new(desk.session.id(), journal.clone(), sent, head);
    if matches!(resume, Resume::Snapshot) {
        let state = desk.session.state().await?;
        cursor.jump(state.offset);
        frames.push(desk.full_state(&state, WHOLE, None));
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
