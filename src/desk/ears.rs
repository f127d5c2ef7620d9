//! What a connection hears of besides its session and its peer: all that happens seldom.
//!
//! A connection is woken by every event. Asking each of these sources anew every time would cost
//! more than the event, as all connections share them; so they stand behind one door that opens
//! only when one of them has something to say. Touches `bus`.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::Desk;
use crate::bus::Notice;
use crate::session::Session;

/// Something that happens seldom.
pub(crate) enum Signal {
    /// The gateway stops, or somebody asked this connection to leave: it may come back.
    Leave,
    /// The session has ended, or must be joined anew.
    Over,
    /// Somebody's rights have changed; perhaps this one's.
    Rights,
    /// Something about the people around the session: who is in it, who may be, who drives.
    Circle,
    /// An announcement to everybody; nothing if some were missed.
    Notice(Option<Notice>),
}

/// The sources, and the wait for the first of them.
pub(crate) struct Ears(FuturesUnordered<BoxFuture<'static, (Signal, Sources)>>);

struct Sources {
    stop: CancellationToken,
    leave: CancellationToken,
    session: Session,
    /// How often the bell of its circle was heard.
    heard: u64,
    changes: watch::Receiver<i64>,
    notices: broadcast::Receiver<Notice>,
}

impl Ears {
    pub(crate) fn new(desk: &Desk, leave: CancellationToken) -> Self {
        let sources = Sources {
            stop: desk.reception.stop.clone(),
            leave,
            heard: desk.session.circle().rings(),
            session: desk.session.clone(),
            changes: desk.reception.auth.changes(),
            notices: desk.reception.notices.hear(),
        };
        let ears = Self(FuturesUnordered::new());
        ears.0.push(Box::pin(sources.first()));
        ears
    }

    /// The next signal. Cancel-safe: the wait goes on where it was.
    pub(crate) async fn hear(&mut self) -> Signal {
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
            () = self.stop.cancelled() => Signal::Leave,
            () = self.leave.cancelled() => Signal::Leave,
            () = self.session.over().cancelled() => Signal::Over,
            _ = self.changes.changed() => Signal::Rights,
            () = self.session.circle().rings_beyond(self.heard) => Signal::Circle,
            notice = self.notices.recv() => Signal::Notice(notice.ok()),
        };
        if matches!(signal, Signal::Circle) {
            // Whatever rings from here on is heard next time.
            self.heard = self.session.circle().rings();
        }
        (signal, self)
    }
}
