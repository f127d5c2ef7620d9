//! Slow requests: heads and bodies that stall or drip are closed at their deadline.

use std::time::Duration;

use crate::actors::Settings;

fn short() -> Settings {
    Settings::new()
        .with("SERVER__HEADER_TIMEOUT_MS", "300")
        .with("SERVER__BODY_TIMEOUT_MS", "300")
}

#[tokio::test]
async fn a_half_sent_request_head_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    for half in ["", "GET", "GET / HTTP/1.1\r\nHost: x\r\n"] {
        let mut tcp = gateway.raw_tcp().await;
        tcp.writes(half).await;
        let (_, after) = tcp.reads_to_end().await;
        assert!(
            after >= Duration::from_millis(250) && after < Duration::from_secs(3),
            "{half:?}: {after:?}"
        );
    }
}

#[tokio::test]
async fn a_dripping_request_head_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    let mut tcp = gateway.raw_tcp().await;
    let dripping = async {
        loop {
            if !tcp.tries_to_write("x").await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), dripping)
        .await
        .expect("the connection is closed");
}

#[tokio::test]
async fn a_half_sent_body_is_answered_and_closed_at_its_deadline() {
    let gateway = short().start().await;
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        gateway.address()
    ))
    .await;
    let (answer, after) = tcp.reads_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("INVALID_MESSAGE"), "{answer}");
    assert!(
        after >= Duration::from_millis(250) && after < Duration::from_secs(3),
        "{after:?}"
    );
}

#[tokio::test]
async fn a_dripping_body_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
        gateway.address()
    ))
    .await;
    let dripping = async {
        while tcp.tries_to_write(" ").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), dripping)
        .await
        .expect("the connection is closed");
}

#[tokio::test]
async fn slow_connections_do_not_block_others() {
    let gateway = short().start().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut tcp = gateway.raw_tcp().await;
        tcp.writes("GET / HTTP/1.1\r\n").await;
        idle.push(tcp);
    }
    let started = std::time::Instant::now();
    gateway.anonymous().gets("/healthz").await.is(200);
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}
