//! What somebody leaves behind goes a little at a time.

use switchboard::domain::account::Role;
use switchboard::domain::act::Action;
use switchboard::domain::id::{SessionId, UserId};
use switchboard::domain::search::Words;
use switchboard::store::{Append, ChangeUserError, JournalFacts, SearchText, Subject};

use crate::journals::{append, bodies, new_session};
use crate::{World, act, at, outlived};

crate::on_both_databases!(
    an_ended_session_is_not_found_and_its_texts_leave_in_parts,
    what_has_not_ended_loses_nothing,
    an_account_with_much_is_closed_emptied_and_removed,
    the_last_administrator_keeps_everything,
);

/// A session with so many events, each with a text that it is found by.
async fn spoken(world: &World, owner: UserId, count: usize) -> SessionId {
    let new = new_session(owner);
    world.store.create_session(&new).await.unwrap();
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let text = |offset| SearchText {
        offset,
        text: "needle".into(),
    };
    let said = Append {
        texts: (1..=count as u64).map(text).collect(),
        ..append(new.id, lease.term, 0, &vec!["x"; count])
    };
    let added = world.store.append(&[said], at(1)).await.unwrap();
    assert_eq!(added, [Ok(())]);
    world.store.sweep(outlived(1)).await.unwrap();
    new.id
}

async fn finds(world: &World, owner: UserId) -> usize {
    let words = Words::of("needle");
    let hits = world.store.search(owner, &words, None, 50).await.unwrap();
    hits.len()
}

async fn facts(world: &World, session: SessionId) -> JournalFacts {
    let all = world.store.journals(None, 100).await.unwrap();
    all.into_iter()
        .find(|facts| facts.session == session)
        .unwrap()
}

async fn an_ended_session_is_not_found_and_its_texts_leave_in_parts(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let (ended, other) = (spoken(&world, mia, 100).await, spoken(&world, mia, 1).await);
    assert_eq!(finds(&world, mia).await, 2);
    let end = act(Action::SessionEnded, 5);
    assert!(world.store.end_session(ended, mia, &end).await.unwrap());
    assert_eq!(finds(&world, mia).await, 1);
    assert!(
        facts(&world, ended).await.has_old_texts,
        "nobody waits for them to go"
    );
    let mut parts = Vec::new();
    loop {
        let gone = world.store.forget_texts(ended).await.unwrap();
        if gone == 0 {
            break;
        }
        parts.push(gone);
    }
    assert!(
        parts.len() > 1 && parts.iter().sum::<u64>() == 100,
        "{parts:?}"
    );
    assert!(!facts(&world, ended).await.has_old_texts);
    assert!(
        !facts(&world, other).await.has_old_texts,
        "it has not ended"
    );
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn what_has_not_ended_loses_nothing(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let session = spoken(&world, mia, 3).await;
    assert_eq!(world.store.forget_texts(session).await.unwrap(), 0);
    assert_eq!(world.store.clear_journal(session).await.unwrap(), 0);
    assert_eq!(world.store.empty_account(mia).await.unwrap(), 0);
    assert!(!world.store.owns_much(mia).await.unwrap());
    // Something happened since.
    let expired = world.store.expire_session(session, at(0), at(9)).await;
    assert!(!expired.unwrap());
    assert_eq!(finds(&world, mia).await, 1);
    assert_eq!(bodies(&world, session, 0).await.len(), 3);
    assert!(
        world
            .store
            .expire_session(session, at(5), at(9))
            .await
            .unwrap()
    );
    assert_eq!(facts(&world, session).await.ended_at, Some(at(9)));
    assert_eq!(finds(&world, mia).await, 0);
}

async fn an_account_with_much_is_closed_emptied_and_removed(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let ben = world.user("ben", Role::Member).await;
    let session = spoken(&world, mia, 700).await;
    let his = spoken(&world, ben, 2).await;
    assert!(world.store.owns_much(mia).await.unwrap());
    let close = act(Action::UserDisabled, 5);
    world.store.close_account(mia, &close).await.unwrap();
    assert_eq!(world.last_act().await, "user.disabled");
    assert!(world.store.user(mia).await.unwrap().unwrap().disabled);
    assert!(facts(&world, session).await.ended_at.is_some());
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes[0].subject, Subject::User(mia, 2));
    let mut parts = 0;
    while world.store.empty_account(mia).await.unwrap() > 0 {
        parts += 1;
    }
    assert!(parts > 10, "{parts} parts");
    assert!(bodies(&world, session, 0).await.is_empty());
    let remove = act(Action::UserRemoved, 6);
    world.store.remove_user(mia, &remove).await.unwrap();
    assert!(world.store.session(session).await.unwrap().is_none());
    assert_eq!(finds(&world, ben).await, 1);
    assert_eq!(bodies(&world, his, 0).await.len(), 2);
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn the_last_administrator_keeps_everything(world: World) {
    let root = world.user("root", Role::Admin).await;
    let session = spoken(&world, root, 3).await;
    let close = act(Action::UserDisabled, 5);
    let refused = world.store.close_account(root, &close).await;
    assert!(
        matches!(refused, Err(ChangeUserError::LastAdmin)),
        "{refused:?}"
    );
    assert!(facts(&world, session).await.ended_at.is_none());
    assert!(world.store.changes_after(0).await.unwrap().is_empty());
}
