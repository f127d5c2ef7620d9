//! Places for uploads: how many can be under way, of one user and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::ApiError;
use crate::domain::id::UserId;

const OF_ONE_USER: usize = 2;
const IN_ALL: usize = 32;

/// The places; clones share them. Full: whoever comes is told to come back.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<UserId, usize>>>);

/// A place, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    user: UserId,
}

impl Places {
    /// A place for one more of this user.
    pub(super) fn take(&self, user: UserId) -> Result<Place, ApiError> {
        let mut taken = self.lock();
        if taken.values().sum::<usize>() >= IN_ALL {
            let detail = "Too many files are being uploaded at the moment; try again.";
            return Err(ApiError::busy(detail));
        }
        let own = taken.entry(user).or_default();
        if *own >= OF_ONE_USER {
            let detail =
                format!("You are uploading {OF_ONE_USER} files already; try again after one.");
            return Err(ApiError::busy(detail));
        }
        *own += 1;
        let places = self.clone();
        Ok(Place { places, user })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
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
    use super::*;

    #[test]
    fn nobody_takes_all_of_them() {
        let (places, mia) = (Places::default(), UserId::new());
        let (first, second) = (places.take(mia).unwrap(), places.take(mia).unwrap());
        assert!(places.take(mia).is_err());
        drop(first);
        let third = places.take(mia).unwrap();
        let others: Vec<Place> = (0..IN_ALL - 2)
            .map(|_| places.take(UserId::new()).unwrap())
            .collect();
        assert!(places.take(UserId::new()).is_err());
        drop((second, third, others));
        assert!(places.lock().is_empty());
    }
}
