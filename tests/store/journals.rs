//! Journals: appends, fencing, pages, snapshots, recorded commands.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::{Epoch, SessionId, UserId};
use switchboard::domain::idempotency::IdempotencyKey;
use switchboard::store::{
    self, Append, AppendError, ClaimError, CommandRecord, NewEvent, NewSession, PAGE_BYTES,
    SessionChange, SessionSummary, Snapshot, StoredEvent, SweepCutoffs,
};

use crate::{World, at, cutoffs, entry};

crate::on_both_databases!(
    events_are_read_back_in_order,
    only_the_newest_owner_can_append,
    an_append_at_the_wrong_offset_adds_nothing,
    one_refused_append_does_not_affect_the_others,
    a_command_is_recorded_with_its_first_effect,
    an_ended_session_refuses_appends,
    an_older_snapshot_does_not_replace_a_newer_one,
    sessions_are_listed_by_their_last_change,
    committed_events_are_visible_to_the_next_process,
    small_and_large_commits_keep_their_order,
    events_of_a_removed_session_are_gone_with_it,
    the_offset_before_the_last_events_is_found,
    a_page_of_long_events_is_short_and_none_is_left_out,
);

pub(crate) fn new_session(owner: UserId) -> NewSession {
    NewSession {
        id: SessionId::new(),
        owner,
        agent: "demo".into(),
        title: None,
        epoch: Epoch::new(),
        created_at: at(0),
    }
}

pub(crate) fn append(session: SessionId, term: i64, after: u64, bodies: &[&str]) -> Append {
    let event = |body: &&str| NewEvent {
        at: at(1),
        body: body.as_bytes().to_vec(),
    };
    Append {
        session,
        term,
        create: None,
        after,
        events: bodies.iter().map(event).collect(),
        summary: Some(SessionSummary::default()),
        command: None,
        audit_entries: Vec::new(),
        texts: Vec::new(),
    }
}

pub(crate) async fn owned(world: &World) -> (UserId, NewSession) {
    let mia = world.user("mia", Role::Member).await;
    let new = new_session(mia);
    world.store.create_session(&new).await.unwrap();
    (mia, new)
}

pub(crate) async fn bodies(world: &World, session: SessionId, after: u64) -> Vec<(u64, String)> {
    let events = world.store.events_after(session, after, 100).await.unwrap();
    let read = |event: switchboard::store::StoredEvent| {
        (event.offset, String::from_utf8(event.body).unwrap())
    };
    events.into_iter().map(read).collect()
}

async fn events_are_read_back_in_order(world: World) {
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "node").await.unwrap();
    assert_eq!((lease.head, lease.epoch), (0, new.epoch));
    let outcome = world
        .store
        .append(&[append(new.id, lease.term, 0, &["a", "b"])], at(1))
        .await;
    assert_eq!(outcome.unwrap(), [Ok(())]);
    world
        .store
        .append(&[append(new.id, lease.term, 2, &["c"])], at(2))
        .await
        .unwrap();
    let all = bodies(&world, new.id, 0).await;
    assert_eq!(all, [(1, "a".into()), (2, "b".into()), (3, "c".into())]);
    assert_eq!(bodies(&world, new.id, 2).await, [(3, "c".into())]);
    assert_eq!(world.store.session(new.id).await.unwrap().unwrap().head, 3);
}

async fn only_the_newest_owner_can_append(world: World) {
    let (_, new) = owned(&world).await;
    let old = world.store.claim_journal(new.id, "one").await.unwrap();
    let newer = world
        .second()
        .await
        .claim_journal(new.id, "two")
        .await
        .unwrap();
    assert!(newer.term > old.term);
    let zombie = world
        .store
        .append(&[append(new.id, old.term, 0, &["x"])], at(1))
        .await
        .unwrap();
    assert_eq!(zombie, [Err(AppendError::Fenced)]);
    assert!(bodies(&world, new.id, 0).await.is_empty());
    let unknown = world.store.claim_journal(SessionId::new(), "one").await;
    assert!(matches!(unknown, Err(ClaimError::NotFound)));
}

async fn an_append_at_the_wrong_offset_adds_nothing(world: World) {
    let (_, new) = owned(&world).await;
    let term = world
        .store
        .claim_journal(new.id, "node")
        .await
        .unwrap()
        .term;
    world
        .store
        .append(&[append(new.id, term, 0, &["a"])], at(1))
        .await
        .unwrap();
    for after in [0, 2] {
        let outcome = world
            .store
            .append(&[append(new.id, term, after, &["x"])], at(2))
            .await;
        assert_eq!(outcome.unwrap(), [Err(AppendError::Fenced)]);
    }
    assert_eq!(bodies(&world, new.id, 0).await, [(1, "a".into())]);
}

async fn one_refused_append_does_not_affect_the_others(world: World) {
    let (mia, new) = owned(&world).await;
    let term = world
        .store
        .claim_journal(new.id, "node")
        .await
        .unwrap()
        .term;
    let draft = new_session(mia);
    let batch = [
        append(new.id, term - 1, 0, &["zombie"]),
        append(new.id, term, 0, &["mine"]),
        Append {
            create: Some(draft.clone()),
            ..append(draft.id, 0, 0, &["first"])
        },
    ];
    let outcomes = world.store.append(&batch, at(1)).await.unwrap();
    assert_eq!(outcomes, [Err(AppendError::Fenced), Ok(()), Ok(())]);
    assert_eq!(bodies(&world, new.id, 0).await, [(1, "mine".into())]);
    assert_eq!(bodies(&world, draft.id, 0).await, [(1, "first".into())]);
}

async fn a_command_is_recorded_with_its_first_effect(world: World) {
    let (_, new) = owned(&world).await;
    let term = world
        .store
        .claim_journal(new.id, "node")
        .await
        .unwrap()
        .term;
    let record = CommandRecord {
        idempotency_key: IdempotencyKey {
            key: "key".into(),
            digest: [7; 32],
        },
        outcome: b"done".to_vec(),
    };
    let with = |after| Append {
        command: Some(record.clone()),
        ..append(new.id, term, after, &["a"])
    };
    world.store.append(&[with(9)], at(1)).await.unwrap();
    assert_eq!(
        world.store.command(new.id, "key").await.unwrap(),
        None,
        "refused as a whole"
    );
    world.store.append(&[with(0)], at(1)).await.unwrap();
    assert_eq!(
        world.store.command(new.id, "key").await.unwrap(),
        Some(record.clone())
    );
    let others = SweepCutoffs {
        commands: at(0),
        ..cutoffs(2)
    };
    world.store.sweep(others).await.unwrap();
    assert_eq!(
        world.store.command(new.id, "key").await.unwrap(),
        Some(record),
        "commands have their own retention"
    );
    let commands = SweepCutoffs {
        commands: at(1),
        ..cutoffs(0)
    };
    world.store.sweep(commands).await.unwrap();
    assert_eq!(world.store.command(new.id, "key").await.unwrap(), None);
}

async fn an_ended_session_refuses_appends(world: World) {
    let (mia, new) = owned(&world).await;
    let term = world
        .store
        .claim_journal(new.id, "node")
        .await
        .unwrap()
        .term;
    let end = entry(Action::SessionEnded, 5);
    let bob = world.user("bob", Role::Member).await;
    assert!(!world.store.end_session(new.id, bob, &end).await.unwrap());
    assert!(world.store.end_session(new.id, mia, &end).await.unwrap());
    assert!(!world.store.end_session(new.id, mia, &end).await.unwrap());
    let late = world
        .store
        .append(&[append(new.id, term, 0, &["x"])], at(6))
        .await
        .unwrap();
    assert_eq!(late, [Err(AppendError::Fenced)]);
    assert!(world.store.claim_journal(new.id, "node").await.is_err());
    assert!(
        world
            .store
            .sessions(mia, None, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn an_older_snapshot_does_not_replace_a_newer_one(world: World) {
    let (_, new) = owned(&world).await;
    let snapshot = |offset| Snapshot {
        offset,
        body: vec![u8::try_from(offset).unwrap()],
    };
    for offset in [5, 3, 4] {
        world
            .store
            .save_snapshot(new.id, &snapshot(offset))
            .await
            .unwrap();
    }
    assert_eq!(
        world.store.snapshot(new.id).await.unwrap(),
        Some(snapshot(5))
    );
    world
        .store
        .save_snapshot(new.id, &snapshot(6))
        .await
        .unwrap();
    assert_eq!(
        world.store.snapshot(new.id).await.unwrap(),
        Some(snapshot(6))
    );
}

async fn sessions_are_listed_by_their_last_change(world: World) {
    let (mia, first) = owned(&world).await;
    let second = new_session(mia);
    world.store.create_session(&second).await.unwrap();
    let term = world
        .store
        .claim_journal(first.id, "node")
        .await
        .unwrap()
        .term;
    world
        .store
        .append(&[append(first.id, term, 0, &["a"])], at(9))
        .await
        .unwrap();
    let page = world.store.sessions(mia, None, 1).await.unwrap();
    assert_eq!(page[0].id, first.id);
    let next = world
        .store
        .sessions(mia, Some((page[0].updated_at, page[0].id)), 9)
        .await
        .unwrap();
    assert_eq!(
        next.iter().map(|row| row.id).collect::<Vec<_>>(),
        [second.id]
    );
    let title = SessionChange::Title("Named".into());
    assert!(
        world
            .store
            .change_session(first.id, mia, &title, at(10))
            .await
            .unwrap()
    );
    assert!(
        !world
            .store
            .change_session(first.id, UserId::new(), &title, at(10))
            .await
            .unwrap()
    );
    assert_eq!(
        world
            .store
            .session(first.id)
            .await
            .unwrap()
            .unwrap()
            .title
            .as_deref(),
        Some("Named")
    );
}

async fn committed_events_are_visible_to_the_next_process(world: World) {
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    for (after, body) in [(0, "a"), (1, "b"), (2, "c")] {
        let append = append(new.id, lease.term, after, &[body]);
        let added = world.store.append(&[append], at(1)).await.unwrap();
        assert_eq!(added, [Ok(())]);
    }
    // As after a crash: the first process did not flush.
    let second = world.second().await;
    let events = second.events_after(new.id, 0, 10).await.unwrap();
    let offsets: Vec<u64> = events.iter().map(|event| event.offset).collect();
    assert_eq!(offsets, [1, 2, 3]);
    let claimed = second.claim_journal(new.id, "there").await.unwrap();
    assert_eq!(claimed.head, 3);
    let late = append(new.id, lease.term, 3, &["late"]);
    let refused = world.store.append(&[late], at(1)).await.unwrap();
    assert_eq!(refused, [Err(AppendError::Fenced)]);
}

async fn small_and_large_commits_keep_their_order(world: World) {
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let mut head = 0;
    for count in [1_usize, 3, 600, 2, 1_500, 1] {
        let bodies = vec!["x"; count];
        let append = append(new.id, lease.term, head, &bodies);
        let added = world.store.append(&[append], at(1)).await.unwrap();
        assert_eq!(added, [Ok(())]);
        head += count as u64;
        for (after, limit) in [(0, 10_000), (head - 1, 10), (head / 2, 7)] {
            let events = world
                .store
                .events_after(new.id, after, limit)
                .await
                .unwrap();
            let expected = (after + 1..=head).take(limit as usize);
            assert!(events.iter().map(|event| event.offset).eq(expected));
        }
    }
    let row = world.store.session(new.id).await.unwrap().unwrap();
    assert_eq!(row.head, head);
}

async fn events_of_a_removed_session_are_gone_with_it(world: World) {
    let (mia, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let first = append(new.id, lease.term, 0, &["a"]);
    world.store.append(&[first], at(1)).await.unwrap();
    let entry = entry(Action::UserRemoved, 2);
    world.store.remove_user(mia, &entry).await.unwrap();
    world.store.sweep(cutoffs(3)).await.unwrap();
    assert!(bodies(&world, new.id, 0).await.is_empty());
    let late = append(new.id, lease.term, 1, &["b"]);
    let refused = world.store.append(&[late], at(4)).await.unwrap();
    assert_eq!(refused, [Err(AppendError::Fenced)]);
}

async fn the_offset_before_the_last_events_is_found(world: World) {
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let mut head = 0;
    // Some events are in the journal, some in the commit log, some in both between two calls.
    for count in [1_usize, 3, 600, 2, 5] {
        let append = append(new.id, lease.term, head, &vec!["x"; count]);
        world.store.append(&[append], at(1)).await.unwrap();
        head += count as u64;
        for (before, limit) in [
            (head + 1, 4),
            (head + 1, 10_000),
            (head, 1),
            (head / 2, 7),
            (1, 9),
        ] {
            let found = world.store.offset_before(new.id, before, limit).await;
            let expected = before.saturating_sub(1).saturating_sub(limit.into());
            assert_eq!(found.unwrap(), expected, "{limit} before {before}");
        }
    }
    let nobodys = world.store.offset_before(SessionId::new(), head, 9).await;
    assert_eq!(nobodys.unwrap(), 0);
}

async fn a_page_of_long_events_is_short_and_none_is_left_out(world: World) {
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let (long, longer) = ("x".repeat(300_000), "y".repeat(2 * PAGE_BYTES));
    let mut bodies = vec![long.as_str(); 20];
    bodies.insert(7, &longer);
    bodies.resize(400, "z");
    let mut head = 0;
    // In the journal, in the commit log, and in both.
    for part in [&bodies[..5], &bodies[5..6], &bodies[6..9], &bodies[9..]] {
        let append = append(new.id, lease.term, head, part);
        world.store.append(&[append], at(1)).await.unwrap();
        head += part.len() as u64;
        forwards(&world, new.id, head).await;
    }
}

/// A page is full: its last event is the one that crosses the limit.
fn is_bounded(page: &[StoredEvent], session: SessionId) {
    assert!(page.iter().all(|event| event.session == session));
    let bytes: usize = page.iter().map(|event| event.body.len()).sum();
    let longest = page.iter().map(|event| event.body.len()).max();
    assert!(bytes < PAGE_BYTES + longest.unwrap(), "{bytes}");
}

async fn forwards(world: &World, session: SessionId, head: u64) {
    let mut after = 0;
    while after < head {
        let page = world.store.events_after(session, after, 1_000).await;
        let page = page.unwrap();
        is_bounded(&page, session);
        assert!(
            page.iter()
                .map(|event| event.offset)
                .eq(after + 1..=after + page.len() as u64)
        );
        after = page.last().expect("at least one").offset;
    }
    assert_eq!(after, head);
}

/// Two writers with the same term, as after a bug: no event may be lost silently. Only Postgres has two.
#[tokio::test]
async fn of_two_appends_at_the_same_offset_one_is_refused() {
    let world = World::postgres().await;
    let (_, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let other = store::open(&world.config).await.unwrap();
    for head in 0..30_u64 {
        let (mine, its) = (
            [append(new.id, lease.term, head, &["mine"])],
            [append(new.id, lease.term, head, &["its"])],
        );
        let (one, two) = tokio::join!(world.store.append(&mine, at(1)), other.append(&its, at(1)));
        let succeeded = |outcome: &Result<Vec<Result<(), AppendError>>, _>| {
            matches!(outcome.as_deref(), Ok([Ok(())]))
        };
        let winners = [succeeded(&one), succeeded(&two)];
        assert_eq!(
            winners.iter().filter(|won| **won).count(),
            1,
            "{head}: {one:?} {two:?}"
        );
        let stored = bodies(&world, new.id, head).await;
        let winner = if winners[0] { "mine" } else { "its" };
        assert_eq!(stored, [(head + 1, winner.to_owned())]);
    }
}
