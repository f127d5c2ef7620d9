//! Who drives a session: the one connection whose commands count, for a while.
//!
//! Pure bookkeeping; whoever asks brings the time along. A taking has a number that is never given
//! out again, so that a command which was sent under an earlier one can be told apart. Touches
//! `domain` only.

use std::time::Duration;

use crate::domain::account::Username;
use crate::domain::grant::ControlMode;
use crate::domain::id::{ConnectionId, UserId};

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// By the one that never goes back.
    pub(crate) monotonic: Duration,
    /// By the calendar, in milliseconds.
    pub(crate) wall_millis: u64,
}

/// Who wants control.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// The connection that is to have it.
    pub(crate) connection: ConnectionId,
    /// Whose it is.
    pub(crate) user: UserId,
    /// Their name.
    pub(crate) username: Username,
}

/// How much somebody wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// If it is free.
    Polite,
    /// From whoever has it: the owner may.
    Steal,
}

/// Somebody who drives.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    /// Who.
    pub(crate) who: Asker,
    /// The number of this taking.
    pub(crate) fence: u64,
    /// Until when, by the clock that never goes back.
    pub(crate) until: Duration,
}

/// Why a command does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotDriving {
    /// Somebody else drives.
    Other(Username),
    /// Nobody does, and somebody must.
    Nobody,
    /// It was sent under another taking than the present one.
    Outdated,
}

/// Who drives, and the number of the last taking.
#[derive(Debug, Default)]
pub(super) struct Control {
    fence: u64,
    /// Boxed: most sessions never have one.
    holder: Option<Box<Holder>>,
    /// Grows with every change of the holder.
    version: u64,
}

impl Control {
    /// Grows whenever there is something to tell.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// There is something else to tell about it than before.
    pub(super) fn touch(&mut self) {
        self.version += 1;
    }

    /// The number of the last taking; 0 if there was none.
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// Who drives now.
    pub(super) fn holder(&mut self, now: Now) -> Option<&Holder> {
        if self
            .holder
            .as_ref()
            .is_some_and(|holder| holder.until <= now.monotonic)
        {
            self.clear();
        }
        self.holder.as_deref()
    }

    /// Hands it to somebody, or says who has it.
    pub(super) fn take(
        &mut self,
        asker: Asker,
        wish: Wish,
        now: Now,
        lease: Duration,
    ) -> Result<Holder, Username> {
        if let Some(holder) = self.holder(now)
            && holder.who.user != asker.user
            && wish != Wish::Steal
        {
            return Err(holder.who.username.clone());
        }
        // By the calendar, because nothing else is remembered beyond a restart.
        self.fence = now.wall_millis.max(self.fence + 1);
        let holder = Holder {
            who: asker,
            fence: self.fence,
            until: now.monotonic + lease,
        };
        self.holder = Some(Box::new(holder.clone()));
        self.touch();
        Ok(holder)
    }

    /// Gives it back; whoever does not have it is told who has.
    pub(super) fn release(&mut self, connection: ConnectionId, now: Now) -> Result<(), Username> {
        match self.holder(now) {
            Some(holder) if holder.who.connection != connection => Err(holder.who.username.clone()),
            Some(_) => {
                self.clear();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The connection is gone, and its control with it. True if it had it.
    pub(super) fn leave(&mut self, connection: ConnectionId) -> bool {
        self.clear_if(|holder| holder.who.connection == connection)
    }

    /// Takes it from a holder who may not have it any more. True if it did.
    pub(super) fn clear_if(&mut self, is_over: impl FnOnce(&Holder) -> bool) -> bool {
        let over = self.holder.as_deref().is_some_and(is_over);
        if over {
            self.clear();
        }
        over
    }

    /// A sign of life of the holder: it stays so for longer.
    pub(super) fn renew(&mut self, connection: ConnectionId, now: Now, lease: Duration) {
        self.holder(now);
        if let Some(holder) = &mut self.holder
            && holder.who.connection == connection
        {
            holder.until = now.monotonic + lease;
        }
    }

    /// Does a command of this connection count, sent under that taking if it says one?
    pub(super) fn check(
        &mut self,
        connection: ConnectionId,
        fence: Option<u64>,
        mode: ControlMode,
        now: Now,
    ) -> Result<(), NotDriving> {
        let holder = self.holder(now);
        if mode == ControlMode::Exclusive {
            match holder {
                None => return Err(NotDriving::Nobody),
                Some(holder) if holder.who.connection != connection => {
                    return Err(NotDriving::Other(holder.who.username.clone()));
                }
                Some(_) => {}
            }
        }
        let outdated = fence.is_some() && fence != holder.map(|holder| holder.fence);
        if outdated {
            return Err(NotDriving::Outdated);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.holder = None;
        self.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_mins(1);
    use ControlMode::{Exclusive, Open};

    fn at(seconds: u64) -> Now {
        Now {
            monotonic: Duration::from_secs(seconds),
            wall_millis: 1_800_000_000_000 + 1_000 * seconds,
        }
    }

    fn somebody(name: &str) -> Asker {
        Asker {
            connection: ConnectionId::new(),
            user: UserId::new(),
            username: name.parse().unwrap(),
        }
    }

    #[test]
    fn only_the_one_who_took_it_drives() {
        let (mia, ben) = (somebody("mia"), somebody("ben"));
        let mut control = Control::default();
        let nobody = control.check(mia.connection, None, Exclusive, at(0));
        assert_eq!(nobody, Err(NotDriving::Nobody));
        control
            .take(mia.clone(), Wish::Polite, at(0), LEASE)
            .unwrap();
        assert_eq!(
            control.check(mia.connection, None, Exclusive, at(1)),
            Ok(())
        );
        let other = control.check(ben.connection, None, Exclusive, at(1));
        assert_eq!(other, Err(NotDriving::Other(mia.username.clone())));
        assert_eq!(control.check(ben.connection, None, Open, at(1)), Ok(()));
        let refused = control.take(ben, Wish::Polite, at(1), LEASE);
        assert_eq!(refused.unwrap_err(), mia.username);
    }

    #[test]
    fn it_runs_out_unless_its_holder_is_alive() {
        let (mia, ben) = (somebody("mia"), somebody("ben"));
        let mut control = Control::default();
        control
            .take(mia.clone(), Wish::Polite, at(0), LEASE)
            .unwrap();
        control.renew(ben.connection, at(30), LEASE);
        assert!(control.holder(at(59)).is_some());
        control.renew(mia.connection, at(59), LEASE);
        assert!(control.holder(at(118)).is_some());
        let version = control.version();
        assert!(control.holder(at(119)).is_none());
        assert!(control.version() > version, "everybody is told");
        control.renew(mia.connection, at(120), LEASE);
        let late = control.check(mia.connection, None, Exclusive, at(120));
        assert_eq!(late, Err(NotDriving::Nobody), "too late is too late");
        control.take(ben, Wish::Polite, at(120), LEASE).unwrap();
    }

    #[test]
    fn another_device_of_the_same_user_and_the_owner_who_insists_get_it() {
        let (phone, ben, owner) = (somebody("mia"), somebody("ben"), somebody("owner"));
        let laptop = Asker {
            connection: ConnectionId::new(),
            ..phone.clone()
        };
        let mut control = Control::default();
        control
            .take(phone.clone(), Wish::Polite, at(0), LEASE)
            .unwrap();
        control.take(laptop, Wish::Polite, at(1), LEASE).unwrap();
        let other = control.check(phone.connection, None, Exclusive, at(2));
        assert_eq!(other, Err(NotDriving::Other(phone.username)));
        assert!(control.take(ben, Wish::Polite, at(2), LEASE).is_err());
        control.take(owner, Wish::Steal, at(2), LEASE).unwrap();
    }

    #[test]
    fn a_number_is_given_out_once_also_after_a_restart() {
        let mia = somebody("mia");
        let mut control = Control::default();
        let take = |control: &mut Control, now| {
            let taken = control.take(mia.clone(), Wish::Polite, now, LEASE);
            taken.unwrap().fence
        };
        let first = take(&mut control, at(0));
        let second = take(&mut control, at(0));
        assert!(second > first, "twice in one millisecond");
        let mut restarted = Control::default();
        assert!(take(&mut restarted, at(1)) > second);
    }

    #[test]
    fn a_command_under_an_earlier_taking_does_not_count() {
        let (mia, ben) = (somebody("mia"), somebody("ben"));
        let mut control = Control::default();
        let wrong = control.check(mia.connection, Some(0), Open, at(0));
        assert_eq!(wrong, Err(NotDriving::Outdated), "nobody drives");
        let taken = control.take(mia.clone(), Wish::Polite, at(0), LEASE);
        let fence = taken.unwrap().fence;
        assert_eq!(
            control.check(mia.connection, Some(fence), Open, at(1)),
            Ok(())
        );
        control.take(ben, Wish::Steal, at(2), LEASE).unwrap();
        let stale = control.check(mia.connection, Some(fence), Open, at(3));
        assert_eq!(stale, Err(NotDriving::Outdated));
    }

    #[test]
    fn it_ends_with_its_connection_and_when_given_back() {
        let (mia, ben) = (somebody("mia"), somebody("ben"));
        let mut control = Control::default();
        control
            .take(mia.clone(), Wish::Polite, at(0), LEASE)
            .unwrap();
        assert!(!control.leave(ben.connection));
        let refused = control.release(ben.connection, at(1));
        assert_eq!(refused, Err(mia.username.clone()));
        assert!(control.leave(mia.connection));
        assert!(control.holder(at(1)).is_none());
        control
            .take(ben.clone(), Wish::Polite, at(1), LEASE)
            .unwrap();
        control.release(ben.connection, at(2)).unwrap();
        assert!(control.holder(at(2)).is_none());
        control.release(mia.connection, at(2)).unwrap();
    }
}
