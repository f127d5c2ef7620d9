//! How many agents run, in all and for each user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::config::Limits;
use crate::domain::id::UserId;

/// The seats; each running agent has one.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    taken: Arc<Mutex<HashMap<UserId, usize>>>,
    most: usize,
    most_per_user: usize,
}

/// A seat, until dropped.
#[derive(Debug)]
pub(super) struct Seat {
    user: UserId,
    seats: Seats,
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// All are taken.
    All(usize),
    /// This user has as many as one may.
    User(usize),
}

impl Seats {
    /// All free.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            taken: Arc::default(),
            most: limits.max_agents.get() as usize,
            most_per_user: limits.max_agents_per_user.get() as usize,
        }
    }

    /// Takes one.
    pub(super) fn take(&self, user: UserId) -> Result<Seat, Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.values().sum::<usize>() >= self.most {
            return Err(Full::All(self.most));
        }
        let own = taken.entry(user).or_default();
        if *own >= self.most_per_user {
            return Err(Full::User(self.most_per_user));
        }
        *own += 1;
        Ok(Seat {
            user,
            seats: self.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self
            .seats
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn nobody_takes_more_than_there_are() {
        let number = |many| NonZeroU32::new(many).unwrap();
        let limits = Limits {
            max_agents: number(3),
            max_agents_per_user: number(2),
        };
        let (seats, ada, bob) = (Seats::new(&limits), UserId::new(), UserId::new());
        let _first = seats.take(ada).unwrap();
        let second = seats.take(ada).unwrap();
        assert_eq!(seats.take(ada).unwrap_err(), Full::User(2));
        let _third = seats.take(bob).unwrap();
        assert_eq!(seats.take(bob).unwrap_err(), Full::All(3));
        drop(second);
        assert!(seats.take(bob).is_ok());
    }
}
