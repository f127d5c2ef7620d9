//! SSE sessions: server-sent events out, commands by POST in, and long polling.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::actors::{Gateway, HttpClient, Settings, SseClient, SseEvent, WsClient};

impl HttpClient {
    fn bearer(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    async fn follows(&self, session: &str) -> SseClient {
        SseClient::follows(self.address(), self.bearer(), session, None).await
    }

    async fn commands(
        &self,
        session: &str,
        kind: &str,
        payload: Value,
    ) -> crate::actors::HttpResponse {
        let envelope = json!({ "type": kind, "payload": payload, "messageId": "m" });
        self.posts(&format!("/api/sessions/{session}/commands"), envelope)
            .await
    }

    async fn prompts(&self, session: &str, text: &str) -> Value {
        let payload = json!({ "text": text, "mode": "act" });
        let answer = self.commands(session, "SUBMIT_PROMPT", payload).await;
        answer.is(200).json()
    }
}

#[tokio::test]
async fn a_stream_sends_the_same_events_as_a_socket() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    let query = format!("?session={session}");
    let mut socket = WsClient::connects(gateway.address(), page.bearer(), &query).await;
    let mut shown = (stream.ack.clone(), socket.ack.clone());
    for ack in [&mut shown.0, &mut shown.1] {
        ack["connectionId"].take();
    }
    assert_eq!(shown.0, shown.1);

    socket.prompts("/stream 20").await;
    socket.sees_run_end().await;
    page.commands(
        &session,
        "UPDATE_SETTINGS",
        json!({ "settings": { "maxTokens": 5 } }),
    )
    .await
    .is(200);
    page.prompts(&session, "/plan").await;
    socket.sees_run_end().await;
    stream.sees_run_end().await;
    stream.sees_run_end().await;
    assert_eq!(stream.events, socket.events);
    let epoch = socket.ack["epoch"].as_str().unwrap();
    let last = socket.offsets().last().copied().unwrap();
    assert_eq!(stream.last_id, Some(format!("{epoch}:{last}")));

    let notice = json!({ "message": "Restart at noon" });
    page.posts("/api/admin/notices", notice).await.is(200);
    let (one, other) = (stream.sees("NOTICE").await, socket.sees("NOTICE").await);
    assert_eq!(one["payload"], other["payload"]);

    let listed = page.gets("/api/admin/connections").await.json();
    assert_eq!(listed["connections"].as_array().unwrap().len(), 2);
    let metrics = page.gets("/metrics").await.text;
    assert!(
        metrics.contains("switchboard_connections_open{door=\"ws\"} 1")
            && metrics.contains("switchboard_connections_open{door=\"sse\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_stream_forbids_caching_and_buffering() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let opened = SseClient::opens(gateway.address(), page.bearer(), &session, "", None).await;
    let header = |name: &str| opened.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-accel-buffering"), "no");
    for query in ["?after=-1", "?after=x"] {
        let opened =
            SseClient::opens(gateway.address(), page.bearer(), &session, query, None).await;
        assert_eq!(opened.status(), 422, "{query}");
    }
}

#[tokio::test]
async fn a_prompt_by_post_is_answered_by_the_stream() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    let answer = page.prompts(&session, "/echo hello").await;
    assert_eq!(answer["type"], "ACK");
    assert_eq!(answer["messageId"], "m");
    let starting = stream.sees("TASK_STATUS_UPDATE").await;
    assert_eq!(starting["messageId"], "m");
    assert_eq!(starting["payload"]["taskId"], answer["payload"]["taskId"]);
    assert_eq!(stream.sees_run_end().await["status"], "completed");

    let command = json!({
        "type": "SUBMIT_PROMPT", "idempotencyKey": "k",
        "payload": { "text": "/echo once", "mode": "act" },
    });
    let path = format!("/api/sessions/{session}/commands");
    let first = page.posts(&path, command.clone()).await.is(200).json();
    stream.sees_run_end().await;
    let query = format!("?session={session}");
    let mut socket = WsClient::connects(gateway.address(), page.bearer(), &query).await;
    socket.writes(&command.to_string()).await;
    let again = socket.sees("ACK").await;
    assert_eq!(again["payload"]["repeated"], true);
    assert_eq!(again["payload"]["taskId"], first["payload"]["taskId"]);
}

#[tokio::test]
async fn command_errors_are_envelopes_with_an_http_status() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let newer = json!({ "token": page.bearer() });
    for (kind, payload, status, code) in [
        ("SUBMIT_PROMPT", json!({}), 422, "VALIDATION_ERROR"),
        ("NO_SUCH_TYPE", json!({}), 400, "INVALID_MESSAGE"),
        ("AUTH_REFRESH", newer, 422, "VALIDATION_ERROR"),
        (
            "AUTH_REFRESH",
            json!({ "token": "x" }),
            422,
            "VALIDATION_ERROR",
        ),
        (
            "CANCEL_TASK",
            json!({ "taskId": "run_0199c0ffee0070008000000000000000" }),
            404,
            "NOT_FOUND",
        ),
    ] {
        let answer = page.commands(&session, kind, payload).await.is(status);
        assert_eq!(answer.header("content-type"), "application/json");
        let envelope = answer.json();
        assert_eq!(envelope["type"], "ERROR_MESSAGE", "{envelope}");
        assert_eq!(envelope["payload"]["code"], code, "{envelope}");
        assert_eq!(envelope["messageId"], "m", "{envelope}");
    }
    let alive = page
        .commands(&session, "HEARTBEAT", json!({}))
        .await
        .is(200);
    assert_eq!(alive.json()["type"], "HEARTBEAT");

    let path = format!("/api/sessions/{session}/commands");
    let sized = |bytes: usize| {
        let around = json!({ "type": "HEARTBEAT", "pad": "" }).to_string().len();
        json!({ "type": "HEARTBEAT", "pad": "x".repeat(bytes - around) })
    };
    page.posts(&path, sized(1_048_576)).await.is(200);
    page.posts(&path, sized(1_048_577))
        .await
        .refuses(413, "VALIDATION_ERROR");
    page.sends("POST", &path, None)
        .await
        .refuses(415, "INVALID_MESSAGE");
}

#[tokio::test]
async fn a_user_without_access_gets_nothing_of_a_session() {
    let gateway = Gateway::start().await;
    gateway.adds_user("eve", "member");
    let page = gateway.logged_in("root").await;
    let eve = gateway.logged_in("eve").await;
    let session = page.creates_session().await;
    page.prompts(&session, "/echo secret").await;
    let unknown = "ses_0199c0ffee0070008000000000000000";
    for id in [session.as_str(), unknown, "nonsense"] {
        for path in ["stream", "stream?after=0", "events?after=0&wait=1"] {
            let path = format!("/api/sessions/{id}/{path}");
            eve.gets(&path).await.refuses(404, "NOT_FOUND");
            gateway
                .anonymous()
                .gets(&path)
                .await
                .refuses(401, "AUTH_FAILED");
        }
        eve.commands(id, "REQUEST_STATE", json!({}))
            .await
            .refuses(404, "NOT_FOUND");
    }
    // Its id in an envelope gives no access either.
    let own = eve.creates_session().await;
    let envelope = json!({ "type": "REQUEST_STATE", "sessionId": session, "payload": {} });
    let path = format!("/api/sessions/{own}/commands");
    let refused = eve.posts(&path, envelope).await.is(422).json();
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_stream_resumes_after_its_last_event_when_the_gateway_was_killed() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.bearer().to_owned();
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    page.prompts(&session, "/stream 100000 1").await;
    while stream.events.len() < 50 {
        stream.next_event().await;
    }
    gateway.signal("-KILL");
    while !matches!(stream.next_event().await, SseEvent::End) {}
    let seen = stream.offsets();
    gateway.restart();

    let last = stream.last_id.as_deref();
    let mut back = SseClient::follows(gateway.address(), &token, &session, last).await;
    assert_eq!(back.ack["resume"], "replayed");
    assert_eq!(back.sees_run_end().await["status"], "error");
    let all: Vec<u64> = seen.into_iter().chain(back.offsets()).collect();
    let complete = all.iter().copied().eq(1..=all.len() as u64);
    assert!(complete, "no hole and nothing twice: {all:?}");

    // The header outranks the query; an unknown position gets the full state.
    let asked = SseClient::opens(gateway.address(), &token, &session, "?after=0", last);
    let mut back = SseClient::reads(asked.await).await;
    back.sees_run_end().await;
    assert!(back.offsets()[0] > 50);
    let nonsense = Some("nonsense");
    let mut back = SseClient::follows(gateway.address(), &token, &session, nonsense).await;
    assert_eq!(back.ack["resume"], "snapshot");
    back.sees("FULL_STATE").await;
    let id = back.last_id.clone().unwrap();
    let mut again = SseClient::follows(gateway.address(), &token, &session, Some(&id)).await;
    assert_eq!(again.ack["resume"], "replayed");
    let browser = gateway.logged_in("root").await;
    browser.prompts(&session, "/echo on").await;
    let first = again.sees("TASK_STATUS_UPDATE").await;
    assert_eq!(first["payload"]["status"], "starting");
}

#[tokio::test]
async fn streams_end_within_a_second_when_rights_end() {
    let gateway = Gateway::start().await;
    gateway.adds_user("dan", "member");
    let page = gateway.logged_in("dan").await;
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    let started = Instant::now();
    page.sends("POST", "/api/auth/logout", None).await.is(204);
    let word = stream.sees("ERROR_MESSAGE").await;
    assert_eq!(word["payload"]["code"], "AUTH_FAILED");
    assert_eq!(stream.sees_close().await["code"], 4401);
    assert!(matches!(stream.next_event().await, SseEvent::End));
    assert!(started.elapsed() < Duration::from_secs(1));

    let page = gateway.logged_in("dan").await;
    let mut stream = page.follows(&session).await;
    let path = format!("/api/sessions/{session}/events?wait=20");
    let waiting = page.gets(&path);
    let disabled = async {
        gateway.prints(&["user", "disable", "dan"]);
        Instant::now()
    };
    let (answer, at) = tokio::join!(waiting, disabled);
    answer.refuses(401, "AUTH_FAILED");
    assert_eq!(stream.sees_close().await["code"], 4401);
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
}

#[tokio::test]
async fn a_stream_ends_with_its_token_its_session_or_an_administrators_kick() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let short = gateway.prints(&["token", "create", "--user", "root", "--ttl", "2s"]);
    let mut expiring = SseClient::follows(gateway.address(), short.trim(), &session, None).await;
    expiring.sees("TOKEN_EXPIRING").await;
    let word = expiring.sees("ERROR_MESSAGE").await;
    assert_eq!(word["payload"]["code"], "SESSION_EXPIRED");
    let closed = expiring.sees_close().await;
    assert_eq!(
        closed,
        json!({ "code": 4401, "reason": "not authenticated" })
    );

    let mut stream = page.follows(&session).await;
    let id = stream.ack["connectionId"].as_str().unwrap();
    page.sends("DELETE", &format!("/api/admin/connections/{id}"), None)
        .await
        .is(204);
    assert_eq!(stream.sees_close().await["code"], 1012);

    let mut stream = page.follows(&session).await;
    page.sends("DELETE", &format!("/api/sessions/{session}"), None)
        .await
        .is(204);
    assert_eq!(stream.sees_close().await["code"], 4409);
    assert!(matches!(stream.next_event().await, SseEvent::End));
}

#[tokio::test]
async fn shutdown_ends_streams_at_once_even_unread_ones() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    page.prompts(&session, "/chunks 300 20000").await;
    stream.sees_run_end().await;
    let unread = opens_unread_stream(&gateway, page.bearer(), &session).await;
    page.gets(&format!("/api/sessions/{session}")).await.is(200);
    let started = Instant::now();
    gateway.signal("-TERM");
    let closed = stream.sees_close().await;
    assert_eq!(closed["code"], 1012);
    assert!(closed["retryAfterMs"].as_u64().unwrap() < 3000, "{closed}");
    assert_eq!(gateway.exit_code(), Some(0));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    drop(unread);
}

#[tokio::test]
async fn the_message_limit_counts_sockets_and_posts_together() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let query = format!("?session={session}");
    let mut socket = WsClient::connects(gateway.address(), page.bearer(), &query).await;
    for _ in 0..50 {
        page.commands(&session, "CANCEL_TASK", json!({}))
            .await
            .is(200);
        socket.sends("CANCEL_TASK", json!({})).await;
        socket.sees("ACK").await;
    }
    let refused = page.commands(&session, "CANCEL_TASK", json!({})).await;
    let refused = refused.is(429);
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(
        refused.header("ratelimit-policy"),
        r#""messages";q=100;w=60"#
    );
    let left = format!(r#""messages";r=0;t={seconds}"#);
    assert_eq!(refused.header("ratelimit"), left);
    let shown = &refused.json()["payload"];
    assert_eq!(shown["code"], "RATE_LIMITED");
    assert_eq!(shown["details"]["limit"], "messagesPerMinute");
    socket.sends("CANCEL_TASK", json!({})).await;
    let refused = socket.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["payload"]["code"], "RATE_LIMITED");
}

#[tokio::test]
async fn slow_stream_readers_stay_connected_and_cost_no_memory() {
    const READERS: usize = 20;
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut quick = page.follows(&session).await;
    page.prompts(&session, "/chunks 300 20000").await;
    quick.sees_run_end().await;
    let before = measured(&page, "process_resident_memory_bytes").await;
    let mut slow = Vec::new();
    for _ in 0..READERS {
        slow.push(opens_unread_stream(&gateway, page.bearer(), &session).await);
    }
    // Once nothing more is sent, all buffers are filled.
    let mut frames = 0;
    loop {
        let now = measured(&page, "switchboard_ws_frames_out_total").await;
        let open = measured(&page, "switchboard_connections_open{door=\"sse\"}").await;
        if open > READERS as u64 && now == frames {
            break;
        }
        frames = now;
    }
    let grown = measured(&page, "process_resident_memory_bytes").await;
    let grown = grown.saturating_sub(before);
    assert!(grown < 40_000_000, "{grown} bytes for 120 MB of answers");

    let mut text = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let reader = &mut slow[0];
    while !String::from_utf8_lossy(&text[text.len().saturating_sub(600)..])
        .contains("\"status\":\"completed\"")
    {
        let read = tokio::time::timeout(Duration::from_secs(20), reader.read(&mut buffer)).await;
        let read = read.expect("more arrives").unwrap();
        assert!(read > 0, "cut off after {} bytes", text.len());
        text.extend_from_slice(&buffer[..read]);
    }
    assert!(text.len() > 6_000_000, "{}", text.len());
}

async fn measured(page: &HttpClient, name: &str) -> u64 {
    let metrics = page.gets("/metrics").await.text;
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A stream from the beginning that is not read, with a small receive buffer.
async fn opens_unread_stream(gateway: &Gateway, token: &str, session: &str) -> TcpStream {
    let small = TcpSocket::new_v4().unwrap();
    small.set_recv_buffer_size(4096).unwrap();
    let address = gateway.address();
    let mut stream = small.connect(address).await.unwrap();
    let head = format!(
        "GET /api/sessions/{session}/stream?after=0 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_long_poll_returns_with_the_first_event() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let path = format!("/api/sessions/{session}/events");
    let started = Instant::now();
    let nothing = page.gets(&format!("{path}?after=0&wait=1")).await.is(200);
    assert_eq!(nothing.text, "");
    assert!(started.elapsed() >= Duration::from_secs(1));

    let waiting = format!("{path}?after=0&wait=20");
    let (answer, _) = tokio::join!(page.gets(&waiting), page.prompts(&session, "/echo hi"));
    let first: Value = serde_json::from_str(answer.is(200).text.lines().next().unwrap()).unwrap();
    assert_eq!(first["offset"], 1);
    assert!(started.elapsed() < Duration::from_secs(10));
    // Existing events are returned at once.
    page.gets(&waiting).await.is(200);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_long_poll_ends_before_the_request_timeout() {
    let gateway = Settings::new()
        .with("SERVER__REQUEST_TIMEOUT_MS", "3000")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let path = format!("/api/sessions/{session}/events?wait=30");
    assert_eq!(page.gets(&path).await.is(200).text, "");
    // The request timeout does not apply to streams.
    let mut stream = page.follows(&session).await;
    page.gets(&path).await.is(200);
    page.gets(&path).await.is(200);
    page.prompts(&session, "/echo still here").await;
    stream.sees_run_end().await;
}

/// Proxies close quiet connections. Runs in real time.
#[tokio::test]
async fn a_quiet_stream_sends_keepalives() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut opened = SseClient::opens(gateway.address(), page.bearer(), &session, "", None).await;
    let started = Instant::now();
    let mut text = String::new();
    while !text.ends_with("\n\n: ping\n\n") {
        let more = tokio::time::timeout(Duration::from_secs(20), opened.chunk()).await;
        let more = more.expect("a sign of life").unwrap().expect("more");
        text += std::str::from_utf8(&more).unwrap();
    }
    assert!(started.elapsed() >= Duration::from_secs(14));
}

#[tokio::test]
async fn a_long_poll_ends_with_its_token_or_its_access() {
    let gateway = Gateway::start().await;
    gateway.adds_user("ben", "member");
    let (page, ben) = (
        gateway.logged_in("root").await,
        gateway.logged_in("ben").await,
    );
    let session = page.creates_session().await;
    let path = format!("/api/sessions/{session}/events?after=0&wait=20");
    let short = gateway.prints(&["token", "create", "--user", "root", "--ttl", "2s"]);
    let mut expiring = page.clone();
    expiring.token = Some(short.trim().to_owned());
    let started = Instant::now();
    expiring.gets(&path).await.refuses(401, "SESSION_EXPIRED");
    assert!(started.elapsed() < Duration::from_secs(10));

    page.shares(&session, "ben", "viewer").await;
    let grant = format!("/api/sessions/{session}/grants/ben");
    let unshared = page.sends("DELETE", &grant, None);
    let (answer, _) = tokio::join!(ben.gets(&path), unshared);
    answer.refuses(404, "NOT_FOUND");
    page.shares(&session, "ben", "viewer").await;
    let ended = format!("/api/sessions/{session}");
    let ended = page.sends("DELETE", &ended, None);
    let (answer, _) = tokio::join!(ben.gets(&path), ended);
    answer.refuses(404, "NOT_FOUND");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_heartbeat_by_post_counts_as_a_message() {
    let gateway = Settings::new()
        .with("LIMITS__MESSAGES_PER_MINUTE", "3")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    for _ in 0..3 {
        let beat = page.commands(&session, "HEARTBEAT", json!({})).await;
        beat.is(200);
    }
    let refused = page.commands(&session, "HEARTBEAT", json!({})).await;
    assert_eq!(refused.is(429).json()["payload"]["code"], "RATE_LIMITED");
}

#[tokio::test]
async fn a_busy_session_is_a_conflict_and_not_an_overload() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    page.prompts(&session, "/stream 100000 1").await;
    let payload = json!({ "text": "/echo no", "mode": "act", "ifBusy": "refuse" });
    let refused = page.commands(&session, "SUBMIT_PROMPT", payload).await;
    assert_eq!(refused.is(409).json()["payload"]["code"], "BUSY");
}

#[tokio::test]
async fn an_answer_by_post_is_in_the_audit_log_with_its_address() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let mut stream = page.follows(&session).await;
    page.prompts(&session, "/tool").await;
    let asked = stream.sees("QUESTION").await;
    let payload = json!({ "questionId": asked["payload"]["questionId"], "ok": true });
    page.commands(&session, "ANSWER", payload).await.is(200);
    let path = "/api/admin/audit?action=question.answered";
    let acts = page.gets(path).await.is(200).json()["acts"].clone();
    assert_eq!(acts[0]["address"], "127.0.0.1", "{acts}");
    assert_eq!(acts[0]["actor"], "root", "{acts}");
}
