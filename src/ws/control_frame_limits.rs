//! Control frame limits: bound the control frames and fragments that one connection may send.
//!
//! Messages are counted per session, in `member`; the library handles everything below them without
//! any limit. Only a complete message renews the bytes for the next one: if a ping did, pings between
//! empty fragments would keep a message open for ever.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::byte_limits::Allowance;
use crate::clock::Clock;
use crate::limits::SlidingWindow;
use crate::member::CloseReason;

/// Pings and pongs of one connection in any minute.
const CONTROL_FRAMES_PER_MINUTE: NonZeroU32 = NonZeroU32::new(600).expect("not zero");
/// A client's control frame has two bytes and the mask.
const CONTROL_HEADER_BYTES: u64 = 6;

/// From a message's first byte to its last.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct ControlFrameLimits {
    control_frames: SlidingWindow<()>,
    allowance: Allowance,
    unfinished_since: Option<Instant>,
}

impl ControlFrameLimits {
    pub(super) fn new(allowance: Allowance, clock: Clock) -> Self {
        let minute = Duration::from_mins(1);
        Self {
            control_frames: SlidingWindow::new(
                CONTROL_FRAMES_PER_MINUTE,
                minute,
                NonZeroU32::MIN,
                clock,
            ),
            allowance,
            unfinished_since: None,
        }
    }

    /// True if a message stays unfinished for too long. Called from time to time: the timeout counts
    /// from the first call that sees the message.
    pub(super) fn is_overdue(&mut self, now: Instant) -> bool {
        if !self.allowance.has_unfinished() {
            self.unfinished_since = None;
            return false;
        }
        let since = *self.unfinished_since.get_or_insert(now);
        now - since >= MESSAGE_TIMEOUT
    }

    /// Counts a frame from the library; `Err` if it is one too many.
    pub(super) fn count(&mut self, frame: &Message) -> Result<(), CloseReason> {
        match frame {
            Message::Text(_) | Message::Binary(_) => {
                self.allowance.renew();
                self.unfinished_since = None;
            }
            Message::Ping(payload) | Message::Pong(payload) => {
                self.allowance
                    .exempt(CONTROL_HEADER_BYTES + payload.len() as u64);
                let admitted = self.control_frames.admit(&());
                return admitted.map(drop).map_err(|_| CloseReason::FLOODING);
            }
            Message::Close(_) | Message::Frame(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::limits::KeyedByteBudgets;
    use crate::ws::byte_limits::Meter;

    fn limits(max_message: u64) -> (ControlFrameLimits, Clock, Meter<tokio::io::Repeat>) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (meter, allowance) = Meter::new(
            tokio::io::repeat(0),
            max_message,
            KeyedByteBudgets::new(0, 0).of(()),
        );
        (
            ControlFrameLimits::new(allowance, clock.clone()),
            clock,
            meter,
        )
    }

    fn ping(bytes: usize) -> Message {
        Message::Ping(vec![0; bytes].into())
    }

    #[test]
    fn the_601st_control_frame_within_a_minute_is_one_too_many() {
        let (mut limits, clock, _) = limits(1);
        for _ in 0..300 {
            assert_eq!(limits.count(&ping(0)), Ok(()));
            assert_eq!(limits.count(&Message::Pong(Vec::new().into())), Ok(()));
        }
        clock.advance(Duration::from_secs(59));
        assert_eq!(limits.count(&ping(0)), Err(CloseReason::FLOODING));
        assert_eq!(limits.count(&Message::text("x")), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(limits.count(&ping(0)), Ok(()));
    }

    #[test]
    fn a_ping_every_200_ms_goes_on_for_ever() {
        let (mut limits, clock, _) = limits(1);
        for _ in 0..10_000 {
            assert_eq!(limits.count(&ping(8)), Ok(()));
            clock.advance(Duration::from_millis(200));
        }
    }

    #[tokio::test]
    async fn pings_are_exempt_and_renew_nothing_for_fragments() {
        let (mut limits, _, mut meter) = limits(100);
        let mut bytes = [0; 106];
        // Pings of 100 bytes: no part of any message.
        for _ in 0..10 {
            let (first, rest) = bytes.split_at_mut(53);
            meter.read_exact(first).await.unwrap();
            meter.read_exact(rest).await.unwrap();
            limits.count(&ping(100)).unwrap();
        }
        // Fragments of 10 bytes, each followed by an empty ping.
        for _ in 0..10 {
            meter.read_exact(&mut bytes[..16]).await.unwrap();
            limits.count(&ping(0)).unwrap();
        }
        assert!(meter.read(&mut bytes).await.is_err());
        limits.count(&Message::binary(vec![1])).unwrap();
        meter.read_exact(&mut bytes[..100]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_never_finished_is_overdue_despite_pings() {
        let (mut limits, _, mut meter) = limits(1_000);
        let mut bytes = [0; 100];
        assert!(!limits.is_overdue(Instant::now()));
        meter.read_exact(&mut bytes).await.unwrap();
        assert!(!limits.is_overdue(Instant::now()));
        tokio::time::advance(MESSAGE_TIMEOUT / 2).await;
        meter.read_exact(&mut bytes[..6]).await.unwrap();
        limits.count(&ping(0)).unwrap();
        assert!(!limits.is_overdue(Instant::now()));
        tokio::time::advance(MESSAGE_TIMEOUT / 2).await;
        assert!(limits.is_overdue(Instant::now()));
        limits.count(&Message::text("at last")).unwrap();
        assert!(!limits.is_overdue(Instant::now()));
    }
}
