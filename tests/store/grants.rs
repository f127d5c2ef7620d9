//! Grants: sharing and unsharing sessions.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::grant::{ControlMode, GrantRole};
use switchboard::domain::id::{SessionId, UserId};
use switchboard::store::{SessionChange, ShareError};

use crate::journals::{new_session, owned};
use crate::{World, at, entry, name};

crate::on_both_databases!(
    a_grant_is_stored_changed_and_revoked,
    only_the_owner_shares_and_only_with_others,
    a_refused_change_leaves_no_audit_entry,
    own_and_shared_sessions_make_one_list,
    grants_are_deleted_with_the_user_and_the_session,
    the_control_mode_is_stored,
);

async fn share(world: &World, session: SessionId, owner: UserId, role: GrantRole) {
    let shared = entry(Action::SessionShared, 5);
    let granted = world
        .store
        .share_session(session, owner, &name("ben"), role, &shared)
        .await
        .unwrap();
    assert_eq!((granted.role, granted.granted_by), (role, owner));
}

async fn a_grant_is_stored_changed_and_revoked(world: World) {
    let (mia, session) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    let granted = async |store: &dyn switchboard::store::Store| {
        let row = store.session_for(session.id, ben).await.unwrap();
        row.unwrap().granted
    };
    assert_eq!(granted(&*world.store).await, None);
    share(&world, session.id, mia, GrantRole::Viewer).await;
    assert_eq!(granted(&*world.store).await, Some(GrantRole::Viewer));
    assert_eq!(world.last_audit_action().await, "session.shared");
    share(&world, session.id, mia, GrantRole::Editor).await;
    let second = world.second().await;
    assert_eq!(granted(&*second).await, Some(GrantRole::Editor));
    let grants = second.grants(session.id).await.unwrap();
    assert_eq!(grants.len(), 1, "replaces the earlier grant");
    assert_eq!((grants[0].user, &grants[0].username), (ben, &name("ben")));
    assert_eq!(grants[0].created_at, at(5));
    let row = world.store.session(session.id).await.unwrap().unwrap();
    assert_eq!((row.granted, row.owner_name), (None, name("mia")));
    let unshared = entry(Action::SessionUnshared, 6);
    let taken = second
        .unshare_session(session.id, mia, &name("ben"), &unshared)
        .await;
    assert!(taken.unwrap());
    assert_eq!(world.last_audit_action().await, "session.unshared");
    assert_eq!(granted(&*world.store).await, None);
}

async fn only_the_owner_shares_and_only_with_others(world: World) {
    let (mia, session) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    let cat = world.user("cat", Role::Member).await;
    let disabled = entry(Action::UserDisabled, 1);
    world.store.disable_user(cat, &disabled).await.unwrap();
    let share = async |id, owner, with: &str| {
        let shared = entry(Action::SessionShared, 2);
        let role = GrantRole::Viewer;
        let store = &world.store;
        store
            .share_session(id, owner, &name(with), role, &shared)
            .await
            .unwrap_err()
    };
    let foreign = share(session.id, ben, "ben").await;
    assert!(matches!(foreign, ShareError::NoSuchSession));
    let unknown = share(SessionId::new(), mia, "ben").await;
    assert!(matches!(unknown, ShareError::NoSuchSession));
    let nobody = share(session.id, mia, "nobody").await;
    assert!(matches!(nobody, ShareError::NoSuchUser));
    let disabled = share(session.id, mia, "cat").await;
    assert!(matches!(disabled, ShareError::DisabledUser));
    let own = share(session.id, mia, "mia").await;
    assert!(matches!(own, ShareError::OwnSession));
    let ended = entry(Action::SessionEnded, 3);
    world
        .store
        .end_session(session.id, mia, &ended)
        .await
        .unwrap();
    let ended = share(session.id, mia, "ben").await;
    assert!(matches!(ended, ShareError::NoSuchSession));
}

async fn a_refused_change_leaves_no_audit_entry(world: World) {
    let (mia, session) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    let before = world.store.recent_audit_entries(100).await.unwrap().len();
    let store = &world.store;
    let role = GrantRole::Viewer;
    let shared = entry(Action::SessionShared, 2);
    let refused = store
        .share_session(session.id, ben, &name("ben"), role, &shared)
        .await;
    refused.unwrap_err();
    let refused = store
        .share_session(session.id, mia, &name("nobody"), role, &shared)
        .await;
    refused.unwrap_err();
    let unshared = entry(Action::SessionUnshared, 3);
    for (owner, with) in [(mia, "ben"), (mia, "nobody")] {
        let taken = store
            .unshare_session(session.id, owner, &name(with), &unshared)
            .await;
        assert!(!taken.unwrap(), "there is no grant to revoke");
    }
    store
        .share_session(session.id, mia, &name("ben"), role, &shared)
        .await
        .unwrap();
    let foreign = store
        .unshare_session(session.id, ben, &name("ben"), &unshared)
        .await;
    assert!(!foreign.unwrap(), "not the owner");
    assert_eq!(
        store.recent_audit_entries(100).await.unwrap().len(),
        before + 1
    );
}

async fn own_and_shared_sessions_make_one_list(world: World) {
    let (mia, first) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    let mut expected = vec![(first.id, Some(GrantRole::Viewer))];
    share(&world, first.id, mia, GrantRole::Viewer).await;
    for number in 1..6 {
        let theirs = number % 2 == 0;
        let mut new = new_session(if theirs { mia } else { ben });
        new.created_at = at(number);
        world.store.create_session(&new).await.unwrap();
        if theirs {
            share(&world, new.id, mia, GrantRole::Editor).await;
        }
        expected.insert(0, (new.id, theirs.then_some(GrantRole::Editor)));
    }
    let hidden = new_session(mia);
    world.store.create_session(&hidden).await.unwrap();
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let page = world.store.sessions(ben, before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        before = Some((last.updated_at, last.id));
        listed.extend(page.iter().map(|row| (row.id, row.granted)));
    }
    assert_eq!(listed, expected);
    let ended = entry(Action::SessionEnded, 9);
    world
        .store
        .end_session(first.id, mia, &ended)
        .await
        .unwrap();
    let all = world.store.sessions(ben, None, 100).await.unwrap();
    assert_eq!(
        all.len(),
        expected.len() - 1,
        "an ended session is not listed"
    );
}

async fn grants_are_deleted_with_the_user_and_the_session(world: World) {
    let (mia, session) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    share(&world, session.id, mia, GrantRole::Editor).await;
    let removed = entry(Action::UserRemoved, 1);
    world.store.remove_user(ben, &removed).await.unwrap();
    assert!(world.store.grants(session.id).await.unwrap().is_empty());
    let ben = world.user("ben", Role::Member).await;
    let row = world.store.session_for(session.id, ben).await.unwrap();
    assert_eq!(
        row.unwrap().granted,
        None,
        "the same name is not the same user"
    );
    share(&world, session.id, mia, GrantRole::Editor).await;
    world.store.remove_user(mia, &removed).await.unwrap();
    assert!(world.store.sessions(ben, None, 9).await.unwrap().is_empty());
}

async fn the_control_mode_is_stored(world: World) {
    let (mia, session) = owned(&world).await;
    let ben = world.user("ben", Role::Member).await;
    let mode = async || {
        let row = world.store.session(session.id).await.unwrap();
        row.unwrap().control
    };
    assert_eq!(mode().await, ControlMode::Open);
    let exclusive = SessionChange::Control(ControlMode::Exclusive);
    let store = &world.store;
    let foreign = store.change_session(session.id, ben, &exclusive, at(1));
    assert!(!foreign.await.unwrap());
    assert_eq!(mode().await, ControlMode::Open);
    let own = store.change_session(session.id, mia, &exclusive, at(1));
    assert!(own.await.unwrap());
    assert_eq!(mode().await, ControlMode::Exclusive);
}
