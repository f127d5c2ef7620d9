//! Reported state: clients are told what the runtime said, and nothing else.

use serde_json::{Value, json};

use crate::actors::{Gateway, RemoteUiPeer, Settings, WsClient, remoteui_state};

/// A gateway with the extension as its agent, and a member of a new session with it.
async fn joins_extension(peer: &RemoteUiPeer, more: &str) -> (Gateway, WsClient) {
    let file = peer.configuration(more);
    let gateway = Settings::new().with_config_file(&file).start().await;
    let member = joins(&gateway, "?agent=extension").await;
    (gateway, member)
}

async fn joins(gateway: &Gateway, query: &str) -> WsClient {
    let browser = gateway.logged_in("root").await;
    WsClient::connects(gateway.address(), &browser.token.unwrap(), query).await
}

async fn settings_of(member: &mut WsClient) -> Value {
    member.sends("REQUEST_STATE", json!({})).await;
    member.sees("FULL_STATE").await["payload"]["settings"].clone()
}

/// One run, answered at once.
async fn runs(member: &mut WsClient, peer: &mut RemoteUiPeer) -> Value {
    let request = peer.starts_task("t1").await;
    peer.completes_task("t1", "done").await;
    assert_eq!(member.sees_run_end().await["status"], "completed");
    request
}

#[tokio::test]
async fn settings_that_nobody_reported_are_absent() {
    let mut peer = RemoteUiPeer::listens();
    let (_gateway, mut mia) = joins_extension(&peer, "").await;
    assert_eq!(
        settings_of(&mut mia).await,
        json!({ "autoApprove": false }),
        "before the agent runs"
    );
    mia.prompts("hello").await;
    let reported = json!({
        "autoApprove": true, "model": "sonnet", "temperature": 0.25, "style": "terse",
    });
    peer.greets(remoteui_state(&reported)).await;
    runs(&mut mia, &mut peer).await;
    let expected = json!({
        "autoApprove": false, "model": "sonnet", "temperature": 0.25, "style": "terse",
    });
    assert_eq!(settings_of(&mut mia).await, expected);
    mia.sends("REQUEST_STATE", json!({ "includeSettings": false }))
        .await;
    let state = mia.sees("FULL_STATE").await;
    assert_eq!(state["payload"].get("settings"), None, "{state}");
}

#[tokio::test]
async fn every_member_sees_settings_that_the_runtime_changes() {
    let mut peer = RemoteUiPeer::listens();
    let (gateway, mut mia) = joins_extension(&peer, "").await;
    mia.prompts("hello").await;
    peer.greets(remoteui_state(
        &json!({ "model": "small", "maxTokens": 100 }),
    ))
    .await;
    runs(&mut mia, &mut peer).await;
    let mut second = joins(&gateway, &format!("?session={}", mia.session())).await;
    let updates = json!({ "settings": { "model": "large", "maxTokens": 100 } });
    peer.says("RemoteUIStateUpdate", json!({ "updates": updates }))
        .await;
    for member in [&mut mia, &mut second] {
        let update = member.sees("STATE_UPDATE").await;
        let expected = json!({ "settings": { "model": "large" } });
        assert_eq!(update["payload"]["updates"], expected, "only what is new");
    }
}

#[tokio::test]
async fn a_choice_that_equals_a_default_is_made_again_after_a_restart_of_the_agent() {
    let mut peer = RemoteUiPeer::listens();
    let (_gateway, mut mia) = joins_extension(&peer, "").await;
    let chosen = json!({ "model": "default", "maxTokens": 4096, "temperature": 1.0 });
    mia.sends("UPDATE_SETTINGS", json!({ "settings": chosen }))
        .await;
    mia.sees("ACK").await;
    for _ in 0..2 {
        mia.prompts("hello").await;
        peer.greets(remoteui_state(&json!({ "model": "small" })))
            .await;
        let update = peer.receives("RemoteUISettingsUpdate").await;
        assert_eq!(update["data"]["settings"], chosen);
        let request = runs(&mut mia, &mut peer).await;
        assert_eq!(request["data"]["settings"], chosen);
        peer.leaves();
    }
}

#[tokio::test]
async fn other_settings_reach_a_runtime_that_takes_them() {
    let mut peer = RemoteUiPeer::listens();
    let (_gateway, mut mia) = joins_extension(&peer, "auto_approve = true").await;
    let chosen = json!({ "autoApprove": true, "style": "terse", "limits": { "files": 3 } });
    mia.sends("UPDATE_SETTINGS", json!({ "settings": chosen }))
        .await;
    mia.sees("ACK").await;
    mia.prompts("hello").await;
    peer.greets(remoteui_state(&json!({}))).await;
    let update = peer.receives("RemoteUISettingsUpdate").await;
    assert_eq!(update["data"]["settings"], chosen);
    runs(&mut mia, &mut peer).await;
    assert_eq!(settings_of(&mut mia).await, chosen);
}

#[tokio::test]
async fn a_setting_or_context_that_the_agent_does_not_take_is_refused_by_name() {
    let file = "[agents.core]\nprotocol = \"nous\"\nsocket = \"/no/such.sock\"\n";
    let gateway = Settings::new().with_config_file(file).start().await;
    let mut mia = joins(&gateway, "?agent=core").await;
    let prompt = json!({ "text": "hi", "mode": "act", "context": { "cwd": "/src" } });
    for (kind, payload, code, field) in [
        (
            "UPDATE_SETTINGS",
            json!({ "settings": { "model": "large" } }),
            "UNSUPPORTED",
            "payload.settings.model",
        ),
        (
            "UPDATE_SETTINGS",
            json!({ "settings": { "maxTokens": 7 } }),
            "UNSUPPORTED",
            "payload.settings.maxTokens",
        ),
        (
            "UPDATE_SETTINGS",
            json!({ "settings": { "style": "terse" } }),
            "VALIDATION_ERROR",
            "payload.settings.style",
        ),
        (
            "UPDATE_SETTINGS",
            json!({ "settings": { "autoApprove": true } }),
            "VALIDATION_ERROR",
            "payload.settings.autoApprove",
        ),
        (
            "UPDATE_CONTEXT",
            json!({ "cwd": "/src" }),
            "UNSUPPORTED",
            "payload",
        ),
        ("SUBMIT_PROMPT", prompt, "UNSUPPORTED", "payload.context"),
    ] {
        mia.sends(kind, payload).await;
        let error = mia.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["details"]["field"], field, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`core`"), "{message}");
    }
    mia.sees_nothing().await;
    assert_eq!(settings_of(&mut mia).await, json!({ "autoApprove": false }));
}

#[tokio::test]
async fn the_runtimes_own_error_is_kept_beside_the_gateways_code() {
    let mut peer = RemoteUiPeer::listens();
    let (_gateway, mut mia) = joins_extension(&peer, "").await;
    mia.prompts("hello").await;
    peer.greets(remoteui_state(&json!({}))).await;
    let request = peer.receives("RemoteUITaskRequest").await;
    let words = json!({ "code": "MODEL_GONE", "message": "no model", "details": { "seen": 3 } });
    let id = request["requestId"].as_str().unwrap();
    peer.answers("RemoteUIError", json!({ "error": words }), id)
        .await;
    let end = mia.sees_run_end().await;
    let expected = json!({
        "code": "TASK_FAILED", "message": "no model",
        "details": {
            "agent": { "code": "MODEL_GONE", "message": "no model", "data": { "seen": 3 } },
        },
    });
    assert_eq!(end["error"], expected);
    mia.sends("REQUEST_STATE", json!({})).await;
    let state = mia.sees("FULL_STATE").await;
    assert_eq!(state["payload"]["currentTask"]["error"], expected);
}
