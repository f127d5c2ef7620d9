//! The sessions that are awake on this node, and going to rest.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{ASKS, Asks, Inner, Session};
use crate::domain::id::SessionId;

/// The live sessions of this node.
#[derive(Clone, Default)]
pub(super) struct Live(Arc<Mutex<HashMap<SessionId, Session>>>);

impl Live {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, id: SessionId) -> Option<Session> {
        self.lock().get(&id).cloned()
    }

    /// Takes a session out, however its router ended.
    fn leave(&self, id: SessionId, router_of: &Weak<Inner>) {
        let mut live = self.lock();
        let is_it = |session: &Session| std::ptr::eq(Arc::as_ptr(&session.0), router_of.as_ptr());
        // It may have gone to rest and been woken anew since: that one stays.
        if live.get(&id).is_some_and(is_it) {
            live.remove(&id);
        }
        drop(live);
        if let Some(inner) = router_of.upgrade() {
            inner.over.cancel();
        }
    }

    /// Takes a session out, unless somebody is in it or has just asked something. Whoever comes
    /// next wakes it anew; both go through this lock, so there is never a second router.
    pub(super) fn let_rest(&self, id: SessionId) -> bool {
        let mut live = self.lock();
        let needed = live.get(&id).is_some_and(|session| {
            let asked = |asks: &Asks| asks.capacity() < ASKS;
            Arc::strong_count(&session.0) > 1 || session.0.asks.get().is_some_and(asked)
        });
        if !needed {
            live.remove(&id);
        }
        !needed
    }

    /// Forgets drafts that nobody is in for the second time in a row: a connection that was only
    /// lost has time to come back.
    pub(super) fn forget_drafts(&self) {
        self.lock().retain(|_, session| {
            let empty = session.0.asks.get().is_none() && Arc::strong_count(&session.0) == 1;
            let left_before = session.0.left.swap(empty, Ordering::Relaxed);
            !(empty && left_before)
        });
    }
}

/// Takes a session out of the live ones when its router ends.
pub(super) struct Present {
    pub(super) live: Live,
    pub(super) id: SessionId,
    pub(super) of: Weak<Inner>,
}

impl Drop for Present {
    fn drop(&mut self) {
        self.live.leave(self.id, &self.of);
    }
}
