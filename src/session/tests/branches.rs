//! Branches of compacted journals, and reading those backwards.

use super::*;

async fn branch(node: &Node, session: &Session, from: Option<u64>) -> Result<Session, ErrorCode> {
    let branched = node.sessions.branch(session, from, None).await;
    let branched = branched.map_err(|refused| refused.code)?;
    let joined = node.sessions.join(&node.mia, branched.session).await;
    let joined = joined.unwrap();
    assert_eq!(joined.journal().head(), branched.offset);
    assert_eq!(joined.journal().epoch(), branched.epoch);
    Ok(joined)
}

async fn folded(node: &Node, session: &Session) -> SessionState {
    let mut state = SessionState::default();
    for event in node.stored(session).await {
        state.apply(&event, &state::Bounds::default());
    }
    state
}

#[tokio::test]
async fn a_branch_equals_the_fold_of_its_events_wherever_it_was_cut() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 5").await;
    prompts(&session, "/plan").await;
    let all = node.stored(&session).await;
    for cut in 1..=all.len() {
        let from = cut as u64;
        let branch = branch(&node, &session, Some(from)).await.unwrap();
        let events = node.stored(&branch).await;
        assert_eq!(events[..cut], all[..cut], "{from}");
        let state = branch.state().await.unwrap();
        assert_eq!(state, folded(&node, &branch).await, "{from}");
        assert!(state.live_run().is_none(), "{from}");
    }
    assert_eq!(node.stored(&session).await, all);
    node.close().await;
}

#[tokio::test]
async fn a_cut_between_joined_chunks_is_made_before_them() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 300").await;
    node.days_pass(1);
    assert!(
        node.retention_task(|_, _| {})
            .run_pass()
            .await
            .unwrap()
            .joined
            > 0
    );
    let all = node.stored(&session).await;
    let is_joined = |event: &&Recorded| event.first() < event.offset;
    let joined = all.iter().find(is_joined).unwrap();
    let (first, last) = (joined.first(), joined.offset);
    for (from, kept) in [
        (first - 1, first - 1),
        (first, first - 1),
        (last - 1, first - 1),
    ] {
        let branch = branch(&node, &session, Some(from)).await.unwrap();
        let events = node.stored(&branch).await;
        let ended = events.last().unwrap();
        assert_eq!(ended.offset, kept + 1, "{from}");
        assert!(matches!(ended.event, Event::RunEnded { .. }), "{from}");
    }
    let whole = branch(&node, &session, Some(last)).await.unwrap();
    let events = node.stored(&whole).await;
    assert!(events.iter().any(|event| event == joined));
    node.close().await;
}

#[tokio::test]
async fn removed_events_cannot_be_branched_and_the_head_can() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 20").await;
    let (id, head) = (session.id(), session.journal().head());
    let state = session.state().await.unwrap();
    let snapshot = store::Snapshot {
        offset: head,
        body: serde_json::to_vec(&state).unwrap(),
    };
    node.store.save_snapshot(id, &snapshot).await.unwrap();
    assert!(node.store.drop_events(id, 10).await.unwrap() > 0);
    let early = branch(&node, &session, Some(15)).await;
    assert!(matches!(early, Err(ErrorCode::NotFound)));
    let beyond = branch(&node, &session, Some(head + 1)).await;
    assert!(matches!(beyond, Err(ErrorCode::ValidationError)));
    for from in [None, Some(head)] {
        let branch = branch(&node, &session, from).await.unwrap();
        assert_eq!(branch.state().await.unwrap(), state);
        assert_eq!(node.stored(&branch).await, node.stored(&session).await);
    }
    node.close().await;
}

#[tokio::test]
async fn a_session_without_events_cannot_be_branched() {
    let node = Node::new().await;
    let draft = branch(&node, &node.draft(), None).await;
    assert!(matches!(draft, Err(ErrorCode::ValidationError)));
    let empty = node
        .sessions
        .new_session(node.mia.user, None, None)
        .unwrap();
    node.store.create_session(&empty).await.unwrap();
    let empty = node.sessions.join(&node.mia, empty.id).await.unwrap();
    let refused = branch(&node, &empty, None).await;
    assert!(matches!(refused, Err(ErrorCode::ValidationError)));
    node.close().await;
}

#[tokio::test]
async fn paging_backwards_meets_paging_forwards_over_joined_chunks() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/stream 40").await;
    node.days_pass(1);
    node.retention_task(|_, _| {}).run_pass().await.unwrap();
    prompts(&session, "/stream 40").await;
    let all = node.stored(&session).await;
    let id = session.id();
    for limit in [1, 3, 1_000] {
        let (mut seen, mut before) = (Vec::new(), u64::MAX);
        loop {
            let mut page = page_before(&node, id, before, limit).await;
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
    for limit in [1, 2] {
        let inside = page_before(&node, id, joined.offset, limit).await;
        assert_eq!(inside.last(), Some(joined), "none of it is lost");
        assert_eq!(inside.len(), limit as usize);
    }
    node.close().await;
}

/// The last events before an offset, read forwards from where they begin.
async fn page_before(node: &Node, id: SessionId, before: u64, limit: u32) -> Vec<Recorded> {
    let (sessions, mia) = (&node.sessions, &node.mia);
    let after = sessions.offset_before_last(mia, id, before, limit).await;
    let page = sessions.events(mia, id, after.unwrap(), limit).await;
    let page = page.unwrap().into_iter().map(|entry| entry.recorded);
    page.filter(|recorded| recorded.first() < before).collect()
}

#[tokio::test]
async fn a_branch_over_the_size_limit_is_refused_and_a_smaller_one_is_made() {
    let journal = JournalConfig {
        branch_bytes: NonZeroU64::new(2_000).unwrap(),
        ..journal_config()
    };
    let node = Node::with(&journal).await;
    let session = node.draft();
    prompts(&session, "/stream 40").await;
    let refused = node.sessions.branch(&session, None, None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ValidationError);
    let all = node.stored(&session).await;
    let bytes: usize = all
        .iter()
        .map(|event| journal::body(&event.event).len())
        .sum();
    for told in [&bytes.to_string(), "2000", "journal.branch_bytes"] {
        assert!(refused.message.contains(told), "{}", refused.message);
    }
    branch(&node, &session, Some(2)).await.unwrap();
    node.close().await;
}

#[tokio::test]
async fn a_user_makes_one_branch_at_a_time() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo x").await;
    let permits = &node.sessions.parts.branch_limits.permits;
    let under_way = permits.try_acquire(node.mia.user);
    let refused = branch(&node, &session, None).await.err();
    assert_eq!(refused, Some(ErrorCode::Busy));
    drop(under_way);
    branch(&node, &session, None).await.unwrap();
    let others = (
        permits.try_acquire(UserId::new()),
        permits.try_acquire(UserId::new()),
    );
    assert!(others.0.is_ok() && others.1.is_ok());
    let refused = branch(&node, &session, None).await.err();
    assert_eq!(refused, Some(ErrorCode::Busy), "two for all");
    drop(others);
    branch(&node, &session, None).await.unwrap();
    node.close().await;
}

#[tokio::test]
async fn a_user_runs_one_search_at_a_time() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo needle").await;
    let mia = node.mia.user;
    let words = crate::domain::search_query::SearchQuery::parse("needle");
    let search = async || node.sessions.search(mia, &words, None, 9).await;
    let permits = &node.sessions.parts.search_permits;
    let under_way = permits.try_acquire(mia);
    assert!(matches!(search().await, Err(SearchError::Busy)));
    drop(under_way);
    assert_eq!(search().await.unwrap().len(), 1);
    let others = (
        permits.try_acquire(UserId::new()),
        permits.try_acquire(UserId::new()),
    );
    assert!(matches!(search().await, Err(SearchError::Busy)));
    drop(others);
    assert_eq!(search().await.unwrap().len(), 1);
    node.close().await;
}
