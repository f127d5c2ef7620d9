//! Case: number, frames to send, and the expected response.

use std::net::SocketAddr;

use crate::gateway::Gateway;
use crate::raw_websocket::{CLOSE, FIN, PING, PONG, RawWebSocket, close_code, frame};

/// Close code at the end of a passed case.
const NORMAL: u16 = 1000;

enum Step {
    /// Sent in one write.
    Send(Vec<u8>),
    /// Sent in writes of this many bytes.
    Chop(Vec<u8>, usize),
    Hear(u8, Vec<u8>),
}

/// Expected end of a case.
enum End {
    /// We close, and get the same code back.
    WeLeave,
    /// The gateway closes with one of these codes, or answers our close so.
    Closed(Vec<Option<u16>>),
}

/// A case: its steps and its end.
pub(crate) struct Case {
    number: String,
    steps: Vec<Step>,
    end: End,
}

impl Case {
    pub(crate) fn new(number: impl Into<String>) -> Self {
        Self {
            number: number.into(),
            steps: Vec::new(),
            end: End::WeLeave,
        }
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends a frame with any first byte.
    pub(crate) fn sends(self, first: u8, payload: &[u8]) -> Self {
        self.step(Step::Send(frame(first, payload)))
    }

    /// Sends frames in one write.
    pub(crate) fn sends_at_once(self, frames: &[(u8, &[u8])]) -> Self {
        self.step(Step::Send(joined(frames)))
    }

    /// Sends frames in writes of this many bytes.
    pub(crate) fn chops(self, size: usize, frames: &[(u8, &[u8])]) -> Self {
        self.step(Step::Chop(joined(frames), size))
    }

    /// Sends a message in fragments of this many bytes.
    pub(crate) fn fragments(self, opcode: u8, payload: &[u8], size: usize) -> Self {
        let pieces = payload.chunks(size);
        let last = pieces.len() - 1;
        let bytes = pieces.enumerate().flat_map(|(place, piece)| {
            let opcode = if place == 0 { opcode } else { 0 };
            let fin = if place == last { FIN } else { 0 };
            frame(fin | opcode, piece)
        });
        let bytes = bytes.collect();
        self.step(Step::Send(bytes))
    }

    /// Expects this frame next.
    pub(crate) fn expects(self, opcode: u8, payload: &[u8]) -> Self {
        self.step(Step::Hear(opcode, payload.to_vec()))
    }

    /// Expects everything so far to be accepted: a following ping is answered.
    pub(crate) fn stays_open(self) -> Self {
        self.sends(FIN | PING, b"there?").expects(PONG, b"there?")
    }

    /// Expects a close with one of these codes, then the end of the connection.
    pub(crate) fn closes(mut self, codes: &[u16]) -> Self {
        self.end = End::Closed(codes.iter().copied().map(Some).collect());
        self
    }

    /// Expects a close without a code, then the end of the connection.
    pub(crate) fn closes_without_code(mut self) -> Self {
        self.end = End::Closed(vec![None]);
        self
    }

    async fn run(self, address: SocketAddr) -> Result<(), String> {
        let mut raw = RawWebSocket::open(address, "/echo", "").await;
        for step in self.steps {
            match step {
                Step::Send(bytes) => raw.bytes(&bytes).await,
                Step::Chop(bytes, size) => {
                    for chop in bytes.chunks(size) {
                        raw.bytes(chop).await;
                    }
                }
                Step::Hear(opcode, payload) => {
                    let expected = Some((opcode, payload));
                    let received = raw.frame().await;
                    if received != expected {
                        return Err(format!(
                            "{}, not {}",
                            describe(received.as_ref()),
                            describe(expected.as_ref())
                        ));
                    }
                }
            }
        }
        let codes = match self.end {
            End::WeLeave => {
                raw.send(FIN | CLOSE, &NORMAL.to_be_bytes()).await;
                vec![Some(NORMAL)]
            }
            End::Closed(codes) => codes,
        };
        match raw.frame().await {
            Some((CLOSE, payload)) if codes.contains(&close_code(&payload)) => {}
            other => {
                return Err(format!(
                    "{}, not a close with {codes:?}",
                    describe(other.as_ref())
                ));
            }
        }
        match raw.frame().await {
            None => Ok(()),
            more => Err(format!("{} after the close", describe(more.as_ref()))),
        }
    }
}

fn joined(frames: &[(u8, &[u8])]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|(first, payload)| frame(*first, payload))
        .collect()
}

fn describe(received: Option<&(u8, Vec<u8>)>) -> String {
    match received {
        None => "the end".to_owned(),
        Some((opcode, payload)) => {
            let beginning = &payload[..payload.len().min(40)];
            format!(
                "opcode {opcode} with {} bytes ({})",
                payload.len(),
                beginning.escape_ascii()
            )
        }
    }
}

/// Runs a chapter of `count` cases, each on its own socket, and names those that failed.
pub(crate) async fn pass(count: usize, cases: Vec<Case>) {
    assert_eq!(cases.len(), count, "a case is missing");
    let gateway = Gateway::start();
    let mut failed = Vec::new();
    for case in cases {
        let number = case.number.clone();
        if let Err(what) = Box::pin(case.run(gateway.address)).await {
            failed.push(format!("{number}: {what}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
