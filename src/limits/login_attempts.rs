//! Login attempts under way: bounds how many passwords are tried on one account at the same time.
//!
//! The delay after failures slows each attempt down; without a bound, many at once would all wait the same
//! delay and then be checked. Accounts that do not exist are bounded alike. Touches nothing else.

use std::hash::{BuildHasher, RandomState};

use super::permits::{CapReached, Permit, Permits};

/// Attempts on one account, or from one of its devices, that may be under way.
const MAX_AT_ONCE: usize = 2;

#[derive(Debug)]
pub(crate) struct LoginAttempts {
    hasher: RandomState,
    permits: Permits<u64>,
}

impl Default for LoginAttempts {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            permits: Permits::new(usize::MAX, MAX_AT_ONCE),
        }
    }
}

impl LoginAttempts {
    /// Held while the attempt is under way. Only a keyed hash of the name is kept.
    pub(crate) fn begin(&self, account: &str) -> Result<Permit<u64>, CapReached> {
        self.permits.try_acquire(self.hasher.hash_one(account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_attempts_on_an_account_are_under_way_at_most() {
        let attempts = LoginAttempts::default();
        let held = [(); 2].map(|()| attempts.begin("mia").unwrap());
        assert!(attempts.begin("mia").is_err());
        assert!(attempts.begin("ben").is_ok());
        drop(held);
        assert!(attempts.begin("mia").is_ok());
    }
}
