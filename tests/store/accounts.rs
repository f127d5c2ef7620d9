//! Accounts: created, changed, disabled and removed.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::UserId;
use switchboard::store::{ChangeUserError, CreateUserError, KeepLogin, LinkKind, NewLink, Subject};

use crate::{World, at, entry, name, new_login, new_user};

crate::on_both_databases!(
    a_user_is_found_by_name_and_by_id,
    a_name_belongs_to_one_user,
    users_are_listed_by_name_in_pages,
    the_last_administrator_cannot_be_lost,
    two_administrators_cannot_disable_each_other_at_once,
    a_disabled_user_loses_every_login,
    a_new_password_ends_the_other_logins,
    a_login_checked_before_a_new_password_does_not_start,
    a_link_does_not_outlive_a_new_password,
    a_new_role_revokes_old_tokens,
    a_removed_user_is_gone_with_its_logins,
    an_unknown_user_cannot_be_changed,
);

async fn a_user_is_found_by_name_and_by_id(world: World) {
    let id = world.user("mia", Role::Member).await;
    let found = world
        .store
        .credentials(&name("mia"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.user.id, id);
    assert_eq!(found.password_hash.as_deref(), Some("hash"));
    let user = world.store.user(id).await.unwrap().unwrap();
    assert_eq!(user.username, name("mia"));
    assert_eq!(
        (user.role, user.disabled, user.invited, user.generation),
        (Role::Member, false, false, 1)
    );
    assert_eq!(user.created_at, at(0));
    assert!(
        world
            .store
            .credentials(&name("bob"))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(world.last_audit_action().await, "user.created");
    assert!(world.store.has_users().await.unwrap());
    assert!(!world.store.has_admin().await.unwrap());
}

async fn a_name_belongs_to_one_user(world: World) {
    world.user("mia", Role::Member).await;
    let again = new_user("MIA", Role::Admin);
    let refused = world
        .store
        .create_user(&again, &entry(Action::UserCreated, 0))
        .await;
    assert!(matches!(refused, Err(CreateUserError::UsernameTaken)));
    assert!(!world.store.has_admin().await.unwrap());
    assert_eq!(
        world.store.recent_audit_entries(10).await.unwrap().len(),
        1,
        "a refused change leaves no audit entry"
    );
}

async fn users_are_listed_by_name_in_pages(world: World) {
    for name in ["carl", "anna", "bert"] {
        world.user(name, Role::Member).await;
    }
    let names = |users: Vec<switchboard::domain::account::User>| -> Vec<String> {
        users
            .into_iter()
            .map(|user| user.username.to_string())
            .collect()
    };
    assert_eq!(
        names(world.store.users(None, 2).await.unwrap()),
        ["anna", "bert"]
    );
    assert_eq!(
        names(world.store.users(Some("bert"), 2).await.unwrap()),
        ["carl"]
    );
}

async fn the_last_administrator_cannot_be_lost(world: World) {
    let admin = world.user("root", Role::Admin).await;
    let store = &world.store;
    let change = entry(Action::UserDisabled, 1);
    let losses = [
        store.disable_user(admin, &change).await,
        store.remove_user(admin, &change).await,
        store.set_role(admin, Role::Member, &change).await,
    ];
    for loss in losses {
        assert!(matches!(loss, Err(ChangeUserError::LastAdmin)), "{loss:?}");
    }
    let second = world.user("second", Role::Admin).await;
    store.disable_user(admin, &change).await.unwrap();
    assert!(matches!(
        store.remove_user(second, &change).await,
        Err(ChangeUserError::LastAdmin)
    ));
}

async fn two_administrators_cannot_disable_each_other_at_once(world: World) {
    let (one, other) = (
        world.user("one", Role::Admin).await,
        world.user("other", Role::Admin).await,
    );
    let (first, second) = (world.second().await, world.second().await);
    let change = entry(Action::UserDisabled, 1);
    let (a, b) = tokio::join!(
        first.disable_user(one, &change),
        second.disable_user(other, &change)
    );
    assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1, "{a:?} {b:?}");
}

async fn a_disabled_user_loses_every_login(world: World) {
    let mia = world.user("mia", Role::Member).await;
    world.login(mia, [1; 32]).await;
    world
        .store
        .disable_user(mia, &entry(Action::UserDisabled, 1))
        .await
        .unwrap();
    assert!(world.store.logins(mia, at(2)).await.unwrap().is_empty());
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes.last().unwrap().subject, Subject::User(mia, 2));
    assert_eq!(changes.last().unwrap().until, at(900));
    let late = new_login(mia, [2; 32]);
    assert!(
        world
            .store
            .start_login(&late, &entry(Action::LoginSucceeded, 2))
            .await
            .is_err()
    );
    world
        .store
        .enable_user(mia, &entry(Action::UserEnabled, 3))
        .await
        .unwrap();
    assert!(!world.store.user(mia).await.unwrap().unwrap().disabled);
    assert!(
        world
            .store
            .start_login(&late, &entry(Action::LoginSucceeded, 2))
            .await
            .is_err(),
        "a password checked before the change must be checked again"
    );
}

async fn a_new_password_ends_the_other_logins(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let kept = world.login(mia, [1; 32]).await;
    let other = world.login(mia, [2; 32]).await;
    let change = entry(Action::PasswordChanged, 1);
    world
        .store
        .set_password(mia, "new", KeepLogin::Only(kept), &change)
        .await
        .unwrap();
    let left: Vec<_> = world.store.logins(mia, at(2)).await.unwrap();
    assert_eq!(
        left.iter().map(|login| login.id).collect::<Vec<_>>(),
        [kept]
    );
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes.last().unwrap().subject, Subject::Login(other));
    world
        .store
        .set_password(mia, "newer", KeepLogin::None, &change)
        .await
        .unwrap();
    assert!(world.store.logins(mia, at(2)).await.unwrap().is_empty());
    let stored = world
        .store
        .credentials(&name("mia"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.password_hash.as_deref(), Some("newer"));
}

async fn a_login_checked_before_a_new_password_does_not_start(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let late = new_login(mia, [1; 32]);
    let change = entry(Action::PasswordChanged, 1);
    world
        .store
        .set_password(mia, "new", KeepLogin::None, &change)
        .await
        .unwrap();
    let started = world
        .store
        .start_login(&late, &entry(Action::LoginSucceeded, 2))
        .await;
    assert!(started.is_err(), "{started:?}");
}

async fn a_link_does_not_outlive_a_new_password(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let link = NewLink {
        hash: [1; 32],
        kind: LinkKind::Invite(mia),
        expires_at: at(100),
    };
    let issue = entry(Action::LinkIssued, 0);
    let change = entry(Action::PasswordChanged, 1);
    let store = &world.store;
    store.issue_link(&link, &issue).await.unwrap();
    store
        .set_password(mia, "new", KeepLogin::None, &change)
        .await
        .unwrap();
    assert!(store.invited([1; 32], at(2)).await.unwrap().is_none());
    store.issue_link(&link, &issue).await.unwrap();
    store.disable_user(mia, &change).await.unwrap();
    store.enable_user(mia, &change).await.unwrap();
    assert!(store.invited([1; 32], at(2)).await.unwrap().is_none());
}

async fn a_new_role_revokes_old_tokens(world: World) {
    let mia = world.user("mia", Role::Member).await;
    world.login(mia, [1; 32]).await;
    world
        .store
        .set_role(mia, Role::Admin, &entry(Action::RoleChanged, 1))
        .await
        .unwrap();
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes[0].subject, Subject::User(mia, 2));
    assert_eq!(
        world.store.logins(mia, at(2)).await.unwrap().len(),
        1,
        "the login itself stays"
    );
    assert_eq!(
        world.store.user(mia).await.unwrap().unwrap().role,
        Role::Admin
    );
}

async fn a_removed_user_is_gone_with_its_logins(world: World) {
    let mia = world.user("mia", Role::Member).await;
    world.login(mia, [1; 32]).await;
    world
        .store
        .remove_user(mia, &entry(Action::UserRemoved, 1))
        .await
        .unwrap();
    assert!(world.store.user(mia).await.unwrap().is_none());
    assert!(world.store.logins(mia, at(2)).await.unwrap().is_empty());
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes[0].subject, Subject::User(mia, i64::MAX));
    world.user("mia", Role::Member).await;
}

async fn an_unknown_user_cannot_be_changed(world: World) {
    let unknown = UserId::new();
    let change = entry(Action::UserDisabled, 1);
    let store = &world.store;
    let outcomes = [
        store.disable_user(unknown, &change).await,
        store.enable_user(unknown, &change).await,
        store.remove_user(unknown, &change).await,
        store.set_role(unknown, Role::Admin, &change).await,
        store
            .set_password(unknown, "x", KeepLogin::None, &change)
            .await,
    ];
    for outcome in outcomes {
        assert!(
            matches!(outcome, Err(ChangeUserError::NotFound)),
            "{outcome:?}"
        );
    }
    assert!(store.recent_audit_entries(10).await.unwrap().is_empty());
    assert!(store.changes_after(0).await.unwrap().is_empty());
}
