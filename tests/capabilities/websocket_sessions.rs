//! WebSocket sessions: isolation, messages, limits and rights.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::actors::{Gateway, HttpClient, Settings, WsClient, count_from_env};

impl HttpClient {
    /// Joins a session, or a new one without `session` in the query.
    async fn joins(&self, query: &str) -> WsClient {
        WsClient::connects(self.address(), self.token.as_deref().unwrap(), query).await
    }
}

#[tokio::test]
async fn a_prompt_streams_an_answer() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    assert_eq!(root.ack["protocolVersion"], "1");
    assert_eq!(root.ack["resume"], "new");
    assert_eq!(root.ack["agent"], "demo");
    let message = json!({
        "type": "SUBMIT_PROMPT", "messageId": "msg-1", "sessionId": root.session(),
        "timestamp": "2024-12-31T10:00:00Z",
        "payload": { "text": "/stream 50", "mode": "act" },
    });
    root.writes(&message.to_string()).await;
    let starting = root.sees("TASK_STATUS_UPDATE").await;
    assert_eq!(starting["payload"]["status"], "starting");
    assert_eq!(starting["messageId"], "msg-1");
    assert_eq!(starting["sessionId"], root.session());
    assert_eq!(starting["offset"], 1);
    assert_eq!(root.sees_run_end().await["status"], "completed");
    let words: Vec<String> = (1..=50).map(|word| format!("{word} ")).collect();
    assert_eq!(root.text(), words.concat());
    let offsets = root.offsets();
    assert!(
        offsets.iter().copied().eq(1..=offsets.len() as u64),
        "{offsets:?}"
    );
}

#[tokio::test]
async fn a_member_never_sees_another_sessions_events() {
    let gateway = Gateway::start().await;
    gateway.adds_user("alice", "member");
    gateway.adds_user("bob", "member");
    let (alice_page, bob_page) = (
        gateway.logged_in("alice").await,
        gateway.logged_in("bob").await,
    );
    let mut alice = alice_page.joins("").await;
    let mut alices_other = alice_page.joins("").await;
    let mut bob = bob_page.joins("").await;
    alice.prompts("/stream 50").await;
    alice.sees_run_end().await;
    bob.sees_nothing().await;
    alices_other.sees_nothing().await;

    let foreign = json!({
        "type": "SUBMIT_PROMPT", "sessionId": alice.session(),
        "payload": { "text": "/echo stolen", "mode": "act" },
    });
    bob.writes(&foreign.to_string()).await;
    assert_eq!(
        bob.sees("ERROR_MESSAGE").await["payload"]["code"],
        "VALIDATION_ERROR"
    );
    let doubled = format!(
        r#"{{"type":"SUBMIT_PROMPT","sessionId":"{}","sessionId":"{}","payload":{{"text":"/echo x","mode":"act"}}}}"#,
        bob.session(),
        alice.session()
    );
    bob.writes(&doubled).await;
    assert_eq!(
        bob.sees("ERROR_MESSAGE").await["payload"]["code"],
        "INVALID_MESSAGE"
    );
    alice.sees_nothing().await;

    let header = [(
        "authorization",
        format!("Bearer {}", bob_page.token.as_deref().unwrap()),
    )];
    for query in [
        alice.position_after(0),
        "?session=nonsense".to_owned(),
        format!("?session={}", crate::websocket_sessions::unknown()),
    ] {
        let mut socket = WsClient::opens_socket(gateway.address(), &query, &header)
            .await
            .unwrap();
        let shown = crate::actors::next_json(&mut socket).await.unwrap();
        assert_eq!(shown["payload"]["code"], "NOT_FOUND", "{shown}");
        let closed = crate::actors::next_json(&mut socket).await.unwrap_err();
        assert_eq!(closed.code, 4404);
    }
    bob_page
        .gets(&format!("/api/sessions/{}", alice.session()))
        .await
        .refuses(404, "NOT_FOUND");
    let metrics = gateway.logged_in("root").await.gets("/metrics").await.text;
    assert!(
        metrics.contains("switchboard_isolation_violations_total 0"),
        "{metrics}"
    );
}

fn unknown() -> &'static str {
    "ses_0199c0ffee0070008000000000000000"
}

#[tokio::test]
async fn two_devices_of_one_user_see_the_same() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut laptop = page.joins("").await;
    let mut phone = page.joins(&format!("?session={}", laptop.session())).await;
    laptop.prompts("/stream 200").await;
    laptop.sees_run_end().await;
    phone.sees_run_end().await;
    assert_eq!(phone.text(), laptop.text());
    assert_eq!(phone.offsets(), laptop.offsets());
}

/// Many sessions at once, each with its own words, and attackers who try to read them: every member
/// gets exactly their own events in order, the attackers nothing. Sized by
/// `SWITCHBOARD_TEST_SESSIONS`, `…_EVENTS` (of each session) and `…_ATTACKERS`.
#[tokio::test]
async fn nothing_crosses_sessions_under_load() {
    let sessions = count_from_env("SWITCHBOARD_TEST_SESSIONS", 200);
    let events = count_from_env("SWITCHBOARD_TEST_EVENTS", 30);
    let attackers = count_from_env("SWITCHBOARD_TEST_ATTACKERS", 20);
    let gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "10000")
        .with("LIMITS__REQUESTS_PER_MINUTE", "10000000")
        .with("LIMITS__REQUEST_BURST", "100000")
        .with("LIMITS__MESSAGES_PER_MINUTE", "100000")
        .start()
        .await;
    gateway.adds_user("eve", "member");
    let (page, eve) = (
        gateway.logged_in("root").await,
        gateway.logged_in("eve").await,
    );
    let mut coming = tokio::task::JoinSet::new();
    for number in 0..sessions {
        let page = page.clone();
        coming.spawn(async move { (number, page.joins("").await) });
    }
    let members = coming.join_all().await;
    let targets: Arc<[String]> = members
        .iter()
        .map(|(_, member)| member.position_after(0))
        .collect();
    let over = CancellationToken::new();
    let mut strangers = tokio::task::JoinSet::new();
    for number in 0..attackers {
        let attack = attacks(eve.clone(), number, Arc::clone(&targets), over.clone());
        strangers.spawn(attack);
    }
    let mut working = tokio::task::JoinSet::new();
    for (number, member) in members {
        working.spawn(checks_own_events(number, member, events));
    }
    let seen: usize = working.join_all().await.into_iter().sum();
    over.cancel();
    let attempts: usize = strangers.join_all().await.into_iter().sum();
    let metrics = page.gets("/metrics").await.is(200).text;
    assert!(
        metrics.contains("switchboard_isolation_violations_total 0"),
        "{metrics}"
    );
    assert!(attempts >= attackers, "the strangers tried");
    println!("{sessions} sessions saw {seen} events of their own; {attempts} attempts saw nothing");
}

/// Prompts until this many events arrived, and checks that they are the session's own, each once and
/// in order. Returns the count.
async fn checks_own_events(number: usize, mut member: WsClient, events: usize) -> usize {
    const WORDS: usize = 400;
    let (mut seen, mut round) = (0, 0);
    while seen < events {
        let mut expected = format!("mine-{number}-{round}");
        let left = events - seen;
        let mut prompt = format!("/echo {expected}");
        if left > 100 {
            let words = left.min(WORDS);
            prompt = format!("/stream {words}");
            let all: Vec<String> = (1..=words).map(|word| format!("{word} ")).collect();
            expected = all.concat();
        }
        prompts_until_done(&mut member, &prompt, &format!("round-{round}")).await;
        assert_eq!(member.text(), expected, "done once");
        let offsets = member.offsets();
        let first = seen as u64 + 1;
        assert!(
            offsets
                .iter()
                .copied()
                .eq(first..first + offsets.len() as u64),
            "{offsets:?}"
        );
        let session = member.session();
        let is_mine = |event: &serde_json::Value| event["sessionId"] == session;
        assert!(member.events.iter().all(is_mine));
        seen += offsets.len();
        round += 1;
        member.events.clear();
    }
    seen
}

/// Prompts with an idempotency key, again while the gateway is busy, until the run has ended.
async fn prompts_until_done(member: &mut WsClient, prompt: &str, key: &str) {
    let command = json!({
        "type": "SUBMIT_PROMPT", "idempotencyKey": key,
        "payload": { "text": prompt, "mode": "act" },
    })
    .to_string();
    member.writes(&command).await;
    loop {
        let frame = member.receives().await.unwrap();
        let payload = &frame["payload"];
        if frame["type"] == "ERROR_MESSAGE" {
            assert_eq!(payload["code"], "STORAGE_UNAVAILABLE", "{frame}");
            member.writes(&command).await;
        } else if frame["type"] == "TASK_STATUS_UPDATE" && payload["status"] == "completed" {
            return;
        }
    }
}

/// Tries to join foreign sessions, to resume in their journals and to send under their ids.
/// Returns the number of attempts.
async fn attacks(
    eve: HttpClient,
    number: usize,
    targets: Arc<[String]>,
    over: CancellationToken,
) -> usize {
    let header = [(
        "authorization",
        format!("Bearer {}", eve.token.as_deref().unwrap()),
    )];
    let mut own = eve.joins("").await;
    let mut attempts = 0;
    for target in targets.iter().cycle().skip(number) {
        let mut socket = WsClient::opens_socket(eve.address(), target, &header)
            .await
            .unwrap();
        let shown = crate::actors::next_json(&mut socket).await.unwrap();
        assert_eq!(shown["payload"]["code"], "NOT_FOUND", "{shown}");
        let closed = crate::actors::next_json(&mut socket).await.unwrap_err();
        assert_eq!(closed.code, 4404);
        // Within the message limit, refusals included.
        if attempts < 60 {
            let foreign = json!({
                "type": "SUBMIT_PROMPT", "sessionId": target["?session=".len()..].split('&').next(),
                "payload": { "text": "/echo stolen", "mode": "act" },
            });
            own.writes(&foreign.to_string()).await;
            let shown = own.receives().await.unwrap();
            assert_eq!(shown["payload"]["code"], "VALIDATION_ERROR", "{shown}");
        }
        attempts += 1;
        // Nothing has arrived meanwhile. Reading also answers pings.
        if attempts % 100 == 0 {
            own.sees_nothing().await;
        }
        if over.is_cancelled() {
            break;
        }
    }
    own.sees_nothing().await;
    assert!(own.events.is_empty());
    attempts
}

#[tokio::test]
async fn browsers_authenticate_with_a_subprotocol_or_a_ticket() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let protocols = (
        "sec-websocket-protocol",
        format!("switchboard.v1, bearer.{token}"),
    );
    let mut member = WsClient::try_connect(gateway.address(), "", &[protocols])
        .await
        .unwrap();
    member.sees_nothing().await;
    let ticket = page.sends("POST", "/api/auth/ticket", None).await.json();
    let query = format!("?ticket={}", ticket["ticket"].as_str().unwrap());
    let mut member = WsClient::try_connect(gateway.address(), &query, &[])
        .await
        .unwrap();
    member.sees_nothing().await;

    let bad = [(
        "sec-websocket-protocol",
        "switchboard.v1, bearer.nonsense".to_owned(),
    )];
    for (query, headers) in [(query.as_str(), &[][..]), ("?ticket=x", &[]), ("", &bad)] {
        let mut socket = WsClient::opens_socket(gateway.address(), query, headers)
            .await
            .unwrap();
        let shown = crate::actors::next_json(&mut socket).await.unwrap();
        assert_eq!(shown["payload"]["code"], "AUTH_FAILED", "{shown}");
        assert_eq!(shown["payload"]["recoverable"], false);
        assert_eq!(
            crate::actors::next_json(&mut socket)
                .await
                .unwrap_err()
                .code,
            4401
        );
    }
    let header = [("authorization", "Bearer nonsense".to_owned())];
    assert_eq!(
        WsClient::try_connect(gateway.address(), "", &header)
            .await
            .err(),
        Some(401)
    );
    assert_eq!(
        WsClient::try_connect(gateway.address(), "", &[])
            .await
            .err(),
        Some(401)
    );
    let cookie = [("cookie", page.cookie.clone().unwrap())];
    assert_eq!(
        WsClient::try_connect(gateway.address(), "", &cookie)
            .await
            .err(),
        Some(401)
    );
    let foreign = [
        ("authorization", format!("Bearer {token}")),
        ("origin", "https://evil.example.org".to_owned()),
    ];
    assert_eq!(
        WsClient::try_connect(gateway.address(), "", &foreign)
            .await
            .err(),
        Some(403)
    );
}

#[tokio::test]
async fn the_hundredth_message_passes_and_the_next_does_not() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut one = page.joins("").await;
    one.prompts("/echo kept").await;
    one.sees_run_end().await;
    let mut two = page.joins(&format!("?session={}", one.session())).await;
    for number in 1..100 {
        let member = if number % 2 == 0 { &mut one } else { &mut two };
        member.sends("CANCEL_TASK", json!({})).await;
        member.sees("ACK").await;
    }
    for member in [&mut one, &mut two] {
        member.writes_raw("not even json").await;
        let refused = member.sees("ERROR_MESSAGE").await;
        assert_eq!(refused["payload"]["code"], "RATE_LIMITED", "{refused}");
        let wait = refused["payload"]["details"]["retryAfterMs"]
            .as_u64()
            .unwrap();
        assert!((1..=60_000).contains(&wait), "{wait}");
        member.sees_nothing().await;
    }
    let mut back = page.joins(&format!("?session={}", one.session())).await;
    back.prompts("/echo x").await;
    assert_eq!(
        back.sees("ERROR_MESSAGE").await["payload"]["code"],
        "RATE_LIMITED"
    );
}

#[tokio::test]
async fn ten_state_requests_pass_and_the_next_does_not() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    for _ in 0..10 {
        root.sends("REQUEST_STATE", json!({})).await;
        root.sees("FULL_STATE").await;
    }
    root.sends("REQUEST_STATE", json!({})).await;
    assert_eq!(
        root.sees("ERROR_MESSAGE").await["payload"]["code"],
        "RATE_LIMITED"
    );
    root.prompts("/echo still here").await;
    root.sees_run_end().await;
}

#[tokio::test]
async fn the_state_shows_the_conversation() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    root.prompts("/echo hello").await;
    root.sees_run_end().await;
    root.sends(
        "UPDATE_SETTINGS",
        json!({ "settings": { "model": "small", "maxTokens": 100 } }),
    )
    .await;
    let update = root.sees("STATE_UPDATE").await;
    assert_eq!(update["payload"]["updates"]["settings"]["model"], "small");
    root.writes(r#"{"type":"REQUEST_STATE","messageId":"s-1","payload":{"includeHistory":true}}"#)
        .await;
    let state = root.sees("FULL_STATE").await;
    assert_eq!(state["messageId"], "s-1");
    let history = state["payload"]["conversationHistory"].as_array().unwrap();
    let output_text: Vec<(&str, &str)> = history
        .iter()
        .map(|message| {
            (
                message["type"].as_str().unwrap(),
                message["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        output_text,
        [("user", "/echo hello"), ("assistant", "hello")]
    );
    assert_eq!(state["payload"]["settings"]["maxTokens"], 100);
    assert_eq!(state["payload"]["currentTask"]["status"], "completed");
}

#[tokio::test]
async fn message_size_limits_are_exact() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    let prompt = |chars: usize| {
        let text = format!("/echo {}", "ä".repeat(chars - 6));
        json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } }).to_string()
    };
    root.writes(&prompt(100_000)).await;
    assert_eq!(root.sees_run_end().await["status"], "completed");
    root.writes(&prompt(100_001)).await;
    let refused = root.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR");
    let padded = |bytes: usize| {
        let empty = r#"{"type":"HEARTBEAT","padding":""}"#.len();
        format!(
            r#"{{"type":"HEARTBEAT","padding":"{}"}}"#,
            "x".repeat(bytes - empty)
        )
    };
    root.writes(&padded(1_048_576)).await;
    root.sees("HEARTBEAT").await;
    root.writes(&padded(1_048_577)).await;
    assert_eq!(
        root.sees("ERROR_MESSAGE").await["payload"]["code"],
        "VALIDATION_ERROR"
    );
    root.sees_nothing().await;
}

#[tokio::test]
async fn malformed_frames_get_an_error_and_the_socket_stays_open() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    for frame in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"NONSENSE"}"#,
        r#"{"type":"SUBMIT_PROMPT"}"#,
    ] {
        root.writes_raw(frame).await;
        let code = root.sees("ERROR_MESSAGE").await["payload"]["code"].clone();
        assert!(
            code == "INVALID_MESSAGE" || code == "VALIDATION_ERROR",
            "{frame}: {code}"
        );
    }
    root.sees_nothing().await;
    root.writes_bytes(b"binary").await;
    assert_eq!(root.sees_close().await.code, 1003);
}

#[tokio::test]
async fn a_running_task_can_be_cancelled_again_and_again() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    root.prompts("/hang").await;
    root.sees("TASK_STATUS_UPDATE").await;
    root.sends("CANCEL_TASK", json!({})).await;
    let ended = root.sees_run_end().await;
    assert_eq!(ended["status"], "cancelled");
    root.sends("CANCEL_TASK", json!({ "taskId": ended["taskId"] }))
        .await;
    root.sees("ACK").await;
    root.prompts("/echo again").await;
    assert_eq!(root.sees_run_end().await["status"], "completed");
}

#[tokio::test]
async fn a_crashed_agent_ends_only_its_own_run() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut one = page.joins("").await;
    let mut other = page.joins("").await;
    other.prompts("/hang").await;
    other.sees("TASK_STATUS_UPDATE").await;
    let started = Instant::now();
    one.prompts("/crash").await;
    let ended = one.sees_run_end().await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("error"), &json!("CONNECTION_LOST"))
    );
    one.prompts("/fail").await;
    assert_eq!(one.sees_run_end().await["error"]["code"], "TASK_FAILED");
    one.prompts("/echo alive").await;
    assert_eq!(one.sees_run_end().await["status"], "completed");
    other.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(other.sees_run_end().await["status"], "cancelled");
}

#[tokio::test]
async fn sockets_close_within_a_second_when_rights_end() {
    let gateway = Gateway::start().await;
    for (name, command) in [
        ("ann", vec!["user", "disable", "ann"]),
        ("ben", vec!["user", "role", "ben", "admin"]),
        ("cat", vec!["user", "remove", "cat"]),
    ] {
        gateway.adds_user(name, "member");
        let mut member = gateway.logged_in(name).await.joins("").await;
        gateway.prints(&command);
        let started = Instant::now();
        assert_eq!(member.sees_close().await.code, 4401);
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
    }
    gateway.adds_user("dan", "member");
    let page = gateway.logged_in("dan").await;
    let other = gateway.logged_in("dan").await;
    let (mut mine, mut others) = (page.joins("").await, other.joins("").await);
    page.sends("POST", "/api/auth/logout", None).await.is(204);
    assert_eq!(mine.sees_close().await.code, 4401);
    others.sees_nothing().await;
}

#[tokio::test]
async fn a_socket_ends_with_its_token_unless_it_gets_a_newer_one() {
    let gateway = Gateway::start().await;
    let token = |ttl: &str| {
        let printed = gateway.prints(&["token", "create", "--user", "root", "--ttl", ttl]);
        printed.trim().to_owned()
    };
    let mut short = WsClient::connects(gateway.address(), &token("2s"), "").await;
    let mut renewed = WsClient::connects(gateway.address(), &token("2s"), "").await;
    renewed
        .sends("AUTH_REFRESH", json!({ "token": "nonsense" }))
        .await;
    assert_eq!(
        renewed.sees("ERROR_MESSAGE").await["payload"]["code"],
        "VALIDATION_ERROR"
    );
    renewed
        .sends("AUTH_REFRESH", json!({ "token": token("1h") }))
        .await;
    renewed.sees("ACK").await;
    short.sees("TOKEN_EXPIRING").await;
    assert_eq!(
        short.sees("ERROR_MESSAGE").await["payload"]["code"],
        "SESSION_EXPIRED"
    );
    assert_eq!(short.sees_close().await.code, 4401);
    renewed.prompts("/echo still here").await;
    renewed.sees_run_end().await;
}

#[tokio::test]
async fn notices_reach_every_connection_and_belong_to_no_session() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    let mia = gateway.logged_in("mia").await;
    let (mut one, mut two) = (root.joins("").await, mia.joins("").await);
    let notice = json!({ "level": "warn", "message": "Restart at noon" });
    mia.posts("/api/admin/notices", notice.clone())
        .await
        .refuses(403, "FORBIDDEN");
    root.posts("/api/admin/notices", notice).await.is(200);
    for member in [&mut one, &mut two] {
        let seen = member.sees("NOTICE").await;
        assert_eq!(seen["payload"]["message"], "Restart at noon");
        assert!(
            seen["sessionId"].is_null() && seen["offset"].is_null(),
            "{seen}"
        );
    }
}

#[tokio::test]
async fn sessions_are_created_listed_renamed_and_ended_over_http() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    assert_eq!(
        root.gets("/api/agents").await.is(200).json()["agents"][0]["name"],
        "demo"
    );
    let made = root
        .posts("/api/sessions", json!({ "title": "First" }))
        .await
        .is(201)
        .json();
    let path = format!("/api/sessions/{}", made["id"].as_str().unwrap());
    root.posts("/api/sessions", json!({ "agent": "nobody" }))
        .await
        .refuses(422, "VALIDATION_ERROR");
    let mut member = root
        .joins(&format!("?session={}", made["id"].as_str().unwrap()))
        .await;
    root.joins("").await.sees_nothing().await;
    member.prompts("/echo hello").await;
    member.sees_run_end().await;
    let listed = root.gets("/api/sessions").await.is(200).json();
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(
        sessions.len(),
        1,
        "a session without a prompt is not kept: {listed}"
    );
    assert_eq!(sessions[0]["messageCount"], 2);
    assert_eq!(sessions[0]["lastUserMessage"], "/echo hello");
    assert_eq!(sessions[0]["status"], "idle");
    let renamed = root
        .sends(
            "PATCH",
            &path,
            Some(json!({ "title": "Second", "archived": true })),
        )
        .await
        .is(200)
        .json();
    assert_eq!(
        (&renamed["title"], &renamed["status"]),
        (&json!("Second"), &json!("archived"))
    );
    root.sends("DELETE", &path, None).await.is(204);
    assert_eq!(member.sees_close().await.code, 4409);
    root.gets(&path).await.refuses(404, "NOT_FOUND");
    root.sends("DELETE", &path, None)
        .await
        .refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn shutdown_closes_sockets_with_a_request_to_reconnect() {
    let mut gateway = Settings::new()
        .with("SERVER__SHUTDOWN_GRACE_SECS", "1")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let mut members = Vec::new();
    for _ in 0..5 {
        let mut member = page.joins("").await;
        member.prompts("/hang").await;
        member.sees("TASK_STATUS_UPDATE").await;
        members.push(member);
    }
    gateway.signal("-TERM");
    for member in &mut members {
        let closed = member.sees_close().await;
        assert_eq!(closed.code, 1012, "{closed:?}");
        assert!(closed.reason.contains("retryAfterMs="), "{closed:?}");
    }
    assert_eq!(gateway.exit_code(), Some(0));
    gateway.restart();
    let token = gateway.logged_in("root").await.token.unwrap();
    for member in &members {
        let mut back = WsClient::connects(gateway.address(), &token, &member.position()).await;
        assert_eq!(back.ack["resume"], "replayed");
        let ended = back.sees_run_end().await;
        assert_eq!(ended["status"], "error");
        assert_eq!(ended["error"]["code"], "CONNECTION_LOST");
    }
}

#[tokio::test]
async fn shutdown_gives_a_running_run_its_grace_period() {
    let mut gateway = Settings::new()
        .with("SERVER__SHUTDOWN_GRACE_SECS", "600")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let mut member = page.joins("").await;
    member.prompts("/stream 30 50").await;
    member.sees("TASK_OUTPUT_CHUNK").await;
    gateway.signal("-TERM");
    assert_eq!(member.sees_close().await.code, 1012);
    assert_eq!(gateway.exit_code(), Some(0));
    gateway.restart();
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut back = WsClient::connects(gateway.address(), &token, &member.position()).await;
    assert_eq!(back.ack["resume"], "replayed");
    assert_eq!(back.sees_run_end().await["status"], "completed");
    let text = member.text() + &back.text();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    assert!(
        (1..=30).map(|number| number.to_string()).eq(words),
        "{text}"
    );
}

#[tokio::test]
async fn the_journal_can_be_read_over_http_by_its_owner() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    let mut member = root.joins("").await;
    member.prompts("/echo hello").await;
    member.sees_run_end().await;
    let path = format!("/api/sessions/{}/events", member.session());
    let lines = |text: &str| -> Vec<serde_json::Value> {
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    assert_eq!(lines(&root.gets(&path).await.is(200).text), member.events);
    let part = root.gets(&format!("{path}?after=2&limit=1")).await.is(200);
    assert_eq!(lines(&part.text), member.events[2..3]);
    let mia = gateway.logged_in("mia").await;
    mia.gets(&path).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_administrator_lists_connections_and_can_close_them() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let (root, mia) = (
        gateway.logged_in("root").await,
        gateway.logged_in("mia").await,
    );
    let mut member = mia.joins("").await;
    mia.gets("/api/admin/connections")
        .await
        .refuses(403, "FORBIDDEN");
    let listed = root.gets("/api/admin/connections").await.is(200).json();
    let connection = &listed["connections"][0];
    assert_eq!(connection["username"], "mia");
    assert_eq!(connection["sessionId"], member.session());
    assert_eq!(connection["id"], member.ack["connectionId"]);
    let path = format!(
        "/api/admin/connections/{}",
        connection["id"].as_str().unwrap()
    );
    root.sends("DELETE", &path, None).await.is(204);
    assert_eq!(member.sees_close().await.code, 1012);
    root.sends("DELETE", &path, None)
        .await
        .refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn open_sockets_count_as_connections() {
    let gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS", "4")
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "4")
        .start()
        .await;
    let printed = gateway.prints(&["token", "create", "--user", "root"]);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(WsClient::connects(gateway.address(), printed.trim(), "").await);
    }
    let (nothing, _) = gateway.raw_tcp().await.reads_to_end().await;
    assert_eq!(nothing, "", "the cap is reached");
    drop(held.pop());
    let started = Instant::now();
    while gateway.anonymous().tries_health().await.is_err() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "a closed socket makes room"
        );
    }
}

/// Output waits for a stalled reader; the end of its rights must still close it.
#[tokio::test]
async fn a_stalled_reader_is_disconnected_when_its_login_ends() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut member = page.joins("").await;
    member.prompts("/chunks 300 2000").await;
    member.sees_run_end().await;
    let query = member.position_after(0);
    let stopped = gateway
        .connects_without_reading(page.token.as_deref().unwrap(), &query)
        .await;
    for _ in 0..9 {
        let mut asking = page.joins(&query).await;
        asking.sends("REQUEST_STATE", json!({})).await;
    }
    let open = async |wanted: u64| {
        let watcher = gateway.logged_in("root").await;
        let started = Instant::now();
        loop {
            let listed = watcher.gets("/api/admin/connections").await.json();
            let count = listed["connections"].as_array().unwrap().len() as u64;
            if count <= wanted {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(4),
                "{count} are still here"
            );
            tokio::task::yield_now().await;
        }
    };
    drop(member);
    open(1).await;
    page.sends("POST", "/api/auth/logout", None).await.is(204);
    open(0).await;
    drop(stopped);
}

#[tokio::test]
async fn a_cancel_repeated_with_one_idempotency_key_cancels_once() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await.joins("").await;
    let cancel = r#"{"type":"CANCEL_TASK","idempotencyKey":"k1","payload":{}}"#;
    root.prompts("/hang").await;
    root.sees("TASK_STATUS_UPDATE").await;
    root.writes(cancel).await;
    assert_eq!(root.sees_run_end().await["status"], "cancelled");
    root.prompts("/stream 3 300").await;
    root.sees("TASK_STATUS_UPDATE").await;
    root.writes(cancel).await;
    assert_eq!(root.sees_run_end().await["status"], "completed");
}

#[tokio::test]
async fn ending_a_session_ends_its_run() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut member = page.joins("").await;
    member.prompts("/hang").await;
    member.sees("TASK_STATUS_UPDATE").await;
    page.sends(
        "DELETE",
        &format!("/api/sessions/{}", member.session()),
        None,
    )
    .await
    .is(204);
    assert_eq!(member.sees_close().await.code, 4409);
    assert_eq!(member.ends(), ["cancelled"]);
}
