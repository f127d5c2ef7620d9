//! Branches of a nous core's conversation, which keep its memory.

use std::time::Duration;

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, NousPeer, Settings, WsClient, nous_state};

fn entry(id: &str, role: &str, text: &str) -> Value {
    json!({ "type": "message", "id": id, "role": role, "text": text, "run_id": "run-0" })
}

async fn joins(browser: &HttpClient, query: &str) -> WsClient {
    let token = browser.token.as_ref().unwrap();
    WsClient::connects(browser.address(), token, query).await
}

/// One run with this answer.
async fn completes(member: &mut WsClient, peer: &mut NousPeer, run: &str, answer: &str) -> u64 {
    peer.starts_run(run).await;
    peer.starts_turn(run, "1", answer).await;
    peer.ends_turn(run, "1").await;
    peer.ends_run(run).await;
    assert_eq!(member.sees_run_end().await["status"], "completed");
    member.events.last().unwrap()["offset"].as_u64().unwrap()
}

/// Waits until no session uses the core: it serves one at a time.
pub(super) async fn core_is_free(browser: &HttpClient) {
    loop {
        let agents = browser.gets("/api/admin/agents").await.is(200).json();
        let agents = agents["agents"].as_array().unwrap();
        if agents.iter().all(|agent| agent["live"] == 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A session of two runs, branched after the first one, whose agent was then stopped.
async fn branched(peer: &mut NousPeer) -> (Gateway, WsClient) {
    let file = peer.configuration("idle_secs = 1");
    let gateway = Settings::new().with_config_file(&file).start().await;
    let browser = gateway.logged_in("root").await;
    let mut mia = joins(&browser, "?agent=core").await;
    mia.prompts("one").await;
    peer.greets("sess-1").await;
    let cut = completes(&mut mia, peer, "run-1", "First").await;
    mia.prompts("two").await;
    completes(&mut mia, peer, "run-2", "Second").await;
    mia.sends("BRANCH_SESSION", json!({ "fromOffset": cut }))
        .await;
    let branch = mia.sees("ACK").await["payload"]["sessionId"].clone();
    peer.sees_close().await;
    core_is_free(&browser).await;
    let query = format!("?session={}", branch.as_str().unwrap());
    let branch = joins(&browser, &query).await;
    (gateway, branch)
}

fn notices(member: &WsClient) -> Vec<&Value> {
    let told = member.events.iter();
    told.filter(|event| event["type"] == "AGENT_NOTICE")
        .collect()
}

#[tokio::test]
async fn a_branch_goes_on_from_the_message_at_which_it_was_cut() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut branch) = branched(&mut peer).await;
    branch.prompts("on").await;
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "sess-1")).await;
    assert_eq!(
        peer.receives("branch_session").await,
        json!({ "session_id": "sess-1" })
    );
    let session = json!({ "session_id": "sess-2", "parent_id": "sess-1", "active": true });
    peer.answers("session", session).await;
    let entries = [
        entry("m1", "user", "one"),
        entry("m2", "assistant", "First"),
        entry("m3", "user", "two"),
        entry("m4", "assistant", "Second"),
    ];
    assert_eq!(
        peer.receives("get_messages").await,
        json!({ "session_id": "sess-2" })
    );
    let all = json!({ "session_id": "sess-2", "messages": entries });
    peer.answers("messages", all).await;
    let leaf = json!({ "session_id": "sess-2", "leaf_id": "m2" });
    assert_eq!(peer.receives("set_leaf").await, leaf);
    peer.answers("leaf", leaf.clone()).await;
    assert_eq!(peer.receives("get_messages").await, leaf);
    let path = json!({ "session_id": "sess-2", "messages": entries[..2], "leaf_id": "m2" });
    peer.answers("messages", path).await;
    completes(&mut branch, &mut peer, "run-3", "Third").await;
    assert!(notices(&branch).is_empty(), "{:?}", notices(&branch));
    // From now on it has a conversation of its own.
    peer.sees_close().await;
    branch.prompts("further").await;
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "sess-1")).await;
    assert_eq!(
        peer.receives("switch_session").await,
        json!({ "session_id": "sess-2" })
    );
    let session = json!({ "session_id": "sess-2", "active": true });
    peer.answers("session", session).await;
    completes(&mut branch, &mut peer, "run-4", "Fourth").await;
}

#[tokio::test]
async fn a_branch_of_a_conversation_that_the_core_has_lost_says_that_it_starts_fresh() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut branch) = branched(&mut peer).await;
    branch.prompts("on").await;
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "")).await;
    peer.receives("branch_session").await;
    let error = json!({ "code": "session_not_found", "message": "no such file" });
    peer.refuses(error).await;
    peer.receives("new_session").await;
    let session = json!({ "session_id": "sess-2", "active": true });
    peer.answers("session", session).await;
    completes(&mut branch, &mut peer, "run-3", "Third").await;
    let text = notices(&branch)[0]["payload"]["text"].as_str().unwrap();
    assert!(text.contains("starts fresh"), "{text}");
}
