//! Making room.

use switchboard::domain::act::Action;
use switchboard::domain::id::SessionId;
use switchboard::store::{Snapshot, StoredEvent};

use crate::journals::{append, bodies, owned};
use crate::{World, act, at, outlived};

crate::on_both_databases!(
    every_journal_is_listed_once,
    events_take_the_place_of_those_before,
    a_journal_that_was_compacted_meanwhile_stays,
    what_does_not_fit_is_found_from_the_newest_on,
    nothing_leaves_that_no_snapshot_stands_for,
    a_session_that_was_touched_is_not_removed,
);

async fn written(world: &World, bodies: &[&str]) -> SessionId {
    let (_, new) = owned(world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let append = append(new.id, lease.term, 0, bodies);
    world.store.append(&[append], at(1)).await.unwrap()[0]
        .clone()
        .unwrap();
    // What a commit brought is in its journal from the next sweep on, at the latest.
    world.store.sweep(outlived(1)).await.unwrap();
    new.id
}

fn event(offset: u64, body: &str) -> StoredEvent {
    StoredEvent {
        session: SessionId::new(),
        offset,
        at: at(1),
        body: body.into(),
    }
}

async fn every_journal_is_listed_once(world: World) {
    let session = written(&world, &["a", "b"]).await;
    let all = world.store.journals(None, 10).await.unwrap();
    assert_eq!(all.len(), 1);
    let facts = &all[0];
    assert_eq!(
        (facts.session, facts.head, facts.compacted),
        (session, 2, 0)
    );
    assert_eq!((facts.oldest, facts.ended_at), (Some(at(1)), None));
    let rest = world.store.journals(Some(session), 10).await.unwrap();
    assert!(rest.is_empty());
}

async fn events_take_the_place_of_those_before(world: World) {
    let session = written(&world, &["a", "b", "c", "d"]).await;
    let joined = [event(3, "abc")];
    let compacted = world
        .store
        .compact_journal(session, 0, 3, Some(&joined))
        .await;
    compacted.unwrap();
    let expected = [(3, "abc".to_owned()), (4, "d".to_owned())];
    assert_eq!(bodies(&world, session, 0).await, expected);
    let facts = &world.store.journals(None, 10).await.unwrap()[0];
    assert_eq!((facts.head, facts.compacted), (4, 3));
}

async fn a_journal_that_was_compacted_meanwhile_stays(world: World) {
    let session = written(&world, &["a", "b"]).await;
    let (one, two) = ([event(2, "ab")], [event(2, "wrong")]);
    let first = world.store.compact_journal(session, 0, 2, Some(&one)).await;
    first.unwrap();
    let second = world.store.compact_journal(session, 0, 2, Some(&two)).await;
    second.unwrap();
    assert_eq!(bodies(&world, session, 0).await, [(2, "ab".to_owned())]);
}

async fn what_does_not_fit_is_found_from_the_newest_on(world: World) {
    let session = written(&world, &["aaaa", "bbbb", "cccc"]).await;
    for (bytes, last) in [(0, Some(3)), (4, Some(2)), (11, Some(1)), (12, None)] {
        let found = world.store.last_beyond(session, bytes).await.unwrap();
        assert_eq!(found, last, "{bytes}");
    }
    let before = world.store.last_before(session, at(1)).await.unwrap();
    let after = world.store.last_before(session, at(2)).await.unwrap();
    assert_eq!((before, after), (None, Some(3)));
}

async fn nothing_leaves_that_no_snapshot_stands_for(world: World) {
    let session = written(&world, &["a", "b", "c"]).await;
    assert_eq!(world.store.drop_events(session, 3).await.unwrap(), 0);
    let snapshot = Snapshot {
        offset: 2,
        body: b"{}".to_vec(),
    };
    let saved = world.store.save_snapshot(session, &snapshot).await;
    saved.unwrap();
    assert_eq!(world.store.drop_events(session, 3).await.unwrap(), 2);
    assert_eq!(bodies(&world, session, 0).await, [(3, "c".to_owned())]);
}

async fn a_session_that_was_touched_is_not_removed(world: World) {
    let session = written(&world, &["a"]).await;
    let act = act(Action::SessionExpired, 9);
    let remove = |since| world.store.remove_session(session, since, &act);
    assert!(!remove(at(1)).await.unwrap());
    assert!(world.store.session(session).await.unwrap().is_some());
    assert!(remove(at(2)).await.unwrap());
    assert!(world.store.session(session).await.unwrap().is_none());
    assert!(bodies(&world, session, 0).await.is_empty());
    assert_eq!(world.last_act().await, "session.expired");
}
