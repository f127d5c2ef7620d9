//! Agents that end while something is asked of them.

use super::*;
use crate::domain::command::{Inquiry, Topic};

#[tokio::test]
async fn a_question_to_an_agent_that_has_just_died_leaves_no_run_without_an_end() {
    let house = House::new().await;
    let session = house.draft();
    prompts(&session, "/echo hello").await;
    let inquiry = || Inquiry::Query {
        topic: Topic::Models,
        params: serde_json::json!({}),
    };
    for _ in 0..20 {
        let asking = async {
            // Always one more than the router has looked at: it hears those who ask before its agent.
            for _ in 0..5 {
                let asked = (0..8).map(|_| session.inquire(inquiry(), Wake::IfNeeded, None));
                drop(futures_util::future::join_all(asked).await);
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), prompts(&session, "/crash"));
        let (ended, ()) = tokio::join!(ended, asking);
        ended.expect("the run has an end");
    }
    house.close().await;
}
