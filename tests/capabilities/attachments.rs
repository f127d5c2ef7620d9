//! Attachments: upload, download, references in prompts, quotas, and deletion when unreferenced.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::Response;
use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, HttpResponse, Settings, WsClient};

const MAX_FILE_BYTES: usize = 10_485_760;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000IHDR";

impl HttpClient {
    pub(crate) async fn uploads(
        &self,
        session: &str,
        name: &str,
        content: impl Into<Vec<u8>>,
    ) -> HttpResponse {
        let path = format!("/api/sessions/{session}/attachments?name={name}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("http://{}{path}", self.address()))
            .bearer_auth(self.token.as_deref().unwrap())
            .header("content-type", "text/html")
            .body(content.into());
        let response = request.send().await.unwrap();
        HttpResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) async fn downloads(&self, session: &str, attachment: &Value) -> Response {
        let id = attachment["id"].as_str().unwrap();
        let path = format!("/api/sessions/{session}/attachments/{id}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .get(format!("http://{}{path}", self.address()))
            .bearer_auth(self.token.as_deref().unwrap());
        request.send().await.unwrap()
    }
}

/// The name of every file below the attachments directory.
fn files(gateway: &Gateway) -> Vec<String> {
    let mut found = Vec::new();
    let mut places: Vec<PathBuf> = vec![gateway.sqlite_file().with_file_name("attachments")];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                places.push(entry.path());
            } else {
                found.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    found
}

/// Polls until the files are as wanted.
async fn sees_files(gateway: &Gateway, wanted: impl Fn(&[String]) -> bool) {
    let started = Instant::now();
    loop {
        let found = files(gateway);
        if wanted(&found) {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{found:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_file_downloads_as_it_was_uploaded() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let made = page
        .uploads(&session, "a%20b.png", PNG)
        .await
        .is(201)
        .json();
    assert_eq!(made["name"], "a b.png");
    assert_eq!(
        made["type"], "image/png",
        "by its content, not by its header"
    );
    assert_eq!(made["size"], PNG.len());
    let sha256 = made["sha256"].as_str().unwrap().to_owned();
    assert_eq!(files(&gateway), std::slice::from_ref(&sha256));
    let path = format!("/api/sessions/{session}/attachments");
    let listed = page.gets(&path).await.is(200).json();
    assert_eq!(listed["attachments"], json!([made]));

    gateway.restart();
    let page = gateway.logged_in("root").await;
    let response = page.downloads(&session, &made).await;
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "image/png");
    assert_eq!(
        header("content-disposition"),
        "inline; filename*=UTF-8''a%20b.png"
    );
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-security-policy").starts_with("sandbox"));
    assert_eq!(header("etag"), format!("\"{sha256}\""));
    assert_eq!(response.bytes().await.unwrap(), PNG);
    let mut page = page;
    page.headers
        .push(("if-none-match", format!("\"{sha256}\"")));
    let id = made["id"].as_str().unwrap();
    page.gets(&format!("{path}/{id}")).await.is(304);
    for known in [
        format!("W/\"{sha256}\""),
        format!("\"x\", \"{sha256}\""),
        "*".into(),
    ] {
        page.headers.pop();
        page.headers.push(("if-none-match", known));
        page.gets(&format!("{path}/{id}")).await.is(304);
    }
}

#[tokio::test]
async fn a_multipart_form_uploads_like_a_raw_body() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let sends = async |query: &str, body: Vec<u8>| {
        let path = format!("/api/sessions/{session}/attachments{query}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("http://{}{path}", gateway.address()))
            .bearer_auth(page.token.as_deref().unwrap())
            .header("content-type", "multipart/form-data; boundary=XX")
            .body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let form = |content: &[u8], end: &str| {
        let head = "--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cat.png\"\r\nContent-Type: text/html\r\n\r\n";
        [head.as_bytes(), content, end.as_bytes()].concat()
    };
    let end = "\r\n--XX--\r\n";
    let (status, text) = sends("", form(PNG, end)).await;
    assert_eq!(status, 201, "{text}");
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["name"], "cat.png");
    assert_eq!(made["type"], "image/png");
    let back = page.downloads(&session, &made).await;
    assert_eq!(back.bytes().await.unwrap(), PNG);

    assert_eq!(
        sends("", form(&vec![b'x'; MAX_FILE_BYTES], end)).await.0,
        201
    );
    assert_eq!(files(&gateway).len(), 2);
    assert_eq!(
        sends("", form(&vec![b'y'; MAX_FILE_BYTES + 1], end))
            .await
            .0,
        413
    );
    assert_eq!(sends("", form(b"cut", "")).await.0, 400);
    assert_eq!(sends("", b"--XX--\r\n".to_vec()).await.0, 422);
    assert_eq!(files(&gateway).len(), 2, "nothing is left of those");
}

#[tokio::test]
async fn files_that_could_contain_script_are_never_served_inline() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    for (name, content, kind) in [
        (
            "x.html",
            "<script>alert(1)</script>",
            "text/plain; charset=utf-8",
        ),
        (
            "x.svg",
            "<svg xmlns='http://www.w3.org/2000/svg'/>",
            "text/plain; charset=utf-8",
        ),
        ("x.pdf", "%PDF-1.7", "application/pdf"),
        ("x.png", "\0html", "application/octet-stream"),
    ] {
        let made = page.uploads(&session, name, content).await.is(201).json();
        let response = page.downloads(&session, &made).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), kind, "{name}");
        let disposition = header("content-disposition");
        assert!(
            disposition.starts_with("attachment;"),
            "{name}: {disposition}"
        );
    }
}

#[tokio::test]
async fn the_largest_file_is_accepted_and_one_byte_more_leaves_nothing() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let refused = page
        .uploads(&session, "big", vec![b'x'; MAX_FILE_BYTES + 1])
        .await;
    let refused = refused.refuses(413, "VALIDATION_ERROR").json();
    assert_eq!(
        refused["details"],
        json!({ "limit": "attachmentBytes", "max": MAX_FILE_BYTES, "actual": MAX_FILE_BYTES + 1 })
    );
    // A far too large body is refused before it arrives.
    let mut tcp = gateway.raw_tcp().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        gateway.address(),
        page.token.as_deref().unwrap(),
        3 * MAX_FILE_BYTES
    );
    let answer = tcp.writes(&head).await.reads_some().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(files(&gateway), [""; 0]);
    let made = page
        .uploads(&session, "big", vec![b'x'; MAX_FILE_BYTES])
        .await;
    let made = made.is(201).json();
    assert_eq!(made["size"], MAX_FILE_BYTES);
    let back = page.downloads(&session, &made).await;
    assert_eq!(back.bytes().await.unwrap().len(), MAX_FILE_BYTES);
    for name in ["", "a%00b", "a%0Ab", &"x".repeat(256)] {
        page.uploads(&session, name, "x")
            .await
            .refuses(422, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn an_aborted_upload_leaves_nothing() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1000000\r\n\r\n{}",
        gateway.address(),
        page.token.as_deref().unwrap(),
        "x".repeat(100_000)
    );
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&head).await;
    sees_files(&gateway, |files| files.len() == 1).await;
    assert!(files(&gateway)[0].starts_with("tmp-"));
    drop(tcp);
    sees_files(&gateway, <[String]>::is_empty).await;

    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&head).await;
    sees_files(&gateway, |files| files.len() == 1).await;
    gateway.signal("-KILL");
    gateway.restart();
    assert_eq!(files(&gateway), [""; 0]);
    let listed = gateway
        .logged_in("root")
        .await
        .gets(&format!("/api/sessions/{session}/attachments"))
        .await;
    assert_eq!(listed.is(200).json()["attachments"], json!([]));
}

/// Takes longer than any other request may, as long as bytes arrive. Runs in real time.
#[tokio::test]
async fn a_slow_upload_is_not_timed_out() {
    let gateway = Settings::new()
        .with("SERVER__BODY_TIMEOUT_MS", "500")
        .with("SERVER__REQUEST_TIMEOUT_MS", "500")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let head = format!(
        "POST /api/sessions/{session}/attachments?name=x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: 10\r\n\r\n",
        gateway.address(),
        page.token.as_deref().unwrap(),
    );
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&head).await;
    let mut beat = tokio::time::interval(Duration::from_millis(150));
    for _ in 0..10 {
        beat.tick().await;
        tcp.writes("x").await;
    }
    let (answer, _) = tcp.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[tokio::test]
async fn quotas_are_exact_under_concurrent_uploads() {
    let gateway = Settings::new()
        .with("LIMITS__SESSION_ATTACHMENT_BYTES", "1000")
        .with("LIMITS__USER_ATTACHMENT_BYTES", "1500")
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let contents: Vec<String> = (0..10)
        .map(|number| number.to_string().repeat(200))
        .collect();
    let uploads = contents.iter().map(async |content| {
        loop {
            // One user may have two uploads at a time.
            let answer = page.uploads(&session, "x", content.as_str()).await;
            if answer.status != 503 {
                return answer;
            }
        }
    });
    let answers = futures_util::future::join_all(uploads).await;
    let (stored, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!(stored.len(), 5);
    for answer in refused {
        let details = answer.refuses(422, "VALIDATION_ERROR").json()["details"].clone();
        assert_eq!(
            details,
            json!({ "limit": "sessionAttachmentBytes", "max": 1000, "actual": 1200 })
        );
    }
    assert_eq!(files(&gateway).len(), 5, "what was refused is not there");

    let other = page.creates_session().await;
    page.uploads(&other, "x", "a".repeat(500)).await.is(201);
    let refused = page.uploads(&other, "x", "b").await;
    let details = refused.refuses(422, "VALIDATION_ERROR").json()["details"].clone();
    assert_eq!(
        details,
        json!({ "limit": "userAttachmentBytes", "max": 1500, "actual": 1501 })
    );
    let mia = gateway.logged_in("mia").await;
    let hers = mia.creates_session().await;
    mia.uploads(&hers, "x", "b").await.is(201);
    // Ending a session frees its quota.
    page.sends("DELETE", &format!("/api/sessions/{session}"), None)
        .await
        .is(204);
    page.uploads(&other, "x", "b").await.is(201);
}

#[tokio::test]
async fn a_user_without_access_can_neither_download_nor_upload() {
    let gateway = Gateway::start().await;
    gateway.adds_user("eve", "member");
    let page = gateway.logged_in("root").await;
    let eve = gateway.logged_in("eve").await;
    let session = page.creates_session().await;
    let own = eve.creates_session().await;
    let made = page.uploads(&session, "x", PNG).await.is(201).json();
    eve.uploads(&session, "x", "x")
        .await
        .refuses(404, "NOT_FOUND");
    eve.uploads("nonsense", "x", "x")
        .await
        .refuses(404, "NOT_FOUND");
    let listing = format!("/api/sessions/{session}/attachments");
    eve.gets(&listing).await.refuses(404, "NOT_FOUND");
    let id = made["id"].as_str().unwrap();
    for path in [
        format!("/api/sessions/{session}/attachments/{id}"),
        format!("/api/sessions/{own}/attachments/{id}"),
        format!("/api/sessions/{own}/attachments/nonsense"),
    ] {
        eve.gets(&path).await.refuses(404, "NOT_FOUND");
    }
    let visitor = gateway.anonymous();
    visitor.gets(&listing).await.refuses(401, "AUTH_FAILED");
    visitor
        .posts(&listing, json!({}))
        .await
        .refuses(401, "AUTH_FAILED");

    let prompt = |attachment: &Value| json!({ "text": "/echo x", "mode": "act", "attachments": [attachment] });
    let command = json!({
        "type": "SUBMIT_PROMPT", "payload": prompt(&json!({ "attachmentId": id })),
    });
    let path = format!("/api/sessions/{own}/commands");
    let refused = eve.posts(&path, command).await.is(422).json();
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR");
    assert_eq!(
        refused["payload"]["details"]["field"],
        "payload.attachments[0].attachmentId"
    );
}

#[tokio::test]
async fn a_prompt_references_its_files_by_id() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    // A draft session is stored with its first file.
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    let made = page.uploads(&member.session(), "cat.png", PNG).await;
    let made = made.is(201).json();
    let prompt = json!({
        "text": "/echo look", "mode": "act",
        "attachments": [
            { "attachmentId": made["id"] },
            { "name": "trace.txt", "type": "text/plain", "content": "line 1\nline 2" },
        ],
    });
    member.sends("SUBMIT_PROMPT", prompt).await;
    let starting = member.sees("TASK_STATUS_UPDATE").await;
    let shown = json!([
        { "attachmentId": made["id"], "name": "cat.png", "type": "image/png", "size": PNG.len() },
        { "name": "trace.txt", "type": "text/plain", "size": 13 },
    ]);
    assert_eq!(starting["payload"]["prompt"]["attachments"], shown);
    member.sees_run_end().await;
    let mut back = WsClient::connects(gateway.address(), &token, &member.position_after(0)).await;
    let again = back.sees("TASK_STATUS_UPDATE").await;
    assert_eq!(again, starting, "the same on every replay");

    let other = page.creates_session().await;
    let elsewhere = page.uploads(&other, "x", "x").await.is(201).json();
    let prompt = json!({
        "text": "/echo look", "mode": "act",
        "attachments": [{ "attachmentId": made["id"] }, { "attachmentId": elsewhere["id"] }],
    });
    member.sends("SUBMIT_PROMPT", prompt).await;
    let refused = member.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR");
    assert_eq!(
        refused["payload"]["details"]["field"],
        "payload.attachments[1].attachmentId"
    );
}

#[tokio::test]
async fn identical_files_are_stored_once_and_as_long_as_referenced() {
    let mut gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let page = gateway.logged_in("root").await;
    let mia = gateway.logged_in("mia").await;
    let (one, hers) = (page.creates_session().await, mia.creates_session().await);
    page.uploads(&one, "a", "the same").await.is(201);
    page.uploads(&one, "b", "the same").await.is(201);
    let made = mia.uploads(&hers, "c", "the same").await.is(201).json();
    mia.uploads(&hers, "d", "another").await.is(201);
    assert_eq!(files(&gateway).len(), 2);

    page.sends("DELETE", &format!("/api/sessions/{one}"), None)
        .await
        .is(204);
    gateway.restart();
    let mia = gateway.logged_in("mia").await;
    let back = mia.downloads(&hers, &made).await;
    assert_eq!(back.text().await.unwrap(), "the same");
    assert_eq!(files(&gateway).len(), 2);

    gateway.prints(&["user", "remove", "mia"]);
    gateway.restart();
    sees_files(&gateway, <[String]>::is_empty).await;
    // Later uploads stay.
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let made = page.uploads(&session, "a", "the same").await.is(201).json();
    gateway.restart();
    let page = gateway.logged_in("root").await;
    let back = page.downloads(&session, &made).await;
    assert_eq!(back.text().await.unwrap(), "the same");
}

#[tokio::test]
async fn a_backup_contains_the_files_and_can_be_started_from() {
    let gateway = Gateway::start().await;
    if gateway.is_on_postgres() {
        return;
    }
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let kept = page.uploads(&session, "kept", "kept").await.is(201).json();
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("copy.db");
    let reported = gateway.prints(&["backup", file.to_str().unwrap()]);
    assert!(
        reported.contains("copy.db.attachments") && reported.contains("(1)"),
        "{reported}"
    );
    // Later changes do not reach the copy.
    let path = format!("/api/sessions/{session}");
    page.sends("DELETE", &path, None).await.is(204);

    let mut restored = Gateway::start().await;
    restored.kill();
    let place = restored.sqlite_file();
    for ending in ["", "-wal", "-shm"] {
        let old = format!("{}{ending}", place.display());
        if std::fs::exists(&old).unwrap() {
            std::fs::remove_file(old).unwrap();
        }
    }
    std::fs::copy(&file, &place).unwrap();
    let attachments = place.with_file_name("attachments");
    std::fs::remove_dir_all(&attachments).unwrap();
    std::fs::rename(target.path().join("copy.db.attachments"), attachments).unwrap();
    restored.restart();
    let page = restored.logged_in("root").await;
    let response = page.downloads(&session, &kept).await;
    assert_eq!(response.text().await.unwrap(), "kept");

    let again = gateway.runs(&["backup", file.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
}

#[tokio::test]
async fn a_branch_keeps_its_files_when_the_original_session_is_deleted() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let file = page
        .uploads(&session, "plan", "the plan")
        .await
        .is(201)
        .json();
    let token = page.token.as_deref().unwrap();
    let mut member =
        WsClient::connects(page.address(), token, &format!("?session={session}")).await;
    let prompt = json!({
        "text": "/echo look",
        "mode": "act",
        "attachments": [{ "attachmentId": file["id"] }],
    });
    member.sends("SUBMIT_PROMPT", prompt.clone()).await;
    member.sees_run_end().await;
    member.sends("BRANCH_SESSION", json!({})).await;
    let reported = member.sees("ACK").await["payload"].clone();
    let branch = reported["sessionId"].as_str().unwrap();
    page.sends("DELETE", &format!("/api/sessions/{session}"), None)
        .await
        .is(204);
    let response = page.downloads(branch, &file).await;
    assert_eq!(response.text().await.unwrap(), "the plan");
    let mut there = WsClient::connects(page.address(), token, &format!("?session={branch}")).await;
    there.sends("SUBMIT_PROMPT", prompt).await;
    there.sees_run_end().await;
}

#[tokio::test]
async fn a_picture_that_is_none_reaches_no_runtime() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let mut member = WsClient::connects(gateway.address(), &page.token.unwrap(), "").await;
    let text = |media_type: &str| json!({ "name": "x", "type": media_type, "content": "a b" });
    for (name, value, field) in [
        ("images", json!(["aGVsbG8="]), "payload.images[0]"),
        (
            "attachments",
            json!([text("text/plain"), text("image/png")]),
            "payload.attachments[1].content",
        ),
    ] {
        let mut prompt = json!({ "text": "/echo look", "mode": "act" });
        prompt[name] = value;
        member.sends("SUBMIT_PROMPT", prompt).await;
        let refused = member.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(refused["code"], "VALIDATION_ERROR");
        assert_eq!(refused["details"]["field"], field, "{refused}");
    }
    member.sees_nothing().await;
    let file = json!({
        "name": "a.bin", "type": "application/x-own", "content": "AP8=", "encoding": "base64",
    });
    let prompt = json!({ "text": "/echo look", "mode": "act", "attachments": [file] });
    member.sends("SUBMIT_PROMPT", prompt).await;
    let starting = member.sees("TASK_STATUS_UPDATE").await;
    let shown = json!([{ "name": "a.bin", "type": "application/x-own", "size": 2 }]);
    assert_eq!(starting["payload"]["prompt"]["attachments"], shown);
}
