//! An exporter against a collector that answers one request at a time.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// An exporter with three quick attempts, and the address for its collector.
async fn exporter() -> (Exporter, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), endpoint)];
    let exporter = Exporter {
        destination: Destination::from_variables(variables).unwrap().unwrap(),
        connector: None,
        waiting: mpsc::channel(1).1,
        clock: Clock::system(),
        backoff: Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(2),
            attempts: 3,
        },
        exported: Counter::default(),
        rejected: Counter::default(),
        not_delivered: Counter::default(),
        is_reachable: true,
    };
    (exporter, listener)
}

/// Answers one request with this status and closes at once.
async fn answers(listener: &TcpListener, status: &str) {
    let (mut line, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    // Every body ends like this, with or without spans.
    while !asked.ends_with(b"}]}") && !asked.ends_with(b"{}") {
        assert_ne!(line.read_buf(&mut asked).await.unwrap(), 0);
    }
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    line.write_all(answer.as_bytes()).await.unwrap();
}

async fn span() -> Vec<Finished> {
    let (queue, mut waiting) = mpsc::channel(1);
    let clock = Clock::system();
    let tracer = Tracer::new(
        super::super::sampler::Sampler::default(),
        clock,
        queue,
        Counter::default(),
    );
    drop(tracer.enter("test", None));
    vec![waiting.recv().await.unwrap()]
}

#[tokio::test]
async fn an_answer_counts_even_if_the_collector_closes_at_once() {
    let (exporter, listener) = exporter().await;
    let sending = exporter.send(Bytes::from_static(b"{}"));
    let (sent, ()) = tokio::join!(sending, answers(&listener, "200 OK"));
    sent.unwrap();
}

#[tokio::test]
async fn a_batch_retried_too_often_is_lost_and_counted() {
    let (mut exporter, listener) = exporter().await;
    let (mut batch, never) = (span().await, CancellationToken::new());
    let busy = async {
        for _ in 0..3 {
            answers(&listener, "503 Service Unavailable").await;
        }
    };
    tokio::join!(exporter.export(&mut batch, &never), busy);
    assert_eq!(exporter.not_delivered.get(), 1);
    assert_eq!((exporter.exported.get(), exporter.rejected.get()), (0, 0));
}

#[tokio::test]
async fn a_rejected_batch_is_not_sent_again() {
    let (mut exporter, listener) = exporter().await;
    let (mut batch, never) = (span().await, CancellationToken::new());
    let refusing = answers(&listener, "400 Bad Request");
    tokio::join!(exporter.export(&mut batch, &never), refusing);
    assert_eq!(exporter.rejected.get(), 1);
    assert_eq!(
        (exporter.exported.get(), exporter.not_delivered.get()),
        (0, 0)
    );
}

#[tokio::test]
async fn finishing_does_not_wait_for_a_retry_delay() {
    let (mut exporter, listener) = exporter().await;
    exporter.backoff.first = Duration::from_hours(1);
    exporter.backoff.longest = Duration::from_hours(1);
    let (mut batch, finish) = (span().await, CancellationToken::new());
    let ending = async {
        answers(&listener, "503 Service Unavailable").await;
        finish.cancel();
        answers(&listener, "200 OK").await;
    };
    tokio::join!(exporter.export(&mut batch, &finish), ending);
    assert_eq!(exporter.exported.get(), 1);
}
