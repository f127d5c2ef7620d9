//! Bad input: refused with the right code, changing nothing.

use serde_json::{Value, json};

use crate::actors::{Gateway, PASSWORD, Settings};

async fn raw(gateway: &Gateway, path: &str, content_type: &str, body: &str) -> String {
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        gateway.address(),
        body.len(),
    ))
    .await;
    tcp.reads_to_end().await.0
}

#[track_caller]
fn refused_as(answer: &str, status: u16, code: &str) {
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["code"], code, "{body}");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_an_invalid_message() {
    let gateway = Gateway::start().await;
    for body in [
        "",
        "{",
        "nonsense",
        "{\"username\":\"root\",}",
        "{\"username\":\"\\ud800\",\"password\":\"x\"",
        "{\"username\":\"root\",\"password\":\"x\"}}",
    ] {
        let answer = raw(&gateway, "/api/auth/login", "application/json", body).await;
        refused_as(&answer, 400, "INVALID_MESSAGE");
    }
    let half = "{\"username\":\"\\ud800\",\"password\":\"x\"}";
    let answer = raw(&gateway, "/api/auth/login", "application/json", half).await;
    refused_as(&answer, 422, "VALIDATION_ERROR");
    let answer = raw(&gateway, "/api/auth/login", "text/plain", "{}").await;
    refused_as(&answer, 415, "INVALID_MESSAGE");
    let answer = raw(
        &gateway,
        "/api/auth/login",
        "application/x-www-form-urlencoded",
        "username=root",
    )
    .await;
    refused_as(&answer, 415, "INVALID_MESSAGE");
}

#[tokio::test]
async fn a_wrong_type_is_refused_and_names_the_field() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    for (body, field) in [
        (json!({ "username": 7, "password": "x" }), "username"),
        (json!({ "username": "root", "password": null }), "password"),
        (json!({ "username": "root", "password": ["x"] }), "password"),
        (
            json!({ "username": "root", "password": "x", "sessionId": 1 }),
            "sessionId",
        ),
        (json!({ "username": "root" }), "."),
        (json!([]), "."),
        (json!("root"), "."),
        (json!(null), "."),
    ] {
        let refused = visitor
            .posts("/api/auth/login", body)
            .await
            .refuses(422, "VALIDATION_ERROR");
        assert_eq!(
            refused.json()["details"]["field"],
            field,
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn a_field_given_twice_is_refused() {
    let gateway = Gateway::start().await;
    let body = format!(r#"{{"username":"nobody","username":"root","password":"{PASSWORD}"}}"#);
    let answer = raw(&gateway, "/api/auth/login", "application/json", &body).await;
    refused_as(&answer, 422, "VALIDATION_ERROR");
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let gateway = Gateway::start().await;
    let body = json!({ "username": "root", "password": PASSWORD, "remember": true });
    gateway
        .anonymous()
        .posts("/api/auth/login", body)
        .await
        .is(200);
}

#[tokio::test]
async fn an_oversized_body_is_refused() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    let long = "x".repeat(70_000);
    visitor
        .posts(
            "/api/auth/login",
            json!({ "username": "root", "password": long }),
        )
        .await
        .refuses(413, "VALIDATION_ERROR");
    visitor
        .posts(
            "/api/auth/login",
            json!({ "username": "root", "password": "x".repeat(1025) }),
        )
        .await
        .refuses(422, "VALIDATION_ERROR");
    visitor
        .posts(
            "/api/auth/login",
            json!({ "username": "root", "password": "x".repeat(1024) }),
        )
        .await
        .refuses(401, "AUTH_FAILED");
    let mut tcp = gateway.raw_tcp().await;
    tcp.tries_to_write(&format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nX-Long: {}\r\n\r\n",
        gateway.address(),
        "x".repeat(100_000)
    ))
    .await;
    let (answer, _) = tcp.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn invalid_names_and_roles_are_refused() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    for body in [
        json!({ "username": "" }),
        json!({ "username": "a b" }),
        json!({ "username": "mia\u{0}" }),
        json!({ "username": "../mia" }),
        json!({ "username": "x".repeat(65) }),
        json!({ "username": "mia", "role": "root" }),
        json!({ "username": "mia", "password": "short" }),
    ] {
        root.posts("/api/admin/users", body)
            .await
            .refuses(422, "VALIDATION_ERROR");
    }
    assert_eq!(
        root.gets("/api/admin/users").await.json()["users"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn bad_paths_and_queries_get_problem_json() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    root.gets("/api/nothing").await.refuses(404, "NOT_FOUND");
    root.gets("/assets/nothing.js")
        .await
        .refuses(404, "NOT_FOUND");
    root.gets("/assets/..%2fCargo.toml")
        .await
        .refuses(404, "NOT_FOUND");
    root.gets("/api/admin/users/%ff")
        .await
        .refuses(404, "NOT_FOUND");
    root.gets("/api/admin/users/%00")
        .await
        .refuses(404, "NOT_FOUND");
    root.sends("DELETE", "/api/auth/logins/%ff", None)
        .await
        .refuses(404, "NOT_FOUND");
    root.gets("/api/admin/users?limit=many")
        .await
        .refuses(422, "VALIDATION_ERROR");
    root.gets("/api/admin/users?after=%00")
        .await
        .refuses(422, "VALIDATION_ERROR");
    root.sends("PUT", "/api/auth/login", None)
        .await
        .refuses(405, "INVALID_MESSAGE");
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_refused() {
    let gateway = Settings::new()
        .with("SERVER__PUBLIC_URL", "https://agents.example.org")
        .start()
        .await;
    let with = |name: &'static str, value: &str| {
        let mut browser = gateway.anonymous();
        browser.headers.push((name, value.to_owned()));
        browser
    };
    for host in [
        "agents.example.org",
        "localhost",
        "evil.example.org",
        "agents.example.org.evil.org",
        "127.0.0.1",
    ] {
        let answer = with("host", host).gets("/version").await;
        if host == "agents.example.org" {
            answer.is(200);
        } else {
            answer.refuses(421, "FORBIDDEN");
        }
        with("host", host).gets("/healthz").await.is(200);
    }
    let login = || json!({ "username": "root", "password": PASSWORD });
    for origin in [
        "https://evil.example.org",
        "http://agents.example.org",
        "null",
        "https://agents.example.org.evil.org",
    ] {
        with("origin", origin)
            .posts("/api/auth/login", login())
            .await
            .refuses(403, "FORBIDDEN");
    }
    with("origin", "https://agents.example.org")
        .posts("/api/auth/login", login())
        .await
        .is(200);
}

#[tokio::test]
async fn only_configured_origins_may_call_cross_origin() {
    let preflight = async |gateway: &Gateway| {
        let mut page = gateway.anonymous();
        page.headers = vec![
            ("origin", "https://tools.example.org".to_owned()),
            ("access-control-request-method", "POST".to_owned()),
            (
                "access-control-request-headers",
                "authorization,content-type".to_owned(),
            ),
        ];
        page.sends("OPTIONS", "/api/auth/login", None).await
    };
    let closed = Gateway::start().await;
    let refused = preflight(&closed).await.refuses(403, "FORBIDDEN");
    assert_eq!(refused.header("access-control-allow-origin"), "");
    let open = Settings::new()
        .with("SERVER__ALLOWED_ORIGINS", "https://tools.example.org")
        .start()
        .await;
    let allowed = preflight(&open).await.is(200);
    assert_eq!(
        allowed.header("access-control-allow-origin"),
        "https://tools.example.org"
    );
    assert_eq!(
        allowed.header("access-control-allow-credentials"),
        "",
        "cookies stay at home"
    );
    let headers = allowed.header("access-control-allow-headers");
    for name in ["if-none-match", "last-event-id"] {
        assert!(headers.contains(name), "{headers}");
    }
    let mut page = open.anonymous();
    page.headers = vec![("origin", "https://tools.example.org".to_owned())];
    let answer = page.gets("/version").await.is(200);
    let shown = answer.header("access-control-expose-headers");
    for name in ["etag", "retry-after"] {
        assert!(shown.contains(name), "{shown}");
    }
}

#[tokio::test]
async fn a_body_that_nests_too_deep_is_refused() {
    let gateway = Gateway::start().await;
    let nested = |depth: usize| {
        let extra = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"username":"root","password":"{PASSWORD}","extra":{extra}}}"#)
    };
    let answer = raw(&gateway, "/api/auth/login", "application/json", &nested(63)).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = raw(&gateway, "/api/auth/login", "application/json", &nested(64)).await;
    refused_as(&answer, 422, "VALIDATION_ERROR");
}

#[tokio::test]
async fn malformed_http_does_not_stop_the_gateway() {
    let gateway = Gateway::start().await;
    for garbage in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /api/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzz\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut tcp = gateway.raw_tcp().await;
        tcp.tries_to_write(garbage).await;
        tcp.tries_to_write("\r\n\r\n").await;
        let first = tcp.reads_some().await;
        assert!(
            !first.starts_with("HTTP/1.1 5") && !first.starts_with("HTTP/1.1 2"),
            "{garbage:?}: {first}"
        );
    }
    gateway.anonymous().gets("/healthz").await.is(200);
}
