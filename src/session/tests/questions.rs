//! Expiry of questions, which the session alone decides.

use super::state::RunStatus;
use super::*;
use crate::domain::question::{Answer, AnswerValue, OpenQuestion, Resolution};

/// Moves the timers, and nothing else: storage works on threads that paused time does not wait for.
async fn seconds_pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// Has the demo agent ask for a text, and returns the question.
async fn asks(session: &Session, prompt: &str) -> OpenQuestion {
    submits(session, prompt).await;
    open(session).await
}

async fn open(session: &Session) -> OpenQuestion {
    let state = until(session, |state| !state.questions.open.is_empty()).await;
    state.questions.open[0].clone()
}

async fn answers(session: &Session, question: &OpenQuestion) -> Reply {
    let answer = Command::Answer {
        question: question.id,
        answer: Answer::new(AnswerValue::Text(Some("Ada".into()))),
    };
    session.submit(request(answer)).await.unwrap()
}

async fn resolution(session: &Session, question: &OpenQuestion) -> Resolution {
    let state = until(session, |state| state.live_run().is_none()).await;
    let ended = state.questions.ended(question.id).unwrap();
    ended.resolution.clone()
}

fn last_message(state: &SessionState) -> &str {
    &state.messages.back().unwrap().text
}

#[tokio::test]
async fn a_question_expires_after_its_agents_own_timeout_and_the_agent_is_told() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    seconds_pass(29).await;
    assert_eq!(open(&session).await.id, question.id, "still open");
    seconds_pass(2).await;
    assert_eq!(resolution(&session, &question).await, Resolution::Expired);
    let run = session.state().await.unwrap().current.unwrap();
    assert_eq!(run.status, RunStatus::Completed, "the agent went on");
    node.close().await;
}

#[tokio::test]
async fn the_operators_timeout_bounds_that_of_the_agent() {
    let mut config = sessions_config();
    config.question_timeout_minutes = 1;
    let node = Node::configured(&config, &journal_config()).await;
    let session = node.draft();
    let question = asks(&session, "/prompt 3600").await;
    seconds_pass(61).await;
    assert_eq!(resolution(&session, &question).await, Resolution::Expired);
    node.close().await;
}

#[tokio::test]
async fn a_question_without_any_timeout_stays_open() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt").await;
    assert_eq!(question.expires_at, None);
    seconds_pass(100_000).await;
    assert_eq!(open(&session).await.id, question.id);
    node.close().await;
}

#[tokio::test]
async fn an_answer_right_before_the_deadline_counts() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    seconds_pass(29).await;
    let effect = answers(&session, &question).await;
    assert!(matches!(effect, Reply::Resolved { accepted: true, .. }));
    seconds_pass(2).await;
    let resolution = resolution(&session, &question).await;
    assert!(matches!(resolution, Resolution::Answered(_)));
    node.close().await;
}

#[tokio::test]
async fn an_answer_after_the_deadline_is_told_that_the_question_expired() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    seconds_pass(31).await;
    assert_eq!(resolution(&session, &question).await, Resolution::Expired);
    let Reply::Resolved { ended, accepted } = answers(&session, &question).await else {
        panic!("the question is known");
    };
    assert_eq!((ended.resolution, accepted), (Resolution::Expired, false));
    node.close().await;
}

#[tokio::test]
async fn a_deadline_survives_a_restart() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    let id = session.id();
    drop(session);
    node.clock.advance(Duration::from_secs(10));
    let node = node.restart().await;
    let session = node.sessions.join(&node.mia, id).await.unwrap();
    assert_eq!(open(&session).await, question);
    seconds_pass(19).await;
    assert_eq!(open(&session).await.id, question.id, "still open");
    seconds_pass(2).await;
    assert_eq!(resolution(&session, &question).await, Resolution::Expired);
    node.close().await;
}

#[tokio::test]
async fn a_question_is_answered_after_a_restart_and_its_run_goes_on() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    let id = session.id();
    drop(session);
    let node = node.restart().await;
    let session = node.sessions.join(&node.mia, id).await.unwrap();
    let effect = answers(&session, &question).await;
    assert!(matches!(effect, Reply::Resolved { accepted: true, .. }));
    let state = until(&session, |state| state.live_run().is_none()).await;
    assert!(last_message(&state).contains("Ada"));
    node.close().await;
}

#[tokio::test]
async fn a_deadline_that_passed_during_a_restart_expires_the_question_at_once() {
    let node = Node::new().await;
    let session = node.draft();
    let question = asks(&session, "/prompt 30").await;
    let id = session.id();
    drop(session);
    node.clock.advance(Duration::from_mins(1));
    let node = node.restart().await;
    let session = node.sessions.join(&node.mia, id).await.unwrap();
    assert_eq!(resolution(&session, &question).await, Resolution::Expired);
    node.close().await;
}
