//! Keepalive: pings a quiet socket and finds a dead one.

use std::time::Duration;

use tokio::time::Instant;

const PONG_TIMEOUT: Duration = Duration::from_secs(10);
/// While output is pending, the client is alive if it took some of it within this.
const PROGRESS_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a slow reader's progress is checked.
const PROGRESS_CHECK: Duration = Duration::from_secs(5);

pub(super) struct Keepalive {
    ping_interval: Duration,
    received: Instant,
    pinged: Option<Instant>,
    /// How many bytes the client had taken when that was last seen to change.
    progress: (u64, Instant),
}

impl Keepalive {
    pub(super) fn new(ping_interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            ping_interval,
            received: now,
            pinged: None,
            progress: (0, now),
        }
    }

    pub(super) fn frame_received(&mut self) {
        self.received = Instant::now();
        self.pinged = None;
    }

    pub(super) fn due(&self, is_flushing: bool) -> Instant {
        match self.pinged {
            _ if is_flushing => Instant::now() + PROGRESS_CHECK,
            Some(pinged) => pinged + PONG_TIMEOUT,
            None => self.received + self.ping_interval,
        }
    }

    /// True if a ping is due; it counts as sent then.
    pub(super) fn take_ping(&mut self, is_flushing: bool) -> bool {
        let is_due =
            !is_flushing && self.pinged.is_none() && self.received.elapsed() >= self.ping_interval;
        if is_due {
            self.pinged = Some(Instant::now());
        }
        is_due
    }

    /// A ping waits behind output that the client has not read: then only a standstill counts.
    /// `written` is how many bytes the client has taken so far.
    pub(super) fn is_dead(&mut self, is_flushing: bool, written: u64) -> bool {
        if written != self.progress.0 {
            self.progress = (written, Instant::now());
            // What was taken now was queued before the ping.
            self.pinged = self.pinged.filter(|_| !is_flushing);
        }
        if is_flushing {
            self.progress.1.elapsed() >= PROGRESS_TIMEOUT
        } else {
            self.pinged
                .is_some_and(|pinged| pinged.elapsed() >= PONG_TIMEOUT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: Duration = Duration::from_secs(25);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_answers_no_ping_is_dead() {
        let mut keepalive = Keepalive::new(HEARTBEAT);
        tokio::time::advance(HEARTBEAT).await;
        assert!(keepalive.take_ping(false) && !keepalive.is_dead(false, 0));
        tokio::time::advance(PONG_TIMEOUT).await;
        assert!(keepalive.is_dead(false, 0));
        keepalive.frame_received();
        assert!(!keepalive.is_dead(false, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_for_a_minute_is_dead() {
        let mut keepalive = Keepalive::new(HEARTBEAT);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!keepalive.is_dead(true, 0));
        keepalive.frame_received();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(
            keepalive.is_dead(true, 0),
            "frames from the client are no progress"
        );
    }
}
