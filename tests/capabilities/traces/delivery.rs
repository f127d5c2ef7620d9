//! Trace delivery: a collector that is away, busy, silent or behind TLS, and runs that never wait for it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

use super::exporting;
use crate::actors::{CertificateAuthority, Collector, Gateway, WsClient, spans};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Completes one run.
async fn completes_run(gateway: &Gateway) {
    let page = gateway.logged_in("root").await;
    let mut root = WsClient::connects(page.address(), page.token.as_deref().unwrap(), "").await;
    root.prompts("/echo x").await;
    root.sees_run_end().await;
}

/// The counter of spans lost for this reason.
async fn lost_spans(gateway: &Gateway, reason: &str) -> u64 {
    let page = gateway.logged_in("root").await;
    let metrics = page.gets("/metrics").await.is(200).text;
    let name = format!("switchboard_trace_spans_lost_total{{reason=\"{reason}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap().parse().unwrap()
}

/// Waits until the counter exceeds `more_than`, and returns it.
async fn waits_for_loss(gateway: &Gateway, reason: &str, more_than: u64) -> u64 {
    let growing = async {
        loop {
            let lost = lost_spans(gateway, reason).await;
            if lost > more_than {
                return lost;
            }
        }
    };
    let grown = tokio::time::timeout(TIMEOUT, growing).await;
    grown.unwrap_or_else(|_| panic!("no more than {more_than} {reason}: {}", gateway.log()))
}

async fn waits_for_log(gateway: &Gateway, words: &str) {
    let saying = async {
        while !gateway.log().contains(words) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let printed = tokio::time::timeout(TIMEOUT, saying).await;
    printed.unwrap_or_else(|_| panic!("no {words} in {}", gateway.log()));
}

/// Bound and not listening: the port is reserved, and connections are refused.
fn unreachable_endpoint() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    (socket, endpoint)
}

#[tokio::test]
async fn spans_wait_for_a_collector_that_starts_later() {
    let (socket, endpoint) = unreachable_endpoint();
    let gateway = exporting(&endpoint).start().await;
    completes_run(&gateway).await;
    // Logged after the second attempt.
    waits_for_log(&gateway, "cannot deliver traces").await;
    let collector = Collector::start_on(socket);
    collector.receives_spans(&["submit_prompt", "run"]).await;
    waits_for_log(&gateway, "the trace collector is reachable again").await;
    for reason in ["queue_full", "rejected", "not_delivered"] {
        assert_eq!(lost_spans(&gateway, reason).await, 0, "{reason}");
    }
}

#[tokio::test]
async fn retry_after_of_a_busy_collector_is_honoured() {
    let asked = Duration::from_secs(3);
    let collector = Collector::refusing(1, "503 Service Unavailable\r\nRetry-After: 3").await;
    let gateway = exporting(&collector.endpoint()).start().await;
    completes_run(&gateway).await;
    collector.receives_spans(&["submit_prompt", "run"]).await;
    let [first, second] = &collector.deliveries()[..2] else {
        panic!("two deliveries");
    };
    assert_eq!((first.status, second.status), (Some(503), Some(200)));
    assert_eq!(first.body, second.body, "the same is sent again");
    let waited = second.at - first.at;
    assert!(waited >= asked, "{waited:?}");
    assert_eq!(lost_spans(&gateway, "not_delivered").await, 0);
    // It recovered: nothing is logged.
    assert!(!gateway.log().contains("cannot deliver traces"));
}

#[tokio::test]
async fn permanently_refused_spans_are_counted_and_not_resent() {
    let collector = Collector::refusing(usize::MAX, "400 Bad Request").await;
    let gateway = exporting(&collector.endpoint()).start().await;
    completes_run(&gateway).await;
    let first = waits_for_loss(&gateway, "rejected", 0).await;
    completes_run(&gateway).await;
    waits_for_loss(&gateway, "rejected", first).await;
    let (mut seen, mut sent) = (BTreeSet::new(), 0);
    for delivery in collector.deliveries() {
        for span in spans(&delivery.body) {
            seen.insert(span["spanId"].as_str().unwrap().to_owned());
            sent += 1;
        }
    }
    assert_eq!(seen.len(), sent, "a span was sent twice");
    let shown = gateway.log().matches("cannot deliver traces").count();
    assert_eq!(shown, 1, "{}", gateway.log());
    assert!(gateway.log().contains("it answers with status 400"));
}

#[tokio::test]
async fn an_unreachable_collector_is_logged_once_and_does_not_disturb_runs() {
    let (_socket, endpoint) = unreachable_endpoint();
    let mut gateway = exporting(&endpoint)
        .with_variable("OTEL_BSP_MAX_QUEUE_SIZE", "1")
        .start()
        .await;
    // The queue holds one and more come: runs complete all the same.
    let mut before = 0;
    for _ in 0..3 {
        completes_run(&gateway).await;
        before = waits_for_loss(&gateway, "queue_full", before).await;
    }
    waits_for_log(&gateway, "cannot deliver traces").await;
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    let shown = gateway.log().matches("cannot deliver traces").count();
    assert_eq!(shown, 1, "{}", gateway.log());
}

#[tokio::test]
async fn a_silent_collector_does_not_delay_shutdown() {
    let collector = Collector::hanging().await;
    let mut gateway = exporting(&collector.endpoint())
        // The response timeout outlasts the test.
        .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")
        .start()
        .await;
    completes_run(&gateway).await;
    collector
        .waits_until(|collector| !collector.deliveries().is_empty())
        .await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    // Two seconds for the last traces, plus slack for a busy machine.
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(
        gateway
            .log()
            .contains("the last traces could not be delivered in time")
    );
}

#[tokio::test]
async fn spans_are_exported_over_tls_with_the_operators_ca() {
    let authority = CertificateAuthority::new();
    let collector = Collector::with_tls(&authority).await;
    let stranger = CertificateAuthority::new();
    let gateway = exporting(&collector.endpoint())
        .with_variable(
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            stranger.certificate().to_str().unwrap(),
        )
        .start()
        .await;
    completes_run(&gateway).await;
    waits_for_log(&gateway, "cannot deliver traces").await;
    assert_eq!(collector.requests(), []);
    drop(gateway);

    let gateway = exporting(&collector.endpoint())
        .with_variable(
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            authority.certificate().to_str().unwrap(),
        )
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret%20word")
        .start()
        .await;
    completes_run(&gateway).await;
    collector.receives_spans(&["submit_prompt", "run"]).await;
    let (head, _) = &collector.requests()[0];
    assert!(head.contains("x-key: secret word"), "{head}");
    assert!(!gateway.log().contains("secret word"));
}

#[tokio::test]
async fn without_a_configured_ca_only_public_cas_are_trusted() {
    let collector = Collector::with_tls(&CertificateAuthority::new()).await;
    let gateway = exporting(&collector.endpoint()).start().await;
    completes_run(&gateway).await;
    waits_for_log(&gateway, "cannot deliver traces").await;
    assert_eq!(collector.requests(), []);
}

#[tokio::test]
async fn an_unreadable_ca_file_disables_only_tracing() {
    let collector = Collector::with_tls(&CertificateAuthority::new()).await;
    for unusable in ["/nowhere/ca.pem", "/dev/null"] {
        let gateway = exporting(&collector.endpoint())
            .with_variable("OTEL_EXPORTER_OTLP_CERTIFICATE", unusable)
            .start()
            .await;
        waits_for_log(
            &gateway,
            "traces are off: cannot use the collector's certificate",
        )
        .await;
        completes_run(&gateway).await;
    }
    assert_eq!(collector.requests(), []);
}
