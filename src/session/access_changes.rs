//! Access changes: who may join a session, who drives it, and applying changes to live sessions.

use std::time::Duration;

use super::control_lease::{ClockReading, Control, ControlError, Driver, DriverIdentity, Takeover};
use super::presence::Grants;
use super::{Access, JoinError, Presence, Session, Sessions, access};
use crate::domain::account::{Principal, Username};
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::store::{SessionRow, StoreError};

/// Who drives a session, as its members are told.
#[derive(Debug)]
pub(crate) struct ControlStatus {
    pub(crate) version: u64,
    pub(crate) mode: ControlMode,
    /// Fence of the last takeover; 0 if there was none.
    pub(crate) fence: u64,
    /// The driver, and what is left of its lease.
    pub(crate) driver: Option<(Driver, Duration)>,
}

impl Session {
    /// The principal's access; `None` if none.
    pub(crate) fn access(&self, principal: &Principal) -> Option<Access> {
        access::access(
            principal,
            self.id(),
            self.0.owner,
            self.granted(principal.user),
        )
    }

    /// A user's access, whatever token they hold.
    pub(crate) fn access_of(&self, user: UserId) -> Option<Access> {
        access::access_of(user, self.0.owner, self.granted(user))
    }

    /// Called for every frame that is sent: the owner needs no grant, and takes no lock.
    fn granted(&self, user: UserId) -> Option<GrantRole> {
        if user == self.0.owner {
            None
        } else {
            self.0.presence.granted(user)
        }
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.0.presence
    }

    /// Checks that a connection may change the session; renews its lease if it is the driver.
    pub(crate) fn check_control(
        &self,
        connection: ConnectionId,
        fence: Option<u64>,
    ) -> Result<(), ControlError> {
        let (mode, lease) = (self.0.presence.mode(), self.0.parts.control_lease);
        self.with_control(|control, now| {
            control.check(connection, fence, mode, now)?;
            control.renew(connection, now, lease);
            Ok(())
        })
    }

    pub(crate) fn renew_control(&self, connection: ConnectionId) {
        let lease = self.0.parts.control_lease;
        self.with_control(|control, now| control.renew(connection, now, lease));
    }

    /// Takes control, or fails with the driver's name.
    pub(crate) fn take_control(
        &self,
        identity: DriverIdentity,
        takeover: Takeover,
    ) -> Result<ControlStatus, Username> {
        let (mode, lease) = (self.0.presence.mode(), self.0.parts.control_lease);
        self.with_control(|control, now| {
            control.take(identity, takeover, now, lease)?;
            Ok(control_status(control, mode, now))
        })
    }

    /// Gives control back; fails with the driver's name if it is another connection.
    pub(crate) fn release_control(&self, connection: ConnectionId) -> Result<(), Username> {
        self.with_control(|control, now| control.release(connection, now))
    }

    pub(crate) fn control_status(&self) -> ControlStatus {
        let mode = self.0.presence.mode();
        self.with_control(|control, now| control_status(control, mode, now))
    }

    /// Notifies members of a change, also of a lease that ran out meanwhile.
    fn with_control<T>(&self, act: impl FnOnce(&mut Control, ClockReading) -> T) -> T {
        let now = self.now();
        let mut control = self.0.presence.control();
        let version = control.version();
        let outcome = act(&mut control, now);
        let changed = control.version() != version;
        drop(control);
        if changed {
            self.0.presence.notify();
        }
        outcome
    }

    fn now(&self) -> ClockReading {
        let clock = &self.0.parts.clock;
        ClockReading {
            monotonic: clock.monotonic(),
            wall_millis: u64::try_from(clock.wall().as_millisecond()).unwrap_or(0),
        }
    }
}

fn control_status(control: &mut Control, mode: ControlMode, now: ClockReading) -> ControlStatus {
    let driver = control.driver(now).cloned();
    ControlStatus {
        driver: driver.map(|driver| {
            let left = driver.until.saturating_sub(now.monotonic);
            (driver, left)
        }),
        version: control.version(),
        fence: control.fence(),
        mode,
    }
}

impl Sessions {
    /// A session's row and the principal's access. `NotFound` if it has ended or there is no access.
    pub(crate) async fn look_up(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<(SessionRow, Access), JoinError> {
        let row = self.parts.store.session_for(id, principal.user).await?;
        row.filter(|row| row.ended_at.is_none())
            .and_then(|row| {
                let access = access::access(principal, id, row.owner, row.granted)?;
                Some((row, access))
            })
            .ok_or(JoinError::NotFound)
    }

    /// Reads a live session's grants, control mode and end again and applies them. Called after a
    /// change, here or on another node, and when there may have been one.
    pub(crate) async fn grants_changed(&self, id: SessionId) {
        let Some(session) = self.live(id) else { return };
        if let Err(error) = self.read_grants(&session).await {
            // Without valid grants all but the owner are closed; their next join asks storage.
            tracing::warn!(%error, session.id = %id, user.id = %session.0.owner, "the session's grants cannot be read; its guests have to join again");
            let presence = &session.0.presence;
            let read = presence.begin_read();
            presence.apply(&read, session.0.owner, None, presence.mode());
        }
        session.senders_changed();
    }

    /// Admits a principal to a live session. For others than the owner storage is asked: another node
    /// may have changed the grants.
    pub(super) async fn admit(
        &self,
        principal: &Principal,
        session: Session,
    ) -> Result<Session, JoinError> {
        if session.0.owner != principal.user {
            // Before anything changes: a stranger must have no effect.
            self.look_up(principal, session.id()).await?;
            self.read_grants(&session).await?;
        }
        match session.access(principal) {
            Some(_) => Ok(session),
            None => Err(JoinError::NotFound),
        }
    }

    async fn read_grants(&self, session: &Session) -> Result<(), StoreError> {
        let read = session.0.presence.begin_read();
        let row = self.parts.store.session(session.id()).await?;
        if row.as_ref().is_some_and(|row| row.ended_at.is_some()) {
            self.mark_ended(session.id());
            return Ok(());
        }
        let rows = self.parts.store.grants(session.id()).await?;
        let grants: Grants = rows.into_iter().map(|row| (row.user, row.role)).collect();
        let mode = row.map(|row| row.control).unwrap_or_default();
        let presence = &session.0.presence;
        presence.apply(&read, session.0.owner, Some(grants), mode);
        Ok(())
    }
}
