//! Signals: rare signals for a connection: shutdown, kick, revoked rights, presence, notices.
//!
//! A connection wakes for every event. Polling each of these sources on every wake-up would cost more
//! than the event, as all connections share them; so one future holds them all and is polled only
//! when one of them woke it.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::frame_handler::FrameHandler;
use crate::bus::Notice;
use crate::session::Session;

pub(super) enum Signal {
    /// The gateway shuts down, or an administrator kicked this connection: it may come back.
    Disconnect,
    /// The session has ended, or must be joined again.
    SessionOver,
    /// Some user's rights have changed, perhaps this one's.
    RightsChanged,
    PresenceChanged,
    /// A notice; `None` if some were missed.
    Notice(Option<Notice>),
}

/// Holds at most one future. `FuturesUnordered` for its waker: it polls that future only after it
/// was woken.
pub(super) struct Signals(FuturesUnordered<BoxFuture<'static, (Signal, Sources)>>);

struct Sources {
    drain: CancellationToken,
    kick: CancellationToken,
    session: Session,
    presence: u64,
    rights: watch::Receiver<i64>,
    notices: broadcast::Receiver<Notice>,
}

impl Signals {
    pub(super) fn subscribe(handler: &FrameHandler, kick: CancellationToken) -> Self {
        let sources = Sources {
            drain: handler.shared.drain.clone(),
            kick,
            presence: handler.session.presence().version(),
            session: handler.session.clone(),
            rights: handler.shared.auth.changes(),
            notices: handler.shared.notices.subscribe(),
        };
        let signals = Self(FuturesUnordered::new());
        signals.0.push(Box::pin(sources.first()));
        signals
    }

    /// Cancel-safe: the future that waits stays here.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.next().await {
            Some((signal, sources)) => {
                self.0.push(Box::pin(sources.first()));
                signal
            }
            None => std::future::pending().await,
        }
    }
}

impl Sources {
    async fn first(mut self) -> (Signal, Self) {
        let signal = tokio::select! {
            biased;
            () = self.drain.cancelled() => Signal::Disconnect,
            () = self.kick.cancelled() => Signal::Disconnect,
            () = self.session.closed().cancelled() => Signal::SessionOver,
            _ = self.rights.changed() => Signal::RightsChanged,
            () = self.session.presence().changed_beyond(self.presence) => Signal::PresenceChanged,
            notice = self.notices.recv() => Signal::Notice(notice.ok()),
        };
        if matches!(signal, Signal::PresenceChanged) {
            // Read after the wake-up: a change from here on is a signal of its own.
            self.presence = self.session.presence().version();
        }
        (signal, self)
    }
}
