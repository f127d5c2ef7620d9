//! Idle sessions leave memory and are activated again.

use super::*;

async fn has_left_memory(node: &Node, id: SessionId) {
    while node.sessions.live(id).is_some() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn an_idle_session_leaves_memory_and_comes_back_as_it_was() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo hello").await;
    let (id, state) = (session.id(), session.state().await.unwrap());
    drop(session);
    // Only now: storage works on threads that paused time does not wait for.
    tokio::time::pause();
    has_left_memory(&node, id).await;
    tokio::time::resume();
    let again = node.sessions.join(&node.mia, id).await.unwrap();
    assert_eq!(again.state().await.unwrap(), state);
    node.close().await;
}

#[tokio::test]
async fn a_session_with_a_member_stays_live() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo hello").await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_hours(1)).await;
    tokio::time::resume();
    assert!(node.sessions.live(session.id()).is_some());
    prompts(&session, "/echo again").await;
    node.close().await;
}

#[tokio::test]
async fn an_abandoned_draft_is_removed_at_the_second_sweep() {
    let node = Node::new().await;
    let (left, held) = (node.draft().id(), node.draft());
    node.sessions.sweep();
    assert!(
        node.sessions.live(left).is_some(),
        "its member may come back"
    );
    node.sessions.sweep();
    assert!(node.sessions.live(left).is_none());
    assert!(node.sessions.live(held.id()).is_some());
    assert!(node.store.session(held.id()).await.unwrap().is_none());
    node.close().await;
}

#[tokio::test]
async fn a_router_whose_journal_was_claimed_by_another_node_writes_nothing_more() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo mine").await;
    let before = node.stored(&session).await;
    let claimed = node.store.claim_journal(session.id(), "another").await;
    claimed.unwrap();
    let command = Command::UpdateSettings(crate::domain::command::SettingsChange {
        max_tokens: Some(7),
        ..Default::default()
    });
    assert_eq!(
        session.submit(request(command)).await.unwrap_err().code,
        ErrorCode::Busy
    );
    session.closed().cancelled().await;
    assert!(!session.has_ended(), "it can be joined again");
    assert_eq!(node.stored(&session).await, before);
    node.close().await;
}
