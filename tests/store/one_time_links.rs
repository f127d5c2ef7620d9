//! One-time links: setup and invites.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::store::{LinkKind, NewLink, NewUser, SetUpError};

use crate::{World, at, context, entry, name, new_user};

crate::on_both_databases!(
    the_setup_link_makes_one_administrator,
    of_two_setups_at_once_one_wins,
    a_new_setup_link_replaces_the_old_one,
    an_invite_sets_the_password_once,
    an_expired_invite_does_nothing,
    a_disabled_user_cannot_use_an_invite,
    an_invite_names_its_user_and_its_issuer,
);

fn link(hash: u8, kind: LinkKind) -> NewLink {
    NewLink {
        hash: [hash; 32],
        kind,
        expires_at: at(100),
    }
}

async fn issue(world: &World, link: &NewLink) {
    world
        .store
        .issue_link(link, &entry(Action::LinkIssued, 0))
        .await
        .unwrap();
}

async fn the_setup_link_makes_one_administrator(world: World) {
    issue(&world, &link(1, LinkKind::Setup)).await;
    let admin = new_user("root", Role::Admin);
    let set_up = entry(Action::SetUp, 1);
    let store = &world.store;
    let wrong = store.set_up(Some([2; 32]), &admin, &set_up).await;
    assert!(matches!(wrong, Err(SetUpError::BadLink)));
    let late = store
        .set_up(Some([1; 32]), &admin, &entry(Action::SetUp, 100))
        .await;
    assert!(matches!(late, Err(SetUpError::BadLink)));
    store.set_up(Some([1; 32]), &admin, &set_up).await.unwrap();
    assert_eq!(world.last_audit_action().await, "gateway.set_up");
    let again = store
        .set_up(Some([1; 32]), &new_user("two", Role::Admin), &set_up)
        .await;
    assert!(matches!(again, Err(SetUpError::AlreadySetUp)));
    let without = store
        .set_up(None, &new_user("two", Role::Admin), &set_up)
        .await;
    assert!(matches!(without, Err(SetUpError::AlreadySetUp)));
}

async fn of_two_setups_at_once_one_wins(world: World) {
    let (first, second) = (world.second().await, world.second().await);
    let (one, two) = (new_user("one", Role::Admin), new_user("two", Role::Admin));
    let set_up = entry(Action::SetUp, 1);
    let (a, b) = tokio::join!(
        first.set_up(None, &one, &set_up),
        second.set_up(None, &two, &set_up)
    );
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    assert_eq!(world.store.users(None, 10).await.unwrap().len(), 1);
}

async fn a_new_setup_link_replaces_the_old_one(world: World) {
    issue(&world, &link(1, LinkKind::Setup)).await;
    issue(&world, &link(2, LinkKind::Setup)).await;
    let admin = new_user("root", Role::Admin);
    let set_up = entry(Action::SetUp, 1);
    let old = world.store.set_up(Some([1; 32]), &admin, &set_up).await;
    assert!(matches!(old, Err(SetUpError::BadLink)));
    world
        .store
        .set_up(Some([2; 32]), &admin, &set_up)
        .await
        .unwrap();
}

async fn an_invite_sets_the_password_once(world: World) {
    let new = NewUser {
        password_hash: None,
        ..new_user("mia", Role::Member)
    };
    world
        .store
        .create_user(&new, &entry(Action::UserCreated, 0))
        .await
        .unwrap();
    assert!(world.store.user(new.id).await.unwrap().unwrap().invited);
    issue(&world, &link(1, LinkKind::Invite(new.id))).await;
    assert_eq!(
        world
            .store
            .invited([1; 32], at(1))
            .await
            .unwrap()
            .unwrap()
            .id,
        new.id
    );
    let user = world
        .store
        .accept_invite([1; 32], "chosen", &context(1))
        .await
        .unwrap()
        .unwrap();
    assert!(!user.invited);
    let audit_entries = world.store.recent_audit_entries(1).await.unwrap();
    assert_eq!(
        (
            audit_entries[0].action.as_str(),
            audit_entries[0].actor.as_str()
        ),
        ("link.accepted", "mia")
    );
    assert!(
        world
            .store
            .accept_invite([1; 32], "again", &context(2))
            .await
            .unwrap()
            .is_none()
    );
    let stored = world
        .store
        .credentials(&name("mia"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.password_hash.as_deref(), Some("chosen"));
}

async fn an_expired_invite_does_nothing(world: World) {
    let mia = world.user("mia", Role::Member).await;
    issue(&world, &link(1, LinkKind::Invite(mia))).await;
    assert!(
        world
            .store
            .invited([1; 32], at(100))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        world
            .store
            .accept_invite([1; 32], "late", &context(100))
            .await
            .unwrap()
            .is_none()
    );
    let stored = world
        .store
        .credentials(&name("mia"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.password_hash.as_deref(), Some("hash"));
}

async fn a_disabled_user_cannot_use_an_invite(world: World) {
    let mia = world.user("mia", Role::Member).await;
    issue(&world, &link(1, LinkKind::Invite(mia))).await;
    world
        .store
        .disable_user(mia, &entry(Action::UserDisabled, 1))
        .await
        .unwrap();
    assert!(world.store.invited([1; 32], at(2)).await.unwrap().is_none());
    assert!(
        world
            .store
            .accept_invite([1; 32], "x", &context(2))
            .await
            .unwrap()
            .is_none()
    );
}

async fn an_invite_names_its_user_and_its_issuer(world: World) {
    let mia = world.user("mia", Role::Member).await;
    issue(&world, &link(1, LinkKind::Invite(mia))).await;
    let issuer = context(0).actor.name().to_owned();
    let shown = world.store.invitation([1; 32], at(1)).await.unwrap();
    let shown = shown.unwrap();
    assert_eq!(shown.user.username, name("mia"));
    assert_eq!(shown.issuer, Some(issuer));
    assert_eq!(shown.expires_at, at(100));
    for (hash, when) in [([2; 32], 1), ([1; 32], 100)] {
        let none = world.store.invitation(hash, at(when)).await.unwrap();
        assert!(none.is_none());
    }
}
