//! The people around one session: who is in it, who else may come, who drives; and the bell that
//! rings when any of that changes.
//!
//! Every open session has one and most have nobody but their owner, so it is small while nothing
//! happens. It is no part of the journal: it says how things are now, and whoever missed a change
//! is told the next one. Touches `domain`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::control::Control;
use super::watermark::Watermark;
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{ConnectionId, UserId};

/// The people around one session.
#[derive(Default)]
pub(crate) struct Circle {
    bell: Watermark,
    /// Grows whenever those who are in it should hear who is in it.
    presence: AtomicU64,
    seats: Mutex<Vec<ConnectionId>>,
    rules: RwLock<Rules>,
    readings: AtomicU64,
    control: Mutex<Control>,
}

/// What somebody may do who is not the owner.
pub(super) type Granted = HashMap<UserId, GrantRole>;

/// What the owner decided, as last read from storage.
#[derive(Default)]
struct Rules {
    /// Which reading it was.
    reading: u64,
    /// `None`: not known at the moment.
    grants: Option<Granted>,
    mode: ControlMode,
}

/// A look at what is stored, by when it began.
pub(super) struct Reading(u64);

impl Circle {
    pub(super) fn new(mode: ControlMode) -> Self {
        let rules = Rules {
            mode,
            ..Rules::default()
        };
        Self {
            rules: RwLock::new(rules),
            ..Self::default()
        }
    }

    /// How often its bell rang.
    pub(crate) fn rings(&self) -> u64 {
        self.bell.level()
    }

    /// Returns once the bell rang more often than that. Cancel-safe.
    pub(crate) async fn rings_beyond(&self, heard: u64) {
        self.bell.beyond(heard).await;
    }

    /// Something about control has changed.
    pub(super) fn ring(&self) {
        self.bell.rise();
    }

    /// Which version of who is in it there is to tell.
    pub(crate) fn presence(&self) -> u64 {
        self.presence.load(Ordering::Acquire)
    }

    /// The connections that are in it.
    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.seats().clone()
    }

    /// Somebody came. Whoever is alone is told nothing: a client that knows nothing of others meets
    /// nothing that it does not know.
    pub(super) fn enter(&self, connection: ConnectionId) {
        let mut seats = self.seats();
        seats.reserve_exact(1);
        seats.push(connection);
        let alone = seats.len() == 1;
        drop(seats);
        if !alone {
            self.tell_presence();
        }
    }

    /// Somebody left, and with them what they drove.
    pub(super) fn leave(&self, connection: ConnectionId) {
        let mut seats = self.seats();
        seats.retain(|seat| *seat != connection);
        let empty = seats.is_empty();
        drop(seats);
        self.control().leave(connection);
        if !empty {
            self.tell_presence();
        }
    }

    fn tell_presence(&self) {
        self.presence.fetch_add(1, Ordering::AcqRel);
        self.bell.rise();
    }

    /// What somebody was granted, as far as that is known.
    pub(super) fn granted(&self, user: UserId) -> Option<GrantRole> {
        self.rules().grants.as_ref()?.get(&user).copied()
    }

    /// Is it known at the moment who else may come? If not, they have to join anew.
    pub(crate) fn knows_grants(&self) -> bool {
        self.rules().grants.is_some()
    }

    /// Whose commands count.
    pub(crate) fn mode(&self) -> ControlMode {
        self.rules().mode
    }

    /// To be called before storage is asked.
    pub(super) fn begin_reading(&self) -> Reading {
        Reading(self.readings.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Takes in what was read, unless a later reading is there already: of two that overtake each
    /// other, the one that began last has seen every change that the other has.
    pub(super) fn take_in(
        &self,
        reading: &Reading,
        owner: UserId,
        grants: Option<Granted>,
        mode: ControlMode,
    ) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if reading.0 <= rules.reading {
            return;
        }
        // A first reading, for somebody who joins, changes nothing for those who are here.
        let others = rules.grants.is_some() && rules.grants != grants;
        let mut control = self.control();
        let version = control.version();
        if rules.mode != mode {
            control.touch();
        }
        // Who may not drive any more does not.
        control.clear_if(|holder| {
            let granted = grants.as_ref().and_then(|all| all.get(&holder.who.user));
            holder.who.user != owner && granted != Some(&GrantRole::Editor)
        });
        let driving = control.version() != version;
        drop(control);
        *rules = Rules {
            reading: reading.0,
            grants,
            mode,
        };
        drop(rules);
        if others && self.seats().len() > 1 {
            self.presence.fetch_add(1, Ordering::AcqRel);
        }
        if others || driving {
            self.bell.rise();
        }
    }

    /// Who drives. Held for a moment only; whoever holds it locks nothing else.
    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn seats(&self) -> MutexGuard<'_, Vec<ConnectionId>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::control::{Asker, Now, Wish};

    fn granted(user: UserId, role: GrantRole) -> Granted {
        Granted::from([(user, role)])
    }

    #[test]
    fn it_is_small_while_nothing_happens() {
        let bytes = size_of::<Circle>();
        assert!(bytes <= 256, "{bytes} bytes in every open session");
    }

    #[test]
    fn whoever_is_alone_is_told_nothing() {
        let (circle, first, second) = (Circle::default(), ConnectionId::new(), ConnectionId::new());
        circle.enter(first);
        assert_eq!((circle.presence(), circle.rings()), (0, 0));
        circle.enter(second);
        assert_eq!(circle.presence(), 1);
        circle.leave(second);
        assert_eq!(circle.presence(), 2, "the other one left");
        circle.leave(first);
        circle.enter(second);
        assert_eq!(circle.presence(), 2);
        assert_eq!(circle.connections(), [second]);
    }

    #[test]
    fn a_reading_that_was_overtaken_changes_nothing() {
        let (circle, owner, ben) = (Circle::default(), UserId::new(), UserId::new());
        let before_the_change = circle.begin_reading();
        let after_it = circle.begin_reading();
        circle.take_in(
            &after_it,
            owner,
            Some(Granted::new()),
            ControlMode::Exclusive,
        );
        let late = granted(ben, GrantRole::Editor);
        circle.take_in(&before_the_change, owner, Some(late), ControlMode::Open);
        assert_eq!(circle.granted(ben), None);
        assert_eq!(circle.mode(), ControlMode::Exclusive);
    }

    #[test]
    fn who_may_only_look_on_drives_no_more() {
        let (circle, owner, ben) = (Circle::default(), UserId::new(), UserId::new());
        let now = Now {
            monotonic: std::time::Duration::ZERO,
            wall_millis: 1,
        };
        let asker = Asker {
            connection: ConnectionId::new(),
            user: ben,
            username: "ben".parse().unwrap(),
        };
        let lease = std::time::Duration::from_secs(1);
        let taken = circle.control().take(asker, Wish::Polite, now, lease);
        taken.unwrap();
        let editor = granted(ben, GrantRole::Editor);
        let mode = ControlMode::Open;
        circle.take_in(&circle.begin_reading(), owner, Some(editor), mode);
        assert!(circle.control().holder(now).is_some());
        let viewer = granted(ben, GrantRole::Viewer);
        circle.take_in(&circle.begin_reading(), owner, Some(viewer), mode);
        assert!(circle.control().holder(now).is_none());
    }
}
