//! Account removal: large accounts and ended sessions are deleted in batches.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::{SessionId, UserId};
use switchboard::domain::search_query::SearchQuery;
use switchboard::store::{Append, ChangeUserError, JournalFacts, SearchText, Subject};

use crate::journals::{append, bodies, new_session};
use crate::{World, at, cutoffs, entry};

crate::on_both_databases!(
    texts_of_an_ended_session_are_removed_in_batches,
    an_active_session_loses_nothing,
    a_large_account_is_disabled_and_deleted_in_batches,
    the_last_administrator_keeps_everything,
);

/// A session with this many events, each with a search text.
async fn session_with_texts(world: &World, owner: UserId, count: usize) -> SessionId {
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
    world.store.sweep(cutoffs(1)).await.unwrap();
    new.id
}

async fn count_hits(world: &World, owner: UserId) -> usize {
    let words = SearchQuery::parse("needle");
    let hits = world.store.search(owner, &words, None, 50).await.unwrap();
    hits.len()
}

async fn facts(world: &World, session: SessionId) -> JournalFacts {
    let all = world.store.journals(None, 100).await.unwrap();
    all.into_iter()
        .find(|facts| facts.session == session)
        .unwrap()
}

async fn texts_of_an_ended_session_are_removed_in_batches(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let (ended, other) = (
        session_with_texts(&world, mia, 100).await,
        session_with_texts(&world, mia, 1).await,
    );
    assert_eq!(count_hits(&world, mia).await, 2);
    let end = entry(Action::SessionEnded, 5);
    assert!(world.store.end_session(ended, mia, &end).await.unwrap());
    assert_eq!(count_hits(&world, mia).await, 1);
    assert!(
        facts(&world, ended).await.has_old_texts,
        "texts are removed later"
    );
    let mut batches = Vec::new();
    loop {
        let removed = world.store.remove_text_batch(ended).await.unwrap();
        if removed == 0 {
            break;
        }
        batches.push(removed);
    }
    assert!(
        batches.len() > 1 && batches.iter().sum::<u64>() == 100,
        "{batches:?}"
    );
    assert!(!facts(&world, ended).await.has_old_texts);
    assert!(
        !facts(&world, other).await.has_old_texts,
        "it has not ended"
    );
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn an_active_session_loses_nothing(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let session = session_with_texts(&world, mia, 3).await;
    assert_eq!(world.store.remove_text_batch(session).await.unwrap(), 0);
    assert_eq!(world.store.remove_event_batch(session).await.unwrap(), 0);
    assert_eq!(world.store.remove_account_batch(mia).await.unwrap(), 0);
    assert!(!world.store.is_large_account(mia).await.unwrap());
    // It changed since then.
    let expired = world.store.expire_session(session, at(0), at(9)).await;
    assert!(!expired.unwrap());
    assert_eq!(count_hits(&world, mia).await, 1);
    assert_eq!(bodies(&world, session, 0).await.len(), 3);
    assert!(
        world
            .store
            .expire_session(session, at(5), at(9))
            .await
            .unwrap()
    );
    assert_eq!(facts(&world, session).await.ended_at, Some(at(9)));
    assert_eq!(count_hits(&world, mia).await, 0);
}

async fn a_large_account_is_disabled_and_deleted_in_batches(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let ben = world.user("ben", Role::Member).await;
    let session = session_with_texts(&world, mia, 700).await;
    let his = session_with_texts(&world, ben, 2).await;
    assert!(world.store.is_large_account(mia).await.unwrap());
    let close = entry(Action::UserDisabled, 5);
    world
        .store
        .disable_and_end_sessions(mia, &close)
        .await
        .unwrap();
    assert_eq!(world.last_audit_action().await, "user.disabled");
    assert!(world.store.user(mia).await.unwrap().unwrap().disabled);
    assert!(facts(&world, session).await.ended_at.is_some());
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes[0].subject, Subject::User(mia, 2));
    let mut batches = 0;
    while world.store.remove_account_batch(mia).await.unwrap() > 0 {
        batches += 1;
    }
    assert!(batches > 10, "{batches} batches");
    assert!(bodies(&world, session, 0).await.is_empty());
    let remove = entry(Action::UserRemoved, 6);
    world.store.remove_user(mia, &remove).await.unwrap();
    assert!(world.store.session(session).await.unwrap().is_none());
    assert_eq!(count_hits(&world, ben).await, 1);
    assert_eq!(bodies(&world, his, 0).await.len(), 2);
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn the_last_administrator_keeps_everything(world: World) {
    let root = world.user("root", Role::Admin).await;
    let session = session_with_texts(&world, root, 3).await;
    let close = entry(Action::UserDisabled, 5);
    let refused = world.store.disable_and_end_sessions(root, &close).await;
    assert!(
        matches!(refused, Err(ChangeUserError::LastAdmin)),
        "{refused:?}"
    );
    assert!(facts(&world, session).await.ended_at.is_none());
    assert!(world.store.changes_after(0).await.unwrap().is_empty());
}
