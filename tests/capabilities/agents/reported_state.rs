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
