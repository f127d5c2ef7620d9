//! Usage: the bytes of a user's journals follow what is appended, joined, dropped and branched.

use switchboard::domain::account::Role;
use switchboard::domain::id::{SessionId, UserId};
use switchboard::store::{SessionSummary, StoredEvent};

use crate::journals::{append, owned};
use crate::{World, at};

crate::on_both_databases!(
    appended_bytes_are_counted_with_the_summary,
    joined_and_dropped_events_are_not_counted_any_more,
    a_journal_is_measured_exactly,
);

/// Appends events, with a summary that counts them or without one.
async fn grows(world: &World, session: SessionId, after: u64, bodies: &[&str], counted: bool) {
    let mut append = append(session, 1, after, bodies);
    append.summary = counted.then(|| SessionSummary {
        added_bytes: bodies.iter().map(|body| body.len() as u64).sum(),
        ..SessionSummary::default()
    });
    let outcomes = world.store.append(&[append], at(1)).await.unwrap();
    assert!(outcomes[0].is_ok());
}

async fn bytes(world: &World, user: UserId) -> u64 {
    world.store.usage(user).await.unwrap().journal_bytes
}

async fn appended_bytes_are_counted_with_the_summary(world: World) {
    let (mia, new) = owned(&world).await;
    assert_eq!(world.store.usage(mia).await.unwrap().sessions, 1);
    world.store.claim_journal(new.id, "here").await.unwrap();
    grows(&world, new.id, 0, &["12345", "678"], true).await;
    assert_eq!(bytes(&world, mia).await, 8);
    grows(&world, new.id, 2, &["x"; 30], false).await;
    assert_eq!(bytes(&world, mia).await, 8);
    grows(&world, new.id, 32, &["12"], true).await;
    assert_eq!(bytes(&world, mia).await, 10);
    let ben = world.user("ben", Role::Member).await;
    assert_eq!(bytes(&world, ben).await, 0);
}

async fn joined_and_dropped_events_are_not_counted_any_more(world: World) {
    let (mia, new) = owned(&world).await;
    world.store.claim_journal(new.id, "here").await.unwrap();
    grows(&world, new.id, 0, &["12345", "67890", "abcde"], true).await;
    let joined = [StoredEvent {
        session: new.id,
        offset: 2,
        at: at(1),
        body: b"1-0".to_vec(),
    }];
    let compacted = world
        .store
        .compact_journal(new.id, 0, 2, Some(joined.as_slice()));
    compacted.await.unwrap();
    assert_eq!(bytes(&world, mia).await, 8);
    let snapshot = switchboard::store::Snapshot {
        offset: 3,
        body: b"{}".to_vec(),
    };
    world.store.save_snapshot(new.id, &snapshot).await.unwrap();
    assert_eq!(world.store.drop_events(new.id, 2).await.unwrap(), 1);
    assert_eq!(bytes(&world, mia).await, 5);
}

async fn a_journal_is_measured_exactly(world: World) {
    let (mia, new) = owned(&world).await;
    world.store.claim_journal(new.id, "here").await.unwrap();
    grows(&world, new.id, 0, &["12345", "67890"], false).await;
    assert_eq!(bytes(&world, mia).await, 0);
    world.store.measure_journal(new.id).await.unwrap();
    assert_eq!(bytes(&world, mia).await, 10);
}
