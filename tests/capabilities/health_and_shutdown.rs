//! Health and shutdown: probes, access to metrics, log format, and stopping.

use std::time::{Duration, Instant};

use crate::actors::{Gateway, PASSWORD, Settings};
use crate::ports::free_port;

#[tokio::test]
async fn probes_report_liveness_and_readiness() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    assert_eq!(
        visitor.gets("/healthz").await.is(200).json()["status"],
        "ok"
    );
    let ready = visitor.gets("/readyz").await.is(200).json();
    assert_eq!(ready["components"]["database"], "ok");
    let version = visitor.gets("/version").await.is(200).json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(gateway.prints(&["health"]).contains("ok"));
}

#[tokio::test]
async fn metrics_need_an_administrator_or_the_scrape_token() {
    let token = "a-long-enough-scrape-token";
    let gateway = Settings::new().with("METRICS__TOKEN", token).start().await;
    gateway
        .anonymous()
        .gets("/metrics")
        .await
        .refuses(401, "AUTH_FAILED");
    let mut scraper = gateway.anonymous();
    scraper.token = Some(token.to_owned());
    let metrics = scraper.gets("/metrics").await.is(200);
    assert!(
        metrics
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    for name in [
        "switchboard_http_requests_total",
        "switchboard_auth_logins_total",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.text.contains(name), "{name} in {}", metrics.text);
    }
    scraper.me().await.refuses(401, "AUTH_FAILED");
    gateway
        .logged_in("root")
        .await
        .gets("/metrics")
        .await
        .is(200);
}

#[tokio::test]
async fn metrics_can_have_a_listener_of_their_own() {
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], free_port()));
    let gateway = Settings::new()
        .with("METRICS__LISTEN", &free.to_string())
        .start()
        .await;
    let scraper = crate::actors::HttpClient::new(free);
    assert!(
        scraper
            .gets("/metrics")
            .await
            .is(200)
            .text
            .contains("process_open_fds")
    );
    assert_eq!(scraper.gets("/api/auth/me").await.status, 404);
    gateway
        .anonymous()
        .gets("/metrics")
        .await
        .refuses(401, "AUTH_FAILED");
}

#[tokio::test]
async fn the_metrics_listener_answers_to_its_own_names_only() {
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _gateway = Settings::new()
        .with("METRICS__LISTEN", &free.to_string())
        .with("METRICS__ALLOWED_HOSTS", "metrics.internal")
        .start()
        .await;
    for (host, status) in [
        (free.to_string(), "200"),
        (format!("localhost:{}", free.port()), "200"),
        (format!("metrics.internal:{}", free.port()), "200"),
        (format!("rebound.example.org:{}", free.port()), "421"),
        ("rebound.example.org".to_owned(), "421"),
    ] {
        let mut tcp = crate::actors::RawTcp::connect(free).await;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        tcp.writes(&request).await;
        let (answer, _) = tcp.reads_to_end().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{host}: {answer}");
        let has_figures = answer.contains("process_open_fds");
        assert_eq!(has_figures, status == "200", "{host}: {answer}");
    }
}

#[tokio::test]
async fn the_request_id_of_a_response_is_in_the_log() {
    let gateway = Settings::new().with("LOG__LEVEL", "debug").start().await;
    let mut visitor = gateway.anonymous();
    visitor
        .headers
        .push(("x-request-id", "chosen-by-a-stranger".to_owned()));
    let answer = visitor.gets("/api/nothing").await.refuses(404, "NOT_FOUND");
    let id = answer.header("x-request-id").to_owned();
    assert!(id.starts_with("req_"), "{id}");
    assert!(gateway.log().contains(&id));
}

#[tokio::test]
async fn logs_are_json_and_contain_no_secret() {
    let gateway = Settings::without_admin()
        .with("LOG__LEVEL", "trace")
        .start()
        .await;
    let token = crate::first_run::link_token(gateway.startup_output());
    let mut ada = gateway.anonymous();
    let body = serde_json::json!({ "token": token, "username": "ada", "password": PASSWORD });
    let made = ada.posts("/api/setup", body).await;
    ada.stores_login(made).is(200);
    ada.logs_in("ada", "a wrong password").await.is(401);
    ada.logs_in("ada", PASSWORD).await.is(200);
    ada.refreshes().await.is(200);
    ada.me().await.is(200);
    let ticket = ada.sends("POST", "/api/auth/ticket", None).await.json();
    let log = gateway.log();
    let cookie = ada.cookie.clone().unwrap();
    for secret in [
        PASSWORD,
        "a wrong password",
        &token,
        ada.token.as_deref().unwrap(),
        cookie.split('=').nth(1).unwrap(),
        ticket["ticket"].as_str().unwrap(),
    ] {
        assert!(!log.contains(secret), "a secret is in the log");
    }
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("{line}"));
    }
    assert!(log.lines().count() > 3, "{log}");
}

#[tokio::test]
async fn shutdown_lets_requests_finish_and_exits_with_0() {
    let mut gateway = Gateway::start().await;
    let mut late = gateway.anonymous();
    let mut tcp = gateway.raw_tcp().await;
    let body = format!(r#"{{"username":"root","password":"{PASSWORD}"}}"#);
    tcp.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        gateway.address(),
        body.len(),
        &body[..5],
    ))
    .await;
    late.logs_in("root", PASSWORD).await.is(200);
    gateway.signal("-TERM");
    let refused = async {
        while tokio::net::TcpStream::connect(gateway.address())
            .await
            .is_ok()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), refused)
        .await
        .expect("no new connections");
    tcp.writes(&body[5..]).await;
    let (answer, _) = tcp.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(gateway.exit_code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_exits_at_once() {
    let mut gateway = Settings::new()
        .with("SERVER__SHUTDOWN_GRACE_SECS", "600")
        .start()
        .await;
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
        gateway.address()
    ))
    .await;
    gateway.anonymous().gets("/healthz").await.is(200);
    gateway.signal("-INT");
    while !gateway.log().contains("stopping") {
        tokio::task::yield_now().await;
    }
    let started = Instant::now();
    gateway.signal("-INT");
    assert_eq!(gateway.exit_code(), Some(0));
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let mut gateway = Settings::new()
        .with("SERVER__SHUTDOWN_GRACE_SECS", "600")
        .start()
        .await;
    let mut idle = gateway.raw_tcp().await;
    idle.writes(&format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n",
        gateway.address()
    ))
    .await;
    assert!(idle.reads_some().await.starts_with("HTTP/1.1 200"));
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
}

#[tokio::test]
async fn a_killed_gateway_restarts_with_all_its_data() {
    let mut gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mut mia = gateway.logged_in("mia").await;
    gateway.signal("-KILL");
    gateway.restart();
    let token = mia.token.take();
    mia = gateway.anonymous();
    mia.token = token;
    mia.me().await.is(200);
    gateway.logged_in("mia").await.me().await.is(200);
}
