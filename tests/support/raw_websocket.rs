//! Raw WebSocket: a client that can send arbitrary bytes, one by one if needed.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;
pub(crate) const FIN: u8 = 0x80;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A masked frame with any first byte.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [7, 21, 42, 99];
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(0x80 | u8::try_from(short).unwrap()),
        long @ 126..=65_535 => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
        longer => {
            bytes.push(0x80 | 0x7f);
            bytes.extend((longer as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    let masks = mask.iter().cycle();
    bytes.extend(payload.iter().zip(masks).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// The code in the payload of a close frame.
pub(crate) fn close_code(payload: &[u8]) -> Option<u16> {
    let (code, _) = payload.split_first_chunk()?;
    Some(u16::from_be_bytes(*code))
}

/// An open WebSocket, and the handshake's response.
pub(crate) struct RawWebSocket {
    stream: TcpStream,
    pub(crate) answer: String,
}

impl RawWebSocket {
    /// Opens a socket; each header ends with a line break.
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap().to_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        assert!(
            answer.contains("s3pplmbitxaq9kygzzhzrbk+xoo="),
            "the key of the RFC's example: {answer}"
        );
        Self { stream, answer }
    }

    pub(crate) async fn send(&mut self, first: u8, payload: &[u8]) {
        self.bytes(&frame(first, payload)).await;
    }

    /// The gateway may have closed already.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.ok();
    }

    /// The next frame, or `None` when the connection is over.
    pub(crate) async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let read = async {
            let first = self.stream.read_u8().await.ok()?;
            assert_eq!(first & 0x70, 0, "no extension was negotiated");
            assert_ne!(first & FIN, 0, "the gateway does not cut messages");
            let length = match self.stream.read_u8().await.ok()? {
                126 => usize::from(self.stream.read_u16().await.ok()?),
                127 => usize::try_from(self.stream.read_u64().await.ok()?).unwrap(),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await.ok()?;
            Some((first & 0x0f, payload))
        };
        tokio::time::timeout(TIMEOUT, read)
            .await
            .expect("a frame or an end")
    }
}
