//! Compaction and removal, and what a client finds that resumes at a removed offset.

use super::*;
use crate::store::{Append, NewEvent};

async fn found(session: &Session, after: u64) -> Option<Vec<Recorded>> {
    match session
        .journal()
        .after(after, 10_000, UserId::new())
        .await
        .unwrap()
    {
        JournalRead::Gone => None,
        JournalRead::Entries(entries) => {
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
async fn old_chunks_are_joined_and_name_their_offsets() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 300").await;
    let before = node.stored(&session).await;
    let retention_task = node.retention_task(|_, _| {});
    assert_eq!(
        retention_task.run_pass().await.unwrap().joined,
        0,
        "it is too early"
    );
    node.days_pass(1);
    assert_eq!(retention_task.run_pass().await.unwrap().joined, 299);
    assert_eq!(
        retention_task.run_pass().await.unwrap().joined,
        0,
        "once is enough"
    );

    let after = node.stored(&session).await;
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
    node.close().await;
}

#[tokio::test]
async fn a_compacted_journal_folds_to_the_same_state() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/think").await;
    prompts(&session, "/stream 50").await;
    let before = session.state().await.unwrap();
    node.days_pass(1);
    node.retention_task(|_, _| {}).run_pass().await.unwrap();
    let mut folded = SessionState::default();
    for event in node.stored(&session).await {
        folded.apply(&event, &state::Bounds::default());
    }
    assert_eq!(folded, before);
    node.close().await;
}

#[tokio::test]
async fn events_over_the_size_limit_are_removed_once_a_snapshot_covers_them() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/chunks 3000 100").await;
    let state = session.state().await.unwrap();
    let head = session.journal().head();
    let retention_task = node.retention_task(|_, journal| {
        journal.compact_after_minutes = 1_000_000;
        journal.keep_bytes = 50_000;
    });
    let dropped = retention_task.run_pass().await.unwrap().dropped;
    assert!(dropped >= 2_000, "{dropped}");
    let snapshot = node.store.snapshot(session.id()).await.unwrap().unwrap();
    assert!(dropped <= snapshot.offset, "nothing beyond the snapshot");
    assert_eq!(found(&session, 0).await, None);
    assert_eq!(found(&session, dropped - 1).await, None);
    let rest = found(&session, dropped).await.unwrap();
    assert_eq!(rest[0].offset, dropped + 1);
    assert_eq!(found(&session, head).await.unwrap(), []);

    // Activated by another node, it has the whole state.
    let id = session.id();
    drop(session);
    node.sessions.parts.live.lock().clear();
    let again = node.sessions.join(&node.mia, id).await.unwrap();
    assert_eq!(again.state().await.unwrap(), state);
    node.close().await;
}

#[tokio::test]
async fn old_events_are_removed_and_young_ones_stay() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/chunks 2500 10").await;
    let old = session.journal().head();
    node.days_pass(31);
    prompts(&session, "/echo young").await;
    let retention_task = node.retention_task(|_, journal| journal.keep_days = 30);
    let dropped = retention_task.run_pass().await.unwrap().dropped;
    assert!((1..=old).contains(&dropped), "{dropped}");
    let kept = node.stored(&session).await;
    assert!(kept.last().unwrap().offset > old);
    node.close().await;
}

#[tokio::test]
async fn sessions_unused_for_long_are_removed() {
    let node = Node::new().await;
    let (audit_rows, present) = (node.draft(), node.draft());
    prompts(&audit_rows, "/echo a").await;
    prompts(&present, "/echo b").await;
    let (gone, stays) = (audit_rows.id(), present.id());
    drop(audit_rows);
    node.sessions.parts.live.lock().remove(&gone);
    node.days_pass(91);
    let everything = node.retention_task(|_, _| {}).run_pass().await.unwrap();
    assert_eq!(everything.removed, 0, "by default all are kept");
    let retention_task = node.retention_task(|sessions, _| sessions.retention_days = 90);
    assert_eq!(retention_task.run_pass().await.unwrap().removed, 1);
    assert!(node.store.session(gone).await.unwrap().is_none());
    assert!(node.stored(&present).await.len() > 2, "somebody is in it");
    assert!(node.store.session(stays).await.unwrap().is_some());
    let audit = node.store.recent_audit_entries(1).await.unwrap();
    assert_eq!(audit[0].action, "session.expired");
    node.close().await;
}

#[tokio::test]
async fn ended_sessions_are_removed_after_a_while() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo a").await;
    let act = AuditContext::gateway(node.clock.wall()).did(Action::SessionEnded, "x");
    let ended = node.store.end_session(session.id(), node.mia.user, &act);
    assert!(ended.await.unwrap());
    let retention_task = node.retention_task(|sessions, _| sessions.ended_days = 30);
    node.days_pass(29);
    assert_eq!(retention_task.run_pass().await.unwrap().removed, 0);
    node.days_pass(2);
    assert_eq!(retention_task.run_pass().await.unwrap().removed, 1);
    node.close().await;
}

#[tokio::test]
async fn old_audit_rows_are_removed_and_young_ones_stay() {
    let node = Node::new().await;
    let record = async |target: &str| {
        let act = AuditContext::gateway(node.clock.wall()).did(Action::NoticeSent, target);
        node.store.record(&act).await.unwrap();
    };
    for _ in 0..1_500 {
        record("old").await;
    }
    node.days_pass(300);
    record("young").await;
    let keeping = |keep_days| {
        let audit = AuditConfig { keep_days };
        let (sessions, journal) = (sessions_config(), journal_config());
        node.sessions.retention_task(&sessions, &journal, &audit)
    };
    let audit_rows = async |keep_days| keeping(keep_days).run_pass().await.unwrap().audit_rows;
    assert_eq!(audit_rows(365).await, 0, "they are not a year old");
    assert_eq!(audit_rows(0).await, 0, "none leaves where all are kept");
    let all = node.store.recent_audit_entries(5_000).await.unwrap().len();
    assert_eq!(usize::try_from(audit_rows(299).await).unwrap(), all - 1);
    let left = node.store.recent_audit_entries(5_000).await.unwrap();
    assert_eq!((left.len(), left[0].target.as_str()), (1, "young"));
    node.close().await;
}

#[tokio::test]
async fn an_unreadable_event_is_skipped_and_stays() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 20").await;
    let (id, head) = (session.id(), session.journal().head());
    let lease = node.store.claim_journal(id, "another").await.unwrap();
    let odd = Append {
        session: id,
        term: lease.term,
        create: None,
        after: head,
        events: vec![NewEvent {
            at: node.clock.wall(),
            body: b"{}".to_vec(),
        }],
        summary: None,
        command: None,
        audit_entries: Vec::new(),
        texts: Vec::new(),
    };
    let added = node.store.append(&[odd], node.clock.wall()).await;
    assert_eq!(added.unwrap(), [Ok(())]);
    node.days_pass(1);
    assert_eq!(
        node.retention_task(|_, _| {})
            .run_pass()
            .await
            .unwrap()
            .joined,
        19
    );
    let facts = &node.store.journals(None, 10).await.unwrap()[0];
    assert_eq!((facts.compacted, facts.head), (head + 1, head + 1));
    let last = node.store.events_after(id, head, 10).await.unwrap();
    assert_eq!(last[0].body, b"{}");
    node.close().await;
}

#[tokio::test]
async fn the_search_texts_of_an_ended_session_are_removed_with_the_next_pass() {
    let node = Node::new().await;
    let (ended, other) = (node.draft(), node.draft());
    prompts(&ended, "/echo needle").await;
    prompts(&other, "/echo needle").await;
    let act = AuditContext::gateway(node.clock.wall()).did(Action::SessionEnded, "x");
    let owner = node.mia.user;
    assert!(
        node.store
            .end_session(ended.id(), owner, &act)
            .await
            .unwrap()
    );
    let has_texts = async || {
        let all = node.store.journals(None, 9).await.unwrap();
        all.iter().any(|journal| journal.has_old_texts)
    };
    assert!(has_texts().await);
    node.retention_task(|_, _| {}).run_pass().await.unwrap();
    assert!(!has_texts().await);
    let words = crate::domain::search_query::SearchQuery::parse("needle");
    let hits = node.sessions.search(owner, &words, None, 9).await.unwrap();
    assert!(hits.iter().map(|hit| hit.row.id).eq([other.id()]));
    node.close().await;
}

#[tokio::test]
async fn retention_finishes_copying_the_search_texts_of_a_branch() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo needle").await;
    // As if the gateway had ended right behind the branch.
    let new = store::NewBranch {
        session: node
            .sessions
            .new_session(node.mia.user, None, None)
            .unwrap(),
        from: session.id(),
        upto: session.journal().head(),
        closing: Vec::new(),
        summary: store::SessionSummary::default(),
        snapshot: b"{}".to_vec(),
        command: None,
    };
    node.store.branch(&new).await.unwrap();
    let words = crate::domain::search_query::SearchQuery::parse("needle");
    let found = async || {
        let hits = node.sessions.search(node.mia.user, &words, None, 9).await;
        hits.unwrap().len()
    };
    assert_eq!(found().await, 1);
    node.retention_task(|_, _| {}).run_pass().await.unwrap();
    assert_eq!(found().await, 2);
    node.close().await;
}
