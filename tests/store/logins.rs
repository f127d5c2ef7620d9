//! Logins: started, refreshed, ended and swept.

use jiff::SignedDuration;
use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::LoginId;
use switchboard::store::{RefreshError, Rotation, Subject, SweepCutoffs};

use crate::{World, at, context, cutoffs, entry};

crate::on_both_databases!(
    a_login_is_listed_while_it_lives,
    a_refresh_token_works_once,
    a_refresh_token_used_twice_ends_its_login,
    an_exchange_can_be_repeated_for_ten_seconds_from_its_device,
    an_exchange_cannot_be_repeated_late_from_elsewhere_or_once_its_successor_was_used,
    of_two_refreshes_at_once_one_wins_and_the_login_ends,
    an_unknown_or_expired_refresh_token_is_refused,
    a_login_ends_for_its_owner_only,
    expired_rows_are_swept,
);

fn rotation(presented: [u8; 32], next: [u8; 32], now: i64) -> Rotation {
    Rotation {
        presented,
        next,
        next_expires_at: at(now) + SignedDuration::from_hours(24),
        token_expires_at: at(now + 900),
        device: None,
        repeatable_since: at(now - 10),
    }
}

/// The same from a device, which has ten seconds to repeat it.
fn from_device(mut rotation: Rotation, device: &str) -> Rotation {
    rotation.device = Some(device.to_owned());
    rotation
}

async fn a_login_is_listed_while_it_lives(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let first = world.login(mia, [1; 32]).await;
    let second = world.login(mia, [2; 32]).await;
    let listed = world.store.logins(mia, at(1)).await.unwrap();
    assert_eq!(
        listed.iter().map(|login| login.id).collect::<Vec<_>>(),
        [second, first]
    );
    assert_eq!(listed[0].address.as_deref(), Some("192.0.2.7"));
    assert_eq!(listed[0].created_at, at(0));
    let later = at(0) + SignedDuration::from_hours(24);
    assert!(world.store.logins(mia, later).await.unwrap().is_empty());
}

async fn a_refresh_token_works_once(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let login = world.login(mia, [1; 32]).await;
    let refreshed = world
        .store
        .refresh_login(&rotation([1; 32], [2; 32], 60), &context(60))
        .await
        .unwrap();
    assert_eq!((refreshed.login, refreshed.user.id), (login, mia));
    let again = world
        .store
        .refresh_login(&rotation([2; 32], [3; 32], 120), &context(120))
        .await
        .unwrap();
    assert_eq!(again.login, login);
    assert_eq!(
        world.store.logins(mia, at(120)).await.unwrap()[0].last_used_at,
        at(120)
    );
}

async fn an_exchange_can_be_repeated_for_ten_seconds_from_its_device(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let login = world.login(mia, [1; 32]).await;
    for now in [60, 65, 70] {
        let exchange = from_device(rotation([1; 32], [2; 32], now), "laptop");
        let refreshed = world.store.refresh_login(&exchange, &context(now)).await;
        assert_eq!(refreshed.unwrap().login, login);
    }
    let next = rotation([2; 32], [3; 32], 80);
    let refreshed = world.store.refresh_login(&next, &context(80)).await;
    assert_eq!(refreshed.unwrap().login, login, "the successor is the same");
}

async fn an_exchange_cannot_be_repeated_late_from_elsewhere_or_once_its_successor_was_used(
    world: World,
) {
    let mia = world.user("mia", Role::Member).await;
    let exchanges: [(u8, Option<&str>, i64, bool); 4] = [
        (10, Some("laptop"), 71, false),
        (20, Some("phone"), 61, false),
        (30, None, 61, false),
        (40, Some("laptop"), 61, true),
    ];
    for (token, device, repeated_at, use_successor) in exchanges {
        let (first, second, third) = ([token; 32], [token + 1; 32], [token + 2; 32]);
        world.login(mia, first).await;
        let exchange = from_device(rotation(first, second, 60), "laptop");
        world
            .store
            .refresh_login(&exchange, &context(60))
            .await
            .unwrap();
        if use_successor {
            let next = from_device(rotation(second, third, 60), "laptop");
            world
                .store
                .refresh_login(&next, &context(60))
                .await
                .unwrap();
        }
        let repeated = rotation(first, second, repeated_at);
        let repeated = match device {
            Some(device) => from_device(repeated, device),
            None => repeated,
        };
        let refused = world
            .store
            .refresh_login(&repeated, &context(repeated_at))
            .await;
        assert!(
            matches!(refused, Err(RefreshError::Reused { .. })),
            "{token}"
        );
    }
}

async fn a_refresh_token_used_twice_ends_its_login(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let login = world.login(mia, [1; 32]).await;
    let other = world.login(mia, [9; 32]).await;
    world
        .store
        .refresh_login(&rotation([1; 32], [2; 32], 1), &context(1))
        .await
        .unwrap();
    let reused = world
        .store
        .refresh_login(&rotation([1; 32], [3; 32], 2), &context(2))
        .await;
    assert!(matches!(reused, Err(RefreshError::Reused { .. })));
    assert_eq!(world.last_audit_action().await, "login.refresh_reused");
    let newest = world
        .store
        .refresh_login(&rotation([2; 32], [4; 32], 3), &context(3))
        .await;
    assert!(matches!(newest, Err(RefreshError::Unknown)), "{newest:?}");
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes.last().unwrap().subject, Subject::Login(login));
    let left = world.store.logins(mia, at(3)).await.unwrap();
    assert_eq!(
        left.iter().map(|login| login.id).collect::<Vec<_>>(),
        [other]
    );
}

async fn of_two_refreshes_at_once_one_wins_and_the_login_ends(world: World) {
    let mia = world.user("mia", Role::Member).await;
    world.login(mia, [1; 32]).await;
    let (first, second) = (world.second().await, world.second().await);
    let (one, other) = (rotation([1; 32], [2; 32], 1), rotation([1; 32], [3; 32], 1));
    let (by_one, by_other) = (context(1), context(1));
    let (a, b) = tokio::join!(
        first.refresh_login(&one, &by_one),
        second.refresh_login(&other, &by_other)
    );
    let reused = |outcome: &Result<_, _>| matches!(outcome, Err(RefreshError::Reused { .. }));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    assert!(reused(&a) || reused(&b), "{a:?} {b:?}");
    assert!(world.store.logins(mia, at(2)).await.unwrap().is_empty());
}

async fn an_unknown_or_expired_refresh_token_is_refused(world: World) {
    let mia = world.user("mia", Role::Member).await;
    world.login(mia, [1; 32]).await;
    let unknown = world
        .store
        .refresh_login(&rotation([7; 32], [8; 32], 1), &context(1))
        .await;
    assert!(matches!(unknown, Err(RefreshError::Unknown)));
    let day = 24 * 3600;
    let expired = world
        .store
        .refresh_login(&rotation([1; 32], [2; 32], day), &context(day))
        .await;
    assert!(matches!(expired, Err(RefreshError::Unknown)));
    assert_eq!(
        world.store.logins(mia, at(1)).await.unwrap().len(),
        1,
        "an unknown token ends no login"
    );
}

async fn a_login_ends_for_its_owner_only(world: World) {
    let (mia, bob) = (
        world.user("mia", Role::Member).await,
        world.user("bob", Role::Member).await,
    );
    let login = world.login(mia, [1; 32]).await;
    let end = entry(Action::LoggedOut, 1);
    assert!(!world.store.end_login(login, bob, &end).await.unwrap());
    assert!(
        !world
            .store
            .end_login(LoginId::new(), mia, &end)
            .await
            .unwrap()
    );
    assert!(world.store.end_login(login, mia, &end).await.unwrap());
    assert!(
        !world.store.end_login(login, mia, &end).await.unwrap(),
        "it has ended already"
    );
    let ends = world.store.recent_audit_entries(10).await.unwrap();
    assert_eq!(
        ends.iter()
            .filter(|row| row.action == "login.ended")
            .count(),
        1
    );
}

async fn expired_rows_are_swept(world: World) {
    let before = |seconds| SweepCutoffs {
        spent: at(0),
        ..cutoffs(seconds)
    };
    let mia = world.user("mia", Role::Member).await;
    let ended = world.login(mia, [1; 32]).await;
    world.login(mia, [2; 32]).await;
    world
        .store
        .end_login(ended, mia, &entry(Action::LoggedOut, 1))
        .await
        .unwrap();
    world.store.sweep(before(899)).await.unwrap();
    assert_eq!(
        world.store.changes_after(0).await.unwrap().len(),
        1,
        "its token is still valid"
    );
    world.store.sweep(before(900)).await.unwrap();
    assert!(world.store.changes_after(0).await.unwrap().is_empty());
    assert_eq!(world.store.logins(mia, at(900)).await.unwrap().len(), 1);
    world.login(mia, [3; 32]).await;
    let end = entry(Action::LoginRevoked, 2);
    for login in world.store.logins(mia, at(2)).await.unwrap() {
        world.store.end_login(login.id, mia, &end).await.unwrap();
    }
    let revisions: Vec<i64> = world
        .store
        .changes_after(0)
        .await
        .unwrap()
        .iter()
        .map(|change| change.revision)
        .collect();
    assert_eq!(revisions, [2, 3], "swept revisions are not used again");
}
