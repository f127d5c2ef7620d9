//! Codelia: every part of its protocol's specification, with a runtime written from it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::actors::{CodeliaPeer, Gateway, Settings, WsClient};

fn able() -> Value {
    json!({
        "supports_run_cancel": true, "supports_ui_requests": true,
        "supports_mcp_list": true, "supports_skills_list": true,
    })
}

async fn joins_runtime(peer: &CodeliaPeer) -> (Gateway, WsClient) {
    let file = peer.configuration();
    let gateway = Settings::new().with_config_file(&file).start().await;
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let member = WsClient::connects(gateway.address(), &token, "?agent=runtime").await;
    (gateway, member)
}

/// A gateway, a member and a runtime that has answered one prompt.
async fn after_a_run() -> (Gateway, WsClient, CodeliaPeer) {
    let mut peer = CodeliaPeer::listens();
    let (gateway, mut mia) = joins_runtime(&peer).await;
    mia.prompts("hello").await;
    peer.greets(able()).await;
    peer.starts_run("r1").await;
    peer.reports("running").await;
    peer.says(json!({ "type": "final", "content": "Hi." }), json!({}))
        .await;
    peer.reports("completed").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    (gateway, mia, peer)
}

async fn questions_of(member: &mut WsClient) -> Value {
    member.sends("REQUEST_STATE", json!({})).await;
    member.sees("FULL_STATE").await["payload"]["questions"].clone()
}

#[tokio::test]
async fn the_capabilities_of_a_user_interface_are_declared() {
    let mut peer = CodeliaPeer::listens();
    let (_gateway, mut mia) = joins_runtime(&peer).await;
    mia.prompts("hello").await;
    let params = peer.greets(able()).await;
    for name in ["confirm", "prompt", "pick", "markdown", "images"] {
        let supports = &params["ui_capabilities"][format!("supports_{name}")];
        assert_eq!(*supports, true, "{name}: {params}");
    }
}

#[tokio::test]
async fn a_run_of_a_runtime_without_run_status_ends_at_its_final_word() {
    let mut peer = CodeliaPeer::listens();
    let (_gateway, mut mia) = joins_runtime(&peer).await;
    mia.prompts("hello").await;
    peer.greets(able()).await;
    peer.starts_run("r1").await;
    let begun = Instant::now();
    peer.says(json!({ "type": "final", "content": "Hi." }), json!({}))
        .await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert!(begun.elapsed() < Duration::from_secs(10), "at once");
    assert_eq!(mia.text(), "Hi.");
}

#[tokio::test]
async fn a_question_beside_runs_is_asked_of_the_session_and_outlives_runs() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    let asked = json!({
        "title": "Provider?", "items": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }],
    });
    peer.asks("u1", "ui.pick.request", asked).await;
    let question = mia.sees("QUESTION").await["payload"].clone();
    assert_eq!(question.get("taskId"), None, "{question}");
    assert_eq!(question["kind"], "pick");
    mia.prompts("again").await;
    peer.starts_run("r2").await;
    let inside = json!({ "title": "Update?", "message": "There is a new version." });
    peer.asks("u2", "ui.confirm.request", inside).await;
    let second = mia.sees("QUESTION").await["payload"].clone();
    assert_eq!(second.get("taskId"), None, "{second}");
    peer.reports("completed").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert_eq!(questions_of(&mut mia).await.as_array().unwrap().len(), 2);
    let answer = json!({ "questionId": question["questionId"], "ids": ["b"] });
    mia.sends("ANSWER", answer).await;
    assert_eq!(peer.receives_result("u1").await, json!({ "ids": ["b"] }));
    let resolved = mia.sees("QUESTION_RESOLVED").await["payload"].clone();
    assert_eq!(resolved.get("taskId"), None, "{resolved}");
    let answer = json!({ "questionId": second["questionId"], "ok": true });
    mia.sends("ANSWER", answer).await;
    assert_eq!(peer.receives_result("u2").await, json!({ "ok": true }));
}

#[tokio::test]
async fn a_question_of_the_session_ends_with_its_runtime() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    let asked = json!({ "title": "Name?", "message": "Who are you?" });
    peer.asks("u1", "ui.prompt.request", asked).await;
    let question = mia.sees("QUESTION").await["payload"].clone();
    peer.leaves();
    let resolved = mia.sees("QUESTION_RESOLVED").await["payload"].clone();
    assert_eq!(resolved["questionId"], question["questionId"]);
    assert_eq!(resolved["outcome"], "cancelled");
    assert_eq!(questions_of(&mut mia).await, json!([]));
}

#[tokio::test]
async fn a_question_of_the_session_does_not_outlive_the_gateway() {
    let (mut gateway, mut mia, mut peer) = after_a_run().await;
    let asked = json!({ "title": "Name?", "message": "Who are you?" });
    peer.asks("u1", "ui.prompt.request", asked).await;
    mia.sees("QUESTION").await;
    let place = format!("?session={}", mia.session());
    gateway.restart();
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let mut mia = WsClient::connects(gateway.address(), &token, &place).await;
    mia.prompts("again").await;
    peer.greets(able()).await;
    peer.starts_run("r2").await;
    peer.says(json!({ "type": "final", "content": "Yes." }), json!({}))
        .await;
    mia.sees_run_end().await;
    assert_eq!(questions_of(&mut mia).await, json!([]));
}

#[tokio::test]
async fn todos_are_the_plan() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    let todos = json!([
        { "content": "Read", "status": "completed" }, { "content": "Write", "status": "pending" },
    ]);
    peer.notifies("todos.update", json!({ "todos": todos }))
        .await;
    let plan = mia.sees("PLAN_UPDATE").await["payload"]["steps"].clone();
    let expected = json!([
        { "title": "Read", "status": "completed" }, { "title": "Write", "status": "pending" },
    ]);
    assert_eq!(plan, expected);
}

#[tokio::test]
async fn lists_carry_their_parameters_also_during_a_run() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    mia.prompts("again").await;
    peer.starts_run("r2").await;
    let servers = json!({ "servers": [{ "id": "x", "transport": "stdio", "enabled": true, "state": "ready" }] });
    let query = json!({ "kind": "mcp", "params": { "scope": "loaded" } });
    mia.sends("QUERY", query).await;
    let (id, params) = peer.receives_request("mcp.list").await;
    assert_eq!(params, json!({ "scope": "loaded" }));
    peer.answers(&id, servers.clone()).await;
    assert_eq!(mia.sees("QUERY_RESULT").await["payload"]["result"], servers);
    let query = json!({ "kind": "skills", "params": { "force_reload": true } });
    mia.sends("QUERY", query).await;
    let (id, params) = peer.receives_request("skills.list").await;
    assert_eq!(params, json!({ "force_reload": true }));
    let skills = json!({ "skills": [], "errors": [], "truncated": false });
    peer.answers(&id, skills.clone()).await;
    assert_eq!(mia.sees("QUERY_RESULT").await["payload"]["result"], skills);
}

#[tokio::test]
async fn lists_that_the_runtime_does_not_have_are_unsupported() {
    let mut peer = CodeliaPeer::listens();
    let (_gateway, mut mia) = joins_runtime(&peer).await;
    mia.sends("QUERY", json!({ "kind": "mcp" })).await;
    let unable = json!({ "supports_mcp_list": false, "supports_skills_list": false });
    peer.greets(unable).await;
    let error = mia.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(error["code"], "UNSUPPORTED", "{error}");
    mia.sends("QUERY", json!({ "kind": "skills" })).await;
    let error = mia.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(error["code"], "UNSUPPORTED", "{error}");
}

#[tokio::test]
async fn the_model_that_the_runtime_chose_is_a_setting() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    let chosen = json!({ "settings": { "model": "anthropic/large" } });
    mia.sends("UPDATE_SETTINGS", chosen).await;
    let (id, params) = peer.receives_request("model.set").await;
    assert_eq!(params["name"], "large");
    assert_eq!(params["provider"], "anthropic");
    let result = json!({ "provider": "anthropic", "name": "large-2" });
    peer.answers(&id, result).await;
    let reported = json!({ "settings": { "model": "large-2" } });
    loop {
        let update = mia.sees("STATE_UPDATE").await;
        if update["payload"]["updates"] == reported {
            break;
        }
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_with_its_status_and_without_a_final_word() {
    let (_gateway, mut mia, mut peer) = after_a_run().await;
    mia.prompts("again").await;
    let params = peer.starts_run("r2").await;
    assert_eq!(params["session_id"], "s1", "the same conversation");
    peer.says(json!({ "type": "text", "content": "Well" }), json!({}))
        .await;
    mia.sees("TASK_OUTPUT_CHUNK").await;
    mia.sends("CANCEL_TASK", json!({})).await;
    let (id, params) = peer.receives_request("run.cancel").await;
    assert_eq!(params["run_id"], "r2");
    peer.answers(&id, json!({ "ok": true, "status": "running" }))
        .await;
    peer.reports("cancelled").await;
    assert_eq!(mia.sees_run_end().await["status"], "cancelled");
}

#[tokio::test]
async fn meta_and_unknown_fields_of_events_reach_clients_and_the_journal() {
    let (gateway, mut mia, mut peer) = after_a_run().await;
    mia.prompts("again").await;
    peer.starts_run("r2").await;
    let text = json!({ "type": "text", "content": "Well", "tone": "dry" });
    peer.says(text, json!({ "meta": { "score": 1 }, "trace": "t1" }))
        .await;
    let chunk = mia.sees("TASK_OUTPUT_CHUNK").await;
    assert_eq!(chunk["payload"]["content"], "Well");
    let expected = json!({ "score": 1, "tone": "dry", "trace": "t1" });
    assert_eq!(chunk["meta"], expected, "{chunk}");
    let call = json!({ "type": "tool_call", "tool": "shell", "args": {}, "tool_call_id": "c1" });
    peer.says(call, json!({ "meta": { "risk": 2 } })).await;
    let tool = mia.sees("TOOL_UPDATE").await;
    assert_eq!(tool["meta"], json!({ "risk": 2 }), "{tool}");
    peer.reports("completed").await;
    let place = mia.position_after(chunk["offset"].as_u64().unwrap() - 1);
    mia.sees_run_end().await;
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let mut again = WsClient::connects(gateway.address(), &token, &place).await;
    assert_eq!(again.sees("TASK_OUTPUT_CHUNK").await["meta"], expected);
}
