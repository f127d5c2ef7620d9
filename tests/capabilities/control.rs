//! Control: exclusive mode, taking over, expiry and suggestions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, HttpResponse, Settings, SseClient, WsClient};

/// Mia's session, shared with ben as editor; both are connected.
async fn shared_session(
    settings: Settings,
) -> (Gateway, HttpClient, HttpClient, WsClient, WsClient) {
    let gateway = settings
        .with("LIMITS__MESSAGES_PER_MINUTE", "100000")
        .with("LIMITS__HEARTBEATS_PER_MINUTE", "100000")
        .start()
        .await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let mia = gateway.logged_in("mia").await;
    let ben = gateway.logged_in("ben").await;
    let mut owner = mia.enters("").await;
    owner.prompts("/echo hello").await;
    owner.sees_run_end().await;
    mia.shares(&owner.session(), "ben", "editor").await;
    let editor = ben.enters(&format!("?session={}", owner.session())).await;
    (gateway, mia, ben, owner, editor)
}

async fn sets_control_mode(page: &HttpClient, session: &str, control: &str) -> Value {
    let path = format!("/api/sessions/{session}");
    let body = json!({ "control": control });
    let changed = page.sends("PATCH", &path, Some(body)).await.is(200).json();
    assert_eq!(changed["control"], control);
    changed
}

/// Takes control, and returns it as acknowledged.
async fn takes_control(member: &mut WsClient, payload: Value) -> Value {
    member.sends("TAKE_CONTROL", payload).await;
    let control = member.sees("ACK").await["payload"]["control"].clone();
    assert_eq!(control["connectionId"], member.ack["connectionId"]);
    assert!(control["expiresAt"].is_string(), "{control}");
    control
}

async fn is_refused(member: &mut WsClient, code: &str, word: &str) {
    let shown = member.sees("ERROR_MESSAGE").await;
    assert_eq!(shown["payload"]["code"], code, "{shown}");
    let message = shown["payload"]["message"].as_str().unwrap();
    assert!(message.contains(word), "{message}");
}

async fn prompts_successfully(member: &mut WsClient) {
    member.prompts("/echo done").await;
    member.sees_run_end().await;
}

#[tokio::test]
async fn in_exclusive_mode_only_the_drivers_commands_are_accepted() {
    let (_gateway, mia, _, mut owner, mut editor) = shared_session(Settings::new()).await;
    sets_control_mode(&mia, &owner.session(), "exclusive").await;
    for member in [&mut owner, &mut editor] {
        let shown = member.sees_peer_frame("CONTROL_UPDATE").await;
        assert_eq!(
            (&shown["mode"], &shown["username"]),
            (&json!("exclusive"), &Value::Null)
        );
        member.prompts("/echo no").await;
        is_refused(member, "FORBIDDEN", "TAKE_CONTROL").await;
    }
    let control = takes_control(&mut editor, json!({})).await;
    assert_eq!(control["username"], "ben");
    for member in [&mut owner, &mut editor] {
        let shown = member.sees_peer_frame("CONTROL_UPDATE").await;
        assert_eq!(
            (&shown["username"], &shown["fence"]),
            (&json!("ben"), &control["fence"])
        );
        assert_eq!(shown["connectionId"], control["connectionId"]);
    }
    for (kind, payload) in [
        (
            "SUBMIT_PROMPT",
            json!({ "text": "/echo no", "mode": "act" }),
        ),
        ("CANCEL_TASK", json!({})),
        ("UPDATE_SETTINGS", json!({ "settings": { "maxTokens": 7 } })),
    ] {
        owner.sends(kind, payload).await;
        is_refused(&mut owner, "FORBIDDEN", "ben").await;
    }
    prompts_successfully(&mut editor).await;
    owner.sees_run_end().await;
    owner.sends("RELEASE_CONTROL", json!({})).await;
    is_refused(&mut owner, "FORBIDDEN", "ben").await;
    editor.sends("RELEASE_CONTROL", json!({})).await;
    editor.sees("ACK").await;
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        Value::Null
    );
    editor.prompts("/echo no").await;
    is_refused(&mut editor, "FORBIDDEN", "TAKE_CONTROL").await;
    sets_control_mode(&mia, &owner.session(), "open").await;
    prompts_successfully(&mut editor).await;
}

#[tokio::test]
async fn only_the_owner_can_take_control_by_force() {
    let (_gateway, mia, ben, mut owner, mut editor) = shared_session(Settings::new()).await;
    sets_control_mode(&mia, &owner.session(), "exclusive").await;
    let first = takes_control(&mut owner, json!({})).await;
    for steal in [false, true] {
        editor
            .sends("TAKE_CONTROL", json!({ "steal": steal }))
            .await;
        is_refused(&mut editor, "BUSY", "mia").await;
    }
    // Another device of the same user.
    let query = format!("?session={}", owner.session());
    let mut phone = mia.enters(&query).await;
    assert_eq!(
        phone.sees_peer_frame("CONTROL_UPDATE").await["username"],
        "mia",
        "as it is"
    );
    let second = takes_control(&mut phone, json!({})).await;
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
    owner.prompts("/echo no").await;
    is_refused(&mut owner, "FORBIDDEN", "mia").await;
    phone.sends("RELEASE_CONTROL", json!({})).await;
    phone.sees("ACK").await;
    takes_control(&mut editor, json!({})).await;
    owner.sends("TAKE_CONTROL", json!({})).await;
    is_refused(&mut owner, "BUSY", "ben").await;
    takes_control(&mut owner, json!({ "steal": true })).await;
    prompts_successfully(&mut owner).await;
    editor.sees_run_end().await;
    // Only the owner sets the mode.
    let body = Some(json!({ "control": "open" }));
    let path = format!("/api/sessions/{}", owner.session());
    let tried = ben.sends("PATCH", &path, body).await;
    tried.refuses(403, "FORBIDDEN");
    let bad = mia
        .sends("PATCH", &path, Some(json!({ "control": "mine" })))
        .await;
    bad.refuses(422, "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_command_with_an_outdated_control_term_is_refused() {
    let (mut gateway, mia, _, mut owner, mut editor) = shared_session(Settings::new()).await;
    let command = |fence: Value, place: &str| {
        let mut command = json!({
            "type": "SUBMIT_PROMPT", "payload": { "text": "/echo done", "mode": "act" },
        });
        if place == "payload" {
            command["payload"]["fence"] = fence;
        } else {
            command["fence"] = fence;
        }
        command.to_string()
    };
    let old = takes_control(&mut editor, json!({})).await["fence"].clone();
    for place in ["payload", "envelope"] {
        editor.writes(&command(old.clone(), place)).await;
        editor.sees_run_end().await;
        owner.sees_run_end().await;
    }
    takes_control(&mut owner, json!({ "steal": true })).await;
    let before = owner.offsets().len();
    for place in ["payload", "envelope"] {
        editor.writes(&command(old.clone(), place)).await;
        is_refused(&mut editor, "FORBIDDEN", "fence").await;
        editor.writes_raw(&command(json!("7"), place)).await;
        is_refused(&mut editor, "VALIDATION_ERROR", "fence").await;
    }
    owner.sees_nothing().await;
    assert_eq!(owner.offsets().len(), before);
    // Open mode needs no fence.
    prompts_successfully(&mut editor).await;

    let token = mia.token.clone().unwrap();
    gateway.restart();
    let mut back = WsClient::reconnects(gateway.address(), &token, &owner.position()).await;
    back.writes(&command(old.clone(), "envelope")).await;
    is_refused(&mut back, "FORBIDDEN", "fence").await;
    let newer = takes_control(&mut back, json!({})).await;
    assert!(newer["fence"].as_u64() > old.as_u64());
}

#[tokio::test]
async fn control_ends_with_the_connection_or_its_edit_right() {
    let (_gateway, mia, ben, mut owner, mut editor) = shared_session(Settings::new()).await;
    let query = format!("?session={}", owner.session());
    takes_control(&mut editor, json!({})).await;
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        "ben"
    );
    drop(editor);
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        Value::Null
    );
    let mut editor = ben.enters(&query).await;
    takes_control(&mut editor, json!({})).await;
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        "ben"
    );
    mia.shares(&owner.session(), "ben", "viewer").await;
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        Value::Null
    );
    takes_control(&mut owner, json!({})).await;
    editor.sends("TAKE_CONTROL", json!({})).await;
    is_refused(&mut editor, "FORBIDDEN", "look").await;
}

#[tokio::test]
async fn control_expires_unless_its_driver_sends_heartbeats() {
    let settings = Settings::new().with("SESSIONS__CONTROL_LEASE_SECS", "1");
    let (_gateway, mia, _, mut owner, mut editor) = shared_session(settings).await;
    sets_control_mode(&mia, &owner.session(), "exclusive").await;
    takes_control(&mut owner, json!({})).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1500) {
        owner.sees_nothing().await;
        editor.sends("TAKE_CONTROL", json!({})).await;
        is_refused(&mut editor, "BUSY", "mia").await;
    }
    let silent = Instant::now();
    loop {
        editor.sends("TAKE_CONTROL", json!({})).await;
        let answer = editor.receives().await.unwrap();
        if answer["type"] == "ACK" {
            break;
        }
        assert_eq!(answer["payload"]["code"], "BUSY", "{answer}");
        assert!(silent.elapsed() < Duration::from_secs(5));
    }
    owner.prompts("/echo no").await;
    is_refused(&mut owner, "FORBIDDEN", "ben").await;
}

#[tokio::test]
async fn exclusive_mode_survives_a_restart() {
    let (mut gateway, mia, _, owner, _editor) = shared_session(Settings::new()).await;
    sets_control_mode(&mia, &owner.session(), "exclusive").await;
    let token = mia.token.clone().unwrap();
    gateway.restart();
    let mut back = WsClient::reconnects(gateway.address(), &token, &owner.position()).await;
    assert_eq!(
        back.sees_peer_frame("CONTROL_UPDATE").await["mode"],
        "exclusive"
    );
    back.prompts("/echo no").await;
    is_refused(&mut back, "FORBIDDEN", "TAKE_CONTROL").await;
    takes_control(&mut back, json!({})).await;
    prompts_successfully(&mut back).await;
}

/// Sends a command by POST, on behalf of a stream if given.
async fn posts(
    page: &HttpClient,
    session: &str,
    through: Option<&SseClient>,
    kind: &str,
    payload: Value,
) -> HttpResponse {
    let mut path = format!("/api/sessions/{session}/commands");
    if let Some(stream) = through {
        path += "?connection=";
        path += stream.ack["connectionId"].as_str().unwrap();
    }
    page.posts(&path, json!({ "type": kind, "payload": payload }))
        .await
}

#[tokio::test]
async fn control_works_over_sse_and_post_too() {
    let (gateway, mia, ben, mut owner, _editor) = shared_session(Settings::new()).await;
    let session = owner.session();
    sets_control_mode(&mia, &session, "exclusive").await;
    owner.sees_peer_frame("CONTROL_UPDATE").await;
    let bearer = ben.token.clone().unwrap();
    let stream = SseClient::follows(gateway.address(), &bearer, &session, None).await;
    let prompt = json!({ "text": "/echo done", "mode": "act" });

    // Control belongs to a connection; a bare POST has none.
    for kind in ["TAKE_CONTROL", "RELEASE_CONTROL"] {
        let refused = posts(&ben, &session, None, kind, json!({})).await.is(422);
        let shown = refused.json()["payload"].clone();
        assert_eq!(shown["code"], "VALIDATION_ERROR");
        assert!(shown["message"].as_str().unwrap().contains("?connection="));
    }
    let taken = posts(&ben, &session, Some(&stream), "TAKE_CONTROL", json!({})).await;
    let control = taken.is(200).json()["payload"]["control"].clone();
    assert_eq!(control["connectionId"], stream.ack["connectionId"]);
    let shown = owner.sees_peer_frame("CONTROL_UPDATE").await;
    assert_eq!(
        (&shown["username"], &shown["fence"]),
        (&json!("ben"), &control["fence"])
    );
    // The same user is not enough: stream and fence must match.
    let alone = posts(&ben, &session, None, "SUBMIT_PROMPT", prompt.clone()).await;
    assert_eq!(alone.is(403).json()["payload"]["code"], "FORBIDDEN");
    let mut fenced = prompt.clone();
    fenced["fence"] = json!(1);
    let outdated = posts(
        &ben,
        &session,
        Some(&stream),
        "SUBMIT_PROMPT",
        fenced.clone(),
    )
    .await;
    assert_eq!(outdated.is(403).json()["payload"]["code"], "FORBIDDEN");
    fenced["fence"] = control["fence"].clone();
    let done = posts(&ben, &session, Some(&stream), "SUBMIT_PROMPT", fenced).await;
    done.is(200);
    owner.sees_run_end().await;

    // Control held by another user is a conflict, and their connection cannot be borrowed.
    let stolen = posts(&mia, &session, Some(&stream), "TAKE_CONTROL", json!({})).await;
    let problem = stolen.refuses(422, "VALIDATION_ERROR").json();
    assert_eq!(problem["details"]["field"], "connection");
    let own = SseClient::follows(
        gateway.address(),
        mia.token.as_deref().unwrap(),
        &session,
        None,
    );
    let own = own.await;
    let busy = posts(&mia, &session, Some(&own), "TAKE_CONTROL", json!({})).await;
    assert_eq!(busy.is(409).json()["payload"]["code"], "BUSY");
    let elsewhere = mia.enters("").await.session();
    let wrong = posts(&mia, &elsewhere, Some(&own), "TAKE_CONTROL", json!({})).await;
    assert_ne!(wrong.status, 200);

    let released = posts(&ben, &session, Some(&stream), "RELEASE_CONTROL", json!({})).await;
    released.is(200);
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        Value::Null
    );
    let taken = posts(&ben, &session, Some(&stream), "TAKE_CONTROL", json!({})).await;
    taken.is(200);
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        "ben"
    );
    drop(stream);
    assert_eq!(
        owner.sees_peer_frame("CONTROL_UPDATE").await["username"],
        Value::Null
    );
}

#[tokio::test]
async fn a_heartbeat_by_post_keeps_control_for_its_stream() {
    let settings = Settings::new().with("SESSIONS__CONTROL_LEASE_SECS", "1");
    let (gateway, mia, ben, mut owner, mut editor) = shared_session(settings).await;
    let session = owner.session();
    sets_control_mode(&mia, &session, "exclusive").await;
    let bearer = ben.token.clone().unwrap();
    let stream = SseClient::follows(gateway.address(), &bearer, &session, None).await;
    let taken = posts(&ben, &session, Some(&stream), "TAKE_CONTROL", json!({})).await;
    taken.is(200);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1500) {
        posts(&ben, &session, Some(&stream), "HEARTBEAT", json!({}))
            .await
            .is(200);
        owner.sends("TAKE_CONTROL", json!({})).await;
        is_refused(&mut owner, "BUSY", "ben").await;
    }
    editor.sends("HEARTBEAT", json!({})).await;
    let silent = Instant::now();
    loop {
        owner.sends("TAKE_CONTROL", json!({})).await;
        if owner.receives().await.unwrap()["type"] == "ACK" {
            break;
        }
        assert!(silent.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_user_without_control_can_suggest_a_prompt() {
    let (_gateway, mia, _, mut owner, mut editor) = shared_session(Settings::new()).await;
    sets_control_mode(&mia, &owner.session(), "exclusive").await;
    takes_control(&mut owner, json!({})).await;
    editor.prompts("/echo mine").await;
    is_refused(&mut editor, "FORBIDDEN", "mia").await;
    editor
        .sends("SUGGEST", json!({ "text": "Try /echo yours" }))
        .await;
    editor.sees("ACK").await;
    let received = owner.sees("MESSAGE").await;
    assert_eq!(received["payload"]["content"], "Try /echo yours");
    assert_eq!(received["payload"]["metadata"]["suggestion"], true);
    assert_eq!(received["payload"]["metadata"]["by"], "ben");
    owner.sees_nothing().await;
}
