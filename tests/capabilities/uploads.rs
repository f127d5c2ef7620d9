//! Uploads: rights during the transfer, concurrency, quotas, malformed forms and shutdown.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::actors::{Gateway, HttpClient, HttpResponse, RawTcp, Settings};

impl HttpClient {
    async fn uploads_as(
        &self,
        session: &str,
        name: &str,
        kind: &str,
        content: Vec<u8>,
    ) -> HttpResponse {
        let path = format!("/api/sessions/{session}/attachments?name={name}");
        let path = path.strip_suffix("?name=").unwrap_or(&path);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("http://{}{path}", self.address()))
            .bearer_auth(self.token.as_deref().unwrap())
            .header("content-type", kind)
            .body(content);
        let response = request.send().await.unwrap();
        HttpResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    async fn files(&self, session: &str) -> Vec<Value> {
        let path = format!("/api/sessions/{session}/attachments");
        let listed = self.gets(&path).await.is(200).json();
        listed["attachments"].as_array().unwrap().clone()
    }
}

/// Starts an upload of this many bytes, and sends the first.
async fn starts_upload(gateway: &Gateway, token: &str, session: &str, bytes: usize) -> RawTcp {
    let mut tcp = gateway.raw_tcp().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\nx",
        gateway.address(),
    );
    tcp.writes(&head).await;
    tcp
}

/// Waits until this many uploads are in progress.
async fn waits_for_uploads(gateway: &Gateway, wanted: usize) {
    let place = gateway.sqlite_file().with_file_name("attachments");
    let started = Instant::now();
    loop {
        let entries = std::fs::read_dir(&place).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let arriving = names.filter(|name| name.starts_with("tmp-")).count();
        if arriving == wanted {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{arriving}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upload_fails_if_the_right_to_edit_ends_before_it_completes() {
    let gateway = Gateway::start().await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let (mia, ben) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("ben").await,
    );
    let session = mia.creates_session().await;
    let token = ben.token.clone().unwrap();
    mia.shares(&session, "ben", "editor").await;
    let mut tcp = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    mia.shares(&session, "ben", "viewer").await;
    let (answer, _) = tcp.writes("x").await.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    mia.shares(&session, "ben", "editor").await;
    let mut tcp = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    let path = format!("/api/sessions/{session}/grants/ben");
    mia.sends("DELETE", &path, None).await.is(204);
    let (answer, _) = tcp.writes("x").await.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

    mia.shares(&session, "ben", "editor").await;
    let mut tcp = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    ben.sends("POST", "/api/auth/logout", None).await.is(204);
    let (answer, _) = tcp.writes("x").await.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(mia.files(&session).await, [Value::Null; 0]);
    waits_for_uploads(&gateway, 0).await;
}

/// Runs in real time.
#[tokio::test]
async fn an_upload_fails_if_its_token_expires_before_it_completes() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let short = gateway.prints(&["token", "create", "--user", "root", "--ttl", "2s"]);
    let mut tcp = starts_upload(&gateway, short.trim(), &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    let mut late = page.clone();
    late.token = Some(short.trim().to_owned());
    while late.me().await.status == 200 {}
    let (answer, _) = tcp.writes("x").await.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("SESSION_EXPIRED"), "{answer}");
    assert_eq!(page.files(&session).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_user_can_upload_two_files_at_a_time() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let (page, mia) = (
        gateway.logged_in("root").await,
        gateway.logged_in("mia").await,
    );
    let (session, hers) = (page.creates_session().await, mia.creates_session().await);
    let token = page.token.clone().unwrap();
    let mut first = starts_upload(&gateway, &token, &session, 2).await;
    let second = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 2).await;
    let busy = page
        .uploads_as(&session, "x", "text/plain", b"x".into())
        .await;
    let busy = busy.refuses(503, "BUSY");
    assert_eq!(busy.header("retry-after"), "1");
    let other = mia.uploads_as(&hers, "x", "text/plain", b"x".into()).await;
    other.is(201);
    let (answer, _) = first.writes("x").await.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let free = page
        .uploads_as(&session, "x", "text/plain", b"x".into())
        .await;
    free.is(201);
    // A slot is released also when the client vanishes.
    drop(second);
    waits_for_uploads(&gateway, 0).await;
    let _third = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    let free = page
        .uploads_as(&session, "x", "text/plain", b"x".into())
        .await;
    free.is(201);
}

#[tokio::test]
async fn an_upload_over_quota_is_refused_before_its_body() {
    let gateway = Settings::new()
        .with("LIMITS__SESSION_ATTACHMENT_BYTES", "1000")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
        gateway.address(),
        page.token.as_deref().unwrap(),
    );
    let mut tcp = gateway.raw_tcp().await;
    let answer = tcp.writes(&head).await.reads_some().await;
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    waits_for_uploads(&gateway, 0).await;
    // Without `Expect: 100-continue` the client reads the reason all the same.
    let refused = page.uploads_as(&session, "x", "text/plain", vec![b'x'; 1_000_000]);
    let details = refused.await.refuses(422, "VALIDATION_ERROR").json()["details"].clone();
    assert_eq!(
        details,
        json!({ "limit": "sessionAttachmentBytes", "max": 1000, "actual": 1_000_000 })
    );
    let fits = page.uploads_as(&session, "x", "text/plain", vec![b'x'; 1000]);
    fits.await.is(201);
}

/// The size of a file in a form is known only at its end.
#[tokio::test]
async fn an_upload_found_over_quota_at_its_end_is_deleted_and_nothing_else() {
    let gateway = Settings::new()
        .with("LIMITS__SESSION_ATTACHMENT_BYTES", "1000")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let form = |letter: &str| {
        let text = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n{}\r\n--XX--\r\n",
            letter.repeat(600),
        );
        page.uploads_as(
            &session,
            "",
            "multipart/form-data; boundary=XX",
            text.into(),
        )
    };
    let kept = form("a").await.is(201).json();
    for letter in ["a", "b", "a", "c"] {
        form(letter).await.refuses(422, "VALIDATION_ERROR");
    }
    let hash = kept["sha256"].as_str().unwrap();
    let place = gateway.sqlite_file().with_file_name("attachments");
    let mut contents = Vec::new();
    for entry in std::fs::read_dir(place).unwrap() {
        let inside = std::fs::read_dir(entry.unwrap().path()).unwrap();
        contents.extend(inside.map(|file| file.unwrap().file_name()));
    }
    assert_eq!(contents, [hash]);
}

#[tokio::test]
async fn a_form_with_too_much_before_its_file_is_refused() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let form = |foreword: usize| {
        let text = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{}\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"C:\\\\a\\\\b/cat.txt\"\r\n\r\n{}\r\n--XX--\r\n",
            "n".repeat(foreword),
            "f".repeat(500_000),
        );
        page.uploads_as(
            &session,
            "",
            "multipart/form-data; boundary=XX",
            text.into(),
        )
    };
    let made = form(40_000).await.is(201).json();
    assert_eq!(made["name"], "cat.txt");
    assert_eq!(made["size"], 500_000);
    form(300_000).await.refuses(422, "VALIDATION_ERROR");
    assert_eq!(page.files(&session).await.len(), 1);
}

#[tokio::test]
async fn an_uploaded_file_keeps_its_base_name_without_the_path() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    for (given, name) in [
        ("..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("C:%5Cmia%5Ccat.png", "cat.png"),
    ] {
        let made = page.uploads_as(&session, given, "text/plain", b"x".into());
        assert_eq!(made.await.is(201).json()["name"], name);
    }
    for given in [
        "..",
        ".",
        "a%2F",
        "a%2F..",
        "gpj.%E2%80%AEexe",
        "a%0Db",
        "a%ff",
    ] {
        let refused = page.uploads_as(&session, given, "text/plain", b"x".into());
        let problem = refused.await.refuses(422, "VALIDATION_ERROR").json();
        assert_eq!(problem["details"]["field"], "name", "{given}");
    }
    // The same for inline attachments of a prompt.
    let path = format!("/api/sessions/{session}/commands");
    let prompt = |name: &str| {
        let file = json!({ "name": name, "type": "text/plain", "content": "x" });
        let payload = json!({ "text": "/echo x", "mode": "act", "attachments": [file] });
        page.posts(
            &path,
            json!({ "type": "SUBMIT_PROMPT", "payload": payload }),
        )
    };
    for name in ["..", "a/", "gpj.\u{202e}exe", &"x".repeat(256)] {
        let refused = prompt(name).await.is(422).json();
        let field = &refused["payload"]["details"]["field"];
        assert_eq!(field, "payload.attachments[0].name", "{name}");
    }
    prompt("/home/mia/cat.txt").await.is(200);
    let shown = page.gets(&format!("/api/sessions/{session}/events")).await;
    assert!(shown.text.contains("\"cat.txt\""), "{}", shown.text);
    assert!(!shown.text.contains("/home/mia"), "{}", shown.text);
}

#[tokio::test]
async fn a_malformed_upload_is_not_reported_as_a_timeout() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let token = page.token.as_deref().unwrap();
    for (path, kind) in [
        (
            format!("/api/sessions/{session}/attachments?name=x"),
            "text/plain",
        ),
        (
            format!("/api/sessions/{session}/commands"),
            "application/json",
        ),
    ] {
        let mut tcp = gateway.raw_tcp().await;
        tcp.writes(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n",
            gateway.address(),
        ))
        .await;
        let (answer, _) = tcp.reads_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        assert!(answer.contains("INVALID_MESSAGE"), "{path}: {answer}");
    }
    // A file name that is not UTF-8, in a form's header.
    let mut form = b"--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a".to_vec();
    form.extend(b"\xff\"\r\n\r\nx\r\n--XX--\r\n");
    let path = format!(
        "http://{}/api/sessions/{session}/attachments",
        gateway.address()
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(path).bearer_auth(token).body(form);
    let request = request.header("content-type", "multipart/form-data; boundary=XX");
    assert_eq!(request.send().await.unwrap().status(), 422);
    assert!(page.files(&session).await.is_empty());
}

/// Ends a reader's rights while it takes the response of a path below the session slowly.
async fn stops_when_rights_end(path: &str, ends: Ends) {
    // Bytes of the chunks alone.
    const CHUNKS: usize = 300 * 20_000;
    let gateway = Gateway::start().await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let (mia, ben) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("ben").await,
    );
    let mut member = mia.enters("").await;
    member.prompts("/chunks 300 20000").await;
    member.sees_run_end().await;
    let session = member.session();
    mia.shares(&session, "ben", "viewer").await;
    let path = format!("/api/sessions/{session}/{path}");
    assert!(ben.gets(&path).await.is(200).text.len() > CHUNKS);

    let token = ben.token.clone().unwrap();
    let mut response = gateway.requests_without_reading(&token, &path).await;
    response.readable().await.unwrap();
    match ends {
        Ends::Grant => {
            let grant = format!("/api/sessions/{session}/grants/ben");
            mia.sends("DELETE", &grant, None).await.is(204);
        }
        Ends::Account => {
            gateway.prints(&["user", "disable", "ben"]);
            ben.sees_within_a_second("/api/auth/me", 401).await;
        }
    }
    member.prompts("/echo recorded-later").await;
    member.sees_run_end().await;
    let mut read = Vec::new();
    let reading = response.read_to_end(&mut read);
    // A reset counts as the end.
    drop(tokio::time::timeout(Duration::from_secs(20), reading).await);
    assert!(read.starts_with(b"HTTP/1.1 200"));
    assert!(read.len() < CHUNKS / 2, "{} bytes", read.len());
    assert!(!read.ends_with(b"0\r\n\r\n"), "it does not look complete");
    let read = String::from_utf8_lossy(&read);
    assert!(!read.contains("recorded-later"));
}

#[derive(Clone, Copy)]
enum Ends {
    Grant,
    Account,
}

#[tokio::test]
async fn an_export_stops_when_its_readers_access_is_revoked() {
    stops_when_rights_end("export", Ends::Grant).await;
}

#[tokio::test]
async fn reading_events_stops_when_the_readers_access_is_revoked() {
    stops_when_rights_end("events?limit=1000", Ends::Grant).await;
}

#[tokio::test]
async fn reading_events_stops_when_the_readers_account_is_disabled() {
    stops_when_rights_end("events?limit=1000", Ends::Account).await;
}

#[tokio::test]
async fn a_response_with_events_holds_none_that_was_recorded_after_its_request() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut member = page.enters("").await;
    member.prompts("/chunks 300 20000").await;
    member.sees_run_end().await;
    let path = format!("/api/sessions/{}/events?limit=1000", member.session());
    let token = page.token.clone().unwrap();
    let mut response = gateway.requests_without_reading(&token, &path).await;
    response.readable().await.unwrap();
    member.prompts("/echo recorded-later").await;
    member.sees_run_end().await;
    let read = reads_response(&mut response).await;
    assert!(read.contains("\"status\":\"completed\""), "it is whole");
    assert!(!read.contains("recorded-later"));
}

/// Reads a chunked response to its end; the connection stays open.
async fn reads_response(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"0\r\n\r\n") {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "cut off");
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn shutdown_does_not_wait_for_uploads() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let session = page.creates_session().await;
    let large = page.uploads_as(&session, "x", "text/plain", vec![b'x'; 10_000_000]);
    let large = large.await.is(201).json();
    let small = page.uploads_as(&session, "x", "text/plain", vec![b'x'; 300_000]);
    let small = small.await.is(201).json();
    let query = format!("?session={session}");
    let mut member = page.enters(&query).await;
    member.prompts("/chunks 300 20000").await;
    member.sees_run_end().await;
    drop(member);

    let _upload = starts_upload(&gateway, &token, &session, 2).await;
    waits_for_uploads(&gateway, 1).await;
    let mut unread = Vec::new();
    for file in [&large, &small] {
        let id = file["id"].as_str().unwrap();
        let path = format!("/api/sessions/{session}/attachments/{id}");
        unread.push(gateway.requests_without_reading(&token, &path).await);
    }
    let path = format!("/api/sessions/{session}/export");
    unread.push(gateway.requests_without_reading(&token, &path).await);
    for stream in &unread {
        stream.readable().await.unwrap();
    }
    let started = Instant::now();
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    drop(unread);
}
