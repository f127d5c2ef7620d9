//! Control lease: the one connection that drives a session, for a while, under a fence.
//!
//! Pure; the caller brings the time. Every takeover has a fence number that is never reused, so that a
//! command sent under an earlier one is recognised. Touches `domain` only.

use std::time::Duration;

use crate::domain::account::Username;
use crate::domain::grant::ControlMode;
use crate::domain::id::{ConnectionId, UserId};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub(crate) monotonic: Duration,
    pub(crate) wall_millis: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct DriverIdentity {
    pub(crate) connection: ConnectionId,
    pub(crate) user: UserId,
    pub(crate) username: Username,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// Only if no other user has control.
    IfFree,
    /// From any driver; for the owner only.
    Force,
}

#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub(crate) identity: DriverIdentity,
    pub(crate) fence: u64,
    /// End of the lease, by the monotonic clock.
    pub(crate) until: Duration,
}

/// Why a connection may not change the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlError {
    HeldByOther(Username),
    /// The session needs a driver and has none.
    NotHeld,
    /// The command names another fence than the current one.
    StaleFence,
}

#[derive(Debug, Default)]
pub(super) struct Control {
    fence: u64,
    /// Boxed: most sessions never have one.
    driver: Option<Box<Driver>>,
    /// Grows with every change that members are told of.
    version: u64,
}

impl Control {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn bump_version(&mut self) {
        self.version += 1;
    }

    /// Fence of the last takeover; 0 if there was none.
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// The driver, unless its lease has run out.
    pub(super) fn driver(&mut self, now: ClockReading) -> Option<&Driver> {
        if self
            .driver
            .as_ref()
            .is_some_and(|driver| driver.until <= now.monotonic)
        {
            self.clear();
        }
        self.driver.as_deref()
    }

    /// Takes control, or fails with the driver's name. Another device of the driver may take it.
    pub(super) fn take(
        &mut self,
        identity: DriverIdentity,
        takeover: Takeover,
        now: ClockReading,
        lease: Duration,
    ) -> Result<Driver, Username> {
        if let Some(driver) = self.driver(now)
            && driver.identity.user != identity.user
            && takeover != Takeover::Force
        {
            return Err(driver.identity.username.clone());
        }
        // From the wall clock: nothing else grows across a restart.
        self.fence = now.wall_millis.max(self.fence + 1);
        let driver = Driver {
            identity,
            fence: self.fence,
            until: now.monotonic + lease,
        };
        self.driver = Some(Box::new(driver.clone()));
        self.bump_version();
        Ok(driver)
    }

    /// Gives control back; fails with the driver's name if it is another connection.
    pub(super) fn release(
        &mut self,
        connection: ConnectionId,
        now: ClockReading,
    ) -> Result<(), Username> {
        match self.driver(now) {
            Some(driver) if driver.identity.connection != connection => {
                Err(driver.identity.username.clone())
            }
            Some(_) => {
                self.clear();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Clears control of a closed connection; true if it was the driver.
    pub(super) fn leave(&mut self, connection: ConnectionId) -> bool {
        self.clear_if(|driver| driver.identity.connection == connection)
    }

    /// Clears control if the predicate says so; true if it did.
    pub(super) fn clear_if(&mut self, is_lost: impl FnOnce(&Driver) -> bool) -> bool {
        let lost = self.driver.as_deref().is_some_and(is_lost);
        if lost {
            self.clear();
        }
        lost
    }

    pub(super) fn renew(&mut self, connection: ConnectionId, now: ClockReading, lease: Duration) {
        self.driver(now);
        if let Some(driver) = &mut self.driver
            && driver.identity.connection == connection
        {
            driver.until = now.monotonic + lease;
        }
    }

    /// Checks that a command of this connection counts, under that fence if it names one.
    pub(super) fn check(
        &mut self,
        connection: ConnectionId,
        fence: Option<u64>,
        mode: ControlMode,
        now: ClockReading,
    ) -> Result<(), ControlError> {
        let driver = self.driver(now);
        if mode == ControlMode::Exclusive {
            match driver {
                None => return Err(ControlError::NotHeld),
                Some(driver) if driver.identity.connection != connection => {
                    return Err(ControlError::HeldByOther(driver.identity.username.clone()));
                }
                Some(_) => {}
            }
        }
        let is_stale = fence.is_some() && fence != driver.map(|driver| driver.fence);
        if is_stale {
            return Err(ControlError::StaleFence);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.driver = None;
        self.bump_version();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_mins(1);
    use ControlMode::{Exclusive, Open};

    fn at(seconds: u64) -> ClockReading {
        ClockReading {
            monotonic: Duration::from_secs(seconds),
            wall_millis: 1_800_000_000_000 + 1_000 * seconds,
        }
    }

    fn user(name: &str) -> DriverIdentity {
        DriverIdentity {
            connection: ConnectionId::new(),
            user: UserId::new(),
            username: name.parse().unwrap(),
        }
    }

    #[test]
    fn only_the_driver_changes_an_exclusive_session() {
        let (mia, ben) = (user("mia"), user("ben"));
        let mut control = Control::default();
        let nobody = control.check(mia.connection, None, Exclusive, at(0));
        assert_eq!(nobody, Err(ControlError::NotHeld));
        control
            .take(mia.clone(), Takeover::IfFree, at(0), LEASE)
            .unwrap();
        assert_eq!(
            control.check(mia.connection, None, Exclusive, at(1)),
            Ok(())
        );
        let other = control.check(ben.connection, None, Exclusive, at(1));
        assert_eq!(other, Err(ControlError::HeldByOther(mia.username.clone())));
        assert_eq!(control.check(ben.connection, None, Open, at(1)), Ok(()));
        let refused = control.take(ben, Takeover::IfFree, at(1), LEASE);
        assert_eq!(refused.unwrap_err(), mia.username);
    }

    #[test]
    fn a_lease_runs_out_unless_the_driver_renews_it() {
        let (mia, ben) = (user("mia"), user("ben"));
        let mut control = Control::default();
        control
            .take(mia.clone(), Takeover::IfFree, at(0), LEASE)
            .unwrap();
        control.renew(ben.connection, at(30), LEASE);
        assert!(control.driver(at(59)).is_some());
        control.renew(mia.connection, at(59), LEASE);
        assert!(control.driver(at(118)).is_some());
        let version = control.version();
        assert!(control.driver(at(119)).is_none());
        assert!(control.version() > version, "members are told");
        control.renew(mia.connection, at(120), LEASE);
        let late = control.check(mia.connection, None, Exclusive, at(120));
        assert_eq!(
            late,
            Err(ControlError::NotHeld),
            "a lease that ran out is not renewed"
        );
        control.take(ben, Takeover::IfFree, at(120), LEASE).unwrap();
    }

    #[test]
    fn another_device_of_the_driver_and_an_owner_by_force_get_control() {
        let (phone, ben, owner) = (user("mia"), user("ben"), user("owner"));
        let laptop = DriverIdentity {
            connection: ConnectionId::new(),
            ..phone.clone()
        };
        let mut control = Control::default();
        control
            .take(phone.clone(), Takeover::IfFree, at(0), LEASE)
            .unwrap();
        control
            .take(laptop, Takeover::IfFree, at(1), LEASE)
            .unwrap();
        let other = control.check(phone.connection, None, Exclusive, at(2));
        assert_eq!(other, Err(ControlError::HeldByOther(phone.username)));
        assert!(control.take(ben, Takeover::IfFree, at(2), LEASE).is_err());
        control.take(owner, Takeover::Force, at(2), LEASE).unwrap();
    }

    #[test]
    fn a_fence_is_never_reused_also_after_a_restart() {
        let mia = user("mia");
        let mut control = Control::default();
        let take = |control: &mut Control, now| {
            let taken = control.take(mia.clone(), Takeover::IfFree, now, LEASE);
            taken.unwrap().fence
        };
        let first = take(&mut control, at(0));
        let second = take(&mut control, at(0));
        assert!(second > first, "twice in one millisecond");
        let mut restarted = Control::default();
        assert!(take(&mut restarted, at(1)) > second);
    }

    #[test]
    fn a_command_under_an_earlier_fence_is_refused() {
        let (mia, ben) = (user("mia"), user("ben"));
        let mut control = Control::default();
        let wrong = control.check(mia.connection, Some(0), Open, at(0));
        assert_eq!(wrong, Err(ControlError::StaleFence), "there is no driver");
        let taken = control.take(mia.clone(), Takeover::IfFree, at(0), LEASE);
        let fence = taken.unwrap().fence;
        assert_eq!(
            control.check(mia.connection, Some(fence), Open, at(1)),
            Ok(())
        );
        control.take(ben, Takeover::Force, at(2), LEASE).unwrap();
        let stale = control.check(mia.connection, Some(fence), Open, at(3));
        assert_eq!(stale, Err(ControlError::StaleFence));
    }

    #[test]
    fn control_ends_with_its_connection_and_when_released() {
        let (mia, ben) = (user("mia"), user("ben"));
        let mut control = Control::default();
        control
            .take(mia.clone(), Takeover::IfFree, at(0), LEASE)
            .unwrap();
        assert!(!control.leave(ben.connection));
        let refused = control.release(ben.connection, at(1));
        assert_eq!(refused, Err(mia.username.clone()));
        assert!(control.leave(mia.connection));
        assert!(control.driver(at(1)).is_none());
        control
            .take(ben.clone(), Takeover::IfFree, at(1), LEASE)
            .unwrap();
        control.release(ben.connection, at(2)).unwrap();
        assert!(control.driver(at(2)).is_none());
        control.release(mia.connection, at(2)).unwrap();
    }
}
