//! Which logins and tokens are no good any more, in memory.
//!
//! A token says when it ends; what it cannot say is that it was taken back. This registry holds
//! just the exceptions, each only until the last token it concerns has expired anyway, so its size
//! follows the number of recent revocations and not the number of logins.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;

use crate::domain::account::Principal;
use crate::domain::id::{LoginId, UserId};
use crate::store::{Change, Subject};

/// The exceptions, as of the last change that was seen.
#[derive(Debug, Default)]
pub(super) struct Revocations(RwLock<Entries>);

#[derive(Debug, Default)]
struct Entries {
    logins: HashMap<LoginId, Timestamp>,
    users: HashMap<UserId, Cutoff>,
}

/// Tokens from before `generation` are worthless; after `until` none is left.
#[derive(Clone, Copy, Debug)]
struct Cutoff {
    generation: i64,
    until: Timestamp,
}

impl Revocations {
    /// Is this login, and what its token says of its user, still good?
    pub(super) fn stands(&self, principal: &Principal) -> bool {
        let entries = self.read();
        let cut_off = entries
            .users
            .get(&principal.user)
            .is_some_and(|cutoff| principal.generation < cutoff.generation);
        !cut_off && !entries.logins.contains_key(&principal.login)
    }

    /// Takes in a change.
    pub(super) fn apply(&self, change: &Change) {
        let mut entries = self.write();
        match change.subject {
            Subject::Login(login) => {
                entries.logins.insert(login, change.until);
            }
            Subject::User(user, generation) => {
                let cutoff = entries.users.entry(user).or_insert(Cutoff {
                    generation,
                    until: change.until,
                });
                cutoff.generation = cutoff.generation.max(generation);
                cutoff.until = cutoff.until.max(change.until);
            }
            Subject::Keys => {}
        }
    }

    /// Forgets what has expired by itself.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut entries = self.write();
        entries.logins.retain(|_, until| *until > now);
        entries.users.retain(|_, cutoff| cutoff.until > now);
    }

    /// How many exceptions are held.
    pub(super) fn len(&self) -> usize {
        let entries = self.read();
        entries.logins.len() + entries.users.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::account::Role;

    fn principal(generation: i64) -> Principal {
        Principal {
            user: UserId::new(),
            username: "mia".parse().unwrap(),
            role: Role::Member,
            login: LoginId::new(),
            generation,
            session: None,
            expires_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn change(subject: Subject) -> Change {
        Change {
            revision: 1,
            subject,
            until: Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1),
        }
    }

    #[test]
    fn an_ended_login_stands_no_more_and_its_neighbour_does() {
        let revocations = Revocations::default();
        let (ended, other) = (principal(1), principal(1));
        revocations.apply(&change(Subject::Login(ended.login)));
        assert!(!revocations.stands(&ended));
        assert!(revocations.stands(&other));
    }

    #[test]
    fn only_tokens_from_before_a_change_are_cut_off() {
        let revocations = Revocations::default();
        let old = principal(3);
        let new = Principal {
            generation: 4,
            ..old.clone()
        };
        revocations.apply(&change(Subject::User(old.user, 4)));
        revocations.apply(&change(Subject::User(old.user, 2)));
        assert!(!revocations.stands(&old));
        assert!(revocations.stands(&new));
    }

    #[test]
    fn what_has_expired_by_itself_is_forgotten() {
        let revocations = Revocations::default();
        revocations.apply(&change(Subject::Login(LoginId::new())));
        revocations.apply(&change(Subject::User(UserId::new(), 2)));
        revocations.sweep(Timestamp::UNIX_EPOCH);
        assert_eq!(revocations.len(), 2);
        revocations.sweep(Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1));
        assert_eq!(revocations.len(), 0);
    }
}
