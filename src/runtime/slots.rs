//! Agent slots: cap the running agents, for each user and in all.
//!
//! A session has one slot, also while its last agent ends and the next one starts: the two share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::config::Limits;
use crate::domain::id::{SessionId, UserId};
use crate::limits::{CapReached, Permit, Permits};

/// The slots; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    permits: Permits<UserId>,
    by_session: Arc<Mutex<HashMap<SessionId, Weak<Permit<UserId>>>>>,
}

/// Held until the last share of it is dropped.
pub(super) type Slot = Arc<Permit<UserId>>;

impl Slots {
    pub(super) fn new(limits: &Limits) -> Self {
        let [total, per_user] =
            [limits.max_agents, limits.max_agents_per_user].map(|max| max.get() as usize);
        Self {
            permits: Permits::new(total, per_user),
            by_session: Arc::default(),
        }
    }

    /// How many are taken, and how many there are.
    pub(super) fn count(&self) -> (usize, usize) {
        self.permits.usage()
    }

    /// The slot that the session has, or a new one.
    pub(super) fn take(&self, user: UserId, session: SessionId) -> Result<Slot, CapReached> {
        let mut by_session = self
            .by_session
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = by_session.get(&session).and_then(Weak::upgrade) {
            return Ok(slot);
        }
        let slot = Arc::new(self.permits.try_acquire(user)?);
        // Here and not on drop: what is left behind is never more than there are slots.
        by_session.retain(|_, slot| slot.strong_count() > 0);
        by_session.insert(session, Arc::downgrade(&slot));
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::runtime::config::SandboxMode;

    #[test]
    fn a_user_has_no_more_agents_than_allowed_and_a_restart_needs_no_second_slot() {
        let number = |many| NonZeroU32::new(many).unwrap();
        let limits = Limits {
            max_agents: number(3),
            max_agents_per_user: number(2),
            sandbox: SandboxMode::Auto,
        };
        let (slots, ada, bob) = (Slots::new(&limits), UserId::new(), UserId::new());
        let (one, new) = (SessionId::new(), SessionId::new);
        let _first = slots.take(ada, one).unwrap();
        let second = slots.take(ada, new()).unwrap();
        assert_eq!(slots.take(ada, new()).unwrap_err(), CapReached::Key(2));
        let again = slots.take(ada, one).unwrap();
        let _third = slots.take(bob, new()).unwrap();
        assert_eq!(slots.take(bob, new()).unwrap_err(), CapReached::Total(3));
        drop(again);
        assert_eq!(slots.take(bob, new()).unwrap_err(), CapReached::Total(3));
        drop(second);
        assert!(slots.take(bob, new()).is_ok());
        assert_eq!(slots.count(), (2, 3));
    }
}
