//! Agents that end while requests are sent to them.

use super::*;
use crate::domain::command::{AgentRequest, Topic};

#[tokio::test]
async fn a_request_to_an_agent_that_has_just_died_leaves_no_run_without_an_end() {
    let node = Node::new().await;
    let session = node.draft();
    prompts(&session, "/echo hello").await;
    let request = || AgentRequest::Query {
        topic: Topic::Models,
        params: serde_json::json!({}),
    };
    for _ in 0..20 {
        let requests = async {
            // Keeps the mailbox filled: the router handles it before the agent's events.
            for _ in 0..5 {
                let sent =
                    (0..8).map(|_| session.request_agent(request(), StartPolicy::IfNeeded, None));
                drop(futures_util::future::join_all(sent).await);
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), prompts(&session, "/crash"));
        let (ended, ()) = tokio::join!(ended, requests);
        ended.expect("the run has an end");
    }
    node.close().await;
}
