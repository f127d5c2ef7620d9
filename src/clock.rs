//! Clock: time as a parameter.
//!
//! Code that needs the time takes a [`Clock`]: the gateway passes the system's, tests pass one they
//! advance. Wall time is for what people and other machines read (expiry, audit entries); limits
//! and timers use monotonic time, so that a clock jump neither locks anyone out nor lets anyone in.
//! Touches nothing else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A source of time. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(Arc<Mutex<Reading>>),
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    wall: Timestamp,
    monotonic: Duration,
}

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        Self(Source::System {
            started: Instant::now(),
        })
    }

    /// A clock that only [`advance`](Self::advance) moves.
    pub fn manual(wall: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Mutex::new(Reading {
            wall,
            monotonic: Duration::ZERO,
        }))))
    }

    /// Wall time.
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Manual(reading) => reading.lock().unwrap_or_else(PoisonError::into_inner).wall,
        }
    }

    /// Monotonic time since an arbitrary start.
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual(reading) => {
                reading
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .monotonic
            }
        }
    }

    /// Moves a manual clock forward.
    ///
    /// # Panics
    /// On a system clock, which only time itself moves.
    pub fn advance(&self, by: Duration) {
        let Source::Manual(reading) = &self.0 else {
            panic!("only a manual clock can be advanced");
        };
        let mut reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.monotonic += by;
        reading.wall += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let before = (clock.wall(), clock.monotonic());
        assert_eq!(before, (clock.wall(), clock.monotonic()));
        clock.advance(Duration::from_mins(1));
        assert_eq!(clock.monotonic(), Duration::from_mins(1));
        assert_eq!(clock.wall().as_second(), 60);
    }
}
