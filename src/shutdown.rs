//! Shutdown: the first signal drains, the second ends at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The two stages of a shutdown. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Accept no new work, finish the rest.
    pub drain: CancellationToken,
    /// End now.
    pub stop: CancellationToken,
}

/// Termination signals, caught from [`install`](Self::install) on.
pub struct OsSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl OsSignals {
    /// From here on a signal does not end the process by itself.
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
    /// Cancels the tokens as signals arrive.
    pub async fn follow_signals(&self, mut signals: OsSignals) {
        signals.next().await;
        tracing::info!("stopping: draining connections and runs; a second signal ends at once");
        self.drain.cancel();
        signals.next().await;
        tracing::warn!("stopping at once after a second signal");
        self.stop.cancel();
    }
}
