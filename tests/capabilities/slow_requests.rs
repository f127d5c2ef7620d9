//! Connections that do not get on with it.

use std::time::Duration;

use crate::actors::Settings;

fn short() -> Settings {
    Settings::new()
        .with("SERVER__HEADER_TIMEOUT_MS", "300")
        .with("SERVER__BODY_TIMEOUT_MS", "300")
}

#[tokio::test]
async fn a_half_sent_head_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    for half in ["", "GET", "GET / HTTP/1.1\r\nHost: x\r\n"] {
        let mut wire = gateway.wire().await;
        wire.writes(half).await;
        let (_, after) = wire.reads_to_the_end().await;
        assert!(
            after >= Duration::from_millis(250) && after < Duration::from_secs(3),
            "{half:?}: {after:?}"
        );
    }
}

#[tokio::test]
async fn a_head_that_drips_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    let mut wire = gateway.wire().await;
    let dripping = async {
        loop {
            if !wire.tries("x").await {
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
    let mut wire = gateway.wire().await;
    wire.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        gateway.address()
    ))
    .await;
    let (answer, after) = wire.reads_to_the_end().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("INVALID_MESSAGE"), "{answer}");
    assert!(
        after >= Duration::from_millis(250) && after < Duration::from_secs(3),
        "{after:?}"
    );
}

#[tokio::test]
async fn a_body_that_drips_is_closed_at_its_deadline() {
    let gateway = short().start().await;
    let mut wire = gateway.wire().await;
    wire.writes(&format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
        gateway.address()
    ))
    .await;
    let dripping = async {
        while wire.tries(" ").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), dripping)
        .await
        .expect("the connection is closed");
}

#[tokio::test]
async fn waiting_connections_do_not_keep_others_out() {
    let gateway = short().start().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut wire = gateway.wire().await;
        wire.writes("GET / HTTP/1.1\r\n").await;
        idle.push(wire);
    }
    let started = std::time::Instant::now();
    gateway.visitor().gets("/healthz").await.is(200);
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}
