//! The feed of changes.

use switchboard::domain::account::Role;
use switchboard::domain::act::Action;

use crate::{World, act};

crate::on_both_databases!(a_follower_misses_no_change_of_many_writers);

/// Writers in several programs, one follower that asks all the time: what it sees grows by one each
/// time, so nothing that was committed late can have been skipped.
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
                    .set_role(user, Role::Member, &act(Action::RoleChanged, 1))
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
