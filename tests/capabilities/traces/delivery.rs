//! How spans reach a collector that is away, busy, silent, or behind TLS: and that nobody waits for it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

use super::exporting;
use crate::actors::{Authority, Collector, Gateway, Member, spans};

const PATIENCE: Duration = Duration::from_secs(20);

/// Somebody has a run; returns when it is over.
async fn works(gateway: &Gateway) {
    let page = gateway.browser("root").await;
    let mut root = Member::joins(page.address(), page.token.as_deref().unwrap(), "").await;
    root.prompts("/echo x").await;
    root.sees_run_end().await;
}

/// Spans that were lost for this reason.
async fn lost(gateway: &Gateway, reason: &str) -> u64 {
    let page = gateway.browser("root").await;
    let metrics = page.gets("/metrics").await.is(200).text;
    let name = format!("switchboard_trace_spans_lost_total{{reason=\"{reason}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap().parse().unwrap()
}

/// Waits until more are lost for this reason than so many, and returns how many.
async fn loses(gateway: &Gateway, reason: &str, more_than: u64) -> u64 {
    let growing = async {
        loop {
            let lost = lost(gateway, reason).await;
            if lost > more_than {
                return lost;
            }
        }
    };
    let grown = tokio::time::timeout(PATIENCE, growing).await;
    grown.unwrap_or_else(|_| panic!("no more than {more_than} {reason}: {}", gateway.log()))
}

/// Waits until the log says that.
async fn logs(gateway: &Gateway, words: &str) {
    let saying = async {
        while !gateway.log().contains(words) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let said = tokio::time::timeout(PATIENCE, saying).await;
    said.unwrap_or_else(|_| panic!("no {words} in {}", gateway.log()));
}

/// Bound and not listening: nobody else can have the port, and nobody answers.
fn nobody() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    (socket, endpoint)
}

#[tokio::test]
async fn spans_wait_for_a_collector_that_comes_up_later() {
    let (socket, endpoint) = nobody();
    let gateway = exporting(&endpoint).start().await;
    works(&gateway).await;
    // Said after the second attempt.
    logs(&gateway, "traces cannot be delivered").await;
    let collector = Collector::comes_up(socket);
    collector.has(&["submit_prompt", "run"]).await;
    logs(&gateway, "traces are delivered again").await;
    for reason in ["queue_full", "rejected", "not_delivered"] {
        assert_eq!(lost(&gateway, reason).await, 0, "{reason}");
    }
}

#[tokio::test]
async fn a_busy_collector_is_left_alone_for_as_long_as_it_asks() {
    let asked = Duration::from_secs(3);
    let collector = Collector::refusing(1, "503 Service Unavailable\r\nRetry-After: 3").await;
    let gateway = exporting(&collector.endpoint()).start().await;
    works(&gateway).await;
    collector.has(&["submit_prompt", "run"]).await;
    let [first, second] = &collector.deliveries()[..2] else {
        panic!("two deliveries");
    };
    assert_eq!((first.status, second.status), (Some(503), Some(200)));
    assert_eq!(first.body, second.body, "the same is sent again");
    let waited = second.at - first.at;
    assert!(waited >= asked, "{waited:?}");
    assert_eq!(lost(&gateway, "not_delivered").await, 0);
    // It passed: not worth a word.
    assert!(!gateway.log().contains("traces cannot be delivered"));
}

#[tokio::test]
async fn what_a_collector_refuses_for_good_is_counted_and_not_sent_again() {
    let collector = Collector::refusing(usize::MAX, "400 Bad Request").await;
    let gateway = exporting(&collector.endpoint()).start().await;
    works(&gateway).await;
    let first = loses(&gateway, "rejected", 0).await;
    works(&gateway).await;
    loses(&gateway, "rejected", first).await;
    let (mut seen, mut sent) = (BTreeSet::new(), 0);
    for delivery in collector.deliveries() {
        for span in spans(&delivery.body) {
            seen.insert(span["spanId"].as_str().unwrap().to_owned());
            sent += 1;
        }
    }
    assert_eq!(seen.len(), sent, "a span was sent twice");
    let told = gateway.log().matches("traces cannot be delivered").count();
    assert_eq!(told, 1, "{}", gateway.log());
    assert!(gateway.log().contains("it answers with status 400"));
}

#[tokio::test]
async fn a_collector_that_is_away_is_mentioned_once_and_disturbs_nobody() {
    let (_socket, endpoint) = nobody();
    let mut gateway = exporting(&endpoint)
        .with_variable("OTEL_BSP_MAX_QUEUE_SIZE", "1")
        .start()
        .await;
    // There is room for one, and more come: runs go on all the same.
    let mut before = 0;
    for _ in 0..3 {
        works(&gateway).await;
        before = loses(&gateway, "queue_full", before).await;
    }
    logs(&gateway, "traces cannot be delivered").await;
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    let told = gateway.log().matches("traces cannot be delivered").count();
    assert_eq!(told, 1, "{}", gateway.log());
}

#[tokio::test]
async fn a_collector_that_says_nothing_does_not_hold_up_the_end() {
    let collector = Collector::hanging().await;
    let mut gateway = exporting(&collector.endpoint())
        // An answer would be waited for until long after the test.
        .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")
        .start()
        .await;
    works(&gateway).await;
    collector
        .sees(|collector| !collector.deliveries().is_empty())
        .await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    // Two seconds for the last traces, and room for a busy machine.
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(
        gateway
            .log()
            .contains("the last traces were not delivered in time")
    );
}

#[tokio::test]
async fn a_collector_over_tls_is_one_that_the_operators_authority_vouches_for() {
    let authority = Authority::new();
    let collector = Collector::vouched_for_by(&authority).await;
    let stranger = Authority::new();
    let gateway = exporting(&collector.endpoint())
        .with_variable(
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            stranger.certificate().to_str().unwrap(),
        )
        .start()
        .await;
    works(&gateway).await;
    logs(&gateway, "traces cannot be delivered").await;
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
    works(&gateway).await;
    collector.has(&["submit_prompt", "run"]).await;
    let (head, _) = &collector.requests()[0];
    assert!(head.contains("x-key: secret word"), "{head}");
    assert!(!gateway.log().contains("secret word"));
}

#[tokio::test]
async fn without_an_authority_of_its_own_a_gateway_believes_only_the_public_ones() {
    let collector = Collector::vouched_for_by(&Authority::new()).await;
    let gateway = exporting(&collector.endpoint()).start().await;
    works(&gateway).await;
    logs(&gateway, "traces cannot be delivered").await;
    assert_eq!(collector.requests(), []);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_turns_traces_off_and_nothing_else() {
    let collector = Collector::vouched_for_by(&Authority::new()).await;
    for unusable in ["/nowhere/ca.pem", "/dev/null"] {
        let gateway = exporting(&collector.endpoint())
            .with_variable("OTEL_EXPORTER_OTLP_CERTIFICATE", unusable)
            .start()
            .await;
        logs(&gateway, "traces are off: the certificate").await;
        works(&gateway).await;
    }
    assert_eq!(collector.requests(), []);
}
