//! Stopping: first drain, then end; asked twice, end at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The two wishes to stop. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Take no new work, finish what is under way.
    pub drain: CancellationToken,
    /// Drop everything.
    pub now: CancellationToken,
}

/// The signals that ask to stop, from the moment of [`install`](Self::install) on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on a signal is a wish and does not end the process by itself.
    pub fn install() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Shutdown {
    /// Turns signals into wishes until both have been made.
    pub async fn follow(&self, mut signals: Signals) {
        signals.next().await;
        tracing::info!("stopping: finishing what is under way; a second signal ends at once");
        self.drain.cancel();
        signals.next().await;
        tracing::warn!("stopping at once");
        self.now.cancel();
    }
}
