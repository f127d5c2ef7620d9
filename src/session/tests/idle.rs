//! Going to rest, and being woken.

use super::*;

async fn is_at_rest(house: &House, id: SessionId) {
    while house.sessions.live(id).is_some() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn a_session_without_anybody_goes_to_rest_and_is_woken_as_it_was() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo hello").await;
    let (id, state) = (session.id(), session.state().await.unwrap());
    drop(session);
    // Only now: storage works on threads that paused time does not wait for.
    tokio::time::pause();
    is_at_rest(&house, id).await;
    tokio::time::resume();
    let again = house.sessions.join(&house.mia, id).await.unwrap();
    assert_eq!(again.state().await.unwrap(), state);
    house.close().await;
}

#[tokio::test]
async fn a_session_that_somebody_is_in_stays_awake() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo hello").await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_hours(1)).await;
    tokio::time::resume();
    assert!(house.sessions.live(session.id()).is_some());
    prompts(&session, "/echo again").await;
    house.close().await;
}

#[tokio::test]
async fn a_draft_that_everybody_left_is_forgotten_at_the_second_look() {
    let house = House::new().await;
    let (left, held) = (house.draft().id(), house.draft());
    house.sessions.sweep();
    assert!(house.sessions.live(left).is_some(), "they may come back");
    house.sessions.sweep();
    assert!(house.sessions.live(left).is_none());
    assert!(house.sessions.live(held.id()).is_some());
    assert!(house.store.session(held.id()).await.unwrap().is_none());
    house.close().await;
}

#[tokio::test]
async fn a_router_whose_journal_was_claimed_elsewhere_writes_nothing_more() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo mine").await;
    let before = house.stored(&session).await;
    let claimed = house.store.claim_journal(session.id(), "another").await;
    claimed.unwrap();
    let command = Command::UpdateSettings(crate::domain::command::SettingsChange {
        max_tokens: Some(7),
        ..Default::default()
    });
    assert_eq!(
        session.command(request(command)).await.unwrap_err().code,
        Code::Busy
    );
    session.over().cancelled().await;
    assert!(!session.has_ended(), "it is to be joined anew");
    assert_eq!(house.stored(&session).await, before);
    house.close().await;
}
