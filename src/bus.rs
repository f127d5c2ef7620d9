//! Bus: carries messages between nodes, so far only administrators' notices.
//!
//! In process only: a session's events need no bus while one node owns them. Touches `domain` only.

use tokio::sync::broadcast;

use crate::domain::event::Level;

/// Notices that a connection may lag behind. Beyond that it misses the oldest, as if it had been away.
const MAX_LAG: usize = 64;

/// A system-wide announcement that belongs to no session; only the gateway and its administrators
/// can send one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) level: Level,
    pub(crate) message: String,
}

/// Broadcast channel of notices. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Notices(broadcast::Sender<Notice>);

impl Notices {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(MAX_LAG))
    }

    /// Sends to all current connections; returns how many.
    pub(crate) fn send(&self, notice: Notice) -> usize {
        self.0.send(notice).unwrap_or(0)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
