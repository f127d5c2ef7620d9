//! Sharing: grants, roles, and their revocation.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD, WsClient, next_json};

impl HttpClient {
    /// Joins a session over a WebSocket.
    pub(crate) async fn enters(&self, query: &str) -> WsClient {
        WsClient::connects(self.address(), self.token.as_deref().unwrap(), query).await
    }

    /// Grants a user a role in an own session.
    pub(crate) async fn shares(&self, session: &str, with: &str, role: &str) {
        let path = format!("/api/sessions/{session}/grants/{with}");
        let granted = self
            .sends("PUT", &path, Some(json!({ "role": role })))
            .await
            .is(200)
            .json();
        assert_eq!(
            (&granted["username"], &granted["role"]),
            (&json!(with), &json!(role))
        );
    }

    async fn unshares(&self, session: &str, with: &str) {
        let path = format!("/api/sessions/{session}/grants/{with}");
        self.sends("DELETE", &path, None).await.is(204);
    }

    /// The session looks as if it did not exist.
    async fn finds_no_session(&self, query: &str) {
        let token = self.token.as_deref().unwrap();
        let header = [("authorization", format!("Bearer {token}"))];
        let mut socket = WsClient::opens_socket(self.address(), query, &header)
            .await
            .unwrap();
        let shown = next_json(&mut socket).await.unwrap();
        assert_eq!(shown["payload"]["code"], "NOT_FOUND", "{shown}");
        assert_eq!(next_json(&mut socket).await.unwrap_err().code, 4404);
    }
}

/// A gateway with mia, ben and eve; mia has a session with a completed run.
async fn gateway_with_session() -> (Gateway, HttpClient, HttpClient, HttpClient, WsClient) {
    let gateway = Gateway::start().await;
    for name in ["mia", "ben", "eve"] {
        gateway.adds_user(name, "member");
    }
    let mia = gateway.logged_in("mia").await;
    let ben = gateway.logged_in("ben").await;
    let eve = gateway.logged_in("eve").await;
    let mut owner = mia.enters("").await;
    owner.prompts("/echo hello").await;
    owner.sees_run_end().await;
    (gateway, mia, ben, eve, owner)
}

async fn refused(member: &mut WsClient) -> Value {
    member.sees("ERROR_MESSAGE").await["payload"].clone()
}

#[tokio::test]
async fn only_the_owner_shares_and_others_learn_nothing() {
    let (gateway, mia, ben, eve, owner) = gateway_with_session().await;
    let grants = format!("/api/sessions/{}/grants", owner.session());
    let with = |name: &str| format!("{grants}/{name}");
    let viewer = || Some(json!({ "role": "viewer" }));
    mia.shares(&owner.session(), "ben", "viewer").await;
    for (method, path, body) in [
        ("GET", grants.clone(), None),
        ("PUT", with("eve"), viewer()),
        ("DELETE", with("ben"), None),
    ] {
        let asked = ben.sends(method, &path, body.clone()).await;
        asked.refuses(403, "FORBIDDEN");
        let asked = eve.sends(method, &path, body).await;
        asked.refuses(404, "NOT_FOUND");
    }
    let unknown = mia.sends("PUT", &with("nobody"), viewer()).await;
    unknown.refuses(404, "NOT_FOUND");
    let own = mia.sends("PUT", &with("mia"), viewer()).await;
    own.refuses(422, "VALIDATION_ERROR");
    gateway.prints(&["user", "disable", "eve"]);
    let disabled = mia.sends("PUT", &with("eve"), viewer()).await;
    disabled.refuses(422, "VALIDATION_ERROR");
    for role in ["owner", "admin", ""] {
        let body = Some(json!({ "role": role }));
        let bad = mia.sends("PUT", &with("ben"), body).await;
        bad.refuses(422, "VALIDATION_ERROR");
    }
    let never_shared = mia.sends("DELETE", &with("eve"), None).await;
    never_shared.refuses(404, "NOT_FOUND");
    let draft = mia.enters("").await;
    let path = format!("/api/sessions/{}/grants/ben", draft.session());
    let unstored = mia.sends("PUT", &path, viewer()).await;
    unstored.refuses(404, "NOT_FOUND");
    let listed = mia.gets(&grants).await.is(200).json();
    let listed = listed["grants"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["username"], &listed[0]["role"]),
        (&json!("ben"), &json!("viewer"))
    );
    // An administrator has no access either.
    let root = gateway.logged_in("root").await;
    root.gets(&grants).await.refuses(404, "NOT_FOUND");
    root.finds_no_session(&owner.position_after(0)).await;
}

/// Every message type that changes something, with a valid payload.
fn changing_messages() -> Vec<(&'static str, Value)> {
    vec![
        (
            "SUBMIT_PROMPT",
            json!({ "text": "/echo mine", "mode": "act" }),
        ),
        ("CANCEL_TASK", json!({})),
        ("UPDATE_SETTINGS", json!({ "settings": { "maxTokens": 7 } })),
        ("TAKE_CONTROL", json!({ "steal": true })),
        ("RELEASE_CONTROL", json!({})),
        (
            "ANSWER",
            json!({ "questionId": format!("qst_{:032x}", 1), "ok": true }),
        ),
        ("STEER", json!({ "text": "left" })),
        ("SUGGEST", json!({ "text": "left" })),
        ("FOLLOW_UP", json!({ "text": "and then?" })),
        ("SET_QUEUE_MODE", json!({ "steering": "all" })),
        ("UPDATE_CONTEXT", json!({})),
        ("SET_TOOLS", json!({ "tools": [] })),
        ("BRANCH_SESSION", json!({})),
        ("WITHDRAW", json!({ "taskId": format!("run_{:032x}", 1) })),
        ("EXTENSION", json!({ "name": "echo", "payload": {} })),
    ]
}

#[tokio::test]
async fn a_viewer_sees_everything_and_changes_nothing() {
    let (gateway, mia, ben, _, mut owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "viewer").await;
    let mut viewer = ben.enters(&owner.position_after(0)).await;
    assert_eq!(viewer.ack["resume"], "replayed");
    viewer.sees_run_end().await;
    assert_eq!(viewer.text(), "hello");
    owner.prompts("/stream 20").await;
    owner.sees_run_end().await;
    viewer.sees_run_end().await;
    assert_eq!(viewer.offsets().last(), owner.offsets().last());
    let path = format!("/api/sessions/{session}");
    let before = mia.gets(&path).await.is(200).json();
    let seen = ben.gets(&path).await.is(200).json();
    assert_eq!(
        (&seen["access"], &seen["owner"]),
        (&json!("viewer"), &json!("mia"))
    );
    let events = ben.gets(&format!("{path}/events")).await.is(200).text;
    assert!(events.contains("hello"), "{events}");

    for (kind, payload) in changing_messages() {
        viewer.sends(kind, payload).await;
        let shown = refused(&mut viewer).await;
        assert_eq!(shown["code"], "FORBIDDEN", "{kind}: {shown}");
        assert_eq!(shown["recoverable"], true);
    }
    viewer.sends("REQUEST_STATE", json!({})).await;
    assert_eq!(
        viewer.sees("FULL_STATE").await["payload"]["offset"],
        before["offset"]
    );
    let newer = ben.token.clone().unwrap();
    viewer
        .sends("AUTH_REFRESH", json!({ "token": newer }))
        .await;
    viewer.sees("ACK").await;
    changes_nothing_over_http(&gateway, &ben, &session, &[]).await;
    viewer.sees_nothing().await;
    owner.sees_nothing().await;
    assert_eq!(mia.gets(&path).await.is(200).json(), before);
}

#[tokio::test]
async fn a_viewer_can_query_a_running_agent_but_starts_none() {
    let (mut gateway, mia, _, _, owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "viewer").await;
    gateway.restart();
    let (mia, ben) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("ben").await,
    );
    let query = format!("?session={session}");
    let mut viewer = ben.enters(&query).await;
    viewer.sends("QUERY", json!({ "kind": "models" })).await;
    let shown = refused(&mut viewer).await;
    assert_eq!(shown["code"], "FORBIDDEN", "{shown}");
    assert_eq!(shown["recoverable"], true);
    let printed = shown["message"].as_str().unwrap();
    assert!(printed.contains("does not run"), "{printed}");

    let mut owner = mia.enters(&query).await;
    owner.sends("QUERY", json!({ "kind": "models" })).await;
    let models = owner.sees("QUERY_RESULT").await["payload"].clone();
    viewer.sends("QUERY", json!({ "kind": "models" })).await;
    assert_eq!(viewer.sees("QUERY_RESULT").await["payload"], models);
}

/// Every route in OpenAPI that changes a session, except `but`.
async fn changes_nothing_over_http(
    gateway: &Gateway,
    viewer: &HttpClient,
    session: &str,
    but: &[&str],
) {
    let document = gateway.anonymous().gets("/api/openapi.json").await.json();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(rest) = path.strip_prefix("/api/sessions/{id}") else {
            continue;
        };
        // `/read` is the reader's own mark, in nobody else's session.
        if but.contains(&rest) || rest == "/read" {
            continue;
        }
        let path = format!(
            "/api/sessions/{session}{}",
            rest.replace("{username}", "eve")
        );
        for method in ["put", "post", "patch", "delete"] {
            if item[method].is_null() {
                continue;
            }
            // The body is valid for every route: only the right is missing.
            let body = json!({
                "title": "Stolen", "archived": true, "control": "exclusive", "role": "editor",
                "type": "SUBMIT_PROMPT", "payload": { "text": "/echo mine", "mode": "act" },
            });
            let asked = viewer
                .sends(&method.to_uppercase(), &path, Some(body))
                .await;
            if rest == "/commands" {
                // Answered with an envelope, as on a socket.
                assert_eq!(asked.is(403).json()["payload"]["code"], "FORBIDDEN");
            } else {
                asked.refuses(403, "FORBIDDEN");
            }
            tried += 1;
        }
    }
    assert!(tried >= 4, "{tried}");
}

#[tokio::test]
async fn an_editor_works_in_a_session_and_does_not_own_it() {
    let (gateway, mia, ben, _, mut owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "editor").await;
    let mut editor = ben.enters(&format!("?session={session}")).await;
    editor.prompts("/echo from ben").await;
    editor.sees_run_end().await;
    assert_eq!(editor.text(), "from ben");
    owner.sees_run_end().await;
    let settings = json!({ "settings": { "maxTokens": 7 } });
    editor.sends("UPDATE_SETTINGS", settings).await;
    editor.sees("ACK").await;
    owner.prompts("/hang").await;
    owner.sees("TASK_STATUS_UPDATE").await;
    editor.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(owner.sees_run_end().await["status"], "cancelled");
    let but = ["/commands", "/attachments"];
    changes_nothing_over_http(&gateway, &ben, &session, &but).await;
}

#[tokio::test]
async fn a_reader_whose_grant_is_revoked_gets_the_reason_and_nothing_more() {
    let (_gateway, mia, ben, _, mut owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "viewer").await;
    let mut viewer = ben.enters(&format!("?session={session}")).await;
    let mut second = ben.enters(&format!("?session={session}")).await;
    owner.prompts("/stream 100000 1").await;
    viewer.sees("TASK_OUTPUT_CHUNK").await;
    let position = viewer.position();
    mia.unshares(&session, "ben").await;
    let started = Instant::now();
    for member in [&mut viewer, &mut second] {
        let mut last = Value::Null;
        let closed = loop {
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(1), "{waited:?}");
            match member.receives().await {
                Ok(frame) => last = frame,
                Err(closed) => break closed,
            }
        };
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(1), "{waited:?}");
        assert_eq!(
            (closed.code, closed.reason.as_str()),
            (4403, "access revoked")
        );
        assert_eq!(last["type"], "ERROR_MESSAGE", "{last}");
        assert_eq!(last["payload"]["code"], "FORBIDDEN");
        assert_eq!(last["payload"]["recoverable"], false);
    }
    ben.finds_no_session(&position).await;
    let path = format!("/api/sessions/{session}");
    for path in [
        path.clone(),
        format!("{path}/events"),
        format!("{path}/grants"),
    ] {
        ben.gets(&path).await.refuses(404, "NOT_FOUND");
    }
    let listed = ben.gets("/api/sessions").await.is(200).json();
    assert_eq!(listed["sessions"], json!([]));
    owner.sends("CANCEL_TASK", json!({})).await;
    owner.sees_run_end().await;
}

#[tokio::test]
async fn another_role_takes_effect_at_once_and_keeps_the_socket() {
    let (_gateway, mia, ben, _, owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "editor").await;
    let mut member = ben.enters(&format!("?session={session}")).await;
    mia.shares(&session, "ben", "viewer").await;
    member.prompts("/echo no").await;
    assert_eq!(refused(&mut member).await["code"], "FORBIDDEN");
    mia.shares(&session, "ben", "editor").await;
    member.prompts("/echo yes").await;
    member.sees_run_end().await;
    assert_eq!(member.text(), "yes");
}

#[tokio::test]
async fn grants_survive_a_restart_and_so_does_their_end() {
    let (mut gateway, mia, ben, eve, owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "editor").await;
    mia.shares(&session, "eve", "viewer").await;
    mia.unshares(&session, "eve").await;
    let tokens = [ben.token.clone().unwrap(), eve.token.clone().unwrap()];
    gateway.restart();
    let [ben, eve] = tokens.map(|token| {
        let mut page = gateway.anonymous();
        page.token = Some(token);
        page
    });
    let position = owner.position_after(0);
    // The session is idle: a stranger cannot start it, a granted user can.
    eve.finds_no_session(&position).await;
    let mut editor = ben.enters(&position).await;
    editor.sees_run_end().await;
    assert_eq!(editor.text(), "hello");
    editor.prompts("/echo again").await;
    editor.sees_run_end().await;
    eve.finds_no_session(&position).await;
}

#[tokio::test]
async fn shared_sessions_are_listed_with_own_sessions() {
    let (_gateway, mia, ben, _, owner) = gateway_with_session().await;
    let own = ben.posts("/api/sessions", json!({ "title": "Own" })).await;
    own.is(201);
    mia.posts("/api/sessions", json!({ "title": "Hidden" }))
        .await
        .is(201);
    let shared = mia
        .posts("/api/sessions", json!({ "title": "Shared" }))
        .await;
    let shared = shared.is(201).json()["id"].as_str().unwrap().to_owned();
    mia.shares(&owner.session(), "ben", "viewer").await;
    mia.shares(&shared, "ben", "editor").await;
    let mut listed = Vec::new();
    let mut query = "?limit=1".to_owned();
    loop {
        let page = ben
            .gets(&format!("/api/sessions{query}"))
            .await
            .is(200)
            .json();
        listed.extend(page["sessions"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => query = format!("?limit=1&before={next}"),
            None => break,
        }
    }
    let access = |session: &Value| {
        let word = |key: &str| session[key].as_str().unwrap_or("").to_owned();
        (word("title"), word("access"), word("owner"))
    };
    let mut seen: Vec<_> = listed.iter().map(access).collect();
    seen.sort();
    let expected = [
        ("", "viewer", "mia"),
        ("Own", "owner", "ben"),
        ("Shared", "editor", "mia"),
    ];
    let expected = expected
        .map(|(title, access, owner)| (title.to_owned(), access.to_owned(), owner.to_owned()));
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_session_bound_token_works_for_a_granted_user() {
    let (gateway, mia, _, _, owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "viewer").await;
    let login =
        |name: &str| json!({ "username": name, "password": PASSWORD, "sessionId": session });
    let stranger = gateway
        .anonymous()
        .posts("/api/auth/login", login("eve"))
        .await;
    stranger.refuses(404, "NOT_FOUND");
    let mut ben = gateway.anonymous();
    let bound = ben.posts("/api/auth/login", login("ben")).await.is(200);
    ben.stores_login(bound);
    let mut viewer = ben.enters("").await;
    assert_eq!(viewer.session(), session);
    viewer.prompts("/echo no").await;
    assert_eq!(refused(&mut viewer).await["code"], "FORBIDDEN");
    let other = mia.posts("/api/sessions", json!({})).await.is(201).json();
    let other = other["id"].as_str().unwrap();
    mia.shares(other, "ben", "editor").await;
    ben.finds_no_session(&format!("?session={other}")).await;
    mia.unshares(&session, "ben").await;
    assert_eq!(viewer.sees_close().await.code, 4403);
    ben.finds_no_session("").await;
}

#[tokio::test]
async fn a_disabled_or_removed_user_loses_granted_sessions() {
    let (gateway, mia, ben, eve, owner) = gateway_with_session().await;
    let session = owner.session();
    let query = format!("?session={session}");
    for name in ["ben", "eve"] {
        mia.shares(&session, name, "editor").await;
    }
    let mut editors = [ben.enters(&query).await, eve.enters(&query).await];
    gateway.prints(&["user", "disable", "ben"]);
    gateway.prints(&["user", "remove", "eve"]);
    for editor in &mut editors {
        assert_eq!(editor.sees_close().await.code, 4401);
    }
    let grants = mia.gets(&format!("/api/sessions/{session}/grants")).await;
    let grants = grants.is(200).json();
    assert_eq!(grants["grants"].as_array().unwrap().len(), 1, "{grants}");
    gateway.adds_user("eve", "member");
    let namesake = gateway.logged_in("eve").await;
    namesake.finds_no_session(&query).await;
}

#[tokio::test]
async fn events_after_a_revocation_never_reach_the_revoked_user() {
    let (_gateway, mia, ben, _, mut owner) = gateway_with_session().await;
    let session = owner.session();
    for round in 0..10 {
        mia.shares(&session, "ben", "viewer").await;
        let mut viewer = ben.enters(&format!("?session={session}")).await;
        owner.prompts(&format!("/echo before-{round}")).await;
        owner.sees_run_end().await;
        mia.unshares(&session, "ben").await;
        owner.prompts(&format!("/echo secret-{round}")).await;
        owner.sees_run_end().await;
        assert_eq!(viewer.sees_close().await.code, 4403);
        let seen = json!(viewer.events).to_string();
        assert!(!seen.contains("secret"), "{seen}");
    }
    assert!(owner.text().contains("secret-9"));
}

#[tokio::test]
async fn removing_the_owner_ends_the_session_for_every_member() {
    // With little data, and with so much that it is deleted in batches.
    for prompt in ["/echo little", "/stream 600"] {
        let (gateway, mia, ben, eve, mut owner) = gateway_with_session().await;
        owner.prompts(prompt).await;
        owner.sees_run_end().await;
        let session = owner.session();
        let query = format!("?session={session}");
        mia.shares(&session, "ben", "viewer").await;
        mia.shares(&session, "eve", "editor").await;
        let mut others = [ben.enters(&query).await, eve.enters(&query).await];
        let own = eve.enters("").await.session();
        let removed = Instant::now();
        gateway.prints(&["user", "remove", "mia"]);
        for other in &mut others {
            assert_eq!(other.sees_close().await.code, 4409);
        }
        assert_eq!(owner.sees_close().await.code, 4401);
        assert!(removed.elapsed() < Duration::from_secs(10), "{prompt}");
        for other in [&ben, &eve] {
            other.finds_no_session(&query).await;
            let gone = other.gets(&format!("/api/sessions/{session}")).await;
            gone.refuses(404, "NOT_FOUND");
        }
        assert_ne!(own, session);
        // The name can be reused, and has no old data.
        gateway.adds_user("mia", "member");
        let namesake = gateway.logged_in("mia").await;
        let listed = namesake.gets("/api/sessions").await.is(200).json();
        assert_eq!(listed["sessions"], json!([]));
    }
}

#[tokio::test]
async fn disabling_the_owner_keeps_the_session_for_granted_users() {
    let (gateway, mia, _, eve, mut owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "eve", "editor").await;
    let mut editor = eve.enters(&format!("?session={session}")).await;
    gateway.prints(&["user", "disable", "mia"]);
    assert_eq!(owner.sees_close().await.code, 4401);
    editor.prompts("/echo still here").await;
    editor.sees_run_end().await;
    assert!(editor.text().contains("still here"));
}

#[tokio::test]
async fn a_viewer_cannot_use_up_the_message_limit_of_editors() {
    let (_gateway, mia, ben, _, mut owner) = gateway_with_session().await;
    let session = owner.session();
    mia.shares(&session, "ben", "viewer").await;
    let mut viewer = ben.enters(&format!("?session={session}")).await;
    for _ in 0..100 {
        viewer.sends("CANCEL_TASK", json!({})).await;
        refused(&mut viewer).await;
    }
    viewer.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(refused(&mut viewer).await["code"], "RATE_LIMITED");
    owner.prompts("/echo heard").await;
    owner.sees_run_end().await;
}
