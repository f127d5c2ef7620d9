//! Turns at something that costs much: a few at once on this node, one for each user.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::domain::id::UserId;

/// Who has a turn. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    places: Arc<Semaphore>,
    users: Arc<Users>,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Users {
    busy: Mutex<HashSet<UserId>>,
    one_is_done: Notify,
}

/// A turn, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _seat: Seat,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Seat {
    users: Arc<Users>,
    user: UserId,
}

impl Turns {
    /// So many at once; whoever finds no place waits for so long.
    pub(crate) fn new(at_once: usize, patience: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(at_once)),
            users: Arc::default(),
            patience,
        }
    }

    /// A turn for this user; `None` if there is none in time.
    pub(crate) async fn take(&self, user: UserId) -> Option<Turn> {
        let taken = async {
            let seat = Users::seat(&self.users, user).await;
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            Some(Turn {
                _seat: seat,
                _place: place,
            })
        };
        tokio::time::timeout(self.patience, taken).await.ok()?
    }
}

impl Users {
    async fn seat(users: &Arc<Self>, user: UserId) -> Seat {
        loop {
            let one_is_done = users.one_is_done.notified();
            if users.lock().insert(user) {
                let users = Arc::clone(users);
                return Seat { users, user };
            }
            one_is_done.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<UserId>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.users.lock().remove(&self.user);
        self.users.one_is_done.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_user_has_one_turn_and_all_together_have_a_few() {
        let turns = Turns::new(2, Duration::from_millis(500));
        let (mia, ben, eve) = (UserId::new(), UserId::new(), UserId::new());
        let first = turns.take(mia).await.expect("there is room");
        assert!(turns.take(mia).await.is_none(), "mia has a turn");
        let second = turns.take(ben).await.expect("there is room");
        assert!(turns.take(eve).await.is_none(), "there is no room");
        drop(first);
        let third = turns.take(eve).await.expect("there is room again");
        drop((second, third));
        assert!(turns.take(mia).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_the_turn_when_it_is_free() {
        let turns = Turns::new(1, Duration::from_millis(500));
        let mia = UserId::new();
        let first = turns.take(mia).await;
        let (second, ()) = tokio::join!(turns.take(mia), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(first);
        });
        assert!(second.is_some());
    }

    #[tokio::test]
    async fn without_patience_a_free_turn_is_taken_at_once() {
        let turns = Turns::new(1, Duration::ZERO);
        let turn = turns.take(UserId::new()).await;
        assert!(turn.is_some() && turns.take(UserId::new()).await.is_none());
    }
}
