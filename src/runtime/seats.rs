//! How many agents run, in all and for each user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::config::Limits;
use crate::domain::id::{SessionId, UserId};

/// The seats; each running agent has one.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    /// How many lives each session has: one, or two while one goes and another comes.
    taken: Arc<Mutex<HashMap<(UserId, SessionId), usize>>>,
    most: usize,
    most_per_user: usize,
}

/// A seat, until dropped.
#[derive(Debug)]
pub(super) struct Seat {
    of: (UserId, SessionId),
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

    /// How many are taken, and how many there are.
    pub(super) fn count(&self) -> (usize, usize) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        (taken.len(), self.most)
    }

    /// Takes one. A session whose last agent is on its way out has one already.
    pub(super) fn take(&self, user: UserId, session: SessionId) -> Result<Seat, Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if !taken.contains_key(&(user, session)) {
            if taken.len() >= self.most {
                return Err(Full::All(self.most));
            }
            let own = taken.keys().filter(|(of, _)| *of == user).count();
            if own >= self.most_per_user {
                return Err(Full::User(self.most_per_user));
            }
        }
        *taken.entry((user, session)).or_default() += 1;
        Ok(Seat {
            of: (user, session),
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
        if let Some(lives) = taken.get_mut(&self.of) {
            *lives -= 1;
            if *lives == 0 {
                taken.remove(&self.of);
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
        let (one, new) = (SessionId::new(), SessionId::new);
        let _first = seats.take(ada, one).unwrap();
        let second = seats.take(ada, new()).unwrap();
        assert_eq!(seats.take(ada, new()).unwrap_err(), Full::User(2));
        let again = seats.take(ada, one).unwrap();
        let _third = seats.take(bob, new()).unwrap();
        assert_eq!(seats.take(bob, new()).unwrap_err(), Full::All(3));
        drop(again);
        assert_eq!(seats.take(bob, new()).unwrap_err(), Full::All(3));
        drop(second);
        assert!(seats.take(bob, new()).is_ok());
    }
}
