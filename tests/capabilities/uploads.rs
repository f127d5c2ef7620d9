//! Files on their way: who may bring one while it lasts, how many at once, how slowly, and what a stop
//! does to them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::actors::{Answer, Browser, Gateway, Settings, Wire};

impl Browser {
    async fn has_a_session(&self) -> String {
        let made = self.posts("/api/sessions", json!({})).await.is(201).json();
        made["id"].as_str().unwrap().to_owned()
    }

    async fn brings(&self, session: &str, name: &str, kind: &str, content: Vec<u8>) -> Answer {
        let path = format!("/api/sessions/{session}/attachments?name={name}");
        let path = path.strip_suffix("?name=").unwrap_or(&path);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("http://{}{path}", self.address()))
            .bearer_auth(self.token.as_deref().unwrap())
            .header("content-type", kind)
            .body(content);
        let response = request.send().await.unwrap();
        Answer {
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

/// Begins to send a file of that many bytes, and sends one of them.
async fn begins(gateway: &Gateway, token: &str, session: &str, bytes: usize) -> Wire {
    let mut wire = gateway.wire().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\nx",
        gateway.address(),
    );
    wire.writes(&head).await;
    wire
}

/// Returns once so many files are arriving.
async fn are_arriving(gateway: &Gateway, wanted: usize) {
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
async fn whoever_may_not_edit_any_more_when_a_file_has_arrived_has_not_brought_it() {
    let gateway = Gateway::start().await;
    for name in ["mia", "ben"] {
        gateway.has_user(name, "member");
    }
    let (mia, ben) = (gateway.browser("mia").await, gateway.browser("ben").await);
    let session = mia.has_a_session().await;
    let token = ben.token.clone().unwrap();
    mia.shares(&session, "ben", "editor").await;
    let mut wire = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 1).await;
    mia.shares(&session, "ben", "viewer").await;
    let (answer, _) = wire.writes("x").await.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    mia.shares(&session, "ben", "editor").await;
    let mut wire = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 1).await;
    let path = format!("/api/sessions/{session}/grants/ben");
    mia.sends("DELETE", &path, None).await.is(204);
    let (answer, _) = wire.writes("x").await.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

    mia.shares(&session, "ben", "editor").await;
    let mut wire = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 1).await;
    ben.sends("POST", "/api/auth/logout", None).await.is(204);
    let (answer, _) = wire.writes("x").await.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(mia.files(&session).await, [Value::Null; 0]);
    are_arriving(&gateway, 0).await;
}

/// Time is what this is about.
#[tokio::test]
async fn a_token_that_expires_during_an_upload_is_too_old_for_it() {
    let gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
    let short = gateway.says(&["token", "create", "--user", "root", "--ttl", "2s"]);
    let mut wire = begins(&gateway, short.trim(), &session, 2).await;
    are_arriving(&gateway, 1).await;
    let mut late = page.clone();
    late.token = Some(short.trim().to_owned());
    while late.me().await.status == 200 {}
    let (answer, _) = wire.writes("x").await.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("SESSION_EXPIRED"), "{answer}");
    assert_eq!(page.files(&session).await, [Value::Null; 0]);
}

#[tokio::test]
async fn one_user_brings_two_files_at_a_time() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let (page, mia) = (gateway.browser("root").await, gateway.browser("mia").await);
    let (session, hers) = (page.has_a_session().await, mia.has_a_session().await);
    let token = page.token.clone().unwrap();
    let mut first = begins(&gateway, &token, &session, 2).await;
    let second = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 2).await;
    let busy = page.brings(&session, "x", "text/plain", b"x".into()).await;
    let busy = busy.refuses(503, "BUSY");
    assert_eq!(busy.header("retry-after"), "1");
    let other = mia.brings(&hers, "x", "text/plain", b"x".into()).await;
    other.is(201);
    let (answer, _) = first.writes("x").await.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let free = page.brings(&session, "x", "text/plain", b"x".into()).await;
    free.is(201);
    // A place is given back also by somebody who vanishes.
    drop(second);
    are_arriving(&gateway, 0).await;
    let _third = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 1).await;
    let free = page.brings(&session, "x", "text/plain", b"x".into()).await;
    free.is(201);
}

#[tokio::test]
async fn what_there_is_no_room_for_is_not_waited_for() {
    let gateway = Settings::new()
        .with("LIMITS__SESSION_ATTACHMENT_BYTES", "1000")
        .start()
        .await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
        gateway.address(),
        page.token.as_deref().unwrap(),
    );
    let mut wire = gateway.wire().await;
    let answer = wire.writes(&head).await.reads_some().await;
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    are_arriving(&gateway, 0).await;
    // Whoever does not ask first reads why, all the same.
    let refused = page.brings(&session, "x", "text/plain", vec![b'x'; 1_000_000]);
    let details = refused.await.refuses(422, "VALIDATION_ERROR").json()["details"].clone();
    assert_eq!(
        details,
        json!({ "limit": "sessionAttachmentBytes", "max": 1000, "actual": 1_000_000 })
    );
    let fits = page.brings(&session, "x", "text/plain", vec![b'x'; 1000]);
    fits.await.is(201);
}

/// How large the file in a form is, is known only when it is there.
#[tokio::test]
async fn what_is_refused_when_it_is_there_goes_and_nothing_else() {
    let gateway = Settings::new()
        .with("LIMITS__SESSION_ATTACHMENT_BYTES", "1000")
        .start()
        .await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
    let form = |letter: &str| {
        let text = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n{}\r\n--XX--\r\n",
            letter.repeat(600),
        );
        page.brings(
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
async fn a_form_comes_to_its_file_soon() {
    let gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
    let form = |foreword: usize| {
        let text = format!(
            "--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{}\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"C:\\\\a\\\\b/cat.txt\"\r\n\r\n{}\r\n--XX--\r\n",
            "n".repeat(foreword),
            "f".repeat(500_000),
        );
        page.brings(
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
async fn a_file_is_called_by_its_name_and_not_by_its_place() {
    let gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
    for (given, name) in [
        ("..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("C:%5Cmia%5Ccat.png", "cat.png"),
    ] {
        let made = page.brings(&session, given, "text/plain", b"x".into());
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
        let refused = page.brings(&session, given, "text/plain", b"x".into());
        let problem = refused.await.refuses(422, "VALIDATION_ERROR").json();
        assert_eq!(problem["details"]["field"], "name", "{given}");
    }
    // The same for what is in a prompt itself.
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
    let told = page.gets(&format!("/api/sessions/{session}/events")).await;
    assert!(told.text.contains("\"cat.txt\""), "{}", told.text);
    assert!(!told.text.contains("/home/mia"), "{}", told.text);
}

#[tokio::test]
async fn a_body_that_is_malformed_is_not_one_that_is_late() {
    let gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let session = page.has_a_session().await;
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
        let mut wire = gateway.wire().await;
        wire.writes(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n",
            gateway.address(),
        ))
        .await;
        let (answer, _) = wire.reads_to_the_end().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        assert!(answer.contains("INVALID_MESSAGE"), "{path}: {answer}");
    }
    // A name that is no text, in the head of a form.
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

/// Asks for something and reads none of it, with little room for what is not read.
async fn asks_and_reads_nothing(gateway: &Gateway, token: &str, path: &str) -> TcpStream {
    let small = TcpSocket::new_v4().unwrap();
    small.set_recv_buffer_size(4096).unwrap();
    let address = gateway.address();
    let mut stream = small.connect(address).await.unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn an_export_breaks_off_for_somebody_who_is_shut_out_meanwhile() {
    const CHUNKS: usize = 300 * 20_000;
    let gateway = Gateway::start().await;
    for name in ["mia", "ben"] {
        gateway.has_user(name, "member");
    }
    let (mia, ben) = (gateway.browser("mia").await, gateway.browser("ben").await);
    let mut member = mia.enters("").await;
    member.prompts("/chunks 300 20000").await;
    member.sees_run_end().await;
    let session = member.session();
    mia.shares(&session, "ben", "viewer").await;
    let path = format!("/api/sessions/{session}/export");
    assert!(ben.gets(&path).await.is(200).text.len() > CHUNKS);

    let token = ben.token.clone().unwrap();
    let mut export = asks_and_reads_nothing(&gateway, &token, &path).await;
    export.readable().await.unwrap();
    let grant = format!("/api/sessions/{session}/grants/ben");
    mia.sends("DELETE", &grant, None).await.is(204);
    let mut read = Vec::new();
    let reading = export.read_to_end(&mut read);
    // A reset ends it as well.
    drop(tokio::time::timeout(Duration::from_secs(20), reading).await);
    assert!(read.starts_with(b"HTTP/1.1 200"));
    assert!(read.len() < CHUNKS / 2, "{} bytes", read.len());
    assert!(!read.ends_with(b"0\r\n\r\n"), "it does not look complete");
}

#[tokio::test]
async fn a_stop_waits_for_no_file() {
    let mut gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let token = page.token.clone().unwrap();
    let session = page.has_a_session().await;
    let large = page.brings(&session, "x", "text/plain", vec![b'x'; 10_000_000]);
    let large = large.await.is(201).json();
    let small = page.brings(&session, "x", "text/plain", vec![b'x'; 300_000]);
    let small = small.await.is(201).json();
    let query = format!("?session={session}");
    let mut member = page.enters(&query).await;
    member.prompts("/chunks 300 20000").await;
    member.sees_run_end().await;
    drop(member);

    let _upload = begins(&gateway, &token, &session, 2).await;
    are_arriving(&gateway, 1).await;
    let mut unread = Vec::new();
    for file in [&large, &small] {
        let id = file["id"].as_str().unwrap();
        let path = format!("/api/sessions/{session}/attachments/{id}");
        unread.push(asks_and_reads_nothing(&gateway, &token, &path).await);
    }
    let path = format!("/api/sessions/{session}/export");
    unread.push(asks_and_reads_nothing(&gateway, &token, &path).await);
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
