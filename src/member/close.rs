//! Every way in which the gateway ends a socket or a stream, each with its code and what the client
//! may do.
//!
//! No code is written anywhere else. Touches nothing.

use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// After a restart, clients come back within this, each at its own moment.
pub(super) const SPREAD_MS: u64 = 3_000;

/// Should the client come back?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconnect {
    /// No: it would end in the same way.
    Never,
    /// Yes, from where it was.
    Yes,
    /// Yes, with a new token.
    WithNewToken,
    /// Yes, after a while.
    Later,
}

/// Why a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloseReason {
    /// The code on the wire.
    pub(crate) code: u16,
    /// What stands beside it.
    pub(crate) reason: &'static str,
    /// What the client may do.
    pub(crate) reconnect: Reconnect,
}

impl CloseReason {
    /// The client does not speak WebSocket.
    pub(crate) const PROTOCOL_ERROR: Self = Self::new(1002, "protocol error", Reconnect::Yes);
    /// A binary frame.
    pub(crate) const UNSUPPORTED_DATA: Self =
        Self::new(1003, "binary frames are not understood", Reconnect::Yes);
    /// A text frame that is not UTF-8.
    pub(crate) const BAD_TEXT: Self = Self::new(1007, "text is not UTF-8", Reconnect::Yes);
    /// A frame above the hard cap, which is not even read.
    pub(crate) const TOO_LARGE: Self = Self::new(1009, "frame too large", Reconnect::Yes);
    /// The gateway restarts; see [`CloseReason::frame_after`].
    pub(crate) const RESTART: Self = Self::new(1012, "restart", Reconnect::Yes);
    /// Went on sending after being told a thousand times.
    pub(crate) const ABUSE: Self = Self::new(4400, "protocol abuse", Reconnect::Never);
    /// The token is missing, bad, expired or revoked.
    pub(crate) const UNAUTHENTICATED: Self =
        Self::new(4401, "not authenticated", Reconnect::WithNewToken);
    /// The user may not see this session any more.
    pub(crate) const ACCESS_REVOKED: Self = Self::new(4403, "access revoked", Reconnect::Never);
    /// There is no such session, or it is somebody else's.
    pub(crate) const NO_SUCH_SESSION: Self = Self::new(4404, "no such session", Reconnect::Never);
    /// No sign of life.
    pub(crate) const DEAD_PEER: Self = Self::new(4408, "no sign of life", Reconnect::Yes);
    /// A message was begun and not finished in time.
    pub(crate) const UNFINISHED: Self =
        Self::new(4408, "a message was not finished in time", Reconnect::Yes);
    /// The session was ended or deleted.
    pub(crate) const SESSION_ENDED: Self = Self::new(4409, "session ended", Reconnect::Never);
    /// More frames than any limit has patience for.
    pub(crate) const FLOODING: Self = Self::new(4429, "flooding", Reconnect::Later);

    const fn new(code: u16, reason: &'static str, reconnect: Reconnect) -> Self {
        Self {
            code,
            reason,
            reconnect,
        }
    }

    /// The frame that says so.
    pub(crate) fn frame(self) -> CloseFrame {
        CloseFrame {
            code: CloseCode::from(self.code),
            reason: Utf8Bytes::from_static(self.reason),
        }
    }

    /// The same, and when to come back: `restart; retryAfterMs=1500`.
    pub(crate) fn frame_after(self, retry_ms: u64) -> CloseFrame {
        CloseFrame {
            reason: format!("{}; retryAfterMs={retry_ms}", self.reason).into(),
            ..self.frame()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const ALL: [CloseReason; 13] = [
        CloseReason::PROTOCOL_ERROR,
        CloseReason::UNSUPPORTED_DATA,
        CloseReason::BAD_TEXT,
        CloseReason::TOO_LARGE,
        CloseReason::RESTART,
        CloseReason::ABUSE,
        CloseReason::UNAUTHENTICATED,
        CloseReason::ACCESS_REVOKED,
        CloseReason::NO_SUCH_SESSION,
        CloseReason::DEAD_PEER,
        CloseReason::UNFINISHED,
        CloseReason::SESSION_ENDED,
        CloseReason::FLOODING,
    ];

    /// What fits into a control frame beside the code.
    const MOST_REASON_BYTES: usize = 123;

    #[test]
    fn every_reason_has_words_of_its_own() {
        let words: BTreeSet<&str> = ALL.iter().map(|reason| reason.reason).collect();
        assert_eq!(words.len(), ALL.len());
    }

    #[test]
    fn every_reason_fits_into_a_close_frame() {
        for reason in ALL {
            assert!(reason.frame().reason.len() <= MOST_REASON_BYTES);
            assert!(reason.frame_after(u64::MAX).reason.len() <= MOST_REASON_BYTES);
        }
    }

    #[test]
    fn every_code_may_be_sent_and_arrives_as_itself() {
        for reason in ALL {
            let code = reason.frame().code;
            assert!(code.is_allowed(), "{code}");
            assert_eq!(u16::from(code), reason.code);
        }
    }

    /// Codes of the page that are not sent from here: the client's own, and none at all.
    const OTHERS: [u16; 2] = [1000, 1006];

    /// The table of close codes in the documents: each code, and whether to come back.
    fn documented() -> BTreeMap<u16, Reconnect> {
        let page = include_str!("../../docs/client-protocol.md");
        let (_, section) = page.split_once("## Close codes").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| "));
        let mut table = BTreeMap::new();
        for row in rows.skip(1) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let codes = cells[1].split(", ").filter_map(|code| code.parse().ok());
            for code in codes.filter(|code| !OTHERS.contains(code)) {
                let reconnect = match cells[3] {
                    "no" => Reconnect::Never,
                    "with a new token" => Reconnect::WithNewToken,
                    later if later.starts_with("yes, later") => Reconnect::Later,
                    yes if yes.starts_with("yes") => Reconnect::Yes,
                    other => panic!("{code}: {other}"),
                };
                assert_eq!(
                    table.insert(code, reconnect),
                    None,
                    "{code} stands there twice"
                );
            }
        }
        table
    }

    #[test]
    fn the_documents_say_of_every_code_whether_to_come_back() {
        let meant = ALL.map(|reason| (reason.code, reason.reconnect));
        assert_eq!(documented(), BTreeMap::from(meant));
    }

    #[test]
    fn a_restart_says_when_to_come_back() {
        let frame = CloseReason::RESTART.frame_after(1500);
        assert_eq!(frame.reason.as_str(), "restart; retryAfterMs=1500");
    }
}
