//! Revocation: revoked logins and token generations, in memory.
//!
//! A token carries its expiry but cannot show its revocation. This registry holds the revoked ones
//! only, each until its last token has expired, so its size follows recent revocations and not the
//! number of logins.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;

use crate::domain::account::Principal;
use crate::domain::id::{LoginId, UserId};
use crate::store::{AuthChange, Subject};

/// Revocations as of the last applied change.
#[derive(Debug, Default)]
pub(super) struct Revocations(RwLock<RevokedEntries>);

#[derive(Debug, Default)]
struct RevokedEntries {
    logins: HashMap<LoginId, Timestamp>,
    users: HashMap<UserId, GenerationCutoff>,
}

/// Tokens below `generation` are revoked; after `until` none is left.
#[derive(Clone, Copy, Debug)]
struct GenerationCutoff {
    generation: i64,
    until: Timestamp,
}

impl Revocations {
    /// Are the login and the token's generation unrevoked?
    pub(super) fn is_valid(&self, principal: &Principal) -> bool {
        let entries = self.read();
        let cut_off = entries
            .users
            .get(&principal.user)
            .is_some_and(|cutoff| principal.generation < cutoff.generation);
        !cut_off && !entries.logins.contains_key(&principal.login)
    }

    pub(super) fn apply(&self, change: &AuthChange) {
        let mut entries = self.write();
        match change.subject {
            Subject::Login(login) => {
                entries.logins.insert(login, change.until);
            }
            Subject::User(user, generation) => {
                let cutoff = entries.users.entry(user).or_insert(GenerationCutoff {
                    generation,
                    until: change.until,
                });
                cutoff.generation = cutoff.generation.max(generation);
                cutoff.until = cutoff.until.max(change.until);
            }
            Subject::Keys => {}
        }
    }

    /// Drops entries whose tokens have all expired.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut entries = self.write();
        entries.logins.retain(|_, until| *until > now);
        entries.users.retain(|_, cutoff| cutoff.until > now);
    }

    pub(super) fn len(&self) -> usize {
        let entries = self.read();
        entries.logins.len() + entries.users.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, RevokedEntries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RevokedEntries> {
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

    fn change(subject: Subject) -> AuthChange {
        AuthChange {
            revision: 1,
            subject,
            until: Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1),
        }
    }

    #[test]
    fn an_ended_login_is_revoked_and_another_is_not() {
        let revocations = Revocations::default();
        let (ended, other) = (principal(1), principal(1));
        revocations.apply(&change(Subject::Login(ended.login)));
        assert!(!revocations.is_valid(&ended));
        assert!(revocations.is_valid(&other));
    }

    #[test]
    fn only_tokens_below_the_new_generation_are_revoked() {
        let revocations = Revocations::default();
        let old = principal(3);
        let new = Principal {
            generation: 4,
            ..old.clone()
        };
        revocations.apply(&change(Subject::User(old.user, 4)));
        revocations.apply(&change(Subject::User(old.user, 2)));
        assert!(!revocations.is_valid(&old));
        assert!(revocations.is_valid(&new));
    }

    #[test]
    fn expired_revocations_are_dropped() {
        let revocations = Revocations::default();
        revocations.apply(&change(Subject::Login(LoginId::new())));
        revocations.apply(&change(Subject::User(UserId::new(), 2)));
        revocations.sweep(Timestamp::UNIX_EPOCH);
        assert_eq!(revocations.len(), 2);
        revocations.sweep(Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1));
        assert_eq!(revocations.len(), 0);
    }
}
