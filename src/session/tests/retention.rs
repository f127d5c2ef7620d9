//! What is kept, and what somebody finds who comes back to what is not.

use super::*;
use crate::store::{Append, NewEvent};

async fn found(session: &Session, after: u64) -> Option<Vec<Recorded>> {
    match session.journal().after(after, 10_000).await.unwrap() {
        Found::Gone => None,
        Found::Entries(entries) => {
            Some(entries.iter().map(|entry| entry.recorded.clone()).collect())
        }
    }
}

fn text(events: &[Recorded]) -> String {
    let said = |recorded: &Recorded| match &recorded.event {
        Event::MessageDelta { text, .. } => text.clone(),
        _ => String::new(),
    };
    events.iter().map(said).collect()
}

#[tokio::test]
async fn old_pieces_are_joined_and_say_which_offsets_they_stand_for() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 300").await;
    let before = house.stored(&session).await;
    let keeper = house.keeper(|_, _| {});
    assert_eq!(keeper.round().await.unwrap().joined, 0, "it is too early");
    house.days_pass(1);
    assert_eq!(keeper.round().await.unwrap().joined, 299);
    assert_eq!(keeper.round().await.unwrap().joined, 0, "once is enough");

    let after = house.stored(&session).await;
    assert_eq!(after.len(), before.len() - 299);
    assert_eq!(text(&after), text(&before));
    assert!(
        after
            .windows(2)
            .all(|pair| pair[0].offset + 1 == pair[1].first()),
        "there is no hole"
    );
    let joined = after
        .iter()
        .find(|event| event.first() < event.offset)
        .unwrap();
    let (first, last) = (joined.first(), joined.offset);
    assert_eq!(found(&session, 0).await.unwrap().len(), after.len());
    assert_eq!(found(&session, first - 1).await.unwrap()[0].offset, last);
    assert!(found(&session, last).await.is_some());
    for inside in [first, first + 1, last - 1] {
        assert_eq!(found(&session, inside).await, None, "{inside}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_joined_journal_leads_to_the_same_state() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/think").await;
    prompts(&session, "/stream 50").await;
    let before = session.state().await.unwrap();
    house.days_pass(1);
    house.keeper(|_, _| {}).round().await.unwrap();
    let mut folded = SessionState::default();
    for event in house.stored(&session).await {
        folded.apply(&event, &state::Bounds::default());
    }
    assert_eq!(folded, before);
    house.close().await;
}

#[tokio::test]
async fn what_does_not_fit_leaves_once_a_snapshot_stands_for_it() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/chunks 3000 100").await;
    let state = session.state().await.unwrap();
    let head = session.journal().head();
    let keeper = house.keeper(|_, journal| {
        journal.compact_after_minutes = 1_000_000;
        journal.keep_bytes = 50_000;
    });
    let dropped = keeper.round().await.unwrap().dropped;
    assert!(dropped >= 2_000, "{dropped}");
    let snapshot = house.store.snapshot(session.id()).await.unwrap().unwrap();
    assert!(dropped <= snapshot.offset, "nothing beyond the snapshot");
    assert_eq!(found(&session, 0).await, None);
    assert_eq!(found(&session, dropped - 1).await, None);
    let rest = found(&session, dropped).await.unwrap();
    assert_eq!(rest[0].offset, dropped + 1);
    assert_eq!(found(&session, head).await.unwrap(), []);

    // Woken by somebody else, it knows everything.
    let id = session.id();
    drop(session);
    house.sessions.parts.live.lock().clear();
    let again = house.sessions.join(&house.mia, id).await.unwrap();
    assert_eq!(again.state().await.unwrap(), state);
    house.close().await;
}

#[tokio::test]
async fn old_events_leave_and_young_ones_stay() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/chunks 2500 10").await;
    let old = session.journal().head();
    house.days_pass(31);
    prompts(&session, "/echo young").await;
    let keeper = house.keeper(|_, journal| journal.keep_days = 30);
    let dropped = keeper.round().await.unwrap().dropped;
    assert!((1..=old).contains(&dropped), "{dropped}");
    let kept = house.stored(&session).await;
    assert!(kept.last().unwrap().offset > old);
    house.close().await;
}

#[tokio::test]
async fn sessions_that_nobody_used_for_long_are_removed() {
    let house = House::new().await;
    let (forgotten, present) = (house.draft(), house.draft());
    prompts(&forgotten, "/echo a").await;
    prompts(&present, "/echo b").await;
    let (gone, stays) = (forgotten.id(), present.id());
    drop(forgotten);
    house.sessions.parts.live.lock().remove(&gone);
    house.days_pass(91);
    let everything = house.keeper(|_, _| {}).round().await.unwrap();
    assert_eq!(everything.removed, 0, "by default all are kept");
    let keeper = house.keeper(|sessions, _| sessions.retention_days = 90);
    assert_eq!(keeper.round().await.unwrap().removed, 1);
    assert!(house.store.session(gone).await.unwrap().is_none());
    assert!(house.stored(&present).await.len() > 2, "somebody is in it");
    assert!(house.store.session(stays).await.unwrap().is_some());
    let audit = house.store.recent_acts(1).await.unwrap();
    assert_eq!(audit[0].action, "session.expired");
    house.close().await;
}

#[tokio::test]
async fn ended_sessions_are_removed_after_a_while() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo a").await;
    let act = By::gateway(house.clock.wall()).did(Action::SessionEnded, "x");
    let ended = house.store.end_session(session.id(), house.mia.user, &act);
    assert!(ended.await.unwrap());
    let keeper = house.keeper(|sessions, _| sessions.ended_days = 30);
    house.days_pass(29);
    assert_eq!(keeper.round().await.unwrap().removed, 0);
    house.days_pass(2);
    assert_eq!(keeper.round().await.unwrap().removed, 1);
    house.close().await;
}

#[tokio::test]
async fn old_rows_leave_the_audit_log_and_young_ones_stay() {
    let house = House::new().await;
    let record = async |target: &str| {
        let act = By::gateway(house.clock.wall()).did(Action::NoticeSent, target);
        house.store.record(&act).await.unwrap();
    };
    for _ in 0..1_500 {
        record("old").await;
    }
    house.days_pass(300);
    record("young").await;
    let keeping = |keep_days| {
        let audit = AuditConfig { keep_days };
        let (sessions, journal) = (sessions_config(), journal_config());
        house.sessions.keeper(&sessions, &journal, &audit)
    };
    let forgotten = async |keep_days| keeping(keep_days).round().await.unwrap().forgotten;
    assert_eq!(forgotten(365).await, 0, "they are not a year old");
    assert_eq!(forgotten(0).await, 0, "none leaves where all are kept");
    let all = house.store.recent_acts(5_000).await.unwrap().len();
    assert_eq!(usize::try_from(forgotten(299).await).unwrap(), all - 1);
    let left = house.store.recent_acts(5_000).await.unwrap();
    assert_eq!((left.len(), left[0].target.as_str()), (1, "young"));
    house.close().await;
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_passed_by_and_stays() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 20").await;
    let (id, head) = (session.id(), session.journal().head());
    let lease = house.store.claim_journal(id, "another").await.unwrap();
    let odd = Append {
        session: id,
        term: lease.term,
        create: None,
        after: head,
        events: vec![NewEvent {
            at: house.clock.wall(),
            body: b"{}".to_vec(),
        }],
        summary: None,
        command: None,
        acts: Vec::new(),
        texts: Vec::new(),
    };
    let added = house.store.append(&[odd], house.clock.wall()).await;
    assert_eq!(added.unwrap(), [Ok(())]);
    house.days_pass(1);
    assert_eq!(house.keeper(|_, _| {}).round().await.unwrap().joined, 19);
    let facts = &house.store.journals(None, 10).await.unwrap()[0];
    assert_eq!((facts.compacted, facts.head), (head + 1, head + 1));
    let last = house.store.events_after(id, head, 10).await.unwrap();
    assert_eq!(last[0].body, b"{}");
    house.close().await;
}

#[tokio::test]
async fn what_an_ended_session_was_found_by_leaves_with_the_next_look() {
    let house = House::new().await;
    let (ended, other) = (house.draft(), house.draft());
    prompts(&ended, "/echo needle").await;
    prompts(&other, "/echo needle").await;
    let act = By::gateway(house.clock.wall()).did(Action::SessionEnded, "x");
    let owner = house.mia.user;
    assert!(
        house
            .store
            .end_session(ended.id(), owner, &act)
            .await
            .unwrap()
    );
    let has_texts = async || {
        let all = house.store.journals(None, 9).await.unwrap();
        all.iter().any(|journal| journal.has_old_texts)
    };
    assert!(has_texts().await);
    house.keeper(|_, _| {}).round().await.unwrap();
    assert!(!has_texts().await);
    let words = crate::domain::search::Words::of("needle");
    let hits = house.sessions.search(owner, &words, None, 9).await.unwrap();
    assert!(hits.iter().map(|hit| hit.row.id).eq([other.id()]));
    house.close().await;
}

#[tokio::test]
async fn a_branch_that_is_not_found_by_its_past_yet_is_looked_after() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo needle").await;
    // As if the gateway had ended right behind the branch.
    let new = store::NewBranch {
        session: house.sessions.describe(house.mia.user, None, None).unwrap(),
        from: session.id(),
        upto: session.journal().head(),
        closing: Vec::new(),
        summary: store::Summary::default(),
        snapshot: b"{}".to_vec(),
        command: None,
    };
    house.store.branch(&new).await.unwrap();
    let words = crate::domain::search::Words::of("needle");
    let found = async || {
        let hits = house.sessions.search(house.mia.user, &words, None, 9).await;
        hits.unwrap().len()
    };
    assert_eq!(found().await, 1);
    house.keeper(|_, _| {}).round().await.unwrap();
    assert_eq!(found().await, 2);
    house.close().await;
}
