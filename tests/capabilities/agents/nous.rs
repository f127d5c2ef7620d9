//! Nous: a core written from its specification, its lost sockets, its errors and its modes.

use serde_json::{Value, json};

use crate::actors::{Gateway, NousPeer, Settings, WsClient, nous_state};

/// A gateway with the core as its agent, and a member of a new session with it.
async fn joins_core(peer: &NousPeer, more: &str) -> (Gateway, WsClient) {
    let file = peer.configuration(more);
    let gateway = Settings::new().with_config_file(&file).start().await;
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let member = WsClient::connects(gateway.address(), &token, "?agent=core").await;
    (gateway, member)
}

/// A run that has said the beginning of its answer.
async fn streams(member: &mut WsClient, peer: &mut NousPeer) {
    member.prompts("hello").await;
    peer.greets("sess-1").await;
    assert_eq!(peer.starts_run("run-1").await, "hello");
    peer.starts_turn("run-1", "1", "Hel").await;
    assert_eq!(
        member.sees("TASK_OUTPUT_CHUNK").await["payload"]["content"],
        "Hel"
    );
}

/// A record of one turn of `run-1`.
fn messages(answer: Option<&str>) -> Value {
    let entry = |id: &str, role: &str, text: &str| {
        json!({
            "type": "message", "id": id, "role": role, "text": text, "run_id": "run-1",
            "turn_kind": "prompt", "created_at": "2026-11-16T00:00:00Z",
        })
    };
    let earlier = json!({ "id": "m0", "role": "assistant", "text": "before", "run_id": "run-0" });
    let mut messages = vec![earlier];
    if let Some(answer) = answer {
        messages.push(entry("m1", "user", "hello"));
        messages.push(entry("m2", "assistant", answer));
    }
    json!({ "session_id": "sess-1", "messages": messages })
}

/// What the conversation says now, without what was withdrawn.
async fn conversation(member: &mut WsClient) -> Vec<String> {
    member.sends("REQUEST_STATE", json!({})).await;
    let state = member.sees("FULL_STATE").await;
    let history = state["payload"]["conversationHistory"].as_array().unwrap();
    let texts = history
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

#[tokio::test]
async fn a_run_goes_on_when_its_event_socket_is_lost() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    peer.drops_subscriber();
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("run-1", "sess-1")).await;
    assert_eq!(peer.receives("get_messages").await["session_id"], "sess-1");
    peer.answers("messages", messages(None)).await;
    peer.streams("run-1", "1", "rld").await;
    assert_eq!(
        mia.sees("TASK_OUTPUT_CHUNK").await["payload"]["content"],
        "rld"
    );
    peer.ends_turn("run-1", "1").await;
    peer.ends_run("run-1").await;
    // What lies between is in the core's record.
    peer.receives("get_messages").await;
    peer.answers("messages", messages(Some("Hello world")))
        .await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert_eq!(conversation(&mut mia).await, ["hello", "Hello world"]);
}

#[tokio::test]
async fn what_a_run_said_before_its_end_was_missed_is_told() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    peer.drops_sockets();
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "sess-1")).await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(Some("Hello"))).await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert_eq!(mia.text(), "Hello", "nothing twice");
    // The core is used on.
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "sess-1")).await;
    mia.prompts("again").await;
    assert_eq!(peer.starts_run("run-2").await, "again");
    peer.starts_turn("run-2", "1", "Yes").await;
    peer.ends_turn("run-2", "1").await;
    peer.ends_run("run-2").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert_eq!(
        conversation(&mut mia).await,
        ["hello", "Hello", "again", "Yes"]
    );
}

#[tokio::test]
async fn a_run_that_a_restarted_core_does_not_know_is_lost_and_the_conversation_is_not() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    peer.drops_sockets();
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "")).await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(None)).await;
    let end = mia.sees_run_end().await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    peer.receives("get_state").await;
    peer.answers("state", nous_state("", "")).await;
    assert_eq!(
        peer.receives("switch_session").await["session_id"],
        "sess-1"
    );
    let opened = json!({ "session_id": "sess-1", "active": true });
    peer.answers("session", opened).await;
    mia.prompts("again").await;
    assert_eq!(peer.starts_run("run-1").await, "again");
    peer.ends_run("run-1").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
}

#[tokio::test]
async fn a_cancel_whose_answer_was_lost_is_sent_again() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    mia.sends("CANCEL_TASK", json!({})).await;
    peer.receives("abort").await;
    peer.drops_sockets();
    peer.accepts().await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("run-1", "sess-1")).await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(None)).await;
    peer.receives("abort").await;
    peer.accepts_command("run-1").await;
    peer.ends_run("run-1").await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(None)).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
}

#[tokio::test]
async fn a_core_that_hangs_is_found_by_a_ping() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "options = { ping_secs = 1 }").await;
    streams(&mut mia, &mut peer).await;
    peer.receives("ping").await;
    peer.answers("pong", json!({ "message": "pong" })).await;
    peer.receives("ping").await;
    let end = mia.sees_run_end().await;
    assert_eq!(end["error"]["code"], "CONNECTION_LOST", "{end}");
    assert!(
        end["error"]["message"].as_str().unwrap().contains("`ping`"),
        "{end}"
    );
}

#[tokio::test]
async fn the_cores_own_error_code_and_cause_are_shown() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    mia.prompts("hello").await;
    peer.greets("sess-1").await;
    peer.receives("prompt").await;
    let error = json!({ "code": "session_error", "message": "no disk", "cause": "ENOSPC" });
    peer.refuses(error).await;
    let end = mia.sees_run_end().await;
    let kept = json!({
        "agent": { "code": "session_error", "message": "no disk", "data": { "cause": "ENOSPC" } },
    });
    assert_eq!(end["error"]["details"], kept, "{end}");
    mia.prompts("again").await;
    peer.starts_run("run-2").await;
    let error = json!({ "run_id": "run-2", "code": "provider_error", "message": "no model" });
    peer.says("error", error).await;
    peer.ends_run("run-2").await;
    let end = mia.sees_run_end().await;
    assert_eq!(
        end["error"]["details"]["agent"]["code"], "provider_error",
        "{end}"
    );
    mia.sends("EXTENSION", json!({ "name": "undo", "payload": {} }))
        .await;
    peer.receives("extension_command").await;
    let error = json!({ "code": "command_rejected", "message": "extension_command_not_found" });
    peer.refuses(error).await;
    let refused = mia.sees("ERROR_MESSAGE").await;
    let message = refused["payload"]["message"].as_str().unwrap();
    assert!(message.contains("command_rejected"), "{message}");
}

#[tokio::test]
async fn queue_modes_that_the_core_has_otherwise_are_set_before_the_prompt() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    mia.prompts("hello").await;
    peer.accepts().await;
    peer.receives("get_state").await;
    let mut state = nous_state("", "");
    state["follow_up_mode"] = "all".into();
    peer.answers("state", state).await;
    peer.receives("new_session").await;
    let opened = json!({ "session_id": "sess-1", "active": true });
    peer.answers("session", opened).await;
    let mode = peer.receives("set_follow_up_mode").await["mode"].clone();
    assert_eq!(mode, "one-at-a-time");
    peer.accepts_mode(&mode).await;
    peer.starts_run("run-1").await;
    // A core that was changed meanwhile is set again.
    peer.drops_sockets();
    peer.accepts().await;
    peer.receives("get_state").await;
    let mut state = nous_state("run-1", "sess-1");
    state["steering_mode"] = "all".into();
    peer.answers("state", state).await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(None)).await;
    let mode = peer.receives("set_steering_mode").await["mode"].clone();
    assert_eq!(mode, "one-at-a-time");
    peer.accepts_mode(&mode).await;
    peer.ends_run("run-1").await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(Some("done"))).await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
}

/// Sends a follow-up, which waits. Returns its task id.
async fn follows_up(member: &mut WsClient, text: &str) -> String {
    member.sends("FOLLOW_UP", json!({ "text": text })).await;
    let ack = member.sees("ACK").await;
    assert_eq!(ack["payload"]["queued"], true, "{ack}");
    ack["payload"]["taskId"].as_str().unwrap().to_owned()
}

/// The task ids of the runs that have completed.
fn completed(member: &WsClient) -> Vec<&str> {
    let ended = |event: &&Value| event["payload"]["status"] == "completed";
    let ended = member.events.iter().filter(ended);
    ended
        .map(|event| event["payload"]["taskId"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_follow_up_is_taken_up_in_a_further_turn_of_the_same_run() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    let task = follows_up(&mut mia, "then").await;
    assert_eq!(peer.receives("follow_up").await, json!({ "text": "then" }));
    peer.accepts_command("run-1").await;
    mia.sends("WITHDRAW", json!({ "taskId": task })).await;
    let refused = mia.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR", "{refused}");
    mia.sends("REQUEST_STATE", json!({})).await;
    let state = mia.sees("FULL_STATE").await;
    assert_eq!(state["payload"]["queue"][0]["taskId"], task.as_str());
    peer.ends_turn("run-1", "1").await;
    peer.starts_turn("run-1", "2", "Two").await;
    peer.receives("get_state").await;
    peer.answers("state", nous_state("run-1", "sess-1")).await;
    let queue = mia.sees("QUEUE_UPDATE").await;
    assert_eq!(queue["payload"]["queue"], json!([]));
    peer.ends_turn("run-1", "2").await;
    peer.ends_run("run-1").await;
    mia.sees_run_end().await;
    mia.sees_run_end().await;
    assert_eq!(completed(&mia)[1], task);
    assert_eq!(
        conversation(&mut mia).await,
        ["hello", "Hel", "then", "Two"]
    );
    assert!(!peer.received[3..].contains(&"prompt".to_owned()));
}

#[tokio::test]
async fn a_follow_up_that_the_run_leaves_over_becomes_a_run_of_its_own() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    // One that comes too late for the core, and one that a cancel leaves over.
    let late = follows_up(&mut mia, "late").await;
    peer.receives("follow_up").await;
    let error = json!({ "code": "command_rejected", "message": "no_active_run" });
    peer.refuses(error).await;
    peer.ends_turn("run-1", "1").await;
    peer.ends_run("run-1").await;
    assert_eq!(peer.starts_run("run-2").await, "late");
    let left = follows_up(&mut mia, "left").await;
    peer.receives("follow_up").await;
    peer.accepts_command("run-2").await;
    mia.sends("CANCEL_TASK", json!({})).await;
    peer.receives("abort").await;
    peer.accepts_command("run-2").await;
    peer.ends_run("run-2").await;
    assert_eq!(peer.starts_run("run-3").await, "left");
    peer.ends_run("run-3").await;
    while mia.ends().len() < 3 {
        mia.sees_run_end().await;
    }
    assert_eq!(mia.ends(), ["completed", "cancelled", "completed"]);
    assert_eq!(completed(&mia)[1..], [left.as_str()]);
    assert_ne!(late, left);
}

#[tokio::test]
async fn a_follow_up_whose_answer_was_lost_is_not_sent_twice_if_the_core_counts_it() {
    let mut peer = NousPeer::listens();
    let (_gateway, mut mia) = joins_core(&peer, "").await;
    streams(&mut mia, &mut peer).await;
    let task = follows_up(&mut mia, "then").await;
    peer.receives("follow_up").await;
    peer.drops_sockets();
    peer.accepts().await;
    peer.receives("get_state").await;
    let mut state = nous_state("run-1", "sess-1");
    state["pending_counts"]["follow_up"] = 1.into();
    peer.answers("state", state).await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(None)).await;
    peer.ends_turn("run-1", "1").await;
    peer.ends_run("run-1").await;
    peer.receives("get_messages").await;
    peer.answers("messages", messages(Some("Hello"))).await;
    mia.sees_run_end().await;
    mia.sees_run_end().await;
    assert_eq!(completed(&mia)[1], task);
    mia.sees_nothing().await;
}
