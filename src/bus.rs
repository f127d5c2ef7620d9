//! What crosses nodes: so far the notices that an administrator sends to everybody.
//!
//! In process only; a session's events need no bus while one node owns them. Touches `domain` only.

use tokio::sync::broadcast;

use crate::domain::event::Level;

/// Notices that a connection may be behind. More: it misses the oldest, as it would have if it had
/// been away.
const QUEUE: usize = 64;

/// A system-wide announcement: it belongs to no session, and only the gateway and its
/// administrators can make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// How loud.
    pub(crate) level: Level,
    /// What everybody reads.
    pub(crate) message: String,
}

/// Where notices are sent and heard. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Notices(broadcast::Sender<Notice>);

impl Notices {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(QUEUE))
    }

    /// Tells everybody who is connected now; returns how many that are.
    pub(crate) fn send(&self, notice: Notice) -> usize {
        self.0.send(notice).unwrap_or(0)
    }

    /// Hears notices from now on.
    pub(crate) fn hear(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
