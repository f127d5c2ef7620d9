//! Branches: copies of a session's past.

use switchboard::domain::audit::Action;
use switchboard::domain::id::{AttachmentId, SessionId, UserId};
use switchboard::domain::idempotency::IdempotencyKey;
use switchboard::domain::search_query::SearchQuery;
use switchboard::store::{
    Append, AttachmentRow, BranchError, CommandRecord, NewBranch, NewEvent, NewSession, Quotas,
    SearchText, SessionSummary, Snapshot, StoredEvent,
};

use crate::journals::{append, bodies, new_session, owned};
use crate::{World, at, cutoffs, entry};

crate::on_both_databases!(
    a_branch_has_the_shared_past_and_its_own_events,
    later_events_stay_in_their_own_session,
    a_branch_is_found_by_its_past,
    a_branch_point_that_was_compacted_is_refused,
    a_command_makes_one_branch,
    an_unknown_or_foreign_session_cannot_be_branched,
    a_snapshot_replaces_a_past_that_was_dropped,
    a_branch_has_the_files_of_its_past,
    the_size_of_a_branch_is_known_in_advance,
    search_texts_of_a_branch_are_copied_in_batches,
);

fn branch(owner: UserId, from: &NewSession, upto: u64) -> NewBranch {
    NewBranch {
        session: NewSession {
            title: Some("Old (branch)".into()),
            created_at: at(50),
            ..new_session(owner)
        },
        from: from.id,
        upto,
        closing: vec![NewEvent {
            at: at(50),
            body: b"end".to_vec(),
        }],
        summary: SessionSummary {
            messages: 7,
            last_prompt: Some("why?".into()),
            title: None,
            running: false,
            waiting: 0,
            queued: 0,
            added_bytes: 0,
        },
        snapshot: b"state".to_vec(),
        command: None,
    }
}

/// A session with three events, the last one still in the commit log.
async fn session_with_events(world: &World) -> (UserId, NewSession, i64) {
    let (mia, new) = owned(world).await;
    let term = world
        .store
        .claim_journal(new.id, "here")
        .await
        .unwrap()
        .term;
    for (after, body) in [(0, "a"), (1, "b"), (2, "c")] {
        let text = SearchText {
            offset: after + 1,
            text: format!("word {body}{body}"),
        };
        let append = Append {
            texts: vec![text],
            ..append(new.id, term, after, &[body])
        };
        world.store.append(&[append], at(1)).await.unwrap();
        if after == 1 {
            world.store.sweep(cutoffs(1)).await.unwrap();
        }
    }
    (mia, new, term)
}

fn pairs(all: &[(u64, &str)]) -> Vec<(u64, String)> {
    all.iter()
        .map(|(offset, body)| (*offset, (*body).to_owned()))
        .collect()
}

async fn a_branch_has_the_shared_past_and_its_own_events(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let new = branch(mia, &old, 3);
    world.store.branch(&new).await.unwrap();
    let id = new.session.id;
    let expected = pairs(&[(1, "a"), (2, "b"), (3, "c"), (4, "end")]);
    assert_eq!(bodies(&world, id, 0).await, expected);
    let row = world.store.session(id).await.unwrap().unwrap();
    assert_eq!((row.owner, row.agent.as_str()), (mia, "demo"));
    assert_eq!((row.head, row.messages, row.running), (4, 7, false));
    assert_eq!(row.last_prompt.as_deref(), Some("why?"));
    assert_eq!(row.title.as_deref(), Some("Old (branch)"));
    assert_eq!(row.branched_from, Some(old.id));
    assert_eq!((row.epoch, row.created_at), (new.session.epoch, at(50)));
    assert_ne!(row.epoch, old.epoch);
    let snapshot = world.store.snapshot(id).await.unwrap().unwrap();
    assert_eq!((snapshot.offset, snapshot.body), (4, b"state".to_vec()));
    let lease = world.store.claim_journal(id, "here").await.unwrap();
    assert_eq!((lease.head, lease.epoch), (4, new.session.epoch));
}

async fn later_events_stay_in_their_own_session(world: World) {
    let (mia, old, term) = session_with_events(&world).await;
    let new = branch(mia, &old, 2);
    world.store.branch(&new).await.unwrap();
    let id = new.session.id;
    let lease = world.store.claim_journal(id, "here").await.unwrap();
    let batch = [
        append(old.id, term, 3, &["later here"]),
        append(id, lease.term, 3, &["later there"]),
    ];
    let added = world.store.append(&batch, at(60)).await.unwrap();
    assert_eq!(added, [Ok(()), Ok(())]);
    let here = pairs(&[(1, "a"), (2, "b"), (3, "c"), (4, "later here")]);
    let there = pairs(&[(1, "a"), (2, "b"), (3, "end"), (4, "later there")]);
    assert_eq!(bodies(&world, old.id, 0).await, here);
    assert_eq!(bodies(&world, id, 0).await, there);
    // Ending one does not affect the other.
    let end = entry(Action::SessionEnded, 70);
    assert!(world.store.end_session(old.id, mia, &end).await.unwrap());
    let gone = entry(Action::SessionExpired, 80);
    let removed = world.store.remove_session(old.id, at(90), &gone).await;
    assert!(removed.unwrap());
    assert_eq!(bodies(&world, id, 0).await, there);
}

async fn a_branch_is_found_by_its_past(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let new = branch(mia, &old, 2);
    world.store.branch(&new).await.unwrap();
    copy_all_texts(&world, new.session.id).await;
    for (question, expected) in [
        ("bb", vec![new.session.id, old.id]),
        ("cc", vec![old.id]),
        ("branch", vec![new.session.id]),
    ] {
        let hits = world
            .store
            .search(mia, &SearchQuery::parse(question), None, 9)
            .await;
        let found: Vec<_> = hits.unwrap().iter().map(|hit| hit.row.id).collect();
        assert_eq!(found, expected, "{question}");
    }
}

async fn a_branch_point_that_was_compacted_is_refused(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let event = |offset, body: &str| StoredEvent {
        session: old.id,
        offset,
        at: at(1),
        body: body.into(),
    };
    let joined = [event(1, "a"), event(3, "bc")];
    let compacted = world.store.compact_journal(old.id, 0, 3, Some(&joined));
    compacted.await.unwrap();
    let new = branch(mia, &old, 2);
    let refused = world.store.branch(&new).await;
    assert!(matches!(refused, Err(BranchError::Changed)), "{refused:?}");
    assert!(world.store.session(new.session.id).await.unwrap().is_none());
    world.store.branch(&branch(mia, &old, 1)).await.unwrap();
    let whole = branch(mia, &old, 3);
    world.store.branch(&whole).await.unwrap();
    let expected = pairs(&[(1, "a"), (3, "bc"), (4, "end")]);
    assert_eq!(bodies(&world, whole.session.id, 0).await, expected);
    let facts = world.store.journals(None, 10).await.unwrap();
    let of_branch = facts.iter().find(|facts| facts.session == whole.session.id);
    assert_eq!(of_branch.unwrap().compacted, 3);
}

async fn a_command_makes_one_branch(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let record = CommandRecord {
        idempotency_key: IdempotencyKey {
            key: "once".into(),
            digest: [1; 32],
        },
        outcome: b"made".to_vec(),
    };
    let asked = || NewBranch {
        command: Some(record.clone()),
        ..branch(mia, &old, 3)
    };
    world.store.branch(&asked()).await.unwrap();
    let again = asked();
    let refused = world.store.branch(&again).await;
    assert!(matches!(refused, Err(BranchError::Repeated)), "{refused:?}");
    assert!(
        world
            .store
            .session(again.session.id)
            .await
            .unwrap()
            .is_none()
    );
    let found = world.store.command(old.id, "once").await.unwrap();
    assert_eq!(found, Some(record));
}

async fn an_unknown_or_foreign_session_cannot_be_branched(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let unknown = branch(mia, &new_session(mia), 3);
    let foreign = branch(UserId::new(), &old, 3);
    let end = entry(Action::SessionEnded, 5);
    for new in [unknown, foreign] {
        let refused = world.store.branch(&new).await;
        assert!(matches!(refused, Err(BranchError::NotFound)), "{refused:?}");
    }
    assert!(world.store.end_session(old.id, mia, &end).await.unwrap());
    let refused = world.store.branch(&branch(mia, &old, 3)).await;
    assert!(matches!(refused, Err(BranchError::NotFound)), "{refused:?}");
    assert!(world.store.sessions(mia, None, 9).await.unwrap().is_empty());
}

async fn a_snapshot_replaces_a_past_that_was_dropped(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let snapshot = Snapshot {
        offset: 3,
        body: b"state".to_vec(),
    };
    world.store.save_snapshot(old.id, &snapshot).await.unwrap();
    assert_eq!(world.store.drop_events(old.id, 3).await.unwrap(), 3);
    let new = branch(mia, &old, 3);
    world.store.branch(&new).await.unwrap();
    assert_eq!(
        bodies(&world, new.session.id, 0).await,
        pairs(&[(4, "end")])
    );
    let row = world.store.session(new.session.id).await.unwrap().unwrap();
    assert_eq!(row.head, 4);
}

async fn a_branch_has_the_files_of_its_past(world: World) {
    let (mia, old, _) = session_with_events(&world).await;
    let room = Quotas {
        session_files: 9,
        session_bytes: 9,
        user_bytes: 9,
    };
    let file = AttachmentRow {
        id: AttachmentId::new(),
        session: old.id,
        owner: mia,
        hash: [7; 32],
        name: "a file".into(),
        media_type: "text/plain".into(),
        size_bytes: 3,
        created_at: at(1),
    };
    world.store.add_attachment(&file, room).await.unwrap();
    let new = branch(mia, &old, 3);
    world.store.branch(&new).await.unwrap();
    let same = AttachmentRow {
        session: new.session.id,
        ..file
    };
    // Each keeps its own.
    let end = entry(Action::SessionEnded, 60);
    assert!(world.store.end_session(old.id, mia, &end).await.unwrap());
    let found = world.store.attachments(new.session.id).await.unwrap();
    assert_eq!(found, [same]);
    assert_eq!(world.store.referenced_hashes(7).await.unwrap(), [[7; 32]]);
}

async fn the_size_of_a_branch_is_known_in_advance(world: World) {
    let (_, old, _) = session_with_events(&world).await;
    for (upto, bytes) in [(0, 0), (1, 1), (2, 2), (3, 3), (99, 3)] {
        let known = world.store.journal_bytes(old.id, upto).await.unwrap();
        assert_eq!(known, bytes, "{upto}");
    }
}

/// Copies all search texts of a branch; returns the number of batches.
async fn copy_all_texts(world: &World, branch: SessionId) -> usize {
    let mut parts = 0;
    while world.store.copy_texts(branch).await.unwrap() {
        parts += 1;
    }
    parts
}

async fn search_texts_of_a_branch_are_copied_in_batches(world: World) {
    let (mia, old, term) = session_with_events(&world).await;
    let long = "long ".repeat(24_000);
    let text = |offset| SearchText {
        offset,
        text: format!("{long} n{offset}n"),
    };
    for after in [3, 8, 13, 18] {
        let said = Append {
            texts: (after + 1..=after + 5).map(text).collect(),
            ..append(old.id, term, after, &["x"; 5])
        };
        world.store.append(&[said], at(1)).await.unwrap();
    }
    let new = branch(mia, &old, 22);
    world.store.branch(&new).await.unwrap();
    let lacks_texts = async || {
        let all = world.store.journals(None, 9).await.unwrap();
        let facts = |session| all.iter().find(|facts| facts.session == session).unwrap();
        assert!(!facts(old.id).lacks_texts);
        facts(new.session.id).lacks_texts
    };
    let is_found = async |question: &str| {
        let hits = world
            .store
            .search(mia, &SearchQuery::parse(question), None, 9)
            .await;
        hits.unwrap().iter().any(|hit| hit.row.id == new.session.id)
    };
    assert!(world.store.copy_texts(new.session.id).await.unwrap());
    assert!(is_found("aa").await && !is_found("n22n").await);
    assert!(lacks_texts().await, "copying is not finished");
    let parts = copy_all_texts(&world, new.session.id).await;
    assert!((1..5).contains(&parts), "{parts}");
    assert!(!lacks_texts().await);
    for (question, found) in [("bb", true), ("n4n", true), ("n22n", true), ("n23n", false)] {
        assert_eq!(is_found(question).await, found, "{question}");
    }
    // Each exactly once.
    let end = entry(Action::SessionEnded, 60);
    let branch = new.session.id;
    assert!(world.store.end_session(branch, mia, &end).await.unwrap());
    let mut texts = 0;
    loop {
        let gone = world.store.remove_text_batch(branch).await.unwrap();
        if gone == 0 {
            break;
        }
        texts += gone;
    }
    assert_eq!(texts, 22 + 1, "and its title");
}
