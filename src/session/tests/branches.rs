//! Branches of journals that were tidied up, and reading those backwards.

use super::*;

async fn branch(house: &House, session: &Session, from: Option<u64>) -> Result<Session, Code> {
    let branched = house.sessions.branch(session, from, None).await;
    let branched = branched.map_err(|refused| refused.code)?;
    let joined = house.sessions.join(&house.mia, branched.session).await;
    let joined = joined.unwrap();
    assert_eq!(joined.journal().head(), branched.offset);
    assert_eq!(joined.journal().epoch(), branched.epoch);
    Ok(joined)
}

/// The state as its events alone tell it.
async fn folded(house: &House, session: &Session) -> SessionState {
    let mut state = SessionState::default();
    for event in house.stored(session).await {
        state.apply(&event, &state::Bounds::default());
    }
    state
}

#[tokio::test]
async fn a_branch_is_what_its_events_tell_wherever_it_was_cut() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 5").await;
    prompts(&session, "/plan").await;
    let all = house.stored(&session).await;
    for cut in 1..=all.len() {
        let from = cut as u64;
        let branch = branch(&house, &session, Some(from)).await.unwrap();
        let events = house.stored(&branch).await;
        assert_eq!(events[..cut], all[..cut], "{from}");
        let state = branch.state().await.unwrap();
        assert_eq!(state, folded(&house, &branch).await, "{from}");
        assert!(state.live_run().is_none(), "{from}");
    }
    assert_eq!(house.stored(&session).await, all);
    house.close().await;
}

#[tokio::test]
async fn a_cut_between_joined_pieces_is_made_before_them() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 300").await;
    house.days_pass(1);
    assert!(house.keeper(|_, _| {}).round().await.unwrap().joined > 0);
    let all = house.stored(&session).await;
    let is_joined = |event: &&Recorded| event.first() < event.offset;
    let joined = all.iter().find(is_joined).unwrap();
    let (first, last) = (joined.first(), joined.offset);
    for (from, kept) in [
        (first - 1, first - 1),
        (first, first - 1),
        (last - 1, first - 1),
    ] {
        let branch = branch(&house, &session, Some(from)).await.unwrap();
        let events = house.stored(&branch).await;
        let ended = events.last().unwrap();
        assert_eq!(ended.offset, kept + 1, "{from}");
        assert!(matches!(ended.event, Event::RunEnded { .. }), "{from}");
    }
    let whole = branch(&house, &session, Some(last)).await.unwrap();
    let events = house.stored(&whole).await;
    assert!(events.iter().any(|event| event == joined));
    house.close().await;
}

#[tokio::test]
async fn a_past_that_is_not_kept_cannot_be_branched_and_the_present_can() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 20").await;
    let (id, head) = (session.id(), session.journal().head());
    let state = session.state().await.unwrap();
    let snapshot = store::Snapshot {
        offset: head,
        body: serde_json::to_vec(&state).unwrap(),
    };
    house.store.save_snapshot(id, &snapshot).await.unwrap();
    assert!(house.store.drop_events(id, 10).await.unwrap() > 0);
    let early = branch(&house, &session, Some(15)).await;
    assert!(matches!(early, Err(Code::NotFound)));
    let beyond = branch(&house, &session, Some(head + 1)).await;
    assert!(matches!(beyond, Err(Code::ValidationError)));
    for from in [None, Some(head)] {
        let branch = branch(&house, &session, from).await.unwrap();
        assert_eq!(branch.state().await.unwrap(), state);
        assert_eq!(house.stored(&branch).await, house.stored(&session).await);
    }
    house.close().await;
}

#[tokio::test]
async fn nothing_can_be_branched_before_something_has_happened() {
    let house = House::new().await;
    let draft = branch(&house, &house.draft(), None).await;
    assert!(matches!(draft, Err(Code::ValidationError)));
    let empty = house.sessions.describe(house.mia.user, None, None).unwrap();
    house.store.create_session(&empty).await.unwrap();
    let empty = house.sessions.join(&house.mia, empty.id).await.unwrap();
    let refused = branch(&house, &empty, None).await;
    assert!(matches!(refused, Err(Code::ValidationError)));
    house.close().await;
}

#[tokio::test]
async fn paging_backwards_meets_paging_forwards_over_joined_pieces() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/stream 40").await;
    house.days_pass(1);
    house.keeper(|_, _| {}).round().await.unwrap();
    prompts(&session, "/stream 40").await;
    let all = house.stored(&session).await;
    let id = session.id();
    for limit in [1, 3, 1_000] {
        let (mut seen, mut before) = (Vec::new(), u64::MAX);
        loop {
            let page = house.sessions.events_before(id, before, limit).await;
            let page = page.unwrap().into_iter().map(|entry| entry.recorded);
            let mut page: Vec<Recorded> = page.collect();
            assert!(page.len() <= limit as usize);
            let Some(first) = page.first() else { break };
            before = first.first();
            page.extend(seen);
            seen = page;
        }
        assert_eq!(seen, all, "{limit}");
    }
    let is_joined = |event: &&Recorded| event.first() < event.offset;
    let joined = all.iter().find(is_joined).unwrap();
    let inside = house.sessions.events_before(id, joined.offset, 2).await;
    let inside = inside.unwrap();
    let last = inside.last().map(|entry| &entry.recorded);
    assert_eq!(last, Some(joined), "none of it is lost");
    let beginning = house.sessions.beginning_of(id, joined.offset, 2).await;
    let first = inside.first().map(|entry| entry.recorded.first() - 1);
    assert_eq!(beginning.ok(), first, "where the page begins");
    house.close().await;
}

#[tokio::test]
async fn a_branch_of_too_much_is_refused_and_one_of_less_is_made() {
    let journal = JournalConfig {
        branch_bytes: NonZeroU64::new(2_000).unwrap(),
        ..journal_config()
    };
    let house = House::with(&journal).await;
    let session = house.draft();
    prompts(&session, "/stream 40").await;
    let refused = house.sessions.branch(&session, None, None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, Code::ValidationError);
    let all = house.stored(&session).await;
    let bytes: usize = all
        .iter()
        .map(|event| journal::body(&event.event).len())
        .sum();
    for told in [&bytes.to_string(), "2000", "journal.branch_bytes"] {
        assert!(refused.message.contains(told), "{}", refused.message);
    }
    branch(&house, &session, Some(2)).await.unwrap();
    house.close().await;
}

#[tokio::test]
async fn whoever_makes_a_branch_makes_one_at_a_time() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo x").await;
    let turns = &house.sessions.parts.branching.turns;
    let under_way = turns.take(house.mia.user).await;
    let refused = branch(&house, &session, None).await.err();
    assert_eq!(refused, Some(Code::Busy));
    drop(under_way);
    branch(&house, &session, None).await.unwrap();
    let others = (
        turns.take(UserId::new()).await,
        turns.take(UserId::new()).await,
    );
    assert!(others.0.is_some() && others.1.is_some());
    let refused = branch(&house, &session, None).await.err();
    assert_eq!(refused, Some(Code::Busy), "two for all");
    drop(others);
    branch(&house, &session, None).await.unwrap();
    house.close().await;
}

#[tokio::test]
async fn whoever_searches_does_so_once_at_a_time() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo needle").await;
    let mia = house.mia.user;
    let words = crate::domain::search::Words::of("needle");
    let search = async || house.sessions.search(mia, &words, None, 9).await;
    let turns = &house.sessions.parts.searching;
    let under_way = turns.take(mia).await;
    assert!(matches!(search().await, Err(SearchError::Busy)));
    drop(under_way);
    assert_eq!(search().await.unwrap().len(), 1);
    let others = (
        turns.take(UserId::new()).await,
        turns.take(UserId::new()).await,
    );
    assert!(matches!(search().await, Err(SearchError::Busy)));
    drop(others);
    assert_eq!(search().await.unwrap().len(), 1);
    house.close().await;
}
