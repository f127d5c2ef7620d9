//! Close reason: every reason for which the gateway ends a connection, with its code and what the client may
//! do.
//!
//! No close code is written anywhere else.

use std::borrow::Cow;

use super::frame_handler::FrameHandler;
use crate::domain::error_code::ErrorCode;
use crate::domain::shared_text::Text;
use crate::wire::outbound;

pub(crate) enum End {
    /// The client closed it, or is gone.
    Gone,
    Close(Close),
}

/// A close by the gateway: perhaps an error message, then the reason.
pub(crate) struct Close {
    pub(crate) last_message: Option<Text>,
    pub(crate) reason: CloseReason,
}

impl From<CloseReason> for Close {
    fn from(reason: CloseReason) -> Self {
        Self {
            last_message: None,
            reason,
        }
    }
}

impl From<Close> for End {
    fn from(close: Close) -> Self {
        Self::Close(close)
    }
}

impl From<CloseReason> for End {
    fn from(reason: CloseReason) -> Self {
        Self::Close(reason.into())
    }
}

impl Close {
    pub(super) fn with_error(
        handler: &FrameHandler,
        code: ErrorCode,
        message: &str,
        reason: CloseReason,
    ) -> Self {
        let (session, now) = (Some(handler.session.id()), handler.shared.clock.wall());
        Self {
            last_message: Some(outbound::last_word(session, code, message, now)),
            reason,
        }
    }

    /// The token has expired, or the login has ended.
    pub(super) fn unauthenticated(handler: &FrameHandler, code: ErrorCode) -> Self {
        let message = match code {
            ErrorCode::SessionExpired => "The token has expired; get a new one and come back.",
            _ => "This login has ended; log in again.",
        };
        Self::with_error(handler, code, message, CloseReason::UNAUTHENTICATED)
    }

    /// The session has ended, or must be joined again.
    pub(super) fn session_over(handler: &FrameHandler) -> Self {
        if handler.session.has_ended() {
            CloseReason::SESSION_ENDED.into()
        } else {
            CloseReason::RESTART.into()
        }
    }
}

/// Whether the client should come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconnect {
    /// No: it would end in the same way.
    Never,
    /// Yes, from where it was.
    Yes,
    WithNewToken,
    Later,
}

/// Why a connection is closed: the code and its text on the wire, and what the client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloseReason {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) reconnect: Reconnect,
}

impl CloseReason {
    /// The client does not speak WebSocket.
    pub(crate) const PROTOCOL_ERROR: Self = Self::new(1002, "protocol error", Reconnect::Yes);
    /// A binary frame.
    pub(crate) const UNSUPPORTED_DATA: Self =
        Self::new(1003, "binary frames are not understood", Reconnect::Yes);
    pub(crate) const BAD_TEXT: Self = Self::new(1007, "text is not UTF-8", Reconnect::Yes);
    /// A frame above the hard cap, which is not even read.
    pub(crate) const TOO_LARGE: Self = Self::new(1009, "frame too large", Reconnect::Yes);
    /// The gateway restarts, or the connection should be made again.
    pub(crate) const RESTART: Self = Self::new(1012, "restart", Reconnect::Yes);
    /// Kept sending after a thousand refusals.
    pub(crate) const ABUSE: Self = Self::new(4400, "protocol abuse", Reconnect::Never);
    /// The token is missing, bad, expired or revoked.
    pub(crate) const UNAUTHENTICATED: Self =
        Self::new(4401, "not authenticated", Reconnect::WithNewToken);
    pub(crate) const ACCESS_REVOKED: Self = Self::new(4403, "access revoked", Reconnect::Never);
    /// There is no such session, or it belongs to another user.
    pub(crate) const NO_SUCH_SESSION: Self = Self::new(4404, "no such session", Reconnect::Never);
    /// The client did not answer a ping, or took none of what was written.
    pub(crate) const DEAD_PEER: Self = Self::new(4408, "no sign of life", Reconnect::Yes);
    /// A message was not finished in time.
    pub(crate) const UNFINISHED: Self =
        Self::new(4408, "a message was not finished in time", Reconnect::Yes);
    pub(crate) const SESSION_ENDED: Self = Self::new(4409, "session ended", Reconnect::Never);
    /// Too many control frames, or too many bytes of unfinished messages.
    pub(crate) const FLOODING: Self = Self::new(4429, "flooding", Reconnect::Later);

    const fn new(code: u16, reason: &'static str, reconnect: Reconnect) -> Self {
        Self {
            code,
            reason,
            reconnect,
        }
    }

    /// The reason on the wire, with the time to come back if there is one: `restart; retryAfterMs=1500`.
    pub(crate) fn text(self, retry_after_ms: Option<u64>) -> Cow<'static, str> {
        match retry_after_ms {
            Some(millis) => format!("{}; retryAfterMs={millis}", self.reason).into(),
            None => self.reason.into(),
        }
    }

    #[cfg(test)]
    pub(crate) const ALL: [Self; 13] = [
        Self::PROTOCOL_ERROR,
        Self::UNSUPPORTED_DATA,
        Self::BAD_TEXT,
        Self::TOO_LARGE,
        Self::RESTART,
        Self::ABUSE,
        Self::UNAUTHENTICATED,
        Self::ACCESS_REVOKED,
        Self::NO_SUCH_SESSION,
        Self::DEAD_PEER,
        Self::UNFINISHED,
        Self::SESSION_ENDED,
        Self::FLOODING,
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const ALL: [CloseReason; 13] = CloseReason::ALL;

    /// A control frame's payload without the code.
    const MAX_REASON_BYTES: usize = 123;

    #[test]
    fn every_reason_has_its_own_text() {
        let texts: BTreeSet<&str> = ALL.iter().map(|reason| reason.reason).collect();
        assert_eq!(texts.len(), ALL.len());
    }

    #[test]
    fn every_reason_fits_into_a_close_frame() {
        for reason in ALL {
            assert!(reason.text(None).len() <= MAX_REASON_BYTES);
            assert!(reason.text(Some(u64::MAX)).len() <= MAX_REASON_BYTES);
        }
    }

    /// Documented codes that the gateway does not send: the client's own, and none at all.
    const OTHERS: [u16; 2] = [1000, 1006];

    /// The documented table: each code, and whether the client should come back.
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
                    "{code} is listed twice"
                );
            }
        }
        table
    }

    #[test]
    fn every_code_is_documented_with_whether_to_come_back() {
        let sent = ALL.map(|reason| (reason.code, reason.reconnect));
        assert_eq!(documented(), BTreeMap::from(sent));
    }

    #[test]
    fn a_restart_says_when_to_come_back() {
        let text = CloseReason::RESTART.text(Some(1500));
        assert_eq!(text, "restart; retryAfterMs=1500");
    }
}
