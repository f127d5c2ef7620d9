//! Retention: compaction, dropped events, expired sessions.

use switchboard::domain::audit::Action;
use switchboard::domain::id::SessionId;
use switchboard::store::{Snapshot, StoredEvent};

use crate::journals::{append, bodies, owned};
use crate::{World, at, cutoffs, entry};

crate::on_both_databases!(
    every_journal_is_listed_once,
    compacted_events_replace_the_originals,
    a_journal_that_was_compacted_meanwhile_stays,
    the_size_limit_counts_from_the_newest_event,
    events_without_a_snapshot_are_not_dropped,
    a_recently_used_session_is_not_removed,
);

async fn written(world: &World, bodies: &[&str]) -> SessionId {
    let (_, new) = owned(world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let append = append(new.id, lease.term, 0, bodies);
    world.store.append(&[append], at(1)).await.unwrap()[0]
        .clone()
        .unwrap();
    // A sweep flushes the commit log.
    world.store.sweep(cutoffs(1)).await.unwrap();
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

async fn compacted_events_replace_the_originals(world: World) {
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

async fn the_size_limit_counts_from_the_newest_event(world: World) {
    let session = written(&world, &["aaaa", "bbbb", "cccc"]).await;
    for (bytes, last) in [(0, Some(3)), (4, Some(2)), (11, Some(1)), (12, None)] {
        let found = world.store.last_beyond(session, bytes).await.unwrap();
        assert_eq!(found, last, "{bytes}");
    }
    let before = world.store.last_before(session, at(1)).await.unwrap();
    let after = world.store.last_before(session, at(2)).await.unwrap();
    assert_eq!((before, after), (None, Some(3)));
}

async fn events_without_a_snapshot_are_not_dropped(world: World) {
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

async fn a_recently_used_session_is_not_removed(world: World) {
    let session = written(&world, &["a"]).await;
    let entry = entry(Action::SessionExpired, 9);
    let remove = |since| world.store.remove_session(session, since, &entry);
    assert!(!remove(at(1)).await.unwrap());
    assert!(world.store.session(session).await.unwrap().is_some());
    assert!(remove(at(2)).await.unwrap());
    assert!(world.store.session(session).await.unwrap().is_none());
    assert!(bodies(&world, session, 0).await.is_empty());
    assert_eq!(world.last_audit_action().await, "session.expired");
}
