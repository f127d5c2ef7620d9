//! Finding out who may come into a session, and telling those inside when that changes.

use std::time::Duration;

use super::circle::Granted;
use super::control::{Asker, Control, Holder, NotDriving, Now, Wish};
use super::{Access, Circle, JoinError, Session, Sessions, access};
use crate::domain::account::{Principal, Username};
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{ConnectionId, SessionId, UserId};
use crate::store::{SessionRow, StoreError};

/// Who drives, as everybody in a session is told.
pub(crate) struct Driving {
    /// Grows with every change.
    pub(crate) version: u64,
    /// Whose commands count.
    pub(crate) mode: ControlMode,
    /// The number of the last taking; 0 if there was none.
    pub(crate) fence: u64,
    /// Who drives, and for how long still if nothing more is heard of them.
    pub(crate) holder: Option<(Holder, Duration)>,
}

impl Session {
    /// What this user may do here; `None` if nothing.
    pub(crate) fn access(&self, principal: &Principal) -> Option<Access> {
        access::access(
            principal,
            self.id(),
            self.0.owner,
            self.granted(principal.user),
        )
    }

    /// The same of anybody, whatever they prove it with.
    pub(crate) fn access_of(&self, user: UserId) -> Option<Access> {
        access::access_of(user, self.0.owner, self.granted(user))
    }

    /// Asked before everything that is sent: the owner needs no grant, and no lock.
    fn granted(&self, user: UserId) -> Option<GrantRole> {
        if user == self.0.owner {
            None
        } else {
            self.0.circle.granted(user)
        }
    }

    /// The people around it.
    pub(crate) fn circle(&self) -> &Circle {
        &self.0.circle
    }

    /// Does a changing command of this connection count? If so its sender, should they drive, does
    /// so for longer.
    pub(crate) fn may_drive(
        &self,
        connection: ConnectionId,
        fence: Option<u64>,
    ) -> Result<(), NotDriving> {
        let (mode, lease) = (self.0.circle.mode(), self.0.parts.lease);
        self.control(|control, now| {
            control.check(connection, fence, mode, now)?;
            control.renew(connection, now, lease);
            Ok(())
        })
    }

    /// A sign of life of somebody who may drive.
    pub(crate) fn keeps_driving(&self, connection: ConnectionId) {
        let lease = self.0.parts.lease;
        self.control(|control, now| control.renew(connection, now, lease));
    }

    /// Hands control to somebody, or says who has it.
    pub(crate) fn take_control(&self, asker: Asker, wish: Wish) -> Result<Driving, Username> {
        let (mode, lease) = (self.0.circle.mode(), self.0.parts.lease);
        self.control(|control, now| {
            control.take(asker, wish, now, lease)?;
            Ok(driving(control, mode, now))
        })
    }

    /// Gives control back; whoever does not have it is told who has.
    pub(crate) fn release_control(&self, connection: ConnectionId) -> Result<(), Username> {
        self.control(|control, now| control.release(connection, now))
    }

    /// Who drives now.
    pub(crate) fn driving(&self) -> Driving {
        let mode = self.0.circle.mode();
        self.control(|control, now| driving(control, mode, now))
    }

    /// Everybody hears of what changes meanwhile, be it only that somebody's time has run out.
    fn control<T>(&self, act: impl FnOnce(&mut Control, Now) -> T) -> T {
        let now = self.now();
        let mut control = self.0.circle.control();
        let version = control.version();
        let outcome = act(&mut control, now);
        let changed = control.version() != version;
        drop(control);
        if changed {
            self.0.circle.ring();
        }
        outcome
    }

    fn now(&self) -> Now {
        let clock = &self.0.parts.clock;
        Now {
            monotonic: clock.monotonic(),
            wall_millis: u64::try_from(clock.wall().as_millisecond()).unwrap_or(0),
        }
    }
}

fn driving(control: &mut Control, mode: ControlMode, now: Now) -> Driving {
    let holder = control.holder(now).cloned();
    Driving {
        holder: holder.map(|holder| {
            let left = holder.until.saturating_sub(now.monotonic);
            (holder, left)
        }),
        version: control.version(),
        fence: control.fence(),
        mode,
    }
}

impl Sessions {
    /// What is stored about a session, and what the principal may do in it: none that has ended, none
    /// that the principal may not know of.
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

    /// The owner of a session has decided something else, or perhaps has: reads it, and lets
    /// everybody in the session know, also that it has ended. The way in for news from elsewhere,
    /// too.
    pub(crate) async fn grants_changed(&self, id: SessionId) {
        let Some(session) = self.live(id) else { return };
        if let Err(error) = self.read_grants(&session).await {
            // Nobody stays on what may not be true any more: they join anew, which asks storage.
            tracing::warn!(%error, session.id = %id, "who may be in a session cannot be read");
            let circle = &session.0.circle;
            let reading = circle.begin_reading();
            circle.take_in(&reading, session.0.owner, None, circle.mode());
        }
    }

    /// Lets somebody into a live session. Others than the owner only on the word of storage: what
    /// this node remembers may have been changed elsewhere.
    pub(super) async fn admit(
        &self,
        principal: &Principal,
        session: Session,
    ) -> Result<Session, JoinError> {
        if session.0.owner != principal.user {
            // A stranger is refused before anything is touched.
            self.look_up(principal, session.id()).await?;
            self.read_grants(&session).await?;
        }
        match session.access(principal) {
            Some(_) => Ok(session),
            None => Err(JoinError::NotFound),
        }
    }

    async fn read_grants(&self, session: &Session) -> Result<(), StoreError> {
        let reading = session.0.circle.begin_reading();
        let row = self.parts.store.session(session.id()).await?;
        if row.as_ref().is_some_and(|row| row.ended_at.is_some()) {
            self.ended(session.id());
            return Ok(());
        }
        let rows = self.parts.store.grants(session.id()).await?;
        let grants: Granted = rows.into_iter().map(|row| (row.user, row.role)).collect();
        let mode = row.map(|row| row.control).unwrap_or_default();
        let circle = &session.0.circle;
        circle.take_in(&reading, session.0.owner, Some(grants), mode);
        Ok(())
    }
}
