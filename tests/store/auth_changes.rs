//! Auth change feed: complete and in order under concurrent writers.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::store::{KeepLogin, NewLogin, StartLoginError};

use crate::{World, entry, new_login};

crate::on_both_databases!(
    a_follower_misses_no_change_of_many_writers,
    concurrent_account_changes_do_not_deadlock,
);

/// Writers in several processes, one follower that polls: each revision is the next number, so no
/// late commit was skipped.
async fn a_follower_misses_no_change_of_many_writers(world: World) {
    const WRITERS: usize = 4;
    const EACH: usize = 15;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let user = world.user(&format!("user{number}"), Role::Member).await;
        let store = world.second().await;
        writers.spawn(async move {
            for _ in 0..EACH {
                store
                    .set_role(user, Role::Member, &entry(Action::RoleChanged, 1))
                    .await
                    .unwrap();
            }
        });
    }
    let mut seen = Vec::new();
    while seen.len() < WRITERS * EACH {
        let after = seen.last().copied().unwrap_or(0);
        let changes = world.store.changes_after(after).await.unwrap();
        seen.extend(changes.iter().map(|change| change.revision));
        tokio::task::yield_now().await;
    }
    writers.join_all().await;
    let expected: Vec<i64> = (1..).take(WRITERS * EACH).collect();
    assert_eq!(seen, expected);
}

/// Concurrent logins, logouts, password and role changes and disabling, from several processes:
/// each succeeds or is refused for its own reason.
async fn concurrent_account_changes_do_not_deadlock(world: World) {
    const ROUNDS: u8 = 20;
    let mia = world.user("mia", Role::Member).await;
    let (one, two, three) = (
        world.second().await,
        world.second().await,
        world.second().await,
    );
    let change = entry(Action::RoleChanged, 1);
    let logging_in_and_out = async {
        for round in 0..ROUNDS {
            let generation = one.user(mia).await.unwrap().unwrap().generation;
            let login = NewLogin {
                generation,
                ..new_login(mia, [round; 32])
            };
            match one.start_login(&login, &change).await {
                Ok(()) => drop(one.end_login(login.id, mia, &change).await.unwrap()),
                Err(StartLoginError::AccountChanged) => {}
                Err(StartLoginError::Store(error)) => panic!("{error}"),
            }
        }
    };
    let disabling = async {
        for _ in 0..ROUNDS {
            two.disable_user(mia, &change).await.unwrap();
            two.enable_user(mia, &change).await.unwrap();
        }
    };
    let changing = async {
        for _ in 0..ROUNDS {
            three
                .set_password(mia, "x", KeepLogin::None, &change)
                .await
                .unwrap();
            three.set_role(mia, Role::Member, &change).await.unwrap();
        }
    };
    tokio::join!(logging_in_and_out, disabling, changing);
}
