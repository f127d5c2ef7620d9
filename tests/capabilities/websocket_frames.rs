//! WebSocket frames: RFC 6455 on the real `/ws` route, with the sections of the Autobahn suite that concern
//! a server without compression.

use std::time::Duration;

use crate::actors::{Gateway, HttpClient};
use crate::raw_websocket::{BINARY, CLOSE, FIN, PING, PONG, RawWebSocket, TEXT, close_code, frame};

const HEARTBEAT: &[u8] = br#"{"type":"HEARTBEAT","payload":{"x":"\u00e4"}}"#;

type Frames = &'static [(u8, &'static [u8])];

/// A client in a session that can send arbitrary bytes.
struct RawClient(RawWebSocket);

impl RawClient {
    async fn open(gateway: &Gateway) -> Self {
        Self::open_as(&gateway.logged_in("root").await).await
    }

    async fn open_as(user: &HttpClient) -> Self {
        let token = user.token.as_ref().unwrap();
        let headers = format!(
            "Authorization: Bearer {token}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
        );
        let mut raw = Self(RawWebSocket::open(user.address(), "/ws", &headers).await);
        assert!(
            !raw.0.answer.contains("sec-websocket-extensions"),
            "compression is never accepted: {}",
            raw.0.answer
        );
        let (opcode, ack) = raw.frame().await.unwrap();
        assert!(opcode == TEXT && ack.starts_with(b"{\"type\":\"CONNECTION_ACK\""));
        raw
    }

    async fn send(&mut self, first: u8, payload: &[u8]) {
        self.0.send(first, payload).await;
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes).await;
    }

    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        self.0.frame().await
    }

    /// The next frame answers a heartbeat: the message was accepted.
    async fn receives_heartbeat(&mut self) {
        let (opcode, payload) = self.frame().await.expect("an answer");
        let text = String::from_utf8(payload).unwrap();
        assert!(
            opcode == TEXT && text.contains("HEARTBEAT"),
            "{opcode}: {text}"
        );
    }

    /// Expects a close with one of these codes, then the end of the connection.
    #[track_caller]
    fn closes_with(self, codes: &'static [u16]) -> impl Future<Output = ()> {
        let mut raw = self;
        async move {
            loop {
                let Some((opcode, payload)) = raw.frame().await else {
                    panic!("closed without a word; expected {codes:?}");
                };
                if opcode != CLOSE {
                    continue;
                }
                let code = close_code(&payload);
                assert!(
                    code.is_some_and(|code| codes.contains(&code)),
                    "{code:?}, expected {codes:?}"
                );
                raw.send(FIN | CLOSE, &payload).await;
                assert!(raw.frame().await.is_none(), "the connection ends");
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_pong_carries_the_payload_of_its_ping() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    for payload in [&b""[..], b"hello", &[0, 255, 254, 0], &[b'x'; 125]] {
        raw.send(FIN | PING, payload).await;
        assert_eq!(raw.frame().await, Some((PONG, payload.to_vec())));
    }
    raw.send(FIN | PONG, b"unasked").await;
    raw.send(FIN | TEXT, HEARTBEAT).await;
    raw.receives_heartbeat().await;
    for number in 0..10 {
        raw.send(FIN | PING, &[number]).await;
    }
    for number in 0..10 {
        assert_eq!(raw.frame().await, Some((PONG, vec![number])));
    }
}

#[tokio::test]
async fn fragments_are_joined_into_one_message() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    for cut in [0, 1, 10, HEARTBEAT.len()] {
        raw.send(TEXT, &HEARTBEAT[..cut]).await;
        raw.send(FIN, &HEARTBEAT[cut..]).await;
        raw.receives_heartbeat().await;
    }
    raw.send(TEXT, &HEARTBEAT[..5]).await;
    for byte in &HEARTBEAT[5..] {
        raw.send(0, &[*byte]).await;
    }
    raw.send(FIN | PING, b"between").await;
    assert_eq!(raw.frame().await, Some((PONG, b"between".to_vec())));
    raw.send(FIN, b"").await;
    raw.receives_heartbeat().await;
}

#[tokio::test]
async fn a_message_may_arrive_one_byte_at_a_time() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    let mut bytes = vec![
        FIN | TEXT,
        0x80 | u8::try_from(HEARTBEAT.len()).unwrap(),
        0,
        0,
        0,
        0,
    ];
    bytes.extend(HEARTBEAT);
    for byte in bytes {
        raw.bytes(&[byte]).await;
    }
    raw.receives_heartbeat().await;
}

#[tokio::test]
async fn protocol_violations_close_the_socket() {
    let gateway = Gateway::start().await;
    let forbidden: [(&str, Frames); 12] = [
        ("reserved bit 1", &[(FIN | 0x40 | TEXT, HEARTBEAT)]),
        ("reserved bit 2", &[(FIN | 0x20 | TEXT, HEARTBEAT)]),
        ("reserved bit 3", &[(FIN | 0x10 | PING, b"x")]),
        ("opcode 3", &[(FIN | 3, b"x")]),
        ("opcode 7", &[(FIN | 7, b"")]),
        ("opcode 11", &[(FIN | 0xb, b"x")]),
        ("opcode 15", &[(FIN | 0xf, b"")]),
        ("a ping in pieces", &[(PING, b"x")]),
        ("a long ping", &[(FIN | PING, &[b'x'; 126])]),
        ("a piece of nothing", &[(FIN, b"x")]),
        (
            "a message inside a message",
            &[(TEXT, b"{"), (FIN | TEXT, b"}")],
        ),
        ("a close of one byte", &[(FIN | CLOSE, b"x")]),
    ];
    for (what, frames) in forbidden {
        let mut raw = RawClient::open(&gateway).await;
        for (first, payload) in frames {
            raw.send(*first, payload).await;
        }
        let closing = raw.closes_with(&[1002]);
        tokio::time::timeout(Duration::from_secs(10), closing)
            .await
            .unwrap_or_else(|_| panic!("{what}"));
    }
    let mut raw = RawClient::open(&gateway).await;
    raw.bytes(&[FIN | TEXT, 2, b'{', b'}']).await; // not masked
    raw.closes_with(&[1002]).await;
    gateway.anonymous().gets("/healthz").await.is(200);
}

#[tokio::test]
async fn text_that_is_not_utf8_closes_the_socket() {
    let gateway = Gateway::start().await;
    for bad in [
        &[0xce, 0xba, 0xe1, 0xff][..],
        &[0xed, 0xa0, 0x80],
        &[0xf4, 0x90, 0x80, 0x80],
        &[0xc0, 0xaf],
        &[0x80],
    ] {
        let mut raw = RawClient::open(&gateway).await;
        raw.send(FIN | TEXT, bad).await;
        raw.closes_with(&[1007]).await;
        let mut raw = RawClient::open(&gateway).await;
        raw.send(TEXT, &bad[..1]).await;
        raw.send(FIN, &bad[1..]).await;
        raw.closes_with(&[1007]).await;
    }
    let mut raw = RawClient::open(&gateway).await;
    raw.send(
        TEXT,
        "{\"type\":\"HEARTBEAT\",\"x\":\"\u{e4}"
            .as_bytes()
            .split_last()
            .unwrap()
            .1,
    )
    .await;
    raw.send(FIN, &[0xa4, b'"', b'}']).await;
    raw.receives_heartbeat().await;
}

#[tokio::test]
async fn binary_and_oversized_messages_close_the_socket() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    raw.send(FIN | BINARY, b"x").await;
    raw.closes_with(&[1003]).await;
    let mut raw = RawClient::open(&gateway).await;
    raw.bytes(&[
        FIN | TEXT,
        0x80 | 0x7f,
        0,
        0,
        0,
        0,
        0,
        0x40,
        0,
        1,
        0,
        0,
        0,
        0,
    ])
    .await;
    raw.closes_with(&[1009]).await;
    let mut raw = RawClient::open(&gateway).await;
    raw.bytes(&[
        FIN | TEXT,
        0x80 | 0x7f,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0,
        0,
        0,
        0,
    ])
    .await;
    raw.closes_with(&[1002, 1009]).await;
}

#[tokio::test]
async fn a_close_is_answered_with_the_same_code() {
    let gateway = Gateway::start().await;
    for code in [1000_u16, 1001, 1003, 1007, 1011, 3000, 4999] {
        let mut raw = RawClient::open(&gateway).await;
        raw.send(FIN | CLOSE, &code.to_be_bytes()).await;
        let (opcode, payload) = raw.frame().await.expect("a close comes back");
        assert_eq!(
            (opcode, payload.get(..2)),
            (CLOSE, Some(&code.to_be_bytes()[..]))
        );
        assert!(raw.frame().await.is_none());
    }
    let mut raw = RawClient::open(&gateway).await;
    raw.send(FIN | CLOSE, b"").await;
    assert_eq!(raw.frame().await.map(|(opcode, _)| opcode), Some(CLOSE));
    for bad in [0_u16, 999, 1004, 1005, 1006, 1016, 2999, 5000] {
        let mut raw = RawClient::open(&gateway).await;
        raw.send(FIN | CLOSE, &bad.to_be_bytes()).await;
        raw.closes_with(&[1002]).await;
    }
    let mut raw = RawClient::open(&gateway).await;
    raw.send(FIN | CLOSE, &[3, 232, 0xff, 0xfe]).await;
    raw.closes_with(&[1007, 1002]).await;
}

#[tokio::test]
async fn a_client_may_ping_often_but_not_without_limit() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    // Two minutes of one ping every 200 ms, all at once.
    for number in 0..600_u16 {
        let payload = number.to_be_bytes();
        raw.send(FIN | PING, &payload).await;
        assert_eq!(raw.frame().await, Some((PONG, payload.to_vec())));
    }
    raw.send(FIN | TEXT, HEARTBEAT).await;
    raw.receives_heartbeat().await;
    raw.send(FIN | PING, b"one more").await;
    raw.closes_with(&[4429]).await;

    let mut raw = RawClient::open(&gateway).await;
    raw.bytes(&frame(FIN | PONG, b"unasked").repeat(601)).await;
    raw.closes_with(&[4429]).await;
}

#[tokio::test]
async fn a_client_that_ignores_a_thousand_refusals_is_disconnected() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    let mut refused = 0;
    // A hundred are within the limit; every further one gets a retry delay.
    for _ in 0..1_099 {
        raw.send(FIN | TEXT, b"garbage").await;
        let (opcode, shown) = raw.frame().await.expect("an answer");
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!(opcode, TEXT, "{shown}");
        refused += usize::from(shown.contains("RATE_LIMITED"));
    }
    assert_eq!(refused, 999);
    raw.send(FIN | TEXT, HEARTBEAT).await;
    raw.receives_heartbeat().await;
    raw.send(FIN | TEXT, b"garbage").await;
    raw.closes_with(&[4400]).await;
}

#[tokio::test]
async fn endless_empty_fragments_close_the_socket() {
    let gateway = Gateway::start().await;
    let mut raw = RawClient::open(&gateway).await;
    raw.send(TEXT, b"").await;
    // Pings between the empty fragments must not restart the deadline.
    let fragments = frame(0, b"").repeat(20_000);
    let most = 8 * 1024 * 1024 + 64 * 1024;
    for sent in (fragments.len()..).step_by(fragments.len()) {
        raw.bytes(&fragments).await;
        if sent > most {
            break;
        }
        raw.send(FIN | PING, b"").await;
        assert_eq!(raw.frame().await, Some((PONG, Vec::new())), "after {sent}");
    }
    raw.closes_with(&[1009]).await;
}

#[cfg(not(feature = "conformance"))]
#[tokio::test]
async fn unfinished_messages_of_one_user_take_that_users_share_only() {
    /// Two more than fit into the share of 32 MiB.
    const SOCKETS: usize = 10;
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    // The largest frame that is read at all, but for its last byte.
    let mut unfinished = frame(FIN | TEXT, &vec![b'x'; 4 * 1024 * 1024]);
    unfinished.pop();
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(RawClient::open_as(&mia).await);
    }
    for socket in &mut sockets {
        socket.bytes(&unfinished).await;
    }
    let closes = sockets.into_iter();
    let closes = closes.map(|socket| Box::pin(socket.closes_with(&[4429])));
    let ((), _, held) = futures_util::future::select_all(closes).await;
    // The others of the user still hold what they have sent, and other users have their own share.
    let mut other = RawClient::open(&gateway).await;
    for part in HEARTBEAT.chunks(7) {
        let is_first = part.as_ptr() == HEARTBEAT.as_ptr();
        other.send(if is_first { TEXT } else { 0 }, part).await;
    }
    other.send(FIN, b"").await;
    other.receives_heartbeat().await;
    drop(held);
}

#[tokio::test]
async fn an_ordinary_build_has_no_echo_route() {
    let gateway = Gateway::start().await;
    gateway.anonymous().gets("/echo").await.is(404);
}
