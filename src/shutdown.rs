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

impl Shutdown {
    /// Turns SIGTERM and SIGINT into wishes until both have been made.
    pub async fn follow_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        next(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping: finishing what is under way; a second signal ends at once");
        self.drain.cancel();
        next(&mut terminate, &mut interrupt).await;
        tracing::warn!("stopping at once");
        self.now.cancel();
        Ok(())
    }
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
