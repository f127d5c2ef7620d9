//! Sessions: what they are called, where they came from, and how far they were read.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::grant::GrantRole;
use switchboard::domain::id::SessionId;
use switchboard::store::{Append, NewSession, SessionChange, SessionRow, SessionSummary};

use crate::journals::{append, new_session, owned};
use crate::{World, at, entry, name};

crate::on_both_databases!(
    a_session_is_called_by_its_first_prompt_until_the_agent_or_its_owner_names_it,
    a_title_given_at_the_start_is_the_users,
    a_session_is_unread_once_something_follows_what_a_user_has_read,
    a_session_knows_how_many_users_it_is_shared_with,
);

async fn record(world: &World, id: SessionId, prompt: &str, title: Option<&str>) {
    let lease = world.store.claim_journal(id, "node").await.unwrap();
    let summary = SessionSummary {
        last_prompt: Some(prompt.into()),
        title: title.map(str::to_owned),
        ..SessionSummary::default()
    };
    let append = Append {
        summary: Some(summary),
        ..append(id, lease.term, lease.head, &["event"])
    };
    let added = world.store.append(&[append], at(1)).await.unwrap();
    assert_eq!(added, [Ok(())]);
}

async fn row(world: &World, id: SessionId) -> SessionRow {
    world.store.session(id).await.unwrap().unwrap()
}

async fn a_session_is_called_by_its_first_prompt_until_the_agent_or_its_owner_names_it(
    world: World,
) {
    let (mia, new) = owned(&world).await;
    assert_eq!(row(&world, new.id).await.name(), None);
    record(&world, new.id, "\n first line \nsecond", None).await;
    record(&world, new.id, "another prompt", None).await;
    assert_eq!(row(&world, new.id).await.name(), Some(" first line "));
    record(&world, new.id, "more", Some("Named by the agent")).await;
    let named = row(&world, new.id).await;
    assert_eq!(named.name(), Some("Named by the agent"));
    assert_eq!(named.last_prompt.as_deref(), Some("more"));
    let title = SessionChange::Title("Named by its owner".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2));
    assert!(renamed.await.unwrap());
    record(&world, new.id, "more", Some("Named again by the agent")).await;
    assert_eq!(row(&world, new.id).await.name(), Some("Named by its owner"));
}

async fn a_title_given_at_the_start_is_the_users(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let new = NewSession {
        title: Some("Mine".into()),
        ..new_session(mia)
    };
    world.store.create_session(&new).await.unwrap();
    record(&world, new.id, "hello", Some("The agent's")).await;
    assert_eq!(row(&world, new.id).await.name(), Some("Mine"));
}

async fn a_session_is_unread_once_something_follows_what_a_user_has_read(world: World) {
    let (mia, new) = owned(&world).await;
    let leo = world.user("leo", Role::Member).await;
    record(&world, new.id, "one", None).await;
    record(&world, new.id, "two", None).await;
    let read = async |user| {
        let row = world.store.session_for(new.id, user).await.unwrap();
        row.unwrap().read_upto
    };
    assert_eq!(read(mia).await, None);
    assert!(world.store.mark_read(new.id, mia, 2).await.unwrap());
    assert!(world.store.mark_read(new.id, mia, 1).await.unwrap());
    assert_eq!(read(mia).await, Some(2), "never goes back");
    assert_eq!(read(leo).await, None, "each user reads alone");
    let listed = world.store.sessions(mia, None, 10).await.unwrap();
    assert_eq!((listed[0].read_upto, listed[0].head), (Some(2), 2));
    let other = SessionId::new();
    assert!(!world.store.mark_read(other, mia, 2).await.unwrap());
}

async fn a_session_knows_how_many_users_it_is_shared_with(world: World) {
    let (mia, new) = owned(&world).await;
    assert_eq!(row(&world, new.id).await.shared_with, 0);
    for user in ["leo", "zoe"] {
        world.user(user, Role::Member).await;
        let (user, shared) = (name(user), entry(Action::SessionShared, 1));
        let store = &world.store;
        let share = store.share_session(new.id, mia, &user, GrantRole::Viewer, &shared);
        share.await.unwrap();
    }
    assert_eq!(row(&world, new.id).await.shared_with, 2);
    let listed = world.store.sessions(mia, None, 10).await.unwrap();
    assert_eq!(listed[0].shared_with, 2);
}
