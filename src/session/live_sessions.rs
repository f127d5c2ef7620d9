//! Live sessions: those with a handle on this node, by id, and how they leave memory.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::mailbox::{MAILBOX_CAPACITY, Mailbox};
use super::{Inner, Session};
use crate::domain::id::SessionId;

#[derive(Clone, Default)]
pub(super) struct LiveSessions(Arc<Mutex<HashMap<SessionId, Session>>>);

impl LiveSessions {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, id: SessionId) -> Option<Session> {
        self.lock().get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Session> {
        self.lock().values().cloned().collect()
    }

    /// Removes a session whose router has ended.
    fn remove(&self, id: SessionId, ended: &Weak<Inner>) {
        let mut live = self.lock();
        let is_it = |session: &Session| std::ptr::eq(Arc::as_ptr(&session.0), ended.as_ptr());
        // It may have been removed as idle and activated again since: that one stays.
        if live.get(&id).is_some_and(is_it) {
            live.remove(&id);
        }
        drop(live);
        if let Some(inner) = ended.upgrade() {
            inner.closed.cancel();
        }
    }

    /// Removes a session unless it has members or a message in its mailbox. The next join activates
    /// it again; both go through this lock, so there is never a second router.
    pub(super) fn remove_if_idle(&self, id: SessionId) -> bool {
        let mut live = self.lock();
        let is_needed = live.get(&id).is_some_and(|session| {
            let has_mail = |mailbox: &Mailbox| mailbox.capacity() < MAILBOX_CAPACITY;
            Arc::strong_count(&session.0) > 1 || session.0.mailbox.get().is_some_and(has_mail)
        });
        if !is_needed {
            live.remove(&id);
        }
        !is_needed
    }

    /// Removes drafts that had no members at two sweeps in a row: a connection that was only lost
    /// has time to come back.
    pub(super) fn remove_abandoned_drafts(&self) {
        self.lock().retain(|_, session| {
            let is_empty = session.0.mailbox.get().is_none() && Arc::strong_count(&session.0) == 1;
            let was_empty = session.0.abandoned.swap(is_empty, Ordering::Relaxed);
            !(is_empty && was_empty)
        });
    }
}

/// Removes a session from the live ones when its router's task ends.
pub(super) struct LiveGuard {
    pub(super) live: LiveSessions,
    pub(super) id: SessionId,
    pub(super) session: Weak<Inner>,
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.live.remove(self.id, &self.session);
    }
}
