//! Signs of life of the other end.

use std::time::Duration;

use tokio::time::Instant;

use super::meter::Written;

const PONG_WITHIN: Duration = Duration::from_secs(10);
/// While output is pending, alive means that some of it went out within this.
const PROGRESS_WITHIN: Duration = Duration::from_mins(1);

/// When the other end was last heard, and when it last took something.
pub(super) struct Pulse {
    /// After so much silence the other end is asked for a sign of life.
    patience: Duration,
    heard: Instant,
    pinged: Option<Instant>,
    written: Written,
    taken: (u64, Instant),
}

impl Pulse {
    pub(super) fn new(written: Written, patience: Duration) -> Self {
        let now = Instant::now();
        Self {
            patience,
            heard: now,
            pinged: None,
            taken: (written.bytes(), now),
            written,
        }
    }

    /// A frame came.
    pub(super) fn hear(&mut self) {
        self.heard = Instant::now();
        self.pinged = None;
    }

    /// When to look again.
    pub(super) fn next(&self, flushing: bool) -> Instant {
        match self.pinged {
            // A look now and then is enough to see whether a slow reader takes anything.
            _ if flushing => Instant::now() + Duration::from_secs(5),
            Some(pinged) => pinged + PONG_WITHIN,
            None => self.heard + self.patience,
        }
    }

    /// Notes that a ping is sent now, if it is time for one.
    pub(super) fn ping_is_due(&mut self, flushing: bool) -> bool {
        let due = !flushing && self.pinged.is_none() && self.heard.elapsed() >= self.patience;
        if due {
            self.pinged = Some(Instant::now());
        }
        due
    }

    /// A ping waits behind what the other end has not read yet: then only standing still counts.
    pub(super) fn is_dead(&mut self, flushing: bool) -> bool {
        let written = self.written.bytes();
        if written != self.taken.0 {
            self.taken = (written, Instant::now());
            // What is taken now was in front of the ping.
            self.pinged = self.pinged.filter(|_| !flushing);
        }
        if flushing {
            self.taken.1.elapsed() >= PROGRESS_WITHIN
        } else {
            self.pinged
                .is_some_and(|pinged| pinged.elapsed() >= PONG_WITHIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: Duration = Duration::from_secs(25);

    #[tokio::test(start_paused = true)]
    async fn silence_after_a_ping_is_death() {
        let mut pulse = Pulse::new(Written::default(), HEARTBEAT);
        tokio::time::advance(HEARTBEAT).await;
        assert!(pulse.ping_is_due(false) && !pulse.is_dead(false));
        tokio::time::advance(PONG_WITHIN).await;
        assert!(pulse.is_dead(false));
        pulse.hear();
        assert!(!pulse.is_dead(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stands_still_is_dead_after_a_minute() {
        let mut pulse = Pulse::new(Written::default(), HEARTBEAT);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!pulse.is_dead(true));
        pulse.hear();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pulse.is_dead(true), "talking is not reading");
    }
}
