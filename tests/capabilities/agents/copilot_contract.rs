//! Copilot's contract: each of its rows, with a Copilot CLI that was written from it.

use serde_json::{Value, json};

use crate::actors::{CopilotPeer, Gateway, Settings, WsClient};

/// A gateway with the Copilot CLI as its agent, and a member of a new session with it.
async fn joins(peer: &CopilotPeer) -> (Gateway, WsClient) {
    let settings = Settings::new().with_config_file(&peer.configuration());
    let gateway = settings.start().await;
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let member = WsClient::connects(gateway.address(), &token, "?agent=designer").await;
    (gateway, member)
}

/// One run whose request tells the peer what to do. Returns its end.
async fn plays(member: &mut WsClient, play: &Value) -> Value {
    member.prompts(&play.to_string()).await;
    member.sees_run_end().await
}

/// One `generate` with a specification that tells the peer what to do.
async fn generates(member: &mut WsClient, play: &Value) -> Value {
    let spec = json!({ "openapi": "3.0.0", "info": { "title": "Pets" }, "x-play": play });
    let file =
        json!({ "name": "pets.json", "type": "application/json", "content": spec.to_string() });
    let prompt = json!({ "text": "make it", "mode": "act", "attachments": [file] });
    member.sends("SUBMIT_PROMPT", prompt).await;
    member.sees_run_end().await
}

#[tokio::test]
async fn the_specification_survives_a_restart_of_the_process() {
    let peer = CopilotPeer::new();
    let (_gateway, mut mia) = joins(&peer).await;
    let made = json!({ "result": { "code": "<A/>", "componentCount": 1, "description": "One" } });
    assert_eq!(generates(&mut mia, &made).await["status"], "completed");
    let first = peer.last("generate");
    assert_eq!(first["params"]["format"], "react");
    let stop = json!({ "until": peer.file(), "result": { "code": "<B/>", "description": "Two" } });
    assert_eq!(plays(&mut mia, &stop).await["status"], "completed");
    // It does not read, so a prompt hangs; a cancel ends the process.
    mia.prompts(r#"{"result":{}}"#).await;
    mia.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
    std::fs::write(peer.file(), "").unwrap();
    let changed = json!({ "result": { "code": "<C/>", "description": "Three" } });
    assert_eq!(plays(&mut mia, &changed).await["status"], "completed");
    let last = peer.last("customize");
    assert_eq!(last["params"]["spec"], first["params"]["spec"]);
    assert_eq!(last["params"]["currentCode"], "<B/>");
    assert_eq!(last["params"]["history"][0]["content"], "make it");
    let pids: Vec<u64> = peer.has_read().iter().map(|(pid, _)| *pid).collect();
    assert_ne!(pids.first(), pids.last(), "another process");
}

#[tokio::test]
async fn the_agents_own_error_is_kept() {
    let peer = CopilotPeer::new();
    let (_gateway, mut mia) = joins(&peer).await;
    let error = json!({ "code": -32003, "message": "Too long", "data": { "max": 8000 } });
    let end = plays(&mut mia, &json!({ "error": error })).await;
    assert_eq!(end["status"], "error");
    assert_eq!(end["error"]["code"], "VALIDATION_ERROR");
    assert_eq!(end["error"]["details"]["agent"], error);
    // After the last attempt, too.
    let error = json!({ "code": -32000, "message": "No luck", "data": ["a"] });
    let end = generates(&mut mia, &json!({ "error": error })).await;
    assert_eq!(end["error"]["code"], "TASK_FAILED");
    assert_eq!(end["error"]["details"]["agent"], error);
    let lines = peer.has_read();
    let attempts = lines
        .iter()
        .filter(|(_, line)| line["method"] == "generate");
    assert_eq!(attempts.count(), 2, "one retry");
}

#[tokio::test]
async fn a_stream_that_is_done_is_the_code_and_one_that_is_not_is_not() {
    let peer = CopilotPeer::new();
    let (_gateway, mut mia) = joins(&peer).await;
    let description = json!({ "description": "Made" });
    let whole = json!({
        "chunks": [["<A", false, 0], ["/>", true, 1], ["late", false, 2]], "result": description,
    });
    generates(&mut mia, &whole).await;
    assert_eq!(mia.text(), "````jsx interface\n<A/>\n````\n\nMade");
    let cut = json!({ "chunks": [["<B", false, 0]], "result": description });
    plays(&mut mia, &cut).await;
    assert_eq!(peer.last("customize")["params"]["currentCode"], "<A/>");
    plays(&mut mia, &json!({ "result": description })).await;
    let code = peer.last("customize")["params"]["currentCode"].clone();
    assert_eq!(code, "<A/>", "what was cut off is no code");
}

#[tokio::test]
async fn a_full_pipe_pauses_a_request_and_ends_no_process() {
    let peer = CopilotPeer::new();
    let (_gateway, mut mia) = joins(&peer).await;
    let stop = json!({ "until": peer.file() });
    assert_eq!(plays(&mut mia, &stop).await["status"], "completed");
    // More than a pipe holds.
    let padding = "x".repeat(90_000);
    mia.prompts(&json!({ "padding": padding }).to_string())
        .await;
    for status in ["starting", "running"] {
        let update = mia.sees("TASK_STATUS_UPDATE").await;
        assert_eq!(update["payload"]["status"], status);
    }
    mia.sees_nothing().await;
    let chats = |peer: &CopilotPeer| {
        let lines = peer.has_read().into_iter();
        let chats = lines.filter(|(_, line)| line["method"] == "chat");
        chats.map(|(pid, _)| pid).collect::<Vec<_>>()
    };
    assert_eq!(chats(&peer).len(), 1, "it has not read the second");
    std::fs::write(peer.file(), "").unwrap();
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    let readers = chats(&peer);
    assert_eq!(readers.len(), 2, "once");
    assert_eq!(readers[0], readers[1], "the same process");
}
