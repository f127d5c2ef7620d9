//! Presence: the connections, grants and driver of one session, and a version that grows when any of
//! them changes.
//!
//! Every live session has one and most have no member but their owner, so it is small. Not journaled:
//! it is the current state, and a member that missed a change gets the next one. Touches `domain`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::control_lease::Control;
use super::watermark::Watermark;
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{ConnectionId, UserId};

#[derive(Default)]
pub(crate) struct Presence {
    changes: Watermark,
    /// Grows when the members should be told who is there.
    members_version: AtomicU64,
    connections: Mutex<Vec<ConnectionId>>,
    sharing: RwLock<Sharing>,
    reads: AtomicU64,
    control: Mutex<Control>,
}

pub(super) type Grants = HashMap<UserId, GrantRole>;

/// Grants and control mode, as last read from storage.
#[derive(Default)]
struct Sharing {
    read: u64,
    /// `None` while storage cannot tell.
    grants: Option<Grants>,
    mode: ControlMode,
}

/// A read of the stored grants, numbered by when it began.
pub(super) struct GrantsRead(u64);

impl Presence {
    pub(super) fn new(mode: ControlMode) -> Self {
        let sharing = Sharing {
            mode,
            ..Sharing::default()
        };
        Self {
            sharing: RwLock::new(sharing),
            ..Self::default()
        }
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.changes.level()
    }

    /// Returns once the version is beyond this one. Cancel-safe.
    pub(crate) async fn changed_beyond(&self, version: u64) {
        self.changes.beyond(version).await;
    }

    pub(super) fn notify(&self) {
        self.changes.rise();
    }

    pub(crate) fn members_version(&self) -> u64 {
        self.members_version.load(Ordering::Acquire)
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.lock_connections().clone()
    }

    /// Adds a connection. A single member is told nothing: a client that does not know presence never
    /// meets it while it is alone.
    pub(super) fn enter(&self, connection: ConnectionId) {
        let mut connections = self.lock_connections();
        connections.reserve_exact(1);
        connections.push(connection);
        let alone = connections.len() == 1;
        drop(connections);
        if !alone {
            self.notify_members();
        }
    }

    /// Removes a connection, and its control with it.
    pub(super) fn leave(&self, connection: ConnectionId) {
        let mut connections = self.lock_connections();
        connections.retain(|known| *known != connection);
        let empty = connections.is_empty();
        drop(connections);
        self.control().leave(connection);
        if !empty {
            self.notify_members();
        }
    }

    fn notify_members(&self) {
        self.members_version.fetch_add(1, Ordering::AcqRel);
        self.changes.rise();
    }

    pub(super) fn granted(&self, user: UserId) -> Option<GrantRole> {
        self.sharing().grants.as_ref()?.get(&user).copied()
    }

    /// False if the grants could not be read: guests have to join again.
    pub(crate) fn has_grants(&self) -> bool {
        self.sharing().grants.is_some()
    }

    pub(crate) fn mode(&self) -> ControlMode {
        self.sharing().mode
    }

    /// Call before storage is asked.
    pub(super) fn begin_read(&self) -> GrantsRead {
        GrantsRead(self.reads.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Applies what was read, unless a later read was applied already: the read that began last has
    /// seen every change that an earlier one has.
    pub(super) fn apply(
        &self,
        read: &GrantsRead,
        owner: UserId,
        grants: Option<Grants>,
        mode: ControlMode,
    ) {
        let mut sharing = self.sharing.write().unwrap_or_else(PoisonError::into_inner);
        if read.0 <= sharing.read {
            return;
        }
        // The first read, for a guest who joins, changes nothing for the members.
        let grants_changed = sharing.grants.is_some() && sharing.grants != grants;
        let mut control = self.control();
        let version = control.version();
        if sharing.mode != mode {
            control.bump_version();
        }
        // A driver without the right to edit loses control.
        control.clear_if(|driver| {
            let granted = grants
                .as_ref()
                .and_then(|all| all.get(&driver.identity.user));
            driver.identity.user != owner && granted != Some(&GrantRole::Editor)
        });
        let control_changed = control.version() != version;
        drop(control);
        *sharing = Sharing {
            read: read.0,
            grants,
            mode,
        };
        drop(sharing);
        if grants_changed && self.lock_connections().len() > 1 {
            self.members_version.fetch_add(1, Ordering::AcqRel);
        }
        if grants_changed || control_changed {
            self.changes.rise();
        }
    }

    /// Locks the control. Lock nothing else while holding it.
    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sharing(&self) -> RwLockReadGuard<'_, Sharing> {
        self.sharing.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_connections(&self) -> MutexGuard<'_, Vec<ConnectionId>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::control_lease::{ClockReading, DriverIdentity, Takeover};

    fn granted(user: UserId, role: GrantRole) -> Grants {
        Grants::from([(user, role)])
    }

    #[test]
    fn presence_is_small_while_nothing_happens() {
        let bytes = size_of::<Presence>();
        assert!(bytes <= 256, "{bytes} bytes in every live session");
    }

    #[test]
    fn a_single_member_is_told_nothing() {
        let (presence, first, second) = (
            Presence::default(),
            ConnectionId::new(),
            ConnectionId::new(),
        );
        presence.enter(first);
        assert_eq!((presence.members_version(), presence.version()), (0, 0));
        presence.enter(second);
        assert_eq!(presence.members_version(), 1);
        presence.leave(second);
        assert_eq!(presence.members_version(), 2, "the other one left");
        presence.leave(first);
        presence.enter(second);
        assert_eq!(presence.members_version(), 2);
        assert_eq!(presence.connections(), [second]);
    }

    #[test]
    fn a_read_that_was_overtaken_changes_nothing() {
        let (presence, owner, ben) = (Presence::default(), UserId::new(), UserId::new());
        let before_the_change = presence.begin_read();
        let after_it = presence.begin_read();
        presence.apply(
            &after_it,
            owner,
            Some(Grants::new()),
            ControlMode::Exclusive,
        );
        let late = granted(ben, GrantRole::Editor);
        presence.apply(&before_the_change, owner, Some(late), ControlMode::Open);
        assert_eq!(presence.granted(ben), None);
        assert_eq!(presence.mode(), ControlMode::Exclusive);
    }

    #[test]
    fn a_driver_who_becomes_a_viewer_loses_control() {
        let (presence, owner, ben) = (Presence::default(), UserId::new(), UserId::new());
        let now = ClockReading {
            monotonic: std::time::Duration::ZERO,
            wall_millis: 1,
        };
        let identity = DriverIdentity {
            connection: ConnectionId::new(),
            user: ben,
            username: "ben".parse().unwrap(),
        };
        let lease = std::time::Duration::from_secs(1);
        let taken = presence
            .control()
            .take(identity, Takeover::IfFree, now, lease);
        taken.unwrap();
        let editor = granted(ben, GrantRole::Editor);
        let mode = ControlMode::Open;
        presence.apply(&presence.begin_read(), owner, Some(editor), mode);
        assert!(presence.control().driver(now).is_some());
        let viewer = granted(ben, GrantRole::Viewer);
        presence.apply(&presence.begin_read(), owner, Some(viewer), mode);
        assert!(presence.control().driver(now).is_none());
    }
}
